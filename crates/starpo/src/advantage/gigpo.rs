//! GiGPO (arXiv 2505.10978): the advantage of the episode plus the advantage of the step among all visits to the same
//! state.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::{AdvantageError, SingletonGroup, check_rows, group_stats, split};
use crate::tokens::{check_finite, check_len, mean_std};

/// Over what the episode term takes its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EpisodePooling {
    /// Every episode once, as in the paper's equation.
    #[default]
    Episodes,
    /// Every row once, as in the authors' code: long episodes count more.
    Rows,
}

/// Settings of [`gigpo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GigpoOptions {
    /// Discount per step of the step returns.
    pub gamma: f64,
    /// ω, the weight of the step term (`step_advantage_w`).
    pub step_advantage_w: f64,
    /// Divide both terms by their standard deviation (`mode: mean_std_norm`) rather than by 1 (`mean_norm`).
    pub norm_by_std: bool,
    /// Added to the deviations.
    pub eps: f64,
    /// Statistics of the episode term.
    pub pooling: EpisodePooling,
    /// What a group of one gets in the episode term.
    pub singleton: SingletonGroup,
}

impl Default for GigpoOptions {
    fn default() -> Self {
        Self {
            gamma: 0.95,
            step_advantage_w: 1.0,
            norm_by_std: false,
            eps: 1e-6,
            pooling: EpisodePooling::default(),
            singleton: SingletonGroup::Error,
        }
    }
}

/// A batch with one row per environment step, the steps of an episode in order. All slices have one entry per row.
#[derive(Clone, Copy, Debug)]
pub struct StepBatch<'a, S> {
    /// Group labels.
    pub groups: &'a [usize],
    /// Episode labels, unique within a group.
    pub episodes: &'a [usize],
    /// The state the step was taken in. States are equal or not; they are never compared across groups.
    pub states: &'a [S],
    /// Rewards of the steps.
    pub step_rewards: &'a [f64],
    /// The return of the row's whole episode.
    pub episode_returns: &'a [f64],
}

/// The terms, one of each per row.
#[derive(Clone, Debug, PartialEq)]
pub struct GigpoAdvantage {
    /// A = A^E + ω A^S.
    pub advantages: Vec<f64>,
    /// A^E.
    pub episode: Vec<f64>,
    /// A^S; 0 for a state visited once.
    pub step: Vec<f64>,
    /// D_t, the discounted reward to go of the step.
    pub step_returns: Vec<f64>,
    /// The first row that visits the row's state in its group.
    pub first_visit: Vec<usize>,
}

/// A^E = (R − μ_g)/F over the episodes of the group, A^S = (D − mean)/F over all visits of the group to the state,
/// repeated visits within an episode included.
///
/// # Errors
/// A length, a number that is not finite, or a group of one under [`SingletonGroup::Error`].
pub fn gigpo<S: Hash + Eq>(batch: StepBatch<'_, S>, options: GigpoOptions) -> Result<GigpoAdvantage, AdvantageError> {
    let rows = batch.groups.len();
    check_rows(batch.episode_returns, batch.groups)?;
    check_len("episodes", "step", rows, batch.episodes.len())?;
    check_len("states", "step", rows, batch.states.len())?;
    check_len("step_rewards", "step", rows, batch.step_rewards.len())?;
    check_finite("step_rewards", batch.step_rewards)?;

    let mut step_returns = vec![0.0; rows];
    let mut running: HashMap<(usize, usize), f64> = HashMap::new();
    for row in (0..rows).rev() {
        let after = running.entry((batch.groups[row], batch.episodes[row])).or_insert(0.0);
        *after = batch.step_rewards[row] + options.gamma * *after;
        step_returns[row] = *after;
    }

    let mut episode = vec![0.0; rows];
    let mut step = vec![0.0; rows];
    let mut first_visit = vec![0; rows];
    let scale = |std: f64| if options.norm_by_std { std + options.eps } else { 1.0 };
    for group in split(batch.groups) {
        let mut seen = HashSet::new();
        let members: Vec<usize> = match options.pooling {
            EpisodePooling::Rows => group.rows.clone(),
            EpisodePooling::Episodes => {
                group.rows.iter().copied().filter(|row| seen.insert(batch.episodes[*row])).collect()
            }
        };
        let stats = group_stats(&group, &members, batch.episode_returns, options.singleton)?;
        let mut visits: HashMap<&S, Vec<usize>> = HashMap::new();
        for row in &group.rows {
            episode[*row] = (batch.episode_returns[*row] - stats.mean) / scale(stats.std);
            visits.entry(&batch.states[*row]).or_default().push(*row);
        }
        for visitors in visits.values() {
            let returns: Vec<f64> = visitors.iter().map(|row| step_returns[*row]).collect();
            let (mean, std) = mean_std(&returns);
            for row in visitors {
                first_visit[*row] = visitors[0];
                step[*row] = if returns.len() > 1 { (step_returns[*row] - mean) / scale(std) } else { 0.0 };
            }
        }
    }
    let advantages = episode.iter().zip(&step).map(|(e, s)| e + options.step_advantage_w * s).collect();
    Ok(GigpoAdvantage { advantages, episode, step, step_returns, first_visit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_episodes_meet_in_one_state() {
        // Episode 0: s → t, rewards 0, 1. Episode 1: s only, reward 0.
        let batch = StepBatch {
            groups: &[0, 0, 0],
            episodes: &[0, 0, 1],
            states: &["s", "t", "s"],
            step_rewards: &[0.0, 1.0, 0.0],
            episode_returns: &[1.0, 1.0, 0.0],
        };
        let out = gigpo(batch, GigpoOptions { gamma: 0.5, ..GigpoOptions::default() }).unwrap();
        assert_eq!(out.step_returns, vec![0.5, 1.0, 0.0]);
        assert_eq!(out.step, vec![0.25, 0.0, -0.25]);
        assert_eq!(out.episode, vec![0.5, 0.5, -0.5]);
        assert_eq!(out.advantages, vec![0.75, 0.5, -0.75]);
        assert_eq!(out.first_visit, vec![0, 1, 0]);
        let rows = GigpoOptions { gamma: 0.5, pooling: EpisodePooling::Rows, ..GigpoOptions::default() };
        let pooled = gigpo(batch, rows).unwrap();
        assert!((pooled.episode[0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn states_of_different_groups_never_meet() {
        let batch = StepBatch {
            groups: &[0, 0, 1, 1],
            episodes: &[0, 1, 0, 1],
            states: &["s"; 4],
            step_rewards: &[0.0, 2.0, 10.0, 12.0],
            episode_returns: &[0.0, 2.0, 10.0, 12.0],
        };
        let out = gigpo(batch, GigpoOptions::default()).unwrap();
        assert_eq!(out.step, vec![-1.0, 1.0, -1.0, 1.0]);
    }

    #[test]
    fn empty_and_broken_batches() {
        let empty =
            StepBatch::<u8> { groups: &[], episodes: &[], states: &[], step_rewards: &[], episode_returns: &[] };
        assert!(gigpo(empty, GigpoOptions::default()).unwrap().advantages.is_empty());
        let batch = StepBatch {
            groups: &[0, 0],
            episodes: &[0, 1],
            states: &[1u8],
            step_rewards: &[0.0, 0.0],
            episode_returns: &[0.0, 0.0],
        };
        assert!(gigpo(batch, GigpoOptions::default()).is_err());
        let nan = StepBatch { states: &[1u8, 1], step_rewards: &[f64::NAN, 0.0], ..batch };
        assert!(gigpo(nan, GigpoOptions::default()).is_err());
    }
}
