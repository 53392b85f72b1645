//! `external`: an environment in another process, which speaks JSON Lines on its standard input and output.
//!
//! `docs/environment-protocol.md` describes the protocol; `python/ragen_env` speaks it for Python classes, and [`serve()`]
//! for environments in Rust. Several processes are kept for all episodes of a kind, every call has a time limit, and a
//! process that hangs, exits or answers nonsense costs the episode that made it do so, and no other.
//!
//! The wall clock decides whether a call took too long. Nothing else here depends on time or on which process plays an
//! episode: a run in which no limit was hit is reproducible if the environment is.

mod config;
pub mod message;
mod serve;

#[cfg(unix)]
mod pool;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod session;
#[cfg(unix)]
mod worker;

#[cfg(unix)]
mod environment;
#[cfg(not(unix))]
mod unsupported;

pub use config::ExternalConfig;
#[cfg(unix)]
pub use environment::{External, shut_down};
pub use serve::{serve, serve_stdio};
#[cfg(not(unix))]
pub use unsupported::{External, shut_down};

/// Registry name.
pub const ENV_TYPE: &str = "external";
