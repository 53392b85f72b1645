//! OpenEnv: environments behind an HTTP and WebSocket server, in both directions. Follows the PyPI package `openenv`
//! 0.10: `GET /health`, `/metadata` and `/schema` say what there is, and a WebSocket at `/ws` plays, one session a
//! connection.
//!
//! What is here: a client ([`OpenEnv`], the environment type `openenv`) that makes typed actions from the server's
//! schema, and a server ([`Server`]) that offers any environment to that package's clients. What is not here: MCP tools,
//! the task interface, HTTPS (put a local proxy before a server that has nothing else).

mod action;
mod config;
mod connection;
mod environment;
mod observation;
mod remote;
mod server;

pub use action::ActionForm;
pub use config::OpenEnvConfig;
pub use environment::OpenEnv;
pub use server::Server;

/// Registry name.
pub const ENV_TYPE: &str = "openenv";
