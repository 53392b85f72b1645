//! The KL term whose gradient is the gradient of the divergence (DeepSeek-V3.2, arXiv 2512.02556).

use super::LossError;
use crate::kl::KlTerm;
use crate::tokens::{Rows, check_finite, check_len};

/// Which ratio corrects the estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RatioLevel {
    /// ρ of the token.
    #[default]
    Token,
    /// exp(mean_t d) of the row.
    Sequence,
}

/// Σ weight·ρ·(e^u − u − 1) with u = log π_ref − log π, the gradient taken through ρ as well. Plain k3 has the right
/// value and the gradient of the other direction.
///
/// # Shapes
/// All slices hold one number per token of `rows`.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn unbiased_kl(
    rows: &Rows,
    log_prob: &[f64],
    old_log_prob: &[f64],
    ref_log_prob: &[f64],
    weight: &[f64],
    level: RatioLevel,
) -> Result<KlTerm, LossError> {
    let n = rows.tokens();
    let slices =
        [("log_prob", log_prob), ("old_log_prob", old_log_prob), ("ref_log_prob", ref_log_prob), ("weight", weight)];
    for (what, values) in slices {
        check_len(what, "sampled token", n, values.len())?;
        check_finite(what, values)?;
    }
    let mut out = KlTerm { d_log_prob: vec![0.0; n], ..KlTerm::default() };
    for range in rows.ranges() {
        let length = range.len().max(1) as f64;
        let mean = range.clone().map(|t| log_prob[t] - old_log_prob[t]).sum::<f64>() / length;
        let mut row = 0.0;
        for t in range.clone() {
            let u = ref_log_prob[t] - log_prob[t];
            let k3 = u.exp() - u - 1.0;
            let ratio = match level {
                RatioLevel::Token => (log_prob[t] - old_log_prob[t]).exp(),
                RatioLevel::Sequence => mean.exp(),
            };
            out.sum += ratio * k3;
            row += weight[t] * ratio * k3;
            out.d_log_prob[t] = weight[t] * ratio * (1.0 - u.exp());
            if level == RatioLevel::Token {
                out.d_log_prob[t] += weight[t] * ratio * k3;
            }
        }
        out.loss += row;
        if level == RatioLevel::Sequence {
            for t in range {
                out.d_log_prob[t] += row / length;
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_the_derivatives() {
        let rows = Rows::from_lengths([2, 1]);
        let (old, reference, weight) = ([-1.0, -0.5, -2.0], [-1.3, -0.4, -1.0], [0.25, 0.25, 0.5]);
        for level in [RatioLevel::Token, RatioLevel::Sequence] {
            let run = |lp: &[f64]| unbiased_kl(&rows, lp, &old, &reference, &weight, level).unwrap();
            let base = [-0.8, -0.9, -1.6];
            let grad = run(&base).d_log_prob;
            for t in 0..3 {
                let (mut up, mut down) = (base, base);
                up[t] += 1e-6;
                down[t] -= 1e-6;
                let numeric = (run(&up).loss - run(&down).loss) / 2e-6;
                assert!((numeric - grad[t]).abs() < 1e-8, "{level:?} {t}");
            }
        }
    }

    #[test]
    fn on_policy_the_expected_gradient_is_that_of_the_divergence() {
        // Two outcomes with p = (q, 1 − q), reference (r, 1 − r): E[∂term/∂log p · ∂log p/∂q] = d KL/dq.
        let (q, r) = (0.3f64, 0.6f64);
        let expected = |outcome: f64, reference: f64, d: f64| {
            let rows = Rows::from_lengths([1]);
            let lp = [outcome.ln()];
            let term = unbiased_kl(&rows, &lp, &lp, &[reference.ln()], &[1.0], RatioLevel::Token).unwrap();
            outcome * term.d_log_prob[0] * d / outcome
        };
        let got = expected(q, r, 1.0) + expected(1.0 - q, 1.0 - r, -1.0);
        let want = (q / r).ln() - ((1.0 - q) / (1.0 - r)).ln();
        assert!((got - want).abs() < 1e-12);
    }
}
