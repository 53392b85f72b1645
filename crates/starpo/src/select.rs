//! Selection: which of the collected groups are trained on.

use std::collections::BTreeMap;

use crate::advantage::AdvantageError;
use crate::config::Config;
use crate::credit::normalised_returns;
use crate::episode::Episode;
use crate::filter::{
    FilterError, FilterInputs, FilterMetric, Filtered, RolloutFilter, Selection, SelectionConfig, Strategy,
};

/// The filter of a configuration.
///
/// # Errors
/// [`FilterError`] for values the strategy refuses.
pub fn rollout_filter(config: &Config) -> Result<RolloutFilter, FilterError> {
    let rollout = &config.actor_rollout_ref.rollout;
    let selection = SelectionConfig {
        strategy: rollout.rollout_filter_strategy.name(),
        value: rollout.rollout_filter_value,
        filter_type: rollout.rollout_filter_type.name(),
        include_zero: rollout.rollout_filter_include_zero,
        top_p_prob_mode: rollout.rollout_filter_top_p_prob_mode.name(),
        selection_eps: rollout.rollout_filter_selection_eps,
    };
    Ok(RolloutFilter { metric: rollout.rollout_filter_metric.name().parse()?, selection: selection.read()? })
}

/// Whether the filter reads entropies, which takes a scoring pass before the update.
pub fn needs_entropy(filter: &RolloutFilter) -> bool {
    matches!(filter.metric, FilterMetric::Entropy | FilterMetric::EntropyVariance)
}

/// Applies the filter to raw returns. Episodes whose environment failed stay in: their return is what they earned.
///
/// Returns that differ by float noise count as equal, so that a group with nothing to compare does not slip through.
/// With `rollout_filter_include_zero` nothing is rounded: that is the reference's rule to the last bit. With
/// `compat.filter_normalised_returns` the returns are those that estimators read, as they are there.
///
/// # Errors
/// [`FilterError`].
pub fn select(
    config: &Config,
    filter: &RolloutFilter,
    episodes: &[Episode],
    entropies: &[f64],
) -> Result<Filtered, SelectError> {
    let groups: Vec<usize> = episodes.iter().map(|e| e.group).collect();
    let mut returns: Vec<f64> = episodes.iter().map(Episode::total_return).collect();
    if config.compat.filter_normalised_returns {
        returns = normalised_returns(config, &returns, &episodes.iter().collect::<Vec<_>>())?;
    }
    if !config.actor_rollout_ref.rollout.rollout_filter_include_zero {
        returns.iter_mut().for_each(|r| *r = quantised(*r));
    }
    let lengths: Vec<f64> = episodes.iter().map(|e| e.response_length() as f64).collect();
    Ok(filter.apply(FilterInputs { groups: &groups, returns: &returns, entropies, lengths: &lengths })?)
}

/// The same filter with less let through: shares and counts are multiplied by `factor` (0 < factor ≤ 1), a threshold is
/// raised accordingly, and groups without a score are never kept.
pub fn stricter(filter: RolloutFilter, factor: f64) -> RolloutFilter {
    let strategy = match filter.selection.strategy {
        Strategy::TopP { value, mode } => Strategy::TopP { value: value.min(1.0) * factor, mode },
        Strategy::TopK { value } => Strategy::TopK { value: value * factor },
        Strategy::TopKAbs { count } => Strategy::TopKAbs { count: ((count as f64 * factor) as usize).max(1) },
        Strategy::MinP { value } => Strategy::MinP { value: 1.0 - (1.0 - value) * factor },
    };
    RolloutFilter { selection: Selection { strategy, include_zero: false, ..filter.selection }, ..filter }
}

/// Label and spread of returns of every kept group; a spread that is not known counts as 0.
pub fn kept_spreads(filtered: &Filtered) -> Vec<(usize, f64)> {
    let all = filtered.scores.iter().map(|(label, _)| *label).zip(&filtered.reward_std);
    let kept = all.filter(|(label, _)| filtered.kept_groups.contains(label));
    kept.map(|(label, std)| (label, if std.is_finite() { *std } else { 0.0 })).collect()
}

/// The groups whose members all have the same return, up to float noise: they have nothing to compare, whatever the
/// filter. In ascending order.
pub fn silent_groups(episodes: &[Episode]) -> Vec<usize> {
    let mut groups: BTreeMap<usize, (f64, bool)> = BTreeMap::new();
    for episode in episodes {
        let value = quantised(episode.total_return());
        let entry = groups.entry(episode.group).or_insert((value, true));
        entry.1 &= entry.0 == value;
    }
    groups.into_iter().filter(|(_, (_, equal))| *equal).map(|(label, _)| label).collect()
}

/// Rounds away the noise of summing rewards in different orders: nine decimals remain.
fn quantised(x: f64) -> f64 {
    let rounded = (x * 1e9).round() / 1e9;
    if rounded.is_finite() { rounded } else { x }
}

/// Why groups could not be selected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectError {
    /// The filter refused the batch.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Returns could not be normalised.
    #[error(transparent)]
    Normalise(#[from] AdvantageError),
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
