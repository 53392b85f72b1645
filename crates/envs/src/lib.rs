//! Text environments for language-model agents.
//!
//! What is here: the [`Environment`] contract, the built-in environments, their oracles, a registry, a checker that
//! every environment passes, and random streams that reproduce NumPy's and Python's.
//! What is not here: models, tokens, prompts, rewards beyond what an environment itself pays.

mod config;
pub mod environment;
pub mod rng;
pub mod sokoban;

pub use environment::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
