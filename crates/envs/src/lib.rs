//! Text environments for language-model agents.
//!
//! What is here: the [`Environment`] contract, the built-in environments, their oracles, a registry, a checker that
//! every environment passes, and random streams that reproduce NumPy's and Python's.
//! What is not here: models, tokens, prompts, rewards beyond what an environment itself pays.

pub mod bandit;
pub mod baseline;
pub mod checker;
mod config;
pub mod difficulty;
pub mod environment;
pub mod frozen_lake;
pub mod registry;
pub mod rng;
pub mod sokoban;
mod symbols;

pub use environment::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
pub use registry::{Template, env_types, make, template, templates};
pub use symbols::ObservationFormat;
