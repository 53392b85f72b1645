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
