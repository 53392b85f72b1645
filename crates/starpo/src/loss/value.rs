//! The critic's loss.

use super::{LossError, check_range, larger};
use crate::tokens::{check_finite, check_len};

/// What the value loss reads, one number per sampled token.
#[derive(Clone, Copy, Debug)]
pub struct ValueInputs<'a> {
    /// V of the critic being updated.
    pub value: &'a [f64],
    /// V before the update.
    pub old_value: &'a [f64],
    /// The targets.
    pub returns: &'a [f64],
    /// Weight of each token in the sum.
    pub weight: &'a [f64],
}

/// The value loss and its derivative.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ValueLoss {
    /// Σ weight·l.
    pub loss: f64,
    /// ∂loss/∂V, one per token.
    pub d_value: Vec<f64>,
    /// Tokens whose clipped term was the larger one.
    pub clipped: f64,
    /// Tokens.
    pub tokens: f64,
}

impl ValueLoss {
    /// Share of clipped tokens (`critic/vf_clipfrac`); 0 without tokens.
    pub fn vf_clipfrac(&self) -> f64 {
        self.clipped / self.tokens.max(1.0)
    }
}

/// l = ½·max((V − Y)², (clip(V, V_old ± ε) − Y)²) (PPO's value clipping; `critic.cliprange_value`).
///
/// # Errors
/// Lengths, numbers that are not finite, a negative range.
pub fn value_loss(inputs: &ValueInputs<'_>, cliprange_value: f64) -> Result<ValueLoss, LossError> {
    check_range("cliprange_value", cliprange_value, cliprange_value >= 0.0, "at least 0")?;
    let n = inputs.value.len();
    let slices = [
        ("value", inputs.value),
        ("old_value", inputs.old_value),
        ("returns", inputs.returns),
        ("weight", inputs.weight),
    ];
    for (what, values) in slices {
        check_len(what, "sampled token", n, values.len())?;
        check_finite(what, values)?;
    }
    let mut out = ValueLoss { d_value: Vec::with_capacity(n), tokens: n as f64, ..ValueLoss::default() };
    for t in 0..n {
        let (value, old, target) = (inputs.value[t], inputs.old_value[t], inputs.returns[t]);
        let (lower, upper) = (old - cliprange_value, old + cliprange_value);
        let clipped = value.clamp(lower, upper);
        let inside = if value >= lower && value <= upper { 1.0 } else { 0.0 };
        let plain = (value - target, 1.0);
        let held = (clipped - target, inside);
        let square = |(error, d): (f64, f64)| (error * error, 2.0 * error * d);
        let (loss, grad) = larger(square(plain), square(held));
        out.clipped += f64::from(u8::from(held.0 * held.0 > plain.0 * plain.0));
        out.loss += 0.5 * inputs.weight[t] * loss;
        out.d_value.push(0.5 * inputs.weight[t] * grad);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_by_hand() {
        let run = |value: f64| {
            let inputs = ValueInputs { value: &[value], old_value: &[0.0], returns: &[1.0], weight: &[1.0] };
            value_loss(&inputs, 0.5).unwrap()
        };
        let inside = run(0.25);
        assert_eq!((inside.loss, inside.d_value[0], inside.clipped), (0.28125, -0.75, 0.0));
        // A value that already moved far towards the target is held where the range ends.
        let held = run(0.9);
        assert_eq!((held.loss, held.d_value[0], held.vf_clipfrac()), (0.125, 0.0, 1.0));
        let wrong = run(-2.0);
        assert_eq!((wrong.loss, wrong.d_value[0]), (4.5, -3.0));
    }

    #[test]
    fn bad_input_is_refused() {
        let inputs = ValueInputs { value: &[f64::NAN], old_value: &[0.0], returns: &[1.0], weight: &[1.0] };
        assert!(value_loss(&inputs, 0.5).is_err());
        assert!(value_loss(&ValueInputs { value: &[1.0], ..inputs }, -1.0).is_err());
        assert!(value_loss(&ValueInputs { value: &[], ..inputs }, 0.5).is_err());
    }
}
