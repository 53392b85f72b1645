//! Numbers of every iteration that need no model: spread of returns within groups, length of the reasoning, repetition.

use std::collections::{BTreeMap, BTreeSet};

use crate::episode::Episode;
use crate::metrics::Metrics;
use crate::tokens::{mean, mean_std};

/// Tokens of the n-grams whose repetition is counted.
const NGRAM: usize = 4;

/// Measures a batch: `rollout/in_group_return_std`, `rollout/reasoning_length`, `rollout/reasoning_agreement` (the share
/// of the reasoning's checkable claims that are true), `rollout/repetition_rate`.
pub fn batch_health(episodes: &[Episode]) -> Metrics {
    let mut metrics = Metrics::new();
    let mut groups: BTreeMap<usize, Vec<&Episode>> = BTreeMap::new();
    for episode in episodes {
        groups.entry(episode.group).or_default().push(episode);
    }
    let spreads: Vec<f64> = groups
        .values()
        .map(|members| mean_std(&members.iter().map(|e| e.total_return()).collect::<Vec<_>>()).1)
        .filter(|std| std.is_finite())
        .collect();
    if !spreads.is_empty() {
        metrics.set("rollout/in_group_return_std", mean(&spreads));
    }
    let lengths: Vec<f64> = episodes
        .iter()
        .flat_map(|e| &e.turns)
        .map(|t| t.reasoning.as_ref().map_or(0.0, |range| range.len() as f64))
        .collect();
    if !lengths.is_empty() {
        metrics.set("rollout/reasoning_length", mean(&lengths));
    }
    let checked = episodes.iter().flat_map(|e| &e.turns).filter_map(|t| t.agreement);
    let (claims, right) = checked.fold((0, 0), |(c, r), (claims, right)| (c + claims, r + right));
    if claims > 0 {
        metrics.set("rollout/reasoning_agreement", right as f64 / claims as f64);
    }
    let rates: Vec<f64> = groups.values().filter_map(|members| repetition(members)).collect();
    if !rates.is_empty() {
        metrics.set("rollout/repetition_rate", mean(&rates));
    }
    metrics
}

/// The share of the responses' n-grams, over all members of a group, that have occurred in it before. `None` when no
/// response is as long as an n-gram.
fn repetition(members: &[&Episode]) -> Option<f64> {
    let mut distinct: BTreeSet<&[u32]> = BTreeSet::new();
    let mut total = 0usize;
    for episode in members {
        for turn in &episode.turns {
            for window in episode.tokens.get(turn.response.clone()).unwrap_or_default().windows(NGRAM) {
                total += 1;
                distinct.insert(window);
            }
        }
    }
    (total > 0).then(|| 1.0 - distinct.len() as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::fixtures::{episode, turn};

    #[test]
    fn by_hand() {
        // The fixture's responses count up from token 10: of the windows of five and four tokens, two are distinct.
        let mut episodes = vec![episode(0, 0, &[turn("s", 5, 1.0)]), episode(0, 1, &[turn("s", 4, 0.0)])];
        episodes[0].turns[0].reasoning = Some(3..5);
        episodes[0].turns[0].agreement = Some((3, 1));
        episodes[1].turns[0].agreement = Some((1, 1));
        let metrics = batch_health(&episodes);
        assert_eq!(metrics.get("rollout/in_group_return_std"), Some(0.5f64.sqrt()));
        assert_eq!(metrics.get("rollout/reasoning_length"), Some(1.0));
        assert_eq!(metrics.get("rollout/reasoning_agreement"), Some(0.5));
        assert!((metrics.get("rollout/repetition_rate").unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_there_is_not_reported() {
        assert!(batch_health(&[]).is_empty());
        let metrics = batch_health(&[episode(0, 0, &[turn("s", 2, 1.0)])]);
        assert_eq!(metrics.get("rollout/in_group_return_std"), None, "a group of one has no spread");
        assert_eq!(metrics.get("rollout/repetition_rate"), None);
    }
}
