//! Batched generation over several turns, with a paged key-value cache that is kept between them.
//!
//! Sequences join the running batch as places become free and leave it when their response ends; their cache stays
//! until they are closed. A sequence's tokens depend on its own context and random stream only: batch composition,
//! prefill in pieces, shared prefixes and evictions never change a bit.

use std::collections::{BTreeMap, HashMap, VecDeque};

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use ragen_kernels::elementwise::{add_assign, add_bias};
use ragen_kernels::embedding::embed;
use ragen_kernels::gemm::{PackedWeight, linear_packed, linear_packed_serial};
use ragen_kernels::kv_cache::{KvCache, KvSequence, Span};
use ragen_kernels::norm::rms_norm_in_place;
use ragen_kernels::rope;
use ragen_kernels::swiglu::swiglu;

use crate::params::{Layout, heads};
use crate::sampler::{Drawn, Sampling, draw};
use crate::transformer::Transformer;

/// Rows that one forward processes at most; longer prompts are fed in pieces.
const MAX_ROWS: usize = 1024;
/// Below this size a model's weights stay in a core's cache.
const SMALL_MODEL_BYTES: usize = 16 << 20;
/// Rows of logits that one task draws from.
const DRAWS_PER_TASK: usize = 32;

/// A piece of text to continue.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names the sequence for as long as it is open. A new id starts a sequence, a known one extends it.
    pub id: u64,
    /// The given tokens to append before generation starts. At least one for a new sequence.
    pub given: Vec<u32>,
    /// Seed of the random stream of this response.
    pub seed: u64,
    /// Most tokens to draw before the response counts as cut.
    pub max_new_tokens: usize,
}

/// One generated response.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The id of the request.
    pub id: u64,
    /// Sampled tokens, including the stop token when there is one.
    pub tokens: Vec<u32>,
    /// Per token, its log-probability over the whole vocabulary at the temperature: the bits that scoring gives.
    pub log_probs: Vec<f32>,
    /// Per token, its log-probability under the distribution that was sampled from.
    pub sampling_log_probs: Vec<f32>,
    /// Whether a stop token ended the response (false: the token limit or the model's context did).
    pub stopped: bool,
}

/// Why generation could not go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The context and one more token do not fit the model.
    #[error("a context of {len} tokens leaves no room for a response: the model holds {max}; shorten the context")]
    ContextOverflow {
        /// Tokens of context.
        len: usize,
        /// Tokens the model holds.
        max: usize,
    },
    /// Nothing to start from.
    #[error("request {id}: a new sequence needs at least one given token")]
    EmptyPrompt {
        /// The request.
        id: u64,
    },
    /// The sequence is being generated already.
    #[error("request {id}: the sequence is still being generated")]
    Busy {
        /// The request.
        id: u64,
    },
    /// A limit of no tokens.
    #[error("request {id}: max_new_tokens must be at least 1")]
    NoTokens {
        /// The request.
        id: u64,
    },
    /// A token id the model does not have.
    #[error("request {id}: token {token} is outside the model's vocabulary of {vocab}")]
    UnknownToken {
        /// The request.
        id: u64,
        /// The token.
        token: u32,
        /// The model's vocabulary size.
        vocab: usize,
    },
    /// Even one sequence alone does not fit the cache.
    #[error("the key-value cache of {pages} pages cannot hold a sequence of {len} tokens; give it more memory")]
    CacheTooSmall {
        /// Pages of the cache.
        pages: usize,
        /// Tokens of the sequence.
        len: usize,
    },
}

struct PackedLayer {
    q: PackedWeight,
    k: PackedWeight,
    v: PackedWeight,
    o: PackedWeight,
    gate: PackedWeight,
    up: PackedWeight,
    down: PackedWeight,
}

/// All weights of a model in the layout that decoding reads. Made once per update of the weights.
pub struct PackedModel {
    layers: Vec<PackedLayer>,
    head: PackedWeight,
}

impl PackedModel {
    /// Packs the weights.
    pub fn new(model: &Transformer, params: &[f32]) -> Self {
        let c = model.config();
        let (wq, wk) = (c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim);
        let (dim, ff) = (c.hidden_size, c.intermediate_size);
        let pack = |range: &std::ops::Range<usize>, n, k| PackedWeight::pack(&params[range.clone()], n, k);
        let layers = model.layout().layers.iter().map(|p| PackedLayer {
            q: pack(&p.q.weight, wq, dim),
            k: pack(&p.k.weight, wk, dim),
            v: pack(&p.v.weight, wk, dim),
            o: pack(&p.o, dim, wq),
            gate: pack(&p.gate, ff, dim),
            up: pack(&p.up, ff, dim),
            down: pack(&p.down, dim, ff),
        });
        Self { layers: layers.collect(), head: pack(&model.layout().head, c.vocab_size, dim) }
    }
}

struct State {
    tokens: Vec<u32>,
    cached: KvSequence,
    rng: ChaCha8Rng,
    max_new_tokens: usize,
    produced: Completion,
    /// Waiting, decoding, or (neither) paused between turns.
    queued: bool,
    active: bool,
    /// The prompt of a new sequence, for others that begin alike.
    prompt: usize,
}

#[derive(Default)]
struct Buffers {
    x: Vec<f32>,
    normed: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    out: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    act: Vec<f32>,
    picked: Vec<f32>,
    logits: Vec<f32>,
}

/// Generation with fixed weights.
pub struct Generator<'a> {
    model: &'a Transformer,
    params: &'a [f32],
    packed: &'a PackedModel,
    sampling: Sampling,
    max_batch: usize,
    cache: &'a mut KvCache,
    pages: usize,
    states: BTreeMap<u64, State>,
    queue: VecDeque<u64>,
    active: Vec<u64>,
    /// Prompt of a new sequence → the sequence that computes it first.
    leaders: HashMap<Vec<u32>, u64>,
    /// One set per thread that takes sequences through all layers.
    buffers: Vec<Buffers>,
}

impl<'a> Generator<'a> {
    /// A generator over an empty `cache`, decoding at most `max_batch` sequences together.
    pub fn new(
        model: &'a Transformer,
        params: &'a [f32],
        packed: &'a PackedModel,
        cache: &'a mut KvCache,
        sampling: Sampling,
        max_batch: usize,
    ) -> Self {
        let pages = cache.free_pages();
        Self {
            model,
            params,
            packed,
            sampling,
            max_batch: max_batch.max(1),
            cache,
            pages,
            states: BTreeMap::new(),
            queue: VecDeque::new(),
            active: Vec::new(),
            leaders: HashMap::new(),
            buffers: Vec::new(),
        }
    }

    /// Number of requests queued or being decoded.
    pub fn active(&self) -> usize {
        self.queue.len() + self.active.len()
    }

    /// Queues a request.
    ///
    /// # Errors
    /// When the request makes no sense or its context does not fit the model; nothing changes then.
    pub fn submit(&mut self, request: Request) -> Result<(), GenerateError> {
        let id = request.id;
        let known = self.states.get(&id);
        let before = known.map_or(0, |s| s.tokens.len());
        if known.is_some_and(|s| s.queued || s.active) {
            return Err(GenerateError::Busy { id });
        }
        if before + request.given.len() == 0 {
            return Err(GenerateError::EmptyPrompt { id });
        }
        if request.max_new_tokens == 0 {
            return Err(GenerateError::NoTokens { id });
        }
        let vocab = self.model.config().vocab_size;
        if let Some(&token) = request.given.iter().find(|t| **t as usize >= vocab) {
            return Err(GenerateError::UnknownToken { id, token, vocab });
        }
        let (len, max) = (before + request.given.len(), self.model.max_context());
        if len >= max {
            return Err(GenerateError::ContextOverflow { len, max });
        }
        if known.is_none() {
            self.leaders.entry(request.given.clone()).or_insert(id);
        }
        let state = self.states.entry(id).or_insert_with(|| State {
            tokens: Vec::new(),
            cached: KvSequence::default(),
            rng: ChaCha8Rng::seed_from_u64(0),
            max_new_tokens: 0,
            produced: empty(id),
            queued: false,
            active: false,
            prompt: request.given.len(),
        });
        state.tokens.extend_from_slice(&request.given);
        state.rng = ChaCha8Rng::seed_from_u64(request.seed);
        state.max_new_tokens = request.max_new_tokens;
        state.produced = empty(id);
        state.queued = true;
        self.queue.push_back(id);
        Ok(())
    }

    /// Forgets a sequence and frees its cache.
    pub fn close(&mut self, id: u64) {
        if let Some(mut state) = self.states.remove(&id) {
            self.cache.release(&mut state.cached);
            self.queue.retain(|q| *q != id);
            self.active.retain(|a| *a != id);
            self.leaders.retain(|_, leader| *leader != id);
        }
    }

    /// Advances the batch by one token and returns the responses that ended with it.
    ///
    /// # Errors
    /// [`GenerateError::CacheTooSmall`] when a single sequence does not fit.
    pub fn step(&mut self) -> Result<Vec<Completion>, GenerateError> {
        self.admit()?;
        let plan = self.plan()?;
        if plan.is_empty() {
            return Ok(Vec::new());
        }
        let drawn = self.forward_and_draw(&plan);
        let mut finished = Vec::new();
        for (id, token, log_prob, sampling_log_prob) in drawn {
            let max = self.model.max_context();
            let Some(state) = self.states.get_mut(&id) else { continue };
            state.tokens.push(token);
            state.produced.tokens.push(token);
            state.produced.log_probs.push(log_prob);
            state.produced.sampling_log_probs.push(sampling_log_prob);
            let stopped = self.sampling.stop.contains(&token);
            if stopped || state.produced.tokens.len() >= state.max_new_tokens || state.tokens.len() >= max {
                state.active = false;
                let mut done = std::mem::replace(&mut state.produced, empty(id));
                done.stopped = stopped;
                finished.push(done);
            }
        }
        let states = &self.states;
        self.active.retain(|id| states.get(id).is_some_and(|s| s.active));
        Ok(finished)
    }

    /// Moves queued requests into the batch while there are places and pages.
    fn admit(&mut self) -> Result<(), GenerateError> {
        let mut waiting = VecDeque::new();
        while self.active.len() < self.max_batch {
            let Some(id) = self.queue.pop_front() else { break };
            if !self.share_prompt(id) {
                // Its leader is about to compute the prompt: join right after.
                waiting.push_back(id);
                continue;
            }
            if let Some(state) = self.states.get_mut(&id) {
                state.queued = false;
                state.active = true;
                self.active.push(id);
            }
        }
        while let Some(id) = waiting.pop_back() {
            self.queue.push_front(id);
        }
        Ok(())
    }

    /// Lets a new sequence start from the cached prompt of one that began alike. False: that prompt is being computed.
    fn share_prompt(&mut self, id: u64) -> bool {
        let Some(state) = self.states.get(&id) else { return true };
        if !state.cached.is_empty() || state.tokens.len() != state.prompt || state.prompt < 2 {
            return true;
        }
        let Some(&leader) = self.leaders.get(&state.tokens) else { return true };
        let want = state.prompt - 1;
        let Some(source) = self.states.get(&leader).filter(|_| leader != id) else { return true };
        if source.cached.len() < want {
            return !source.active;
        }
        if let Ok(child) = self.cache.fork(&source.cached, want)
            && let Some(state) = self.states.get_mut(&id)
        {
            state.cached = child;
        }
        true
    }

    /// Which sequences feed how many tokens now, with their pages reserved.
    fn plan(&mut self) -> Result<Vec<(u64, usize)>, GenerateError> {
        let mut plan = Vec::new();
        let mut left = MAX_ROWS.max(self.max_batch);
        let mut i = 0;
        while i < self.active.len() {
            let id = self.active[i];
            let Some(state) = self.states.get_mut(&id) else {
                i += 1;
                continue;
            };
            let n = (state.tokens.len() - state.cached.len()).min(left);
            if n == 0 {
                break;
            }
            if self.cache.reserve(&mut state.cached, n).is_err() {
                let len = state.tokens.len();
                if !self.evict(i) {
                    return Err(GenerateError::CacheTooSmall { pages: self.pages, len });
                }
                continue;
            }
            left -= n;
            plan.push((id, n));
            i += 1;
        }
        Ok(plan)
    }

    /// Frees pages: of a paused sequence, else of the one that joined the batch last, which is queued again. Their
    /// tokens are kept and computed again later, to the same bits.
    fn evict(&mut self, current: usize) -> bool {
        let paused = self.states.values_mut().find(|s| !s.active && !s.cached.is_empty());
        if let Some(state) = paused {
            self.cache.release(&mut state.cached);
            return true;
        }
        if self.active.len() <= current + 1 {
            return false;
        }
        let Some(id) = self.active.pop() else { return false };
        if let Some(state) = self.states.get_mut(&id) {
            self.cache.release(&mut state.cached);
            state.active = false;
            state.queued = true;
            self.queue.push_front(id);
        }
        true
    }

    fn forward_and_draw(&mut self, plan: &[(u64, usize)]) -> Vec<(u64, u32, f32, f32)> {
        // A small model's weights stay in each core's cache: threads share the sequences. A large one's are read once
        // for all sequences: threads share the products.
        let small = self.model.layout().len() * size_of::<f32>() <= SMALL_MODEL_BYTES;
        let threads = if small { rayon::current_num_threads().min(plan.len()) } else { 1 };
        let rows: usize = plan.iter().map(|p| p.1).sum();
        self.buffers.resize_with(threads, Buffers::default);
        let mut jobs: Vec<(Vec<Span<'_>>, Job<'_>)> = Vec::with_capacity(threads);
        let mut buffers = self.buffers.iter_mut();
        let mut filled = 0;
        for &(id, n) in plan {
            if jobs.len() <= filled * threads / rows.max(1)
                && let Some(buffers) = buffers.next()
            {
                jobs.push((Vec::new(), Job { feed: Feed::default(), draws: Vec::new(), buffers }));
            }
            let Some((spans, job)) = jobs.last_mut() else { break };
            let state = &self.states[&id];
            let from = state.cached.len();
            spans.push(Span { sequence: &state.cached, row: job.feed.tokens.len(), rows: n });
            job.feed.tokens.extend_from_slice(&state.tokens[from..from + n]);
            job.feed.positions.extend((from..from + n).map(|p| p as u32));
            if from + n == state.tokens.len() {
                job.feed.last.push(job.feed.tokens.len() - 1);
                job.draws.push((id, state.rng.clone(), None));
            }
            filled += n;
        }
        let (model, params, packed, sampling) = (self.model, self.params, self.packed, &self.sampling);
        let shared = jobs.len() == 1;
        let (mut spans, mut work): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        if shared {
            let (spans, job) = (&spans[0], &mut work[0]);
            let cache = &mut *self.cache;
            let attend =
                |l: usize, q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]| cache.attend(l, spans, q, k, v, out);
            forward(model, params, packed, linear_packed, attend, &job.feed, job.buffers);
            job.draw(model, sampling);
        } else {
            let groups = spans.drain(..).zip(work.iter_mut()).collect();
            self.cache.run_groups(groups, |group, job: &mut Job<'_>| {
                let attend = |l: usize, q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]| group.attend(l, q, k, v, out);
                forward(model, params, packed, linear_packed_serial, attend, &job.feed, job.buffers);
                job.draw(model, sampling);
            });
        }
        let draws: Vec<_> = work.into_iter().flat_map(|job| job.draws).collect();
        drop(spans);
        for &(id, n) in plan {
            if let Some(state) = self.states.get_mut(&id) {
                KvCache::commit(&mut state.cached, n);
            }
        }
        let mut drawn = Vec::with_capacity(draws.len());
        for (id, rng, token) in draws {
            if let (Some(state), Some(d)) = (self.states.get_mut(&id), token) {
                state.rng = rng;
                drawn.push((id, d.token, d.log_prob, d.sampling_log_prob));
            }
        }
        drawn
    }
}

/// Tokens to feed, and the rows whose logits are wanted.
#[derive(Default)]
struct Feed {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    last: Vec<usize>,
}

/// What one thread does in a step: some sequences through all layers, and their draws.
struct Job<'a> {
    feed: Feed,
    draws: Vec<(u64, ChaCha8Rng, Option<Drawn>)>,
    buffers: &'a mut Buffers,
}

impl Job<'_> {
    fn draw(&mut self, model: &Transformer, sampling: &Sampling) {
        let vocab = model.config().vocab_size;
        let logits = &mut self.buffers.logits[..self.draws.len() * vocab];
        logits
            .par_chunks_mut(vocab)
            .zip(self.draws.par_iter_mut())
            .with_min_len(DRAWS_PER_TASK)
            .for_each_init(Vec::new, |scratch, (row, (_, rng, token))| {
                *token = Some(draw(row, sampling, rng, scratch))
            });
    }
}

impl Drop for Generator<'_> {
    fn drop(&mut self) {
        for state in self.states.values_mut() {
            self.cache.release(&mut state.cached);
        }
    }
}

fn empty(id: u64) -> Completion {
    Completion { id, tokens: Vec::new(), log_probs: Vec::new(), sampling_log_probs: Vec::new(), stopped: false }
}

fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

/// A product with a packed weight: over all threads or on the calling one, to the same bits.
type LinearFn = fn(usize, &[f32], &PackedWeight, &mut [f32], bool);

/// Feeds tokens and leaves the logits `[feed.last.len(), vocab]` in the buffers.
fn forward(
    model: &Transformer,
    params: &[f32],
    packed: &PackedModel,
    linear: LinearFn,
    mut attend: impl FnMut(usize, &[f32], &[f32], &[f32], &mut [f32]),
    feed: &Feed,
    buffers: &mut Buffers,
) {
    let c = model.config();
    let layout: &Layout = model.layout();
    let (rows, dim, ff, eps) = (feed.tokens.len(), c.hidden_size, c.intermediate_size, c.rms_norm_eps);
    let hd = heads(c);
    let (wq, wk) = (hd.query * hd.dim, hd.kv * hd.dim);
    let x = sized(&mut buffers.x, rows * dim);
    embed(dim, &feed.tokens, &params[layout.embed.clone()], x);
    let normed = sized(&mut buffers.normed, rows * dim);
    let (q, out) = (sized(&mut buffers.q, rows * wq), sized(&mut buffers.out, rows * wq));
    let (k, v) = (sized(&mut buffers.k, rows * wk), sized(&mut buffers.v, rows * wk));
    let (gate, up) = (sized(&mut buffers.gate, rows * ff), sized(&mut buffers.up, rows * ff));
    let act = sized(&mut buffers.act, rows * ff);
    for (l, (p, w)) in layout.layers.iter().zip(&packed.layers).enumerate() {
        normed.copy_from_slice(x);
        rms_norm_in_place(rows, dim, normed, &params[p.input_norm.clone()], eps);
        for (projection, weight, y, width) in
            [(&p.q, &w.q, &mut *q, wq), (&p.k, &w.k, &mut *k, wk), (&p.v, &w.v, &mut *v, wk)]
        {
            linear(rows, normed, weight, y, false);
            if let Some(bias) = &projection.bias {
                add_bias(width, y, &params[bias.clone()]);
            }
        }
        for (norm, y, n) in [(&p.q_norm, &mut *q, hd.query), (&p.k_norm, &mut *k, hd.kv)] {
            if let Some(norm) = norm {
                rms_norm_in_place(rows * n, hd.dim, y, &params[norm.clone()], eps);
            }
            rope::apply(rows, n, hd.dim, y, &feed.positions, model.rope());
        }
        attend(l, q, k, v, out);
        linear(rows, out, &w.o, normed, false);
        add_assign(x, normed);
        normed.copy_from_slice(x);
        rms_norm_in_place(rows, dim, normed, &params[p.post_norm.clone()], eps);
        linear(rows, normed, &w.gate, gate, false);
        linear(rows, normed, &w.up, up, false);
        swiglu(rows * ff, gate, up, act);
        linear(rows, act, &w.down, normed, false);
        add_assign(x, normed);
    }
    let picked = sized(&mut buffers.picked, feed.last.len() * dim);
    for (to, &row) in picked.chunks_exact_mut(dim).zip(&feed.last) {
        to.copy_from_slice(&x[row * dim..][..dim]);
    }
    rms_norm_in_place(feed.last.len(), dim, picked, &params[layout.norm.clone()], eps);
    let logits = sized(&mut buffers.logits, feed.last.len() * c.vocab_size);
    linear(feed.last.len(), picked, &packed.head, logits, false);
}
