//! Credit: from the returns of the kept episodes to one advantage per sampled token.
//!
//! What is here: the dispatch from the configuration to the estimators of [`crate::advantage`], and what follows them.
//! What is not here: the estimators, the losses. Raw returns are read and never changed.

use crate::advantage::{
    self, AdvantageError, BaselineOptions, BiLevelOptions, GpgOptions, GrpoOptions, ReinforcePlusPlus,
    RewardNormalization,
};
use crate::config::{AdvEstimator, Config, FilterLossScaling};
use crate::episode::Episode;
use crate::tokens::{Rows, whiten};

/// What the update is told about the kept episodes' tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credit {
    /// Advantage of each sampled token.
    pub advantages: Vec<f64>,
    /// Target of each value; empty without a critic.
    pub value_targets: Vec<f64>,
}

/// What the estimators read.
pub struct CreditInputs<'a> {
    /// The kept episodes, members of a group next to each other.
    pub episodes: &'a [&'a Episode],
    /// Their sampled tokens.
    pub rows: &'a Rows,
    /// The critic's values of the sampled tokens; empty without a critic.
    pub values: &'a [f64],
    /// A penalty to subtract from each token's reward; empty for none.
    pub token_penalty: &'a [f64],
    /// Groups before filtering.
    pub groups_collected: usize,
}

/// Assigns credit by `algorithm` and `agent_proxy.reward_normalization`.
///
/// # Errors
/// [`AdvantageError`] when the estimator refuses the batch.
pub fn assign(config: &Config, inputs: &CreditInputs<'_>) -> Result<Credit, AdvantageError> {
    let algorithm = &config.algorithm;
    let groups: Vec<usize> = inputs.episodes.iter().map(|e| e.group).collect();
    let raw: Vec<f64> = inputs.episodes.iter().map(|e| e.total_return()).collect();
    let returns = normalised(config, &raw, &groups, inputs.episodes)?;
    let grpo = GrpoOptions { norm_adv_by_std_in_grpo: algorithm.norm_adv_by_std_in_grpo, ..GrpoOptions::default() };
    let spread = |per_row: Vec<f64>| -> Result<Credit, AdvantageError> {
        let mut advantages = inputs.rows.spread(&per_row)?;
        // Outcome estimators know no rewards per token: a penalty in the reward lowers the advantage in its place.
        for (a, p) in advantages.iter_mut().zip(inputs.token_penalty) {
            *a -= p;
        }
        Ok(Credit { advantages, value_targets: Vec::new() })
    };
    let mut credit = match algorithm.adv_estimator {
        AdvEstimator::Gae => {
            let rewards = token_rewards(config, inputs, &returns);
            let (gamma, lam) = (algorithm.gamma, algorithm.lam);
            let estimate = if algorithm.bi_level_gae {
                let options = BiLevelOptions { gamma, lam, high_level_gamma: algorithm.high_level_gamma };
                advantage::bi_level_gae(inputs.rows, &rewards, inputs.values, &turn_ends(inputs), options)?
            } else {
                advantage::gae(inputs.rows, &rewards, inputs.values, gamma, lam)?
            };
            Credit { advantages: whiten(&estimate.advantages)?, value_targets: estimate.returns }
        }
        AdvEstimator::Grpo => {
            let mut per_row = advantage::grpo(&returns, &groups, grpo)?;
            if algorithm.soft_advantage_reweight {
                let weights = advantage::soft_weights(&group_std(&raw, &groups));
                per_row.iter_mut().zip(weights).for_each(|(a, w)| *a *= w);
            }
            spread(per_row)?
        }
        AdvEstimator::GrpoPassk => spread(advantage::grpo_passk(&returns, &groups, grpo)?)?,
        AdvEstimator::Rloo => spread(advantage::rloo(&returns, &groups, BaselineOptions::default())?)?,
        AdvEstimator::ReinforcePlusPlus => {
            let rewards = token_rewards(config, inputs, &returns);
            let options = ReinforcePlusPlus { gamma: algorithm.gamma, ..ReinforcePlusPlus::default() };
            let estimate = advantage::reinforce_plus_plus(inputs.rows, &rewards, options)?;
            Credit { advantages: estimate.advantages, value_targets: Vec::new() }
        }
        AdvEstimator::ReinforcePlusPlusBaseline => {
            let options = BaselineOptions::default();
            let advantages = advantage::reinforce_plus_plus_baseline(inputs.rows, &returns, &groups, options)?;
            Credit { advantages, value_targets: Vec::new() }
        }
        AdvEstimator::Opo => {
            let lengths: Vec<usize> = inputs.rows.lengths().collect();
            spread(advantage::opo(&returns, &lengths, &groups, BaselineOptions::default())?)?
        }
        AdvEstimator::Gpg => spread(advantage::gpg(&returns, &groups, GpgOptions::default())?)?,
    };
    let kept = count_distinct(&groups);
    let scale = if algorithm.zero_task_advantage {
        0.0
    } else {
        match config.actor_rollout_ref.actor.filter_loss_scaling {
            FilterLossScaling::None => advantage::FilterLossScaling::None,
            FilterLossScaling::Linear => advantage::FilterLossScaling::Linear,
            FilterLossScaling::Sqrt => advantage::FilterLossScaling::Sqrt,
        }
        .factor(kept, inputs.groups_collected)
    };
    if scale != 1.0 {
        credit.advantages.iter_mut().for_each(|a| *a *= scale);
    }
    let negative = algorithm.negative_advantage_scale;
    if negative != 1.0 {
        credit.advantages.iter_mut().filter(|a| **a < 0.0).for_each(|a| *a *= negative);
    }
    Ok(credit)
}

fn normalised(
    config: &Config,
    raw: &[f64],
    groups: &[usize],
    episodes: &[&Episode],
) -> Result<Vec<f64>, AdvantageError> {
    let setting = &config.agent_proxy.reward_normalization;
    // The names were checked when the configuration was read.
    let (Ok(grouping), Ok(method)) = (setting.grouping.name().parse(), setting.method.name().parse()) else {
        return Ok(raw.to_vec());
    };
    let normalization = RewardNormalization { grouping, method };
    let mut names: Vec<&str> = episodes.iter().map(|e| e.tag.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let tags: Vec<usize> =
        episodes.iter().map(|e| names.iter().position(|n| *n == e.tag).unwrap_or_default()).collect();
    normalization.apply(raw, groups, &tags)
}

/// Rewards on sampled tokens: the whole return on the episode's last one, or with `use_turn_scores` (and for the
/// bi-level estimator) each turn's reward and penalty on the turn's last one.
fn token_rewards(config: &Config, inputs: &CreditInputs<'_>, returns: &[f64]) -> Vec<f64> {
    let mut rewards = vec![0.0; inputs.rows.tokens()];
    let per_turn = config.agent_proxy.use_turn_scores || config.algorithm.bi_level_gae;
    for (row, episode) in inputs.episodes.iter().enumerate() {
        let range = inputs.rows.range(row);
        if range.is_empty() {
            continue;
        }
        if per_turn {
            let owners = episode.turn_of_trained_tokens();
            for (t, turn) in episode.turns.iter().enumerate() {
                if let Some(last) = owners.iter().rposition(|owner| *owner == t) {
                    rewards[range.start + last] += turn.reward + turn.penalty;
                }
            }
        } else {
            rewards[range.end - 1] = returns[row];
        }
    }
    for (r, p) in rewards.iter_mut().zip(inputs.token_penalty) {
        *r -= p;
    }
    rewards
}

/// Indices of the last sampled token of each turn, within the flat list.
fn turn_ends(inputs: &CreditInputs<'_>) -> Vec<usize> {
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

/// Unbiased standard deviation of the returns of each row's group.
fn group_std(returns: &[f64], groups: &[usize]) -> Vec<f64> {
    groups
        .iter()
        .map(|g| {
            let members: Vec<f64> =
                returns.iter().zip(groups).filter(|(_, other)| *other == g).map(|(r, _)| *r).collect();
            crate::tokens::mean_std(&members).1
        })
        .collect()
}

fn count_distinct(groups: &[usize]) -> usize {
    groups.iter().collect::<std::collections::BTreeSet<_>>().len()
}
