//! A paged key-value cache, and attention of new tokens over it.
//!
//! Pages hold [`PAGE`] positions of all layers and heads. Sequences own lists of pages; sequences that begin alike share
//! their full pages. Keys lie transposed within a page so that a query meets [`PAGE`] keys with one vector product.
//! Results have the same bits as [`crate::attention::attention`] over the same tokens.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::attention::Heads;
use crate::kv_attend::{Scratch, attend_span};
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
    /// Its pages in order of position, those reserved for tokens to come included.
    pub(crate) fn pages(&self) -> &[u32] {
        &self.pages
    }

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

    /// Bytes that one position takes over all layers.
    pub fn position_bytes(&self) -> usize {
        Self::page_bytes(self.keys.len(), self.heads) / PAGE
    }

    /// Pages not in use.
    pub fn free_pages(&self) -> usize {
        self.free.len()
    }

    /// Pages that `sequence` would have to take for `new_tokens` more. None when an earlier reservation, made for tokens
    /// that never came, reaches that far.
    pub fn pages_needed(sequence: &KvSequence, new_tokens: usize) -> usize {
        (sequence.len + new_tokens).div_ceil(PAGE).saturating_sub(sequence.pages.len())
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
        let mut written = HashSet::new();
        for span in spans {
            let (start, end) = (span.sequence.len, span.sequence.len + span.rows);
            assert!(end <= span.sequence.pages.len() * PAGE, "attend: positions were not reserved");
            self.check_writes(&span.sequence.pages[start / PAGE..end.div_ceil(PAGE)], &mut written);
        }
        let heads = self.heads;
        let buffers = self.buffers();
        let (keys, values) = buffers[layer];
        check_rows(heads, spans, q, k, v, out);
        let out = SharedMut::new(out);
        spans.par_iter().with_min_len(8).for_each_init(Scratch::default, |scratch, span| {
            // SAFETY: `check_writes` saw that the pages written belong to this span's sequence alone; other pages are
            // only read; rows of a span are its own.
            unsafe { attend_span(heads, span, (q, k, v), keys, values, out, scratch) };
        });
    }

    /// Runs `run` for every crew in parallel and gives the sequences back with what it returned.
    ///
    /// A small model decodes faster when each thread takes some sequences through all layers than when threads share
    /// every product.
    ///
    /// # Panics
    /// When a page reserved for new tokens is shared.
    pub fn run_crews<T: Send, R: Send>(
        &mut self,
        crews: Vec<(Vec<KvSequence>, T)>,
        run: impl Fn(&mut Crew<'_>, T) -> R + Sync + Send,
    ) -> Vec<(Vec<KvSequence>, R)> {
        let mut written = HashSet::new();
        for sequence in crews.iter().flat_map(|crew| &crew.0) {
            self.check_writes(&sequence.pages[sequence.len / PAGE..], &mut written);
        }
        let heads = self.heads;
        let buffers = self.buffers();
        let run = |(sequences, item)| {
            let mut crew = Crew { heads, buffers: &buffers, sequences, scratch: Scratch::default() };
            let result = run(&mut crew, item);
            (crew.sequences, result)
        };
        crews.into_par_iter().with_max_len(1).map(run).collect()
    }

    fn buffers(&mut self) -> Vec<(SharedMut<'_>, SharedMut<'_>)> {
        self.keys.iter_mut().zip(&mut self.values).map(|(k, v)| (SharedMut::new(k), SharedMut::new(v))).collect()
    }

    /// Every page to be written belongs to one sequence alone.
    fn check_writes(&self, pages: &[u32], written: &mut HashSet<u32>) {
        for &page in pages {
            assert_eq!(self.references[page as usize], 1, "attend: a shared page would be written");
            assert!(written.insert(page), "attend: two spans write to one page");
        }
    }
}

/// Every span's rows lie within the batch and are its own.
fn check_rows(heads: Heads, spans: &[Span<'_>], q: &[f32], k: &[f32], v: &[f32], out: &[f32]) {
    let mut free = 0;
    for span in spans {
        assert!(span.row >= free, "attend: rows of spans overlap or are out of order");
        free = span.row + span.rows;
    }
    assert!(free * heads.kv * heads.dim <= k.len(), "attend: rows lie outside the batch");
    assert_eq!(k.len(), v.len(), "attend: k and v have one shape");
    assert_eq!(q.len(), out.len(), "attend: q and out have one shape");
}

/// New tokens of one of a crew's sequences, as a [`Span`].
#[derive(Clone, Copy, Debug)]
pub struct CrewSpan {
    /// Which of the crew's sequences.
    pub sequence: usize,
    /// First row within the crew's batch.
    pub row: usize,
    /// Number of rows, at least one.
    pub rows: usize,
}

/// Sequences that one thread takes through all layers, any number of tokens far, with the pages they own.
pub struct Crew<'a> {
    heads: Heads,
    buffers: &'a [(SharedMut<'a>, SharedMut<'a>)],
    sequences: Vec<KvSequence>,
    scratch: Scratch,
}

impl Crew<'_> {
    /// The sequences.
    pub fn sequences(&self) -> &[KvSequence] {
        &self.sequences
    }

    /// As [`KvCache::attend`], for spans of this crew's sequences.
    pub fn attend(&mut self, layer: usize, spans: &[CrewSpan], q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]) {
        let (heads, (keys, values)) = (self.heads, self.buffers[layer]);
        let spans: Vec<Span<'_>> =
            spans.iter().map(|s| Span { sequence: &self.sequences[s.sequence], row: s.row, rows: s.rows }).collect();
        check_rows(heads, &spans, q, k, v, out);
        let out = SharedMut::new(out);
        for span in &spans {
            let end = span.sequence.len + span.rows;
            assert!(end <= span.sequence.pages.len() * PAGE, "attend: positions were not reserved");
            // SAFETY: `run_crews` saw that all pages from the first new position on belong to this sequence alone, and
            // the crew is this thread's; other pages are only read; rows of a span are its own.
            unsafe { attend_span(heads, span, (q, k, v), keys, values, out, &mut self.scratch) };
        }
    }

    /// As [`KvCache::commit`], for the crew's sequence `index`.
    pub fn commit(&mut self, index: usize, new_tokens: usize) {
        KvCache::commit(&mut self.sequences[index], new_tokens);
    }
}
