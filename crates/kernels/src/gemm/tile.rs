//! The register tile: a few rows times a few vectors of columns, held in registers over the whole inner range.
//!
//! One body, compiled for each instruction set, number of rows and kind of columns; [`Tiles`] picks among them. What
//! is not here: which tile goes where (`product`) and packing (`pack`).

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{Lanes, Plain};
use crate::simd::{Isa, isa};

/// Columns of a panel, on every instruction set.
pub(super) const PANEL: usize = 32;

/// One call of a tile: `c[rows, columns] (+)= a[rows, depth] · b[depth, columns]`.
pub(super) struct Tile {
    /// Inner length.
    pub depth: usize,
    /// First element of `a`.
    pub a: *const f32,
    /// Distance between rows of `a` when its inner stride is one, else its inner stride (its row stride is then one).
    pub a_stride: usize,
    /// First element of `b`; vectors of columns are contiguous.
    pub b: *const f32,
    /// Distance between inner steps of `b`.
    pub b_step: usize,
    /// Distance from a panel of [`PANEL`] columns to the next, for tiles wider than a panel.
    pub b_panel: usize,
    /// First element of `c`.
    pub c: *mut f32,
    /// Distance between rows of `c`.
    pub c_row: usize,
    /// Valid columns of the last vector, for tail tiles.
    pub last: usize,
    /// Start from the values in `c` instead of `+0`.
    pub accumulate: bool,
    /// Memory to bring into the cache on the way.
    pub ahead: *const f32,
    /// Cache lines to fetch from there per four inner steps.
    pub ahead_lines: usize,
    /// Distance that `ahead` moves per four inner steps.
    pub ahead_step: usize,
}

/// A compiled tile.
///
/// # Safety
/// The pointers of the argument are valid for the rows and columns of the tile, and the machine has its instruction
/// set.
pub(super) type TileFn = unsafe fn(&Tile);

/// Inner stride of `a` is one.
pub(super) const BY_ROW: usize = 0;
/// Row stride of `a` is one.
pub(super) const BY_STEP: usize = 1;

/// Hides where a value came from, so that the compiler keeps it in a register instead of deriving it in many ways.
#[inline(always)]
fn opaque(value: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let mut value = value;
        // SAFETY: an empty sequence of instructions.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
        }
        value
    }
    #[cfg(not(target_arch = "x86_64"))]
    value
}

/// Brings the cache line of `at` nearer; any address will do.
#[inline(always)]
pub(super) fn fetch(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// One inner step: loads `NV` vectors of `b` and feeds each row's chains.
#[inline(always)]
unsafe fn step<V: Lanes, const MR: usize, const NV: usize, const TAIL: bool, const LAYOUT: usize>(
    acc: &mut [[V; NV]; MR],
    a: &[*const f32; 4],
    offset: usize,
    strides: (usize, usize),
    b: *const f32,
    b_panel: usize,
    mask: V::Mask,
) {
    unsafe {
        let mut columns = [V::zero(); NV];
        for v in 0..NV {
            let column = v * V::WIDTH;
            let from = b.add(column / PANEL * b_panel + column % PANEL);
            columns[v] = if TAIL && v + 1 == NV { V::load_masked(from, mask) } else { V::load(from) };
        }
        for i in 0..MR {
            let value = if LAYOUT == BY_ROW {
                // Four base pointers and two strides name sixteen rows with few registers.
                let base = a[i / 4].add(offset);
                V::splat(match i % 4 {
                    0 => base,
                    1 => base.add(strides.0),
                    2 => base.add(2 * strides.0),
                    _ => base.add(strides.1),
                })
            } else {
                V::splat(a[0].add(i))
            };
            for v in 0..NV {
                acc[i][v] = value.mul_add(columns[v], acc[i][v]);
            }
        }
    }
}

#[inline(always)]
unsafe fn body<V: Lanes, const MR: usize, const NV: usize, const TAIL: bool, const LAYOUT: usize>(t: &Tile) {
    unsafe {
        let mask = V::mask(if TAIL { t.last } else { V::WIDTH });
        let mut acc = [[V::zero(); NV]; MR];
        if t.accumulate {
            for i in 0..MR {
                for v in 0..NV {
                    let from = t.c.add(i * t.c_row + v * V::WIDTH);
                    acc[i][v] = if TAIL && v + 1 == NV { V::load_masked(from, mask) } else { V::load(from) };
                }
            }
        }
        let stride = opaque(t.a_stride);
        let strides = (stride, opaque(3 * stride));
        let mut a = [t.a; 4];
        if LAYOUT == BY_ROW {
            for q in 1..MR.div_ceil(4) {
                a[q] = opaque(a[q - 1].add(4 * stride) as usize) as *const f32;
            }
        }
        let (mut b, b_step, b_panel) = (t.b, t.b_step, t.b_panel);
        let (mut ahead, lines) = (t.ahead, t.ahead_lines);
        let mut left = t.depth;
        while left >= 4 {
            for u in 0..4 {
                let offset = if LAYOUT == BY_ROW { u } else { 0 };
                step::<V, MR, NV, TAIL, LAYOUT>(&mut acc, &a, offset, strides, b, b_panel, mask);
                b = b.wrapping_add(b_step);
                if LAYOUT == BY_STEP {
                    a[0] = a[0].wrapping_add(stride);
                }
            }
            if LAYOUT == BY_ROW {
                for q in 0..MR.div_ceil(4) {
                    a[q] = a[q].wrapping_add(4);
                }
            }
            for line in 0..lines {
                fetch(ahead.wrapping_add(16 * line));
            }
            ahead = ahead.wrapping_add(t.ahead_step);
            left -= 4;
        }
        while left > 0 {
            step::<V, MR, NV, TAIL, LAYOUT>(&mut acc, &a, 0, strides, b, b_panel, mask);
            b = b.wrapping_add(b_step);
            let advance = if LAYOUT == BY_ROW { 1 } else { stride };
            for q in 0..MR.div_ceil(4) {
                a[q] = a[q].wrapping_add(advance);
            }
            left -= 1;
        }
        for i in 0..MR {
            for v in 0..NV {
                let to = t.c.add(i * t.c_row + v * V::WIDTH);
                if TAIL && v + 1 == NV { acc[i][v].store_masked(to, mask) } else { acc[i][v].store(to) }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn avx512<const MR: usize, const NV: usize, const TAIL: bool, const LAYOUT: usize>(t: &Tile) {
    unsafe { body::<Avx512, MR, NV, TAIL, LAYOUT>(t) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const MR: usize, const NV: usize, const TAIL: bool, const LAYOUT: usize>(t: &Tile) {
    unsafe { body::<Avx2, MR, NV, TAIL, LAYOUT>(t) }
}

unsafe fn plain<const MR: usize, const NV: usize, const TAIL: bool, const LAYOUT: usize>(t: &Tile) {
    unsafe { body::<Plain, MR, NV, TAIL, LAYOUT>(t) }
}

/// The compiled tiles of one instruction set.
pub(super) struct Tiles {
    /// Rows of the highest tile.
    pub rows: usize,
    /// Elements a vector.
    pub width: usize,
    /// `full[layout][rows - 1]`: two vectors of columns.
    pub full: [&'static [TileFn]; 2],
    /// `tail[layout][vectors - 1][rows - 1]`: one or two vectors of columns, the last one masked.
    pub tail: [[&'static [TileFn]; 2]; 2],
    /// `wide[rows - 1]`: columns and tile for very few rows, where one panel has too few chains to hide the latency of
    /// an addition; layout [`BY_ROW`].
    pub wide: &'static [(usize, TileFn)],
}

macro_rules! tiles {
    ($name:ident, $function:ident, $lanes:ty, [$($mr:literal)+], $rows:literal, [$(($wide_mr:literal, $wide_nv:literal))+]) => {
        static $name: Tiles = Tiles {
            rows: $rows,
            width: <$lanes>::WIDTH,
            full: [&[$($function::<$mr, 2, false, BY_ROW>),+], &[$($function::<$mr, 2, false, BY_STEP>),+]],
            tail: [
                [&[$($function::<$mr, 1, true, BY_ROW>),+], &[$($function::<$mr, 2, true, BY_ROW>),+]],
                [&[$($function::<$mr, 1, true, BY_STEP>),+], &[$($function::<$mr, 2, true, BY_STEP>),+]],
            ],
            wide: &[$(($wide_nv * <$lanes>::WIDTH, $function::<$wide_mr, $wide_nv, false, BY_ROW>)),+],
        };
    };
}

// AVX-512: 14 rows and 2 vectors fill 28 of 32 registers, 2 hold columns and 1 a value of `a`; AVX2: 12 of 16.
#[cfg(target_arch = "x86_64")]
tiles!(AVX512, avx512, Avx512, [1 2 3 4 5 6 7 8 9 10 11 12 13 14], 14, [(1, 8) (2, 8) (3, 4)]);
#[cfg(target_arch = "x86_64")]
tiles!(AVX2, avx2, Avx2, [1 2 3 4 5 6], 6, [(1, 8) (2, 4) (3, 4)]);
tiles!(PLAIN, plain, Plain, [1 2 3 4], 4, [(1, 4) (2, 4)]);

impl Tiles {
    /// The tiles of the instruction set in use.
    pub fn current() -> &'static Self {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &AVX2,
            _ => &PLAIN,
        }
    }
}
