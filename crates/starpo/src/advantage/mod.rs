//! Advantage estimators: who gets the credit.
//!
//! Pure functions over numbers, no model. Estimators that credit whole rows (episodes or turns) return one number per
//! row, to be given to its tokens with [`Rows::spread`](crate::tokens::Rows::spread); the others return one number per
//! sampled token. None of them whitens unless it says so. Inputs must be finite: one NaN would make every advantage of
//! its group NaN, so it is an error here.
//!
//! Groups are labels, one per row, in any order: rows with the same label started from the same state.

mod adjust;
mod episodes;
mod gae;
mod gigpo;
mod group;
mod reward;
mod reward_to_go;
mod token_baseline;
mod turns;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod vectors;

use std::collections::HashMap;

pub use adjust::{FilterLossScaling, UnknownScaling, length_weights, soft_weights};
pub use episodes::{EpisodeAdvantage, grpo_episodes};
pub use gae::{BiLevelOptions, ValueAdvantage, bi_level_gae, gae, gae_bootstrapped};
pub use gigpo::{EpisodePooling, GigpoAdvantage, GigpoOptions, StepBatch, gigpo};
pub use group::{
    BaselineOptions, GpgAlpha, GpgOptions, GrpoOptions, dr_grpo, gpg, grpo, grpo_batch_std, grpo_passk, opo,
    reinforce_plus_plus_baseline, rloo,
};
pub use reward::{
    OverlongPenalty, RewardGrouping, RewardMethod, RewardNormalization, RewardNormalizationError, kl_in_reward,
};
pub use reward_to_go::{ReinforcePlusPlus, reinforce_plus_plus, remax, rewards_to_go};
pub use token_baseline::{TokenBaselineInputs, TokenBaselineOptions, optimal_token_baseline};
pub use turns::{TurnLevelOptions, turn_level};

use crate::tokens::{BatchError, check_finite, check_len, mean_std};

/// Why advantages could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AdvantageError {
    /// The batch does not fit together or holds a number that is not finite.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A group of one has no baseline.
    #[error(
        "group {group} has a single member (row {row}), so its return has no baseline; set group_size to 2 or more, \
         or choose `singleton: zero` (ignore it) or `raw_return` (use the return itself)"
    )]
    SingletonGroup {
        /// Label of the group.
        group: usize,
        /// Its only row.
        row: usize,
    },
    /// Pass@k needs a second best member.
    #[error("pass@k credit needs at least 2 members in every group and group {group} has 1; raise group_size")]
    PassAtKSingleton {
        /// Label of the group.
        group: usize,
    },
    /// Turn ends that do not describe turns.
    #[error("turn ends must be increasing token positions, the last token of every row among them: {problem}")]
    TurnEnds {
        /// What is wrong.
        problem: String,
    },
    /// A setting outside its range.
    #[error("`{key}` must be {expected} and is {found}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// The range.
        expected: &'static str,
        /// The value found.
        found: f64,
    },
}

/// What to do with a group that has a single member, and therefore no baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SingletonGroup {
    /// Refuse the batch.
    #[default]
    Error,
    /// Advantage 0: the row does not train.
    Zero,
    /// The return itself is the advantage (mean 0, deviation 1): what veRL and RAGEN do.
    RawReturn,
}

/// Members of one group, in row order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub label: usize,
    pub rows: Vec<usize>,
}

/// Splits rows by label, groups in the order of their first row.
pub(crate) fn split(labels: &[usize]) -> Vec<Group> {
    let mut place: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (row, label) in labels.iter().enumerate() {
        let at = *place.entry(*label).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { label: *label, rows: vec![row] }),
        }
    }
    groups
}

/// Baseline and scale of one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GroupStats {
    pub mean: f64,
    pub std: f64,
}

/// Mean and unbiased deviation of the given members' returns, with the decision about single members applied.
pub(crate) fn group_stats(
    group: &Group,
    members: &[usize],
    returns: &[f64],
    singleton: SingletonGroup,
) -> Result<GroupStats, AdvantageError> {
    let values: Vec<f64> = members.iter().filter_map(|row| returns.get(*row)).copied().collect();
    match (values.as_slice(), singleton) {
        ([], _) => Ok(GroupStats { mean: 0.0, std: 1.0 }),
        ([_], SingletonGroup::Error) => {
            Err(AdvantageError::SingletonGroup { group: group.label, row: members.first().copied().unwrap_or(0) })
        }
        ([only], SingletonGroup::Zero) => Ok(GroupStats { mean: *only, std: 1.0 }),
        ([_], SingletonGroup::RawReturn) => Ok(GroupStats { mean: 0.0, std: 1.0 }),
        (values, _) => {
            let (mean, std) = mean_std(values);
            Ok(GroupStats { mean, std })
        }
    }
}

pub(crate) fn check_rows(returns: &[f64], groups: &[usize]) -> Result<(), BatchError> {
    check_len("groups", "row", returns.len(), groups.len())?;
    check_finite("returns", returns)
}
