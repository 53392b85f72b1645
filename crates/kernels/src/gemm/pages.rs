//! Products of a few rows with pages that lie anywhere in memory: one new token's queries against cached keys, and its
//! probabilities against cached values.
//!
//! The same chains as in the other products. Several vectors of columns, or several pages, are held in registers at
//! once, so that enough independent chains hide the latency of an addition, and the page that comes next is fetched
//! on the way: pages that were handed out at different times do not follow one another in memory.
//! What is not here: the softmax between the two (`kv_attend`).

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{Lanes, Plain};
use crate::kv_cache::PAGE;
use crate::simd::{Isa, isa};

/// Pages of one head within a buffer of pages.
pub(crate) struct Pages<'a> {
    /// Element 0 of this head in page 0.
    pub start: *const f32,
    /// Elements from a page to the next.
    pub stride: usize,
    /// The pages in order of position, all of which exist.
    pub list: &'a [u32],
}

impl Pages<'_> {
    /// Page `index` of the list; the last one where there is none, which does for fetching ahead.
    #[inline(always)]
    fn at(&self, index: usize) -> *const f32 {
        let index = index.min(self.list.len() - 1);
        self.start.wrapping_add(self.list[index] as usize * self.stride)
    }
}

/// `scores[row, position] = Σ_d q[row, d] · key[d, position]` for all positions of the listed pages, keys lying
/// transposed, `[dim, PAGE]`.
///
/// # Shapes
/// `q`: `[rows, dim]`; `scores`: `[rows, list · PAGE]`.
///
/// # Safety
/// Every listed page has `dim · PAGE` elements at its place, which nobody writes meanwhile.
pub(crate) unsafe fn page_scores(rows: usize, dim: usize, q: &[f32], keys: &Pages<'_>, scores: &mut [f32]) {
    let stride = keys.list.len() * PAGE;
    assert!(q.len() == rows * dim && scores.len() == rows * stride, "page_scores: shapes");
    if keys.list.is_empty() {
        return;
    }
    // SAFETY: the slices have their shapes; `isa` names what this machine has.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => scores_avx512(rows, dim, q.as_ptr(), keys, scores.as_mut_ptr()),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => scores_avx2(rows, dim, q.as_ptr(), keys, scores.as_mut_ptr()),
            _ => scores_rows::<Plain, 4, 1, 1>(rows, dim, q.as_ptr(), keys, scores.as_mut_ptr()),
        }
    }
}

/// `out[row, d] = Σ_position p[row, position] · value[position, d]` over the first `n` positions of the listed pages,
/// values lying `[PAGE, dim]`.
///
/// # Shapes
/// `p`: `[rows, list · PAGE]`; `out`: `[rows, dim]`, `dim` a multiple of 32.
///
/// # Safety
/// As [`page_scores`].
pub(crate) unsafe fn page_sums(rows: usize, dim: usize, n: usize, p: &[f32], values: &Pages<'_>, out: &mut [f32]) {
    let stride = values.list.len() * PAGE;
    assert!(p.len() == rows * stride && out.len() == rows * dim && n <= stride, "page_sums: shapes");
    assert!(dim.is_multiple_of(32), "page_sums: {dim} columns");
    // SAFETY: the slices have their shapes; `isa` names what this machine has.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => sums_avx512(rows, dim, n, p.as_ptr(), values, out.as_mut_ptr()),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => sums_avx2(rows, dim, n, p.as_ptr(), values, out.as_mut_ptr()),
            _ => sums_rows::<Plain, 4, 4, 4>(rows, dim, n, p.as_ptr(), values, out.as_mut_ptr()),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn scores_avx512(rows: usize, dim: usize, q: *const f32, keys: &Pages<'_>, scores: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { scores_rows::<Avx512, 2, 4, 2>(rows, dim, q, keys, scores) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn scores_avx2(rows: usize, dim: usize, q: *const f32, keys: &Pages<'_>, scores: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { scores_rows::<Avx2, 4, 2, 1>(rows, dim, q, keys, scores) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn sums_avx512(rows: usize, dim: usize, n: usize, p: *const f32, values: &Pages<'_>, out: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { sums_rows::<Avx512, 2, 4, 4>(rows, dim, n, p, values, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn sums_avx2(rows: usize, dim: usize, n: usize, p: *const f32, values: &Pages<'_>, out: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { sums_rows::<Avx2, 4, 8, 4>(rows, dim, n, p, values, out) }
}

/// Brings the cache line of `at` into the first-level cache; any address will do.
#[inline(always)]
fn fetch_near(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Rows in strips of three, two and one; `NV` vectors make a page's width, and strips of one and two rows take `P1` and
/// `P2` pages at once.
#[inline(always)]
unsafe fn scores_rows<V: Lanes, const NV: usize, const P1: usize, const P2: usize>(
    rows: usize,
    dim: usize,
    q: *const f32,
    keys: &Pages<'_>,
    scores: *mut f32,
) {
    let stride = keys.list.len() * PAGE;
    let mut row = 0;
    while row < rows {
        // SAFETY: the rows lie within `q` and `scores`.
        unsafe {
            let (q, scores) = (q.add(row * dim), scores.add(row * stride));
            row += match rows - row {
                1 => {
                    scores_pages::<V, 1, NV, P1>(dim, q, keys, scores);
                    1
                }
                2 | 4 => {
                    scores_pages::<V, 2, NV, P2>(dim, q, keys, scores);
                    2
                }
                _ => {
                    scores_pages::<V, 3, NV, 1>(dim, q, keys, scores);
                    3
                }
            };
        }
    }
}

#[inline(always)]
unsafe fn scores_pages<V: Lanes, const MR: usize, const NV: usize, const P: usize>(
    dim: usize,
    q: *const f32,
    keys: &Pages<'_>,
    scores: *mut f32,
) {
    let mut page = 0;
    // SAFETY: pages of the list, and as many columns of `scores`.
    unsafe {
        while page + P <= keys.list.len() {
            scores_block::<V, MR, NV, P>(dim, q, keys, page, scores);
            page += P;
        }
        while page < keys.list.len() {
            scores_block::<V, MR, NV, 1>(dim, q, keys, page, scores);
            page += 1;
        }
    }
}

/// `MR` rows against `P` pages from `page` on.
#[inline(always)]
unsafe fn scores_block<V: Lanes, const MR: usize, const NV: usize, const P: usize>(
    dim: usize,
    q: *const f32,
    keys: &Pages<'_>,
    page: usize,
    scores: *mut f32,
) {
    let stride = keys.list.len() * PAGE;
    let mut from = [keys.start; P];
    let mut ahead = [keys.start; P];
    for i in 0..P {
        from[i] = keys.at(page + i);
        ahead[i] = keys.at(page + P + i);
    }
    // SAFETY: `dim` steps of a page's width, and that many elements of `MR` rows of `q`.
    unsafe {
        let mut acc = [[[V::zero(); NV]; MR]; P];
        for d in 0..dim {
            for i in 0..P {
                let mut columns = [V::zero(); NV];
                for v in 0..NV {
                    columns[v] = V::load(from[i].add(d * PAGE + v * V::WIDTH));
                }
                fetch_near(ahead[i].wrapping_add(d * PAGE));
                fetch_near(ahead[i].wrapping_add(d * PAGE + 16));
                for r in 0..MR {
                    let value = V::splat(q.add(r * dim + d));
                    for v in 0..NV {
                        acc[i][r][v] = value.mul_add(columns[v], acc[i][r][v]);
                    }
                }
            }
        }
        for i in 0..P {
            for r in 0..MR {
                for v in 0..NV {
                    acc[i][r][v].store(scores.add(r * stride + (page + i) * PAGE + v * V::WIDTH));
                }
            }
        }
    }
}

/// Rows in strips of three, two and one. `NARROW` vectors are 32 columns; a single row takes `ONE` vectors and several
/// rows take `MORE` where there are so many columns.
#[inline(always)]
unsafe fn sums_rows<V: Lanes, const NARROW: usize, const ONE: usize, const MORE: usize>(
    rows: usize,
    dim: usize,
    n: usize,
    p: *const f32,
    values: &Pages<'_>,
    out: *mut f32,
) {
    let stride = values.list.len() * PAGE;
    let mut row = 0;
    while row < rows {
        // SAFETY: the rows lie within `p` and `out`.
        unsafe {
            let (p, out) = (p.add(row * stride), out.add(row * dim));
            row += match rows - row {
                1 => {
                    sums_columns::<V, 1, NARROW, ONE>(dim, n, p, values, out);
                    1
                }
                2 | 4 => {
                    sums_columns::<V, 2, NARROW, MORE>(dim, n, p, values, out);
                    2
                }
                _ => {
                    sums_columns::<V, 3, NARROW, MORE>(dim, n, p, values, out);
                    3
                }
            };
        }
    }
}

#[inline(always)]
unsafe fn sums_columns<V: Lanes, const MR: usize, const NARROW: usize, const WIDE: usize>(
    dim: usize,
    n: usize,
    p: *const f32,
    values: &Pages<'_>,
    out: *mut f32,
) {
    let mut column = 0;
    // SAFETY: the columns exist.
    unsafe {
        while column + WIDE * V::WIDTH <= dim {
            sums_block::<V, MR, WIDE>(dim, n, p, values, column, out);
            column += WIDE * V::WIDTH;
        }
        while column < dim {
            sums_block::<V, MR, NARROW>(dim, n, p, values, column, out);
            column += NARROW * V::WIDTH;
        }
    }
}

/// `MR` rows of `out` in `NV` vectors of columns from `column` on, over all pages.
#[inline(always)]
unsafe fn sums_block<V: Lanes, const MR: usize, const NV: usize>(
    dim: usize,
    n: usize,
    p: *const f32,
    values: &Pages<'_>,
    column: usize,
    out: *mut f32,
) {
    let stride = values.list.len() * PAGE;
    // SAFETY: `n` positions of the listed pages, and that many elements of `MR` rows of `p`.
    unsafe {
        let mut acc = [[V::zero(); NV]; MR];
        for page in 0..n.div_ceil(PAGE) {
            let from = values.at(page).wrapping_add(column);
            let ahead = values.at(page + 1).wrapping_add(column);
            for slot in 0..PAGE.min(n - page * PAGE) {
                let mut columns = [V::zero(); NV];
                for v in 0..NV {
                    columns[v] = V::load(from.add(slot * dim + v * V::WIDTH));
                }
                for line in 0..(NV * V::WIDTH).div_ceil(16) {
                    fetch_near(ahead.wrapping_add(slot * dim + line * 16));
                }
                for r in 0..MR {
                    let value = V::splat(p.add(r * stride + page * PAGE + slot));
                    for v in 0..NV {
                        acc[r][v] = value.mul_add(columns[v], acc[r][v]);
                    }
                }
            }
        }
        for r in 0..MR {
            for v in 0..NV {
                acc[r][v].store(out.add(r * dim + column + v * V::WIDTH));
            }
        }
    }
}
