//! SAPO: a smooth gate in place of the clip.

use super::{LossError, PolicyInputs, PolicyLoss, check_range, clamped_ratio};

/// Settings of [`sapo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SapoOptions {
    /// τ for positive advantages (`tau_pos`).
    pub tau_pos: f64,
    /// τ for the others (`tau_neg`); larger decays faster.
    pub tau_neg: f64,
}

impl Default for SapoOptions {
    fn default() -> Self {
        Self { tau_pos: 1.0, tau_neg: 1.05 }
    }
}

/// SAPO (arXiv 2511.20347): l = −A·(4/τ)·sigmoid(τ(ρ − 1)). The weight of a token's gradient is 1 at ρ = 1 and fades
/// smoothly. Meant for the mean over rows of token means. Nothing is clipped.
///
/// # Errors
/// Lengths, numbers that are not finite, a τ that is not positive.
pub fn sapo(inputs: &PolicyInputs<'_>, options: &SapoOptions) -> Result<PolicyLoss, LossError> {
    check_range("tau_pos", options.tau_pos, options.tau_pos > 0.0, "above 0")?;
    check_range("tau_neg", options.tau_neg, options.tau_neg > 0.0, "above 0")?;
    let n = inputs.check()?;
    let mut out = PolicyLoss::with_tokens(n);
    for t in 0..n {
        let (ratio, d_ratio) = clamped_ratio(inputs.log_ratio(t));
        let tau = if inputs.advantage[t] > 0.0 { options.tau_pos } else { options.tau_neg };
        let gate = 1.0 / (1.0 + (-tau * (ratio - 1.0)).exp());
        let scale = -inputs.advantage[t] * inputs.weight[t] * inputs.is(t);
        out.loss += scale * 4.0 / tau * gate;
        out.d_log_prob[t] = scale * 4.0 * gate * (1.0 - gate) * d_ratio;
        out.metrics.kl -= inputs.log_ratio(t).clamp(-super::LOG_RATIO_CLAMP, super::LOG_RATIO_CLAMP);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_policy_the_gradient_is_the_advantage() {
        let inputs = PolicyInputs::new(&[-1.0, -2.0], &[-1.0, -2.0], &[3.0, -2.0], &[1.0, 1.0]);
        let out = sapo(&inputs, &SapoOptions::default()).unwrap();
        assert_eq!(out.d_log_prob, vec![-3.0, 2.0]);
        assert!((out.loss - (-6.0 + 2.0 * 2.0 / 1.05)).abs() < 1e-12);
        assert!(sapo(&inputs, &SapoOptions { tau_pos: 0.0, tau_neg: 1.0 }).is_err());
    }
}
