//! Estimators of the Kullback–Leibler divergence between the policy and its reference, from the log-probabilities of
//! sampled tokens, with their gradients; and the controllers of its coefficient.
//!
//! With x = log π − log π_ref on a token that π sampled: k1 = x, k2 = x²/2, k3 = e^{−x} + x − 1 (J. Schulman,
//! "Approximating KL divergence", 2020). As a *loss*, k1 has a gradient of expectation zero and k3's gradient belongs
//! to the divergence in the other direction; the straight-through forms (suffix `+`) keep the value and take the
//! gradient of k2, which is the right one on-policy.

use std::str::FromStr;

use crate::aggregate::nearest;
use crate::tokens::{BatchError, check_finite, check_len};

/// The log-ratio of k3 is clamped to ± this before the exponential.
pub const K3_LOG_RATIO_CLAMP: f64 = 20.0;
/// The value of k3 is clamped to ± this.
pub const K3_VALUE_CLAMP: f64 = 10.0;

/// The base estimators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlEstimator {
    /// x: unbiased in value, noisy; no use as a loss.
    K1,
    /// |x|.
    Abs,
    /// x²/2: biased in value, the right gradient.
    K2,
    /// e^{−x} + x − 1: unbiased in value, never negative, low variance.
    K3,
}

/// A KL penalty as named in the configuration (`kl_loss_type`, `kl_penalty`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KlPenalty {
    /// Which estimator gives the value.
    pub estimator: KlEstimator,
    /// Take the gradient of k2 whatever the estimator (suffix `+`).
    pub straight_through: bool,
}

/// A KL penalty that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "unknown KL estimator \"{found}\"; did you mean \"{nearest}\"? Known: kl (k1), abs, mse (k2), low_var_kl (k3), \
     each also with a final + for the gradient of k2"
)]
pub struct UnknownKl {
    /// The name found.
    pub found: String,
    /// The known name nearest to it.
    pub nearest: &'static str,
}

const NAMES: [&str; 14] =
    ["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "kl+", "k1+", "abs+", "mse+", "k2+", "low_var_kl+", "k3+"];

impl FromStr for KlPenalty {
    type Err = UnknownKl;

    fn from_str(name: &str) -> Result<Self, UnknownKl> {
        let (base, straight_through) = match name.strip_suffix('+') {
            Some(base) => (base, true),
            None => (name, false),
        };
        let estimator = match base {
            "kl" | "k1" => KlEstimator::K1,
            "abs" => KlEstimator::Abs,
            "mse" | "k2" => KlEstimator::K2,
            "low_var_kl" | "k3" => KlEstimator::K3,
            _ => return Err(UnknownKl { found: name.to_owned(), nearest: nearest(name, &NAMES) }),
        };
        Ok(Self { estimator, straight_through })
    }
}

impl KlPenalty {
    /// Value on one token.
    pub fn value(self, log_prob: f64, ref_log_prob: f64) -> f64 {
        let x = log_prob - ref_log_prob;
        match self.estimator {
            KlEstimator::K1 => x,
            KlEstimator::Abs => x.abs(),
            KlEstimator::K2 => 0.5 * x * x,
            KlEstimator::K3 => k3(x).clamp(-K3_VALUE_CLAMP, K3_VALUE_CLAMP),
        }
    }

    /// Derivative with respect to `log_prob` on one token; 0 where a clamp is active.
    pub fn grad(self, log_prob: f64, ref_log_prob: f64) -> f64 {
        let x = log_prob - ref_log_prob;
        if self.straight_through {
            return x;
        }
        match self.estimator {
            KlEstimator::K1 => 1.0,
            KlEstimator::Abs if x == 0.0 => 0.0,
            KlEstimator::Abs => x.signum(),
            KlEstimator::K2 => x,
            KlEstimator::K3 if x.abs() > K3_LOG_RATIO_CLAMP || k3(x) > K3_VALUE_CLAMP => 0.0,
            KlEstimator::K3 => 1.0 - (-x).exp(),
        }
    }
}

/// e^{u} − u − 1 with u = −x clamped to ±20.
fn k3(x: f64) -> f64 {
    let u = (-x).clamp(-K3_LOG_RATIO_CLAMP, K3_LOG_RATIO_CLAMP);
    u.exp() - u - 1.0
}

/// A loss term that depends on the log-probabilities alone.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct KlTerm {
    /// Σ weight·KL.
    pub loss: f64,
    /// Its derivative with respect to each log-probability.
    pub d_log_prob: Vec<f64>,
    /// Σ KL, without weights (divide by the number of tokens for the mean).
    pub sum: f64,
}

/// The KL loss Σ weight·KL(log π, log π_ref), before its coefficient.
///
/// # Shapes
/// All slices hold one number per sampled token.
///
/// # Errors
/// [`BatchError::Length`] and [`BatchError::NonFinite`].
pub fn kl_loss(
    log_prob: &[f64],
    ref_log_prob: &[f64],
    weight: &[f64],
    penalty: KlPenalty,
) -> Result<KlTerm, BatchError> {
    check_len("ref_log_prob", "token", log_prob.len(), ref_log_prob.len())?;
    check_len("weight", "token", log_prob.len(), weight.len())?;
    check_finite("log_prob", log_prob)?;
    check_finite("ref_log_prob", ref_log_prob)?;
    let mut out = KlTerm { d_log_prob: Vec::with_capacity(log_prob.len()), ..KlTerm::default() };
    for ((lp, rp), w) in log_prob.iter().zip(ref_log_prob).zip(weight) {
        let value = penalty.value(*lp, *rp);
        out.sum += value;
        out.loss += w * value;
        out.d_log_prob.push(w * penalty.grad(*lp, *rp));
    }
    Ok(out)
}

/// The coefficient of a KL penalty in the reward (`algorithm.kl_ctrl`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KlController {
    /// A constant coefficient.
    Fixed {
        /// The coefficient.
        coef: f64,
    },
    /// The proportional controller of Ziegler et al. (arXiv 1909.08593, section 2.2).
    Adaptive {
        /// The present coefficient.
        coef: f64,
        /// The divergence aimed at, in nats.
        target: f64,
        /// Steps over which a full error would move the coefficient by about a fifth.
        horizon: f64,
    },
}

impl KlController {
    /// The present coefficient.
    pub fn coef(&self) -> f64 {
        match self {
            Self::Fixed { coef } | Self::Adaptive { coef, .. } => *coef,
        }
    }

    /// Tells the controller the divergence measured over `steps` samples:
    /// β ← β·(1 + clip(KL/target − 1, ±0.2)·steps/horizon). A measurement that is not finite changes nothing.
    pub fn update(&mut self, measured_kl: f64, steps: usize) {
        if let Self::Adaptive { coef, target, horizon } = self {
            let error = (measured_kl / *target - 1.0).clamp(-0.2, 0.2);
            let factor = 1.0 + error * steps as f64 / *horizon;
            if factor.is_finite() {
                *coef *= factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_mistakes_named() {
        for name in NAMES {
            assert!(name.parse::<KlPenalty>().is_ok(), "{name}");
        }
        assert_eq!("low-var-kl".parse::<KlPenalty>().unwrap_err().nearest, "low_var_kl");
        assert!("full".parse::<KlPenalty>().is_err());
        assert!("".parse::<KlPenalty>().is_err());
    }

    #[test]
    fn values_by_hand() {
        let value = |name: &str| name.parse::<KlPenalty>().unwrap().value(-1.0, -1.5);
        assert_eq!(value("k1"), 0.5);
        assert_eq!(value("abs"), 0.5);
        assert_eq!(value("k2"), 0.125);
        assert!((value("k3") - ((-0.5f64).exp() + 0.5 - 1.0)).abs() < 1e-15);
        assert_eq!("k3".parse::<KlPenalty>().unwrap().value(-30.0, -0.1), 10.0);
        assert_eq!("k3".parse::<KlPenalty>().unwrap().grad(-30.0, -0.1), 0.0);
    }

    #[test]
    fn gradients_are_the_derivatives() {
        for name in NAMES.iter().filter(|name| !name.ends_with('+')) {
            let penalty: KlPenalty = name.parse().unwrap();
            for lp in [-3.0, -1.2, -0.3] {
                let h = 1e-6;
                let numeric = (penalty.value(lp + h, -1.0) - penalty.value(lp - h, -1.0)) / (2.0 * h);
                assert!((numeric - penalty.grad(lp, -1.0)).abs() < 1e-8, "{name} at {lp}");
            }
        }
    }

    #[test]
    fn loss_weighs_tokens_and_refuses_bad_input() {
        let k2: KlPenalty = "k2".parse().unwrap();
        let term = kl_loss(&[-1.0, -2.0], &[-2.0, -2.0], &[0.25, 0.75], k2).unwrap();
        assert_eq!(term, KlTerm { loss: 0.125, d_log_prob: vec![0.25, 0.0], sum: 0.5 });
        assert!(kl_loss(&[-1.0], &[], &[1.0], k2).is_err());
        assert!(kl_loss(&[f64::NAN], &[-1.0], &[1.0], k2).is_err());
    }

    #[test]
    fn a_broken_measurement_does_not_move_the_controller() {
        let mut controller = KlController::Adaptive { coef: 0.2, target: 0.1, horizon: 100.0 };
        controller.update(f64::NAN, 10);
        assert_eq!(controller.coef(), 0.2);
        controller.update(1.0, 10);
        assert!((controller.coef() - 0.2 * 1.02).abs() < 1e-15);
        let mut fixed = KlController::Fixed { coef: 0.3 };
        fixed.update(9.0, 10);
        assert_eq!(fixed.coef(), 0.3);
    }
}
