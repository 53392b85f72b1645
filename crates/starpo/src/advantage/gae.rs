//! Estimators with a critic: generalised advantage estimation over sampled tokens, and its two-level form.

use super::AdvantageError;
use crate::tokens::{Rows, check_finite, check_len};

/// Advantages and the targets of the critic, one of each per token.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueAdvantage {
    /// A_t, not whitened.
    pub advantages: Vec<f64>,
    /// A_t + V_t, the regression target of the critic.
    pub returns: Vec<f64>,
}

/// GAE (arXiv 1506.02438) over the sampled tokens of each row: δ_t = r_t + γV_{t+1} − V_t, A_t = δ_t + γλA_{t+1}, and
/// V = 0 after the last token. Given tokens between turns cost no γλ, because they are not in the batch.
///
/// # Shapes
/// `rewards`, `values` and both results: one per token of `rows`.
///
/// # Errors
/// A length or a number that is not finite.
pub fn gae(
    rows: &Rows,
    rewards: &[f64],
    values: &[f64],
    gamma: f64,
    lam: f64,
) -> Result<ValueAdvantage, AdvantageError> {
    gae_bootstrapped(rows, rewards, values, &vec![0.0; rows.len()], gamma, lam)
}

/// [`gae`] with a value after the last token of each row, for episodes that were cut rather than ended.
///
/// # Shapes
/// `bootstrap`: one per row, 0 where the episode ended.
///
/// # Errors
/// As [`gae`].
pub fn gae_bootstrapped(
    rows: &Rows,
    rewards: &[f64],
    values: &[f64],
    bootstrap: &[f64],
    gamma: f64,
    lam: f64,
) -> Result<ValueAdvantage, AdvantageError> {
    rows.check_tokens("rewards", rewards)?;
    rows.check_tokens("values", values)?;
    check_len("bootstrap", "row", rows.len(), bootstrap.len())?;
    check_finite("bootstrap", bootstrap)?;
    let mut advantages = vec![0.0; rows.tokens()];
    for (range, after) in rows.ranges().zip(bootstrap) {
        let (mut next_value, mut next_advantage) = (*after, 0.0);
        for t in range.rev() {
            let delta = rewards[t] + gamma * next_value - values[t];
            next_advantage = delta + gamma * lam * next_advantage;
            next_value = values[t];
            advantages[t] = next_advantage;
        }
    }
    let returns = advantages.iter().zip(values).map(|(a, v)| a + v).collect();
    Ok(ValueAdvantage { advantages, returns })
}

/// Settings of [`bi_level_gae`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BiLevelOptions {
    /// γ within a turn.
    pub gamma: f64,
    /// λ of both levels.
    pub lam: f64,
    /// γ_H between turns (`algorithm.high_level_gamma`).
    pub high_level_gamma: f64,
}

impl Default for BiLevelOptions {
    fn default() -> Self {
        Self { gamma: 1.0, lam: 1.0, high_level_gamma: 0.95 }
    }
}

/// Bi-level GAE (VAGEN, arXiv 2510.16907): first over turns, then over the tokens of each turn.
///
/// Turn pass over the last tokens e_k of the turns: δ_k = r_k + γ_H V(e_{k+1}) − V(e_k), A_k = δ_k + γ_Hλ A_{k+1}. The
/// token pass restarts at each e_k with the target Y_k = A_k + V(e_k). Here r_k sums the rewards of the turn; a reward
/// before e_k (a token-level penalty) is taken out of Y_k again and counted at its own token, so it is not counted
/// twice. Turn ends are given: reference code that reads them off non-zero rewards merges turns of reward 0.
///
/// # Shapes
/// `rewards`, `values`: one per token. `turn_ends`: flat token positions, increasing, the last token of every
/// non-empty row among them.
///
/// # Errors
/// A length, a number that is not finite, or [`AdvantageError::TurnEnds`].
pub fn bi_level_gae(
    rows: &Rows,
    rewards: &[f64],
    values: &[f64],
    turn_ends: &[usize],
    options: BiLevelOptions,
) -> Result<ValueAdvantage, AdvantageError> {
    rows.check_tokens("rewards", rewards)?;
    rows.check_tokens("values", values)?;
    if let Some(at) = turn_ends.windows(2).position(|pair| pair[1] <= pair[0]) {
        let problem = format!("end {} ({}) is not after end {at}", at + 1, turn_ends[at + 1]);
        return Err(AdvantageError::TurnEnds { problem });
    }
    if let Some(end) = turn_ends.last().filter(|end| **end >= rows.tokens()) {
        let problem = format!("end {end} lies beyond the {} tokens", rows.tokens());
        return Err(AdvantageError::TurnEnds { problem });
    }
    let mut advantages = vec![0.0; rows.tokens()];
    let mut at = 0;
    for (row, range) in rows.ranges().enumerate() {
        let first = at;
        while turn_ends.get(at).is_some_and(|end| *end < range.end) {
            at += 1;
        }
        let ends = &turn_ends[first..at];
        if !range.is_empty() && ends.last() != Some(&(range.end - 1)) {
            let problem = format!("row {row} ends at token {} without ending a turn", range.end - 1);
            return Err(AdvantageError::TurnEnds { problem });
        }
        let (mut next_turn_value, mut next_turn_advantage) = (0.0, 0.0);
        for turn in (0..ends.len()).rev() {
            let end = ends[turn];
            let start = if turn == 0 { range.start } else { ends[turn - 1] + 1 };
            let inner: f64 = rewards[start..end].iter().sum();
            let delta = inner + rewards[end] + options.high_level_gamma * next_turn_value - values[end];
            next_turn_advantage = delta + options.high_level_gamma * options.lam * next_turn_advantage;
            next_turn_value = values[end];
            let mut next_advantage = next_turn_advantage - inner;
            let mut next_value = values[end];
            advantages[end] = next_advantage;
            for t in (start..end).rev() {
                let delta = rewards[t] + options.gamma * next_value - values[t];
                next_advantage = delta + options.gamma * options.lam * next_advantage;
                next_value = values[t];
                advantages[t] = next_advantage;
            }
        }
    }
    let returns = advantages.iter().zip(values).map(|(a, v)| a + v).collect();
    Ok(ValueAdvantage { advantages, returns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_discount_the_advantage_is_return_minus_value() {
        let rows = Rows::from_lengths([3, 1]);
        let values = [0.1, 0.2, 0.3, 0.4];
        let out = gae(&rows, &[0.0, 0.0, 2.0, -1.0], &values, 1.0, 1.0).unwrap();
        for (got, want) in out.advantages.iter().zip([1.9, 1.8, 1.7, -1.4]) {
            assert!((got - want).abs() < 1e-12);
        }
        for (got, want) in out.returns.iter().zip([2.0, 2.0, 2.0, -1.0]) {
            assert!((got - want).abs() < 1e-12);
        }
    }

    #[test]
    fn lambda_zero_is_the_one_step_error() {
        let rows = Rows::from_lengths([2]);
        let out = gae(&rows, &[1.0, 2.0], &[0.5, 0.25], 0.9, 0.0).unwrap();
        assert!((out.advantages[0] - (1.0 + 0.9 * 0.25 - 0.5)).abs() < 1e-15);
        assert!((out.advantages[1] - (2.0 - 0.25)).abs() < 1e-15);
    }

    #[test]
    fn a_cut_episode_is_bootstrapped() {
        let rows = Rows::from_lengths([1]);
        let out = gae_bootstrapped(&rows, &[1.0], &[0.5], &[2.0], 0.5, 1.0).unwrap();
        assert_eq!(out.advantages, vec![1.5]);
    }

    #[test]
    fn two_turns_by_hand() {
        // Turn 1: tokens 0, 1 with reward 1 at token 1; turn 2: token 2 with reward 0.
        let rows = Rows::from_lengths([3]);
        let options = BiLevelOptions { gamma: 1.0, lam: 1.0, high_level_gamma: 0.5 };
        let out = bi_level_gae(&rows, &[0.0, 1.0, 0.0], &[0.2, 0.4, 0.6], &[1, 2], options).unwrap();
        let a2 = 0.0 - 0.6;
        let a1 = 1.0 + 0.5 * 0.6 - 0.4 + 0.5 * a2;
        let a0 = 0.4 - 0.2 + a1;
        for (got, want) in out.advantages.iter().zip([a0, a1, a2]) {
            assert!((got - want).abs() < 1e-12, "{:?}", out.advantages);
        }
    }

    #[test]
    fn token_penalties_are_counted_once() {
        // Without discount both levels telescope: A_t + V_t is the sum of rewards from t on.
        let rows = Rows::from_lengths([4, 0, 2]);
        let rewards = [-0.1, 1.0, -0.2, 0.0, -0.3, 0.5];
        let values = [0.3, -0.2, 0.7, 0.1, 0.0, 0.9];
        let options = BiLevelOptions { gamma: 1.0, lam: 1.0, high_level_gamma: 1.0 };
        let out = bi_level_gae(&rows, &rewards, &values, &[1, 3, 5], options).unwrap();
        for (got, want) in out.returns.iter().zip([0.7, 0.8, -0.2, 0.0, 0.2, 0.5]) {
            assert!((got - want).abs() < 1e-12, "{:?}", out.returns);
        }
    }

    #[test]
    fn one_turn_with_equal_discounts_is_plain_gae() {
        let rows = Rows::from_lengths([3]);
        let (rewards, values) = ([0.0, 0.0, 1.0], [0.3, 0.1, 0.2]);
        let options = BiLevelOptions { gamma: 0.9, lam: 0.8, high_level_gamma: 0.95 };
        let two = bi_level_gae(&rows, &rewards, &values, &[2], options).unwrap();
        assert_eq!(two, gae(&rows, &rewards, &values, 0.9, 0.8).unwrap());
    }

    #[test]
    fn turn_ends_are_checked() {
        let rows = Rows::from_lengths([2, 2]);
        let run = |ends: &[usize]| bi_level_gae(&rows, &[0.0; 4], &[0.0; 4], ends, BiLevelOptions::default());
        assert!(run(&[1, 3]).is_ok());
        for bad in [&[1][..], &[3], &[1, 1, 3], &[3, 1], &[1, 4], &[]] {
            assert!(matches!(run(bad), Err(AdvantageError::TurnEnds { .. })), "{bad:?}");
        }
    }

    #[test]
    fn empty_and_broken_batches() {
        let none = Rows::from_lengths([]);
        assert!(gae(&none, &[], &[], 1.0, 1.0).unwrap().advantages.is_empty());
        assert!(bi_level_gae(&none, &[], &[], &[], BiLevelOptions::default()).unwrap().returns.is_empty());
        let rows = Rows::from_lengths([2]);
        assert!(gae(&rows, &[0.0], &[0.0, 0.0], 1.0, 1.0).is_err());
        assert!(gae(&rows, &[0.0, f64::NAN], &[0.0, 0.0], 1.0, 1.0).is_err());
    }
}
