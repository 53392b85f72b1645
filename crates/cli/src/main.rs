//! The `ragen` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Parser, Subcommand};
use ragen_starpo::config::Config;
use ragen_starpo::trainer::{Event, RunEnd, Trainer};

#[derive(Parser)]
#[command(name = "ragen", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent.
    Train {
        /// Task or file, then overrides key=value.
        args: Vec<String>,
        /// Run folder.
        #[arg(long)]
        run_dir: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let Command::Train { args, run_dir } = Cli::parse().command;
    let (task, overrides) = match args.first() {
        Some(first) if !first.contains('=') => (Some(first.as_str()), args[1..].to_vec()),
        _ => (None, args.clone()),
    };
    let config = match Config::load(task, &overrides) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let dir = run_dir.unwrap_or_else(|| Path::new(&config.trainer.local_log_dir).join(&config.trainer.experiment_name));
    let start = std::time::Instant::now();
    let result = Trainer::new(config, &dir, Arc::new(AtomicBool::new(false))).and_then(|mut trainer| {
        trainer.train(&mut |event| {
            let t = start.elapsed().as_secs_f64();
            match event {
                Event::WarmStart { step, report } => {
                    if step % 10 == 0 {
                        println!("{t:7.1}s warm {step} loss {:.4} norm {:.2} tokens {}", report.loss, report.grad_norm, report.tokens);
                    }
                }
                Event::WarmStartEvaluated { step, success } => println!("{t:7.1}s warm {step} success {success:.3}"),
                Event::Evaluated { iteration, report } => {
                    println!("{t:7.1}s eval {iteration} success {:.3} {:?}", report.score.success, report.outcomes);
                }
                Event::Iteration { iteration, metrics } => {
                    let g = |k: &str| metrics.get(k).unwrap_or(f64::NAN);
                    println!(
                        "{t:7.1}s it {iteration} succ {:.3} ret {:.2} ent {:.3} gn {:.2} kl {:.4} clip {:.3} kept {:.2} len {:.0} turns {:.2} fmt {:.2} gen {:.1}s ({:.0} t/s) upd {:.1}s ({:.0} t/s) mism {:.1e}",
                        g("train/SimpleSokoban/success"), g("train/rollout/return"), g("actor/entropy"), g("actor/grad_norm"),
                        g("actor/ppo_kl"), g("actor/pg_clipfrac"), g("rollout/filter_kept_ratio"), g("train/rollout/sequence_length"), g("train/rollout/turns"), g("train/rollout/format_valid"),
                        g("timing_s/gen"), g("perf/generated_tokens_per_s"), g("timing_s/update_actor"), g("perf/trained_tokens_per_s"), g("actor/mismatch_max"),
                    );
                }
            }
        })
    });
    match result {
        Ok(RunEnd::Finished(summary)) => {
            println!("{summary:#?}");
            ExitCode::SUCCESS
        }
        Ok(RunEnd::Interrupted { iteration }) => {
            println!("interrupted after {iteration}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.is_input() { 2 } else { 1 })
        }
    }
}
