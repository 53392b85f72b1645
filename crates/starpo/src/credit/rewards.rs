//! Where rewards lie: returns with their normalisation, rewards on tokens, the turns as rows.

use super::CreditInputs;
use crate::advantage::{AdvantageError, RewardNormalization};
use crate::config::Config;
use crate::episode::Episode;
use crate::tokens::Rows;

/// The raw returns of `episodes` by `agent_proxy.reward_normalization`: new values, one per episode.
///
/// # Errors
/// [`AdvantageError`] for a return that is not finite.
pub fn normalised_returns(config: &Config, raw: &[f64], episodes: &[&Episode]) -> Result<Vec<f64>, AdvantageError> {
    let setting = &config.agent_proxy.reward_normalization;
    // The names were checked when the configuration was read.
    let (Ok(grouping), Ok(method)) = (setting.grouping.name().parse(), setting.method.name().parse()) else {
        return Ok(raw.to_vec());
    };
    let normalization = RewardNormalization { grouping, method };
    let groups: Vec<usize> = episodes.iter().map(|e| e.group).collect();
    let mut names: Vec<&str> = episodes.iter().map(|e| e.tag.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let tags: Vec<usize> =
        episodes.iter().map(|e| names.iter().position(|n| *n == e.tag).unwrap_or_default()).collect();
    normalization.apply(raw, &groups, &tags)
}

/// What a turn is worth to the estimators: its reward and penalty, and what shaping adds.
pub(super) fn turn_reward(inputs: &CreditInputs<'_>, row: usize, turn: usize) -> f64 {
    let shaped = inputs.shaping.get(row).and_then(|turns| turns.get(turn)).copied().unwrap_or(0.0);
    inputs.episodes[row].turns.get(turn).map_or(0.0, |t| t.reward + t.penalty) + shaped
}

/// Returns with what shaping adds, one per episode.
pub(super) fn shaped_returns(inputs: &CreditInputs<'_>) -> Vec<f64> {
    let shaped = |row: usize| inputs.shaping.get(row).map_or(0.0, |turns| turns.iter().sum());
    inputs.episodes.iter().enumerate().map(|(row, e)| e.total_return() + shaped(row)).collect()
}

/// Rewards on sampled tokens: the whole return on the episode's last one, or with `use_turn_scores` (and for the
/// bi-level estimator) each turn's reward and penalty on the turn's last one.
pub(super) fn token_rewards(config: &Config, inputs: &CreditInputs<'_>, returns: &[f64]) -> Vec<f64> {
    let mut rewards = vec![0.0; inputs.rows.tokens()];
    let per_turn = config.agent_proxy.use_turn_scores || config.algorithm.bi_level_gae;
    for (row, episode) in inputs.episodes.iter().enumerate() {
        let range = inputs.rows.range(row);
        if range.is_empty() {
            continue;
        }
        if per_turn {
            let owners = episode.turn_of_trained_tokens();
            for t in 0..episode.turns.len() {
                if let Some(last) = owners.iter().rposition(|owner| *owner == t) {
                    rewards[range.start + last] += turn_reward(inputs, row, t);
                }
            }
        } else {
            rewards[range.end - 1] = returns[row];
        }
    }
    penalised(rewards, inputs)
}

/// Rewards on sampled tokens for estimators that discount along a row, and those rows. Rows are the samples, the whole
/// return of the episode on the last token of each: a context that was left behind says nothing about how far the end
/// is. With rewards on turns they are the episodes, so that a turn's reward reaches those before it.
pub(super) fn sample_rewards<'a>(config: &Config, inputs: &CreditInputs<'a>, returns: &[f64]) -> (&'a Rows, Vec<f64>) {
    if config.agent_proxy.use_turn_scores || config.algorithm.bi_level_gae {
        return (inputs.rows, token_rewards(config, inputs, returns));
    }
    let mut rewards = vec![0.0; inputs.samples.tokens()];
    let mut episode = 0;
    for sample in inputs.samples.ranges().filter(|sample| !sample.is_empty()) {
        while inputs.rows.range(episode).end < sample.end && episode < inputs.rows.len() {
            episode += 1;
        }
        rewards[sample.end - 1] = returns.get(episode).copied().unwrap_or(0.0);
    }
    (inputs.samples, penalised(rewards, inputs))
}

fn penalised(mut rewards: Vec<f64>, inputs: &CreditInputs<'_>) -> Vec<f64> {
    for (r, p) in rewards.iter_mut().zip(inputs.token_penalty) {
        *r -= p;
    }
    rewards
}

/// Indices of the last sampled token of each turn, within the flat list.
pub(super) fn turn_ends(inputs: &CreditInputs<'_>) -> Vec<usize> {
    let mut ends = Vec::new();
    for (row, episode) in inputs.episodes.iter().enumerate() {
        let start = inputs.rows.range(row).start;
        let owners = episode.turn_of_trained_tokens();
        for (i, owner) in owners.iter().enumerate() {
            if owners.get(i + 1) != Some(owner) {
                ends.push(start + i);
            }
        }
    }
    ends
}

/// The turns of the episodes as rows of a ragged batch, with what each is worth.
pub(super) struct Turns {
    /// The turns of each episode.
    pub rows: Rows,
    /// One per turn.
    pub rewards: Vec<f64>,
}

impl Turns {
    pub(super) fn of(inputs: &CreditInputs<'_>) -> Self {
        let rows = Rows::from_lengths(inputs.episodes.iter().map(|e| e.turns.len()));
        let each = inputs.episodes.iter().enumerate();
        let rewards = each.flat_map(|(row, e)| (0..e.turns.len()).map(move |t| turn_reward(inputs, row, t))).collect();
        Self { rows, rewards }
    }

    /// Gives every sampled token the number of its turn.
    pub(super) fn spread(&self, inputs: &CreditInputs<'_>, per_turn: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(inputs.rows.tokens());
        for (row, episode) in inputs.episodes.iter().enumerate() {
            let turns = &per_turn[self.rows.range(row)];
            let owners = episode.turn_of_trained_tokens();
            out.extend(owners.into_iter().map(|turn| turns.get(turn).copied().unwrap_or(0.0)));
        }
        out
    }
}
