//! The clipped surrogate of PPO.

use super::{LossError, PolicyInputs, PolicyLoss, check_range, clamped_ratio, surrogate};

/// Settings of [`ppo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PpoOptions {
    /// ε_lo: the ratio is clipped from below at 1 − ε_lo (`clip_ratio_low`).
    pub clip_ratio_low: f64,
    /// ε_hi: and from above at 1 + ε_hi (`clip_ratio_high`); 0.28 is "clip higher".
    pub clip_ratio_high: f64,
    /// c of the dual clip (`clip_ratio_c`); above 1. `None` leaves it out.
    pub clip_ratio_c: Option<f64>,
}

impl Default for PpoOptions {
    fn default() -> Self {
        Self { clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: Some(3.0) }
    }
}

impl PpoOptions {
    pub(super) fn check(&self) -> Result<(), LossError> {
        let (low, high) = (self.clip_ratio_low, self.clip_ratio_high);
        check_range("clip_ratio_low", low, (0.0..=1.0).contains(&low), "between 0 and 1")?;
        check_range("clip_ratio_high", high, high >= 0.0, "at least 0")?;
        match self.clip_ratio_c {
            Some(c) => check_range("clip_ratio_c", c, c > 1.0, "above 1"),
            None => Ok(()),
        }
    }
}

/// PPO (arXiv 1707.06347) with the asymmetric range of DAPO (2503.14476) and the dual clip (1912.09729):
/// l = max(−Aρ, −A·clip(ρ, 1 − ε_lo, 1 + ε_hi)), and for A < 0 at most −cA.
///
/// `clipped` counts tokens whose clipped branch is strictly larger, `clipped_lower` those held by the dual clip.
///
/// # Errors
/// Lengths, numbers that are not finite, settings out of range.
pub fn ppo(inputs: &PolicyInputs<'_>, options: &PpoOptions) -> Result<PolicyLoss, LossError> {
    options.check()?;
    let n = inputs.check()?;
    let mut out = PolicyLoss::with_tokens(n);
    for t in 0..n {
        let (ratio, d_ratio) = clamped_ratio(inputs.log_ratio(t));
        let (low, high) = (options.clip_ratio_low, options.clip_ratio_high);
        let token = surrogate(inputs.advantage[t], ratio, d_ratio, low, high, options.clip_ratio_c);
        let weight = inputs.weight[t] * inputs.is(t);
        out.loss += weight * token.loss;
        out.d_log_prob[t] = weight * token.grad;
        out.metrics.clipped += f64::from(u8::from(token.clipped));
        out.metrics.clipped_lower += f64::from(u8::from(token.clipped_lower));
        out.metrics.kl -= inputs.log_ratio(t).clamp(-super::LOG_RATIO_CLAMP, super::LOG_RATIO_CLAMP);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{LossAggMode, Normalizer};
    use crate::tokens::{BatchError, Rows};

    fn one(log_ratio: f64, advantage: f64) -> PolicyLoss {
        let (log_prob, advantage) = ([log_ratio - 1.0], [advantage]);
        ppo(&PolicyInputs::new(&log_prob, &[-1.0], &advantage, &[1.0]), &PpoOptions::default()).unwrap()
    }

    #[test]
    fn on_policy_the_gradient_is_the_advantage() {
        let out = one(0.0, 2.0);
        assert_eq!((out.loss, out.d_log_prob[0], out.metrics.clipped), (-2.0, -2.0, 0.0));
    }

    #[test]
    fn clipping_by_hand() {
        let up = one(1.5f64.ln(), 1.0);
        assert!((up.loss + 1.28).abs() < 1e-12);
        assert_eq!((up.d_log_prob[0], up.metrics.clipped), (0.0, 1.0));
        let down = one(0.5f64.ln(), -1.0);
        assert!((down.loss - 0.8).abs() < 1e-12);
        assert_eq!(down.d_log_prob[0], 0.0);
        // A bad token that became more likely is pulled back, but not without limit.
        let pulled = one(2.0f64.ln(), -1.0);
        assert!((pulled.loss - 2.0).abs() < 1e-12 && (pulled.d_log_prob[0] - 2.0).abs() < 1e-12);
        let held = one(9.0f64.ln(), -1.0);
        assert_eq!((held.loss, held.d_log_prob[0], held.metrics.clipped_lower), (3.0, 0.0, 1.0));
        let huge = one(800.0, -1.0);
        assert!(huge.loss.is_finite() && huge.d_log_prob[0] == 0.0);
    }

    #[test]
    fn micro_batches_change_nothing() {
        let lengths = [3usize, 1, 0, 2];
        let rows = Rows::from_lengths(lengths);
        let log_prob = [-0.1, -1.2, -0.7, -2.0, -0.4, -0.9];
        let old = [-0.5, -1.0, -0.7, -1.1, -0.9, -0.2];
        let advantage = [1.0, 1.0, 1.0, -0.5, -2.0, -2.0];
        for name in ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-const"] {
            let normalizer = Normalizer::new(LossAggMode::parse(name, 5.0).unwrap(), lengths);
            let weight = normalizer.weights(&rows);
            let whole = ppo(&PolicyInputs::new(&log_prob, &old, &advantage, &weight), &PpoOptions::default()).unwrap();
            let mut parts = PolicyLoss::default();
            for row in 0..rows.len() {
                let range = rows.range(row);
                let weight = normalizer.weights(&Rows::from_lengths([range.len()]));
                let inputs = PolicyInputs::new(
                    &log_prob[range.clone()],
                    &old[range.clone()],
                    &advantage[range.clone()],
                    &weight,
                );
                let part = ppo(&inputs, &PpoOptions::default()).unwrap();
                parts.loss += part.loss;
                parts.d_log_prob.extend(part.d_log_prob);
                parts.metrics.add(&part.metrics);
            }
            assert!((parts.loss - whole.loss).abs() < 1e-15, "{name}");
            assert_eq!(parts.d_log_prob, whole.d_log_prob, "{name}");
            assert_eq!(parts.metrics.clipped, whole.metrics.clipped);
            assert!((parts.metrics.ppo_kl() - whole.metrics.ppo_kl()).abs() < 1e-15);
        }
    }

    #[test]
    fn gradient_is_the_derivative() {
        for (d, a) in [(0.1, 1.0), (0.1, -1.0), (0.9, 1.0), (0.9, -1.0), (-0.9, 1.0), (-0.9, -1.0), (1.5, -2.0)] {
            let h = 1e-6;
            let numeric = (one(d + h, a).loss - one(d - h, a).loss) / (2.0 * h);
            assert!((numeric - one(d, a).d_log_prob[0]).abs() < 1e-7, "{d} {a}");
        }
    }

    #[test]
    fn bad_input_is_refused() {
        let run = |lp: &[f64], a: &[f64], options: PpoOptions| {
            ppo(&PolicyInputs::new(lp, &[-1.0], a, &[1.0]), &options).unwrap_err()
        };
        assert!(matches!(
            run(&[f64::NAN], &[1.0], PpoOptions::default()),
            LossError::Batch(BatchError::NonFinite { what: "log_prob", index: 0, .. })
        ));
        assert!(matches!(
            run(&[-1.0], &[], PpoOptions::default()),
            LossError::Batch(BatchError::Length { what: "advantage", .. })
        ));
        let options = PpoOptions { clip_ratio_c: Some(0.5), ..PpoOptions::default() };
        assert!(matches!(run(&[-1.0], &[1.0], options), LossError::Setting { key: "clip_ratio_c", .. }));
        let empty = ppo(&PolicyInputs::new(&[], &[], &[], &[]), &PpoOptions::default()).unwrap();
        assert_eq!((empty.loss, empty.metrics.pg_clipfrac()), (0.0, 0.0));
    }
}
