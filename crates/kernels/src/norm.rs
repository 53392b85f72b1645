//! Root-mean-square normalisation over the last axis (Zhang and Sennrich 2019, equation 4).
//!
//! `y = x · rstd · weight` with `rstd = 1 / √(mean(x²) + eps)`. Normalising each attention head is the same function
//! with `rows = tokens * heads` and `dim = head_dim`.
//! What is not here: layer normalisation, biases.

use rayon::prelude::*;

use crate::simd::{LANES, multiversion, sum_lanes};

/// Elements above which the rows are spread over threads.
const PARALLEL_FROM: usize = 1 << 16;
/// Rows whose contributions to the weight's gradient are summed before they are added to the total.
const BLOCK: usize = 64;

/// Normalises every row and keeps the reciprocal root mean square for the backward pass.
///
/// # Shapes
/// `x`, `y`: `[rows, dim]`; `weight`: `[dim]`; `rstd`: `[rows]`.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn rms_norm(rows: usize, dim: usize, x: &[f32], weight: &[f32], eps: f32, y: &mut [f32], rstd: &mut [f32]) {
    assert_eq!(x.len(), rows * dim, "x must have rows * dim elements");
    assert_eq!(y.len(), rows * dim, "y must have rows * dim elements");
    assert_eq!(weight.len(), dim, "weight must have dim elements");
    assert_eq!(rstd.len(), rows, "rstd must have rows elements");
    if x.is_empty() {
        return;
    }
    if x.len() < PARALLEL_FROM {
        forward_rows(dim, x, weight, eps, y, rstd);
        return;
    }
    (x.par_chunks(BLOCK * dim), y.par_chunks_mut(BLOCK * dim), rstd.par_chunks_mut(BLOCK))
        .into_par_iter()
        .for_each(|(x, y, rstd)| forward_rows(dim, x, weight, eps, y, rstd));
}

/// [`rms_norm`] in place, without what only the backward pass needs; the same bits.
///
/// # Shapes
/// `x`: `[rows, dim]`; `weight`: `[dim]`.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn rms_norm_in_place(rows: usize, dim: usize, x: &mut [f32], weight: &[f32], eps: f32) {
    assert_eq!(x.len(), rows * dim, "x must have rows * dim elements");
    assert_eq!(weight.len(), dim, "weight must have dim elements");
    if x.is_empty() {
        return;
    }
    if x.len() < PARALLEL_FROM {
        in_place_rows(dim, x, weight, eps);
        return;
    }
    x.par_chunks_mut(BLOCK * dim).for_each(|x| in_place_rows(dim, x, weight, eps));
}

/// Adds the gradients of [`rms_norm`] to `dx` and `dweight`.
///
/// With `x̂ = x · rstd` and `g = dy · weight`: `dx += rstd · (g − x̂ · mean(g · x̂))`, `dweight += Σ_rows dy · x̂`, the sum
/// taken in blocks of 64 rows that are added in order.
///
/// # Shapes
/// `x`, `dy`, `dx`: `[rows, dim]`; `weight`, `dweight`: `[dim]`; `rstd`: `[rows]`, from the forward pass.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn rms_norm_backward(
    rows: usize,
    dim: usize,
    x: &[f32],
    weight: &[f32],
    rstd: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    dweight: &mut [f32],
) {
    assert_eq!(x.len(), rows * dim, "x must have rows * dim elements");
    assert_eq!(dy.len(), rows * dim, "dy must have rows * dim elements");
    assert_eq!(dx.len(), rows * dim, "dx must have rows * dim elements");
    assert_eq!(weight.len(), dim, "weight must have dim elements");
    assert_eq!(dweight.len(), dim, "dweight must have dim elements");
    assert_eq!(rstd.len(), rows, "rstd must have rows elements");
    if x.is_empty() {
        return;
    }
    let mut partial = vec![0.0; rows.div_ceil(BLOCK) * dim];
    let blocks = (
        x.par_chunks(BLOCK * dim),
        rstd.par_chunks(BLOCK),
        dy.par_chunks(BLOCK * dim),
        dx.par_chunks_mut(BLOCK * dim),
        partial.par_chunks_mut(dim),
    )
        .into_par_iter();
    // One piece holds every block when the work is too small to share.
    let shortest = if x.len() < PARALLEL_FROM { rows.div_ceil(BLOCK) } else { 1 };
    blocks
        .with_min_len(shortest)
        .for_each(|(x, rstd, dy, dx, partial)| backward_rows(dim, x, weight, rstd, dy, dx, partial));
    for partial in partial.chunks_exact(dim) {
        for (total, part) in dweight.iter_mut().zip(partial) {
            *total += part;
        }
    }
}

/// `1 / √(mean(x²) + eps)` of one row.
#[inline(always)]
fn reciprocal_rms(x: &[f32], eps: f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = chunk[i].mul_add(chunk[i], lanes[i]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(tail) {
        *lane = value.mul_add(value, *lane);
    }
    1.0 / (sum_lanes(lanes) / x.len() as f32 + eps).sqrt()
}

multiversion! {
    fn forward_rows(dim: usize, x: &[f32], weight: &[f32], eps: f32, y: &mut [f32], rstd: &mut [f32]) {
        for ((x, y), rstd) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)).zip(rstd) {
            *rstd = reciprocal_rms(x, eps);
            for ((y, &x), &weight) in y.iter_mut().zip(x).zip(weight) {
                *y = x * *rstd * weight;
            }
        }
    }
}

multiversion! {
    fn in_place_rows(dim: usize, x: &mut [f32], weight: &[f32], eps: f32) {
        for x in x.chunks_exact_mut(dim) {
            let rstd = reciprocal_rms(x, eps);
            for (x, &weight) in x.iter_mut().zip(weight) {
                *x = *x * rstd * weight;
            }
        }
    }
}

multiversion! {
    fn backward_rows(
        dim: usize, x: &[f32], weight: &[f32], rstd: &[f32], dy: &[f32], dx: &mut [f32], dweight: &mut [f32],
    ) {
        let rows = x.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim)).zip(rstd);
        for (((x, dy), dx), &rstd) in rows {
            let mut lanes = [0.0; LANES];
            let whole = dim - dim % LANES;
            let body = x[..whole].chunks_exact(LANES).zip(dy[..whole].chunks_exact(LANES));
            for ((x, dy), w) in body.zip(weight[..whole].chunks_exact(LANES)) {
                for i in 0..LANES {
                    lanes[i] = (dy[i] * w[i]).mul_add(x[i] * rstd, lanes[i]);
                }
            }
            for i in whole..dim {
                lanes[i - whole] = (dy[i] * weight[i]).mul_add(x[i] * rstd, lanes[i - whole]);
            }
            let mean = sum_lanes(lanes) / dim as f32;
            let inputs = x.iter().zip(dy).zip(weight);
            for (((&x, &dy), &weight), (dx, dweight)) in inputs.zip(dx.iter_mut().zip(dweight.iter_mut())) {
                let normalised = x * rstd;
                *dweight = dy.mul_add(normalised, *dweight);
                *dx = rstd.mul_add(normalised.mul_add(-mean, dy * weight), *dx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_by_hand() {
        let (mut y, mut rstd) = ([0.0; 2], [0.0]);
        rms_norm(1, 2, &[3.0, 4.0], &[1.0, 2.0], 0.0, &mut y, &mut rstd);
        let expected = 1.0 / 12.5f32.sqrt();
        assert!((rstd[0] - expected).abs() < 1e-7);
        assert!((y[0] - 3.0 * expected).abs() < 1e-6 && (y[1] - 8.0 * expected).abs() < 1e-6);
    }

    #[test]
    fn zero_and_huge_rows_stay_finite() {
        let x = [[0.0; 20], [1e15; 20]].concat();
        let (mut y, mut rstd) = ([f32::NAN; 40], [0.0; 2]);
        rms_norm(2, 20, &x, &[1.0; 20], 1e-6, &mut y, &mut rstd);
        assert!(y[..20].iter().all(|&y| y == 0.0));
        assert!(y[20..].iter().all(|&y| (y - 1.0).abs() < 1e-5));
    }

    #[test]
    #[should_panic(expected = "rstd must have rows elements")]
    fn wrong_lengths_are_refused() {
        rms_norm(2, 1, &[1.0; 2], &[1.0], 0.0, &mut [0.0; 2], &mut [0.0]);
    }
}
