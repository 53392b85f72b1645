//! The plain policy gradient: no ratio, no clip.

use super::{LossError, PolicyInputs, PolicyLoss};

/// l = −A·log π: REINFORCE, and the loss of GPG (arXiv 2504.02546). `old_log_prob` only enters the metrics.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn policy_gradient(inputs: &PolicyInputs<'_>) -> Result<PolicyLoss, LossError> {
    let n = inputs.check()?;
    let mut out = PolicyLoss::with_tokens(n);
    for t in 0..n {
        let grad = -inputs.advantage[t] * inputs.weight[t] * inputs.is(t);
        out.loss += grad * inputs.log_prob[t];
        out.d_log_prob[t] = grad;
        out.metrics.kl -= inputs.log_ratio(t);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let inputs = PolicyInputs {
            is_weight: Some(&[0.5, 1.0]),
            ..PolicyInputs::new(&[-1.0, -2.0], &[-1.5, -2.0], &[2.0, -1.0], &[0.5, 0.5])
        };
        let out = policy_gradient(&inputs).unwrap();
        assert_eq!(out.d_log_prob, vec![-0.5, 0.5]);
        assert_eq!((out.loss, out.metrics.ppo_kl()), (-0.5, -0.25));
    }
}
