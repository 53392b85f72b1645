//! Reductions over whole gradients, in blocks of fixed size whose partial sums are added in order.

use rayon::prelude::*;

use crate::simd::{LANES, multiversion};

/// Elements of one partial sum.
const BLOCK: usize = 1 << 14;
/// Elements above which the blocks are spread over threads.
const PARALLEL_FROM: usize = 1 << 16;

/// `Σ x²`, accumulated in `f64`; the same bits for any number of threads.
pub fn sum_of_squares(x: &[f32]) -> f64 {
    if x.len() < PARALLEL_FROM {
        return x.chunks(BLOCK).map(block_sum_of_squares).sum();
    }
    let partial: Vec<f64> = x.par_chunks(BLOCK).map(block_sum_of_squares).collect();
    partial.iter().sum()
}

multiversion! {
    fn block_sum_of_squares(x: &[f32]) -> f64 {
        let mut lanes = [0f64; LANES];
        let chunks = x.chunks_exact(LANES);
        let tail = chunks.remainder();
        for chunk in chunks {
            for i in 0..LANES {
                // The square of an `f32` is exact in `f64`.
                lanes[i] += f64::from(chunk[i]) * f64::from(chunk[i]);
            }
        }
        for (lane, &value) in lanes.iter_mut().zip(tail) {
            *lane += f64::from(value) * f64::from(value);
        }
        lanes.iter().sum()
    }
}

/// The factor that scales gradients of global norm `norm` down to `max_norm`, at most 1.
///
/// `max_norm / (norm + 1e-6)`, as PyTorch's `clip_grad_norm_`. A norm that is not finite gives what the formula gives
/// (0 or NaN): the caller decides whether to skip the step.
pub fn clip_factor(norm: f64, max_norm: f64) -> f32 {
    let factor = max_norm / (norm + 1e-6);
    if factor > 1.0 { 1.0 } else { factor as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_squares_against_a_plain_sum() {
        for n in [0usize, 1, 15, 17, BLOCK, BLOCK + 1, 4 * BLOCK, 100_003] {
            let x: Vec<f32> = (0..n).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
            // Small integers: every order of summation is exact.
            let exact: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            assert_eq!(sum_of_squares(&x), exact, "{n}");
        }
    }

    #[test]
    fn sum_of_squares_neither_overflows_nor_hides_faults() {
        assert_eq!(sum_of_squares(&[1e30, 0.0]), f64::from(1e30f32).powi(2));
        assert!(sum_of_squares(&[1.0, f32::NAN]).is_nan());
        assert_eq!(sum_of_squares(&[f32::NEG_INFINITY]), f64::INFINITY);
    }

    #[test]
    fn clip_factor_as_pytorch() {
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert_eq!(clip_factor(0.0, 1.0), 1.0);
        assert!((f64::from(clip_factor(4.0, 1.0)) - 1.0 / 4.000_001).abs() < 1e-8);
        assert_eq!(clip_factor(f64::INFINITY, 1.0), 0.0);
        assert!(clip_factor(f64::NAN, 1.0).is_nan());
    }
}
