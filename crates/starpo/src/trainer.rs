//! StarPO from top to bottom: collect, select, credit, update, watch.
//!
//! What is here: the order of things, the run folder, checkpoints. What is not here: how anything is computed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ragen_model::tokenizer::Tokenizer;
use ragen_model::trainable::{Checkpointing, Limits, Trainable};
use ragen_model::transformer::Transformer;
use ragen_model::weights::save::{SaveType, save_model};
use serde::Serialize;

use crate::agent::{AgentError, ModelSource, context_options, group_plan};
use crate::chat_dialogue::ChatDialogue;
use crate::config::{ActivationCheckpointing, Config, Logger, is_due};
use crate::context::ContextOptions;
use crate::credit::{self, CreditInputs};
use crate::episode::Episode;
use crate::evaluate::{BaselineOptions, EvalReport, baselines, evaluate};
use crate::instances::{EnvTag, Group, InstanceKeys, SeedCounter, validation_groups};
use crate::kl::KlController;
use crate::local_policy::LocalPolicy;
use crate::metrics::Metrics;
use crate::policy::{Policy, PolicyError, Sequence};
use crate::progress::Progress;
use crate::rollout::{RolloutError, RolloutOptions, collect};
use crate::rollout_log::write_rollouts;
use crate::rollout_metrics::batch_metrics;
use crate::run_dir::RunDir;
use crate::select::{needs_entropy, rollout_filter, select};
use crate::tensorboard::EventWriter;
use crate::tokens::Rows;
use crate::update::{Schedule, TrainingBatch, UpdateReport, kl_penalty, update_actor, update_critic};
use crate::warm_start::{WarmStartReport, warm_start_step};

/// Warm-start instances start this many seeds after those of training, so that the two never meet in a run.
const WARM_START_OFFSET: u64 = 1_000_000;
/// The same for the training instances that the warm start is evaluated on.
const HELD_OUT_OFFSET: u64 = 2_000_000;
/// Keeps the random streams of evaluations apart from those of iterations.
pub const EVAL_STREAM: u64 = 1 << 40;

/// Why a run ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The model or an environment cannot be set up.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The chat template cannot be used.
    #[error(transparent)]
    Chat(#[from] ragen_model::chat::ChatError),
    /// A rollout failed as a whole.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// An estimator refused the batch.
    #[error(transparent)]
    Advantage(#[from] crate::advantage::AdvantageError),
    /// The filter refused the batch.
    #[error(transparent)]
    Filter(#[from] crate::filter::FilterError),
    /// The update failed.
    #[error(transparent)]
    Update(#[from] crate::update::UpdateError),
    /// The warm start failed.
    #[error(transparent)]
    WarmStart(#[from] crate::warm_start::WarmStartError),
    /// Behind the seam.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The run folder.
    #[error(transparent)]
    RunDir(#[from] crate::run_dir::RunDirError),
    /// A rollout file.
    #[error(transparent)]
    RolloutLog(#[from] crate::rollout_log::RolloutLogError),
    /// The event file.
    #[error(transparent)]
    Events(#[from] crate::tensorboard::EventError),
    /// A checkpoint cannot be read.
    #[error("cannot resume from {0}")]
    Resume(String),
}

impl TrainError {
    /// The user's input is at fault (as opposed to something that went wrong while running).
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Chat(_))
    }
}

/// What a run tells whoever watches it.
pub enum Event<'a> {
    /// A warm-start step is done.
    WarmStart {
        /// Steps done.
        step: u64,
        /// Its numbers.
        report: WarmStartReport,
    },
    /// An evaluation on the validation instances is done.
    Evaluated {
        /// Iterations done.
        iteration: u64,
        /// Its result.
        report: &'a EvalReport,
    },
    /// The warm start was evaluated on held-out training instances.
    WarmStartEvaluated {
        /// Steps done.
        step: u64,
        /// Success rate.
        success: f64,
    },
    /// An iteration is done.
    Iteration {
        /// Its number, from 1.
        iteration: u64,
        /// Its metrics.
        metrics: &'a Metrics,
    },
}

/// Watches a run.
pub type Observer<'a> = dyn FnMut(Event<'_>) + 'a;

/// How a run went.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Iterations done.
    pub iterations: u64,
    /// Wall-clock seconds, over all sessions of a resumed run.
    pub seconds: f64,
    /// Sampled tokens per second of rollout.
    pub generated_tokens_per_second: f64,
    /// Tokens per second of update, given ones included.
    pub trained_tokens_per_second: f64,
    /// Success rates on the validation instances.
    pub success: SuccessSummary,
    /// Largest difference between a recorded and a recomputed log-probability.
    pub mismatch_max: f64,
    /// SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Warm-start steps taken.
    pub warm_start_steps: u64,
    /// Training instances skipped because a validation instance has the same board.
    pub leaked_instances_skipped: u64,
}

/// Success rates with their floor and ceiling.
#[derive(Clone, Debug, Serialize)]
pub struct SuccessSummary {
    /// After the warm start; `null` without one.
    pub warm_start: Option<f64>,
    /// At the end.
    pub r#final: f64,
    /// Uniformly random actions.
    pub random: Option<f64>,
    /// The oracle.
    pub oracle: Option<f64>,
    /// Validation episodes.
    pub n: usize,
    /// 95 % interval of `final` (Wilson).
    pub ci95: [f64; 2],
}

/// Whether a run came to its end or was asked to stop.
#[derive(Clone, Debug)]
pub enum RunEnd {
    /// All iterations are done.
    Finished(Box<Summary>),
    /// It was interrupted and can be resumed.
    Interrupted {
        /// Iterations done.
        iteration: u64,
    },
}

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
    /// Sets a run up in a fresh folder. `stop` asks it to end after the present step.
    ///
    /// # Errors
    /// [`TrainError`]; nothing has been computed then.
    pub fn new(config: Config, run_dir: &Path, stop: Arc<AtomicBool>) -> Result<Self, TrainError> {
        let parts = Parts::load(&config)?;
        let run = RunDir::create(run_dir, &config)?;
        Self::assemble(config, parts, run, stop)
    }

    /// Goes on with the run in `run_dir` from its latest checkpoint. `config` is what the run was started with, with
    /// any later overrides applied.
    ///
    /// # Errors
    /// [`TrainError`].
    pub fn resume(config: Config, run_dir: &Path, stop: Arc<AtomicBool>) -> Result<Self, TrainError> {
        let parts = Parts::load(&config)?;
        let run = RunDir::open(run_dir)?;
        let checkpoint = run.latest_checkpoint()?;
        let mut trainer = Self::assemble(config, parts, run, stop)?;
        let Some(checkpoint) = checkpoint else {
            trainer.run.write_config(&trainer.config)?;
            trainer.run.rewind(0)?;
            return Ok(trainer);
        };
        let broken = |e: &dyn std::fmt::Display| TrainError::Resume(format!("{}: {e}", checkpoint.path.display()));
        trainer.progress = Progress::load(&checkpoint.path).map_err(|e| broken(&e))?;
        trainer.policy.load(&checkpoint.path.join("actor")).map_err(|e| broken(&e))?;
        if let Some(critic) = &mut trainer.critic {
            critic.load(&checkpoint.path.join("critic")).map_err(|e| broken(&e))?;
        }
        if let Some(reference) = &mut trainer.reference {
            reference.load(&checkpoint.path.join("ref")).map_err(|e| broken(&e))?;
        }
        // Only now is it certain that the checkpoint and this configuration fit together.
        trainer.run.write_config(&trainer.config)?;
        trainer.run.rewind(checkpoint.step)?;
        Ok(trainer)
    }

    fn assemble(config: Config, parts: Parts, run: RunDir, stop: Arc<AtomicBool>) -> Result<Self, TrainError> {
        let progress = Progress {
            warm_start_steps: 0,
            warm_start_done: !config.warm_start.enabled,
            iteration: 0,
            actor_steps: 0,
            critic_steps: 0,
            train_seeds: SeedCounter::new(config.es_manager.train.seed),
            warm_start_seeds: SeedCounter::new(config.es_manager.train.seed.wrapping_add(WARM_START_OFFSET)),
            kl_coef: config.algorithm.kl_ctrl.kl_coef,
            empty_iterations: 0,
            warm_start_eval: None,
            latest_eval: None,
            baselines: parts.baselines,
            seconds: 0.0,
            generated: (0, 0.0),
            trained: (0, 0.0),
            mismatch_max: 0.0,
        };
        let events = if config.trainer.logger.contains(&Logger::Tensorboard) {
            Some(EventWriter::create(&run.tensorboard_dir())?)
        } else {
            None
        };
        Ok(Self {
            context: context_options(&config),
            tokenizer: parts.tokenizer,
            dialogue: parts.dialogue,
            policy: parts.policy,
            critic: parts.critic,
            reference: parts.reference,
            generation_config: parts.generation_config,
            train_plan: parts.train_plan,
            validation: parts.validation,
            validation_keys: parts.validation_keys,
            progress,
            run,
            events,
            stop,
            started: Instant::now(),
            config,
        })
    }

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

    /// Supervised steps until the target or the limit. False: asked to stop.
    fn warm_start(&mut self, observe: &mut Observer<'_>) -> Result<bool, TrainError> {
        let setting = self.config.warm_start.clone();
        let held_out = self.held_out_groups(setting.eval_instances);
        while self.progress.warm_start_steps < setting.max_steps {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let began = Instant::now();
            let step = self.progress.warm_start_steps;
            let tags: Vec<&EnvTag> = self.train_plan.iter().map(|(tag, _)| tag).collect();
            let report = warm_start_step(
                &mut self.policy,
                &self.dialogue,
                &self.context,
                &tags,
                &mut self.progress.warm_start_seeds,
                &self.validation_keys,
                &self.config,
                step,
            )?;
            let step = step + 1;
            self.progress.warm_start_steps = step;
            observe(Event::WarmStart { step, report });
            let mut reached = false;
            if setting.target_success < 1.0 && step.is_multiple_of(setting.eval_every) {
                let options = self.rollout_options(true, EVAL_STREAM + (1 << 20) + step);
                let episodes = collect(&mut self.policy, &self.dialogue, &self.context, &held_out, &options)?;
                let solved = episodes.iter().filter(|e| e.outcome.is_success()).count();
                let success = solved as f64 / episodes.len().max(1) as f64;
                observe(Event::WarmStartEvaluated { step, success });
                reached = success >= setting.target_success;
            }
            self.progress.seconds += began.elapsed().as_secs_f64();
            if reached {
                break;
            }
        }
        self.progress.warm_start_done = true;
        // Reinforcement learning starts with moments of its own gradients.
        self.policy.model_mut().reset_optimizer();
        if let Some(reference) = &mut self.reference {
            reference.model_mut().set_params(self.policy.model().params());
        }
        if let Some(critic) = &mut self.critic {
            // The critic's body starts from what the policy has learned to see.
            let mut params = critic.model().params().to_vec();
            let body = self.policy.model().params();
            params[..body.len()].copy_from_slice(body);
            critic.model_mut().set_params(&params);
        }
        self.validate(observe)?;
        self.progress.warm_start_eval = self.progress.latest_eval.clone();
        self.checkpoint()?;
        Ok(true)
    }

    /// Training instances that neither the warm start nor training plays.
    fn held_out_groups(&self, n: usize) -> Vec<Group> {
        let mut seeds = SeedCounter::new(self.config.es_manager.train.seed.wrapping_add(HELD_OUT_OFFSET));
        let tags = self.train_plan.len().max(1);
        let plan: Vec<(EnvTag, usize)> = self
            .train_plan
            .iter()
            .enumerate()
            .map(|(i, (tag, _))| (tag.clone(), n / tags + usize::from(i < n % tags)))
            .collect();
        seeds.next_groups(&plan, &self.validation_keys)
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

        // 2. Select.
        let filter = rollout_filter(&self.config)?;
        let entropies = if needs_entropy(&filter) { self.mean_entropies(&episodes)? } else { Vec::new() };
        let filtered = select(&filter, &episodes, &entropies)?;
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
            self.learn(&kept, groups.len(), number, &mut metrics)?;
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
        groups_collected: usize,
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
        let inputs = CreditInputs {
            episodes: kept,
            rows: &rows,
            values: &old_values,
            token_penalty: &token_penalty,
            groups_collected,
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

    fn checkpoint(&mut self) -> Result<(), TrainError> {
        let (policy, critic, reference) = (&self.policy, &self.critic, &self.reference);
        let progress = &self.progress;
        self.run.write_checkpoint(progress.iteration, self.config.trainer.max_actor_ckpt_to_keep, |dir| {
            let save = |name: &str, policy: &LocalPolicy| -> Result<(), String> {
                let dir = dir.join(name);
                std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
                policy.save(&dir).map_err(|e| e.to_string())
            };
            save("actor", policy)?;
            if let Some(critic) = critic {
                save("critic", critic)?;
            }
            if let Some(reference) = reference {
                save("ref", reference)?;
            }
            progress.save(dir).map_err(|e| e.to_string())
        })?;
        Ok(())
    }

    fn interrupted(&mut self) -> Result<RunEnd, TrainError> {
        self.checkpoint()?;
        Ok(RunEnd::Interrupted { iteration: self.progress.iteration })
    }

    fn finish(&mut self, observe: &mut Observer<'_>) -> Result<RunEnd, TrainError> {
        if self.progress.latest_eval.is_none() || self.config.trainer.test_freq <= 0 {
            self.validate(observe)?;
        }
        self.checkpoint()?;
        self.export(&self.run.path().join("model"))?;
        let rate = |(tokens, seconds): (u64, f64)| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        let p = &self.progress;
        let Some(eval) = &p.latest_eval else {
            return Err(TrainError::Resume("the run has no evaluation".to_owned()));
        };
        let success_of = |score: Option<crate::evaluate::Score>| score.map(|s| s.success);
        let summary = Summary {
            iterations: p.iteration,
            seconds: p.seconds,
            generated_tokens_per_second: rate(p.generated),
            trained_tokens_per_second: rate(p.trained),
            success: SuccessSummary {
                warm_start: p.warm_start_eval.as_ref().map(|e| e.score.success),
                r#final: eval.score.success,
                random: success_of(p.baselines.random),
                oracle: success_of(p.baselines.oracle),
                n: eval.score.n,
                ci95: [eval.score.ci95.0, eval.score.ci95.1],
            },
            mismatch_max: p.mismatch_max,
            weights_sha256: self.policy.weights_sha256(),
            warm_start_steps: p.warm_start_steps,
            leaked_instances_skipped: p.train_seeds.skipped + p.warm_start_seeds.skipped,
        };
        self.run.write_summary(&summary)?;
        Ok(RunEnd::Finished(Box::new(summary)))
    }

    /// Writes the model as a Hugging Face folder.
    ///
    /// # Errors
    /// [`TrainError`] when writing fails.
    pub fn export(&self, dir: &Path) -> Result<(), TrainError> {
        let model = self.policy.model();
        let generation = self.generation_config.as_ref();
        save_model(dir, model.model().config(), model.params(), Some(&self.tokenizer), generation, SaveType::F32)
            .map_err(|e| TrainError::Policy(e.into()))
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

/// What a run needs before its folder is made, so that a mistake leaves nothing behind.
struct Parts {
    tokenizer: Tokenizer,
    dialogue: ChatDialogue,
    policy: LocalPolicy,
    critic: Option<LocalPolicy>,
    reference: Option<LocalPolicy>,
    generation_config: Option<serde_json::Value>,
    train_plan: Vec<(EnvTag, usize)>,
    validation: Vec<Group>,
    validation_keys: InstanceKeys,
    baselines: crate::evaluate::Baselines,
}

impl Parts {
    fn load(config: &Config) -> Result<Self, TrainError> {
        let es = &config.es_manager;
        let train_plan = group_plan(config, &es.train, "es_manager.train").map_err(AgentError::from)?;
        let val_plan = group_plan(config, &es.val, "es_manager.val").map_err(AgentError::from)?;
        let source = ModelSource::load(&config.model_path, config.seed)?;
        let (wanted, max) = (config.actor_rollout_ref.rollout.max_model_len, source.config.max_position_embeddings);
        if wanted > max {
            return Err(AgentError::Context { wanted, max, path: config.model_path.clone() }.into());
        }
        let dialogue = ChatDialogue::of_tokenizer(source.tokenizer.clone())?;
        let limits = limits(config);
        let shape = || Transformer::new(source.config.clone(), false);
        let with_value = |params: &[f32]| {
            let model = Transformer::new(source.config.clone(), true);
            let mut all = params.to_vec();
            all.resize(model.layout().len(), 0.0);
            LocalPolicy::new(Trainable::new(model, all, limits.clone()))
        };
        let critic = config.algorithm.adv_estimator.uses_critic().then(|| with_value(&source.params));
        let reference = config
            .needs_reference()
            .then(|| LocalPolicy::new(Trainable::new(shape(), source.params.clone(), limits.clone())));
        let policy = LocalPolicy::new(Trainable::new(shape(), source.params, limits.clone()));
        let validation = validation_groups(&val_plan, es.val.seed);
        let options = BaselineOptions {
            max_turn: config.agent_proxy.max_turn,
            max_actions_per_turn: config.agent_proxy.max_actions_per_turn,
            repeats: 4,
            seed: config.seed,
        };
        Ok(Self {
            validation_keys: InstanceKeys::of(&validation),
            baselines: baselines(&validation, &options),
            tokenizer: source.tokenizer,
            generation_config: source.generation_config,
            dialogue,
            policy,
            critic,
            reference,
            train_plan,
            validation,
        })
    }
}

/// How a configuration plays: training's way, or validation's. `iteration` selects the random streams; evaluations
/// take [`EVAL_STREAM`].
pub fn rollout_options(config: &Config, validation: bool, iteration: u64) -> RolloutOptions {
    let rollout = &config.actor_rollout_ref.rollout;
    let val = &rollout.val_kwargs;
    let split = if validation { &config.es_manager.val } else { &config.es_manager.train };
    let (temperature, top_p, top_k) = match (validation, val.do_sample) {
        (true, true) => (val.temperature, val.top_p, val.top_k),
        (true, false) => (0.0, 1.0, -1),
        (false, _) => (rollout.temperature, rollout.top_p, rollout.top_k),
    };
    RolloutOptions {
        group_size: split.group_size,
        max_turn: config.agent_proxy.max_turn,
        response_length: rollout.response_length,
        max_model_len: rollout.max_model_len,
        format_penalty: config.es_manager.format_penalty,
        temperature: temperature as f32,
        top_k: usize::try_from(top_k).ok().filter(|k| *k > 0),
        top_p: top_p as f32,
        max_batch: rollout.max_num_seqs,
        seed: config.seed,
        iteration,
        train_template_tokens: config.compat.train_template_tokens,
    }
}

/// Memory limits of a configuration.
pub fn limits(config: &Config) -> Limits {
    let actor = &config.actor_rollout_ref.actor;
    let default = Limits::default();
    let gib = |x: f64| (x * (1u64 << 30) as f64) as usize;
    Limits {
        micro_batch_tokens: actor.ppo_max_token_len_per_gpu,
        checkpointing: match actor.activation_checkpointing {
            ActivationCheckpointing::Auto => Checkpointing::Auto,
            ActivationCheckpointing::Always => Checkpointing::Always,
            ActivationCheckpointing::Never => Checkpointing::Never,
        },
        activation_bytes: if actor.memory_limit_gib > 0.0 {
            gib(actor.memory_limit_gib)
        } else {
            default.activation_bytes
        },
        cache_bytes: default.cache_bytes,
    }
}
