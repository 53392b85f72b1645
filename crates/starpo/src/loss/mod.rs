//! Policy and value losses, each with its derivatives.
//!
//! A loss takes numbers per sampled token and returns Σ weight·l with ∂/∂log π per token; nothing here sees a model.
//! The weights come from a [`Normalizer`](crate::aggregate::Normalizer) built for the whole mini-batch, so a loss may
//! be computed piece by piece: the sums over the pieces are the sums over the whole, metrics included. Sequence-level
//! losses additionally take the rows; a row is never cut between pieces.
//!
//! Notation: d = log π − log π_old, ρ = e^d, A the advantage. All losses are minimised. At ties between two branches
//! the derivative is the mean of both, at the edge of a clamp it is the one inside: the conventions of automatic
//! differentiation in PyTorch.

mod cispo;
mod covariance;
mod entropy;
#[cfg(test)]
mod micro_batches;
mod off_policy;
mod policy_gradient;
mod ppo;
mod rollout_correction;
mod sapo;
mod sequence;
mod unbiased_kl;
mod value;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod vectors_extra;

pub use cispo::{CispoOptions, cispo};
pub use covariance::{ClipCovOptions, clip_cov, clip_cov_select, covariances, kl_cov, kl_cov_select};
pub use entropy::{AdaptiveEntropy, BandPenalty, EntropyTerm, entropy_band, entropy_bonus};
pub use off_policy::{VespoOptions, off_policy_mask, vespo_weights};
pub use policy_gradient::policy_gradient;
pub use ppo::{PpoOptions, ppo};
pub use rollout_correction::{
    IsLevel, IsMetrics, IsOptions, OffPolicyMetrics, RejectionRule, RejectionStatistic, RejectionUnit, is_metrics,
    is_weights, off_policy_metrics, rejection_mask,
};
pub use sapo::{SapoOptions, sapo};
pub use sequence::{GmpoOptions, GspoOptions, gmpo, gspo};
pub use unbiased_kl::{RatioLevel, unbiased_kl};
pub use value::{ValueInputs, ValueLoss, value_loss};

use crate::tokens::{BatchError, check_finite, check_len};

/// The log-ratio is clamped to ± this before the exponential (PPO, SAPO, CISPO).
pub const LOG_RATIO_CLAMP: f64 = 20.0;

/// Why a loss could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LossError {
    /// The batch does not fit together or holds a number that is not finite.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A setting outside its range.
    #[error("`{key}` must be {expected} and is {found}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// The range.
        expected: &'static str,
        /// The value found.
        found: f64,
    },
    /// An unknown word in a setting.
    #[error("unknown {key} \"{found}\"; expected {expected}")]
    Unknown {
        /// The setting.
        key: &'static str,
        /// What it may be.
        expected: &'static str,
        /// The word found.
        found: String,
    },
}

/// What a policy loss reads, one number per sampled token.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInputs<'a> {
    /// log π of the policy being updated.
    pub log_prob: &'a [f64],
    /// log π_old, the policy the ratio is taken to.
    pub old_log_prob: &'a [f64],
    /// Advantages.
    pub advantage: &'a [f64],
    /// Weight of each token in the sum.
    pub weight: &'a [f64],
    /// Importance weights of the sampler; each multiplies its token's loss (GMPO: their geometric mean, the row's).
    pub is_weight: Option<&'a [f64]>,
}

impl<'a> PolicyInputs<'a> {
    /// Inputs without importance weights.
    pub fn new(log_prob: &'a [f64], old_log_prob: &'a [f64], advantage: &'a [f64], weight: &'a [f64]) -> Self {
        Self { log_prob, old_log_prob, advantage, weight, is_weight: None }
    }

    /// Number of tokens, once everything fits together.
    fn check(&self) -> Result<usize, LossError> {
        let n = self.log_prob.len();
        let slices = [
            ("log_prob", self.log_prob),
            ("old_log_prob", self.old_log_prob),
            ("advantage", self.advantage),
            ("weight", self.weight),
        ];
        for (what, values) in slices.into_iter().chain(self.is_weight.map(|w| ("is_weight", w))) {
            check_len(what, "sampled token", n, values.len())?;
            check_finite(what, values)?;
        }
        Ok(n)
    }

    /// log π − log π_old.
    fn log_ratio(&self, t: usize) -> f64 {
        self.log_prob[t] - self.old_log_prob[t]
    }

    /// The importance weight.
    fn is(&self, t: usize) -> f64 {
        self.is_weight.map_or(1.0, |w| w[t])
    }
}

/// Sums a policy loss reports; they add up over micro-batches.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct LossMetrics {
    /// Tokens.
    pub tokens: f64,
    /// Tokens whose ratio was clipped (what exactly counts is said by each loss).
    pub clipped: f64,
    /// Tokens caught by the lower clip.
    pub clipped_lower: f64,
    /// Sum of log π_old − log π.
    pub kl: f64,
}

impl LossMetrics {
    /// Adds the sums of another part of the mini-batch.
    pub fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.clipped += other.clipped;
        self.clipped_lower += other.clipped_lower;
        self.kl += other.kl;
    }

    /// Share of clipped tokens (`actor/pg_clipfrac`); 0 without tokens.
    pub fn pg_clipfrac(&self) -> f64 {
        self.clipped / self.tokens.max(1.0)
    }

    /// Share of tokens caught by the lower clip (`actor/pg_clipfrac_lower`).
    pub fn pg_clipfrac_lower(&self) -> f64 {
        self.clipped_lower / self.tokens.max(1.0)
    }

    /// Mean of log π_old − log π (`actor/ppo_kl`).
    pub fn ppo_kl(&self) -> f64 {
        self.kl / self.tokens.max(1.0)
    }
}

/// A loss and its derivative.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PolicyLoss {
    /// Σ weight·l.
    pub loss: f64,
    /// ∂loss/∂log π, one per token.
    pub d_log_prob: Vec<f64>,
    /// Sums to report.
    pub metrics: LossMetrics,
}

impl PolicyLoss {
    fn with_tokens(n: usize) -> Self {
        let metrics = LossMetrics { tokens: n as f64, ..LossMetrics::default() };
        Self { loss: 0.0, d_log_prob: vec![0.0; n], metrics }
    }
}

/// A token's loss, its derivative with respect to log π, and what happened to its ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Surrogate {
    loss: f64,
    grad: f64,
    clipped: bool,
    clipped_lower: bool,
}

/// max(−Aρ, −A·clip(ρ, 1 − low, 1 + high)), and for A < 0 not above −cA.
///
/// `d_ratio` is ∂ρ/∂log π: ρ itself, or 0 where a clamp on the log-ratio is active.
fn surrogate(advantage: f64, ratio: f64, d_ratio: f64, low: f64, high: f64, dual: Option<f64>) -> Surrogate {
    let plain = -advantage * ratio;
    let clipped = -advantage * ratio.clamp(1.0 - low, (1.0 + high).max(1.0 - low));
    let d_plain = -advantage * d_ratio;
    let inside = ratio >= 1.0 - low && ratio <= 1.0 + high;
    let d_clipped = if inside { d_plain } else { 0.0 };
    let (mut loss, mut grad) = larger((plain, d_plain), (clipped, d_clipped));
    let mut clipped_lower = false;
    if let Some(c) = dual.filter(|_| advantage < 0.0) {
        let bound = -advantage * c;
        clipped_lower = loss > bound;
        let (negated, d_negated) = larger((-loss, -grad), (-bound, 0.0));
        (loss, grad) = (-negated, -d_negated);
    }
    Surrogate { loss, grad, clipped: clipped > plain, clipped_lower }
}

/// The larger of two (value, derivative) pairs; at a tie the mean derivative.
fn larger(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    match a.0.total_cmp(&b.0) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => (a.0, 0.5 * (a.1 + b.1)),
    }
}

/// ρ with the log-ratio clamped, and ∂ρ/∂log π.
fn clamped_ratio(log_ratio: f64) -> (f64, f64) {
    let ratio = log_ratio.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP).exp();
    (ratio, if log_ratio.abs() <= LOG_RATIO_CLAMP { ratio } else { 0.0 })
}

fn check_range(key: &'static str, value: f64, ok: bool, expected: &'static str) -> Result<(), LossError> {
    if ok && !value.is_nan() { Ok(()) } else { Err(LossError::Setting { key, expected, found: value }) }
}
