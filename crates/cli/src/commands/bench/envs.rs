//! Environments under random actions.

use std::time::{Duration, Instant};

use clap::Args;
use ragen_envs::registry::{self, Template};
use ragen_envs::rng::index_below;
use ragen_envs::{EnvError, Environment, Split};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Table};

/// Steps a second of each built-in environment under uniformly random actions, on one core. A step includes its text
/// observation; making new instances is counted apart.
#[derive(Args)]
pub struct Envs {
    /// Tags to measure; default: all that need nothing of the user's.
    #[arg(value_name = "TAG")]
    tags: Vec<String>,
    /// Seconds for each.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    seconds: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What was measured of one environment.
struct Measured {
    template: Template,
    steps: u64,
    episodes: u64,
    /// Time in steps and the choice of actions, and time in resets.
    stepping: Duration,
    resetting: Duration,
}

impl Measured {
    fn steps_per_second(&self) -> f64 {
        rate(self.steps, self.stepping)
    }

    fn with_resets(&self) -> f64 {
        rate(self.steps, self.stepping + self.resetting)
    }
}

fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

impl Envs {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            return Err(Failure::input(format!(
                "--seconds: expected more than 0 and at most 3600, found {}",
                self.seconds
            )));
        }
        let templates: Vec<Template> = if self.tags.is_empty() {
            registry::templates().into_iter().filter(|template| template.needs().is_none()).collect()
        } else {
            self.tags.iter().map(|tag| registry::template(tag)).collect::<Result<_, _>>()?
        };
        let mut results = Vec::new();
        for template in templates {
            results.push(measure(template, Duration::from_secs_f64(self.seconds))?);
        }
        if self.json {
            let list = results.iter().map(|m| {
                json!({
                    "tag": m.template.tag,
                    "env_type": m.template.env_type,
                    "steps": m.steps,
                    "episodes": m.episodes,
                    "steps_per_second": m.steps_per_second(),
                    "resets_per_second": rate(m.episodes, m.resetting),
                    "steps_per_second_with_resets": m.with_resets(),
                })
            });
            output::json(&list.collect());
            return Ok(());
        }
        let mut table = Table::new(&["tag", "steps/s", "resets/s", "steps/s with resets"]);
        for m in &results {
            table.row([
                m.template.tag.to_owned(),
                format!("{:.0}", m.steps_per_second()),
                format!("{:.0}", rate(m.episodes, m.resetting)),
                format!("{:.0}", m.with_resets()),
            ]);
        }
        table.print();
        Ok(())
    }
}

/// Plays random episodes, on this thread, until the time is up.
fn measure(template: Template, time: Duration) -> Outcome<Measured> {
    let mut env = registry::make(template.env_type, &template.env_config)?;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut measured =
        Measured { template, steps: 0, episodes: 0, stepping: Duration::ZERO, resetting: Duration::ZERO };
    // The first episode fills tables and caches.
    play(&mut *env, &mut measured, &mut rng)?;
    (measured.steps, measured.episodes) = (0, 0);
    (measured.stepping, measured.resetting) = (Duration::ZERO, Duration::ZERO);
    while measured.stepping + measured.resetting < time {
        play(&mut *env, &mut measured, &mut rng)?;
    }
    Ok(measured)
}

fn play(env: &mut dyn Environment, measured: &mut Measured, rng: &mut ChaCha8Rng) -> Result<(), EnvError> {
    let start = Instant::now();
    env.reset(10_000 + measured.episodes, Split::Train)?;
    measured.episodes += 1;
    let reset = Instant::now();
    measured.resetting += reset - start;
    // Where the actions are always the same, one is picked as from Gymnasium's action space.
    let fixed = env.spec().actions.clone();
    for _ in 0..measured.template.max_actions_per_traj {
        let step = if fixed.is_empty() {
            match env.sample_action(rng) {
                Some(action) => env.step(&action)?,
                None => break,
            }
        } else {
            env.step(&fixed[index_below(rng, fixed.len())])?
        };
        measured.steps += 1;
        if step.terminated || step.truncated {
            break;
        }
    }
    measured.stepping += reset.elapsed();
    Ok(())
}
