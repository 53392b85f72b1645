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
        /// Episode term plus a term among all visits of the group to a state (arXiv 2505.10978).
        Gigpo = "gigpo",
        /// Each turn's own reward and the return, both relative to the group (MT-GRPO, arXiv 2505.11821).
        TurnLevel = "turn_level" | "mt_grpo",
        /// The return of a greedy episode as baseline (arXiv 2310.10505).
        Remax = "remax",
        /// A baseline per token position, weighted by the score function's norm (Li et al. 2025).
        OptimalTokenBaseline = "optimal_token_baseline" | "otb",
    }
}

named_enum! {
    /// Over what GRPO and pass@k take the standard deviation that they divide by.
    pub enum StdScope {
        /// The group's own.
        Group = "group",
        /// That of all returns of the batch (LitePPO, arXiv 2508.08221).
        Batch = "batch",
    }
}

named_enum! {
    /// What GiGPO divides its two terms by.
    pub enum GigpoMode {
        /// 1.
        MeanNorm = "mean_norm",
        /// The standard deviation of what the mean was taken over.
        MeanStdNorm = "mean_std_norm",
    }
}

impl AdvEstimator {
    /// Whether the estimator reads values, so that a critic is trained.
    pub fn uses_critic(self) -> bool {
        self == Self::Gae
    }

    /// Whether the estimator compares an episode with the others of its group.
    pub fn uses_group_baseline(self) -> bool {
        !matches!(self, Self::Gae | Self::ReinforcePlusPlus | Self::Remax)
    }

    /// Whether the estimator reads a reward per token, so that it matters on which token a reward lies.
    pub fn reads_token_rewards(self) -> bool {
        matches!(self, Self::Gae | Self::ReinforcePlusPlus | Self::Remax | Self::OptimalTokenBaseline)
    }

    /// Whether the turns of an episode get advantages of their own.
    pub fn credits_turns(self) -> bool {
        matches!(self, Self::Gigpo | Self::TurnLevel)
    }

    /// Whether `norm_adv_by_std_in_grpo` means anything to it.
    pub fn divides_by_std(self) -> bool {
        matches!(self, Self::Grpo | Self::GrpoPassk | Self::TurnLevel)
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

/// GiGPO's own settings. Its discount per turn is `high_level_gamma`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gigpo {
    /// ω, the weight of the term among visits to a state. Default 1.
    pub step_advantage_w: f64,
    /// What both terms are divided by. Default mean_std_norm.
    pub mode: GigpoMode,
}

impl Default for Gigpo {
    fn default() -> Self {
        Self { step_advantage_w: 1.0, mode: GigpoMode::MeanStdNorm }
    }
}

/// The soft penalty on long responses (DAPO, arXiv 2503.14476). A turn is a response here: each is measured by its
/// sampled tokens against `rollout.response_length`, and the penalties of an episode's turns add up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OverlongBuffer {
    /// Penalise. Default false.
    pub enable: bool,
    /// The last tokens before the limit, over which the penalty grows. Default 0, so it has to be given.
    pub len: usize,
    /// Penalty at the limit. Default 0, so it has to be given.
    pub penalty_factor: f64,
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
    /// Discount per turn, read by bi-level GAE and by GiGPO. Default 0.95.
    pub high_level_gamma: f64,
    /// Estimate first over turns, then within each (VAGEN, arXiv 2510.16907). Needs `gae`. Default false.
    pub bi_level_gae: bool,
    /// GRPO, pass@k and turn_level: divide by the group's standard deviation; false is Dr.GRPO. Default true.
    pub norm_adv_by_std_in_grpo: bool,
    /// GRPO: whose standard deviation that is. Default group.
    pub adv_std_scope: StdScope,
    /// GRPO: divide advantages by the length of the episode over the mean length. Default false.
    pub grpo_advantage_length_weight: bool,
    /// GiGPO.
    pub gigpo: Gigpo,
    /// turn_level: weight of a turn's own term beside that of the return. Default 1.
    pub turn_advantage_w: f64,
    /// The penalty on long responses.
    pub overlong_buffer: OverlongBuffer,
    /// Subtract a KL term from the reward of every sampled token. Default false.
    pub use_kl_in_reward: bool,
    /// Estimator of that KL term. Default k1.
    pub kl_penalty: KlType,
    /// Coefficient of that KL term.
    pub kl_ctrl: KlCtrl,
    /// Set every advantage to zero, so that only the regularisers train (an ablation of RAGEN-2). Default false.
    pub zero_task_advantage: bool,
    /// Scale advantages by the standard deviation of the group's returns over the largest one of the batch. Needs an
    /// estimator with a group baseline. Default false.
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
            adv_std_scope: StdScope::Group,
            grpo_advantage_length_weight: false,
            gigpo: Gigpo::default(),
            turn_advantage_w: 1.0,
            overlong_buffer: OverlongBuffer::default(),
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
        problems.require(!self.soft_advantage_reweight || estimator.uses_group_baseline(), || {
            format!(
                "`algorithm.soft_advantage_reweight` weighs groups by their spread and needs an estimator that \
                 compares within groups, such as grpo, found {estimator}"
            )
        });
        problems.require(self.norm_adv_by_std_in_grpo || estimator.divides_by_std(), || {
            format!(
                "`algorithm.norm_adv_by_std_in_grpo` is false, but `algorithm.adv_estimator` {estimator} divides by no \
                 standard deviation of a group that could be left out: set it to true, or choose grpo"
            )
        });
        problems.require(self.adv_std_scope == StdScope::Group || estimator == AdvEstimator::Grpo, || {
            format!("`algorithm.adv_std_scope` {} needs `algorithm.adv_estimator` grpo", self.adv_std_scope)
        });
        problems.require(self.adv_std_scope == StdScope::Group || self.norm_adv_by_std_in_grpo, || {
            "`algorithm.adv_std_scope` batch says what to divide by, but `algorithm.norm_adv_by_std_in_grpo` is false: \
             nothing is divided"
                .into()
        });
        problems.require(!self.grpo_advantage_length_weight || estimator == AdvEstimator::Grpo, || {
            format!("`algorithm.grpo_advantage_length_weight` needs `algorithm.adv_estimator` grpo, found {estimator}")
        });
        let reads_gamma = matches!(estimator, AdvEstimator::Gae | AdvEstimator::ReinforcePlusPlus);
        problems.require(self.gamma == 1.0 || reads_gamma, || {
            format!(
                "`algorithm.gamma` is {} but `algorithm.adv_estimator` {estimator} does not discount by token: set it \
                 to 1{}",
                self.gamma,
                if estimator == AdvEstimator::Gigpo { "; its discount is `algorithm.high_level_gamma`" } else { "" }
            )
        });
        problems.require(self.lam == 1.0 || estimator == AdvEstimator::Gae, || {
            format!("`algorithm.lam` is {} but only gae reads it, found {estimator}: set it to 1", self.lam)
        });
        problems.non_negative("algorithm.gigpo.step_advantage_w", self.gigpo.step_advantage_w);
        problems.non_negative("algorithm.turn_advantage_w", self.turn_advantage_w);
        let overlong = &self.overlong_buffer;
        problems.non_negative("algorithm.overlong_buffer.penalty_factor", overlong.penalty_factor);
        problems.require(!overlong.enable || (overlong.len > 0 && overlong.penalty_factor > 0.0), || {
            format!(
                "`algorithm.overlong_buffer.enable` is true, but `len` is {} and `penalty_factor` {}: both must be \
                 greater than 0",
                overlong.len, overlong.penalty_factor
            )
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
