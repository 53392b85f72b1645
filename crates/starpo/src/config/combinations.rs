//! Settings that are right each by itself and make no sense together.

use super::problems::Problems;
use super::{
    AdvEstimator, Config, ContextWindowMode, FilterMetric, FilterStrategy, LossAggMode, NormGrouping, NormMethod,
    PolicyLossMode, Verify,
};

impl Config {
    pub(super) fn check_combinations(&self, problems: &mut Problems) {
        let estimator = self.algorithm.adv_estimator;
        let group_size = self.es_manager.train.group_size;
        let full = self.trainer.verify == Verify::Full;
        let recorded = self.enable_response_mask && !self.compat.train_template_tokens;
        problems.require(!full || recorded, || {
            "`trainer.verify` full compares recorded log-probabilities, and with `compat.train_template_tokens`, or \
             `enable_response_mask` false, tokens are trained for which none is recorded: use first"
                .into()
        });
        problems.require(group_size != 1 || !estimator.uses_group_baseline(), || {
            format!(
                "`es_manager.train.group_size` is 1, but `algorithm.adv_estimator` {estimator} compares an episode \
                 with the others of its group: a group of one has no baseline. Use at least 2, or gae or \
                 reinforce_plus_plus"
            )
        });
        problems.require(group_size != 1 || !self.filter_needs_spread(), || {
            "`es_manager.train.group_size` is 1, but groups are filtered by a standard deviation within the group: \
             use at least 2, or another `actor_rollout_ref.rollout.rollout_filter_metric`"
                .into()
        });
        problems.require(self.trainer.critic_warmup == 0 || estimator.uses_critic(), || {
            format!(
                "`trainer.critic_warmup` is {} but `algorithm.adv_estimator` {estimator} has no critic: set it to 0",
                self.trainer.critic_warmup
            )
        });
        let rollout = &self.actor_rollout_ref.rollout;
        problems.require(
            rollout.rollout_filter_strategy != FilterStrategy::TopKAbs
                || rollout.rollout_filter_value <= self.es_manager.train.env_groups as f64,
            || {
                format!(
                    "`actor_rollout_ref.rollout.rollout_filter_value` keeps {} groups of {}",
                    rollout.rollout_filter_value, self.es_manager.train.env_groups
                )
            },
        );
        problems.require(rollout.rollout_filter_replace_budget == 0 || group_size > 1, || {
            "`actor_rollout_ref.rollout.rollout_filter_replace_budget` replaces groups whose returns are all equal, but \
             `es_manager.train.group_size` is 1: set it to 0"
                .into()
        });
        let largest = self.es_manager.train.env_groups.saturating_mul(64);
        problems.at_most(
            "actor_rollout_ref.rollout.rollout_filter_replace_budget",
            rollout.rollout_filter_replace_budget,
            largest,
        );
        problems.require(self.enable_response_mask || !self.compat.train_template_tokens, || {
            "`enable_response_mask` false trains every token from the first response on, so that \
             `compat.train_template_tokens` has no effect: set one of them"
                .into()
        });
        problems.require(
            self.enable_response_mask || self.agent_proxy.context_window_mode == ContextWindowMode::Full,
            || {
                format!(
                    "`enable_response_mask` false trains what follows the first response of a sample, but with \
                 `agent_proxy.context_window_mode` {} a sample ends with its only response: set it to true",
                    self.agent_proxy.context_window_mode
                )
            },
        );
        self.check_credit(problems);
    }

    /// Estimators, losses and normalisation that do not go together.
    fn check_credit(&self, problems: &mut Problems) {
        let estimator = self.algorithm.adv_estimator;
        let actor = &self.actor_rollout_ref.actor;
        let proxy = &self.agent_proxy;
        problems.require(!estimator.credits_turns() || proxy.max_turn > 1, || {
            format!(
                "`algorithm.adv_estimator` {estimator} tells the turns of an episode apart, but `agent_proxy.max_turn` \
                 is 1: use grpo"
            )
        });
        problems.require(!self.algorithm.bi_level_gae || proxy.max_turn > 1, || {
            "`algorithm.bi_level_gae` estimates over turns first, but `agent_proxy.max_turn` is 1: set it to false"
                .into()
        });
        problems.require(!proxy.use_turn_scores || estimator.reads_token_rewards(), || {
            format!(
                "`agent_proxy.use_turn_scores` puts rewards on tokens, but `algorithm.adv_estimator` {estimator} reads \
                 none: use gae, reinforce_plus_plus, remax or optimal_token_baseline, or gigpo or turn_level, which \
                 know the turns by themselves"
            )
        });
        let whole_sequence = actor.policy_loss.loss_mode == PolicyLossMode::GeoMean;
        let per_turn = estimator.credits_turns() || self.algorithm.bi_level_gae || proxy.use_turn_scores;
        problems.require(!(whole_sequence && per_turn), || {
            "`actor_rollout_ref.actor.policy_loss.loss_mode` geo_mean has one advantage for a whole sequence, which \
             would average away what the estimator says about single turns: choose another loss_mode (gspo keeps \
             advantages per token)"
                .into()
        });
        let dr_grpo = estimator == AdvEstimator::Grpo && !self.algorithm.norm_adv_by_std_in_grpo;
        problems.require(!(dr_grpo && actor.loss_agg_mode == LossAggMode::SeqMeanTokenMean), || {
            "`algorithm.norm_adv_by_std_in_grpo` false is Dr.GRPO, which removes the bias towards long wrong answers, \
             but `actor_rollout_ref.actor.loss_agg_mode` seq-mean-token-mean brings it back: choose \
             seq-mean-token-sum-const, seq-mean-token-sum or token-mean"
                .into()
        });
        let rollout = &self.actor_rollout_ref.rollout;
        let normalization = &proxy.reward_normalization;
        let reads_rewards = matches!(
            rollout.rollout_filter_metric,
            FilterMetric::RewardVariance | FilterMetric::Reward | FilterMetric::RewardSum
        );
        let flattened = normalization.grouping == NormGrouping::State
            && match rollout.rollout_filter_metric {
                FilterMetric::RewardVariance => {
                    matches!(normalization.method, NormMethod::MeanStd | NormMethod::AsymClip)
                }
                _ => reads_rewards && normalization.method != NormMethod::Identity,
            };
        problems.require(!(self.compat.filter_normalised_returns && flattened), || {
            format!(
                "`compat.filter_normalised_returns` makes the filter read returns that \
                 `agent_proxy.reward_normalization` {} has made alike in every group, so that \
                 `rollout_filter_metric` {} cannot tell groups apart: set it to false",
                normalization.method, rollout.rollout_filter_metric
            )
        });
        problems.require(
            !(self.compat.filter_normalised_returns && normalization.method == NormMethod::Identity),
            || {
                "`compat.filter_normalised_returns` has no effect with `agent_proxy.reward_normalization.method` \
                 identity: set it to false"
                    .into()
            },
        );
        problems.require(self.algorithm.overlong_buffer.len <= rollout.response_length, || {
            format!(
                "`algorithm.overlong_buffer.len` ({}) must not exceed \
                     `actor_rollout_ref.rollout.response_length` ({})",
                self.algorithm.overlong_buffer.len, rollout.response_length
            )
        });
    }

    fn filter_needs_spread(&self) -> bool {
        let rollout = &self.actor_rollout_ref.rollout;
        let keeps_all = rollout.rollout_filter_strategy == FilterStrategy::TopP
            && rollout.rollout_filter_value >= 1.0
            && rollout.rollout_filter_include_zero;
        let spread = [FilterMetric::RewardVariance, FilterMetric::EntropyVariance];
        !keeps_all && spread.contains(&rollout.rollout_filter_metric)
    }
}
