//! Metrics of episodes under RAGEN's names.
//!
//! Per episode: `success`, `num_actions`, the turn infos averaged over turns. Over a batch: the mean over all
//! episodes of a tag, `<tag>/non-zero/<key>` over those with a value other than zero, and a few batch-wide numbers.

use std::collections::BTreeMap;

use crate::episode::{Episode, Outcome};

/// Turn infos that are means over turns even where other infos are sums (web shopping).
const ALWAYS_MEANS: [&str; 3] = ["action_is_effective", "action_is_valid", "end_of_page"];

/// The metrics of one episode, without the tag. Values that are no finite numbers are left out.
pub fn episode_metrics(episode: &Episode) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |key: &str, value: f64| {
        if value.is_finite() {
            *sums.entry(key.to_owned()).or_default() += value;
        }
    };
    for info in episode.turns.iter().filter_map(|t| t.info.as_ref()) {
        add("action_is_valid", f64::from(u8::from(info.action_is_valid)));
        add("action_is_effective", f64::from(u8::from(info.action_is_effective)));
        for (key, value) in info.extra.iter().filter(|(key, _)| *key != "success") {
            add(key, *value);
        }
    }
    let turns = episode.turns.len().max(1) as f64;
    let as_sums = episode.tag.to_lowercase().contains("webshop");
    let mut metrics: BTreeMap<String, f64> = sums
        .into_iter()
        .map(|(key, sum)| {
            if as_sums && !ALWAYS_MEANS.contains(&key.as_str()) {
                (format!("traj_sum/{key}"), sum)
            } else {
                (key, sum / turns)
            }
        })
        .collect();
    for key in ["action_is_valid", "action_is_effective"] {
        metrics.entry(key.into()).or_default();
    }
    if let Some(score) = last_extra(episode, "score") {
        metrics.insert("final_score".into(), score);
    }
    metrics.insert("success".into(), f64::from(u8::from(episode.outcome.is_success())));
    metrics.insert("num_actions".into(), episode.num_actions() as f64);
    metrics.insert("episodic_return".into(), episode.reward());
    metrics
}

/// The metrics of a batch.
pub fn batch_metrics(episodes: &[Episode]) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    if episodes.is_empty() {
        return metrics;
    }
    let mut by_tag: BTreeMap<&str, Vec<&Episode>> = BTreeMap::new();
    for episode in episodes {
        by_tag.entry(&episode.tag).or_default().push(episode);
    }
    let mut tag_returns = Vec::new();
    for (tag, episodes) in &by_tag {
        tag_metrics(tag, episodes, &mut metrics);
        tag_returns.push(mean(episodes.iter().map(|e| e.reward())));
    }
    metrics.insert("charts/avg_episode_return".into(), mean(tag_returns.into_iter()));
    if let Some(tile) = episodes.iter().filter_map(|e| last_extra(e, "max_tile")).reduce(f64::max) {
        metrics.insert("rollout/max_tile".into(), tile);
    }
    metrics.insert("response_length".into(), mean(episodes.iter().map(|e| e.response_length() as f64)));
    metrics.insert("rollout/turns".into(), mean(episodes.iter().map(|e| e.turns.len() as f64)));
    metrics.insert("rollout/return".into(), mean(episodes.iter().map(Episode::total_return)));
    let samples: Vec<f64> = episodes.iter().flat_map(|e| e.samples()).map(|s| s.len() as f64).collect();
    metrics.insert("rollout/samples".into(), samples.len() as f64);
    metrics.insert("rollout/sequence_length".into(), mean(samples.into_iter()));
    let turns: Vec<_> = episodes.iter().flat_map(|e| &e.turns).collect();
    let rate = |count: usize| count as f64 / turns.len().max(1) as f64;
    let share = |f: fn(&crate::episode::Turn) -> bool| rate(turns.iter().filter(|t| f(t)).count());
    metrics.insert("rollout/format_valid".into(), share(|t| t.format_ok));
    metrics.insert("rollout/thinking_rate".into(), share(|t| t.has_reasoning));
    metrics.insert("rollout/clip_ratio".into(), share(|t| !t.stopped));
    metrics.insert("rollout/penalty_rate".into(), share(|t| t.penalty != 0.0));
    let dropped: usize = turns.iter().map(|t| t.parsed.len().saturating_sub(t.valid.len())).sum();
    metrics.insert("rollout/dropped_actions".into(), dropped as f64);
    metrics.insert("rollout/cut_actions".into(), turns.iter().map(|t| t.cut).sum::<usize>() as f64);
    let dropped = |e: &&Episode| e.turns.iter().any(|t| t.dropped_turns > 0);
    let truncated = |e: &&Episode| matches!(e.outcome, Outcome::ContextLimit);
    metrics.insert("rollout/context_truncated".into(), episodes.iter().filter(truncated).count() as f64);
    metrics.insert("rollout/context_dropping_episodes".into(), episodes.iter().filter(dropped).count() as f64);
    let turns_dropped: usize = turns.iter().map(|t| t.dropped_turns).sum();
    metrics.insert("rollout/context_dropped_turns".into(), turns_dropped as f64);
    metrics.insert("rollout/env_faults".into(), episodes.iter().filter(|e| e.outcome.is_fault()).count() as f64);
    for episode in episodes {
        *metrics.entry(format!("rollout/outcome/{}", episode.outcome.name())).or_default() += 1.0;
    }
    metrics
}

fn tag_metrics(tag: &str, episodes: &[&Episode], metrics: &mut BTreeMap<String, f64>) {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for episode in episodes {
        for (key, value) in &episode.metrics {
            values.entry(key).or_default().push(*value);
        }
    }
    // Any member of the group succeeded. Every member carries the group's value, so this is a mean over groups.
    let mut groups: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
    for episode in episodes {
        let group = groups.entry(episode.group).or_default();
        group.0 += 1;
        group.1 |= episode.outcome.is_success();
    }
    let group_size = groups.values().map(|g| g.0).max().unwrap_or(1);
    let pass = format!("pass@{group_size}");
    values
        .entry(&pass)
        .or_default()
        .extend(groups.values().flat_map(|(size, any)| std::iter::repeat_n(f64::from(u8::from(*any)), *size)));
    for (key, values) in values {
        metrics.insert(format!("{tag}/{key}"), values.iter().sum::<f64>() / episodes.len() as f64);
        let non_zero: Vec<f64> = values.into_iter().filter(|v| *v != 0.0).collect();
        if !non_zero.is_empty() {
            metrics.insert(format!("{tag}/non-zero/{key}"), mean(non_zero.into_iter()));
        }
    }
}

fn last_extra(episode: &Episode, key: &str) -> Option<f64> {
    episode.turns.iter().rev().find_map(|t| t.info.as_ref()?.extra.get(key).copied()).filter(|v| v.is_finite())
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0usize), |(s, n), v| (s + v, n + 1));
    if n == 0 { 0.0 } else { sum / n as f64 }
}

#[cfg(test)]
mod tests {
    use ragen_envs::Split;

    use super::*;
    use crate::context::ContextOptions;
    use crate::dialogue::scripted::{ByteDialogue, ScriptedPolicy, Trouble, line};
    use crate::instances::Group;
    use crate::rollout::{RolloutOptions, collect};

    fn play(tag: &str, group_size: usize) -> Vec<Episode> {
        let mut line = line(Trouble::None, "");
        line.tag = tag.into();
        let group = Group { tag: line, seed: 0, split: Split::Train };
        let options = RolloutOptions { group_size, ..RolloutOptions::default() };
        let mut policy = ScriptedPolicy::saying("a</think><answer>Left||Left</answer>");
        let dialogue = ByteDialogue { tags_as_tokens: true };
        collect(&mut policy, &dialogue, &ContextOptions::default(), &[group], &options).unwrap()
    }

    #[test]
    fn infos_are_means_over_turns_and_sums_when_shopping() {
        // Two turns that end at distances 5 and 7.
        let m = &play("Line", 1)[0].metrics;
        assert_eq!((m["distance"], m["action_is_valid"], m["num_actions"]), (6.0, 1.0, 4.0));
        let m = &play("WebShopFull", 1)[0].metrics;
        assert_eq!((m["traj_sum/distance"], m["action_is_valid"]), (12.0, 1.0));
        assert!(!m.contains_key("distance"));
    }

    #[test]
    fn odd_values_are_left_out_and_the_last_score_counts() {
        let mut episode = play("Line", 1).remove(0);
        for (turn, value) in episode.turns.iter_mut().zip([0.25, 0.75]) {
            let extra = &mut turn.info.as_mut().unwrap().extra;
            extra.insert("odd".into(), f64::NAN);
            extra.insert("score".into(), value);
            extra.insert("max_tile".into(), value * 8.0);
        }
        episode.metrics = episode_metrics(&episode);
        assert!(!episode.metrics.contains_key("odd"));
        assert_eq!((episode.metrics["final_score"], episode.metrics["score"]), (0.75, 0.5));
        assert_eq!(batch_metrics(&[episode])["rollout/max_tile"], 6.0);
    }

    #[test]
    fn tags_are_kept_apart() {
        let mut episodes = play("A", 2);
        episodes.extend(play("B", 1).into_iter().map(|mut e| {
            e.group = 1;
            e.turns.truncate(1);
            e.metrics = episode_metrics(&e);
            e
        }));
        let m = batch_metrics(&episodes);
        assert_eq!((m["A/num_actions"], m["B/num_actions"]), (4.0, 2.0));
        assert_eq!((m["A/pass@2"], m["B/pass@1"]), (0.0, 0.0));
        assert!(!m.contains_key("A/non-zero/success"));
        // The mean over tags, not over episodes.
        assert!((m["charts/avg_episode_return"] - (-0.4 - 0.2) / 2.0).abs() < 1e-12);
        assert!(batch_metrics(&[]).is_empty());
    }
}
