//! Batched generation over several turns, with a paged key-value cache that is kept between them.
//!
//! Sequences join the running batch as places become free and leave it when their response ends; their cache stays
//! until they are closed. A sequence's tokens depend on its own context and random stream only: batch composition,
//! prefill in pieces, shared prefixes and evictions never change a bit.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use ragen_kernels::gemm::linear_packed;
use ragen_kernels::kv_cache::{KvCache, KvSequence, Span};

use crate::burst::{BURST, Burst, Member};
use crate::decode::{Buffers, Feed, forward};
use crate::sampler::{Drawn, Sampling, draw};
use crate::transformer::Transformer;

pub use crate::decode::PackedModel;

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
    /// Some requests wait for a prompt that another sequence is computing.
    held_back: bool,
    /// Activations, a set for each thread that works at a time.
    buffers: Mutex<Vec<Buffers>>,
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
            held_back: false,
            buffers: Mutex::default(),
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

    /// Advances the batch by a token, a small model's by several, and returns the responses that ended meanwhile.
    ///
    /// # Errors
    /// [`GenerateError::CacheTooSmall`] when a single sequence does not fit.
    pub fn step(&mut self) -> Result<Vec<Completion>, GenerateError> {
        self.admit()?;
        let plan = self.plan()?;
        if plan.is_empty() {
            return Ok(Vec::new());
        }
        // Threads share the sequences of a small model and the products of a large one, whose weights are then read
        // once for all sequences.
        let small = self.model.layout().len() * size_of::<f32>() <= SMALL_MODEL_BYTES;
        let drawn = if small { self.burst(&plan) } else { self.one_token(&plan) };
        let max = self.model.max_context();
        let mut finished = Vec::new();
        for (id, token) in drawn {
            let Some(state) = self.states.get_mut(&id) else { continue };
            state.tokens.push(token.token);
            state.produced.tokens.push(token.token);
            state.produced.log_probs.push(token.log_prob);
            state.produced.sampling_log_probs.push(token.sampling_log_prob);
            let stopped = self.sampling.stop.contains(&token.token);
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
        self.held_back = !waiting.is_empty();
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
                if !self.evict() {
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

    /// Frees pages: of a paused sequence, else of the one that joined the batch last, which is queued again (it may be
    /// the very one that asks). Their tokens are kept and computed again later, to the same bits. False: nobody is left
    /// but the first of the batch.
    fn evict(&mut self) -> bool {
        let paused = self.states.values_mut().find(|s| !s.active && !s.cached.is_empty());
        if let Some(state) = paused {
            self.cache.release(&mut state.cached);
            return true;
        }
        if self.active.len() <= 1 {
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

    /// Feeds what was planned and draws up to [`BURST`] tokens for every sequence whose context is then complete.
    fn burst(&mut self, plan: &[(u64, usize)]) -> Vec<(u64, Drawn)> {
        // Whoever waits for a prompt joins right after it has been read.
        let ahead = if self.held_back { 1 } else { BURST };
        let max = self.model.max_context();
        let mut members = Vec::with_capacity(plan.len());
        for &(id, n) in plan {
            let Some(state) = self.states.get_mut(&id) else { continue };
            let from = state.cached.len();
            let mut room = 0;
            if from + n == state.tokens.len() {
                let left = state.max_new_tokens - state.produced.tokens.len();
                room = ahead.min(left).min(max - state.tokens.len());
                if room > 1 && self.cache.reserve(&mut state.cached, n + room - 1).is_err() {
                    room = 1;
                }
            }
            let feed = state.tokens[from..from + n].to_vec();
            let member = Member { id, feed, room, rng: state.rng.clone(), drawn: Vec::with_capacity(room) };
            members.push((std::mem::take(&mut state.cached), member));
        }
        let burst = Burst {
            model: self.model,
            params: self.params,
            packed: self.packed,
            sampling: &self.sampling,
            buffers: &self.buffers,
        };
        let mut all = Vec::new();
        for (cached, member) in burst.run(self.cache, members) {
            if let Some(state) = self.states.get_mut(&member.id) {
                state.cached = cached;
                state.rng = member.rng;
                all.extend(member.drawn.into_iter().map(|drawn| (member.id, drawn)));
            }
        }
        all
    }

    /// Feeds what was planned and draws a token for every sequence whose context is then complete; all threads work on
    /// each product.
    fn one_token(&mut self, plan: &[(u64, usize)]) -> Vec<(u64, Drawn)> {
        let mut feed = Feed::default();
        let mut spans = Vec::with_capacity(plan.len());
        let mut draws: Vec<(u64, ChaCha8Rng, Option<Drawn>)> = Vec::with_capacity(plan.len());
        for &(id, n) in plan {
            let state = &self.states[&id];
            let from = state.cached.len();
            spans.push(Span { sequence: &state.cached, row: feed.tokens.len(), rows: n });
            feed.tokens.extend_from_slice(&state.tokens[from..from + n]);
            feed.positions.extend((from..from + n).map(|p| p as u32));
            if from + n == state.tokens.len() {
                feed.last.push(feed.tokens.len() - 1);
                draws.push((id, state.rng.clone(), None));
            }
        }
        let buffers = self.buffers.get_mut().unwrap_or_else(PoisonError::into_inner);
        buffers.resize_with(1, Buffers::default);
        let cache = &mut *self.cache;
        let attend = |l: usize, q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]| cache.attend(l, &spans, q, k, v, out);
        forward(self.model, self.params, self.packed, linear_packed, attend, &feed, &mut buffers[0]);
        let vocab = self.model.config().vocab_size;
        let logits = &mut buffers[0].logits[..draws.len() * vocab];
        logits
            .par_chunks_mut(vocab)
            .zip(draws.par_iter_mut())
            .with_min_len(DRAWS_PER_TASK)
            .for_each_init(Vec::new, |scratch, (row, (_, rng, token))| {
                *token = Some(draw(row, &self.sampling, rng, scratch))
            });
        for &(id, n) in plan {
            if let Some(state) = self.states.get_mut(&id) {
                KvCache::commit(&mut state.cached, n);
            }
        }
        let mut drawn = Vec::with_capacity(draws.len());
        for (id, rng, token) in draws {
            if let (Some(state), Some(token)) = (self.states.get_mut(&id), token) {
                state.rng = rng;
                drawn.push((id, token));
            }
        }
        drawn
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
