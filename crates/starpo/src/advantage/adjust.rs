//! What may be multiplied onto advantages after they are computed. All of it scales the policy gradient only, never
//! the entropy or KL terms.

use std::str::FromStr;

use crate::aggregate::nearest;

/// Soft re-weighting (RAGEN-2, arXiv 2604.06268; `soft_advantage_reweight`): w = σ_g/(max_g σ_g + 1e-6), the soft form
/// of the reward-variance filter. Deviations that are not finite weigh 0.
///
/// # Shapes
/// `group_std` and the result: one per row.
pub fn soft_weights(group_std: &[f64]) -> Vec<f64> {
    let finite = |std: &f64| if std.is_finite() { *std } else { 0.0 };
    let largest = group_std.iter().map(finite).fold(0.0, f64::max);
    group_std.iter().map(|std| finite(std) / (largest + 1e-6)).collect()
}

/// Length weights (`grpo_advantage_length_weight`): w_i = 1/((n_i + 1e-6)/mean n), so that a long row does not push
/// more than a short one.
///
/// # Shapes
/// `lengths` (sampled tokens) and the result: one per row. Rows without tokens weigh 0.
pub fn length_weights(lengths: &[usize]) -> Vec<f64> {
    let mean = lengths.iter().map(|n| *n as f64).sum::<f64>() / lengths.len().max(1) as f64;
    lengths.iter().map(|n| if *n == 0 { 0.0 } else { mean / (*n as f64 + 1e-6) }).collect()
}

/// How the advantages shrink when the filter keeps few groups (`filter_loss_scaling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterLossScaling {
    /// Not at all.
    #[default]
    None,
    /// By the kept ratio.
    Linear,
    /// By its square root.
    Sqrt,
}

impl FilterLossScaling {
    /// The factor for `kept` of `groups` groups; 1 when there were none.
    pub fn factor(self, kept: usize, groups: usize) -> f64 {
        if groups == 0 {
            return 1.0;
        }
        let ratio = kept as f64 / groups as f64;
        match self {
            Self::None => 1.0,
            Self::Linear => ratio,
            Self::Sqrt => ratio.sqrt(),
        }
    }
}

/// An unknown `filter_loss_scaling`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("unknown filter_loss_scaling \"{found}\"; did you mean \"{nearest}\"? Known: none, linear, sqrt")]
pub struct UnknownScaling {
    /// The name found.
    pub found: String,
    /// The known name nearest to it.
    pub nearest: &'static str,
}

impl FromStr for FilterLossScaling {
    type Err = UnknownScaling;

    fn from_str(name: &str) -> Result<Self, UnknownScaling> {
        match name {
            "none" => Ok(Self::None),
            "linear" => Ok(Self::Linear),
            "sqrt" => Ok(Self::Sqrt),
            _ => Err(UnknownScaling { found: name.to_owned(), nearest: nearest(name, &["none", "linear", "sqrt"]) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_weights_are_relative_to_the_largest() {
        let got = soft_weights(&[0.0, 1.0, 2.0, f64::NAN]);
        for (g, w) in got.iter().zip([0.0, 0.5, 1.0, 0.0]) {
            assert!((g - w).abs() < 1e-6);
        }
        assert_eq!(soft_weights(&[0.0, 0.0]), vec![0.0, 0.0]);
        assert!(soft_weights(&[]).is_empty());
    }

    #[test]
    fn length_weights_undo_length() {
        let got = length_weights(&[10, 30, 0]);
        assert!((got[0] * 10.0 - got[1] * 30.0).abs() < 1e-4);
        assert_eq!(got[2], 0.0);
        assert!(length_weights(&[]).is_empty());
    }

    #[test]
    fn scaling_by_what_was_kept() {
        assert_eq!("sqrt".parse::<FilterLossScaling>().unwrap().factor(2, 8), 0.5);
        assert_eq!("linear".parse::<FilterLossScaling>().unwrap().factor(2, 8), 0.25);
        assert_eq!("none".parse::<FilterLossScaling>().unwrap().factor(2, 8), 1.0);
        assert_eq!(FilterLossScaling::Linear.factor(0, 0), 1.0);
        assert_eq!("square".parse::<FilterLossScaling>().unwrap_err().nearest, "sqrt");
    }
}
