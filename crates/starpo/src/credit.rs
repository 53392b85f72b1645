//! Credit: from the returns of the kept episodes to one advantage per sampled token.
//!
//! What is here: the dispatch from the configuration to the estimators of [`crate::advantage`], and what follows them.
//! What is not here: the estimators, the losses. Raw returns are read and never changed.
//!
//! An episode counts once in every statistic over a group, however many training samples it is, and its return is that
//! of the whole episode in each of them.

mod rewards;
#[cfg(test)]
#[path = "credit_tests.rs"]
mod tests;

pub use rewards::normalised_returns;

use crate::advantage::{
    self, AdvantageError, BaselineOptions, BiLevelOptions, EpisodePooling, GigpoOptions, GpgOptions, GrpoOptions,
    ReinforcePlusPlus, SingletonGroup, StepBatch, TokenBaselineInputs, TokenBaselineOptions, TurnLevelOptions,
};
use crate::config::{AdvEstimator, Config, FilterLossScaling, GigpoMode, StdScope};
use crate::episode::Episode;
use crate::tokens::{Rows, whiten};
use rewards::{Turns, sample_rewards, shaped_returns, token_rewards, turn_ends};

/// What the update is told about the kept episodes' tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credit {
    /// Advantage of each sampled token.
    pub advantages: Vec<f64>,
    /// Target of each value; empty without a critic.
    pub value_targets: Vec<f64>,
}

/// What the estimators read.
#[derive(Clone, Copy, Debug)]
pub struct CreditInputs<'a> {
    /// The kept episodes, members of a group next to each other.
    pub episodes: &'a [&'a Episode],
    /// Their sampled tokens.
    pub rows: &'a Rows,
    /// The same tokens, divided into training samples: one an episode with the full history.
    pub samples: &'a Rows,
    /// The critic's values of the sampled tokens; empty without a critic.
    pub values: &'a [f64],
    /// A penalty to subtract from each token's reward; empty for none.
    pub token_penalty: &'a [f64],
    /// What is added to the reward of each turn of each episode; empty for nothing.
    pub shaping: &'a [Vec<f64>],
    /// ReMax: the return of a greedy episode on each episode's instance; empty for the other estimators.
    pub greedy_returns: &'a [f64],
    /// The log-probability of each sampled token; read by the optimal token baseline.
    pub log_prob: &'a [f64],
    /// Σ π² of the distribution each token was drawn from; empty but for the optimal token baseline.
    pub sum_pi_squared: &'a [f64],
    /// Groups before filtering.
    pub groups_collected: usize,
}

/// Assigns credit by `algorithm` and `agent_proxy.reward_normalization`.
///
/// # Errors
/// [`AdvantageError`] when the estimator refuses the batch.
pub fn assign(config: &Config, inputs: &CreditInputs<'_>) -> Result<Credit, AdvantageError> {
    let groups: Vec<usize> = inputs.episodes.iter().map(|e| e.group).collect();
    let returns = normalised_returns(config, &shaped_returns(inputs), inputs.episodes)?;
    let mut credit = estimate(config, inputs, &groups, &returns)?;
    adjust(config, inputs, &groups, &mut credit.advantages);
    Ok(credit)
}

fn estimate(
    config: &Config,
    inputs: &CreditInputs<'_>,
    groups: &[usize],
    returns: &[f64],
) -> Result<Credit, AdvantageError> {
    let algorithm = &config.algorithm;
    // Groups of one are refused with the configuration. One is left over where the others had no token to train, and
    // that should not end a run.
    let singleton = SingletonGroup::Zero;
    let baseline = BaselineOptions { singleton };
    let norm_adv_by_std_in_grpo = algorithm.norm_adv_by_std_in_grpo;
    let grpo = GrpoOptions { norm_adv_by_std_in_grpo, singleton, ..GrpoOptions::default() };
    // Estimators of whole rows and turns know no rewards per token: a penalty in the reward lowers the advantage
    // in its place.
    let per_token = |mut advantages: Vec<f64>| {
        advantages.iter_mut().zip(inputs.token_penalty).for_each(|(a, p)| *a -= p);
        Credit { advantages, value_targets: Vec::new() }
    };
    let per_row = |rows: Vec<f64>| Ok(per_token(inputs.rows.spread(&rows)?));
    let from_rewards = |advantages: Vec<f64>| Ok(Credit { advantages, value_targets: Vec::new() });
    match algorithm.adv_estimator {
        AdvEstimator::Gae => {
            let (rows, rewards) = sample_rewards(config, inputs, returns);
            let (gamma, lam) = (algorithm.gamma, algorithm.lam);
            let estimate = if algorithm.bi_level_gae {
                let options = BiLevelOptions { gamma, lam, high_level_gamma: algorithm.high_level_gamma };
                advantage::bi_level_gae(rows, &rewards, inputs.values, &turn_ends(inputs), options)?
            } else {
                advantage::gae(rows, &rewards, inputs.values, gamma, lam)?
            };
            Ok(Credit { advantages: whiten(&estimate.advantages)?, value_targets: estimate.returns })
        }
        AdvEstimator::Grpo if algorithm.adv_std_scope == StdScope::Batch => {
            per_row(advantage::grpo_batch_std(returns, groups, grpo)?)
        }
        AdvEstimator::Grpo => per_row(advantage::grpo(returns, groups, grpo)?),
        AdvEstimator::GrpoPassk => per_row(advantage::grpo_passk(returns, groups, grpo)?),
        AdvEstimator::Rloo => per_row(advantage::rloo(returns, groups, baseline)?),
        AdvEstimator::ReinforcePlusPlus => {
            let (rows, rewards) = sample_rewards(config, inputs, returns);
            let options = ReinforcePlusPlus { gamma: algorithm.gamma, ..ReinforcePlusPlus::default() };
            from_rewards(advantage::reinforce_plus_plus(rows, &rewards, options)?.advantages)
        }
        AdvEstimator::ReinforcePlusPlusBaseline => {
            Ok(per_token(advantage::reinforce_plus_plus_baseline(inputs.rows, returns, groups, baseline)?))
        }
        AdvEstimator::Opo => {
            let lengths: Vec<usize> = inputs.rows.lengths().collect();
            per_row(advantage::opo(returns, &lengths, groups, baseline)?)
        }
        AdvEstimator::Gpg => {
            per_row(advantage::gpg(returns, groups, GpgOptions { singleton, ..GpgOptions::default() })?)
        }
        AdvEstimator::Gigpo => Ok(per_token(gigpo(config, inputs, groups, returns)?)),
        AdvEstimator::TurnLevel => {
            let turns = Turns::of(inputs);
            let options = TurnLevelOptions {
                turn_weight: algorithm.turn_advantage_w,
                norm_by_std: norm_adv_by_std_in_grpo,
                singleton,
                ..TurnLevelOptions::default()
            };
            // The outcome is the return of the whole episode: environments pay along the way, and what a turn leads
            // to later counts as well.
            let per_turn = advantage::turn_level(&turns.rows, &turns.rewards, returns, groups, options)?;
            Ok(per_token(turns.spread(inputs, &per_turn)))
        }
        AdvEstimator::Remax => {
            let rewards = token_rewards(config, inputs, returns);
            from_rewards(advantage::remax(inputs.rows, &rewards, inputs.greedy_returns)?.advantages)
        }
        AdvEstimator::OptimalTokenBaseline => {
            let rewards = token_rewards(config, inputs, returns);
            let token = TokenBaselineInputs {
                rewards: &rewards,
                log_prob: inputs.log_prob,
                sum_pi_squared: inputs.sum_pi_squared,
                is_weight: None,
                positions: None,
                groups,
            };
            let options = TokenBaselineOptions { singleton, ..TokenBaselineOptions::default() };
            from_rewards(advantage::optimal_token_baseline(inputs.rows, token, options)?.advantages)
        }
    }
}

/// GiGPO with turns as steps. Two turns of a group meet in a state when the environment says they do; how many actions
/// were left is not part of it.
fn gigpo(
    config: &Config,
    inputs: &CreditInputs<'_>,
    groups: &[usize],
    returns: &[f64],
) -> Result<Vec<f64>, AdvantageError> {
    let turns = Turns::of(inputs);
    let mut rows = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, episode) in inputs.episodes.iter().enumerate() {
        for turn in &episode.turns {
            rows.0.push(groups[row]);
            rows.1.push(row);
            rows.2.push(turn.state_key.as_str());
            rows.3.push(returns[row]);
        }
    }
    let batch = StepBatch {
        groups: &rows.0,
        episodes: &rows.1,
        states: &rows.2,
        step_rewards: &turns.rewards,
        episode_returns: &rows.3,
    };
    let options = GigpoOptions {
        gamma: config.algorithm.high_level_gamma,
        step_advantage_w: config.algorithm.gigpo.step_advantage_w,
        norm_by_std: config.algorithm.gigpo.mode == GigpoMode::MeanStdNorm,
        pooling: EpisodePooling::Episodes,
        singleton: SingletonGroup::Zero,
        ..GigpoOptions::default()
    };
    Ok(turns.spread(inputs, &advantage::gigpo(batch, options)?.advantages))
}

/// What is multiplied onto advantages, in the reference's order.
fn adjust(config: &Config, inputs: &CreditInputs<'_>, groups: &[usize], advantages: &mut [f64]) {
    let algorithm = &config.algorithm;
    let mut scale_rows = |weights: Vec<f64>| {
        for (range, weight) in inputs.rows.ranges().zip(weights) {
            advantages[range].iter_mut().for_each(|a| *a *= weight);
        }
    };
    if algorithm.soft_advantage_reweight {
        let raw: Vec<f64> = inputs.episodes.iter().map(|e| e.total_return()).collect();
        scale_rows(advantage::soft_weights(&group_std(&raw, groups)));
    }
    if algorithm.grpo_advantage_length_weight {
        scale_rows(advantage::length_weights(&inputs.rows.lengths().collect::<Vec<_>>()));
    }
    let scale = if algorithm.zero_task_advantage {
        0.0
    } else {
        match config.actor_rollout_ref.actor.filter_loss_scaling {
            FilterLossScaling::None => advantage::FilterLossScaling::None,
            FilterLossScaling::Linear => advantage::FilterLossScaling::Linear,
            FilterLossScaling::Sqrt => advantage::FilterLossScaling::Sqrt,
        }
        .factor(count_distinct(groups), inputs.groups_collected)
    };
    if scale != 1.0 {
        advantages.iter_mut().for_each(|a| *a *= scale);
    }
    let negative = algorithm.negative_advantage_scale;
    if negative != 1.0 {
        advantages.iter_mut().filter(|a| **a < 0.0).for_each(|a| *a *= negative);
    }
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
