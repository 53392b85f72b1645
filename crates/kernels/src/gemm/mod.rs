//! Matrix products in `f32` whose every output element is one chain of fused multiply-adds.
//!
//! `c[i, j]` starts from its present value (accumulating) or from `+0`, and then takes `fma(a[i, p], b[p, j], c[i, j])`
//! for `p = 0, 1, …, k - 1`. Blocking, packing, the instruction set and the number of threads change the order in which
//! *different* elements are computed and never the chain of one element, so every path gives the same bits. (A NaN
//! stays a NaN on every path; its payload is not specified.)
//!
//! What is here: plain products for other kernels, the three products of a linear layer, weights packed for reuse, and
//! measurements of the machine's ceilings ([`peak`]).
//! What is not here: biases, activations, other element types.
//!
//! Code map: `lanes` wraps vector instructions, `tile` is the register tile, `pack` and `transpose` order operands for
//! it, `product` holds the loops around it and the split over threads.

mod lanes;
mod pack;
mod packed;
pub(crate) mod pages;
pub mod peak;
mod product;
mod tile;
mod transpose;

pub use packed::PackedWeight;

use product::{Product, Right};

/// Asserts that a slice has exactly the elements of its shape.
#[track_caller]
fn check(name: &str, len: usize, rows: usize, columns: usize) {
    assert!(rows.checked_mul(columns) == Some(len), "{name} must have {rows} × {columns} elements, but has {len}");
}

/// Asserts that a slice covers a strided matrix.
#[track_caller]
fn check_strided(name: &str, len: usize, shape: (usize, usize), strides: (usize, usize)) {
    if shape.0 == 0 || shape.1 == 0 {
        return;
    }
    let last =
        (shape.0 - 1).checked_mul(strides.0).and_then(|row| (shape.1 - 1).checked_mul(strides.1)?.checked_add(row));
    assert!(
        last.is_some_and(|last| last < len),
        "{name} must cover {shape:?} elements with strides {strides:?}, but has {len}"
    );
}

/// `c[m, n] (+)= a[m, k] · b[k, n]` on the calling thread, for use inside other parallel kernels.
///
/// # Shapes
/// `a` is read at `i * a_strides.0 + p * a_strides.1`, `b` at `p * b_row_stride + j`, `c` is written at
/// `i * c_row_stride + j`.
///
/// # Panics
/// If a slice is too short for its shape and strides, or rows of `c` overlap.
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
    check_strided("a", a.len(), (m, k), a_strides);
    check_strided("b", b.len(), (k, n), (b_row_stride, 1));
    check_strided("c", c.len(), (m, n), (c_row_stride, 1));
    assert!(m <= 1 || c_row_stride >= n, "rows of c overlap: stride {c_row_stride}, {n} columns");
    let product = Product {
        rows: m,
        columns: n,
        depth: k,
        a: a.as_ptr(),
        a_row: a_strides.0,
        a_step: a_strides.1,
        b: Right::Rows(b.as_ptr(), b_row_stride),
        c: c.as_mut_ptr(),
        c_row: c_row_stride,
        accumulate,
    };
    // SAFETY: the slices cover the shapes, as just checked, and `c` is borrowed alone.
    unsafe { product.run_serial() };
}

/// `y[m, n] (+)= x[m, k] · wᵀ` with `w` row-major `[n, k]`, which is packed on the way.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear(m: usize, n: usize, k: usize, x: &[f32], w: &[f32], y: &mut [f32], accumulate: bool) {
    check("x", x.len(), m, k);
    check("w", w.len(), n, k);
    check("y", y.len(), m, n);
    let b = Right::Transposed(w.as_ptr(), k);
    // SAFETY: the slices have the shapes, as just checked, and `y` is borrowed alone.
    unsafe { contiguous(m, n, k, x, b, y, accumulate).run_parallel() };
}

/// `y[m, n] (+)= x[m, k] · wᵀ` from a packed weight; the same bits as [`linear`].
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_packed(m: usize, x: &[f32], w: &PackedWeight, y: &mut [f32], accumulate: bool) {
    // SAFETY: the shapes are checked and `y` is borrowed alone.
    unsafe { packed_product(m, x, w, y, accumulate).run_parallel() };
}

/// [`linear_packed`] on the calling thread alone.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_packed_serial(m: usize, x: &[f32], w: &PackedWeight, y: &mut [f32], accumulate: bool) {
    // SAFETY: the shapes are checked and `y` is borrowed alone.
    unsafe { packed_product(m, x, w, y, accumulate).run_serial() };
}

/// `dx[m, k] (+)= dy[m, n] · w[n, k]`: the gradient of a linear layer with respect to its input.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_grad_input(m: usize, n: usize, k: usize, dy: &[f32], w: &[f32], dx: &mut [f32], accumulate: bool) {
    check("dy", dy.len(), m, n);
    check("w", w.len(), n, k);
    check("dx", dx.len(), m, k);
    let b = Right::Rows(w.as_ptr(), k);
    // SAFETY: the slices have the shapes, as just checked, and `dx` is borrowed alone.
    unsafe { contiguous(m, k, n, dy, b, dx, accumulate).run_parallel() };
}

/// `dw[n, k] += dyᵀ[n, m] · x[m, k]`: the gradient of a linear layer with respect to its weight, rows ascending.
///
/// # Panics
/// If a slice has not exactly the elements of its shape.
pub fn linear_grad_weight(m: usize, n: usize, k: usize, dy: &[f32], x: &[f32], dw: &mut [f32]) {
    check("dy", dy.len(), m, n);
    check("x", x.len(), m, k);
    check("dw", dw.len(), n, k);
    let b = Right::Rows(x.as_ptr(), k);
    let product = Product { a_row: 1, a_step: n, ..contiguous(n, k, m, dy, b, dw, true) };
    // SAFETY: the slices have the shapes, as just checked, and `dw` is borrowed alone.
    unsafe { product.run_parallel() };
}

fn packed_product(m: usize, x: &[f32], w: &PackedWeight, y: &mut [f32], accumulate: bool) -> Product {
    check("x", x.len(), m, w.k());
    check("y", y.len(), m, w.n());
    contiguous(m, w.n(), w.k(), x, Right::Panels(w.panels()), y, accumulate)
}

/// A product of contiguous row-major matrices.
fn contiguous(m: usize, n: usize, k: usize, a: &[f32], b: Right, c: &mut [f32], accumulate: bool) -> Product {
    Product {
        rows: m,
        columns: n,
        depth: k,
        a: a.as_ptr(),
        a_row: k,
        a_step: 1,
        b,
        c: c.as_mut_ptr(),
        c_row: n,
        accumulate,
    }
}
