//! The update: mini-batches of the kept episodes' samples, the configured loss on each, one optimiser step each.
//!
//! What is here: losses put together from [`crate::loss`], [`crate::kl`] and [`crate::aggregate`], for the actor and
//! for the critic. Every normaliser is that of the whole mini-batch, so micro-batches never change a result.

mod mini_batch;
#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;

use ragen_model::trainable::AdamW;

use crate::aggregate::{LossAggMode, Normalizer};
use crate::config::{self, Config};
use crate::loss::{self, LossError, LossMetrics, ValueInputs};
use crate::metrics::{Accumulators, Metrics};
use crate::policy::{OptimizerStep, Policy, PolicyError, Sequence, TokenGrads};
use crate::tokens::Rows;
pub use mini_batch::kl_penalty;
pub(crate) use mini_batch::{MiniBatch, Terms, Totals};
use mini_batch::{mini_batches, narrow};

/// The kept episodes as the update sees them. All token lists are flat, in the order of the rows.
#[derive(Clone, Debug, Default)]
pub struct TrainingBatch {
    /// The samples of the episodes: one an episode with the full history, one a turn with a window.
    pub sequences: Vec<Sequence>,
    /// Their sampled tokens.
    pub rows: Rows,
    /// Log-probabilities recorded when the tokens were sampled.
    pub old_log_prob: Vec<f64>,
    /// Log-probabilities under the reference policy; empty when no term reads them.
    pub ref_log_prob: Vec<f64>,
    /// Log-probabilities under the last healthy policy; empty unless a guard pulls towards it.
    pub anchor_log_prob: Vec<f64>,
    /// The turn that each token belongs to, from 0; empty when no term asks for it.
    pub turns: Vec<usize>,
    /// Advantages.
    pub advantages: Vec<f64>,
    /// The critic's values before the update; empty without a critic.
    pub old_values: Vec<f64>,
    /// Targets of the values; empty without a critic.
    pub value_targets: Vec<f64>,
}

impl TrainingBatch {
    /// The same for some of the rows, in the order given.
    pub fn rows_subset(&self, rows: &[usize]) -> Self {
        let pick = |values: &[f64]| -> Vec<f64> {
            if values.is_empty() {
                return Vec::new();
            }
            rows.iter().flat_map(|row| values[self.rows.range(*row)].iter().copied()).collect()
        };
        let turns = |row: &usize| self.turns.get(self.rows.range(*row)).unwrap_or_default().iter().copied();
        Self {
            sequences: rows.iter().map(|row| self.sequences[*row].clone()).collect(),
            rows: Rows::from_lengths(rows.iter().map(|row| self.rows.row_len(*row))),
            old_log_prob: pick(&self.old_log_prob),
            ref_log_prob: pick(&self.ref_log_prob),
            anchor_log_prob: pick(&self.anchor_log_prob),
            turns: rows.iter().flat_map(turns).collect(),
            advantages: pick(&self.advantages),
            old_values: pick(&self.old_values),
            value_targets: pick(&self.value_targets),
        }
    }
}

/// What can go wrong in an update.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// Behind the seam.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// In a loss.
    #[error(transparent)]
    Loss(#[from] LossError),
}

/// What an update reports.
#[derive(Clone, Debug, Default)]
pub struct UpdateReport {
    /// Metrics under RAGEN's names.
    pub metrics: Metrics,
    /// Largest difference between recorded and recomputed log-probability over the first mini-batch, before its step.
    pub mismatch_max: f64,
    /// Optimiser steps taken.
    pub steps: u64,
    /// Tokens that went through a backward pass, given ones included.
    pub tokens: u64,
    /// Sum of entropies and number of tokens, per turn of the episode.
    pub turn_entropy: Vec<(f64, f64)>,
}

/// What the state of the run adds to the configuration, for one update.
#[derive(Clone, Debug, PartialEq)]
pub struct Controls {
    /// Factor of the learning rate.
    pub lr_scale: f64,
    /// Weight of the entropy bonus.
    pub entropy_coeff: f64,
    /// Mean entropy of each turn of an episode over past updates, which the entropy band lies around; `None` or missing
    /// where there is no past.
    pub turn_entropy: Vec<Option<f64>>,
    /// Weight of the pull towards the last healthy policy.
    pub anchor_coef: f64,
}

impl Controls {
    /// What the configuration alone says.
    pub fn of(config: &Config) -> Self {
        let entropy_coeff = config.actor_rollout_ref.actor.entropy_coeff;
        Self { lr_scale: 1.0, entropy_coeff, turn_entropy: Vec::new(), anchor_coef: 0.0 }
    }
}

/// Which optimiser step of the whole run comes next, of how many.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Steps done before this update.
    pub done: u64,
    /// Steps in the whole run, for decaying schedules.
    pub total: u64,
}

/// Updates the actor on `batch`.
///
/// # Errors
/// [`UpdateError`]; the weights are then those after the last whole step.
pub fn update_actor(
    policy: &mut dyn Policy,
    batch: &TrainingBatch,
    config: &Config,
    controls: &Controls,
    schedule: Schedule,
    seed: u64,
) -> Result<UpdateReport, UpdateError> {
    let actor = &config.actor_rollout_ref.actor;
    let temperature = config.actor_rollout_ref.rollout.temperature as f32;
    let mut report = UpdateReport::default();
    let mut sums = Accumulators::new();
    let mut losses = LossMetrics::default();
    let mut ratio_range = (f64::INFINITY, f64::NEG_INFINITY);
    for epoch in 0..actor.ppo_epochs {
        for range in mini_batches(batch.rows.len(), actor.ppo_mini_batch_size) {
            let mini = MiniBatch::new(batch, range.clone(), config);
            let marks = mini.covariance_marks(policy, config, temperature, seed, report.steps)?;
            let first = epoch == 0 && report.steps == 0;
            let mut failure = None;
            let mut totals = Totals::default();
            policy.accumulate(mini.sequences(), temperature, &mut |indices, scores| match mini.actor_loss(
                indices,
                scores,
                config,
                controls,
                &marks,
                Terms::ALL,
                &mut totals,
            ) {
                Ok(grads) => grads,
                Err(error) => {
                    failure.get_or_insert(error);
                    TokenGrads::default()
                }
            })?;
            if let Some(error) = failure {
                policy.clear_gradients();
                return Err(error.into());
            }
            if first {
                report.mismatch_max = totals.mismatch_max;
            }
            let lr = controls.lr_scale * actor.optim.lr_at(schedule.done + report.steps, schedule.total);
            let step = policy.step(optimizer_step(&actor.optim, lr, actor.grad_clip))?;
            report.steps += 1;
            report.tokens += mini.sequences().iter().map(|s| s.tokens.len() as u64).sum::<u64>();
            losses.add(&totals.policy);
            let n = totals.policy.tokens.max(1.0);
            sums.add("actor/pg_loss", totals.pg_loss);
            sums.add("actor/entropy", totals.entropy / n);
            sums.add("actor/entropy_loss", totals.entropy_aggregated);
            if actor.use_kl_loss {
                sums.add("actor/kl_loss", totals.kl_loss);
                sums.add("actor/kl_coef", actor.kl_loss_coef);
            }
            if controls.anchor_coef > 0.0 {
                sums.add("actor/anchor_kl", totals.anchor_kl);
            }
            if totals.policy.tokens > 0.0 {
                sums.add_weighted("actor/ratio_mean", totals.ratio.sum / n, n);
                ratio_range = (totals.ratio.min.min(ratio_range.0), totals.ratio.max.max(ratio_range.1));
            }
            merge_turns(&mut report.turn_entropy, &totals.turn_entropy);
            sums.add("actor/grad_norm", step.grad_norm);
            sums.add("actor/lr", lr);
            sums.add("actor/skipped_steps", f64::from(u8::from(!step.applied)));
        }
    }
    report.metrics = sums.means();
    if let Some(norm) = sums.get("actor/grad_norm").and_then(|a| a.max()) {
        report.metrics.set("actor/grad_norm_max", norm);
    }
    report.metrics.set("actor/pg_clipfrac", losses.pg_clipfrac());
    report.metrics.set("actor/pg_clipfrac_lower", losses.pg_clipfrac_lower());
    report.metrics.set("actor/ppo_kl", losses.ppo_kl());
    report.metrics.set("actor/mismatch_max", report.mismatch_max);
    if ratio_range.0 <= ratio_range.1 {
        report.metrics.set("actor/ratio_min", ratio_range.0);
        report.metrics.set("actor/ratio_max", ratio_range.1);
    }
    report.metrics.set("actor/entropy_coeff", controls.entropy_coeff);
    Ok(report)
}

/// Updates the critic on `batch`.
///
/// # Errors
/// As [`update_actor`].
pub fn update_critic(
    critic: &mut dyn Policy,
    batch: &TrainingBatch,
    config: &Config,
    schedule: Schedule,
) -> Result<UpdateReport, UpdateError> {
    let setting = &config.critic;
    let mut report = UpdateReport::default();
    let mut sums = Accumulators::new();
    let (mut clipped, mut tokens) = (0.0, 0.0);
    for _ in 0..setting.ppo_epochs {
        for range in mini_batches(batch.rows.len(), setting.ppo_mini_batch_size) {
            let mini = MiniBatch::new(batch, range, config);
            // The value loss is a mean over tokens whatever the actor's aggregation.
            let normalizer = Normalizer::new(LossAggMode::TokenMean, mini.lengths());
            let (mut failure, mut total, mut values) = (None, 0.0, 0.0);
            critic.accumulate(mini.sequences(), 1.0, &mut |indices, scores| {
                let rows = mini.rows_of(indices);
                let value: Vec<f64> = scores.value.iter().map(|v| f64::from(*v)).collect();
                let inputs = ValueInputs {
                    value: &value,
                    old_value: &mini.gather(indices, &batch.old_values),
                    returns: &mini.gather(indices, &batch.value_targets),
                    weight: &normalizer.weights(&rows),
                };
                match loss::value_loss(&inputs, setting.cliprange_value) {
                    Ok(l) => {
                        total += l.loss;
                        clipped += l.clipped;
                        tokens += l.tokens;
                        values += value.iter().sum::<f64>();
                        TokenGrads { value: narrow(&l.d_value), ..TokenGrads::default() }
                    }
                    Err(error) => {
                        failure.get_or_insert(error);
                        TokenGrads::default()
                    }
                }
            })?;
            if let Some(error) = failure {
                critic.clear_gradients();
                return Err(error.into());
            }
            let lr = setting.optim.lr_at(schedule.done + report.steps, schedule.total);
            let step = critic.step(optimizer_step(&setting.optim, lr, setting.grad_clip))?;
            report.steps += 1;
            report.tokens += mini.sequences().iter().map(|s| s.tokens.len() as u64).sum::<u64>();
            sums.add("critic/vf_loss", total);
            sums.add("critic/vpred_mean", values / mini.lengths().sum::<usize>().max(1) as f64);
            sums.add("critic/grad_norm", step.grad_norm);
            sums.add("critic/lr", lr);
        }
    }
    report.metrics = sums.means();
    report.metrics.set("critic/vf_clipfrac", clipped / f64::max(tokens, 1.0));
    Ok(report)
}

/// AdamW's settings for one step.
pub fn optimizer_step(optim: &config::Optim, lr: f64, grad_clip: f64) -> OptimizerStep {
    let adamw =
        AdamW { lr, beta1: optim.betas[0], beta2: optim.betas[1], eps: optim.eps, weight_decay: optim.weight_decay };
    OptimizerStep { adamw, grad_clip }
}

fn merge_turns(sums: &mut Vec<(f64, f64)>, more: &[(f64, f64)]) {
    if sums.len() < more.len() {
        sums.resize(more.len(), (0.0, 0.0));
    }
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = (sum.0 + more.0, sum.1 + more.1);
    }
}
