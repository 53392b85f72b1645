//! `critic`: the value head and its update. Read only with the estimator `gae`.

use serde::{Deserialize, Serialize};

use super::optim::Optim;
use super::problems::Problems;

/// The update of the value head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Critic {
    /// Optimiser.
    pub optim: Optim,
    /// Value predictions are clipped to the old ones ± this. Default 0.5.
    pub cliprange_value: f64,
    /// Passes over the batch of an iteration. Default 1.
    pub ppo_epochs: usize,
    /// Training samples per optimiser step. Default 32.
    pub ppo_mini_batch_size: usize,
    /// Global gradient norm is clipped to this; 0 leaves it alone. Default 1.0.
    pub grad_clip: f64,
}

impl Default for Critic {
    fn default() -> Self {
        Self {
            optim: Optim { lr: 1e-4, ..Optim::default() },
            cliprange_value: 0.5,
            ppo_epochs: 1,
            ppo_mini_batch_size: 32,
            grad_clip: 1.0,
        }
    }
}

impl Critic {
    pub(crate) fn check(&self, problems: &mut Problems) {
        self.optim.check("critic.optim", problems);
        problems.positive("critic.cliprange_value", self.cliprange_value);
        problems.at_least_one("critic.ppo_epochs", self.ppo_epochs);
        problems.at_least_one("critic.ppo_mini_batch_size", self.ppo_mini_batch_size);
        problems.non_negative("critic.grad_clip", self.grad_clip);
    }
}
