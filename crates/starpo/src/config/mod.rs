//! The configuration of a run: what can be set, what it means, and whether it makes sense.
//!
//! Keys keep RAGEN's and veRL's names where the meaning is the same. Each section has a file here, with the unit and
//! the default of every key; [`load`] reads files and overrides. What is not here: command-line flags.

pub mod actor;
pub mod agent_proxy;
pub mod algorithm;
pub mod collapse_detection;
mod combinations;
pub mod compat;
pub mod critic;
pub mod es_manager;
pub mod guard;
pub mod load;
mod moved;
mod names;
pub mod nearest;
pub mod optim;
mod overlay;
mod problems;
pub mod reasoning_reward;
pub mod rollout;
pub mod trainer;
pub mod warm_start;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use actor::{
    ActivationCheckpointing, Actor, AdaptiveEntropyConfig, BandPenaltyKind, EntropyBand, FilterLossScaling, KlType,
    LossAggMode, PolicyLoss, PolicyLossMode,
};
pub use agent_proxy::{
    AgentProxy, ContextOverflow, ContextWindowMode, NormGrouping, NormMethod, PromptStyle, RewardNormalization,
};
pub use algorithm::{AdvEstimator, Algorithm, Gigpo, GigpoMode, KlCtrl, KlCtrlType, OverlongBuffer, StdScope};
pub use collapse_detection::CollapseDetection;
pub use compat::Compat;
pub use critic::Critic;
pub use es_manager::{CustomEnv, EnvConfigs, EsManager, EsSplit};
pub use guard::{Guard, GuardMode, GuardSignals, Rung};
pub use load::ConfigError;
pub use optim::{LrScheduler, Optim};
pub use reasoning_reward::ReasoningReward;
pub use rollout::{FilterMetric, FilterStrategy, FilterType, Rollout, TopPProbMode, ValKwargs};
pub use trainer::{GradientBuckets, Logger, ResumeMode, Trainer, Verify, is_due};
pub use warm_start::{Demonstrator, WarmStart, WarmStartStyle};

use problems::Problems;

/// Actor and rollout: everything about the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActorRolloutRef {
    /// The policy update.
    pub actor: Actor,
    /// Generation and the selection of groups.
    pub rollout: Rollout,
}

/// Everything that can be set about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Master seed: initial weights, sampling, warm start. Environments have their own, see `es_manager`. Default 0.
    pub seed: u64,
    /// A folder in Hugging Face layout, a GGUF file, or `tiny`: a small model with random weights that needs no
    /// download. Default tiny.
    pub model_path: String,
    /// Train only what the policy sampled (true) or every token from the first response on, the environment's among
    /// them (false). Default true.
    pub enable_response_mask: bool,
    /// Quirks of the reference implementation.
    pub compat: Compat,
    /// Everything about the policy.
    pub actor_rollout_ref: ActorRolloutRef,
    /// The value head, with the estimator gae.
    pub critic: Critic,
    /// From rewards to advantages.
    pub algorithm: Algorithm,
    /// Terms of the reward for how an agent reasons.
    pub reasoning_reward: ReasoningReward,
    /// How long, how often, where to.
    pub trainer: Trainer,
    /// Whether the reasoning depends on the prompt.
    pub collapse_detection: CollapseDetection,
    /// Watching for collapse.
    pub guard: Guard,
    /// The turn loop.
    pub agent_proxy: AgentProxy,
    /// Which environments are played.
    pub es_manager: EsManager,
    /// Templates of environments by tag, laid over the built-in ones. Default none.
    pub custom_envs: BTreeMap<String, CustomEnv>,
    /// Supervised learning before reinforcement learning.
    pub warm_start: WarmStart,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            model_path: "tiny".into(),
            enable_response_mask: true,
            compat: Compat::default(),
            actor_rollout_ref: ActorRolloutRef::default(),
            critic: Critic::default(),
            algorithm: Algorithm::default(),
            reasoning_reward: ReasoningReward::default(),
            trainer: Trainer::default(),
            collapse_detection: CollapseDetection::default(),
            guard: Guard::default(),
            agent_proxy: AgentProxy::default(),
            es_manager: EsManager::default(),
            custom_envs: BTreeMap::new(),
            warm_start: WarmStart::default(),
        }
    }
}

impl Config {
    /// Checks that the configuration makes sense; names and types are checked while loading.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with everything that is wrong, in one paragraph.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.require(!self.model_path.is_empty(), || "`model_path` must not be empty".into());
        self.actor_rollout_ref.actor.check("actor_rollout_ref.actor", &mut problems);
        self.actor_rollout_ref.rollout.check("actor_rollout_ref.rollout", &mut problems);
        self.critic.check(&mut problems);
        self.algorithm.check(&mut problems);
        self.reasoning_reward.check(self.agent_proxy.enable_think, &mut problems);
        self.trainer.check(&mut problems);
        self.collapse_detection.check(&mut problems);
        self.guard.check(&mut problems);
        self.agent_proxy.check(&mut problems);
        self.es_manager.check(&mut problems);
        es_manager::check_custom_envs(&self.custom_envs, &mut problems);
        self.warm_start.check(&mut problems);
        self.check_combinations(&mut problems);
        if problems.0.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems: problems.0 }) }
    }

    /// What is legal but probably not wanted, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let actor = &self.actor_rollout_ref.actor;
        let rollout = &self.actor_rollout_ref.rollout;
        if actor.use_kl_loss && actor.kl_loss_type == KlType::K1 {
            warnings.push(
                "`actor_rollout_ref.actor.kl_loss_type` k1 has an expected gradient of zero as a loss: it adds noise \
                 and no pull towards the reference. k3 pulls."
                    .into(),
            );
        }
        if rollout.top_p < 1.0 || rollout.top_k != -1 {
            warnings.push(
                "`actor_rollout_ref.rollout.top_p` or `top_k` cuts the distribution that training episodes are \
                 sampled from, while log-probabilities for training are of the uncut one."
                    .into(),
            );
        }
        if !self.enable_response_mask {
            warnings.push(
                "`enable_response_mask` is off: the policy is trained to write the environment's texts as well.".into(),
            );
        }
        if self.algorithm.zero_task_advantage {
            warnings.push("`algorithm.zero_task_advantage` is on: rewards teach nothing in this run.".into());
        }
        warnings
    }

    /// Whether the initial policy has to be kept as a reference.
    pub fn needs_reference(&self) -> bool {
        self.actor_rollout_ref.actor.use_ref
            || self.actor_rollout_ref.actor.use_kl_loss
            || self.algorithm.use_kl_in_reward
    }
}

#[cfg(test)]
mod tests;
