//! One mini-batch and its loss: the terms put together from [`crate::loss`] and [`crate::kl`], micro-batch by
//! micro-batch, with the normaliser of the whole.

use super::{Controls, TrainingBatch, UpdateError};
use crate::aggregate::{LossAggMode, Normalizer};
use crate::config::{self, Actor, BandPenaltyKind, Config, ContextWindowMode, PolicyLossMode};
use crate::kl::{KlEstimator, KlPenalty, kl_loss};
use crate::loss::{
    self, BandPenalty, CispoOptions, ClipCovOptions, GmpoOptions, GspoOptions, LossError, LossMetrics, PolicyInputs,
    PolicyLoss, PpoOptions, SapoOptions,
};
use crate::policy::{Policy, Sequence, TokenGrads, TokenScores};
use crate::tokens::{Rows, max_or_nan};

/// Consecutive ranges of at most `size` rows.
pub(super) fn mini_batches(rows: usize, size: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let size = size.max(1);
    (0..rows).step_by(size).map(move |start| start..(start + size).min(rows))
}

pub(super) fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

/// Which terms of the actor's loss are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The policy loss.
    pub policy: bool,
    /// Everything that acts on the entropy.
    pub entropy: bool,
    /// Everything that pulls towards another policy.
    pub kl: bool,
}

impl Terms {
    /// The whole loss.
    pub const ALL: Self = Self { policy: true, entropy: true, kl: true };
}

/// Sums over a mini-batch.
#[derive(Default)]
pub(crate) struct Totals {
    pub policy: LossMetrics,
    pub pg_loss: f64,
    pub entropy: f64,
    pub entropy_aggregated: f64,
    pub entropy_term: f64,
    pub kl_loss: f64,
    pub kl_value: f64,
    pub anchor_kl: f64,
    pub mismatch_max: f64,
    /// Sum, minimum and maximum of the ratios π/π_old.
    pub ratio: Ratio,
    /// Sum of entropies and number of tokens, per turn of the episode.
    pub turn_entropy: Vec<(f64, f64)>,
}

/// Ratios of new to old probabilities.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    pub sum: f64,
    pub min: f64,
    pub max: f64,
}

impl Default for Ratio {
    fn default() -> Self {
        Self { sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Totals {
    fn see(&mut self, log_prob: &[f64], old: &[f64]) {
        for (new, old) in log_prob.iter().zip(old) {
            self.mismatch_max = max_or_nan(self.mismatch_max, (new - old).abs());
            let ratio = (new - old).clamp(-loss::LOG_RATIO_CLAMP, loss::LOG_RATIO_CLAMP).exp();
            self.ratio.sum += ratio;
            self.ratio.min = self.ratio.min.min(ratio);
            self.ratio.max = self.ratio.max.max(ratio);
        }
    }
}

/// Tokens that covariance-based losses treat differently; empty otherwise.
pub(crate) type Marks = Vec<bool>;

pub(crate) struct MiniBatch<'a> {
    batch: &'a TrainingBatch,
    range: std::ops::Range<usize>,
    normalizer: Normalizer,
}

impl<'a> MiniBatch<'a> {
    pub(crate) fn new(batch: &'a TrainingBatch, range: std::ops::Range<usize>, config: &Config) -> Self {
        let mode = aggregation(config);
        let normalizer = Normalizer::new(mode, range.clone().map(|row| batch.rows.row_len(row)));
        Self { batch, range, normalizer }
    }

    pub(crate) fn sequences(&self) -> &'a [Sequence] {
        &self.batch.sequences[self.range.clone()]
    }

    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.range.clone().map(|row| self.batch.rows.row_len(row))
    }

    /// The rows of a micro-batch, given by indices into the mini-batch.
    pub(crate) fn rows_of(&self, indices: &[usize]) -> Rows {
        Rows::from_lengths(indices.iter().map(|i| self.batch.rows.row_len(self.range.start + i)))
    }

    /// The values of a micro-batch's tokens; empty for an empty list.
    pub(crate) fn gather(&self, indices: &[usize], per_token: &[f64]) -> Vec<f64> {
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

    /// The loss of a micro-batch, by `terms`, and its derivatives. What it measures is added to `totals`.
    pub(crate) fn actor_loss(
        &self,
        indices: &[usize],
        scores: &TokenScores,
        config: &Config,
        controls: &Controls,
        marks: &Marks,
        terms: Terms,
        totals: &mut Totals,
    ) -> Result<TokenGrads, LossError> {
        let actor = &config.actor_rollout_ref.actor;
        let rows = self.rows_of(indices);
        let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let (log_prob, entropy) = (wide(&scores.log_prob), wide(&scores.entropy));
        let old = self.gather(indices, &self.batch.old_log_prob);
        let advantage = self.gather(indices, &self.batch.advantages);
        let weight = self.normalizer.weights(&rows);
        totals.see(&log_prob, &old);
        let mut d_log_prob = vec![0.0; log_prob.len()];
        if terms.policy {
            let inputs = PolicyInputs::new(&log_prob, &old, &advantage, &weight);
            let policy = policy_loss(&rows, &inputs, config, &self.gather_marks(indices, marks))?;
            totals.pg_loss += policy.loss;
            totals.policy.add(&policy.metrics);
            d_log_prob = policy.d_log_prob;
        }
        if terms.kl {
            self.pull(indices, &log_prob, &weight, actor, controls, &mut d_log_prob, totals)?;
        }
        let d_entropy = if terms.entropy {
            self.entropy_terms(indices, &entropy, &weight, actor, controls, totals)?
        } else {
            Vec::new()
        };
        Ok(TokenGrads { log_prob: narrow(&d_log_prob), entropy: narrow(&d_entropy), value: Vec::new() })
    }

    /// The terms that pull towards the reference and, when a guard asks for it, towards the last healthy policy.
    fn pull(
        &self,
        indices: &[usize],
        log_prob: &[f64],
        weight: &[f64],
        actor: &Actor,
        controls: &Controls,
        d_log_prob: &mut [f64],
        totals: &mut Totals,
    ) -> Result<(), LossError> {
        if actor.use_kl_loss {
            let reference = self.gather(indices, &self.batch.ref_log_prob);
            let term = kl_loss(log_prob, &reference, weight, kl_penalty(actor.kl_loss_type))?;
            totals.kl_loss += term.loss;
            totals.kl_value += actor.kl_loss_coef * term.loss;
            d_log_prob.iter_mut().zip(&term.d_log_prob).for_each(|(d, k)| *d += actor.kl_loss_coef * k);
        }
        if controls.anchor_coef > 0.0 && !self.batch.anchor_log_prob.is_empty() {
            let anchor = self.gather(indices, &self.batch.anchor_log_prob);
            let k3 = KlPenalty { estimator: KlEstimator::K3, straight_through: false };
            let term = kl_loss(log_prob, &anchor, weight, k3)?;
            totals.anchor_kl += term.loss;
            totals.kl_value += controls.anchor_coef * term.loss;
            d_log_prob.iter_mut().zip(&term.d_log_prob).for_each(|(d, k)| *d += controls.anchor_coef * k);
        }
        Ok(())
    }

    /// The bonus and the band. Returns the derivatives, empty when neither is on.
    fn entropy_terms(
        &self,
        indices: &[usize],
        entropy: &[f64],
        weight: &[f64],
        actor: &Actor,
        controls: &Controls,
        totals: &mut Totals,
    ) -> Result<Vec<f64>, LossError> {
        let turns = self.turns_of(indices);
        for (h, turn) in entropy.iter().zip(&turns) {
            if totals.turn_entropy.len() <= *turn {
                totals.turn_entropy.resize(turn + 1, (0.0, 0.0));
            }
            totals.turn_entropy[*turn].0 += h;
            totals.turn_entropy[*turn].1 += 1.0;
        }
        totals.entropy += entropy.iter().sum::<f64>();
        let bonus = loss::entropy_bonus(entropy, weight, controls.entropy_coeff)?;
        totals.entropy_aggregated += bonus.entropy;
        totals.entropy_term += bonus.loss;
        let mut d_entropy = if controls.entropy_coeff == 0.0 { Vec::new() } else { bonus.d_entropy };
        let setting = &actor.entropy_band;
        if setting.enable && turns.len() == entropy.len() {
            // A turn without a past is its own reference: inside the band.
            let known = |turn: usize| controls.turn_entropy.get(turn).copied().flatten();
            let reference: Vec<f64> = entropy.iter().zip(&turns).map(|(h, t)| known(*t).unwrap_or(*h)).collect();
            let penalty = match setting.penalty {
                BandPenaltyKind::Hinge => BandPenalty::Hinge,
                BandPenaltyKind::Constant => BandPenalty::Constant { cost: setting.cost },
            };
            let kappa = (setting.kappa_l, setting.kappa_r);
            let band = loss::entropy_band(entropy, &reference, weight, kappa, penalty, setting.coeff)?;
            totals.entropy_term += band.loss;
            d_entropy.resize(entropy.len(), 0.0);
            d_entropy.iter_mut().zip(&band.d_entropy).for_each(|(d, b)| *d += b);
        }
        Ok(d_entropy)
    }

    /// The turn of each token of a micro-batch; empty when the batch does not say.
    fn turns_of(&self, indices: &[usize]) -> Vec<usize> {
        let turns = &self.batch.turns;
        let rows = indices.iter().map(|i| self.batch.rows.range(self.range.start + i));
        rows.flat_map(|r| turns.get(r).unwrap_or_default().iter().copied()).collect()
    }

    /// Clip-Cov and KL-Cov choose tokens over the whole mini-batch, which takes a scoring pass of its own.
    pub(crate) fn covariance_marks(
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
    // Most tokens that a sample can train.
    let turns = match config.agent_proxy.context_window_mode {
        ContextWindowMode::Full => config.agent_proxy.max_turn,
        ContextWindowMode::LimitedMultiTurn | ContextWindowMode::SingleTurn => 1,
    };
    let length = (turns * config.actor_rollout_ref.rollout.response_length) as f64;
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
