//! Bursts: one thread takes some sequences several tokens far before it turns to the next ones.
//!
//! A small model spends its decoding time on reading cached keys and values. A few sequences at a time for a few tokens
//! each find theirs in a core's cache again, where one token for hundreds of sequences would read all of them from
//! memory. What a sequence becomes depends on its own context and random stream only, so this changes no bit.
//! What is not here: which sequences take part and what becomes of their responses (see [`crate::generate`]).

use std::sync::{Mutex, PoisonError};

use ragen_kernels::gemm::linear_packed_serial;
use ragen_kernels::kv_cache::{Crew, CrewSpan, KvCache, KvSequence};
use rand_chacha::ChaCha8Rng;

use crate::decode::{Buffers, Feed, PackedModel, forward};
use crate::sampler::{Drawn, Sampling, draw};
use crate::transformer::Transformer;

/// Tokens that a burst draws for a sequence at most.
pub(crate) const BURST: usize = 8;
/// Bytes of keys and values that one thread comes back to within a burst: what a core may hope to find in its share of
/// the last-level cache, beside the weights.
const CREW_BYTES: usize = 3 << 20;
/// Fewer sequences than these would read the weights too often for each token.
const MIN_SEQUENCES: usize = 8;
/// What a token costs beside its attention, in cached positions that cost the same.
const TOKEN_COST: usize = 128;

/// A sequence's part in a burst.
pub(crate) struct Member {
    /// The sequence.
    pub id: u64,
    /// Tokens to feed next, at least one.
    pub feed: Vec<u32>,
    /// Most tokens to draw; 0 when only a part of a prompt is read.
    pub room: usize,
    /// The random stream of its response.
    pub rng: ChaCha8Rng,
    /// What was drawn, in order.
    pub drawn: Vec<Drawn>,
}

/// What the threads of a burst share.
pub(crate) struct Burst<'a> {
    /// The model and its weights.
    pub model: &'a Transformer,
    /// As the model lays them out.
    pub params: &'a [f32],
    /// The same, packed.
    pub packed: &'a PackedModel,
    /// How tokens are drawn.
    pub sampling: &'a Sampling,
    /// Activations, a set for each thread that works at a time.
    pub buffers: &'a Mutex<Vec<Buffers>>,
}

impl Burst<'_> {
    /// Takes all members as far as they have room, in parallel. Gives sequences and members back in their order.
    pub fn run(&self, cache: &mut KvCache, members: Vec<(KvSequence, Member)>) -> Vec<(KvSequence, Member)> {
        let work: Vec<(usize, usize)> = members
            .iter()
            .map(|(sequence, m)| (sequence.len() + m.feed.len(), m.feed.len() + m.room.saturating_sub(1)))
            .collect();
        let mut rest = members.into_iter();
        let crews = crew_sizes(&work, cache.position_bytes(), rayon::current_num_threads())
            .into_iter()
            .map(|size| rest.by_ref().take(size).unzip())
            .collect();
        let done = cache.run_crews(crews, |crew, members| self.advance(crew, members));
        done.into_iter().flat_map(|(sequences, members)| sequences.into_iter().zip(members)).collect()
    }

    fn advance(&self, crew: &mut Crew<'_>, mut members: Vec<Member>) -> Vec<Member> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let vocab = self.model.config().vocab_size;
        let (mut feed, mut spans, mut scratch) = (Feed::default(), Vec::new(), Vec::new());
        let mut running: Vec<usize> = (0..members.len()).collect();
        while !running.is_empty() {
            feed.clear();
            spans.clear();
            for &sequence in &running {
                let (member, from) = (&members[sequence], crew.sequences()[sequence].len());
                let (row, rows) = (feed.tokens.len(), member.feed.len());
                spans.push(CrewSpan { sequence, row, rows });
                feed.tokens.extend_from_slice(&member.feed);
                feed.positions.extend((from..from + rows).map(|p| p as u32));
                if member.room > 0 {
                    feed.last.push(row + rows - 1);
                }
            }
            let attend =
                |l: usize, q: &[f32], k: &[f32], v: &[f32], out: &mut [f32]| crew.attend(l, &spans, q, k, v, out);
            forward(self.model, self.params, self.packed, linear_packed_serial, attend, &feed, &mut buffers);
            for span in &spans {
                crew.commit(span.sequence, span.rows);
            }
            let mut logits = buffers.logits.chunks_exact_mut(vocab);
            running.retain(|&index| {
                let member = &mut members[index];
                if member.room == 0 {
                    return false;
                }
                let Some(row) = logits.next() else { return false };
                let drawn = draw(row, self.sampling, &mut member.rng, &mut scratch);
                member.feed.clear();
                member.feed.push(drawn.token);
                member.drawn.push(drawn);
                member.drawn.len() < member.room && !self.sampling.stop.contains(&drawn.token)
            });
        }
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffers);
        members
    }
}

/// How many neighbouring sequences each crew takes, of sequences with so many positions at the start and so many tokens
/// to compute: about equal work, crews for all threads, and little enough memory each.
fn crew_sizes(work: &[(usize, usize)], position_bytes: usize, threads: usize) -> Vec<usize> {
    let bytes = work.iter().map(|w| w.0).sum::<usize>() * position_bytes;
    let crews = bytes.div_ceil(CREW_BYTES).min(work.len() / MIN_SEQUENCES).next_multiple_of(threads).max(threads);
    let cost = |w: &(usize, usize)| (w.0 + TOKEN_COST) * w.1;
    let total: usize = work.iter().map(cost).sum();
    let (mut sizes, mut before) = (Vec::new(), 0);
    for w in work {
        if sizes.len() * total <= before * crews {
            sizes.push(0);
        }
        if let Some(size) = sizes.last_mut() {
            *size += 1;
        }
        before += cost(w);
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crews_cover_all_sequences_and_share_the_work() {
        assert!(crew_sizes(&[], 2048, 2).is_empty());
        assert_eq!(crew_sizes(&[(10, 8)], 2048, 2), [1]);
        assert_eq!(crew_sizes(&[(10, 8); 2], 2048, 2), [1, 1]);
        // Little memory: one crew a thread.
        assert_eq!(crew_sizes(&[(10, 8); 64], 2048, 2), [32, 32]);
        // 64 · 500 · 2 KiB are 62.5 MiB, more than eight crews of eight sequences should come back to.
        assert_eq!(crew_sizes(&[(500, 8); 64], 2048, 2), [8; 8]);
        // 256 sequences of 100 positions: 50 MiB in crews of 3 MiB at most.
        let sizes = crew_sizes(&[(100, 8); 256], 2048, 2);
        assert_eq!((sizes.iter().sum::<usize>(), sizes.len() % 2), (256, 0));
        assert!(sizes.iter().all(|s| s * 100 * 2048 <= CREW_BYTES), "{sizes:?}");
        // A long prompt is as much work as many tokens.
        let mixed = crew_sizes(&[&[(200, 200)][..], &[(100, 8); 30]].concat(), 2048, 2);
        assert_eq!((mixed[0], mixed.iter().sum::<usize>()), (1, 31));
    }
}
