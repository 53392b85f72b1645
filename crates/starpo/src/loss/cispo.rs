//! CISPO: a clipped importance weight in front of a plain policy gradient.

use super::{LossError, PolicyInputs, PolicyLoss, check_range, clamped_ratio};

/// Settings of [`cispo`]. The ratio is clipped to [1 − `clip_ratio_low`, 1 + `clip_ratio_high`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CispoOptions {
    /// Distance of the lower bound from 1; 1 leaves the ratio without one, as the paper does.
    pub clip_ratio_low: f64,
    /// Distance of the upper bound from 1.
    pub clip_ratio_high: f64,
}

impl CispoOptions {
    /// No lower bound and an absolute cap: 5 in ScaleRL (arXiv 2510.13786).
    pub fn capped(cap: f64) -> Self {
        Self { clip_ratio_low: 1.0, clip_ratio_high: cap - 1.0 }
    }
}

impl Default for CispoOptions {
    fn default() -> Self {
        Self::capped(5.0)
    }
}

/// CISPO (MiniMax-M1, arXiv 2506.13585): l = −sg(clip(ρ))·A·log π. No token loses its gradient.
///
/// `clipped` counts tokens whose ratio lies outside the range.
///
/// # Errors
/// Lengths, numbers that are not finite, settings out of range.
pub fn cispo(inputs: &PolicyInputs<'_>, options: &CispoOptions) -> Result<PolicyLoss, LossError> {
    let (low, high) = (options.clip_ratio_low, options.clip_ratio_high);
    check_range("clip_ratio_low", low, low >= 0.0, "at least 0")?;
    check_range("clip_ratio_high", high, high >= 0.0, "at least 0")?;
    let n = inputs.check()?;
    let mut out = PolicyLoss::with_tokens(n);
    for t in 0..n {
        let (ratio, _) = clamped_ratio(inputs.log_ratio(t));
        let clipped = ratio.clamp(1.0 - low, 1.0 + high);
        let grad = -clipped * inputs.advantage[t] * inputs.weight[t] * inputs.is(t);
        out.loss += grad * inputs.log_prob[t];
        out.d_log_prob[t] = grad;
        out.metrics.clipped += f64::from(u8::from(clipped != ratio));
        out.metrics.kl -= inputs.log_ratio(t).clamp(-super::LOG_RATIO_CLAMP, super::LOG_RATIO_CLAMP);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clipped_token_keeps_its_gradient() {
        let inputs = PolicyInputs::new(&[-1.0], &[-4.0], &[2.0], &[0.5]);
        let out = cispo(&inputs, &CispoOptions::capped(5.0)).unwrap();
        assert_eq!((out.loss, out.d_log_prob[0], out.metrics.clipped), (5.0, -5.0, 1.0));
        assert!(cispo(&inputs, &CispoOptions::capped(0.5)).is_err());
    }
}
