//! The binary from outside: exit status, messages, files.

mod bits;
mod games;
mod models;
mod new_env;
mod runs;
mod serve;
mod studies;
mod support;
mod wrong_input;
