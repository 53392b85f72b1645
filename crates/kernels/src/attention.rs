//! Grouped-query causal attention over packed sequences of any lengths, forward and backward.
//!
//! Sequences are cut into [`Segment`]s that form trees: a segment's tokens attend to all of its ancestors' tokens and,
//! causally, to its own. A batch without shared prefixes is a batch of roots; a group whose members share a prompt is
//! one root with a child per member, and the prompt is computed once in both directions.
//!
//! Only the output and the log-sum-exp of each row are kept; scores live in a scratch tile of a few query rows. Each
//! score is one chain of multiply-adds over the head dimension, the softmax sums in sixteen lanes by key position, and
//! each output is one chain over the keys in order: a row's bits depend on its own sequence only, and equal those of
//! [`crate::kv_cache`].

use rayon::prelude::*;

use crate::gemm::gemm_serial;
use crate::math::exp_nonpositive;
use crate::shared::SharedMut;
use crate::simd::{LANES, multiversion, sum_lanes};

/// Query rows per scratch tile.
const TILE: usize = 32;

/// Sizes of the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads.
    pub query: usize,
    /// Key and value heads; divides `query`.
    pub kv: usize,
    /// Elements per head.
    pub dim: usize,
}

impl Heads {
    /// Query heads that share one key-value head.
    pub fn group(&self) -> usize {
        self.query / self.kv
    }
}

/// Consecutive tokens of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First row within the batch.
    pub start: usize,
    /// Number of rows.
    pub len: usize,
    /// The segment that comes before this one in its sequence; it has a smaller index in the batch.
    pub parent: Option<usize>,
    /// Position of the first token in its sequence: the summed length of all ancestors.
    pub position: usize,
}

multiversion! {
    /// Turns the first `n` raw scores of a row into unnormalised probabilities `exp(scale · s − max)` and zeroes the
    /// rest. Returns the maximum (of the scaled scores) and the sum.
    pub(crate) fn softmax_row(scores: &mut [f32], n: usize, scale: f32) -> (f32, f32) {
        let (row, rest) = scores.split_at_mut(n);
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let mut chunks = row.chunks_exact_mut(LANES);
        for chunk in &mut chunks {
            for l in 0..LANES {
                chunk[l] *= scale;
                lanes[l] = if chunk[l] > lanes[l] { chunk[l] } else { lanes[l] };
            }
        }
        for (l, s) in chunks.into_remainder().iter_mut().enumerate() {
            *s *= scale;
            lanes[l] = if *s > lanes[l] { *s } else { lanes[l] };
        }
        let max = lanes.iter().copied().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
        let mut sums = [0.0f32; LANES];
        let mut chunks = row.chunks_exact_mut(LANES);
        for chunk in &mut chunks {
            for l in 0..LANES {
                chunk[l] = exp_nonpositive(chunk[l] - max);
                sums[l] += chunk[l];
            }
        }
        for (l, s) in chunks.into_remainder().iter_mut().enumerate() {
            *s = exp_nonpositive(*s - max);
            sums[l] += *s;
        }
        rest.fill(0.0);
        (max, sum_lanes(sums))
    }
}

multiversion! {
    /// `row *= factor`.
    pub(crate) fn scale_row(row: &mut [f32], factor: f32) {
        for x in row {
            *x *= factor;
        }
    }
}

multiversion! {
    /// Turns raw scores into normalised probabilities from a known log-sum-exp; zero beyond `n`.
    fn probabilities_row(scores: &mut [f32], n: usize, scale: f32, lse: f32) {
        let (row, rest) = scores.split_at_mut(n);
        for s in row {
            *s = exp_nonpositive(*s * scale - lse);
        }
        rest.fill(0.0);
    }
}

multiversion! {
    /// `dp ← p · (dp − dot) · scale`, the gradient of the raw scores.
    fn score_gradient_row(dp: &mut [f32], p: &[f32], dot: f32, scale: f32) {
        for (d, p) in dp.iter_mut().zip(p) {
            *d = *p * (*d - dot) * scale;
        }
    }
}

multiversion! {
    fn dot_row(a: &[f32], b: &[f32]) -> f32 {
        let mut lanes = [0.0f32; LANES];
        let (ca, cb) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let (ra, rb) = (ca.remainder(), cb.remainder());
        for (x, y) in ca.zip(cb) {
            for l in 0..LANES {
                lanes[l] = x[l].mul_add(y[l], lanes[l]);
            }
        }
        for (l, (x, y)) in ra.iter().zip(rb).enumerate() {
            lanes[l] = x.mul_add(*y, lanes[l]);
        }
        sum_lanes(lanes)
    }
}

/// The row ranges from the root down to `index`, in order of position.
fn path(segments: &[Segment], index: usize) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut at = Some(index);
    while let Some(i) = at {
        ranges.push((segments[i].start, segments[i].len));
        at = segments[i].parent;
    }
    ranges.reverse();
    ranges
}

/// Copies one head of the rows of `ranges` into `[keys, dim]`.
fn gather_rows(x: &[f32], ranges: &[(usize, usize)], heads: usize, head: usize, dim: usize, out: &mut Vec<f32>) {
    out.clear();
    for &(start, len) in ranges {
        for row in start..start + len {
            let at = (row * heads + head) * dim;
            out.extend_from_slice(&x[at..at + dim]);
        }
    }
}

/// `[rows, cols] → [cols, rows]`.
fn transpose(x: &[f32], rows: usize, cols: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(rows * cols, 0.0);
    // Blocks of sixteen keep both sides within a few cache lines.
    for r0 in (0..rows).step_by(16) {
        for c0 in (0..cols).step_by(16) {
            for r in r0..(r0 + 16).min(rows) {
                for c in c0..(c0 + 16).min(cols) {
                    out[c * rows + r] = x[r * cols + c];
                }
            }
        }
    }
}

fn check(heads: Heads, segments: &[Segment], q: &[f32], k: &[f32], v: &[f32]) -> usize {
    assert!(heads.kv > 0 && heads.query.is_multiple_of(heads.kv), "query heads are a multiple of key-value heads");
    let rows = q.len() / (heads.query * heads.dim);
    assert_eq!(q.len(), rows * heads.query * heads.dim, "attention: q is [rows, query heads, dim]");
    assert_eq!(k.len(), rows * heads.kv * heads.dim, "attention: k is [rows, kv heads, dim]");
    assert_eq!(v.len(), k.len(), "attention: v is [rows, kv heads, dim]");
    for (i, s) in segments.iter().enumerate() {
        assert!(s.start + s.len <= rows, "attention: segment {i} lies outside the batch");
        let before = s.parent.map_or(0, |p| {
            assert!(p < i, "attention: a parent precedes its children");
            segments[p].position + segments[p].len
        });
        assert_eq!(s.position, before, "attention: segment {i} follows its parent");
    }
    rows
}

#[derive(Default)]
struct Scratch {
    keys: Vec<f32>,
    keys_t: Vec<f32>,
    values: Vec<f32>,
    values_t: Vec<f32>,
    tiles: Tiles,
    scores: Vec<f32>,
    d_scores: Vec<f32>,
    tile: Vec<f32>,
    d_keys: Vec<f32>,
    d_values: Vec<f32>,
}

/// `out = softmax(q · kᵀ / √dim) · v` for every row over the keys of its own sequence up to itself.
///
/// # Shapes
/// `q`, `out`: `[rows, heads.query, heads.dim]`; `k`, `v`: `[rows, heads.kv, heads.dim]`; `lse`: `[rows, heads.query]`
/// (log-sum-exp of the scaled scores). Rows that belong to no segment are left alone.
pub fn attention(
    heads: Heads,
    segments: &[Segment],
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &mut [f32],
    lse: &mut [f32],
) {
    let rows = check(heads, segments, q, k, v);
    assert_eq!(out.len(), q.len(), "attention: out is [rows, query heads, dim]");
    assert_eq!(lse.len(), rows * heads.query, "attention: lse is [rows, query heads]");
    let (out, lse) = (SharedMut::new(out), SharedMut::new(lse));
    let tasks: Vec<(usize, usize)> = (0..segments.len())
        .flat_map(|s| (0..heads.kv).map(move |h| (s, h)))
        .filter(|t| segments[t.0].len > 0)
        .collect();
    tasks.par_iter().for_each_init(Scratch::default, |scratch, &(s, kv)| {
        forward_task(heads, segments, s, kv, q, k, v, out, lse, scratch);
    });
}

fn forward_task(
    heads: Heads,
    segments: &[Segment],
    index: usize,
    kv: usize,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: SharedMut<'_>,
    lse: SharedMut<'_>,
    scratch: &mut Scratch,
) {
    let segment = segments[index];
    let ranges = path(segments, index);
    gather_rows(k, &ranges, heads.kv, kv, heads.dim, &mut scratch.keys);
    gather_rows(v, &ranges, heads.kv, kv, heads.dim, &mut scratch.values);
    let keys = segment.position + segment.len;
    transpose(&scratch.keys, keys, heads.dim, &mut scratch.keys_t);
    let rows = QueryRows { first: segment.start, len: segment.len, position: segment.position };
    // SAFETY: this task alone writes rows of this segment for its own heads.
    unsafe {
        attend_rows(heads, kv, rows, q, (&scratch.keys_t, keys), &scratch.values, out, Some(lse), &mut scratch.tiles);
    }
}

/// Rows of a batch that are consecutive tokens of one sequence.
#[derive(Clone, Copy)]
pub(crate) struct QueryRows {
    pub first: usize,
    pub len: usize,
    pub position: usize,
}

#[derive(Default)]
pub(crate) struct Tiles {
    scores: Vec<f32>,
    tile: Vec<f32>,
}

/// Attention of `rows` over `keys_t` (`[dim, ≥ keys]` with its row stride) and `values` (`[keys, dim]`), for the query
/// heads of one key-value head.
///
/// # Safety
/// No other task may touch these rows' parts of `out` and `lse` for these heads.
pub(crate) unsafe fn attend_rows(
    heads: Heads,
    kv: usize,
    rows: QueryRows,
    q: &[f32],
    (keys_t, key_stride): (&[f32], usize),
    values: &[f32],
    out: SharedMut<'_>,
    lse: Option<SharedMut<'_>>,
    tiles: &mut Tiles,
) {
    let dim = heads.dim;
    let scale = score_scale(dim);
    tiles.tile.resize(TILE * dim, 0.0);
    for head in kv * heads.group()..(kv + 1) * heads.group() {
        for first in (0..rows.len).step_by(TILE) {
            let m = TILE.min(rows.len - first);
            let n = rows.position + first + m;
            let row0 = rows.first + first;
            if tiles.scores.len() < m * n {
                tiles.scores.resize(TILE * n, 0.0);
            }
            let q_at = (row0 * heads.query + head) * dim;
            let scores = &mut tiles.scores[..m * n];
            gemm_serial(m, n, dim, &q[q_at..], (heads.query * dim, 1), keys_t, key_stride, scores, n, false);
            let mut inverse = [0.0f32; TILE];
            for i in 0..m {
                let (max, sum) = softmax_row(&mut scores[i * n..(i + 1) * n], n - m + i + 1, scale);
                inverse[i] = 1.0 / sum;
                if let Some(lse) = lse {
                    // SAFETY: exclusive by the caller's promise.
                    unsafe { lse.part((row0 + i) * heads.query + head, 1)[0] = max + libm::logf(sum) };
                }
            }
            gemm_serial(m, dim, n, scores, (n, 1), values, dim, &mut tiles.tile, dim, false);
            for i in 0..m {
                let tile = &mut tiles.tile[i * dim..(i + 1) * dim];
                scale_row(tile, inverse[i]);
                // SAFETY: exclusive by the caller's promise.
                unsafe { out.part(((row0 + i) * heads.query + head) * dim, dim) }.copy_from_slice(tile);
            }
        }
    }
}

/// Scale of the scores, 1/√dim.
pub(crate) fn score_scale(dim: usize) -> f32 {
    1.0 / libm::sqrtf(dim as f32)
}

/// Gradients of [`attention`].
///
/// # Shapes
/// `dout` as `out`; `dq` (overwritten) as `q`; `dk`, `dv` (overwritten) as `k`, `v`. `out` and `lse` are the forward's.
pub fn attention_backward(
    heads: Heads,
    segments: &[Segment],
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &[f32],
    lse: &[f32],
    dout: &[f32],
    dq: &mut [f32],
    dk: &mut [f32],
    dv: &mut [f32],
) {
    check(heads, segments, q, k, v);
    assert!(dout.len() == q.len() && out.len() == q.len() && dq.len() == q.len(), "attention_backward: lengths of q");
    assert!(dk.len() == k.len() && dv.len() == k.len(), "attention_backward: lengths of k and v");
    dk.fill(0.0);
    dv.fill(0.0);
    let (dq, dk, dv) = (SharedMut::new(dq), SharedMut::new(dk), SharedMut::new(dv));
    // A tree is one task: its shared part receives from all branches, in their order.
    let mut trees: Vec<Vec<usize>> = Vec::new();
    let mut tree_of = vec![0; segments.len()];
    for (i, s) in segments.iter().enumerate() {
        match s.parent {
            None => {
                tree_of[i] = trees.len();
                trees.push(vec![i]);
            }
            Some(p) => {
                tree_of[i] = tree_of[p];
                trees[tree_of[p]].push(i);
            }
        }
    }
    let tasks: Vec<(usize, usize)> = (0..trees.len()).flat_map(|t| (0..heads.kv).map(move |h| (t, h))).collect();
    tasks.par_iter().for_each_init(Scratch::default, |scratch, &(tree, kv)| {
        for &index in &trees[tree] {
            backward_segment(heads, segments, index, kv, (q, k, v, out, lse, dout), (dq, dk, dv), scratch);
        }
    });
}

type Inputs<'a> = (&'a [f32], &'a [f32], &'a [f32], &'a [f32], &'a [f32], &'a [f32]);

fn backward_segment(
    heads: Heads,
    segments: &[Segment],
    index: usize,
    kv: usize,
    (q, k, v, out, lse, dout): Inputs<'_>,
    (dq, dk, dv): (SharedMut<'_>, SharedMut<'_>, SharedMut<'_>),
    scratch: &mut Scratch,
) {
    let dim = heads.dim;
    let scale = score_scale(dim);
    let segment = segments[index];
    let ranges = path(segments, index);
    let keys = segment.position + segment.len;
    gather_rows(k, &ranges, heads.kv, kv, dim, &mut scratch.keys);
    gather_rows(v, &ranges, heads.kv, kv, dim, &mut scratch.values);
    transpose(&scratch.keys, keys, dim, &mut scratch.keys_t);
    transpose(&scratch.values, keys, dim, &mut scratch.values_t);
    scratch.d_keys.clear();
    scratch.d_keys.resize(keys * dim, 0.0);
    scratch.d_values.clear();
    scratch.d_values.resize(keys * dim, 0.0);
    scratch.tile.resize(TILE * dim, 0.0);
    let stride = heads.query * dim;
    for head in kv * heads.group()..(kv + 1) * heads.group() {
        for first in (0..segment.len).step_by(TILE) {
            let m = TILE.min(segment.len - first);
            let n = segment.position + first + m;
            let row0 = segment.start + first;
            let at = (row0 * heads.query + head) * dim;
            scratch.scores.resize(TILE * n, 0.0);
            scratch.d_scores.resize(TILE * n, 0.0);
            gemm_serial(m, n, dim, &q[at..], (stride, 1), &scratch.keys_t, keys, &mut scratch.scores, n, false);
            gemm_serial(m, n, dim, &dout[at..], (stride, 1), &scratch.values_t, keys, &mut scratch.d_scores, n, false);
            for i in 0..m {
                let row = (row0 + i) * heads.query + head;
                let valid = n - m + i + 1;
                let p = &mut scratch.scores[i * n..(i + 1) * n];
                probabilities_row(p, valid, scale, lse[row]);
                let dot = dot_row(&dout[row * dim..(row + 1) * dim], &out[row * dim..(row + 1) * dim]);
                score_gradient_row(&mut scratch.d_scores[i * n..(i + 1) * n], p, dot, scale);
            }
            gemm_serial(m, dim, n, &scratch.d_scores, (n, 1), &scratch.keys, dim, &mut scratch.tile, dim, false);
            for i in 0..m {
                // SAFETY: this task alone writes rows of this tree for its own heads.
                unsafe { dq.part(((row0 + i) * heads.query + head) * dim, dim) }
                    .copy_from_slice(&scratch.tile[i * dim..(i + 1) * dim]);
            }
            // Rows of q and dout lie `stride` apart, which is what the right-hand matrix of a product may be.
            gemm_serial(n, dim, m, &scratch.d_scores, (1, n), &q[at..], stride, &mut scratch.d_keys, dim, true);
            gemm_serial(n, dim, m, &scratch.scores, (1, n), &dout[at..], stride, &mut scratch.d_values, dim, true);
        }
    }
    let mut from = 0;
    for &(start, len) in &ranges {
        for row in start..start + len {
            let at = (row * heads.kv + kv) * dim;
            // SAFETY: this task alone writes rows of this tree for its own key-value head.
            let (dk_row, dv_row) = unsafe { (dk.part(at, dim), dv.part(at, dim)) };
            for d in 0..dim {
                dk_row[d] += scratch.d_keys[from + d];
                dv_row[d] += scratch.d_values[from + d];
            }
            from += dim;
        }
    }
}
