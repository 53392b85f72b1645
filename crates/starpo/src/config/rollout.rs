//! `actor_rollout_ref.rollout`: generation, and the selection of groups to learn from.

use serde::{Deserialize, Serialize};

use super::names::named_enum;
use super::problems::Problems;

named_enum! {
    /// How many groups are kept, given their scores.
    pub enum FilterStrategy {
        /// The best groups that together hold the share `rollout_filter_value` of the score.
        TopP = "top_p",
        /// The share `rollout_filter_value` of all groups.
        TopK = "top_k",
        /// `rollout_filter_value` groups.
        TopKAbs = "top_k_abs",
        /// All groups with at least `rollout_filter_value` times the best score.
        MinP = "min_p",
    }
}

named_enum! {
    /// Which end of the scores is kept.
    pub enum FilterType {
        /// Largest scores.
        Largest = "largest" | "std",
        /// Smallest scores.
        Smallest = "smallest" | "std_rev",
    }
}

named_enum! {
    /// What a group is scored by. Returns are raw: before any normalisation.
    pub enum FilterMetric {
        /// Sample standard deviation of the returns (RAGEN-2 calls it a variance).
        RewardVariance = "reward_variance" | "reward_std",
        /// Mean return.
        Reward = "reward",
        /// Sum of the returns.
        RewardSum = "reward_sum",
        /// Mean over members of the mean token entropy.
        Entropy = "entropy",
        /// Standard deviation over members of the mean token entropy.
        EntropyVariance = "entropy_variance" | "entropy_std",
        /// Mean number of sampled tokens.
        Length = "length",
    }
}

named_enum! {
    /// What top_p accumulates.
    pub enum TopPProbMode {
        /// The scores themselves, as shares of their sum.
        Linear = "linear",
        /// The softmax of the scores.
        Softmax = "softmax",
    }
}

/// Sampling during validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValKwargs {
    /// Sample (true) or decode greedily (false). Default true.
    pub do_sample: bool,
    /// Softmax temperature. Default 0.5.
    pub temperature: f64,
    /// Keep the most likely tokens up to this cumulative probability; 1 keeps all. Default 1.
    pub top_p: f64,
    /// Keep this many most likely tokens; −1 keeps all. Default −1.
    pub top_k: i64,
}

impl Default for ValKwargs {
    fn default() -> Self {
        Self { do_sample: true, temperature: 0.5, top_p: 1.0, top_k: -1 }
    }
}

/// Generation, and the selection of groups to learn from (StarPO-S, RAGEN-2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rollout {
    /// Most tokens the policy may sample in one turn. Default 96.
    pub response_length: usize,
    /// Most tokens of a context, prompts and responses together: with the full history, of a whole episode. What becomes
    /// of an episode that outgrows it, `agent_proxy.context_overflow` says. Default 1024.
    pub max_model_len: usize,
    /// Softmax temperature during training. Default 1.
    pub temperature: f64,
    /// Nucleus sampling during training; anything but 1 samples from another distribution than the one that is
    /// trained. Default 1.
    pub top_p: f64,
    /// Top-k sampling during training; −1 keeps all tokens, anything else as for `top_p`. Default −1.
    pub top_k: i64,
    /// Episodes that decode together. Default 256.
    pub max_num_seqs: usize,
    /// Sampling during validation.
    pub val_kwargs: ValKwargs,
    /// How many groups are kept: a share, a count or a threshold, see `rollout_filter_strategy`. Default 0.9.
    pub rollout_filter_value: f64,
    /// What `rollout_filter_value` means. Default top_p.
    pub rollout_filter_strategy: FilterStrategy,
    /// Which end of the scores is kept. Default largest.
    pub rollout_filter_type: FilterType,
    /// What groups are scored by. Default reward_variance.
    pub rollout_filter_metric: FilterMetric,
    /// Whether groups with a score of zero may be kept. They give no gradient under a group baseline and only dilute
    /// the loss. Default false (RAGEN: true).
    pub rollout_filter_include_zero: bool,
    /// What top_p accumulates. Default linear.
    pub rollout_filter_top_p_prob_mode: TopPProbMode,
    /// Slack of linear top_p, in units of the score. Default 0.01.
    pub rollout_filter_selection_eps: f64,
    /// Stop after this many iterations in a row in which no group was kept; 0: never. Default 5.
    pub rollout_filter_empty_stop_steps: usize,
    /// Dynamic sampling (DAPO, arXiv 2503.14476): groups whose returns are all equal are replaced by fresh start states
    /// before the filter, round after round, with at most this many fresh groups an iteration; 0: no replacement.
    /// Default 0.
    pub rollout_filter_replace_budget: usize,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            response_length: 96,
            max_model_len: 1024,
            temperature: 1.0,
            top_p: 1.0,
            top_k: -1,
            max_num_seqs: 256,
            val_kwargs: ValKwargs::default(),
            rollout_filter_value: 0.9,
            rollout_filter_strategy: FilterStrategy::TopP,
            rollout_filter_type: FilterType::Largest,
            rollout_filter_metric: FilterMetric::RewardVariance,
            rollout_filter_include_zero: false,
            rollout_filter_top_p_prob_mode: TopPProbMode::Linear,
            rollout_filter_selection_eps: 0.01,
            rollout_filter_empty_stop_steps: 5,
            rollout_filter_replace_budget: 0,
        }
    }
}

impl Rollout {
    pub(crate) fn check(&self, section: &str, problems: &mut Problems) {
        let key = |name: &str| format!("{section}.{name}");
        problems.at_least_one(&key("response_length"), self.response_length);
        problems.at_least_one(&key("max_num_seqs"), self.max_num_seqs);
        problems.require(self.max_model_len > self.response_length, || {
            format!(
                "`{}` ({}) must be greater than `response_length` ({}): prompt and response share it",
                key("max_model_len"),
                self.max_model_len,
                self.response_length
            )
        });
        if self.temperature > 0.0 {
            problems.temperature(&key("temperature"), self.temperature);
        } else {
            problems.0.push(format!(
                "`{}` must be greater than 0 for training (greedy episodes of a group are all alike), found {}",
                key("temperature"),
                self.temperature
            ));
        }
        problems.top_p(&key("top_p"), self.top_p);
        problems.top_k(&key("top_k"), self.top_k);
        let val = &self.val_kwargs;
        if val.temperature == 0.0 {
            // Greedy.
        } else {
            problems.temperature(&key("val_kwargs.temperature"), val.temperature);
        }
        problems.require(!val.do_sample || val.temperature > 0.0, || {
            format!("`{}` is 0 but `do_sample` is true: set one of them", key("val_kwargs.temperature"))
        });
        problems.top_p(&key("val_kwargs.top_p"), val.top_p);
        problems.top_k(&key("val_kwargs.top_k"), val.top_k);
        self.check_filter(section, problems);
    }

    fn check_filter(&self, section: &str, problems: &mut Problems) {
        let key = format!("{section}.rollout_filter_value");
        let value = self.rollout_filter_value;
        match self.rollout_filter_strategy {
            FilterStrategy::TopKAbs => problems.require(value.is_finite() && value >= 1.0, || {
                format!("`{key}` is a number of groups with strategy top_k_abs: at least 1, found {value}")
            }),
            strategy => problems.require(value > 0.0 && value <= 1.0, || {
                format!("`{key}` is a share with strategy {strategy}: greater than 0, at most 1, found {value}")
            }),
        }
        problems.non_negative(&format!("{section}.rollout_filter_selection_eps"), self.rollout_filter_selection_eps);
    }
}
