//! Attention of new tokens over the pages of their sequence's keys and values.
//!
//! A single token reads the pages where they lie; several gather them once for all of their rows. Both give the bits
//! of [`crate::attention::attention`].
//! What is not here: who owns which page ([`crate::kv_cache`]).

use crate::attention::{Heads, QueryRows, Tiles, attend_rows, scale_row, score_scale, softmax_row};
use crate::gemm::gemm_serial;
use crate::gemm::pages::{Pages, page_scores, page_sums};
use crate::kv_cache::{PAGE, Span};
use crate::shared::SharedMut;

/// Head dimensions of this multiple have their sums over values in whole vectors.
const WHOLE: usize = 32;

/// Memory of one thread, reused from span to span.
#[derive(Default)]
pub(crate) struct Scratch {
    scores: Vec<f32>,
    tile: Vec<f32>,
    inverse: Vec<f32>,
    keys_t: Vec<f32>,
    values: Vec<f32>,
    tiles: Tiles,
}

/// Stores the span's keys and values and attends its rows to everything before them and to themselves.
///
/// # Safety
/// Nothing else touches the pages of the span's new positions or its rows of `out`; nobody writes the pages before.
pub(crate) unsafe fn attend_span(
    heads: Heads,
    span: &Span<'_>,
    (q, k, v): (&[f32], &[f32], &[f32]),
    keys: SharedMut<'_>,
    values: SharedMut<'_>,
    out: SharedMut<'_>,
    scratch: &mut Scratch,
) {
    // SAFETY: the caller's contract.
    unsafe {
        store(heads, span, k, v, keys, values);
        if span.rows == 1 {
            attend_one(heads, span, q, keys, values, out, scratch);
        } else {
            attend_many(heads, span, q, keys, values, out, scratch);
        }
    }
}

/// # Safety
/// Nothing else touches the span's new positions.
unsafe fn store(heads: Heads, span: &Span<'_>, k: &[f32], v: &[f32], keys: SharedMut<'_>, values: SharedMut<'_>) {
    let dim = heads.dim;
    for i in 0..span.rows {
        let position = span.sequence.len() + i;
        let (page, slot) = (span.sequence.pages()[position / PAGE] as usize, position % PAGE);
        for kv in 0..heads.kv {
            let from = ((span.row + i) * heads.kv + kv) * dim;
            let at = (page * heads.kv + kv) * dim * PAGE;
            // SAFETY: the page is this sequence's own.
            let (key_page, value_page) = unsafe { (keys.part(at, dim * PAGE), values.part(at, dim * PAGE)) };
            for d in 0..dim {
                key_page[d * PAGE + slot] = k[from + d];
            }
            value_page[slot * dim..(slot + 1) * dim].copy_from_slice(&v[from..from + dim]);
        }
    }
}

/// One new token: pages are read where they lie.
///
/// # Safety
/// Nothing else touches the span's row of `out`; nobody writes the pages read.
unsafe fn attend_one(
    heads: Heads,
    span: &Span<'_>,
    q: &[f32],
    keys: SharedMut<'_>,
    values: SharedMut<'_>,
    out: SharedMut<'_>,
    scratch: &mut Scratch,
) {
    let (dim, group) = (heads.dim, heads.group());
    let n = span.sequence.len() + 1;
    let list = &span.sequence.pages()[..n.div_ceil(PAGE)];
    let (stride, scale) = (list.len() * PAGE, score_scale(dim));
    if scratch.scores.len() < group * stride {
        scratch.scores.resize(2 * group * stride, 0.0);
    }
    scratch.tile.resize(group * dim, 0.0);
    scratch.inverse.resize(group, 0.0);
    for kv in 0..heads.kv {
        let at = (span.row * heads.query + kv * group) * dim;
        let queries = &q[at..at + group * dim];
        let scores = &mut scratch.scores[..group * stride];
        let (keys, values) = (head_pages(heads, kv, keys, list), head_pages(heads, kv, values, list));
        // SAFETY: the pages are the sequence's, lie within the buffer and are only read.
        unsafe { page_scores(group, dim, queries, &keys, scores) };
        for g in 0..group {
            // What lies beyond the last position in its page becomes zero here.
            let (_, sum) = softmax_row(&mut scores[g * stride..(g + 1) * stride], n, scale);
            scratch.inverse[g] = 1.0 / sum;
        }
        if dim.is_multiple_of(WHOLE) {
            // SAFETY: as above.
            unsafe { page_sums(group, dim, n, scores, &values, &mut scratch.tile) };
        } else {
            // SAFETY: as above.
            unsafe { sums_of_any_width(group, dim, n, scores, &values, &mut scratch.tile) };
        }
        for g in 0..group {
            let tile = &mut scratch.tile[g * dim..(g + 1) * dim];
            scale_row(tile, scratch.inverse[g]);
            // SAFETY: this row is this span's own.
            unsafe { out.part(at + g * dim, dim) }.copy_from_slice(tile);
        }
    }
}

/// The pages of key-value head `kv`, all of which lie within the buffer.
fn head_pages<'a>(heads: Heads, kv: usize, buffer: SharedMut<'_>, list: &'a [u32]) -> Pages<'a> {
    let size = heads.dim * PAGE;
    let last = list.iter().copied().max().unwrap_or(0) as usize;
    // Bounds are checked for the last page, hence for all.
    buffer.place((last * heads.kv + kv) * size, size);
    Pages { start: buffer.place(kv * size, size), stride: heads.kv * size, list }
}

/// [`page_sums`] for head dimensions that are no whole number of vectors.
///
/// # Safety
/// As [`page_sums`].
unsafe fn sums_of_any_width(rows: usize, dim: usize, n: usize, p: &[f32], values: &Pages<'_>, out: &mut [f32]) {
    let stride = values.list.len() * PAGE;
    for (index, &page) in values.list.iter().enumerate() {
        let width = PAGE.min(n - index * PAGE);
        // SAFETY: a page of the list has `PAGE · dim` elements, by the caller's contract.
        let block = unsafe { std::slice::from_raw_parts(values.start.add(page as usize * values.stride), PAGE * dim) };
        gemm_serial(rows, dim, width, &p[index * PAGE..], (stride, 1), block, dim, out, dim, index > 0);
    }
}

/// Several new tokens: pages are gathered once for all of them.
///
/// # Safety
/// As [`attend_one`].
unsafe fn attend_many(
    heads: Heads,
    span: &Span<'_>,
    q: &[f32],
    keys: SharedMut<'_>,
    values: SharedMut<'_>,
    out: SharedMut<'_>,
    scratch: &mut Scratch,
) {
    let dim = heads.dim;
    let n = span.sequence.len() + span.rows;
    scratch.keys_t.resize(dim * n, 0.0);
    scratch.values.resize(dim * n, 0.0);
    for kv in 0..heads.kv {
        for (p, &page) in span.sequence.pages().iter().enumerate().take(n.div_ceil(PAGE)) {
            let (first, width) = (p * PAGE, PAGE.min(n - p * PAGE));
            let at = (page as usize * heads.kv + kv) * dim * PAGE;
            // SAFETY: read only.
            let (key_page, value_page) = unsafe { (keys.view(at, dim * PAGE), values.view(at, dim * PAGE)) };
            for d in 0..dim {
                scratch.keys_t[d * n + first..][..width].copy_from_slice(&key_page[d * PAGE..][..width]);
            }
            scratch.values[first * dim..][..width * dim].copy_from_slice(&value_page[..width * dim]);
        }
        let rows = QueryRows { first: span.row, len: span.rows, position: span.sequence.len() };
        // SAFETY: these rows are this span's own.
        unsafe {
            attend_rows(heads, kv, rows, q, (&scratch.keys_t, n), &scratch.values, out, None, &mut scratch.tiles);
        }
    }
}
