//! What happens to rewards before an estimator sees them: normalisation, KL in the reward, the overlong penalty.
//!
//! All of it produces new values. The raw returns stay as they are, because the filter and the diagnostics read them.

use std::str::FromStr;

use super::{AdvantageError, check_rows, split};
use crate::aggregate::nearest;
use crate::kl::KlPenalty;
use crate::tokens::{check_finite, check_len, mean_std};

/// Over which rows the statistics are taken (`reward_normalization.grouping`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RewardGrouping {
    /// Rows of one group.
    #[default]
    State,
    /// Rows of one environment tag.
    Inductive,
    /// All rows.
    Batch,
}

/// What is done to them (`reward_normalization.method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RewardMethod {
    /// Nothing.
    #[default]
    Identity,
    /// x − μ.
    Mean,
    /// (x − μ)/(σ + 1e-6), all zeros if σ ≤ 1e-6.
    MeanStd,
    /// As `MeanStd`, then clamped to [−1, 3].
    AsymClip,
}

/// Reward normalisation (RAGEN, `agent_proxy.reward_normalization`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RewardNormalization {
    /// Over which rows.
    pub grouping: RewardGrouping,
    /// By which rule.
    pub method: RewardMethod,
}

/// An unknown name in `reward_normalization`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("unknown reward_normalization.{key} \"{found}\"; did you mean \"{nearest}\"?")]
pub struct RewardNormalizationError {
    /// The key.
    pub key: &'static str,
    /// The name found.
    pub found: String,
    /// The known name nearest to it.
    pub nearest: &'static str,
}

impl FromStr for RewardGrouping {
    type Err = RewardNormalizationError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "state" => Ok(Self::State),
            "inductive" => Ok(Self::Inductive),
            "batch" => Ok(Self::Batch),
            _ => Err(RewardNormalizationError {
                key: "grouping",
                found: name.to_owned(),
                nearest: nearest(name, &["state", "inductive", "batch"]),
            }),
        }
    }
}

impl FromStr for RewardMethod {
    type Err = RewardNormalizationError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "identity" => Ok(Self::Identity),
            "mean" => Ok(Self::Mean),
            "mean_std" => Ok(Self::MeanStd),
            "asym_clip" => Ok(Self::AsymClip),
            _ => Err(RewardNormalizationError {
                key: "method",
                found: name.to_owned(),
                nearest: nearest(name, &["identity", "mean", "mean_std", "asym_clip"]),
            }),
        }
    }
}

impl RewardNormalization {
    /// Normalised returns. Left as they are when every set of rows the statistics would be taken over has one member.
    ///
    /// # Shapes
    /// `returns`, `groups` (state), `tags` (environment) and the result: one per row.
    ///
    /// # Errors
    /// A length or a number that is not finite.
    pub fn apply(self, returns: &[f64], groups: &[usize], tags: &[usize]) -> Result<Vec<f64>, AdvantageError> {
        check_rows(returns, groups)?;
        check_len("tags", "row", returns.len(), tags.len())?;
        let mut out = returns.to_vec();
        let sets = match self.grouping {
            RewardGrouping::State => split(groups),
            RewardGrouping::Inductive => split(tags),
            RewardGrouping::Batch => split(&vec![0; returns.len()]),
        };
        if self.method == RewardMethod::Identity || sets.iter().all(|set| set.rows.len() == 1) {
            return Ok(out);
        }
        for set in sets {
            let values: Vec<f64> = set.rows.iter().map(|row| returns[*row]).collect();
            let (mean, std) = mean_std(&values);
            for row in set.rows {
                let centred = returns[row] - mean;
                // A single member has no deviation (NaN), and is treated as one without spread.
                let scaled = if std > 1e-6 { centred / (std + 1e-6) } else { 0.0 };
                out[row] = match self.method {
                    RewardMethod::Identity => returns[row],
                    RewardMethod::Mean => centred,
                    RewardMethod::MeanStd => scaled,
                    RewardMethod::AsymClip => scaled.clamp(-1.0, 3.0),
                };
            }
        }
        Ok(out)
    }
}

/// KL in the reward (`algorithm.use_kl_in_reward`): r_t − β·KL_t with the log-probabilities of the policy that sampled.
///
/// # Shapes
/// All slices and the result: one per token.
///
/// # Errors
/// A length or a number that is not finite.
pub fn kl_in_reward(
    rewards: &[f64],
    log_prob: &[f64],
    ref_log_prob: &[f64],
    penalty: KlPenalty,
    kl_coef: f64,
) -> Result<Vec<f64>, AdvantageError> {
    check_len("log_prob", "token", rewards.len(), log_prob.len())?;
    check_len("ref_log_prob", "token", rewards.len(), ref_log_prob.len())?;
    check_finite("rewards", rewards)?;
    check_finite("log_prob", log_prob)?;
    check_finite("ref_log_prob", ref_log_prob)?;
    let pairs = log_prob.iter().zip(ref_log_prob);
    Ok(rewards.iter().zip(pairs).map(|(r, (lp, rp))| r - kl_coef * penalty.value(*lp, *rp)).collect())
}

/// The soft penalty on long responses (DAPO, arXiv 2503.14476, equation 13).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverlongPenalty {
    /// L_max, in tokens.
    pub max_response_length: f64,
    /// L_c: the last tokens before L_max over which the penalty grows (`overlong_buffer.len`).
    pub buffer: f64,
    /// The penalty at L_max (`overlong_buffer.penalty_factor`).
    pub penalty_factor: f64,
}

impl OverlongPenalty {
    /// What is added to the return of a row of `length` tokens: 0 up to L_max − L_c, then falling linearly. Not
    /// capped beyond L_max; the hard limit on responses does that.
    ///
    /// # Errors
    /// [`AdvantageError::Setting`] for a buffer that is not positive.
    pub fn reward(self, length: usize) -> Result<f64, AdvantageError> {
        if self.buffer.is_nan() || self.buffer <= 0.0 {
            let (key, expected) = ("overlong_buffer.len", "greater than 0");
            return Err(AdvantageError::Setting { key, expected, found: self.buffer });
        }
        let over = length as f64 - (self.max_response_length - self.buffer);
        Ok((-over / self.buffer * self.penalty_factor).min(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalise(grouping: &str, method: &str, returns: &[f64], groups: &[usize], tags: &[usize]) -> Vec<f64> {
        let rule = RewardNormalization { grouping: grouping.parse().unwrap(), method: method.parse().unwrap() };
        rule.apply(returns, groups, tags).unwrap()
    }

    #[test]
    fn methods_and_groupings() {
        let (returns, groups, tags) = ([0.0, 2.0, 4.0, 6.0], [0, 0, 1, 1], [5, 5, 5, 5]);
        assert_eq!(normalise("state", "identity", &returns, &groups, &tags), returns);
        assert_eq!(normalise("state", "mean", &returns, &groups, &tags), [-1.0, 1.0, -1.0, 1.0]);
        assert_eq!(normalise("inductive", "mean", &returns, &groups, &tags), [-3.0, -1.0, 1.0, 3.0]);
        assert_eq!(normalise("batch", "mean", &returns, &groups, &[1, 2, 3, 4]), [-3.0, -1.0, 1.0, 3.0]);
        let got = normalise("state", "mean_std", &returns, &groups, &tags);
        assert!((got[0] + 0.5f64.sqrt()).abs() < 1e-5);
        let mut skewed = vec![0.0; 20];
        skewed[0] = 1.0;
        let clipped = normalise("batch", "asym_clip", &skewed, &[0; 20], &[0; 20]);
        assert_eq!(clipped[0], 3.0);
        assert!(clipped[1] > -1.0 && clipped[1] < 0.0);
    }

    #[test]
    fn no_spread_is_zero_and_single_members_are_left_alone() {
        assert_eq!(normalise("state", "mean_std", &[0.1, 0.1], &[0, 0], &[0, 0]), [0.0, 0.0]);
        assert_eq!(normalise("state", "mean_std", &[0.1, 0.7], &[0, 1], &[0, 0]), [0.1, 0.7]);
        assert_eq!(normalise("state", "mean_std", &[0.1, 0.7, 0.7], &[0, 1, 1], &[0; 3]), [0.0, 0.0, 0.0]);
        assert!(normalise("batch", "mean", &[], &[], &[]).is_empty());
    }

    #[test]
    fn unknown_names_are_told_the_nearest() {
        assert_eq!("states".parse::<RewardGrouping>().unwrap_err().nearest, "state");
        assert_eq!("mean-std".parse::<RewardMethod>().unwrap_err().nearest, "mean_std");
    }

    #[test]
    fn kl_lowers_the_reward() {
        let k1: KlPenalty = "k1".parse().unwrap();
        let got = kl_in_reward(&[1.0, 0.0], &[-1.0, -2.0], &[-2.0, -1.0], k1, 0.1).unwrap();
        assert_eq!(got, vec![0.9, 0.1]);
        assert!(kl_in_reward(&[1.0], &[-1.0], &[f64::NEG_INFINITY], k1, 0.1).is_err());
    }

    #[test]
    fn overlong_penalty_grows_over_the_buffer() {
        let rule = OverlongPenalty { max_response_length: 100.0, buffer: 20.0, penalty_factor: 2.0 };
        let at = |n| rule.reward(n).unwrap();
        assert_eq!((at(0), at(80), at(90), at(100)), (0.0, 0.0, -1.0, -2.0));
        assert!(OverlongPenalty { buffer: 0.0, ..rule }.reward(3).is_err());
    }
}
