//! Whole iterations of StarPO, split by phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use ragen_starpo::config::Config;
use ragen_starpo::metrics::Metrics;
use ragen_starpo::trainer::{Event, Trainer};
use serde_json::{Value, json};

use super::peak_rss_bytes;
use crate::arguments::{Positional, set_threads};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Table};

/// The phases, by the names of their metrics.
const PHASES: [(&str, &str); 4] = [
    ("rollout", "timing_s/gen"),
    ("advantages", "timing_s/adv"),
    ("critic update", "timing_s/update_critic"),
    ("actor update", "timing_s/update_actor"),
];

/// Iterations of StarPO without a warm start: seconds of each phase.
///
/// All groups are kept, so that an untrained model has an update to do.
#[derive(Args)]
pub struct Iteration {
    /// A built-in task or a YAML file, then overrides section.key=value.
    #[arg(value_name = "TASK|CONFIG.yaml|KEY=VALUE")]
    arguments: Vec<String>,
    /// Iterations.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Print JSON, a line an iteration.
    #[arg(long)]
    json: bool,
}

impl Iteration {
    /// Runs the command.
    pub fn run(self, threads: Option<usize>) -> Outcome {
        let mut arguments = Positional::split(&self.arguments, 1, "a task or a configuration file")?;
        let fixed = [
            "warm_start.enabled=false",
            "trainer.val_before_train=false",
            "trainer.test_freq=-1",
            "trainer.save_freq=-1",
            "trainer.log_rollouts=-1",
            "es_manager.val.env_groups=1",
            "es_manager.val.env_configs.n_groups=null",
            "actor_rollout_ref.rollout.rollout_filter_include_zero=true",
            "actor_rollout_ref.rollout.rollout_filter_strategy=top_p",
            "actor_rollout_ref.rollout.rollout_filter_value=1.0",
            "actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0",
        ];
        let mut overrides: Vec<String> = fixed.map(String::from).to_vec();
        overrides.append(&mut arguments.overrides);
        let mut config = Config::load_unvalidated(arguments.name(0), &overrides)?;
        // One validation instance is enough, of one environment.
        config.es_manager.val.env_configs.tags.truncate(1);
        config.trainer.total_training_steps = self.steps.saturating_add(1);
        config.validate()?;
        set_threads(threads, Some(&config))?;
        let folder = tempfile::tempdir().map_err(|error| Failure::run(format!("cannot make a folder: {error}")))?;
        let stop = Arc::new(AtomicBool::new(self.steps == 0));
        let mut trainer = Trainer::new(config, &folder.path().join("run"), Arc::clone(&stop))?;
        let mut seen: Vec<Metrics> = Vec::new();
        trainer.train(&mut |event| {
            if let Event::Iteration { iteration, metrics } = event {
                seen.push(metrics.clone());
                if iteration >= self.steps {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        })?;
        if self.json {
            seen.iter().for_each(print_json);
            output::json(&json!({ "peak_rss_bytes": peak_rss_bytes() }));
            return Ok(());
        }
        let mut table = Table::default();
        let head = (1..=seen.len()).map(|i| format!("iteration {i}"));
        table.row(std::iter::once("seconds".to_owned()).chain(head));
        let mut row = |name: &str, metric: &str| {
            let cells = seen.iter().map(|m| output::number(m.get(metric), 3));
            table.row(std::iter::once(name.to_owned()).chain(cells));
        };
        for (name, metric) in PHASES {
            row(name, metric);
        }
        row("all", "timing_s/step");
        row("sampled tokens/s", "perf/generated_tokens_per_s");
        row("trained tokens/s", "perf/trained_tokens_per_s");
        table.print();
        Ok(())
    }
}

fn print_json(metrics: &Metrics) {
    let mut out = serde_json::Map::new();
    for (name, metric) in PHASES {
        out.insert(format!("{}_s", name.replace(' ', "_")), json!(metrics.get(metric)));
    }
    out.insert("step_s".into(), json!(metrics.get("timing_s/step")));
    for metric in ["perf/generated_tokens_per_s", "perf/trained_tokens_per_s"] {
        out.insert(metric.trim_start_matches("perf/").into(), json!(metrics.get(metric)));
    }
    output::json(&Value::Object(out));
}
