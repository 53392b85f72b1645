//! Text environments for language-model agents.
//!
//! What is here: the [`Environment`] contract, the built-in environments, their oracles, a registry, a checker that
//! every environment passes, and random streams that reproduce NumPy's and Python's.
//! What is not here: models, tokens, prompts, rewards beyond what an environment itself pays.
//!
//! ```
//! use ragen_envs::{Split, make, template};
//!
//! let simple = template("SimpleSokoban")?;
//! let mut env = make(simple.env_type, &simple.env_config)?;
//! let board = env.reset(123, Split::Val)?;
//! assert_eq!(board, "######\n######\n#O####\n#XP###\n#__###\n######");
//! for action in env.oracle(simple.max_actions_per_traj) {
//!     let step = env.step(&action)?;
//!     assert!(step.info.action_is_effective);
//! }
//! assert!(env.step("Up").is_err(), "the episode is over");
//! # Ok::<(), ragen_envs::EnvError>(())
//! ```

pub mod alfworld;
pub mod bandit;
pub mod baseline;
pub mod checker;
mod claims;
pub mod code_tests;
pub mod config;
pub mod countdown;
mod dataset;
pub mod difficulty;
pub mod environment;
pub mod external;
pub mod frozen_lake;
pub mod game2048;
mod http;
pub mod lean;
pub mod math_qa;
pub mod navigation;
pub mod openenv;
pub mod registry;
pub mod rng;
pub mod rubik;
pub mod search_qa;
pub mod sokoban;
pub mod static_qa;
pub mod sudoku;
mod symbols;
pub mod webshop;
pub mod wrappers;

pub use claims::Agreement;
pub use environment::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
pub use rand_core::Rng;
pub use registry::{Template, env_types, make, register, template, templates};
pub use symbols::ObservationFormat;
