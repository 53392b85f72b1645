//! The binary from outside: exit status, messages, files.

mod games;
mod models;
mod runs;
mod support;
mod wrong_input;
