//! Packing with a transpose: rows of a weight become columns of a panel.
//!
//! Square blocks are transposed in registers where the instruction set has shuffles for it; edges, and other machines,
//! go element by element. Only copies: no arithmetic.

use super::tile::PANEL;
#[cfg(target_arch = "x86_64")]
use super::tile::fetch;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Isa, isa};

/// Packs `columns <= PANEL` rows of `w` (row `j` starts at `w + j * stride`) as the columns of a panel of `depth`
/// steps.
///
/// # Safety
/// `w` is valid for these reads and `panel` for `depth * PANEL` writes.
pub(super) unsafe fn panel_of_rows(w: *const f32, stride: usize, columns: usize, depth: usize, panel: *mut f32) {
    // Columns and steps that whole blocks cover.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract; `isa` names what the machine has.
    let done = unsafe {
        match isa() {
            Isa::Avx512 => blocks_avx512(w, stride, columns, depth, panel),
            Isa::Avx2 => blocks_avx2(w, stride, columns, depth, panel),
            Isa::Portable => (0, 0),
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = (0, 0);
    // Eight steps at a time: their lines stay in the cache until every column is written.
    for first in (0..depth).step_by(8) {
        let column = if first + 8 <= done.1 { done.0 } else { 0 };
        for j in column..PANEL {
            let start = if j < done.0 { done.1.max(first) } else { first };
            for p in start..(first + 8).min(depth) {
                // SAFETY: inside both by the caller's contract.
                unsafe {
                    *panel.add(p * PANEL + j) = if j < columns { *w.add(j * stride + p) } else { 0.0 };
                }
            }
        }
    }
}

/// Packs the whole blocks of 16 × 16 elements; returns the columns and steps that they cover.
///
/// # Safety
/// As [`panel_of_rows`], and the machine has the instruction set.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn blocks_avx512(w: *const f32, stride: usize, columns: usize, depth: usize, panel: *mut f32) -> (usize, usize) {
    let done = (columns / 16 * 16, depth / 16 * 16);
    for j in (0..done.0).step_by(16) {
        for p in (0..done.1).step_by(16) {
            for i in 0..16 {
                fetch(w.wrapping_add((j + i) * stride + p + 64));
            }
            // SAFETY: the block lies inside both.
            unsafe { transpose_16(w.add(j * stride + p), stride, panel.add(p * PANEL + j)) };
        }
    }
    done
}

/// Packs the whole blocks of 8 × 8 elements; returns the columns and steps that they cover.
///
/// # Safety
/// As [`panel_of_rows`], and the machine has the instruction set.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn blocks_avx2(w: *const f32, stride: usize, columns: usize, depth: usize, panel: *mut f32) -> (usize, usize) {
    let done = (columns / 8 * 8, depth / 8 * 8);
    for j in (0..done.0).step_by(8) {
        for p in (0..done.1).step_by(8) {
            for i in 0..8 {
                fetch(w.wrapping_add((j + i) * stride + p + 64));
            }
            // SAFETY: the block lies inside both.
            unsafe { transpose_8(w.add(j * stride + p), stride, panel.add(p * PANEL + j)) };
        }
    }
    done
}

/// Writes the transpose of a 16 × 16 block with row stride `stride` to rows [`PANEL`] apart.
///
/// # Safety
/// Both blocks are valid, and the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn transpose_16(from: *const f32, stride: usize, to: *mut f32) {
    use std::arch::x86_64::*;
    // SAFETY: the caller's contract.
    unsafe {
        let mut r = [_mm512_setzero_ps(); 16];
        for (i, row) in r.iter_mut().enumerate() {
            *row = _mm512_loadu_ps(from.add(i * stride));
        }
        // Within 128-bit lanes: pairs of rows, then pairs of pairs.
        let mut q = [_mm512_setzero_ps(); 16];
        for g in 0..4 {
            let low = _mm512_unpacklo_ps(r[4 * g], r[4 * g + 1]);
            let high = _mm512_unpackhi_ps(r[4 * g], r[4 * g + 1]);
            let low2 = _mm512_unpacklo_ps(r[4 * g + 2], r[4 * g + 3]);
            let high2 = _mm512_unpackhi_ps(r[4 * g + 2], r[4 * g + 3]);
            q[4 * g] = _mm512_shuffle_ps::<0x44>(low, low2);
            q[4 * g + 1] = _mm512_shuffle_ps::<0xee>(low, low2);
            q[4 * g + 2] = _mm512_shuffle_ps::<0x44>(high, high2);
            q[4 * g + 3] = _mm512_shuffle_ps::<0xee>(high, high2);
        }
        // `q[4 g + c]` holds columns c, c + 4, c + 8, c + 12 of rows 4 g … 4 g + 3: gather lanes across the groups.
        for c in 0..4 {
            let low = _mm512_shuffle_f32x4::<0x88>(q[c], q[4 + c]);
            let high = _mm512_shuffle_f32x4::<0xdd>(q[c], q[4 + c]);
            let low2 = _mm512_shuffle_f32x4::<0x88>(q[8 + c], q[12 + c]);
            let high2 = _mm512_shuffle_f32x4::<0xdd>(q[8 + c], q[12 + c]);
            let columns = [
                _mm512_shuffle_f32x4::<0x88>(low, low2),
                _mm512_shuffle_f32x4::<0x88>(high, high2),
                _mm512_shuffle_f32x4::<0xdd>(low, low2),
                _mm512_shuffle_f32x4::<0xdd>(high, high2),
            ];
            for (g, &column) in columns.iter().enumerate() {
                _mm512_storeu_ps(to.add((4 * g + c) * PANEL), column);
            }
        }
    }
}

/// Writes the transpose of an 8 × 8 block with row stride `stride` to rows [`PANEL`] apart.
///
/// # Safety
/// Both blocks are valid, and the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn transpose_8(from: *const f32, stride: usize, to: *mut f32) {
    use std::arch::x86_64::*;
    // SAFETY: the caller's contract.
    unsafe {
        let row = |i: usize| _mm256_loadu_ps(from.add(i * stride));
        // Within 128-bit lanes: pairs of rows, then pairs of pairs.
        let mut q = [_mm256_setzero_ps(); 8];
        for g in 0..2 {
            let (first, second) = (row(4 * g), row(4 * g + 1));
            let (third, fourth) = (row(4 * g + 2), row(4 * g + 3));
            let low = _mm256_unpacklo_ps(first, second);
            let high = _mm256_unpackhi_ps(first, second);
            let low2 = _mm256_unpacklo_ps(third, fourth);
            let high2 = _mm256_unpackhi_ps(third, fourth);
            q[4 * g] = _mm256_shuffle_ps::<0x44>(low, low2);
            q[4 * g + 1] = _mm256_shuffle_ps::<0xee>(low, low2);
            q[4 * g + 2] = _mm256_shuffle_ps::<0x44>(high, high2);
            q[4 * g + 3] = _mm256_shuffle_ps::<0xee>(high, high2);
        }
        // `q[4 g + c]` holds columns c and c + 4 of rows 4 g … 4 g + 3.
        for c in 0..4 {
            let low = _mm256_permute2f128_ps::<0x20>(q[c], q[4 + c]);
            let high = _mm256_permute2f128_ps::<0x31>(q[c], q[4 + c]);
            _mm256_storeu_ps(to.add(c * PANEL), low);
            _mm256_storeu_ps(to.add((4 + c) * PANEL), high);
        }
    }
}
