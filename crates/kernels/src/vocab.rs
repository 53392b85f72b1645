//! The projection to the vocabulary fused with what reinforcement learning needs of it: per row the log-probability of
//! one token, the entropy of the distribution, and their gradients. No tensor of rows × vocabulary is ever stored.
//!
//! Logits are `z = (h · wᵀ) · inv_temperature`. A row's distribution is summed up over fixed chunks of [`CHUNK`] entries
//! (online softmax, Milakov and Gimelshein 2018), so its results depend on that row alone and equal, bit for bit, those
//! of [`stats_from_logits`] on the same logits.
//! What is not here: sampling, losses.

use rayon::prelude::*;

use crate::elementwise::add_assign;
use crate::gemm;
use crate::math::exp_nonpositive;
use crate::simd::{LANES, multiversion, sum_lanes};

/// Vocabulary entries that are summed up together; part of the definition of the results' bits.
pub const CHUNK: usize = 512;
/// Rows whose logits the forward pass holds at once.
const PIECE: usize = 64;
/// Tasks that suffice to share work evenly; with fewer chunks, pieces of rows are tasks too.
const ENOUGH_TASKS: usize = 16;
/// Most chunks of one task: a core that is busy elsewhere holds up no more than these.
const FEW_CHUNKS: usize = 4;
/// Products of fewer multiplications are not worth sharing.
const SERIAL_BELOW: usize = 1 << 20;
/// Rows and logits that the backward pass holds at once; no part of the results' bits.
const TILE: usize = 1_024;
const HELD: usize = TILE * CHUNK;
/// Most chunks of one product: few rows take wide blocks, so that each is worth sharing among threads.
const MOST_CHUNKS: usize = 16;
/// Rows of logits that one task of the backward pass turns into gradients.
const FEW_ROWS: usize = 8;
/// Differences to the largest logit are cut here, where the exponential is zero already, so that a logit of −∞ is an
/// impossible token and not a NaN.
const LOWEST: f32 = -200.0;

/// A distribution so far: its largest logit `max`, `sum = Σ e^(z − max)` and `weighted = Σ (z − max) e^(z − max)`.
#[derive(Clone, Copy)]
struct Summary {
    max: f32,
    sum: f32,
    weighted: f32,
}

impl Summary {
    /// Of no logits at all. The largest one is finite, so that differences to it are numbers.
    const EMPTY: Self = Self { max: f32::MIN, sum: 0.0, weighted: 0.0 };

    /// Of both sets of logits.
    #[inline(always)]
    fn merge(self, other: Self) -> Self {
        let max = if other.max > self.max { other.max } else { self.max };
        let (sum, weighted) = self.relative_to(max);
        let (other_sum, other_weighted) = other.relative_to(max);
        Self { max, sum: sum + other_sum, weighted: weighted + other_weighted }
    }

    #[inline(always)]
    fn relative_to(self, max: f32) -> (f32, f32) {
        let shift = cut(self.max - max);
        let scale = exp_nonpositive(shift);
        (self.sum * scale, shift.mul_add(self.sum, self.weighted) * scale)
    }

    /// Log-probability of a token with logit `target`, entropy, and log-sum-exp.
    fn finish(self, target: f32) -> (f32, f32, f32) {
        let log_sum = libm::logf(self.sum);
        ((target - self.max) - log_sum, log_sum - self.weighted / self.sum, self.max + log_sum)
    }
}

/// `x`, at least [`LOWEST`]; NaN stays NaN.
#[inline(always)]
fn cut(x: f32) -> f32 {
    if x < LOWEST { LOWEST } else { x }
}

multiversion! {
    /// Sums up one row of logits, chunk by chunk.
    fn summarise(logits: &[f32]) -> Summary {
        let mut total = Summary::EMPTY;
        for chunk in logits.chunks(CHUNK) {
            total = total.merge(summarise_chunk(chunk));
        }
        total
    }
}

#[inline(always)]
fn summarise_chunk(logits: &[f32]) -> Summary {
    let max = largest(logits);
    let whole = logits.len() - logits.len() % LANES;
    let (body, tail) = logits.split_at(whole);
    let mut sums = [0.0; LANES];
    let mut weighted = [0.0; LANES];
    for z in body.chunks_exact(LANES) {
        for i in 0..LANES {
            let difference = cut(z[i] - max);
            let e = exp_nonpositive(difference);
            sums[i] += e;
            weighted[i] = difference.mul_add(e, weighted[i]);
        }
    }
    for (i, &z) in tail.iter().enumerate() {
        let difference = cut(z - max);
        let e = exp_nonpositive(difference);
        sums[i] += e;
        weighted[i] = difference.mul_add(e, weighted[i]);
    }
    Summary { max, sum: sum_lanes(sums), weighted: sum_lanes(weighted) }
}

/// The largest logit, [`f32::MIN`] if all are below; NaN is passed over. Many lanes, since the order cannot matter.
#[inline(always)]
fn largest(logits: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::MIN; 4 * LANES];
    let chunks = logits.chunks_exact(4 * LANES);
    let tail = chunks.remainder();
    for z in chunks {
        for i in 0..4 * LANES {
            lanes[i] = larger(lanes[i], z[i]);
        }
    }
    let max = lanes.into_iter().fold(f32::MIN, larger);
    tail.iter().copied().fold(max, larger)
}

/// Vocabulary entries of one block: whole chunks, as many as keep the logits of a tile in the cache.
fn block_width(rows: usize) -> usize {
    CHUNK * (HELD / CHUNK / rows.clamp(1, TILE)).clamp(1, MOST_CHUNKS)
}

multiversion! {
    fn scale(x: &mut [f32], factor: f32) {
        for value in x {
            *value *= factor;
        }
    }
}

/// Log-probability of `target`, entropy (in nats) and log-sum-exp of one row of logits, already multiplied by the
/// inverse temperature.
///
/// The same bits as [`forward`] gives for this row. A logit of −∞ is an impossible token; NaN or +∞ make the results
/// NaN.
///
/// # Panics
/// If `target` is not an index of `logits`.
pub fn stats_from_logits(logits: &[f32], target: u32) -> (f32, f32, f32) {
    let vocab = logits.len();
    assert!((target as usize) < vocab, "target {target} is not in a vocabulary of {vocab}");
    summarise(logits).finish(logits[target as usize])
}

/// Log-probability of the target, entropy (in nats) and log-sum-exp of every row.
///
/// # Shapes
/// `hidden`: `[rows, dim]`; `weight`: `[vocab, dim]`; `targets`, `log_prob`, `entropy`, `lse`: `[rows]`.
///
/// # Panics
/// If a slice has not exactly the elements of its shape or a target is not below `vocab`.
pub fn forward(
    rows: usize,
    dim: usize,
    vocab: usize,
    hidden: &[f32],
    weight: &[f32],
    targets: &[u32],
    inv_temperature: f32,
    log_prob: &mut [f32],
    entropy: &mut [f32],
    lse: &mut [f32],
) {
    check(rows, dim, vocab, hidden, weight, targets);
    assert_eq!(log_prob.len(), rows, "log_prob must have rows elements");
    assert_eq!(entropy.len(), rows, "entropy must have rows elements");
    assert_eq!(lse.len(), rows, "lse must have rows elements");
    // One part for every chunk and row, merged at the end in the order of the chunks.
    let chunks = vocab.div_ceil(CHUNK);
    let mut parts = vec![(Summary::EMPTY, f32::NAN); chunks * rows];
    let together = if rows * vocab * dim < SERIAL_BELOW { chunks } else { 1 };
    let group = if chunks < ENOUGH_TASKS { PIECE } else { rows };
    parts
        .par_chunks_mut(rows.max(1))
        .enumerate()
        .with_min_len(together)
        .with_max_len(together.max(FEW_CHUNKS))
        .for_each_init(
            || None,
            |packed, (chunk, parts)| {
                let from = chunk * CHUNK;
                let packed = pack(packed, &weight[from * dim..(from + CHUNK).min(vocab) * dim], dim);
                let groups = parts.par_chunks_mut(group).zip(targets.par_chunks(group)).enumerate();
                groups.with_min_len(together).for_each(|(index, (parts, targets))| {
                    let hidden = &hidden[index * group * dim..][..parts.len() * dim];
                    summarise_rows(packed, from, hidden, targets, inv_temperature, parts);
                });
            },
        );
    let outputs = log_prob.par_iter_mut().zip(entropy).zip(lse).zip(targets).enumerate();
    outputs.with_min_len(PIECE).for_each(|(row, (((log_prob, entropy), lse), &target))| {
        let target_logit = parts[target as usize / CHUNK * rows + row].1;
        (*log_prob, *entropy, *lse) = merge_chunks(&parts[row..], rows).finish(target_logit);
    });
}

multiversion! {
    /// Merges every `stride`-th summary, in order.
    fn merge_chunks(parts: &[(Summary, f32)], stride: usize) -> Summary {
        let mut total = Summary::EMPTY;
        for (part, _) in parts.iter().step_by(stride) {
            total = total.merge(*part);
        }
        total
    }
}

/// `weight`, packed into the memory of an earlier chunk of the same shape where there is one.
fn pack<'a>(memory: &'a mut Option<gemm::PackedWeight>, weight: &[f32], dim: usize) -> &'a gemm::PackedWeight {
    let n = weight.len().checked_div(dim).unwrap_or(0);
    match memory {
        Some(packed) if packed.n() == n => packed.repack(weight),
        _ => *memory = None,
    }
    memory.get_or_insert_with(|| gemm::PackedWeight::pack(weight, n, dim))
}

/// Sums up the logits of some rows over one chunk of the vocabulary that starts at `from`, a few rows at a time so that
/// their logits are still in the cache, and picks out those of the targets.
fn summarise_rows(
    weight: &gemm::PackedWeight,
    from: usize,
    hidden: &[f32],
    targets: &[u32],
    inv_temperature: f32,
    parts: &mut [(Summary, f32)],
) {
    let (width, dim) = (weight.n(), weight.k());
    let mut logits = vec![0.0; PIECE.min(parts.len()) * width];
    for (piece, parts) in parts.chunks_mut(PIECE).enumerate() {
        let first = piece * PIECE;
        let logits = &mut logits[..parts.len() * width];
        let hidden = &hidden[first * dim..][..parts.len() * dim];
        gemm::linear_packed_serial(parts.len(), hidden, weight, logits, false);
        if inv_temperature != 1.0 {
            scale(logits, inv_temperature);
        }
        let rows = logits.chunks_exact(width).zip(&targets[first..]);
        for ((logits, &target), (summary, target_logit)) in rows.zip(parts) {
            *summary = summarise(logits);
            let index = (target as usize).wrapping_sub(from);
            if let Some(&z) = logits.get(index) {
                *target_logit = z;
            }
        }
    }
}

/// Adds the gradients of [`forward`] to `dhidden` and `dweight`, computing the logits anew.
///
/// With `p = e^(z − lse)`:
/// `dz_v = inv_temperature · (d_log_prob · (1[v = target] − p_v) − d_entropy · p_v · (ln p_v + entropy))`.
///
/// # Shapes
/// `hidden`, `dhidden`: `[rows, dim]`; `weight`, `dweight`: `[vocab, dim]`; `targets`, `entropy`, `lse`, `d_log_prob`,
/// `d_entropy`: `[rows]`, `entropy` and `lse` from the forward pass.
///
/// # Panics
/// If a slice has not exactly the elements of its shape or a target is not below `vocab`.
pub fn backward(
    rows: usize,
    dim: usize,
    vocab: usize,
    hidden: &[f32],
    weight: &[f32],
    targets: &[u32],
    inv_temperature: f32,
    entropy: &[f32],
    lse: &[f32],
    d_log_prob: &[f32],
    d_entropy: &[f32],
    dhidden: &mut [f32],
    dweight: &mut [f32],
) {
    check(rows, dim, vocab, hidden, weight, targets);
    assert_eq!(entropy.len(), rows, "entropy must have rows elements");
    assert_eq!(lse.len(), rows, "lse must have rows elements");
    assert_eq!(d_log_prob.len(), rows, "d_log_prob must have rows elements");
    assert_eq!(d_entropy.len(), rows, "d_entropy must have rows elements");
    assert_eq!(dhidden.len(), hidden.len(), "dhidden must have rows * dim elements");
    assert_eq!(dweight.len(), weight.len(), "dweight must have vocab * dim elements");
    let widest = block_width(rows).min(vocab);
    let mut logits = vec![0.0; rows.min(TILE) * widest];
    let mut partial = vec![0.0; rows.min(TILE) * dim];
    for from in (0..vocab).step_by(widest.max(1)) {
        let width = widest.min(vocab - from);
        let block = &weight[from * dim..][..width * dim];
        let dblock = &mut dweight[from * dim..][..width * dim];
        for row in (0..rows).step_by(TILE) {
            let height = TILE.min(rows - row);
            let hidden = &hidden[row * dim..][..height * dim];
            let dhidden = &mut dhidden[row * dim..][..height * dim];
            let logits = &mut logits[..height * width];
            gemm::linear(height, width, dim, hidden, block, logits, false);
            logits.par_chunks_mut(width).enumerate().with_min_len(FEW_ROWS).with_max_len(4 * FEW_ROWS).for_each(
                |(i, logits)| {
                    let row = row + i;
                    let target = (targets[row] as usize).wrapping_sub(from);
                    let gradients = (d_log_prob[row], d_entropy[row]);
                    logit_gradients(logits, target, inv_temperature, entropy[row], lse[row], gradients);
                },
            );
            // Each block is summed on its own and then added: one chain over a whole vocabulary would lose digits.
            let partial = &mut partial[..height * dim];
            gemm::linear_grad_input(height, width, dim, logits, block, partial, false);
            add_assign(dhidden, partial);
            gemm::linear_grad_weight(height, width, dim, logits, hidden, dblock);
        }
    }
}

multiversion! {
    /// Turns products `h · wᵀ` of one row into the gradient with respect to them. `target` is relative to the slice and
    /// may lie outside.
    fn logit_gradients(
        z: &mut [f32], target: usize, inv_temperature: f32, entropy: f32, lse: f32, gradients: (f32, f32),
    ) {
        let (d_log_prob, d_entropy) = (gradients.0 * inv_temperature, gradients.1 * inv_temperature);
        let constant = d_entropy.mul_add(entropy, d_log_prob);
        for z in z.iter_mut() {
            let log_p = cut(*z * inv_temperature - lse);
            *z = -exp_nonpositive(log_p) * d_entropy.mul_add(log_p, constant);
        }
        if let Some(z) = z.get_mut(target) {
            *z += d_log_prob;
        }
    }
}

fn check(rows: usize, dim: usize, vocab: usize, hidden: &[f32], weight: &[f32], targets: &[u32]) {
    assert_eq!(hidden.len(), rows * dim, "hidden must have rows * dim elements");
    assert_eq!(weight.len(), vocab * dim, "weight must have vocab * dim elements");
    assert_eq!(targets.len(), rows, "targets must have rows elements");
    if let Some(&highest) = targets.iter().max() {
        assert!((highest as usize) < vocab, "target {highest} is not in a vocabulary of {vocab}");
    }
}

#[cfg(test)]
mod tests;
