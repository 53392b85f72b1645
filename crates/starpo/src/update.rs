//! The update: mini-batches of kept episodes, the configured loss on each, one optimiser step each.
//!
//! What is here: losses put together from [`crate::loss`], [`crate::kl`] and [`crate::aggregate`], for the actor and
//! for the critic. Every normaliser is that of the whole mini-batch, so micro-batches never change a result.

use crate::aggregate::{LossAggMode, Normalizer};
use crate::config::{self, Config, PolicyLossMode};
use crate::kl::{KlEstimator, KlPenalty, kl_loss};
use crate::loss::{
    self, CispoOptions, ClipCovOptions, GmpoOptions, GspoOptions, LossError, LossMetrics, PolicyInputs, PolicyLoss,
    PpoOptions, SapoOptions, ValueInputs,
};
use crate::metrics::{Accumulators, Metrics};
use crate::policy::{OptimizerStep, Policy, PolicyError, Sequence, TokenGrads, TokenScores};
use crate::tokens::Rows;
use ragen_model::trainable::AdamW;

/// The kept episodes as the update sees them. All token lists are flat, in the order of the rows.
#[derive(Clone, Debug)]
pub struct TrainingBatch {
    /// One sequence per episode.
    pub sequences: Vec<Sequence>,
    /// Their sampled tokens.
    pub rows: Rows,
    /// Log-probabilities recorded when the tokens were sampled.
    pub old_log_prob: Vec<f64>,
    /// Log-probabilities under the reference policy; empty when no term reads them.
    pub ref_log_prob: Vec<f64>,
    /// Advantages.
    pub advantages: Vec<f64>,
    /// The critic's values before the update; empty without a critic.
    pub old_values: Vec<f64>,
    /// Targets of the values; empty without a critic.
    pub value_targets: Vec<f64>,
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
    schedule: Schedule,
    seed: u64,
) -> Result<UpdateReport, UpdateError> {
    let actor = &config.actor_rollout_ref.actor;
    let temperature = config.actor_rollout_ref.rollout.temperature as f32;
    let mut report = UpdateReport::default();
    let mut sums = Accumulators::new();
    let mut losses = LossMetrics::default();
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
                &marks,
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
            let lr = actor.optim.lr_at(schedule.done + report.steps, schedule.total);
            let step = policy.step(optimizer_step(&actor.optim, lr, actor.grad_clip))?;
            report.steps += 1;
            report.tokens += mini.sequences().iter().map(|s| s.tokens.len() as u64).sum::<u64>();
            losses.add(&totals.policy);
            sums.add("actor/pg_loss", totals.pg_loss);
            sums.add("actor/entropy", totals.entropy / totals.policy.tokens.max(1.0));
            sums.add("actor/entropy_loss", totals.entropy_aggregated);
            if actor.use_kl_loss {
                sums.add("actor/kl_loss", totals.kl_loss);
            }
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

/// Consecutive ranges of at most `size` rows.
fn mini_batches(rows: usize, size: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let size = size.max(1);
    (0..rows).step_by(size).map(move |start| start..(start + size).min(rows))
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

/// Sums over a mini-batch.
#[derive(Default)]
struct Totals {
    policy: LossMetrics,
    pg_loss: f64,
    entropy: f64,
    entropy_aggregated: f64,
    kl_loss: f64,
    mismatch_max: f64,
}

/// Tokens that covariance-based losses treat differently; empty otherwise.
type Marks = Vec<bool>;

struct MiniBatch<'a> {
    batch: &'a TrainingBatch,
    range: std::ops::Range<usize>,
    normalizer: Normalizer,
}

impl<'a> MiniBatch<'a> {
    fn new(batch: &'a TrainingBatch, range: std::ops::Range<usize>, config: &Config) -> Self {
        let mode = aggregation(config);
        let normalizer = Normalizer::new(mode, range.clone().map(|row| batch.rows.row_len(row)));
        Self { batch, range, normalizer }
    }

    fn sequences(&self) -> &'a [Sequence] {
        &self.batch.sequences[self.range.clone()]
    }

    fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.range.clone().map(|row| self.batch.rows.row_len(row))
    }

    /// The rows of a micro-batch, given by indices into the mini-batch.
    fn rows_of(&self, indices: &[usize]) -> Rows {
        Rows::from_lengths(indices.iter().map(|i| self.batch.rows.row_len(self.range.start + i)))
    }

    /// The values of a micro-batch's tokens; empty for an empty list.
    fn gather(&self, indices: &[usize], per_token: &[f64]) -> Vec<f64> {
        if per_token.is_empty() {
            return Vec::new();
        }
        indices.iter().flat_map(|i| per_token[self.batch.rows.range(self.range.start + i)].iter().copied()).collect()
    }

    /// The marks of a micro-batch's tokens, `marks` being those of the mini-batch.
    fn gather_marks(&self, indices: &[usize], marks: &Marks) -> Marks {
        let first = self.batch.rows.range(self.range.start).start;
        let rows = indices.iter().map(|i| self.batch.rows.range(self.range.start + i));
        rows.flat_map(|r| marks[r.start - first..r.end - first].iter().copied()).collect()
    }

    fn actor_loss(
        &self,
        indices: &[usize],
        scores: &TokenScores,
        config: &Config,
        marks: &Marks,
        totals: &mut Totals,
    ) -> Result<TokenGrads, LossError> {
        let actor = &config.actor_rollout_ref.actor;
        let rows = self.rows_of(indices);
        let log_prob: Vec<f64> = scores.log_prob.iter().map(|v| f64::from(*v)).collect();
        let entropy: Vec<f64> = scores.entropy.iter().map(|v| f64::from(*v)).collect();
        let old = self.gather(indices, &self.batch.old_log_prob);
        let advantage = self.gather(indices, &self.batch.advantages);
        let weight = self.normalizer.weights(&rows);
        for (a, b) in log_prob.iter().zip(&old) {
            totals.mismatch_max = totals.mismatch_max.max((a - b).abs());
        }
        let inputs = PolicyInputs::new(&log_prob, &old, &advantage, &weight);
        let policy = policy_loss(&rows, &inputs, config, &self.gather_marks(indices, marks))?;
        totals.pg_loss += policy.loss;
        totals.policy.add(&policy.metrics);
        totals.entropy += entropy.iter().sum::<f64>();
        let mut d_log_prob = policy.d_log_prob;
        let bonus = loss::entropy_bonus(&entropy, &weight, actor.entropy_coeff)?;
        totals.entropy_aggregated += bonus.entropy;
        if actor.use_kl_loss {
            let reference = self.gather(indices, &self.batch.ref_log_prob);
            let term = kl_loss(&log_prob, &reference, &weight, kl_penalty(actor.kl_loss_type))?;
            totals.kl_loss += term.loss;
            d_log_prob.iter_mut().zip(&term.d_log_prob).for_each(|(d, k)| *d += actor.kl_loss_coef * k);
        }
        let d_entropy = if actor.entropy_coeff == 0.0 { Vec::new() } else { narrow(&bonus.d_entropy) };
        Ok(TokenGrads { log_prob: narrow(&d_log_prob), entropy: d_entropy, value: Vec::new() })
    }

    /// Clip-Cov and KL-Cov choose tokens over the whole mini-batch, which takes a scoring pass of its own.
    fn covariance_marks(
        &self,
        policy: &mut dyn Policy,
        config: &Config,
        temperature: f32,
        seed: u64,
        step: u64,
    ) -> Result<Marks, UpdateError> {
        let setting = &config.actor_rollout_ref.actor.policy_loss;
        if !matches!(setting.loss_mode, PolicyLossMode::ClipCov | PolicyLossMode::KlCov) {
            return Ok(vec![false; self.lengths().sum()]);
        }
        let scores = policy.score(self.sequences(), temperature)?;
        let log_prob: Vec<f64> = scores.log_prob.iter().map(|v| f64::from(*v)).collect();
        let all: Vec<usize> = (0..self.range.len()).collect();
        let (old, advantage) = (self.gather(&all, &self.batch.old_log_prob), self.gather(&all, &self.batch.advantages));
        let covariance = loss::covariances(&advantage, &log_prob)?;
        if setting.loss_mode == PolicyLossMode::KlCov {
            return Ok(loss::kl_cov_select(&covariance, setting.kl_cov_ratio));
        }
        let weight = self.normalizer.weights(&self.rows_of(&all));
        let inputs = PolicyInputs::new(&log_prob, &old, &advantage, &weight);
        let mut draw = 0u64;
        let below = |n: usize| {
            draw += 1;
            (crate::rollout::sampling_seed(seed, step, draw, 0x636F76) % n.max(1) as u64) as usize
        };
        Ok(loss::clip_cov_select(&inputs, &covariance, &clip_cov_options(config), below)?)
    }
}

/// How the actor's token losses become one number.
fn aggregation(config: &Config) -> LossAggMode {
    let length = (config.agent_proxy.max_turn * config.actor_rollout_ref.rollout.response_length) as f64;
    match config.actor_rollout_ref.actor.loss_agg_mode {
        // With a micro-batch of one sequence the reference's token mean is a mean of sequence means.
        config::LossAggMode::TokenMean if config.compat.per_micro_batch_token_mean => LossAggMode::SeqMeanTokenMean,
        config::LossAggMode::TokenMean => LossAggMode::TokenMean,
        config::LossAggMode::SeqMeanTokenSum => LossAggMode::SeqMeanTokenSum,
        config::LossAggMode::SeqMeanTokenMean => LossAggMode::SeqMeanTokenMean,
        config::LossAggMode::SeqMeanTokenSumNorm => LossAggMode::SeqMeanTokenSumNorm { length },
        config::LossAggMode::SeqMeanTokenSumConst => LossAggMode::SeqMeanTokenSumConst { length },
    }
}

/// The estimator that a configuration names.
pub fn kl_penalty(kind: config::KlType) -> KlPenalty {
    kind.name().parse().unwrap_or(KlPenalty { estimator: KlEstimator::K3, straight_through: false })
}

fn clip_cov_options(config: &Config) -> ClipCovOptions {
    let actor = &config.actor_rollout_ref.actor;
    let setting = &actor.policy_loss;
    ClipCovOptions {
        clip_ratio_low: actor.clip_ratio_low,
        clip_ratio_high: actor.clip_ratio_high,
        clip_cov_ratio: setting.clip_cov_ratio,
        clip_cov_lb: setting.clip_cov_lb,
        clip_cov_ub: setting.clip_cov_ub,
    }
}

fn policy_loss(
    rows: &Rows,
    inputs: &PolicyInputs<'_>,
    config: &Config,
    marks: &Marks,
) -> Result<PolicyLoss, LossError> {
    let actor = &config.actor_rollout_ref.actor;
    let setting = &actor.policy_loss;
    let (clip_ratio_low, clip_ratio_high) = (actor.clip_ratio_low, actor.clip_ratio_high);
    match setting.loss_mode {
        PolicyLossMode::Vanilla => {
            let clip_ratio_c = Some(actor.clip_ratio_c);
            loss::ppo(inputs, &PpoOptions { clip_ratio_low, clip_ratio_high, clip_ratio_c })
        }
        PolicyLossMode::Gspo => loss::gspo(rows, inputs, &GspoOptions { clip_ratio_low, clip_ratio_high }),
        PolicyLossMode::Sapo => loss::sapo(inputs, &SapoOptions { tau_pos: setting.tau_pos, tau_neg: setting.tau_neg }),
        PolicyLossMode::Cispo => loss::cispo(inputs, &CispoOptions { clip_ratio_low, clip_ratio_high }),
        PolicyLossMode::GeoMean => loss::gmpo(rows, inputs, &GmpoOptions { clip_ratio_low, clip_ratio_high }),
        PolicyLossMode::Gpg => loss::policy_gradient(inputs),
        PolicyLossMode::ClipCov => loss::clip_cov(inputs, marks, &clip_cov_options(config)),
        PolicyLossMode::KlCov => loss::kl_cov(inputs, marks, setting.ppo_kl_coef),
    }
}
