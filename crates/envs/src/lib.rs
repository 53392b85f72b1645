//! Text environments for language-model agents.
//!
//! What is here: the [`Environment`] contract, the built-in environments, their oracles, a registry, a checker that
//! every environment passes, and random streams that reproduce NumPy's and Python's.
//! What is not here: models, tokens, prompts, rewards beyond what an environment itself pays.

pub mod environment;

pub use environment::{Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
