//! Turn-level credit (MT-GRPO, arXiv 2505.11821): the outcome and each turn's own reward are normalised separately
//! over the group.

use super::{AdvantageError, SingletonGroup, check_rows, group_stats, split};
use crate::tokens::{Rows, mean_std};

/// Settings of [`turn_level`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnLevelOptions {
    /// λ, the weight of the turn term (the reference code puts it there, not on the outcome).
    pub turn_weight: f64,
    /// Divide by the group's standard deviation.
    pub norm_by_std: bool,
    /// Added to the deviations.
    pub eps: f64,
    /// What a group of one gets.
    pub singleton: SingletonGroup,
}

impl Default for TurnLevelOptions {
    fn default() -> Self {
        Self { turn_weight: 1.0, norm_by_std: true, eps: 1e-6, singleton: SingletonGroup::Error }
    }
}

/// A_k = Â^O + λ Â^T_k for every turn but the last, which gets Â^O alone.
///
/// Â^O normalises the outcomes of the group; Â^T_k normalises the rewards of turn k over those members of the group
/// that have it as an intermediate turn (0 when there is only one).
///
/// # Shapes
/// `turns`: the turns of each episode (its "tokens" are turns). `turn_rewards` and the result: one per turn.
/// `outcomes`, `groups`: one per episode.
///
/// # Errors
/// A length, a number that is not finite, or a group of one under [`SingletonGroup::Error`].
pub fn turn_level(
    turns: &Rows,
    turn_rewards: &[f64],
    outcomes: &[f64],
    groups: &[usize],
    options: TurnLevelOptions,
) -> Result<Vec<f64>, AdvantageError> {
    check_rows(outcomes, groups)?;
    check_rows(&vec![0.0; turns.len()], groups)?;
    turns.check_tokens("turn_rewards", turn_rewards)?;
    let scale = |std: f64| if options.norm_by_std { std + options.eps } else { 1.0 };
    let mut out = vec![0.0; turns.tokens()];
    for group in split(groups) {
        let stats = group_stats(&group, &group.rows, outcomes, options.singleton)?;
        let longest = group.rows.iter().map(|row| turns.row_len(*row)).max().unwrap_or(0);
        for row in &group.rows {
            out[turns.range(*row)].fill((outcomes[*row] - stats.mean) / scale(stats.std));
        }
        for k in 0..longest {
            let at: Vec<usize> = group
                .rows
                .iter()
                .map(|row| turns.range(*row))
                .filter(|range| k + 1 < range.len())
                .map(|range| range.start + k)
                .collect();
            let rewards: Vec<f64> = at.iter().map(|turn| turn_rewards[*turn]).collect();
            if rewards.len() < 2 {
                continue;
            }
            let (mean, std) = mean_std(&rewards);
            for turn in at {
                out[turn] += options.turn_weight * (turn_rewards[turn] - mean) / scale(std);
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_turns_by_hand() {
        let turns = Rows::from_lengths([2, 2]);
        let options = TurnLevelOptions { norm_by_std: false, turn_weight: 0.5, ..TurnLevelOptions::default() };
        let out = turn_level(&turns, &[1.0, 9.0, 0.0, 9.0], &[0.0, 2.0], &[0, 0], options).unwrap();
        assert_eq!(out, vec![-1.0 + 0.25, -1.0, 1.0 - 0.25, 1.0]);
    }

    #[test]
    fn the_last_turn_of_a_short_episode_has_no_turn_term() {
        let turns = Rows::from_lengths([1, 3, 2]);
        let options = TurnLevelOptions { norm_by_std: false, ..TurnLevelOptions::default() };
        let out = turn_level(&turns, &[7.0, 1.0, 5.0, 0.0, 0.0, 0.0], &[0.0; 3], &[1; 3], options).unwrap();
        // Turn 0 is intermediate in rows 1 and 2; turn 1 only in row 1, so it has no one to be compared with.
        assert_eq!(out, vec![0.0, 0.5, 0.0, 0.0, -0.5, 0.0]);
    }

    #[test]
    fn edges() {
        let none = Rows::from_lengths([]);
        assert!(turn_level(&none, &[], &[], &[], TurnLevelOptions::default()).unwrap().is_empty());
        let one = Rows::from_lengths([2]);
        assert!(turn_level(&one, &[0.0, 0.0], &[1.0], &[0], TurnLevelOptions::default()).is_err());
        let two = Rows::from_lengths([1, 1]);
        assert!(turn_level(&two, &[0.0], &[1.0, 1.0], &[0, 0], TurnLevelOptions::default()).is_err());
        assert!(turn_level(&two, &[0.0, f64::NAN], &[1.0, 1.0], &[0, 0], TurnLevelOptions::default()).is_err());
    }
}
