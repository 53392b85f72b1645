//! StarPO from top to bottom: collect, select, credit, update, watch.
//!
//! What is here: the order of things. What is not here: setting up, the warm start, checkpoints (in the files below this
//! one), and how anything is computed.

mod checkpoint;
mod collecting;
mod report;
mod scoring;
mod set_up;
mod supervised;
mod watching;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ragen_model::tokenizer::Tokenizer;

use crate::chat_dialogue::ChatDialogue;
use crate::config::{AdvEstimator, Config, Verify, is_due};
use crate::context::ContextOptions;
use crate::credit::{self, CreditInputs};
use crate::diagnostics::gradient::gradient_analysis;
use crate::episode::Episode;
use crate::evaluate::Validation;
use crate::filter::Filtered;
use crate::instances::{EnvTag, Group, InstanceKeys};
use crate::local_policy::LocalPolicy;
use crate::metrics::Metrics;
use crate::policy::Sequence;
use crate::progress::Progress;
use crate::rollout::RolloutOptions;
use crate::run_dir::RunDir;
use crate::select::{kept_spreads, needs_entropy, rollout_filter, select, stricter};
use crate::shaping::shape;
use crate::tensorboard::EventWriter;
use crate::tokens::{Rows, max_or_nan};
use crate::update::{Controls, Schedule, TrainingBatch, UpdateReport, update_actor, update_critic};

use collecting::Collected;
pub use report::{EndedEarly, Event, GuardSummary, Observer, RunEnd, SuccessSummary, Summary, TrainError};
pub use set_up::{limits, rollout_options};
use watching::Snapshots;

/// Warm-start instances start this many seeds after those of training, so that the two never meet in a run.
const WARM_START_OFFSET: u64 = 1_000_000;
/// The same for the training instances that the warm start is evaluated on.
const HELD_OUT_OFFSET: u64 = 2_000_000;
/// Keeps the random streams of evaluations apart from those of iterations.
pub const EVAL_STREAM: u64 = 1 << 40;

/// A run of StarPO.
pub struct Trainer {
    config: Config,
    tokenizer: Tokenizer,
    dialogue: ChatDialogue,
    context: ContextOptions,
    policy: LocalPolicy,
    critic: Option<LocalPolicy>,
    reference: Option<LocalPolicy>,
    snapshots: Option<Snapshots>,
    generation_config: Option<serde_json::Value>,
    train_plan: Vec<(EnvTag, usize)>,
    validation: Validation,
    validation_keys: InstanceKeys,
    progress: Progress,
    run: RunDir,
    events: Option<EventWriter>,
    stop: Arc<AtomicBool>,
    started: Instant,
}

impl Trainer {
    /// Runs to the end, or until asked to stop.
    ///
    /// # Errors
    /// [`TrainError`]. What was written before stays and can be resumed.
    pub fn train(&mut self, observe: &mut Observer<'_>) -> Result<RunEnd, TrainError> {
        if !self.progress.warm_start_done && !self.warm_start(observe)? {
            return self.interrupted();
        }
        let total = self.config.trainer.total_training_steps;
        if self.progress.iteration == 0 && self.progress.latest_eval.is_none() && self.config.trainer.val_before_train {
            self.validate(observe)?;
        }
        while self.progress.iteration < total && self.progress.ended_early.is_none() {
            if self.stop.load(Ordering::Relaxed) {
                return self.interrupted();
            }
            self.iteration(observe)?;
            let step = self.progress.iteration;
            let last = |progress: &Progress| if progress.ended_early.is_some() { step } else { total };
            if is_due(self.config.trainer.test_freq, step, last(&self.progress)) {
                self.validate(observe)?;
            }
            if is_due(self.config.trainer.save_freq, step, last(&self.progress)) {
                self.checkpoint()?;
            }
        }
        self.finish(observe)
    }

    /// One iteration.
    fn iteration(&mut self, observe: &mut Observer<'_>) -> Result<(), TrainError> {
        let began = Instant::now();
        let number = self.progress.iteration + 1;
        let mut metrics = Metrics::new();

        // 1. Collect. What is measured here is measured on the batch as it came.
        let mut collected = self.collect_groups(number, &mut metrics)?;
        let solved = collected.episodes.iter().filter(|e| e.outcome.is_success()).count();
        let success = solved as f64 / collected.episodes.len().max(1) as f64;
        if self.config.trainer.verify == Verify::Full {
            let mismatch = self.mismatch(&collected.episodes)?;
            metrics.set("rollout/mismatch_max", mismatch);
            self.progress.mismatch_max = max_or_nan(self.progress.mismatch_max, mismatch);
        }
        self.diagnose(&collected.episodes, number, &mut metrics)?;
        self.replace_silent_groups(&mut collected, number, &mut metrics)?;
        let Collected { groups, episodes } = collected;

        // 2. Select.
        let mut filter = rollout_filter(&self.config)?;
        if self.progress.guard.effects.filter {
            filter = stricter(filter, self.config.guard.filter_factor);
        }
        let entropies = if needs_entropy(&filter) { self.mean_entropies(&episodes)? } else { Vec::new() };
        let filtered = select(&self.config, &filter, &episodes, &entropies)?;
        metrics.extend(filtered.metrics());
        let kept: Vec<&Episode> =
            filtered.kept_rows.iter().map(|&row| &episodes[row]).filter(|e| e.trained.iter().any(|t| *t)).collect();
        self.count_empty(kept.is_empty(), &mut metrics);
        let spread = metrics.get("rollout/in_group_return_std").filter(|_| self.config.trainer.early_stopping);
        let collapsed = !kept.is_empty() && spread.is_some_and(|std| self.progress.early_stop.spread(std));
        if collapsed {
            metrics.set("early_stopped/reward_variance_collapse", 1.0);
            self.progress.ended_early = Some(EndedEarly::SpreadCollapsed);
        } else if !kept.is_empty() {
            // 3. Credit. 4. Update.
            self.learn(&kept, &groups, &filtered, number, &mut metrics)?;
        }

        // 5. Watch.
        self.progress.iteration = number;
        self.guard(number, success, &mut metrics, observe)?;
        let seconds = began.elapsed().as_secs_f64();
        self.progress.seconds += seconds;
        self.progress.collapse.seconds.1 += seconds;
        metrics.set("timing_s/step", seconds);
        let (collapse, all) = self.progress.collapse.seconds;
        metrics.set("collapse/time_share", collapse / all.max(1e-9));
        metrics.set("train/leaked_instances_skipped", self.progress.train_seeds.skipped as f64);
        self.record(number, &metrics)?;
        observe(Event::Iteration { iteration: number, metrics: &metrics });
        Ok(())
    }

    /// Counts iterations in a row of which nothing was kept; too many end the run.
    fn count_empty(&mut self, empty: bool, metrics: &mut Metrics) {
        self.progress.empty_iterations = if empty { self.progress.empty_iterations + 1 } else { 0 };
        let limit = self.config.actor_rollout_ref.rollout.rollout_filter_empty_stop_steps;
        let stop = empty && limit > 0 && self.progress.empty_iterations >= limit;
        metrics.set("rollout/empty_after_filter", f64::from(u8::from(empty)));
        metrics.set("rollout/consecutive_empty_after_filter_steps", self.progress.empty_iterations as f64);
        if stop {
            metrics.set("early_stopped/empty_filtered_steps", 1.0);
            self.progress.ended_early = Some(EndedEarly::NothingToLearnFrom);
        }
    }

    fn learn(
        &mut self,
        kept: &[&Episode],
        groups: &[Group],
        filtered: &Filtered,
        number: u64,
        metrics: &mut Metrics,
    ) -> Result<(), TrainError> {
        let began = Instant::now();
        // Credit goes to episodes, the update goes over their samples: the same tokens in the same order.
        let (mut sequences, mut labels): (Vec<Sequence>, Vec<usize>) = (Vec::new(), Vec::new());
        for episode in kept {
            sequences.extend(episode.to_sequences());
            labels.resize(sequences.len(), episode.group);
        }
        let rows = Rows::from_lengths(kept.iter().map(|e| e.trained_len()));
        let samples = Rows::from_lengths(sequences.iter().map(Sequence::sampled_len));
        let before = self.before(kept, &sequences)?;
        let token_penalty = self.kl_in_reward(&samples, &before.old_log_prob, &before.ref_log_prob, metrics);
        let shaping = shape(&self.config, kept)?;
        metrics.merge("", &shaping.metrics);
        let estimator = self.config.algorithm.adv_estimator;
        let greedy_returns = match estimator {
            AdvEstimator::Remax => self.greedy_returns(kept, groups, number)?,
            _ => Vec::new(),
        };
        let sum_pi_squared = match estimator {
            AdvEstimator::OptimalTokenBaseline => self.sum_pi_squared(&sequences, &before.old_log_prob)?,
            _ => Vec::new(),
        };
        let inputs = CreditInputs {
            episodes: kept,
            rows: &rows,
            samples: &samples,
            values: &before.values,
            token_penalty: &token_penalty,
            shaping: &shaping.per_turn,
            greedy_returns: &greedy_returns,
            log_prob: &before.old_log_prob,
            sum_pi_squared: &sum_pi_squared,
            groups_collected: groups.len(),
        };
        let credit = credit::assign(&self.config, &inputs)?;
        let batch = TrainingBatch {
            sequences,
            rows: samples,
            old_log_prob: before.old_log_prob,
            ref_log_prob: before.ref_log_prob,
            anchor_log_prob: before.anchor_log_prob,
            turns: kept.iter().flat_map(|e| e.turn_of_trained_tokens()).collect(),
            advantages: credit.advantages,
            old_values: before.values,
            value_targets: credit.value_targets,
        };
        metrics.set("train/batch_size", batch.sequences.len() as f64);
        metrics.set("timing_s/adv", began.elapsed().as_secs_f64());
        self.update(&batch, &labels, &kept_spreads(filtered), number, metrics)
    }

    fn update(
        &mut self,
        batch: &TrainingBatch,
        groups: &[usize],
        group_std: &[(usize, f64)],
        number: u64,
        metrics: &mut Metrics,
    ) -> Result<(), TrainError> {
        let total_iterations = self.config.trainer.total_training_steps.max(1);
        let schedule = |done: u64, iteration: u64| Schedule {
            done,
            // Batches vary with the filter: what was done so far tells how many steps the whole run will take.
            total: if iteration > 1 { done * total_iterations / (iteration - 1) } else { u64::MAX },
        };
        if let Some(critic) = &mut self.critic {
            let began = Instant::now();
            let report = update_critic(critic, batch, &self.config, schedule(self.progress.critic_steps, number))?;
            self.progress.critic_steps += report.steps;
            metrics.merge("", &report.metrics);
            metrics.set("timing_s/update_critic", began.elapsed().as_secs_f64());
        }
        if number <= self.config.trainer.critic_warmup {
            return Ok(());
        }
        let seed = self.config.seed.wrapping_add(number);
        let actor = &self.config.actor_rollout_ref.actor;
        let effects = self.progress.guard.effects;
        let controls = Controls {
            lr_scale: effects.lr_scale,
            entropy_coeff: self.progress.entropy.coeff(actor) + effects.entropy_coeff,
            turn_entropy: self.progress.entropy.reference(),
            anchor_coef: effects.anchor_coef,
        };
        if self.config.trainer.gradient_analysis_due(number) {
            let began = Instant::now();
            let (policy, config) = (&mut self.policy, &self.config);
            metrics.merge("", &gradient_analysis(policy, batch, groups, group_std, config, &controls, seed)?);
            metrics.set("timing_s/gradient_analysis", began.elapsed().as_secs_f64());
        }
        let began = Instant::now();
        let schedule = schedule(self.progress.actor_steps, number);
        let report: UpdateReport = update_actor(&mut self.policy, batch, &self.config, &controls, schedule, seed)?;
        self.progress.entropy.update(actor, &report.turn_entropy);
        let seconds = began.elapsed().as_secs_f64();
        self.progress.actor_steps += report.steps;
        self.progress.trained.0 += report.tokens;
        self.progress.trained.1 += seconds;
        self.progress.mismatch_max = max_or_nan(self.progress.mismatch_max, report.mismatch_max);
        metrics.merge("", &report.metrics);
        metrics.set("train/num_mini_batches", report.steps as f64);
        metrics.set("timing_s/update_actor", seconds);
        metrics.set("perf/trained_tokens_per_s", report.tokens as f64 / seconds.max(1e-9));
        Ok(())
    }

    fn rollout_options(&self, validation: bool, iteration: u64) -> RolloutOptions {
        rollout_options(&self.config, validation, iteration)
    }

    /// The run's folder.
    pub fn run_dir(&self) -> &RunDir {
        &self.run
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Iterations done.
    pub fn iterations_done(&self) -> u64 {
        self.progress.iteration
    }

    /// Seconds since this process set the run up.
    pub fn seconds_in_process(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
