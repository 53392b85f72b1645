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

pub mod bandit;
pub mod baseline;
pub mod checker;
mod claims;
mod config;
pub mod difficulty;
pub mod environment;
pub mod external;
pub mod frozen_lake;
pub mod openenv;
pub mod registry;
pub mod rng;
pub mod sokoban;
mod symbols;
pub mod wrappers;

pub use claims::Agreement;
pub use environment::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
pub use registry::{Template, env_types, make, template, templates};
pub use symbols::ObservationFormat;
