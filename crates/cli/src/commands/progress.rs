//! Progress of a run on standard error: a bar with the latest line above it on a terminal, plain lines elsewhere.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ragen_starpo::config::{Config, Logger};
use ragen_starpo::guard::Change;
use ragen_starpo::metrics::Metrics;
use ragen_starpo::trainer::Event;

use crate::output::{self, duration, interval, number, percent};

/// Warm-start steps between lines.
const WARM_START_LINES: u64 = 10;

/// Tells how a run goes.
pub struct RunProgress {
    bar: ProgressBar,
    quiet: bool,
    tags: Vec<String>,
    warm_start_steps: u64,
    iterations: u64,
    started: Instant,
    /// When the first iteration of this process was about to begin, and how many were done then.
    training_since: Option<(Instant, u64)>,
}

impl RunProgress {
    /// Progress of a run with this configuration.
    pub fn new(config: &Config) -> Self {
        let quiet = !config.trainer.logger.contains(&Logger::Console);
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix:>10} {wide_bar} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        let mut tags = config.es_manager.train.env_configs.tags.clone();
        tags.dedup();
        Self {
            bar,
            quiet,
            tags,
            warm_start_steps: if config.warm_start.enabled { config.warm_start.max_steps } else { 0 },
            iterations: config.trainer.total_training_steps,
            started: Instant::now(),
            training_since: None,
        }
    }

    /// Takes note of an event.
    pub fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::WarmStart { step, report } => {
                self.advance("warm start", *step, self.warm_start_steps, String::new());
                if step % WARM_START_LINES == 0 || *step == 1 {
                    self.say(&format!(
                        "warm start {step:>4}/{}  loss {:.3}  grad norm {:.2}",
                        self.warm_start_steps, report.loss, report.grad_norm
                    ));
                }
            }
            Event::WarmStartEvaluated { step, success } => self.say(&format!(
                "warm start {step:>4}/{}  success {} on held-out instances",
                self.warm_start_steps,
                percent(*success)
            )),
            Event::Evaluated { iteration, report } => {
                self.say(&format!(
                    "evaluation {}  success {} ({} at 95 %, n {})  random {}  oracle {}",
                    if *iteration > 0 { format!("after iteration {iteration}") } else { "before training".into() },
                    percent(report.score.success),
                    interval(report.score.ci95),
                    report.score.n,
                    report.baselines.random.map_or("–".into(), |s| percent(s.success)),
                    report.baselines.oracle.map_or("–".into(), |s| percent(s.success)),
                ));
                self.training_since.get_or_insert((Instant::now(), *iteration));
            }
            Event::Guard { iteration, change } => self.guard(*iteration, change),
            Event::Iteration { iteration, metrics } => self.iteration(*iteration, metrics),
        }
    }

    fn guard(&self, iteration: u64, change: &Change) {
        let action = match (change.action, change.only_observed) {
            (None, _) => String::new(),
            (Some(rung), false) => format!("  intervention: {rung}"),
            (Some(rung), true) => format!("  would intervene: {rung} (guard.mode is observe)"),
        };
        self.say(&format!(
            "guard after iteration {iteration}  {} → {}{action}  {}",
            change.from.name(),
            change.to.name(),
            change.reason
        ));
    }

    fn iteration(&mut self, iteration: u64, metrics: &Metrics) {
        let seconds = metrics.get("timing_s/step").unwrap_or(0.0);
        let left = self.iterations.saturating_sub(iteration) as f64;
        let per_iteration = match self.training_since {
            Some((since, done)) if iteration > done => since.elapsed().as_secs_f64() / (iteration - done) as f64,
            _ => seconds,
        };
        self.training_since.get_or_insert((Instant::now(), iteration));
        let remaining = duration(left * per_iteration);
        self.advance("training", iteration, self.iterations, remaining.clone());
        let get = |name: &str| metrics.get(name);
        let success = self.tags.iter().map(|tag| {
            let value = get(&format!("train/{tag}/success")).map_or("–".into(), percent);
            if self.tags.len() > 1 { format!("{tag} {value}") } else { value }
        });
        let success: Vec<String> = success.collect();
        let mut line = format!(
            "iteration {iteration:>4}/{}  return {}  success {}  entropy {}  grad norm {}  tokens/s {} sampled, {} \
             trained",
            self.iterations,
            number(get("train/rollout/return"), 3),
            success.join(", "),
            number(get("actor/entropy"), 3),
            number(get("actor/grad_norm"), 2),
            number(get("perf/generated_tokens_per_s"), 0),
            number(get("perf/trained_tokens_per_s"), 0),
        );
        if get("rollout/empty_after_filter") == Some(1.0) {
            line += "  (no update: in every group all returns are equal)";
        }
        self.say(&format!("{line}  {remaining} left"));
    }

    fn advance(&self, what: &'static str, done: u64, of: u64, message: String) {
        self.bar.update(|state| {
            state.set_len(of);
            state.set_pos(done);
        });
        self.bar.set_prefix(what);
        self.bar.set_message(if message.is_empty() { message } else { format!("{message} left") });
    }

    /// A line of its own, above the bar where there is one.
    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        let line = format!("{:>7.1} s  {text}", self.started.elapsed().as_secs_f64());
        if self.bar.is_hidden() {
            output::note(format_args!("{line}"));
        } else {
            self.bar.println(line);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
