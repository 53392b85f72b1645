//! `warm_start`: supervised learning from the oracle before reinforcement learning, for models that do not yet speak
//! the format.

use serde::{Deserialize, Serialize};

use super::es_manager::MOST_EPISODES;
use super::names::named_enum;
use super::optim::{LrScheduler, Optim};
use super::problems::Problems;

named_enum! {
    /// How much reasoning demonstrations hold.
    pub enum WarmStartStyle {
        /// A few words.
        Brief = "brief",
        /// Whole sentences.
        Verbose = "verbose",
    }
}

named_enum! {
    /// Who plays the demonstrated episodes.
    pub enum Demonstrator {
        /// The environment's oracle: format and a first strategy.
        Oracle = "oracle",
        /// The environment's novice, who sees the state rightly and acts without aim: format, perception and how an
        /// intention is carried out. What to intend is left to reinforcement learning. The oracle where there is none.
        Novice = "novice",
        /// Uniformly random actions: the format alone, so that all of the task is left to reinforcement learning.
        Random = "random",
    }
}

/// Supervised learning from demonstrations before reinforcement learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WarmStart {
    /// Do it. Default true.
    pub enabled: bool,
    /// Most optimiser steps. Default 300.
    pub max_steps: u64,
    /// Peak learning rate. Default 2e-3.
    pub lr: f64,
    /// Adam's decay rates of the first and second moment. Default [0.9, 0.98].
    pub betas: [f64; 2],
    /// Added to the root of the second moment. Default 1e-8.
    pub eps: f64,
    /// Decoupled weight decay. Default 0.01.
    pub weight_decay: f64,
    /// Global gradient norm is clipped to this; 0 leaves it alone. Default 1.0.
    pub grad_clip: f64,
    /// Optimiser steps over which the learning rate rises linearly from 0; 0 or less: none. Default 20.
    pub lr_warmup_steps: i64,
    /// What follows the warm-up. Default constant.
    pub lr_scheduler: LrScheduler,
    /// Demonstrated episodes per optimiser step. Default 64.
    pub batch_size: usize,
    /// Success rate on held-out training instances at which it ends, so that room is left for reinforcement learning.
    /// Default 0.45; 1 goes on to `max_steps`.
    pub target_success: f64,
    /// Optimiser steps between evaluations. Default 25.
    pub eval_every: u64,
    /// Instances per evaluation. Default 256.
    pub eval_instances: usize,
    /// How much reasoning demonstrations hold. Default brief.
    pub style: WarmStartStyle,
    /// Who plays the demonstrated episodes. Default novice.
    pub demonstrator: Demonstrator,
    /// Probability that a turn is demonstrated by the oracle although the demonstrator is another. Default 0.
    pub oracle_share: f64,
}

impl Default for WarmStart {
    fn default() -> Self {
        Self {
            enabled: true,
            max_steps: 300,
            lr: 2e-3,
            betas: [0.9, 0.98],
            eps: 1e-8,
            weight_decay: 0.01,
            grad_clip: 1.0,
            lr_warmup_steps: 20,
            lr_scheduler: LrScheduler::Constant,
            batch_size: 64,
            target_success: 0.45,
            eval_every: 25,
            eval_instances: 256,
            style: WarmStartStyle::Brief,
            demonstrator: Demonstrator::Novice,
            oracle_share: 0.0,
        }
    }
}

impl WarmStart {
    /// The optimiser and its schedule.
    pub fn optim(&self) -> Optim {
        Optim {
            lr: self.lr,
            betas: self.betas,
            eps: self.eps,
            weight_decay: self.weight_decay,
            lr_warmup_steps: self.lr_warmup_steps,
            lr_scheduler: self.lr_scheduler,
        }
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        self.optim().check("warm_start", problems);
        problems.require(self.max_steps >= 1, || "`warm_start.max_steps` must be at least 1, found 0".into());
        problems.require(self.eval_every >= 1, || "`warm_start.eval_every` must be at least 1, found 0".into());
        problems.non_negative("warm_start.grad_clip", self.grad_clip);
        problems.at_least_one("warm_start.batch_size", self.batch_size);
        problems.at_least_one("warm_start.eval_instances", self.eval_instances);
        problems.at_most("warm_start.batch_size", self.batch_size, MOST_EPISODES);
        problems.at_most("warm_start.eval_instances", self.eval_instances, MOST_EPISODES);
        problems.unit_interval("warm_start.target_success", self.target_success);
        problems.unit_interval("warm_start.oracle_share", self.oracle_share);
    }
}
