//! Matrix products in `f32` whose every output element is one chain of fused multiply-adds.
//!
//! `c[i, j]` starts from its present value (accumulating) or from `+0`, and then takes `fma(a[i, p], b[p, j], c[i, j])`
//! for `p = 0, 1, …, k - 1`. Blocking, packing, the instruction set and the number of threads change the order in which
//! *different* elements are computed and never the chain of one element, so every path gives the same bits.
//!
//! What is here: plain products for other kernels, the three products of a linear layer, weights packed for reuse.
//! What is not here: biases, activations, other element types.

use crate::simd::multiversion;

multiversion! {
    fn product(
        m: usize, n: usize, k: usize, a: &[f32], a_strides: (usize, usize), b: &[f32], b_row_stride: usize,
        c: &mut [f32], c_row_stride: usize, accumulate: bool,
    ) {
        for i in 0..m {
            let row = &mut c[i * c_row_stride..][..n];
            if !accumulate {
                row.fill(0.0);
            }
            for p in 0..k {
                let factor = a[i * a_strides.0 + p * a_strides.1];
                let b_row = &b[p * b_row_stride..][..n];
                for (value, &other) in row.iter_mut().zip(b_row) {
                    *value = factor.mul_add(other, *value);
                }
            }
        }
    }
}

/// `c[m, n] (+)= a[m, k] · b[k, n]` on the calling thread, for use inside other parallel kernels.
///
/// # Shapes
/// `a` is read at `i * a_strides.0 + p * a_strides.1`, `b` at `p * b_row_stride + j`, `c` at `i * c_row_stride + j`.
///
/// # Panics
/// If a slice is too short for its shape and strides.
pub fn gemm_serial(
    m: usize,
    n: usize,
    k: usize,
    a: &[f32],
    a_strides: (usize, usize),
    b: &[f32],
    b_row_stride: usize,
    c: &mut [f32],
    c_row_stride: usize,
    accumulate: bool,
) {
    product(
        m,
        n,
        k,
        a,
        a_strides,
        b,
        b_row_stride,
        c,
        c_row_stride,
        accumulate,
    );
}

/// `y[m, n] (+)= x[m, k] · wᵀ` with `w` row-major `[n, k]`.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear(m: usize, n: usize, k: usize, x: &[f32], w: &[f32], y: &mut [f32], accumulate: bool) {
    linear_packed(m, x, &PackedWeight::pack(w, n, k), y, accumulate);
}

/// A weight `[n, k]` of a linear layer, packed once and used many times.
#[derive(Clone, Debug)]
pub struct PackedWeight {
    n: usize,
    k: usize,
    data: Vec<f32>,
}

impl PackedWeight {
    /// Packs the row-major weight `w[n, k]`.
    ///
    /// # Panics
    /// If `w` has not exactly `n * k` elements.
    pub fn pack(w: &[f32], n: usize, k: usize) -> Self {
        let mut packed = Self {
            n,
            k,
            data: vec![0.0; n * k],
        };
        packed.repack(w);
        packed
    }

    /// Packs other values of the same shape into the memory already held.
    ///
    /// # Panics
    /// If `w` has not exactly `n * k` elements.
    pub fn repack(&mut self, w: &[f32]) {
        assert_eq!(w.len(), self.n * self.k, "w must have n * k elements");
        for j in 0..self.n {
            for p in 0..self.k {
                self.data[p * self.n + j] = w[j * self.k + p];
            }
        }
    }

    /// Output features.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Input features.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<f32>()
    }
}

/// `y[m, n] (+)= x[m, k] · wᵀ` from a packed weight; the same bits as [`linear`].
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_packed(m: usize, x: &[f32], w: &PackedWeight, y: &mut [f32], accumulate: bool) {
    linear_packed_serial(m, x, w, y, accumulate);
}

/// [`linear_packed`] on the calling thread alone.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_packed_serial(
    m: usize,
    x: &[f32],
    w: &PackedWeight,
    y: &mut [f32],
    accumulate: bool,
) {
    product(m, w.n, w.k, x, (w.k, 1), &w.data, w.n, y, w.n, accumulate);
}

/// `dx[m, k] (+)= dy[m, n] · w[n, k]`: the gradient of a linear layer with respect to its input.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_grad_input(
    m: usize,
    n: usize,
    k: usize,
    dy: &[f32],
    w: &[f32],
    dx: &mut [f32],
    accumulate: bool,
) {
    gemm_serial(m, k, n, dy, (n, 1), w, k, dx, k, accumulate);
}

/// `dw[n, k] += dyᵀ[n, m] · x[m, k]`: the gradient of a linear layer with respect to its weight, rows ascending.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_grad_weight(m: usize, n: usize, k: usize, dy: &[f32], x: &[f32], dw: &mut [f32]) {
    gemm_serial(n, k, m, dy, (1, n), x, k, dw, k, true);
}
