//! The `ragen` command: reads arguments, calls the libraries, prints. It computes nothing itself.
//!
//! A binary of one's own that registers environments and then calls [`main`] is the same command with these
//! environments in it: see `examples/custom_env.rs` and `ragen new-env`.
//!
//! Exit status: 0 done (also: interrupted in good order), 1 failed while running, 2 wrong input. An error is one
//! paragraph on standard error that begins with `error: `.

mod arguments;
mod commands;
mod failure;
mod model;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::{Failure, Outcome};

/// Train language-model agents with multi-turn reinforcement learning, on one machine.
///
/// Begin with `ragen train`: it needs no download, warms a tiny model up on 6×6 Sokoban and then lets it learn from its
/// own attempts. Settings are `section.key=value`, as in `ragen train bandit trainer.total_training_steps=20`.
#[derive(Parser)]
#[command(name = "ragen", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    /// Threads for numerics; 0: one per core. Never changes a result. Also the setting `trainer.threads`.
    #[arg(long, global = true, value_name = "N", display_order = 900)]
    threads: Option<usize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(commands::train::Train),
    WarmStart(commands::warm_start::WarmStart),
    Eval(commands::eval::Eval),
    Play(commands::play::Play),
    Generate(commands::generate::Generate),
    Score(commands::score::Score),
    Envs(commands::envs::Envs),
    NewEnv(commands::new_env::NewEnv),
    Export(commands::export::Export),
    Study(commands::study::Study),
    Tokenizer(commands::tokenizer::Tokenizer),
    Bench(commands::bench::Bench),
}

fn run() -> Outcome {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version come here as well; clap knows which stream and which status each has.
        Err(error) => error.exit(),
    };
    let threads = cli.threads;
    match cli.command {
        // These read a configuration, which may say how many threads.
        Command::Train(command) => command.run(threads),
        Command::WarmStart(command) => command.run(threads),
        Command::Eval(command) => command.run(threads),
        Command::Play(command) => command.run(threads),
        Command::Bench(command) => command.run(threads),
        // Computes nothing itself: its runs have threads of their own.
        Command::Study(command) => command.run(),
        other => {
            arguments::set_threads(threads, None)?;
            match other {
                Command::Generate(command) => command.run(),
                Command::Score(command) => command.run(),
                Command::Envs(command) => command.run(),
                Command::NewEnv(command) => command.run(),
                Command::Export(command) => command.run(),
                Command::Tokenizer(command) => command.run(),
                _ => Ok(()),
            }
        }
    }
}

/// The command with the arguments of this process.
pub fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .init();
    let panics = failure::catch_panics();
    let outcome = std::panic::catch_unwind(run);
    // Environments in other processes end with this one in good order.
    ragen_envs::external::shut_down();
    let failure = match outcome {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::run(panics.describe()),
    };
    output::note(format_args!("error: {}", failure.paragraph()));
    ExitCode::from(failure.status())
}
