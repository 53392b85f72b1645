//! The commands, a file each.

pub mod bench;
pub mod envs;
pub mod envs_serve;
pub mod eval;
pub mod export;
pub mod generate;
pub mod new_env;
pub mod play;
mod progress;
mod run_folder;
pub mod score;
pub mod study;
pub mod tokenizer;
pub mod train;
pub mod warm_start;
