//! `algorithm`: from rewards to advantages.

use serde::{Deserialize, Serialize};

use super::actor::KlType;
use super::names::named_enum;
use super::problems::Problems;

named_enum! {
    /// How advantages are estimated.
    pub enum AdvEstimator {
        /// PPO with a critic (arXiv 1506.02438).
        Gae = "gae",
        /// Group-relative (arXiv 2402.03300); Dr.GRPO with `norm_adv_by_std_in_grpo` false.
        Grpo = "grpo",
        /// Only the best of a group is credited (arXiv 2503.19595).
        GrpoPassk = "grpo_passk",
        /// Leave one out (arXiv 2402.14740).
        Rloo = "rloo",
        /// Reward to go, whitened over the batch (arXiv 2501.03262).
        ReinforcePlusPlus = "reinforce_plus_plus",
        /// Group mean as baseline, whitened over the batch (arXiv 2501.03262).
        ReinforcePlusPlusBaseline = "reinforce_plus_plus_baseline",
        /// Length-weighted group baseline (arXiv 2505.23585).
        Opo = "opo",
        /// Rescaled group mean baseline (arXiv 2504.02546).
        Gpg = "gpg",
    }
}

impl AdvEstimator {
    /// Whether the estimator reads values, so that a critic is trained.
    pub fn uses_critic(self) -> bool {
        self == Self::Gae
    }

    /// Whether the estimator compares an episode with the others of its group.
    pub fn uses_group_baseline(self) -> bool {
        !matches!(self, Self::Gae | Self::ReinforcePlusPlus)
    }
}

named_enum! {
    /// How the coefficient of the KL term in the reward moves.
    pub enum KlCtrlType {
        /// Stays as it is.
        Fixed = "fixed",
        /// Follows a target (arXiv 1909.08593).
        Adaptive = "adaptive",
    }
}

/// Coefficient of the KL term in the reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KlCtrl {
    /// Fixed or adaptive. Default fixed.
    #[serde(rename = "type")]
    pub kind: KlCtrlType,
    /// (Initial) coefficient. Default 0.
    pub kl_coef: f64,
    /// Adaptive: episodes over which a deviation of one target is corrected. Default 10000.
    pub horizon: f64,
    /// Adaptive: the KL aimed at, nats per token. Default 0.1.
    pub target_kl: f64,
}

impl Default for KlCtrl {
    fn default() -> Self {
        Self { kind: KlCtrlType::Fixed, kl_coef: 0.0, horizon: 10000.0, target_kl: 0.1 }
    }
}

/// From rewards to advantages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Algorithm {
    /// Estimator. Default grpo.
    pub adv_estimator: AdvEstimator,
    /// Discount per sampled token. Default 1.
    pub gamma: f64,
    /// GAE λ per sampled token. Default 1.
    pub lam: f64,
    /// Discount per turn, read by bi-level GAE. Default 0.95.
    pub high_level_gamma: f64,
    /// Estimate first over turns, then within each (VAGEN, arXiv 2510.16907). Needs `gae`. Default false.
    pub bi_level_gae: bool,
    /// GRPO and pass@k: divide by the group's standard deviation; false is Dr.GRPO. Default true.
    pub norm_adv_by_std_in_grpo: bool,
    /// Subtract a KL term from the reward of every sampled token. Default false.
    pub use_kl_in_reward: bool,
    /// Estimator of that KL term. Default k1.
    pub kl_penalty: KlType,
    /// Coefficient of that KL term.
    pub kl_ctrl: KlCtrl,
    /// Set every advantage to zero, so that only the regularisers train (an ablation of RAGEN-2). Default false.
    pub zero_task_advantage: bool,
    /// Scale advantages by the group's standard deviation over the largest one. Needs `grpo`. Default false.
    pub soft_advantage_reweight: bool,
    /// Negative advantages are multiplied by this: below 1, what went well weighs more than what went wrong (W-REINFORCE,
    /// arXiv 2506.01347, with the weight on the other side). Default 1.
    pub negative_advantage_scale: f64,
}

impl Default for Algorithm {
    fn default() -> Self {
        Self {
            adv_estimator: AdvEstimator::Grpo,
            gamma: 1.0,
            lam: 1.0,
            high_level_gamma: 0.95,
            bi_level_gae: false,
            norm_adv_by_std_in_grpo: true,
            use_kl_in_reward: false,
            kl_penalty: KlType::K1,
            kl_ctrl: KlCtrl::default(),
            zero_task_advantage: false,
            soft_advantage_reweight: false,
            negative_advantage_scale: 1.0,
        }
    }
}

impl Algorithm {
    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.unit_interval("algorithm.gamma", self.gamma);
        problems.unit_interval("algorithm.lam", self.lam);
        problems.unit_interval("algorithm.high_level_gamma", self.high_level_gamma);
        let estimator = self.adv_estimator;
        problems.require(!self.bi_level_gae || estimator == AdvEstimator::Gae, || {
            format!("`algorithm.bi_level_gae` needs `algorithm.adv_estimator` gae, found {estimator}")
        });
        problems.require(!self.soft_advantage_reweight || estimator == AdvEstimator::Grpo, || {
            format!("`algorithm.soft_advantage_reweight` needs `algorithm.adv_estimator` grpo, found {estimator}")
        });
        problems.non_negative("algorithm.negative_advantage_scale", self.negative_advantage_scale);
        problems.non_negative("algorithm.kl_ctrl.kl_coef", self.kl_ctrl.kl_coef);
        problems.positive("algorithm.kl_ctrl.horizon", self.kl_ctrl.horizon);
        problems.positive("algorithm.kl_ctrl.target_kl", self.kl_ctrl.target_kl);
        problems.require(self.use_kl_in_reward || self.kl_ctrl.kl_coef == 0.0, || {
            format!(
                "`algorithm.kl_ctrl.kl_coef` is {} but `algorithm.use_kl_in_reward` is false, so it would have no \
                 effect: set the flag or the coefficient to 0",
                self.kl_ctrl.kl_coef
            )
        });
    }
}
