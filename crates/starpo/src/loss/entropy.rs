//! Terms that act on the entropy: the bonus, its adaptive coefficient, the penalty on leaving a band.

use super::{LossError, check_range};
use crate::tokens::{check_finite, check_len};

/// A term of the loss that depends on the entropies.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EntropyTerm {
    /// Its value.
    pub loss: f64,
    /// ∂loss/∂entropy, one per token.
    pub d_entropy: Vec<f64>,
    /// Σ weight·H (the aggregated entropy).
    pub entropy: f64,
}

/// The entropy bonus −coeff·Σ weight·H (`entropy_coeff`).
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn entropy_bonus(entropy: &[f64], weight: &[f64], entropy_coeff: f64) -> Result<EntropyTerm, LossError> {
    check_len("weight", "sampled token", entropy.len(), weight.len())?;
    check_finite("entropy", entropy)?;
    let aggregated: f64 = entropy.iter().zip(weight).map(|(h, w)| h * w).sum();
    let d_entropy = weight.iter().map(|w| -entropy_coeff * w).collect();
    Ok(EntropyTerm { loss: -entropy_coeff * aggregated, d_entropy, entropy: aggregated })
}

/// The adaptive coefficient of Skywork-OR1 (arXiv 2505.22312): a bonus only while the entropy is below a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveEntropy {
    /// α, the coefficient in waiting.
    pub alpha: f64,
    /// Smallest α.
    pub min: f64,
    /// Largest α.
    pub max: f64,
    /// Step of α per update.
    pub delta: f64,
    /// Target entropy H*, in nats per token.
    pub target: f64,
    /// The entropy last measured.
    pub measured: Option<f64>,
}

impl AdaptiveEntropy {
    /// The coefficient of the next update: α if the last entropy was at most the target, else 0; 0 before the first
    /// measurement.
    pub fn coeff(&self) -> f64 {
        if self.measured.is_some_and(|h| h <= self.target) { self.alpha } else { 0.0 }
    }

    /// Tells the mean token entropy measured after an update. One that is not finite changes nothing.
    pub fn update(&mut self, entropy: f64) {
        if !entropy.is_finite() {
            return;
        }
        self.alpha = if entropy <= self.target {
            (self.alpha + self.delta).min(self.max)
        } else {
            (self.alpha - self.delta).max(self.min)
        };
        self.measured = Some(entropy);
    }
}

/// What leaving the entropy band costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BandPenalty {
    /// A constant outside the band, as EPO's code has it: it moves the reported loss and has *no* gradient.
    Constant {
        /// The cost of a token outside.
        cost: f64,
    },
    /// The distance to the band: differs from the published code, and acts on the policy.
    Hinge,
}

/// The entropy band of EPO (arXiv 2509.22576): a penalty on tokens whose entropy leaves (κ_l H̄, κ_r H̄), with H̄ the
/// running mean entropy of their step position over past updates.
///
/// # Shapes
/// `entropy`, `reference` (H̄) and `weight`: one per token. The term is coeff·Σ weight·P.
///
/// # Errors
/// Lengths, numbers that are not finite, κ_l > κ_r.
pub fn entropy_band(
    entropy: &[f64],
    reference: &[f64],
    weight: &[f64],
    kappa: (f64, f64),
    penalty: BandPenalty,
    coeff: f64,
) -> Result<EntropyTerm, LossError> {
    check_len("reference", "sampled token", entropy.len(), reference.len())?;
    check_len("weight", "sampled token", entropy.len(), weight.len())?;
    check_finite("entropy", entropy)?;
    check_finite("reference", reference)?;
    check_range("kappa_l", kappa.0, kappa.0 <= kappa.1, "at most kappa_r")?;
    let mut out = EntropyTerm { d_entropy: Vec::with_capacity(entropy.len()), ..EntropyTerm::default() };
    for ((h, mean), w) in entropy.iter().zip(reference).zip(weight) {
        let (below, above) = (kappa.0 * mean - h, h - kappa.1 * mean);
        let (value, d) = match penalty {
            BandPenalty::Constant { cost } if below > 0.0 || above > 0.0 => (cost, 0.0),
            BandPenalty::Hinge if below > 0.0 => (below, -1.0),
            BandPenalty::Hinge if above > 0.0 => (above, 1.0),
            _ => (0.0, 0.0),
        };
        out.loss += coeff * w * value;
        out.d_entropy.push(coeff * w * d);
        out.entropy += w * h;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonus_by_hand() {
        let out = entropy_bonus(&[1.0, 3.0], &[0.5, 0.5], 0.1).unwrap();
        assert_eq!((out.loss, out.entropy), (-0.2, 2.0));
        assert_eq!(out.d_entropy, vec![-0.05, -0.05]);
        assert!(entropy_bonus(&[f64::NAN], &[1.0], 0.1).is_err());
        assert!(entropy_bonus(&[1.0], &[], 0.1).is_err());
    }

    #[test]
    fn the_coefficient_waits_for_a_measurement() {
        let mut rule = AdaptiveEntropy { alpha: 0.0, min: 0.0, max: 0.02, delta: 0.01, target: 0.5, measured: None };
        assert_eq!(rule.coeff(), 0.0);
        rule.update(0.4);
        assert_eq!(rule.coeff(), 0.01);
        rule.update(f64::NAN);
        rule.update(0.5);
        rule.update(0.3);
        assert_eq!(rule.coeff(), 0.02, "held at the maximum");
        rule.update(0.9);
        assert_eq!((rule.coeff(), rule.alpha), (0.0, 0.01));
    }

    #[test]
    fn the_band_pushes_back_from_both_sides() {
        let run = |penalty| entropy_band(&[0.2, 1.0, 3.0], &[1.0; 3], &[1.0; 3], (0.5, 2.0), penalty, 2.0).unwrap();
        let hinge = run(BandPenalty::Hinge);
        assert!((hinge.loss - 2.0 * 1.3).abs() < 1e-12);
        assert_eq!(hinge.d_entropy, vec![-2.0, 0.0, 2.0]);
        let constant = run(BandPenalty::Constant { cost: 0.1 });
        assert!((constant.loss - 0.4).abs() < 1e-12);
        assert_eq!(constant.d_entropy, vec![0.0; 3]);
        assert!(entropy_band(&[1.0], &[1.0], &[1.0], (2.0, 1.0), BandPenalty::Hinge, 1.0).is_err());
    }
}
