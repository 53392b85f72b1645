//! A paged key-value cache, and attention of new tokens over it.
//!
//! Pages hold [`PAGE`] positions of all layers and heads. Sequences own lists of pages; sequences that begin alike share
//! their full pages. Keys lie transposed within a page so that a query meets [`PAGE`] keys with one vector product.
//! Results have the same bits as [`crate::attention::attention`] over the same tokens.

use rayon::prelude::*;

use crate::attention::{Heads, QueryRows, Tiles, attend_rows, scale_row, score_scale, softmax_row};
use crate::gemm::gemm_serial;
use crate::shared::SharedMut;

/// Positions per page.
pub const PAGE: usize = 32;

/// The cache has too few free pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key-value cache has {free} free pages of {PAGE} tokens and {wanted} are needed")]
pub struct CacheFull {
    /// Pages needed.
    pub wanted: usize,
    /// Pages free.
    pub free: usize,
}

/// The pages of one sequence. Give it back with [`KvCache::release`].
#[derive(Debug, Default)]
pub struct KvSequence {
    pages: Vec<u32>,
    len: usize,
}

impl KvSequence {
    /// Number of cached positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// New tokens of one sequence within a batch of rows. Their pages have been reserved.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The sequence; its cached length is the position of the first new token.
    pub sequence: &'a KvSequence,
    /// First row within the batch.
    pub row: usize,
    /// Number of rows, at least one.
    pub rows: usize,
}

/// Keys and values of many sequences, allocated once.
pub struct KvCache {
    heads: Heads,
    /// Per layer `[pages, kv, dim, PAGE]`.
    keys: Vec<Vec<f32>>,
    /// Per layer `[pages, kv, PAGE, dim]`.
    values: Vec<Vec<f32>>,
    references: Vec<u32>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    tile: Vec<f32>,
    inverse: Vec<f32>,
    keys_t: Vec<f32>,
    values: Vec<f32>,
    tiles: Tiles,
}

impl KvCache {
    /// A cache of `pages` pages. Memory is taken from the system page by page as it is first used.
    pub fn new(layers: usize, heads: Heads, pages: usize) -> Self {
        let size = pages * heads.kv * heads.dim * PAGE;
        Self {
            heads,
            keys: (0..layers).map(|_| vec![0.0; size]).collect(),
            values: (0..layers).map(|_| vec![0.0; size]).collect(),
            references: vec![0; pages],
            free: (0..pages as u32).rev().collect(),
        }
    }

    /// Bytes that one page takes over all layers.
    pub fn page_bytes(layers: usize, heads: Heads) -> usize {
        layers * heads.kv * heads.dim * PAGE * 2 * size_of::<f32>()
    }

    /// Pages not in use.
    pub fn free_pages(&self) -> usize {
        self.free.len()
    }

    /// Pages that `sequence` would have to take for `new_tokens` more.
    pub fn pages_needed(sequence: &KvSequence, new_tokens: usize) -> usize {
        (sequence.len + new_tokens).div_ceil(PAGE) - sequence.pages.len()
    }

    /// Makes room for `new_tokens` more positions.
    ///
    /// # Errors
    /// [`CacheFull`]; nothing is taken then.
    pub fn reserve(&mut self, sequence: &mut KvSequence, new_tokens: usize) -> Result<(), CacheFull> {
        let wanted = Self::pages_needed(sequence, new_tokens);
        if wanted > self.free.len() {
            return Err(CacheFull { wanted, free: self.free.len() });
        }
        for _ in 0..wanted {
            if let Some(page) = self.free.pop() {
                self.references[page as usize] = 1;
                sequence.pages.push(page);
            }
        }
        Ok(())
    }

    /// A new sequence that begins with the first `len` positions of `parent`: full pages are shared, the last one is
    /// copied.
    ///
    /// # Errors
    /// [`CacheFull`] when there is no page for the copy.
    pub fn fork(&mut self, parent: &KvSequence, len: usize) -> Result<KvSequence, CacheFull> {
        assert!(len <= parent.len, "fork: {len} positions of a sequence of {}", parent.len);
        let full = len / PAGE;
        let mut child = KvSequence { pages: parent.pages[..full].to_vec(), len };
        if len > full * PAGE {
            let Some(page) = self.free.pop() else {
                return Err(CacheFull { wanted: 1, free: 0 });
            };
            self.references[page as usize] = 1;
            let size = self.heads.kv * self.heads.dim * PAGE;
            let (from, to) = (parent.pages[full] as usize * size, page as usize * size);
            for buffer in self.keys.iter_mut().chain(&mut self.values) {
                buffer.copy_within(from..from + size, to);
            }
            child.pages.push(page);
        }
        for &page in &child.pages[..full] {
            self.references[page as usize] += 1;
        }
        Ok(child)
    }

    /// Gives a sequence's pages back and empties it.
    pub fn release(&mut self, sequence: &mut KvSequence) {
        for page in sequence.pages.drain(..) {
            let references = &mut self.references[page as usize];
            *references -= 1;
            if *references == 0 {
                self.free.push(page);
            }
        }
        sequence.len = 0;
    }

    /// Counts `new_tokens` positions as cached, after all layers have attended.
    pub fn commit(sequence: &mut KvSequence, new_tokens: usize) {
        sequence.len += new_tokens;
        assert!(sequence.len <= sequence.pages.len() * PAGE, "commit: positions were not reserved");
    }

    /// Stores the new tokens' keys and values of one layer and attends them to everything before them.
    ///
    /// # Shapes
    /// `q`, `out`: `[rows, heads.query, heads.dim]`; `k`, `v`: `[rows, heads.kv, heads.dim]` with rotary embedding
    /// already applied to `q` and `k`.
    pub fn attend(&mut self, layer: usize, spans: &[Span<'_>], q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]) {
        self.check_writes(spans);
        let heads = self.heads;
        let buffers = self.buffers();
        SpanGroup { heads, buffers: &buffers, spans, parallel: true }.attend(layer, q, k, v, out);
    }

    /// Runs `run` for every group of spans in parallel. A small model decodes faster when each thread takes some
    /// sequences through all layers than when threads share every product.
    pub fn run_groups<'s, T: Send>(
        &mut self,
        groups: Vec<(Vec<Span<'s>>, T)>,
        run: impl Fn(&SpanGroup<'_, 's>, T) + Sync + Send,
    ) {
        let all: Vec<Span<'s>> = groups.iter().flat_map(|g| g.0.iter().copied()).collect();
        self.check_writes(&all);
        let heads = self.heads;
        let buffers = self.buffers();
        groups.into_par_iter().with_max_len(1).for_each(|(spans, item)| {
            run(&SpanGroup { heads, buffers: &buffers, spans: &spans, parallel: false }, item);
        });
    }

    fn buffers(&mut self) -> Vec<(SharedMut<'_>, SharedMut<'_>)> {
        self.keys.iter_mut().zip(&mut self.values).map(|(k, v)| (SharedMut::new(k), SharedMut::new(v))).collect()
    }

    /// Every page that a span writes to has been reserved and belongs to that span's sequence alone.
    fn check_writes(&self, spans: &[Span<'_>]) {
        let mut written = std::collections::HashSet::new();
        for span in spans {
            let (start, end) = (span.sequence.len, span.sequence.len + span.rows);
            assert!(end <= span.sequence.pages.len() * PAGE, "attend: positions were not reserved");
            for &page in &span.sequence.pages[start / PAGE..end.div_ceil(PAGE)] {
                assert_eq!(self.references[page as usize], 1, "attend: a shared page would be written");
                assert!(written.insert(page), "attend: two spans write to one page");
            }
        }
    }
}

/// Some spans of a batch, with access to the pages of their own sequences.
pub struct SpanGroup<'a, 's> {
    heads: Heads,
    buffers: &'a [(SharedMut<'a>, SharedMut<'a>)],
    spans: &'a [Span<'s>],
    parallel: bool,
}

impl SpanGroup<'_, '_> {
    /// As [`KvCache::attend`], for the spans of this group; their rows count within the group's own buffers.
    pub fn attend(&self, layer: usize, q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]) {
        let heads = self.heads;
        for span in self.spans {
            assert!((span.row + span.rows) * heads.kv * heads.dim <= k.len(), "attend: rows lie outside the batch");
        }
        assert_eq!(k.len(), v.len(), "attend: k and v have one shape");
        assert_eq!(q.len(), out.len(), "attend: q and out have one shape");
        let out = SharedMut::new(out);
        let (keys, values) = self.buffers[layer];
        let attend = |scratch: &mut Scratch, span: &Span<'_>| {
            // SAFETY: `check_writes` saw that the pages written belong to this span's sequence alone; other pages are
            // only read; rows of a span are its own.
            unsafe {
                store(heads, span, k, v, keys, values);
                if span.rows == 1 {
                    attend_one(heads, span, q, keys, values, out, scratch);
                } else {
                    attend_many(heads, span, q, keys, values, out, scratch);
                }
            }
        };
        if self.parallel {
            self.spans.par_iter().with_min_len(8).for_each_init(Scratch::default, attend);
        } else {
            let mut scratch = Scratch::default();
            self.spans.iter().for_each(|span| attend(&mut scratch, span));
        }
    }
}

/// # Safety
/// Nothing else touches the span's new positions.
unsafe fn store(heads: Heads, span: &Span<'_>, k: &[f32], v: &[f32], keys: SharedMut<'_>, values: SharedMut<'_>) {
    let dim = heads.dim;
    for i in 0..span.rows {
        let position = span.sequence.len + i;
        let (page, slot) = (span.sequence.pages[position / PAGE] as usize, position % PAGE);
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
    let n = span.sequence.len + 1;
    let scale = score_scale(dim);
    if scratch.scores.len() < group * n {
        scratch.scores.resize(group * n.next_multiple_of(256), 0.0);
    }
    scratch.tile.resize(group * dim, 0.0);
    scratch.inverse.resize(group, 0.0);
    for kv in 0..heads.kv {
        let at = (span.row * heads.query + kv * group) * dim;
        let queries = &q[at..at + group * dim];
        let scores = &mut scratch.scores[..group * n];
        for (p, &page) in span.sequence.pages.iter().enumerate().take(n.div_ceil(PAGE)) {
            let width = PAGE.min(n - p * PAGE);
            // SAFETY: read only.
            let block = unsafe { keys.view((page as usize * heads.kv + kv) * dim * PAGE, dim * PAGE) };
            gemm_serial(group, width, dim, queries, (dim, 1), block, PAGE, &mut scores[p * PAGE..], n, false);
        }
        for g in 0..group {
            let (_, sum) = softmax_row(&mut scores[g * n..(g + 1) * n], n, scale);
            scratch.inverse[g] = 1.0 / sum;
        }
        for (p, &page) in span.sequence.pages.iter().enumerate().take(n.div_ceil(PAGE)) {
            let width = PAGE.min(n - p * PAGE);
            // SAFETY: read only.
            let block = unsafe { values.view((page as usize * heads.kv + kv) * dim * PAGE, dim * PAGE) };
            gemm_serial(group, dim, width, &scores[p * PAGE..], (n, 1), block, dim, &mut scratch.tile, dim, p > 0);
        }
        for g in 0..group {
            let tile = &mut scratch.tile[g * dim..(g + 1) * dim];
            scale_row(tile, scratch.inverse[g]);
            // SAFETY: this row is this span's own.
            unsafe { out.part(at + g * dim, dim) }.copy_from_slice(tile);
        }
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
    let n = span.sequence.len + span.rows;
    scratch.keys_t.resize(dim * n, 0.0);
    scratch.values.resize(dim * n, 0.0);
    for kv in 0..heads.kv {
        for (p, &page) in span.sequence.pages.iter().enumerate().take(n.div_ceil(PAGE)) {
            let (first, width) = (p * PAGE, PAGE.min(n - p * PAGE));
            let at = (page as usize * heads.kv + kv) * dim * PAGE;
            // SAFETY: read only.
            let (key_page, value_page) = unsafe { (keys.view(at, dim * PAGE), values.view(at, dim * PAGE)) };
            for d in 0..dim {
                scratch.keys_t[d * n + first..][..width].copy_from_slice(&key_page[d * PAGE..][..width]);
            }
            scratch.values[first * dim..][..width * dim].copy_from_slice(&value_page[..width * dim]);
        }
        let rows = QueryRows { first: span.row, len: span.rows, position: span.sequence.len };
        // SAFETY: these rows are this span's own.
        unsafe {
            attend_rows(heads, kv, rows, q, (&scratch.keys_t, n), &scratch.values, out, None, &mut scratch.tiles);
        }
    }
}
