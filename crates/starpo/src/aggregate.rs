//! From a loss per token to one number: the weight each token has in the sum.
//!
//! A [`Normalizer`] is built once from the token counts of the *whole* mini-batch and then asked for the weights of
//! any part of it. Every loss of this crate is Σ weight·l, so cutting the mini-batch into micro-batches (or spreading
//! it over processes that add their gradients) can not change the result.

use std::str::FromStr;

use crate::tokens::Rows;

/// How token losses are averaged (`actor_rollout_ref.actor.loss_agg_mode`).
///
/// B is the number of rows with at least one token, n_i the tokens of row i, N their sum, L a fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum LossAggMode {
    /// Σ l / N: every token counts the same.
    #[default]
    TokenMean,
    /// mean_i (Σ_t l / n_i): every row counts the same (GRPO, arXiv 2402.03300).
    SeqMeanTokenMean,
    /// mean_i Σ_t l.
    SeqMeanTokenSum,
    /// Σ l / L, as veRL computes it: the step grows with the number of rows.
    SeqMeanTokenSumNorm {
        /// L: the longest response, in tokens.
        length: f64,
    },
    /// Σ l / (B·L), as Dr.GRPO (arXiv 2503.20783) defines it.
    SeqMeanTokenSumConst {
        /// L: the longest response, in tokens.
        length: f64,
    },
}

/// An aggregation that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AggregateError {
    /// The name is unknown.
    #[error(
        "unknown loss_agg_mode \"{found}\"; did you mean \"{nearest}\"? Known: token-mean, seq-mean-token-mean, \
         seq-mean-token-sum, seq-mean-token-sum-norm, seq-mean-token-sum-const"
    )]
    UnknownMode {
        /// The name found.
        found: String,
        /// The known name nearest to it.
        nearest: &'static str,
    },
    /// The fixed length is not a positive number.
    #[error("the fixed length of loss_agg_mode must be a positive number of tokens and is {found}")]
    Length {
        /// The length found.
        found: f64,
    },
}

const MODE_NAMES: [&str; 5] =
    ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-sum-const"];

/// The candidate with the smallest edit distance to `word`.
pub(crate) fn nearest(word: &str, candidates: &[&'static str]) -> &'static str {
    candidates.iter().copied().min_by_key(|c| strsim::levenshtein(word, c)).unwrap_or("")
}

impl LossAggMode {
    /// Reads a mode by its configuration name; `length` is L for the two modes with a fixed length.
    ///
    /// # Errors
    /// [`AggregateError::UnknownMode`] names the nearest known mode; [`AggregateError::Length`] for a length ≤ 0.
    pub fn parse(name: &str, length: f64) -> Result<Self, AggregateError> {
        let mode = match name {
            "token-mean" => return Ok(Self::TokenMean),
            "seq-mean-token-mean" => return Ok(Self::SeqMeanTokenMean),
            "seq-mean-token-sum" => return Ok(Self::SeqMeanTokenSum),
            "seq-mean-token-sum-norm" => Self::SeqMeanTokenSumNorm { length },
            "seq-mean-token-sum-const" => Self::SeqMeanTokenSumConst { length },
            _ => {
                let nearest = nearest(name, &MODE_NAMES);
                return Err(AggregateError::UnknownMode { found: name.to_owned(), nearest });
            }
        };
        if length.is_finite() && length > 0.0 { Ok(mode) } else { Err(AggregateError::Length { found: length }) }
    }

    /// The configuration name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TokenMean => MODE_NAMES[0],
            Self::SeqMeanTokenMean => MODE_NAMES[1],
            Self::SeqMeanTokenSum => MODE_NAMES[2],
            Self::SeqMeanTokenSumNorm { .. } => MODE_NAMES[3],
            Self::SeqMeanTokenSumConst { .. } => MODE_NAMES[4],
        }
    }
}

impl FromStr for LossAggMode {
    type Err = AggregateError;

    /// Reads the modes that need no length.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::parse(name, f64::NAN)
    }
}

/// Weights of tokens and rows in the loss of one mini-batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalizer {
    mode: LossAggMode,
    tokens: f64,
    sequences: f64,
    scale: f64,
}

impl Normalizer {
    /// Built from the numbers of sampled tokens of all rows of the mini-batch. Rows without tokens do not count.
    pub fn new(mode: LossAggMode, lengths: impl IntoIterator<Item = usize>) -> Self {
        let (mut tokens, mut sequences) = (0.0, 0.0);
        for length in lengths.into_iter().filter(|length| *length > 0) {
            tokens += length as f64;
            sequences += 1.0;
        }
        Self::from_totals(mode, tokens, sequences)
    }

    /// Built from totals known otherwise, for example summed over processes.
    pub fn from_totals(mode: LossAggMode, tokens: f64, sequences: f64) -> Self {
        Self { mode, tokens, sequences, scale: 1.0 }
    }

    /// Multiplies every weight, for example by the number of processes whose gradients will be averaged.
    pub fn scaled(mut self, factor: f64) -> Self {
        self.scale *= factor;
        self
    }

    /// The aggregation.
    pub fn mode(&self) -> LossAggMode {
        self.mode
    }

    /// Weight of each token of a row of `row_len` tokens. 0 where the mini-batch holds nothing to average over.
    pub fn token_weight(&self, row_len: usize) -> f64 {
        let divisor = match self.mode {
            LossAggMode::TokenMean => self.tokens,
            LossAggMode::SeqMeanTokenMean => self.sequences * row_len as f64,
            LossAggMode::SeqMeanTokenSum => self.sequences,
            LossAggMode::SeqMeanTokenSumNorm { length } => length,
            LossAggMode::SeqMeanTokenSumConst { length } => length * self.sequences,
        };
        if divisor > 0.0 { self.scale / divisor } else { 0.0 }
    }

    /// Weight of each row in a mean over rows (losses with one term per row).
    pub fn row_weight(&self) -> f64 {
        if self.sequences > 0.0 { self.scale / self.sequences } else { 0.0 }
    }

    /// Weights of all tokens of a micro-batch.
    ///
    /// # Shapes
    /// Output: one weight per token of `rows`.
    pub fn weights(&self, rows: &Rows) -> Vec<f64> {
        let mut out = Vec::with_capacity(rows.tokens());
        for length in rows.lengths() {
            out.extend(std::iter::repeat_n(self.token_weight(length), length));
        }
        out
    }
}

/// Σ weight·l.
///
/// # Shapes
/// Both slices hold one number per token; the shorter one decides.
pub fn weighted_sum(losses: &[f64], weights: &[f64]) -> f64 {
    losses.iter().zip(weights).map(|(l, w)| l * w).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    fn total(mode: LossAggMode) -> f64 {
        let rows = Rows::from_lengths([1, 0, 2, 3]);
        weighted_sum(&LOSSES, &Normalizer::new(mode, rows.lengths()).weights(&rows))
    }

    #[test]
    fn modes_by_hand() {
        assert!((total(LossAggMode::TokenMean) - 21.0 / 6.0).abs() < 1e-15);
        assert!((total(LossAggMode::SeqMeanTokenMean) - (1.0 + 2.5 + 5.0) / 3.0).abs() < 1e-15);
        assert!((total(LossAggMode::SeqMeanTokenSum) - 21.0 / 3.0).abs() < 1e-15);
        assert!((total(LossAggMode::SeqMeanTokenSumNorm { length: 4.0 }) - 21.0 / 4.0).abs() < 1e-15);
        assert!((total(LossAggMode::SeqMeanTokenSumConst { length: 4.0 }) - 21.0 / 12.0).abs() < 1e-15);
    }

    #[test]
    fn micro_batches_change_nothing() {
        let lengths = [1usize, 0, 2, 3];
        for name in MODE_NAMES {
            let mode = LossAggMode::parse(name, 4.0).unwrap();
            assert_eq!(mode.name(), name);
            let normalizer = Normalizer::new(mode, lengths);
            let whole = normalizer.weights(&Rows::from_lengths(lengths));
            // All 8 ways to cut four rows into consecutive micro-batches.
            for cuts in 0..8u32 {
                let mut weights = Vec::new();
                let mut start = 0;
                for end in 1..=4 {
                    if end == 4 || cuts & (1 << (end - 1)) != 0 {
                        let micro = Rows::from_lengths(lengths[start..end].iter().copied());
                        weights.extend(normalizer.weights(&micro));
                        start = end;
                    }
                }
                assert_eq!(weights, whole, "{name}, cuts {cuts:b}");
            }
        }
    }

    #[test]
    fn nothing_to_average_is_zero_not_nan() {
        for name in MODE_NAMES {
            let normalizer = Normalizer::new(LossAggMode::parse(name, 4.0).unwrap(), [0, 0]);
            assert!(normalizer.token_weight(0).is_finite());
            assert!(normalizer.weights(&Rows::from_lengths([0, 0])).is_empty());
            assert_eq!(normalizer.row_weight(), 0.0);
        }
    }

    #[test]
    fn unknown_names_are_told_the_nearest() {
        let error = LossAggMode::parse("token_mean", 1.0).unwrap_err();
        assert_eq!(error, AggregateError::UnknownMode { found: "token_mean".into(), nearest: "token-mean" });
        assert!(matches!("seq-mean-token-sum-norm".parse::<LossAggMode>(), Err(AggregateError::Length { .. })));
        assert!(matches!(LossAggMode::parse("seq-mean-token-sum-norm", 0.0), Err(AggregateError::Length { .. })));
    }
}
