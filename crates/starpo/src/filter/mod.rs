//! The rollout filter: which groups of episodes are trained on (RAGEN, arXiv 2504.20073; RAGEN-2, arXiv 2604.06268).
//!
//! A group is scored, groups are selected by their scores, whole groups are dropped. Scores read *raw* returns; on
//! normalised returns every group has the same spread and the filter means nothing. What RAGEN calls "reward
//! variance" is a standard deviation.

mod buckets;
mod select;
#[cfg(test)]
mod vectors;

use std::str::FromStr;

pub use buckets::{FIXED_EDGES, fixed_buckets, quantile_buckets};
pub use select::{FilterType, Selection, SelectionConfig, Strategy, TopPMode, ZERO_SCORE};

use crate::advantage::split;
use crate::aggregate::nearest;
use crate::tokens::{BatchError, check_finite, check_len, mean, mean_std};

/// A filter that cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FilterError {
    /// The batch does not fit together or holds a number that is not finite.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An unknown word.
    #[error("unknown {key} \"{found}\"; did you mean \"{nearest}\"?")]
    Unknown {
        /// The configuration key.
        key: &'static str,
        /// The word found.
        found: String,
        /// The known word nearest to it.
        nearest: &'static str,
    },
    /// A value out of range.
    #[error("{key} must be {expected} and is {found}")]
    Value {
        /// The configuration key.
        key: &'static str,
        /// The range.
        expected: &'static str,
        /// The value found.
        found: f64,
    },
    /// The metric needs a number per episode that was not given.
    #[error("the filter metric \"{metric}\" needs {what} of every episode, and none were given")]
    Missing {
        /// The metric.
        metric: &'static str,
        /// What is missing.
        what: &'static str,
    },
}

/// What a group is scored by (`rollout_filter_metric`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterMetric {
    /// Unbiased standard deviation of the returns (`reward_variance`, `reward_std`). NaN for a group of one.
    #[default]
    RewardVariance,
    /// Mean return (`reward`).
    Reward,
    /// Sum of returns (`reward_sum`).
    RewardSum,
    /// Mean over members of their mean token entropy (`entropy`).
    Entropy,
    /// Its standard deviation over members (`entropy_variance`, `entropy_std`).
    EntropyVariance,
    /// Mean number of sampled tokens (`length`).
    Length,
}

const METRICS: [(&str, FilterMetric); 8] = [
    ("reward_variance", FilterMetric::RewardVariance),
    ("reward_std", FilterMetric::RewardVariance),
    ("reward", FilterMetric::Reward),
    ("reward_sum", FilterMetric::RewardSum),
    ("entropy", FilterMetric::Entropy),
    ("entropy_variance", FilterMetric::EntropyVariance),
    ("entropy_std", FilterMetric::EntropyVariance),
    ("length", FilterMetric::Length),
];

impl FromStr for FilterMetric {
    type Err = FilterError;

    fn from_str(name: &str) -> Result<Self, FilterError> {
        match METRICS.iter().find(|(known, _)| *known == name) {
            Some((_, metric)) => Ok(*metric),
            None => Err(FilterError::Unknown {
                key: "rollout_filter_metric",
                found: name.to_owned(),
                nearest: nearest(name, &METRICS.map(|(known, _)| known)),
            }),
        }
    }
}

impl FilterMetric {
    /// The configuration name.
    pub fn name(self) -> &'static str {
        METRICS.iter().find(|(_, metric)| *metric == self).map_or("", |(name, _)| name)
    }

    /// The word in the names of the logged numbers.
    fn family(self) -> &'static str {
        match self {
            Self::RewardVariance | Self::Reward | Self::RewardSum => "reward",
            Self::Entropy | Self::EntropyVariance => "entropy",
            Self::Length => "length",
        }
    }

    fn score(self, values: &[f64]) -> f64 {
        match self {
            Self::RewardVariance | Self::EntropyVariance => mean_std(values).1,
            Self::Reward | Self::Entropy | Self::Length => mean(values),
            Self::RewardSum => values.iter().sum(),
        }
    }
}

/// What the filter reads, one value per episode. `entropies` and `lengths` may be empty when the metric is another.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilterInputs<'a> {
    /// Group labels.
    pub groups: &'a [usize],
    /// Raw returns, penalties included.
    pub returns: &'a [f64],
    /// Mean entropy over the sampled tokens, in nats, under the current policy.
    pub entropies: &'a [f64],
    /// Numbers of sampled tokens.
    pub lengths: &'a [f64],
}

/// Averages over groups of the statistics within groups; all 0 when there are no groups.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct GroupSummary {
    /// Unbiased standard deviation (NaN if any group has one member).
    pub std: f64,
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Sum.
    pub sum: f64,
}

/// What the filter did.
#[derive(Clone, Debug, PartialEq)]
pub struct Filtered {
    /// Labels of the kept groups, in the order of selection.
    pub kept_groups: Vec<usize>,
    /// Kept episodes, ascending.
    pub kept_rows: Vec<usize>,
    /// Label and score of every group, in the order of their first episode.
    pub scores: Vec<(usize, f64)>,
    /// Unbiased standard deviation of the returns of every group, in the same order (NaN for a group of one).
    pub reward_std: Vec<f64>,
    /// The metric's values over all groups.
    pub all: GroupSummary,
    /// And over the kept ones.
    pub chosen: GroupSummary,
    /// Groups whose score counts as zero.
    pub zero_count: usize,
    metric: FilterMetric,
}

/// A metric and a selection.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RolloutFilter {
    /// What groups are scored by.
    pub metric: FilterMetric,
    /// Which are kept.
    pub selection: Selection,
}

impl RolloutFilter {
    /// Whether the filter can tell groups of this size apart. A standard deviation needs two members.
    pub fn accepts_group_size(&self, group_size: usize) -> bool {
        group_size > 1 || !matches!(self.metric, FilterMetric::RewardVariance | FilterMetric::EntropyVariance)
    }

    /// Scores and selects.
    ///
    /// # Errors
    /// [`FilterError::Batch`] for lengths that differ or numbers that are not finite, [`FilterError::Missing`] when
    /// the metric's values were not given.
    pub fn apply(&self, inputs: FilterInputs<'_>) -> Result<Filtered, FilterError> {
        let rows = inputs.groups.len();
        check_len("returns", "episode", rows, inputs.returns.len())?;
        check_finite("returns", inputs.returns)?;
        let values = match self.metric.family() {
            "entropy" => inputs.entropies,
            "length" => inputs.lengths,
            _ => inputs.returns,
        };
        if values.is_empty() && rows > 0 {
            let what = if self.metric == FilterMetric::Length { "the sampled tokens" } else { "the entropy" };
            return Err(FilterError::Missing { metric: self.metric.name(), what });
        }
        check_len("values", "episode", rows, values.len())?;
        check_finite("values", values)?;

        let groups = split(inputs.groups);
        let of = |source: &[f64], rows: &[usize]| rows.iter().map(|row| source[*row]).collect::<Vec<f64>>();
        let members: Vec<Vec<f64>> = groups.iter().map(|group| of(values, &group.rows)).collect();
        let scores: Vec<f64> = members.iter().map(|values| self.metric.score(values)).collect();
        let selected = self.selection.select(&scores);
        let mut kept_rows: Vec<usize> = selected.iter().flat_map(|g| groups[*g].rows.iter().copied()).collect();
        kept_rows.sort_unstable();
        Ok(Filtered {
            kept_groups: selected.iter().map(|g| groups[*g].label).collect(),
            kept_rows,
            reward_std: groups.iter().map(|group| mean_std(&of(inputs.returns, &group.rows)).1).collect(),
            all: summarise(members.iter()),
            chosen: summarise(selected.iter().map(|g| &members[*g])),
            zero_count: scores.iter().filter(|score| score.abs() <= ZERO_SCORE).count(),
            scores: groups.iter().map(|group| group.label).zip(scores).collect(),
            metric: self.metric,
        })
    }
}

fn summarise<'a>(groups: impl Iterator<Item = &'a Vec<f64>>) -> GroupSummary {
    let mut out = GroupSummary::default();
    let mut n = 0.0;
    for values in groups {
        let (mean, std) = mean_std(values);
        out.std += std;
        out.max += values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        out.mean += mean;
        out.sum += values.iter().sum::<f64>();
        n += 1.0;
    }
    if n > 0.0 {
        out = GroupSummary { std: out.std / n, max: out.max / n, mean: out.mean / n, sum: out.sum / n };
    }
    out
}

impl Filtered {
    /// Kept groups over all groups; 1 when there were none.
    pub fn kept_ratio(&self) -> f64 {
        if self.scores.is_empty() { 1.0 } else { self.kept_groups.len() as f64 / self.scores.len() as f64 }
    }

    /// The numbers to log, under RAGEN's names.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let mut out = Vec::new();
        for (prefix, summary) in [("", &self.all), ("chosen_", &self.chosen)] {
            let statistics = [("std", summary.std), ("max", summary.max), ("mean", summary.mean)];
            for (name, value) in statistics {
                out.push((format!("rollout/{prefix}in_group_{name}"), value));
            }
            let family = self.metric.family();
            for (name, value) in statistics {
                out.push((format!("rollout/{prefix}in_group_{family}_{name}"), value));
            }
            if family == "reward" {
                out.push((format!("rollout/{prefix}in_group_reward_sum"), summary.sum));
            }
        }
        out.push(("rollout/filter_kept_count".to_owned(), self.kept_groups.len() as f64));
        out.push(("rollout/filter_kept_ratio".to_owned(), self.kept_ratio()));
        out.push(("rollout/filter_zero_count".to_owned(), self.zero_count as f64));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(metric: &str, strategy: Strategy) -> RolloutFilter {
        let selection = Selection { strategy, filter_type: FilterType::Largest, include_zero: false };
        RolloutFilter { metric: metric.parse().unwrap(), selection }
    }

    #[test]
    fn whole_groups_are_kept_wherever_their_episodes_lie() {
        let inputs = FilterInputs { groups: &[7, 3, 7, 3], returns: &[0.0, 1.0, 0.0, 0.0], ..Default::default() };
        let out = filter("reward_variance", Strategy::TopK { value: 0.5 }).apply(inputs).unwrap();
        assert_eq!((out.kept_groups.clone(), out.kept_rows.clone()), (vec![3], vec![1, 3]));
        assert_eq!((out.zero_count, out.kept_ratio()), (1, 0.5));
        assert_eq!(out.scores[0], (7, 0.0));
    }

    #[test]
    fn rounding_is_not_spread() {
        let inputs = FilterInputs { groups: &[0; 7], returns: &[0.1; 7], ..Default::default() };
        let out = filter("reward_std", Strategy::TopK { value: 1.0 }).apply(inputs).unwrap();
        assert!(out.kept_rows.is_empty());
        assert_eq!(out.chosen, GroupSummary::default());
    }

    #[test]
    fn every_metric_scores() {
        let inputs = FilterInputs {
            groups: &[0, 0, 1, 1],
            returns: &[1.0, 2.0, 0.0, 5.0],
            entropies: &[0.5, 0.5, 0.1, 0.3],
            lengths: &[10.0, 20.0, 4.0, 4.0],
        };
        for (metric, best) in [
            ("reward_variance", 1),
            ("reward", 1),
            ("reward_sum", 1),
            ("entropy", 0),
            ("entropy_std", 1),
            ("length", 0),
        ] {
            let out = filter(metric, Strategy::TopKAbs { count: 1 }).apply(inputs).unwrap();
            assert_eq!(out.kept_groups, [best], "{metric}");
        }
    }

    #[test]
    fn edges() {
        let rule = filter("reward_variance", Strategy::TopK { value: 0.5 });
        assert!(rule.apply(FilterInputs::default()).unwrap().kept_rows.is_empty());
        let nan = FilterInputs { groups: &[0], returns: &[f64::NAN], ..Default::default() };
        assert!(matches!(rule.apply(nan), Err(FilterError::Batch(BatchError::NonFinite { .. }))));
        let bare = FilterInputs { groups: &[0], returns: &[1.0], ..Default::default() };
        let error = filter("entropy", Strategy::TopK { value: 0.5 }).apply(bare).unwrap_err();
        assert!(matches!(error, FilterError::Missing { metric: "entropy", .. }));
        assert!(!rule.accepts_group_size(1) && rule.accepts_group_size(2));
        assert!(matches!(
            "reward_varience".parse::<FilterMetric>(),
            Err(FilterError::Unknown { nearest: "reward_variance", .. })
        ));
    }
}
