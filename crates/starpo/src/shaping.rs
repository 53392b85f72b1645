//! Shaping: what is added to the rewards of turns before credit is assigned. The raw rewards stay as they are, so that
//! filter, diagnostics and scores do not see it; every term is a metric of its own.

use std::collections::BTreeSet;

use crate::advantage::{AdvantageError, OverlongPenalty};
use crate::config::Config;
use crate::episode::Episode;
use crate::metrics::Metrics;

/// What is added to each turn of each episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shaping {
    /// Sum of all terms, per episode and turn; empty when no term is on.
    pub per_turn: Vec<Vec<f64>>,
    /// The mean of each term over episodes, under `shaping/<term>`.
    pub metrics: Metrics,
}

/// The terms of a configuration for these episodes.
///
/// # Errors
/// [`AdvantageError::Setting`] for settings out of range, which a checked configuration does not hold.
pub fn shape(config: &Config, episodes: &[&Episode]) -> Result<Shaping, AdvantageError> {
    let mut shaping = Shaping::default();
    let overlong = &config.algorithm.overlong_buffer;
    if overlong.enable {
        let rule = OverlongPenalty {
            max_response_length: config.actor_rollout_ref.rollout.response_length as f64,
            buffer: overlong.len as f64,
            penalty_factor: overlong.penalty_factor,
        };
        let term = episodes
            .iter()
            .map(|e| e.turns.iter().map(|t| rule.reward(t.response.len())).collect::<Result<Vec<f64>, _>>())
            .collect::<Result<Vec<_>, _>>()?;
        shaping.add("overlong", term);
    }
    let reward = &config.reasoning_reward;
    let mean_over_turns = |weight: f64, value: &dyn Fn(&Episode, usize) -> f64| -> Vec<Vec<f64>> {
        let of = |e: &&Episode| (0..e.turns.len()).map(|t| weight * value(e, t) / e.turns.len() as f64).collect();
        episodes.iter().map(of).collect()
    };
    if reward.agreement > 0.0 {
        shaping.add("agreement", mean_over_turns(reward.agreement, &agreement));
    }
    if reward.length > 0.0 {
        let band = (reward.length_min as f64, reward.length_max as f64);
        let term = mean_over_turns(-reward.length, &|e, t| outside(reasoning(e, t).len() as f64, band));
        shaping.add("reasoning_length", term);
    }
    if reward.repetition > 0.0 {
        shaping.add("repetition", mean_over_turns(-reward.repetition, &repeated));
    }
    Ok(shaping)
}

/// The tokens of a turn's reasoning; none when it has no closed reasoning.
fn reasoning(episode: &Episode, turn: usize) -> &[u32] {
    let range = episode.turns.get(turn).and_then(|t| t.reasoning.clone());
    range.and_then(|range| episode.tokens.get(range)).unwrap_or_default()
}

/// Share of the claims that are true; 0 without any.
fn agreement(episode: &Episode, turn: usize) -> f64 {
    match episode.turns[turn].agreement {
        Some((claims, right)) if claims > 0 => right as f64 / claims as f64,
        _ => 0.0,
    }
}

/// How far a length lies outside the band, relative to the nearer edge; between 0 and 1.
fn outside(length: f64, (low, high): (f64, f64)) -> f64 {
    if length < low { (low - length) / low } else { ((length - high) / high).clamp(0.0, 1.0) }
}

/// Share of the turn's four-token sequences of reasoning that the episode's reasoning has had before.
fn repeated(episode: &Episode, turn: usize) -> f64 {
    const N: usize = 4;
    let mut seen: BTreeSet<&[u32]> = (0..turn).flat_map(|t| reasoning(episode, t).windows(N)).collect();
    let now = reasoning(episode, turn).windows(N);
    let (mut repeats, mut all) = (0usize, 0usize);
    for window in now {
        all += 1;
        repeats += usize::from(!seen.insert(window));
    }
    repeats as f64 / all.max(1) as f64
}

impl Shaping {
    fn add(&mut self, name: &str, term: Vec<Vec<f64>>) {
        let total: f64 = term.iter().flatten().sum();
        self.metrics.set(format!("shaping/{name}"), total / term.len().max(1) as f64);
        if self.per_turn.is_empty() {
            self.per_turn = term;
            return;
        }
        for (sum, more) in self.per_turn.iter_mut().flatten().zip(term.into_iter().flatten()) {
            *sum += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::fixtures::{episode, turn};

    fn config(overrides: &[&str]) -> Config {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Config::load(None, &overrides).unwrap()
    }

    /// Two turns whose reasoning is all of their responses, six and eight tokens that count up from 10.
    fn thinker() -> Episode {
        let mut episode = episode(0, 0, &[turn("s", 6, 1.0), turn("t", 8, 0.0)]);
        for turn in &mut episode.turns {
            turn.reasoning = Some(turn.response.clone());
        }
        episode.turns[0].agreement = Some((4, 3));
        episode
    }

    #[test]
    fn off_by_default() {
        assert_eq!(shape(&config(&[]), &[&thinker()]).unwrap(), Shaping::default());
    }

    #[test]
    fn terms_by_hand_and_each_a_metric() {
        let of = |overrides: &[&str]| shape(&config(overrides), &[&thinker()]).unwrap();
        let agreement = of(&["reasoning_reward.agreement=2"]);
        assert_eq!(agreement.per_turn, [vec![0.75, 0.0]]);
        assert_eq!(agreement.metrics.get("shaping/agreement"), Some(0.75));
        let length =
            of(&["reasoning_reward.length=1", "reasoning_reward.length_min=7", "reasoning_reward.length_max=7"]);
        assert_eq!(length.per_turn, [vec![-0.5 / 7.0, -0.5 / 7.0]]);
        // Of the second turn's five sequences three were in the first turn.
        let repetition = of(&["reasoning_reward.repetition=1"]);
        assert_eq!(repetition.per_turn, [vec![0.0, -0.3]]);
        let both = of(&["reasoning_reward.repetition=1", "reasoning_reward.agreement=2"]);
        assert_eq!(both.per_turn, [vec![0.75, -0.3]]);
        assert_eq!(both.metrics.len(), 2);
    }

    #[test]
    fn the_overlong_penalty_counts_turn_by_turn() {
        let config = config(&[
            "actor_rollout_ref.rollout.response_length=8",
            "algorithm.overlong_buffer.enable=true",
            "algorithm.overlong_buffer.len=4",
            "algorithm.overlong_buffer.penalty_factor=1",
        ]);
        assert_eq!(shape(&config, &[&thinker()]).unwrap().per_turn, [vec![-0.5, -1.0]]);
    }

    #[test]
    fn nothing_to_measure_is_nothing_added() {
        let all = ["reasoning_reward.repetition=1", "reasoning_reward.agreement=1"];
        let silent = episode(0, 0, &[turn("s", 2, 1.0)]);
        assert_eq!(shape(&config(&all), &[&silent]).unwrap().per_turn, [vec![0.0]]);
        assert!(shape(&config(&all), &[]).unwrap().per_turn.is_empty());
        assert_eq!((outside(3.0, (0.0, 5.0)), outside(30.0, (0.0, 5.0)), outside(0.0, (4.0, 5.0))), (0.0, 1.0, 1.0));
    }
}
