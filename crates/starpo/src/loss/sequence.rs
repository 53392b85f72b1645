//! Losses with one ratio per row: GSPO and GMPO.

use super::{LossError, PolicyInputs, PolicyLoss, PpoOptions, check_range, larger, surrogate};
use crate::tokens::{Rows, check_len};

/// The mean log-ratio of a row is capped at this before the exponential.
const SEQUENCE_LOG_RATIO_CAP: f64 = 10.0;

/// Settings of [`gspo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GspoOptions {
    /// ε_lo (`clip_ratio_low`).
    pub clip_ratio_low: f64,
    /// ε_hi (`clip_ratio_high`).
    pub clip_ratio_high: f64,
}

impl Default for GspoOptions {
    fn default() -> Self {
        Self { clip_ratio_low: 3e-4, clip_ratio_high: 4e-4 }
    }
}

/// GSPO (arXiv 2507.18071): s_i = exp(mean_t d), l = max(−A s_i, −A·clip(s_i)) on every token of the row, with the
/// token form of the gradient: −A s_i for an unclipped token, times its weight.
///
/// With the weights of a mean over rows of token means it is GSPO; with those of a mean over rows of token *sums* it
/// is the length-unbiased LUSPO. `clipped` counts tokens whose clipped branch is strictly larger.
///
/// # Errors
/// Lengths, numbers that are not finite, settings out of range.
pub fn gspo(rows: &Rows, inputs: &PolicyInputs<'_>, options: &GspoOptions) -> Result<PolicyLoss, LossError> {
    let (low, high) = (options.clip_ratio_low, options.clip_ratio_high);
    PpoOptions { clip_ratio_low: low, clip_ratio_high: high, clip_ratio_c: None }.check()?;
    let n = inputs.check()?;
    check_len("log_prob", "token of the rows", rows.tokens(), n)?;
    let mut out = PolicyLoss::with_tokens(n);
    for range in rows.ranges() {
        let sum: f64 = range.clone().map(|t| inputs.log_ratio(t)).sum();
        let log_ratio = sum / range.len().max(1) as f64;
        let ratio = log_ratio.min(SEQUENCE_LOG_RATIO_CAP).exp();
        let d_ratio = if log_ratio <= SEQUENCE_LOG_RATIO_CAP { ratio } else { 0.0 };
        for t in range {
            let token = surrogate(inputs.advantage[t], ratio, d_ratio, low, high, None);
            let weight = inputs.weight[t] * inputs.is(t);
            out.loss += weight * token.loss;
            out.d_log_prob[t] = weight * token.grad;
            out.metrics.clipped += f64::from(u8::from(token.clipped));
            out.metrics.kl -= inputs.log_ratio(t);
        }
    }
    Ok(out)
}

/// Settings of [`gmpo`]: the range of the log-ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmpoOptions {
    /// The log-ratio is clipped from below at −`clip_ratio_low`.
    pub clip_ratio_low: f64,
    /// And from above at `clip_ratio_high`.
    pub clip_ratio_high: f64,
}

impl Default for GmpoOptions {
    fn default() -> Self {
        Self { clip_ratio_low: 0.4, clip_ratio_high: 0.4 }
    }
}

/// GMPO (arXiv 2507.20673): d' is the log-ratio clipped per token on the pessimistic side, the loss of row i is
/// −Ā_i·exp(mean_t d') with Ā_i the mean advantage of its tokens.
///
/// The weight of a row is the sum of its tokens' weights, so the weights of a mean over rows of token means give the
/// mean over non-empty rows. Importance weights enter as their geometric mean over the row. `clipped` and
/// `clipped_lower` count tokens outside the range with a positive and with a negative advantage.
///
/// # Errors
/// Lengths, numbers that are not finite, settings out of range.
pub fn gmpo(rows: &Rows, inputs: &PolicyInputs<'_>, options: &GmpoOptions) -> Result<PolicyLoss, LossError> {
    let (low, high) = (options.clip_ratio_low, options.clip_ratio_high);
    check_range("clip_ratio_low", low, low >= 0.0, "at least 0")?;
    check_range("clip_ratio_high", high, high >= 0.0, "at least 0")?;
    let n = inputs.check()?;
    check_len("log_prob", "token of the rows", rows.tokens(), n)?;
    let mut out = PolicyLoss::with_tokens(n);
    for range in rows.ranges().filter(|range| !range.is_empty()) {
        // veRL adds 1e-8 to the row's length; kept to agree to the last digits when ratios are huge.
        let length = range.len() as f64 + 1e-8;
        let (mut sum, mut advantage, mut weight, mut log_is) = (0.0, 0.0, 0.0, 0.0);
        for t in range.clone() {
            let (d, a) = (inputs.log_ratio(t), inputs.advantage[t]);
            let sign = if a == 0.0 { 0.0 } else { a.signum() };
            let clamped = d.clamp(-low, high);
            let inside = if clamped == d { 1.0 } else { 0.0 };
            let (negated, d_negated) = larger((-sign * d, -sign), (-sign * clamped, -sign * inside));
            sum -= sign * negated;
            out.d_log_prob[t] = -sign * d_negated;
            advantage += a;
            weight += inputs.weight[t];
            log_is += (inputs.is(t) + 1e-10).ln();
            out.metrics.clipped += f64::from(u8::from(clamped != d && a > 0.0));
            out.metrics.clipped_lower += f64::from(u8::from(clamped != d && a < 0.0));
            out.metrics.kl -= d;
        }
        let is = if inputs.is_weight.is_some() { (log_is / length).exp() } else { 1.0 };
        let row = -weight * is * advantage / length * (sum / length).exp();
        out.loss += row;
        for t in range {
            out.d_log_prob[t] *= row / length;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gspo_shares_one_ratio_per_row() {
        let rows = Rows::from_lengths([2, 0, 1]);
        let inputs = PolicyInputs::new(&[-1.0, -1.2, -1.0], &[-1.1, -1.1, -1.5], &[1.0; 3], &[0.25, 0.25, 0.5]);
        let out = gspo(&rows, &inputs, &GspoOptions::default()).unwrap();
        // Row 0: the log-ratios cancel, so the ratio is 1; row 2: e^0.5 is clipped.
        assert!((out.d_log_prob[0] + 0.25).abs() < 1e-12 && (out.d_log_prob[1] + 0.25).abs() < 1e-12);
        assert_eq!((out.d_log_prob[2], out.metrics.clipped), (0.0, 1.0));
        assert!((out.loss + 0.5 + 0.5 * 1.0004).abs() < 1e-12);
        assert!(gspo(&Rows::from_lengths([2]), &inputs, &GspoOptions::default()).is_err());
    }

    #[test]
    fn gmpo_gradient_is_the_derivative() {
        let rows = Rows::from_lengths([3, 0, 1]);
        let old = [-1.0, -1.0, -1.0, -1.0];
        let advantage = [1.0, 1.0, 1.0, -2.0];
        let weight = [1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 0.5];
        let run = |lp: &[f64]| {
            gmpo(&rows, &PolicyInputs::new(lp, &old, &advantage, &weight), &GmpoOptions::default()).unwrap()
        };
        let base = [-0.9, -0.2, -1.9, -1.2];
        let grad = run(&base).d_log_prob;
        for t in 0..4 {
            let (mut up, mut down) = (base, base);
            up[t] += 1e-6;
            down[t] -= 1e-6;
            let numeric = (run(&up).loss - run(&down).loss) / 2e-6;
            assert!((numeric - grad[t]).abs() < 1e-8, "{t}");
        }
        assert_eq!(grad[1], 0.0, "a good token that grew too much is held");
        assert!(grad[2] != 0.0, "a good token that shrank is not");
    }
}
