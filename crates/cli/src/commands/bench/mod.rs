//! `ragen bench`: how fast this machine is and how close we come to it.

mod decode;
mod envs;
mod external;
mod gemm;
mod iteration;
mod machine;
mod rl_step;
mod score;
mod train_step;
mod webshop;

use clap::{Args, Subcommand};
use ragen_model::trainable::Limits;
use ragen_starpo::local_policy::LocalPolicy;
use ragen_starpo::policy::Policy;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::arguments::set_threads;
use crate::failure::{Failure, Outcome};
use crate::model;
use crate::output::{self, Table};

/// Measure speed. On a shared machine run it more than once and read the ratios.
#[derive(Args)]
#[command(after_help = "Example:\n  ragen bench train-step --model models/smollm2-135m-instruct-q4_1.gguf --batch 4 \
--len 256 --steps 3 --json")]
pub struct Bench {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    Machine(machine::Machine),
    Gemm(gemm::Gemm),
    Decode(decode::Decode),
    Score(score::Score),
    TrainStep(train_step::TrainStep),
    RlStep(rl_step::RlStep),
    Iteration(iteration::Iteration),
    Envs(envs::Envs),
    Webshop(webshop::Webshop),
    External(external::External),
}

impl Bench {
    /// Runs the command.
    pub fn run(self, threads: Option<usize>) -> Outcome {
        if !matches!(self.command, BenchCommand::Iteration(_)) {
            set_threads(threads, None)?;
        }
        match self.command {
            BenchCommand::Machine(command) => command.run(),
            BenchCommand::Gemm(command) => command.run(),
            BenchCommand::Decode(command) => command.run(),
            BenchCommand::Score(command) => command.run(),
            BenchCommand::TrainStep(command) => command.run(),
            BenchCommand::RlStep(command) => command.run(),
            BenchCommand::Iteration(command) => command.run(threads),
            BenchCommand::Envs(command) => command.run(),
            BenchCommand::Webshop(command) => command.run(),
            BenchCommand::External(command) => command.run(),
        }
    }
}

/// Refuses a shape without tokens or beyond the model's context, before anything is allocated for it.
fn check_shape(batch: usize, len: usize, policy: &LocalPolicy) -> Outcome {
    let max = policy.max_context();
    if batch == 0 || len < 2 || len > max {
        return Err(Failure::input(format!(
            "{batch} sequences of {len} tokens: expected at least 1 sequence of 2 to {max} tokens (the model's context)"
        )));
    }
    if batch.checked_mul(len).is_none_or(|tokens| tokens > 1 << 24) {
        return Err(Failure::input(format!("{batch} sequences of {len} tokens are more than 16 million tokens")));
    }
    Ok(())
}

/// A policy of the model at `path`.
fn policy(path: &str) -> Outcome<LocalPolicy> {
    let mut found = model::load(path, 0)?;
    Ok(model::policy(&mut found.source, Limits::default()))
}

/// Sequences of random tokens; the same every time.
fn random_tokens(batch: usize, len: usize, policy: &LocalPolicy) -> Vec<Vec<u32>> {
    let vocab = policy.model().model().config().vocab_size.max(1) as u64;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    (0..batch).map(|_| (0..len).map(|_| (rng.next_u64() % vocab) as u32).collect()).collect()
}

/// The end of a benchmark: the table, and the peak of memory; as a last line of JSON the peak alone.
fn finish(json: bool, table: &Table) {
    let peak = peak_rss_bytes();
    if json {
        output::json(&json!({ "peak_rss_bytes": peak }));
        return;
    }
    table.print();
    if let Some(bytes) = peak {
        output::line(format_args!("peak memory {:.2} GiB", bytes as f64 / f64::from(1u32 << 30)));
    }
}

/// The largest resident set of this process so far, in bytes; `None` where the system does not tell.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The middle value; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_known_on_linux() {
        if cfg!(target_os = "linux") {
            assert!(peak_rss_bytes().is_some_and(|bytes| bytes > 1 << 20));
        }
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[])), (2.0, 0.0));
    }
}
