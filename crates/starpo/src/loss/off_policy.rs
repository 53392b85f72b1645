//! Sequence-level guards against stale data: the off-policy mask and the weights of VESPO.

use super::{LossError, check_range};
use crate::tokens::{Rows, check_finite, check_len, mean};

/// The off-policy sequence mask (DeepSeek-V3.2, arXiv 2512.02556): a row is dropped when its advantage is negative and
/// its mean of log π_sampler − log π exceeds the threshold. Positive rows are always kept.
///
/// Multiply the weights of dropped rows by 0 and leave the normaliser as it is.
///
/// # Shapes
/// `log_prob`, `sampler_log_prob`: one per token; `advantage` and the result: one per row. Empty rows are kept.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn off_policy_mask(
    rows: &Rows,
    log_prob: &[f64],
    sampler_log_prob: &[f64],
    advantage: &[f64],
    threshold: f64,
) -> Result<Vec<bool>, LossError> {
    check_len("log_prob", "sampled token", rows.tokens(), log_prob.len())?;
    check_len("sampler_log_prob", "sampled token", rows.tokens(), sampler_log_prob.len())?;
    check_len("advantage", "row", rows.len(), advantage.len())?;
    check_finite("log_prob", log_prob)?;
    check_finite("sampler_log_prob", sampler_log_prob)?;
    check_finite("advantage", advantage)?;
    let keep = rows.ranges().zip(advantage).map(|(range, a)| {
        let gap: Vec<f64> = range.map(|t| sampler_log_prob[t] - log_prob[t]).collect();
        *a >= 0.0 || mean(&gap) <= threshold
    });
    Ok(keep.collect())
}

/// Settings of [`vespo_weights`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VespoOptions {
    /// k for advantages ≥ 0.
    pub k_pos: f64,
    /// λ for advantages ≥ 0.
    pub lambda_pos: f64,
    /// k for negative advantages.
    pub k_neg: f64,
    /// λ for negative advantages.
    pub lambda_neg: f64,
}

impl Default for VespoOptions {
    fn default() -> Self {
        Self { k_pos: 2.0, lambda_pos: 3.0, k_neg: 3.0, lambda_neg: 2.0 }
    }
}

/// The weights of VESPO (arXiv 2602.10693): φ = e^{λ(1 − w)}·w^k with w = Π ρ_t over the row. Use as importance
/// weights of [`policy_gradient`](super::policy_gradient): l = −sg(φ)·A·log π.
///
/// # Shapes
/// `log_ratio`: log π − log π_sampler, one per token; `advantage` and the result: one per row.
///
/// # Errors
/// Lengths, numbers that are not finite, a setting that is not finite.
pub fn vespo_weights(
    rows: &Rows,
    log_ratio: &[f64],
    advantage: &[f64],
    options: &VespoOptions,
) -> Result<Vec<f64>, LossError> {
    check_len("log_ratio", "sampled token", rows.tokens(), log_ratio.len())?;
    check_len("advantage", "row", rows.len(), advantage.len())?;
    check_finite("log_ratio", log_ratio)?;
    check_finite("advantage", advantage)?;
    let settings = [
        ("k_pos", options.k_pos),
        ("lambda_pos", options.lambda_pos),
        ("k_neg", options.k_neg),
        ("lambda_neg", options.lambda_neg),
    ];
    for (key, value) in settings {
        check_range(key, value, value.is_finite(), "finite")?;
    }
    let weights = rows.ranges().zip(advantage).map(|(range, a)| {
        let sum: f64 = range.map(|t| log_ratio[t].clamp(-20.0, 20.0)).sum();
        let log_w = sum.clamp(1e-8f64.ln(), 20.0);
        let (k, lambda) =
            if *a >= 0.0 { (options.k_pos, options.lambda_pos) } else { (options.k_neg, options.lambda_neg) };
        (lambda + k * log_w - lambda * log_w.exp()).exp()
    });
    Ok(weights.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stale_negative_rows_are_dropped() {
        let rows = Rows::from_lengths([2, 2, 1, 0]);
        let (lp, sampler) = ([-2.0, -2.0, -2.0, -2.0, -1.0], [-1.0, -1.0, -1.0, -1.0, -1.1]);
        let keep = off_policy_mask(&rows, &lp, &sampler, &[1.0, -1.0, -1.0, -1.0], 0.5).unwrap();
        assert_eq!(keep, [true, false, true, true]);
        assert!(off_policy_mask(&rows, &lp, &sampler, &[1.0], 0.5).is_err());
    }

    #[test]
    fn on_policy_rows_weigh_one() {
        let rows = Rows::from_lengths([2, 1, 1]);
        let got = vespo_weights(&rows, &[0.1, -0.1, 0.0, 50.0], &[1.0, -1.0, 1.0], &VespoOptions::default()).unwrap();
        assert!((got[0] - 1.0).abs() < 1e-12 && (got[1] - 1.0).abs() < 1e-12);
        assert_eq!(got[2], 0.0, "a row that drifted away does not train");
    }
}
