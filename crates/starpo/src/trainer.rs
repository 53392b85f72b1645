//! StarPO from top to bottom: collect, select, credit, update, watch.
//!
//! What is here: the order of things. What is not here: setting up, the warm start, checkpoints (in the files below this
//! one), and how anything is computed.

mod checkpoint;
mod report;
mod set_up;
mod supervised;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ragen_model::tokenizer::Tokenizer;

use crate::chat_dialogue::ChatDialogue;
use crate::config::{AdvEstimator, Config, Verify, is_due};
use crate::context::ContextOptions;
use crate::credit::{self, CreditInputs};
use crate::episode::Episode;
use crate::evaluate::evaluate;
use crate::instances::{EnvTag, Group, InstanceKeys};
use crate::kl::KlController;
use crate::local_policy::LocalPolicy;
use crate::metrics::Metrics;
use crate::policy::{Policy, Sequence};
use crate::progress::Progress;
use crate::rollout::{RolloutOptions, collect};
use crate::rollout_log::write_rollouts;
use crate::rollout_metrics::batch_metrics;
use crate::run_dir::RunDir;
use crate::select::{needs_entropy, rollout_filter, select};
use crate::shaping::shape;
use crate::tensorboard::EventWriter;
use crate::tokens::Rows;
use crate::update::{Schedule, TrainingBatch, UpdateReport, kl_penalty, update_actor, update_critic};

pub use report::{Event, Observer, RunEnd, SuccessSummary, Summary, TrainError};
pub use set_up::{limits, rollout_options};

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
    generation_config: Option<serde_json::Value>,
    train_plan: Vec<(EnvTag, usize)>,
    validation: Vec<Group>,
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
        while self.progress.iteration < total {
            if self.stop.load(Ordering::Relaxed) {
                return self.interrupted();
            }
            let stop_early = self.iteration(observe)?;
            let step = self.progress.iteration;
            let last = if stop_early { step } else { total };
            if is_due(self.config.trainer.test_freq, step, last) {
                self.validate(observe)?;
            }
            if is_due(self.config.trainer.save_freq, step, last) {
                self.checkpoint()?;
            }
            if stop_early {
                break;
            }
        }
        self.finish(observe)
    }

    /// One iteration. True: the run should end here.
    fn iteration(&mut self, observe: &mut Observer<'_>) -> Result<bool, TrainError> {
        let began = Instant::now();
        let number = self.progress.iteration + 1;
        let mut metrics = Metrics::new();

        // 1. Collect.
        let groups = self.progress.train_seeds.next_groups(&self.train_plan, &self.validation_keys);
        let options = self.rollout_options(false, number);
        let episodes = collect(&mut self.policy, &self.dialogue, &self.context, &groups, &options)?;
        let gen_seconds = began.elapsed().as_secs_f64();
        let sampled: u64 = episodes.iter().map(|e| e.response_length() as u64).sum();
        self.progress.generated.0 += sampled;
        self.progress.generated.1 += gen_seconds;
        for (name, value) in batch_metrics(&episodes) {
            metrics.set(format!("train/{name}"), value);
        }
        if self.config.trainer.log_rollouts > 0 && number.is_multiple_of(self.config.trainer.log_rollouts as u64) {
            write_rollouts(&self.run.rollouts_dir(), "train", number, &episodes)?;
        }

        if self.config.trainer.verify == Verify::Full {
            let mismatch = self.mismatch(&episodes)?;
            metrics.set("rollout/mismatch_max", mismatch);
            self.progress.mismatch_max = self.progress.mismatch_max.max(mismatch);
        }

        // 2. Select.
        let filter = rollout_filter(&self.config)?;
        let entropies = if needs_entropy(&filter) { self.mean_entropies(&episodes)? } else { Vec::new() };
        let filtered = select(&self.config, &filter, &episodes, &entropies)?;
        for (name, value) in filtered.metrics() {
            metrics.set(name, value);
        }
        let kept: Vec<&Episode> =
            filtered.kept_rows.iter().map(|&row| &episodes[row]).filter(|e| e.trained.iter().any(|t| *t)).collect();
        metrics.set("rollout/empty_after_filter", f64::from(u8::from(kept.is_empty())));

        let mut stop_early = false;
        if kept.is_empty() {
            self.progress.empty_iterations += 1;
            let limit = self.config.actor_rollout_ref.rollout.rollout_filter_empty_stop_steps;
            stop_early = limit > 0 && self.progress.empty_iterations >= limit;
            if stop_early {
                metrics.set("early_stopped/empty_filtered_steps", 1.0);
            }
        } else {
            self.progress.empty_iterations = 0;
            // 3. Credit. 4. Update.
            self.learn(&kept, &groups, number, &mut metrics)?;
        }
        metrics.set("rollout/consecutive_empty_after_filter_steps", self.progress.empty_iterations as f64);

        // 5. Watch.
        self.progress.iteration = number;
        let seconds = began.elapsed().as_secs_f64();
        self.progress.seconds += seconds;
        metrics.set("timing_s/gen", gen_seconds);
        metrics.set("timing_s/step", seconds);
        metrics.set("perf/generated_tokens_per_s", sampled as f64 / gen_seconds.max(1e-9));
        metrics.set("train/leaked_instances_skipped", self.progress.train_seeds.skipped as f64);
        self.record(number, &metrics)?;
        observe(Event::Iteration { iteration: number, metrics: &metrics });
        Ok(stop_early)
    }

    fn learn(
        &mut self,
        kept: &[&Episode],
        groups: &[Group],
        number: u64,
        metrics: &mut Metrics,
    ) -> Result<(), TrainError> {
        let began = Instant::now();
        let sequences: Vec<Sequence> = kept.iter().map(|e| e.to_sequence()).collect();
        let rows = Rows::from_lengths(sequences.iter().map(Sequence::sampled_len));
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let wide = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<f64>>();
        let old_log_prob = if self.config.compat.train_template_tokens {
            // Nobody sampled the template's tokens, so nothing was recorded for them.
            wide(self.policy.score(&sequences, temperature)?.log_prob)
        } else {
            kept.iter().flat_map(|e| e.log_probs.iter().map(|l| f64::from(*l))).collect()
        };
        let ref_log_prob = match &mut self.reference {
            Some(reference) => wide(reference.score(&sequences, temperature)?.log_prob),
            None => Vec::new(),
        };
        let old_values = match &mut self.critic {
            Some(critic) => wide(critic.score(&sequences, 1.0)?.value),
            None => Vec::new(),
        };
        let token_penalty = self.kl_in_reward(&rows, &old_log_prob, &ref_log_prob, metrics);
        let shaping = shape(&self.config, kept)?;
        metrics.merge("", &shaping.metrics);
        let estimator = self.config.algorithm.adv_estimator;
        let greedy_returns = match estimator {
            AdvEstimator::Remax => self.greedy_returns(kept, groups, number)?,
            _ => Vec::new(),
        };
        let sum_pi_squared = match estimator {
            AdvEstimator::OptimalTokenBaseline => self.sum_pi_squared(&sequences, &old_log_prob)?,
            _ => Vec::new(),
        };
        let inputs = CreditInputs {
            episodes: kept,
            rows: &rows,
            values: &old_values,
            token_penalty: &token_penalty,
            shaping: &shaping.per_turn,
            greedy_returns: &greedy_returns,
            log_prob: &old_log_prob,
            sum_pi_squared: &sum_pi_squared,
            groups_collected: groups.len(),
        };
        let credit = credit::assign(&self.config, &inputs)?;
        let batch = TrainingBatch {
            sequences,
            rows,
            old_log_prob,
            ref_log_prob,
            advantages: credit.advantages,
            old_values,
            value_targets: credit.value_targets,
        };
        metrics.set("train/batch_size", batch.sequences.len() as f64);
        metrics.set("timing_s/adv", began.elapsed().as_secs_f64());
        self.update(&batch, number, metrics)
    }

    fn update(&mut self, batch: &TrainingBatch, number: u64, metrics: &mut Metrics) -> Result<(), TrainError> {
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
        let began = Instant::now();
        let schedule = schedule(self.progress.actor_steps, number);
        let seed = self.config.seed.wrapping_add(number);
        let report: UpdateReport = update_actor(&mut self.policy, batch, &self.config, schedule, seed)?;
        let seconds = began.elapsed().as_secs_f64();
        self.progress.actor_steps += report.steps;
        self.progress.trained.0 += report.tokens;
        self.progress.trained.1 += seconds;
        self.progress.mismatch_max = self.progress.mismatch_max.max(report.mismatch_max);
        metrics.merge("", &report.metrics);
        metrics.set("train/num_mini_batches", report.steps as f64);
        metrics.set("timing_s/update_actor", seconds);
        metrics.set("perf/trained_tokens_per_s", report.tokens as f64 / seconds.max(1e-9));
        Ok(())
    }

    /// The KL penalty of each token, by the present coefficient, which is then moved.
    fn kl_in_reward(&mut self, rows: &Rows, log_prob: &[f64], reference: &[f64], metrics: &mut Metrics) -> Vec<f64> {
        let algorithm = &self.config.algorithm;
        if !algorithm.use_kl_in_reward || reference.is_empty() {
            return Vec::new();
        }
        let penalty = kl_penalty(algorithm.kl_penalty);
        let kl: Vec<f64> = log_prob.iter().zip(reference).map(|(l, r)| penalty.value(*l, *r)).collect();
        let mean = kl.iter().sum::<f64>() / kl.len().max(1) as f64;
        let coef = self.progress.kl_coef;
        metrics.set("actor/reward_kl_penalty", mean);
        metrics.set("actor/reward_kl_penalty_coeff", coef);
        if algorithm.kl_ctrl.kind == crate::config::KlCtrlType::Adaptive {
            let (target, horizon) = (algorithm.kl_ctrl.target_kl, algorithm.kl_ctrl.horizon);
            let mut controller = KlController::Adaptive { coef, target, horizon };
            controller.update(mean, rows.len());
            self.progress.kl_coef = controller.coef();
        }
        kl.into_iter().map(|k| coef * k).collect()
    }

    /// ReMax: what a greedy episode on the instance of each kept episode brings.
    fn greedy_returns(&mut self, kept: &[&Episode], groups: &[Group], number: u64) -> Result<Vec<f64>, TrainError> {
        let labels: BTreeSet<usize> = kept.iter().map(|e| e.group).collect();
        let instances: Vec<Group> = labels.iter().map(|label| groups[*label].clone()).collect();
        let options = RolloutOptions { group_size: 1, temperature: 0.0, ..self.rollout_options(false, number) };
        let episodes = collect(&mut self.policy, &self.dialogue, &self.context, &instances, &options)?;
        let returns: BTreeMap<usize, f64> =
            labels.into_iter().zip(episodes.iter().map(Episode::total_return)).collect();
        Ok(kept.iter().map(|e| returns.get(&e.group).copied().unwrap_or(0.0)).collect())
    }

    /// Σ π² of the distribution each sampled token was drawn from. Twice the log-probability at temperature T less the
    /// one at T/2 is log Z(T/2) − 2 log Z(T), which is its logarithm: logits are not needed.
    fn sum_pi_squared(&mut self, sequences: &[Sequence], log_prob: &[f64]) -> Result<Vec<f64>, TrainError> {
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let half = self.policy.score(sequences, 0.5 * temperature)?.log_prob;
        Ok(log_prob.iter().zip(half).map(|(l, h)| (2.0 * l - f64::from(h)).exp().min(1.0)).collect())
    }

    /// Largest difference between what was recorded while sampling and what scoring the whole episodes gives; NaN where
    /// either is one.
    fn mismatch(&mut self, episodes: &[Episode]) -> Result<f64, TrainError> {
        let played: Vec<&Episode> = episodes.iter().filter(|e| !e.log_probs.is_empty()).collect();
        let sequences: Vec<Sequence> = played.iter().map(|e| e.to_sequence()).collect();
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let scores = self.policy.score(&sequences, temperature)?;
        let recorded = played.iter().flat_map(|e| &e.log_probs);
        let differences = recorded.zip(&scores.log_prob).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
        Ok(differences.fold(0.0, |max, d| if d > max || d.is_nan() { d } else { max }))
    }

    /// Mean token entropy of each episode under the present policy.
    fn mean_entropies(&mut self, episodes: &[Episode]) -> Result<Vec<f64>, TrainError> {
        let sequences: Vec<Sequence> = episodes.iter().map(Episode::to_sequence).collect();
        let rows = Rows::from_lengths(sequences.iter().map(Sequence::sampled_len));
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let scores = self.policy.score(&sequences, temperature)?;
        let entropy: Vec<f64> = scores.entropy.iter().map(|h| f64::from(*h)).collect();
        Ok(rows.ranges().map(|r| crate::tokens::mean(&entropy[r])).collect())
    }

    fn rollout_options(&self, validation: bool, iteration: u64) -> RolloutOptions {
        rollout_options(&self.config, validation, iteration)
    }

    fn validate(&mut self, observe: &mut Observer<'_>) -> Result<(), TrainError> {
        let began = Instant::now();
        let iteration = self.progress.iteration;
        // The same streams every time: evaluations differ by the weights alone.
        let options = self.rollout_options(true, EVAL_STREAM);
        let (policy, groups) = (&mut self.policy, &self.validation);
        let floor_and_ceiling = self.progress.baselines;
        let (report, episodes) = evaluate(policy, &self.dialogue, &self.context, groups, &options, floor_and_ceiling)?;
        write_rollouts(&self.run.rollouts_dir(), "val", iteration, &episodes)?;
        let mut metrics = Metrics::new();
        for (name, value) in &report.metrics {
            metrics.set(format!("val-env/{name}"), *value);
        }
        metrics.set("val/success", report.score.success);
        metrics.set("timing_s/testing", began.elapsed().as_secs_f64());
        self.record(iteration, &metrics)?;
        self.progress.seconds += began.elapsed().as_secs_f64();
        observe(Event::Evaluated { iteration, report: &report });
        self.progress.latest_eval = Some(report);
        Ok(())
    }

    fn record(&mut self, step: u64, metrics: &Metrics) -> Result<(), TrainError> {
        self.run.append_metrics(step, metrics)?;
        if let Some(events) = &mut self.events {
            events.write(step, metrics)?;
        }
        Ok(())
    }

    /// The run's folder.
    pub fn run_dir(&self) -> &RunDir {
        &self.run
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Seconds since this process set the run up.
    pub fn seconds_in_process(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
