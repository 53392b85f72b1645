//! GRPO where an episode occupies several rows (one row a turn): statistics over episodes, not over rows.

use std::collections::HashSet;

use super::{AdvantageError, GrpoOptions, check_rows, group_stats, split};
use crate::tokens::check_len;

/// Advantages and the deviations they were divided by, one of each per row.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeAdvantage {
    /// A of the row's episode.
    pub advantages: Vec<f64>,
    /// σ_g of the row's group: what [`soft_weights`](super::soft_weights) takes.
    pub group_std: Vec<f64>,
}

/// GRPO (RAGEN-2, arXiv 2604.06268): as [`grpo`](super::grpo), but every (group, episode) pair enters mean and
/// deviation once, with the return of its first row, so that long episodes do not count more.
///
/// # Shapes
/// `returns` (the episode's return on each of its rows), `groups`, `episodes` and the results: one per row.
///
/// # Errors
/// A length, a number that is not finite, or a group with one episode under the default
/// [`SingletonGroup::Error`](super::SingletonGroup).
pub fn grpo_episodes(
    returns: &[f64],
    groups: &[usize],
    episodes: &[usize],
    options: GrpoOptions,
) -> Result<EpisodeAdvantage, AdvantageError> {
    check_rows(returns, groups)?;
    check_len("episodes", "row", returns.len(), episodes.len())?;
    let mut out = EpisodeAdvantage { advantages: vec![0.0; returns.len()], group_std: vec![0.0; returns.len()] };
    for group in split(groups) {
        let mut seen = HashSet::new();
        let members: Vec<usize> = group.rows.iter().copied().filter(|row| seen.insert(episodes[*row])).collect();
        let stats = group_stats(&group, &members, returns, options.singleton)?;
        let scale = if options.norm_adv_by_std_in_grpo {
            (stats.std * stats.std).max(options.min_variance).sqrt() + options.eps
        } else {
            1.0
        };
        for row in group.rows {
            out.advantages[row] = (returns[row] - stats.mean) / scale;
            out.group_std[row] = stats.std;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::SingletonGroup;

    #[test]
    fn an_episode_counts_once_however_many_rows_it_has() {
        let options = GrpoOptions { norm_adv_by_std_in_grpo: false, ..GrpoOptions::default() };
        let out = grpo_episodes(&[1.0, 1.0, 1.0, 0.0], &[3; 4], &[8, 8, 8, 9], options).unwrap();
        assert_eq!(out.advantages, vec![0.5, 0.5, 0.5, -0.5]);
        assert!((out.group_std[0] - 0.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_episode_of_many_rows_is_still_a_group_of_one() {
        let run = |singleton| {
            grpo_episodes(&[1.0, 1.0], &[0, 0], &[5, 5], GrpoOptions { singleton, ..GrpoOptions::default() })
        };
        assert!(matches!(run(SingletonGroup::Error), Err(AdvantageError::SingletonGroup { group: 0, row: 0 })));
        assert_eq!(run(SingletonGroup::Zero).unwrap().advantages, vec![0.0, 0.0]);
    }
}
