//! `actor_rollout_ref.actor`: the policy update.

use serde::{Deserialize, Serialize};

use super::names::named_enum;
use super::optim::{LrScheduler, Optim};
use super::problems::Problems;

named_enum! {
    /// The surrogate that is minimised.
    pub enum PolicyLossMode {
        /// PPO with an asymmetric range (DAPO) and dual clip.
        Vanilla = "vanilla",
        /// GSPO: one ratio per sequence (arXiv 2507.18071).
        Gspo = "gspo",
        /// SAPO: a soft gate instead of a clip (arXiv 2511.20347).
        Sapo = "sapo",
        /// CISPO: the clipped ratio is a constant weight (arXiv 2506.13585).
        Cispo = "cispo",
        /// GMPO: geometric mean of clipped token ratios (arXiv 2507.20673).
        GeoMean = "geo_mean" | "gmpo",
        /// GPG: −A·log π, no ratio (arXiv 2504.02546).
        Gpg = "gpg",
        /// Clip-Cov: drops a random set of high-covariance tokens (arXiv 2505.22617).
        ClipCov = "clip_cov",
        /// KL-Cov: penalises the highest-covariance tokens (arXiv 2505.22617).
        KlCov = "kl_cov",
    }
}

named_enum! {
    /// How a number per token becomes the loss of a mini-batch.
    pub enum LossAggMode {
        /// Mean over all sampled tokens.
        TokenMean = "token-mean",
        /// Mean over sequences of the sum over tokens.
        SeqMeanTokenSum = "seq-mean-token-sum",
        /// Mean over sequences of the mean over tokens.
        SeqMeanTokenMean = "seq-mean-token-mean",
        /// Sum over all tokens divided by a fixed length, as veRL computes it: grows with the number of sequences. The
        /// fixed length is `max_turn` × `response_length`, with a context window `response_length`.
        SeqMeanTokenSumNorm = "seq-mean-token-sum-norm",
        /// The same divided by the number of sequences as well, as Dr.GRPO (arXiv 2503.20783) defines it.
        SeqMeanTokenSumConst = "seq-mean-token-sum-const",
    }
}

named_enum! {
    /// Estimator of KL(π‖π_ref) from log-probabilities alone (Schulman 2020). A trailing `+` takes the value of the
    /// estimator and the gradient of k2.
    pub enum KlType {
        /// log π − log π_ref. As a loss its expected gradient is zero.
        K1 = "k1" | "kl",
        /// |log π − log π_ref|.
        Abs = "abs",
        /// ½ (log π − log π_ref)².
        K2 = "k2" | "mse",
        /// e^y − y − 1 with y = log π_ref − log π.
        K3 = "k3" | "low_var_kl",
        /// Value of k1, gradient of k2.
        K1Plus = "k1+" | "kl+",
        /// Value of abs, gradient of k2.
        AbsPlus = "abs+",
        /// Value of k3, gradient of k2.
        K3Plus = "k3+" | "low_var_kl+",
    }
}

named_enum! {
    /// Whether filtering away groups shrinks the policy gradient.
    pub enum FilterLossScaling {
        /// Not at all.
        None = "none",
        /// By the kept share of the groups.
        Linear = "linear",
        /// By the root of the kept share.
        Sqrt = "sqrt",
    }
}

named_enum! {
    /// Whether activations are recomputed in the backward pass to save memory.
    pub enum ActivationCheckpointing {
        /// When the memory limit asks for it.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

named_enum! {
    /// What leaving the entropy band costs.
    pub enum BandPenaltyKind {
        /// The distance to the band. It has a gradient; the published code has not.
        Hinge = "hinge",
        /// A constant, as published: it moves the reported loss and nothing else.
        Constant = "constant",
    }
}

/// An entropy bonus whose weight follows a target (Skywork-OR1, arXiv 2505.22312): on while the entropy is at most the
/// target, growing by `delta` an iteration, and shrinking while it is above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveEntropyConfig {
    /// Use it, in place of `entropy_coeff`. Default false.
    pub enable: bool,
    /// Entropy aimed at, nats per token. Default 0.2.
    pub target: f64,
    /// Smallest weight, and the first. Default 0.
    pub min: f64,
    /// Largest weight. Default 0.01.
    pub max: f64,
    /// Step of the weight per iteration. Default 0.0005.
    pub delta: f64,
}

impl Default for AdaptiveEntropyConfig {
    fn default() -> Self {
        Self { enable: false, target: 0.2, min: 0.0, max: 0.01, delta: 0.0005 }
    }
}

/// A penalty on tokens whose entropy leaves a band around the running mean of their turn (EPO, arXiv 2509.22576).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EntropyBand {
    /// Use it. Default false.
    pub enable: bool,
    /// Weight of the penalty. Default 0.01.
    pub coeff: f64,
    /// Lower edge over the running mean. Default 0.8.
    pub kappa_l: f64,
    /// Upper edge over the running mean. Default 1.2.
    pub kappa_r: f64,
    /// What leaving costs. Default hinge.
    pub penalty: BandPenaltyKind,
    /// The constant of `penalty: constant`. Default 0.1.
    pub cost: f64,
}

impl Default for EntropyBand {
    fn default() -> Self {
        Self { enable: false, coeff: 0.01, kappa_l: 0.8, kappa_r: 1.2, penalty: BandPenaltyKind::Hinge, cost: 0.1 }
    }
}

/// The surrogate and the parameters that only some surrogates read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyLoss {
    /// Which surrogate. Default vanilla.
    pub loss_mode: PolicyLossMode,
    /// SAPO: temperature for positive advantages. Default 1.0.
    pub tau_pos: f64,
    /// SAPO: temperature for negative advantages. Default 1.05.
    pub tau_neg: f64,
    /// Clip-Cov: share of the tokens that is dropped. Default 0.0002.
    pub clip_cov_ratio: f64,
    /// Clip-Cov: lower end of the covariances to drop from. Default 1.0.
    pub clip_cov_lb: f64,
    /// Clip-Cov: upper end of the covariances to drop from. Default 5.0.
    pub clip_cov_ub: f64,
    /// KL-Cov: share of the tokens that is penalised. Default 0.0002.
    pub kl_cov_ratio: f64,
    /// KL-Cov: weight of the penalty. Default 1.0.
    pub ppo_kl_coef: f64,
}

impl Default for PolicyLoss {
    fn default() -> Self {
        Self {
            loss_mode: PolicyLossMode::Vanilla,
            tau_pos: 1.0,
            tau_neg: 1.05,
            clip_cov_ratio: 0.0002,
            clip_cov_lb: 1.0,
            clip_cov_ub: 5.0,
            kl_cov_ratio: 0.0002,
            ppo_kl_coef: 1.0,
        }
    }
}

/// The policy update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Actor {
    /// Keep the initial policy as a reference and log its log-probabilities even when no KL term reads them.
    /// Default false (RAGEN: true; it costs one scoring pass an iteration).
    pub use_ref: bool,
    /// Weight of the entropy bonus. Default 0.001, as in RAGEN.
    pub entropy_coeff: f64,
    /// A weight that follows a target entropy instead; where it is used, `entropy_coeff` is not read.
    pub adaptive_entropy: AdaptiveEntropyConfig,
    /// A penalty on leaving a band of entropies.
    pub entropy_band: EntropyBand,
    /// Add a KL term to the loss. Default false.
    pub use_kl_loss: bool,
    /// Weight of the KL term. Default 0.
    pub kl_loss_coef: f64,
    /// Estimator of the KL term. Default k3 (RAGEN: kl, whose gradient as a loss is noise around zero).
    pub kl_loss_type: KlType,
    /// ε below: ratios are clipped at 1 − this. Default 0.2.
    pub clip_ratio_low: f64,
    /// ε above: ratios are clipped at 1 + this. Default 0.28.
    pub clip_ratio_high: f64,
    /// Dual clip: with a negative advantage the loss is at most −A times this. Default 3.0.
    pub clip_ratio_c: f64,
    /// From tokens to the loss of a mini-batch. Default seq-mean-token-mean: with the token mean, long failed episodes
    /// outweigh short solved ones and the policy is mostly pushed away from what it does.
    pub loss_agg_mode: LossAggMode,
    /// The surrogate.
    pub policy_loss: PolicyLoss,
    /// Passes over the batch of an iteration. Default 1.
    pub ppo_epochs: usize,
    /// Training samples per optimiser step. Default 32.
    pub ppo_mini_batch_size: usize,
    /// Global gradient norm is clipped to this; 0 leaves it alone. Default 1.0.
    pub grad_clip: f64,
    /// Whether filtering shrinks the policy gradient. Default none.
    pub filter_loss_scaling: FilterLossScaling,
    /// Optimiser.
    pub optim: Optim,
    /// Tokens per forward and backward pass: for memory only, it never changes a result. Default 8192.
    pub ppo_max_token_len_per_gpu: usize,
    /// Recompute activations in the backward pass. Default auto.
    pub activation_checkpointing: ActivationCheckpointing,
    /// Memory for weights, gradients, moments, activations and the key-value cache of all models together, GiB; 0: no
    /// limit of one's own. Never changes a result. Default 0.
    pub memory_limit_gib: f64,
}

impl Default for Actor {
    fn default() -> Self {
        Self {
            use_ref: false,
            entropy_coeff: 0.001,
            adaptive_entropy: AdaptiveEntropyConfig::default(),
            entropy_band: EntropyBand::default(),
            use_kl_loss: false,
            kl_loss_coef: 0.0,
            kl_loss_type: KlType::K3,
            clip_ratio_low: 0.2,
            clip_ratio_high: 0.28,
            clip_ratio_c: 3.0,
            loss_agg_mode: LossAggMode::SeqMeanTokenMean,
            policy_loss: PolicyLoss::default(),
            ppo_epochs: 1,
            ppo_mini_batch_size: 32,
            grad_clip: 1.0,
            filter_loss_scaling: FilterLossScaling::None,
            optim: Optim {
                lr: 1e-4,
                betas: [0.9, 0.98],
                weight_decay: 0.0,
                lr_warmup_steps: 20,
                lr_scheduler: LrScheduler::Linear,
                ..Optim::default()
            },
            ppo_max_token_len_per_gpu: 8192,
            activation_checkpointing: ActivationCheckpointing::Auto,
            memory_limit_gib: 0.0,
        }
    }
}

impl Actor {
    pub(crate) fn check(&self, section: &str, problems: &mut Problems) {
        let key = |name: &str| format!("{section}.{name}");
        problems.finite(&key("entropy_coeff"), self.entropy_coeff);
        self.check_entropy(section, problems);
        problems.non_negative(&key("kl_loss_coef"), self.kl_loss_coef);
        problems.require(self.use_kl_loss || self.kl_loss_coef == 0.0, || {
            format!(
                "`{}` is {} but `{}` is false, so it would have no effect: set the flag or the coefficient to 0",
                key("kl_loss_coef"),
                self.kl_loss_coef,
                key("use_kl_loss")
            )
        });
        let low_ok = self.clip_ratio_low > 0.0 && self.clip_ratio_low < 1.0;
        problems.require(low_ok, || {
            format!(
                "`{}` must lie between 0 and 1 (both excluded), found {}",
                key("clip_ratio_low"),
                self.clip_ratio_low
            )
        });
        problems.positive(&key("clip_ratio_high"), self.clip_ratio_high);
        problems.require(self.clip_ratio_c <= 1e30 && self.clip_ratio_c > 1.0, || {
            format!("`{}` must be greater than 1 and at most 1e30, found {}", key("clip_ratio_c"), self.clip_ratio_c)
        });
        let loss = &self.policy_loss;
        problems.positive(&key("policy_loss.tau_pos"), loss.tau_pos);
        problems.positive(&key("policy_loss.tau_neg"), loss.tau_neg);
        problems.unit_interval(&key("policy_loss.clip_cov_ratio"), loss.clip_cov_ratio);
        problems.unit_interval(&key("policy_loss.kl_cov_ratio"), loss.kl_cov_ratio);
        problems.non_negative(&key("policy_loss.ppo_kl_coef"), loss.ppo_kl_coef);
        problems.require(loss.clip_cov_lb < loss.clip_cov_ub, || {
            format!(
                "`{}` ({}) must be less than `clip_cov_ub` ({})",
                key("policy_loss.clip_cov_lb"),
                loss.clip_cov_lb,
                loss.clip_cov_ub
            )
        });
        problems.at_least_one(&key("ppo_epochs"), self.ppo_epochs);
        problems.at_least_one(&key("ppo_mini_batch_size"), self.ppo_mini_batch_size);
        problems.non_negative(&key("grad_clip"), self.grad_clip);
        problems.at_least_one(&key("ppo_max_token_len_per_gpu"), self.ppo_max_token_len_per_gpu);
        problems.non_negative(&key("memory_limit_gib"), self.memory_limit_gib);
        self.optim.check(&key("optim"), problems);
    }

    fn check_entropy(&self, section: &str, problems: &mut Problems) {
        let key = |name: &str| format!("{section}.{name}");
        let adaptive = &self.adaptive_entropy;
        problems.non_negative(&key("adaptive_entropy.target"), adaptive.target);
        problems.non_negative(&key("adaptive_entropy.min"), adaptive.min);
        problems.positive(&key("adaptive_entropy.delta"), adaptive.delta);
        problems.require(adaptive.max <= 1e30 && adaptive.max >= adaptive.min, || {
            format!(
                "`{}` must be at least `min` ({}) and at most 1e30, found {}",
                key("adaptive_entropy.max"),
                adaptive.min,
                adaptive.max
            )
        });
        let band = &self.entropy_band;
        problems.non_negative(&key("entropy_band.coeff"), band.coeff);
        problems.non_negative(&key("entropy_band.cost"), band.cost);
        let around = (0.0..=1.0).contains(&band.kappa_l) && band.kappa_r.is_finite() && band.kappa_r >= 1.0;
        problems.require(around, || {
            format!(
                "`{}` must lie between 0 and 1 and `kappa_r` be at least 1, so that the mean is in the band, found {} \
                 and {}",
                key("entropy_band.kappa_l"),
                band.kappa_l,
                band.kappa_r
            )
        });
    }
}
