//! Packing: copies of operands in the order in which tiles read them.
//!
//! A panel holds [`PANEL`] columns of the right-hand operand, inner index outermost, so that a tile reads it from
//! front to back; columns beyond the matrix are zero and never stored. Rows of a left-hand operand whose inner stride
//! is not one are packed by tile, again inner index outermost.

use super::tile::PANEL;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Isa, isa};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const HUGE_PAGE: usize = 2 << 20;

/// Zeroed `f32` memory aligned to cache lines, or to huge pages when it is large.
pub(super) struct Memory {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: owns plain memory.
unsafe impl Send for Memory {}
// SAFETY: shared references only read.
unsafe impl Sync for Memory {}

impl Memory {
    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<f32>()).expect("packed size overflows");
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 64 };
        Layout::from_size_align(bytes.max(64), align).expect("packed size overflows")
    }

    /// `len` zeros.
    pub fn new(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start.cast::<f32>()) {
            Some(start) => Self { start, len },
            None => handle_alloc_error(layout),
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first element.
    pub fn as_ptr(&self) -> *const f32 {
        self.start.as_ptr()
    }

    /// The first element, to write.
    pub fn as_mut_ptr(&mut self) -> *mut f32 {
        self.start.as_ptr()
    }

    /// Makes room for at least `len` elements; what was there is lost.
    pub fn reserve(&mut self, len: usize) {
        if self.len < len {
            *self = Self::new(len.next_power_of_two());
        }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len);
        // SAFETY: both hold `len` elements and are distinct allocations.
        unsafe { std::ptr::copy_nonoverlapping(self.as_ptr(), copy.as_mut_ptr(), self.len) };
        copy
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) };
    }
}

/// Packs `columns <= PANEL` rows of `w` (row `j` starts at `w + j * stride`) as the columns of a panel of `depth`
/// steps.
///
/// # Safety
/// `w` is valid for these reads and `panel` for `depth * PANEL` writes.
pub(super) unsafe fn panel_of_rows(w: *const f32, stride: usize, columns: usize, depth: usize, panel: *mut f32) {
    let mut done = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if isa() == Isa::Avx512 {
        done = (columns / 16 * 16, depth / 16 * 16);
        for j in (0..done.0).step_by(16) {
            for p in (0..done.1).step_by(16) {
                // SAFETY: the block lies inside both; `isa` names what the machine has.
                unsafe { transpose_16(w.add(j * stride + p), stride, panel.add(p * PANEL + j)) };
            }
        }
    }
    for j in 0..PANEL {
        let start = if j < done.0 { done.1 } else { 0 };
        for p in start..depth {
            // SAFETY: inside both by the caller's contract.
            unsafe {
                *panel.add(p * PANEL + j) = if j < columns { *w.add(j * stride + p) } else { 0.0 };
            }
        }
    }
}

/// Writes the transpose of a 16 × 16 block with row stride `stride` to rows [`PANEL`] apart.
///
/// # Safety
/// Both blocks are valid, and the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
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

/// Packs `columns` columns of the row-major `b` (inner step `p` starts at `b + p * stride`) into panels of `depth`
/// steps, one after another.
///
/// # Safety
/// `b` is valid for these reads and `panels` for `columns.div_ceil(PANEL) * depth * PANEL` writes.
pub(super) unsafe fn panels_of_columns(b: *const f32, stride: usize, columns: usize, depth: usize, panels: *mut f32) {
    // Whole rows at a time: memory is read in its own order.
    for p in 0..depth {
        for j in (0..columns).step_by(PANEL) {
            // SAFETY: inside both by the caller's contract.
            unsafe {
                let from = b.add(p * stride + j);
                let to = panels.add(j * depth + p * PANEL);
                if columns - j >= PANEL {
                    to.cast::<[f32; PANEL]>().write_unaligned(from.cast::<[f32; PANEL]>().read_unaligned());
                } else {
                    std::ptr::copy_nonoverlapping(from, to, columns - j);
                    std::ptr::write_bytes(to.add(columns - j), 0, PANEL - (columns - j));
                }
            }
        }
    }
}

/// Packs `rows` rows and `depth` inner steps of an operand with arbitrary strides, inner index outermost.
///
/// # Safety
/// `a` is valid for these reads and `to` for `rows * depth` writes.
pub(super) unsafe fn steps_of_rows(
    a: *const f32,
    (row_stride, step_stride): (usize, usize),
    rows: usize,
    depth: usize,
    to: *mut f32,
) {
    for p in 0..depth {
        // SAFETY: inside both by the caller's contract.
        unsafe {
            let (from, to) = (a.add(p * step_stride), to.add(p * rows));
            if row_stride == 1 {
                std::ptr::copy_nonoverlapping(from, to, rows);
            } else {
                for i in 0..rows {
                    *to.add(i) = *from.add(i * row_stride);
                }
            }
        }
    }
}
