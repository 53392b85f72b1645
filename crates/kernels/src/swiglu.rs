//! The gated activation of feed-forward layers, `silu(gate) · up` (Shazeer 2020, equation 6).
//!
//! Element by element: no result depends on any other element.

use rayon::prelude::*;

use crate::math::sigmoid;
use crate::simd::multiversion;

/// Elements above which the work is spread over threads, and elements of one piece.
const PARALLEL_FROM: usize = 1 << 16;
const PIECE: usize = 1 << 14;

/// `out = silu(gate) · up` with `silu(x) = x / (1 + e⁻ˣ)`.
///
/// # Shapes
/// All `[n]`.
///
/// # Panics
/// If a slice has not exactly `n` elements.
pub fn swiglu(n: usize, gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert_eq!(gate.len(), n, "gate must have n elements");
    assert_eq!(up.len(), n, "up must have n elements");
    assert_eq!(out.len(), n, "out must have n elements");
    if n < PARALLEL_FROM {
        forward_piece(gate, up, out);
        return;
    }
    (gate.par_chunks(PIECE), up.par_chunks(PIECE), out.par_chunks_mut(PIECE))
        .into_par_iter()
        .for_each(|(gate, up, out)| forward_piece(gate, up, out));
}

/// Writes the gradients of [`swiglu`] over `dgate` and `dup`.
///
/// With `s = sigmoid(gate)`: `dgate = dout · up · s · (1 + gate · (1 − s))`, `dup = dout · gate · s`.
///
/// # Shapes
/// All `[n]`.
///
/// # Panics
/// If a slice has not exactly `n` elements.
pub fn swiglu_backward(n: usize, gate: &[f32], up: &[f32], dout: &[f32], dgate: &mut [f32], dup: &mut [f32]) {
    assert_eq!(gate.len(), n, "gate must have n elements");
    assert_eq!(up.len(), n, "up must have n elements");
    assert_eq!(dout.len(), n, "dout must have n elements");
    assert_eq!(dgate.len(), n, "dgate must have n elements");
    assert_eq!(dup.len(), n, "dup must have n elements");
    if n < PARALLEL_FROM {
        backward_piece(gate, up, dout, dgate, dup);
        return;
    }
    (
        gate.par_chunks(PIECE),
        up.par_chunks(PIECE),
        dout.par_chunks(PIECE),
        dgate.par_chunks_mut(PIECE),
        dup.par_chunks_mut(PIECE),
    )
        .into_par_iter()
        .for_each(|(gate, up, dout, dgate, dup)| backward_piece(gate, up, dout, dgate, dup));
}

multiversion! {
    fn forward_piece(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, &gate), &up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate * sigmoid(gate) * up;
        }
    }
}

multiversion! {
    fn backward_piece(gate: &[f32], up: &[f32], dout: &[f32], dgate: &mut [f32], dup: &mut [f32]) {
        let inputs = gate.iter().zip(up).zip(dout);
        for (((&gate, &up), &dout), (dgate, dup)) in inputs.zip(dgate.iter_mut().zip(dup.iter_mut())) {
            let s = sigmoid(gate);
            *dup = dout * (gate * s);
            *dgate = dout * up * (s * gate.mul_add(1.0 - s, 1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturates_without_faults() {
        let gate = [-1e4, -100.0, 0.0, 100.0, 1e4];
        let mut out = [f32::NAN; 5];
        swiglu(5, &gate, &[2.0; 5], &mut out);
        assert_eq!(out, [0.0, 0.0, 0.0, 200.0, 2e4]);
        let (mut dgate, mut dup) = ([f32::NAN; 5], [f32::NAN; 5]);
        swiglu_backward(5, &gate, &[2.0; 5], &[3.0; 5], &mut dgate, &mut dup);
        assert_eq!(dgate, [0.0, 0.0, 3.0, 6.0, 6.0]);
        assert_eq!(dup, [0.0, 0.0, 0.0, 300.0, 3e4]);
    }

    #[test]
    fn an_element_depends_on_itself_alone() {
        let n = PARALLEL_FROM + 5;
        let gate: Vec<f32> = (0..n).map(|i| (i % 211) as f32 * 0.1 - 10.0).collect();
        let up: Vec<f32> = (0..n).map(|i| (i % 17) as f32 - 8.0).collect();
        let mut all = vec![0.0; n];
        swiglu(n, &gate, &up, &mut all);
        for at in [0, 15, 16, PIECE - 1, PIECE, n - 1] {
            let mut one = [0.0];
            swiglu(1, &gate[at..=at], &up[at..=at], &mut one);
            assert_eq!(one[0].to_bits(), all[at].to_bits(), "{at}");
        }
    }

    #[test]
    #[should_panic(expected = "up must have n elements")]
    fn wrong_lengths_are_refused() {
        swiglu(2, &[0.0; 2], &[0.0; 3], &mut [0.0; 2]);
    }
}
