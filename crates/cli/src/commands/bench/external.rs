//! What a step costs more in another process than in this one.

use std::time::Instant;

use clap::Args;
use ragen_envs::baseline::random_action;
use ragen_envs::external::{self, ExternalConfig};
use ragen_envs::{Environment, Split, registry};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::json;

use super::median;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Steps of an environment in another process beside those of the same environment in this one: the overhead of the
/// protocol.
///
/// Without --command the other process is this program (`ragen envs serve TAG --stdio`), so that the difference is the
/// protocol and nothing else. With it the process's own time is in the difference too.
#[derive(Args)]
#[command(after_help = "Examples:\n  ragen bench external\n  ragen bench external --command \"python3 -m ragen_env \
ragen_env.examples.frozen_lake:FrozenLake\"")]
pub struct External {
    /// The environment, by its tag.
    #[arg(long, value_name = "ENV-TAG", default_value = "FrozenLake")]
    tag: String,
    /// The program to compare with, its arguments separated by blanks.
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Steps to take.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    steps: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Microseconds of resets and steps.
struct Times {
    resets: Vec<f64>,
    steps: Vec<f64>,
}

impl External {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let template = registry::template(&self.tag)?;
        let budget = template.max_actions_per_traj;
        let mut near = registry::make(template.env_type, &template.env_config)?;
        let command = match &self.command {
            Some(command) => command.split_whitespace().map(str::to_owned).collect(),
            None => {
                let program = std::env::current_exe()
                    .map_err(|error| Failure::run(format!("this program's own path is not known: {error}")))?;
                let program = program.to_string_lossy().into_owned();
                [program.as_str(), "envs", "serve", self.tag.as_str(), "--stdio"].map(str::to_owned).to_vec()
            }
        };
        let mut far = external::External::new(&ExternalConfig { command, processes: 1, ..ExternalConfig::default() })?;
        let here = measure(&mut *near, self.steps, budget)?;
        let there = measure(&mut far, self.steps, budget)?;
        drop(far);
        external::shut_down();
        let overhead = median(&there.steps) - median(&here.steps);
        if self.json {
            output::json(&json!({
                "tag": self.tag, "steps": self.steps,
                "in_process_step_us": median(&here.steps), "external_step_us": median(&there.steps),
                "external_step_p99_us": quantile(&there.steps, 0.99),
                "in_process_reset_us": median(&here.resets), "external_reset_us": median(&there.resets),
                "overhead_per_step_ms": overhead / 1000.0,
            }));
            return Ok(());
        }
        output::line(format_args!(
            "a step of {}: {:.1} µs here, {:.1} µs in the other process (99th percentile {:.1} µs)",
            self.tag,
            median(&here.steps),
            median(&there.steps),
            quantile(&there.steps, 0.99)
        ));
        output::line(format_args!(
            "a reset: {:.1} µs here, {:.1} µs there; overhead per step {:.4} ms",
            median(&here.resets),
            median(&there.resets),
            overhead / 1000.0
        ));
        Ok(())
    }
}

fn measure(env: &mut dyn Environment, steps: usize, budget: usize) -> Outcome<Times> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut times = Times { resets: Vec::new(), steps: Vec::with_capacity(steps) };
    let mut seed = 0;
    while times.steps.len() < steps {
        let start = Instant::now();
        env.reset(seed, Split::Train)?;
        times.resets.push(start.elapsed().as_secs_f64() * 1e6);
        seed += 1;
        for _ in 0..budget {
            let Some(action) = random_action(env, &mut rng) else {
                return Err(Failure::input("actions of this environment are free text; name another with --tag"));
            };
            let start = Instant::now();
            let step = env.step(&action)?;
            times.steps.push(start.elapsed().as_secs_f64() * 1e6);
            if step.terminated || step.truncated {
                break;
            }
        }
    }
    Ok(times)
}

/// The value that this share of the values does not exceed; 0 of none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let i = (share * sorted.len() as f64) as usize;
    sorted.get(i.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
