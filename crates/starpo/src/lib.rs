//! StarPO (State-Thinking-Actions-Reward Policy Optimization): multi-turn reinforcement learning of language-model
//! agents.
//!
//! What is here: context, rollout, episodes, filter, advantages, losses, trainer, evaluation, warm start, run folder.
//! What is not here: numerics (behind [`policy::Policy`]), HTTP, terminals.

pub mod advantage;
pub mod agent;
pub mod aggregate;
pub mod chat_dialogue;
pub mod config;
pub mod context;
pub mod credit;
pub mod diagnostics;
pub mod dialogue;
pub mod early_stop;
pub mod entropy_control;
pub mod episode;
pub mod evaluate;
pub mod filter;
pub mod guard;
pub mod guarded_env;
pub mod instances;
pub mod kl;
pub mod local_policy;
pub mod loss;
pub mod metrics;
pub mod mi;
pub mod parse;
pub mod policy;
pub mod progress;
pub mod rollout;
pub mod rollout_log;
pub mod rollout_metrics;
pub mod run_dir;
pub mod select;
pub mod shaping;
pub mod study;
pub mod tensorboard;
pub mod tiny;
pub mod tokens;
pub mod trainer;
pub mod transcript;
pub mod update;
pub mod warm_start;
pub mod warm_start_data;
