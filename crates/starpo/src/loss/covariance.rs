//! Clip-Cov and KL-Cov (arXiv 2505.22617): restrain the few tokens whose log-probability and advantage covary most,
//! because they are what makes the entropy fall.
//!
//! Which tokens those are depends on the whole mini-batch. Compute [`covariances`] and the selection once over it,
//! then the loss piece by piece with the selection's part. As in the published code the log-ratio is not clamped: a
//! ratio that overflows gives a loss that is not finite, and the optimiser skips that step.

use super::{LossError, PolicyInputs, PolicyLoss, check_range, surrogate};
use crate::tokens::{check_finite, check_len, mean};

/// c_t = (A_t − mean A)(log π_t − mean log π) over all tokens of the mini-batch.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn covariances(advantage: &[f64], log_prob: &[f64]) -> Result<Vec<f64>, LossError> {
    check_len("log_prob", "sampled token", advantage.len(), log_prob.len())?;
    check_finite("advantage", advantage)?;
    check_finite("log_prob", log_prob)?;
    let (a, lp) = (mean(advantage), mean(log_prob));
    Ok(advantage.iter().zip(log_prob).map(|(x, y)| (x - a) * (y - lp)).collect())
}

/// max(1, ⌊ratio·n⌋).
fn quota(ratio: f64, n: usize) -> usize {
    ((ratio * n as f64) as usize).max(1)
}

/// Marks the max(1, ⌊ratio·N⌋) tokens with the largest covariance; at ties the earlier one.
pub fn kl_cov_select(covariance: &[f64], kl_cov_ratio: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..covariance.len()).collect();
    order.sort_by(|a, b| covariance[*b].total_cmp(&covariance[*a]));
    let mut out = vec![false; covariance.len()];
    for t in order.into_iter().take(quota(kl_cov_ratio, covariance.len())) {
        out[t] = true;
    }
    out
}

/// KL-Cov: l = −Aρ without clipping, plus `ppo_kl_coef`·|d| on the selected tokens.
///
/// The penalty is the absolute log-ratio to π_old, not a divergence from a reference. `metrics.kl` sums |d|.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn kl_cov(inputs: &PolicyInputs<'_>, selected: &[bool], ppo_kl_coef: f64) -> Result<PolicyLoss, LossError> {
    let n = inputs.check()?;
    check_len("selected", "sampled token", n, selected.len())?;
    let mut out = PolicyLoss::with_tokens(n);
    for t in 0..n {
        let d = inputs.log_ratio(t);
        let mut loss = -inputs.advantage[t] * d.exp();
        let mut grad = loss;
        if selected[t] {
            loss += ppo_kl_coef * d.abs();
            grad += ppo_kl_coef * if d == 0.0 { 0.0 } else { d.signum() };
        }
        let weight = inputs.weight[t] * inputs.is(t);
        out.loss += weight * loss;
        out.d_log_prob[t] = weight * grad;
        out.metrics.kl += d.abs();
    }
    Ok(out)
}

/// Settings of Clip-Cov.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipCovOptions {
    /// ε_lo.
    pub clip_ratio_low: f64,
    /// ε_hi.
    pub clip_ratio_high: f64,
    /// Share of all tokens that may be removed (`clip_cov_ratio`).
    pub clip_cov_ratio: f64,
    /// Tokens qualify above this covariance (`clip_cov_lb`).
    pub clip_cov_lb: f64,
    /// And below this one (`clip_cov_ub`).
    pub clip_cov_ub: f64,
}

impl Default for ClipCovOptions {
    fn default() -> Self {
        Self { clip_ratio_low: 0.2, clip_ratio_high: 0.2, clip_cov_ratio: 2e-4, clip_cov_lb: 1.0, clip_cov_ub: 5.0 }
    }
}

impl ClipCovOptions {
    fn check(&self) -> Result<(), LossError> {
        check_range("clip_ratio_low", self.clip_ratio_low, self.clip_ratio_low >= 0.0, "at least 0")?;
        check_range("clip_ratio_high", self.clip_ratio_high, self.clip_ratio_high >= 0.0, "at least 0")
    }

    fn token(&self, inputs: &PolicyInputs<'_>, t: usize) -> super::Surrogate {
        let ratio = inputs.log_ratio(t).exp();
        surrogate(inputs.advantage[t], ratio, ratio, self.clip_ratio_low, self.clip_ratio_high, None)
    }
}

/// Marks the tokens Clip-Cov removes: a random max(1, ⌊ratio·N⌋) of those with lb < c_t < ub that PPO has not clipped.
///
/// `inputs` and `covariance` span the whole mini-batch. `below(n)` draws a uniform number below n.
///
/// # Errors
/// Lengths, numbers that are not finite, settings out of range.
pub fn clip_cov_select(
    inputs: &PolicyInputs<'_>,
    covariance: &[f64],
    options: &ClipCovOptions,
    mut below: impl FnMut(usize) -> usize,
) -> Result<Vec<bool>, LossError> {
    options.check()?;
    let n = inputs.check()?;
    check_len("covariance", "sampled token", n, covariance.len())?;
    let mut candidates: Vec<usize> = (0..n)
        .filter(|t| covariance[*t] > options.clip_cov_lb && covariance[*t] < options.clip_cov_ub)
        .filter(|t| !options.token(inputs, *t).clipped)
        .collect();
    let mut out = vec![false; n];
    for _ in 0..quota(options.clip_cov_ratio, n).min(candidates.len()) {
        let pick = below(candidates.len()).min(candidates.len() - 1);
        out[candidates.swap_remove(pick)] = true;
    }
    Ok(out)
}

/// Clip-Cov: the clipped surrogate (no dual clip, no clamp of the log-ratio), with the removed tokens multiplied by 0;
/// the denominator stays as it was. `clipped` counts the removed tokens.
///
/// # Errors
/// Lengths, numbers that are not finite, settings out of range.
pub fn clip_cov(
    inputs: &PolicyInputs<'_>,
    removed: &[bool],
    options: &ClipCovOptions,
) -> Result<PolicyLoss, LossError> {
    options.check()?;
    let n = inputs.check()?;
    check_len("removed", "sampled token", n, removed.len())?;
    let mut out = PolicyLoss::with_tokens(n);
    for t in 0..n {
        out.metrics.kl -= inputs.log_ratio(t);
        if removed[t] {
            out.metrics.clipped += 1.0;
            continue;
        }
        let token = options.token(inputs, t);
        let weight = inputs.weight[t] * inputs.is(t);
        out.loss += weight * token.loss;
        out.d_log_prob[t] = weight * token.grad;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_covarying_token_is_penalised() {
        let (lp, old, a) = ([-0.1, -2.0, -1.0], [-0.3, -2.0, -1.0], [1.0, -1.0, 0.0]);
        let cov = covariances(&a, &lp).unwrap();
        assert_eq!(kl_cov_select(&cov, 0.0), [false, true, false]);
        assert_eq!(kl_cov_select(&cov, 0.7), [true, true, false]);
        let inputs = PolicyInputs::new(&lp, &old, &a, &[1.0; 3]);
        let out = kl_cov(&inputs, &[true, false, false], 0.5).unwrap();
        let ratio = 0.2f64.exp();
        assert!((out.d_log_prob[0] - (-ratio + 0.5)).abs() < 1e-12);
        assert!((out.loss - (-ratio + 0.1 + 1.0)).abs() < 1e-12);
        assert!(kl_cov_select(&[], 0.5).is_empty());
    }

    #[test]
    fn removed_tokens_do_not_train() {
        let (lp, a) = ([-0.1, -2.0, -1.0], [3.0, -3.0, 0.0]);
        let inputs = PolicyInputs::new(&lp, &lp, &a, &[1.0; 3]);
        let cov = covariances(&a, &lp).unwrap();
        let options = ClipCovOptions { clip_cov_ratio: 0.4, clip_cov_ub: 100.0, ..ClipCovOptions::default() };
        let removed = clip_cov_select(&inputs, &cov, &options, |n| n - 1).unwrap();
        assert_eq!(removed.iter().filter(|r| **r).count(), 1);
        assert!(!removed[2], "its covariance is below the range");
        let out = clip_cov(&inputs, &removed, &options).unwrap();
        for t in 0..3 {
            assert!(!removed[t] || out.d_log_prob[t] == 0.0);
        }
        assert_eq!(out.metrics.clipped, 1.0);
    }
}
