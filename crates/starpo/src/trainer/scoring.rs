//! What policies other than the one that sampled, or other temperatures, say about the tokens of a batch.

use std::collections::{BTreeMap, BTreeSet};

use super::{TrainError, Trainer};
use crate::config::KlCtrlType;
use crate::episode::Episode;
use crate::instances::Group;
use crate::kl::KlController;
use crate::metrics::Metrics;
use crate::policy::{Policy, Sequence};
use crate::rollout::{RolloutOptions, collect};
use crate::tokens::{Rows, max_or_nan};
use crate::update::kl_penalty;

/// Per-token numbers of a batch before its update; empty where nothing reads them.
pub(super) struct Before {
    /// Log-probabilities of the policy that sampled.
    pub old_log_prob: Vec<f64>,
    /// Of the reference.
    pub ref_log_prob: Vec<f64>,
    /// Of the last healthy policy.
    pub anchor_log_prob: Vec<f64>,
    /// The critic's values.
    pub values: Vec<f64>,
}

impl Trainer {
    /// Scores a batch with everyone whose opinion the update reads.
    pub(super) fn before(&mut self, kept: &[&Episode], sequences: &[Sequence]) -> Result<Before, TrainError> {
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let wide = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<f64>>();
        let recorded = self.config.enable_response_mask && !self.config.compat.train_template_tokens;
        let old_log_prob = if !recorded {
            // Nobody sampled the template's or the environment's tokens, so nothing was recorded for them.
            wide(self.policy.score(sequences, temperature)?.log_prob)
        } else {
            kept.iter().flat_map(|e| e.log_probs.iter().map(|l| f64::from(*l))).collect()
        };
        let ref_log_prob = match &mut self.reference {
            Some(reference) => wide(reference.score(sequences, temperature)?.log_prob),
            None => Vec::new(),
        };
        let anchor_log_prob = match &mut self.snapshots {
            Some(snapshots) if self.progress.guard.effects.anchor_coef > 0.0 => {
                wide(snapshots.healthy.score(sequences, temperature)?.log_prob)
            }
            _ => Vec::new(),
        };
        let values = match &mut self.critic {
            Some(critic) => wide(critic.score(sequences, 1.0)?.value),
            None => Vec::new(),
        };
        Ok(Before { old_log_prob, ref_log_prob, anchor_log_prob, values })
    }

    /// The KL penalty of each token, by the present coefficient, which is then moved.
    pub(super) fn kl_in_reward(
        &mut self,
        rows: &Rows,
        log_prob: &[f64],
        reference: &[f64],
        metrics: &mut Metrics,
    ) -> Vec<f64> {
        let algorithm = &self.config.algorithm;
        if !algorithm.use_kl_in_reward || reference.is_empty() {
            return Vec::new();
        }
        let penalty = kl_penalty(algorithm.kl_penalty);
        let kl: Vec<f64> = log_prob.iter().zip(reference).map(|(l, r)| penalty.value(*l, *r)).collect();
        let mean = kl.iter().sum::<f64>() / kl.len().max(1) as f64;
        let coef = self.progress.kl_coef;
        metrics.set("actor/reward_kl_penalty", mean);
        metrics.set("actor/reward_kl_penalty_coeff", coef);
        if algorithm.kl_ctrl.kind == KlCtrlType::Adaptive {
            let (target, horizon) = (algorithm.kl_ctrl.target_kl, algorithm.kl_ctrl.horizon);
            let mut controller = KlController::Adaptive { coef, target, horizon };
            controller.update(mean, rows.len());
            self.progress.kl_coef = controller.coef();
        }
        kl.into_iter().map(|k| coef * k).collect()
    }

    /// ReMax: what a greedy episode on the instance of each kept episode brings.
    pub(super) fn greedy_returns(
        &mut self,
        kept: &[&Episode],
        groups: &[Group],
        number: u64,
    ) -> Result<Vec<f64>, TrainError> {
        let labels: BTreeSet<usize> = kept.iter().map(|e| e.group).collect();
        let instances: Vec<Group> = labels.iter().map(|label| groups[*label].clone()).collect();
        let options = RolloutOptions { group_size: 1, temperature: 0.0, ..self.rollout_options(false, number) };
        let episodes = collect(&mut self.policy, &self.dialogue, &self.context, &instances, &options)?;
        let returns: BTreeMap<usize, f64> =
            labels.into_iter().zip(episodes.iter().map(Episode::total_return)).collect();
        Ok(kept.iter().map(|e| returns.get(&e.group).copied().unwrap_or(0.0)).collect())
    }

    /// Σ π² of the distribution each sampled token was drawn from. Twice the log-probability at temperature T less the
    /// one at T/2 is log Z(T/2) − 2 log Z(T), which is its logarithm: logits are not needed.
    pub(super) fn sum_pi_squared(&mut self, sequences: &[Sequence], log_prob: &[f64]) -> Result<Vec<f64>, TrainError> {
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let half = self.policy.score(sequences, 0.5 * temperature)?.log_prob;
        Ok(log_prob.iter().zip(half).map(|(l, h)| (2.0 * l - f64::from(h)).exp().min(1.0)).collect())
    }

    /// Largest difference between what was recorded while sampling and what scoring the whole episodes gives; NaN where
    /// either is one.
    pub(super) fn mismatch(&mut self, episodes: &[Episode]) -> Result<f64, TrainError> {
        let played: Vec<&Episode> = episodes.iter().filter(|e| !e.log_probs.is_empty()).collect();
        let sequences: Vec<Sequence> = played.iter().flat_map(|e| e.to_sequences()).collect();
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let scores = self.policy.score(&sequences, temperature)?;
        let recorded = played.iter().flat_map(|e| &e.log_probs);
        let differences = recorded.zip(&scores.log_prob).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
        Ok(differences.fold(0.0, max_or_nan))
    }

    /// Mean token entropy of each episode under the present policy. Where an episode is several samples, the reference
    /// takes the mean of their means; here every token counts alike.
    pub(super) fn mean_entropies(&mut self, episodes: &[Episode]) -> Result<Vec<f64>, TrainError> {
        let sequences: Vec<Sequence> = episodes.iter().flat_map(Episode::to_sequences).collect();
        let rows = Rows::from_lengths(episodes.iter().map(Episode::trained_len));
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let scores = self.policy.score(&sequences, temperature)?;
        let entropy: Vec<f64> = scores.entropy.iter().map(|h| f64::from(*h)).collect();
        Ok(rows.ranges().map(|r| crate::tokens::mean(&entropy[r])).collect())
    }
}
