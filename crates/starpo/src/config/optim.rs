//! `*.optim`: AdamW and its learning-rate schedule.

use serde::{Deserialize, Serialize};

use super::names::named_enum;
use super::problems::Problems;

named_enum! {
    /// How the learning rate goes on after its warm-up.
    pub enum LrScheduler {
        /// Stays as it is.
        Constant = "constant",
        /// Falls on a straight line to 0 at the last step.
        Linear = "linear",
        /// Falls along half a cosine to 0 at the last step.
        Cosine = "cosine",
    }
}

/// AdamW (Loshchilov & Hutter, arXiv 1711.05101) and the schedule of its learning rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optim {
    /// Peak learning rate. Default 5e-5 for the actor and 1e-4 for the critic of the tiny model (RAGEN: 1e-6, 1e-5).
    pub lr: f64,
    /// Decay rates of the first and second moment. Default [0.9, 0.999].
    pub betas: [f64; 2],
    /// Added to the root of the second moment. Default 1e-8.
    pub eps: f64,
    /// Decoupled weight decay. Default 0.01.
    pub weight_decay: f64,
    /// Optimiser steps over which the learning rate rises linearly from 0; 0 or less: none. Default 0.
    pub lr_warmup_steps: i64,
    /// What follows the warm-up. Default constant.
    pub lr_scheduler: LrScheduler,
}

impl Default for Optim {
    fn default() -> Self {
        Self {
            lr: 1e-6,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.01,
            lr_warmup_steps: 0,
            lr_scheduler: LrScheduler::Constant,
        }
    }
}

impl Optim {
    /// Learning rate of optimiser step `step` (from 0) of `total` steps.
    ///
    /// During the warm-up step `s` of `w` gets `lr · (s + 1) / w`; `linear` and `cosine` then reach 0 just after the
    /// last step, so that every step learns something.
    pub fn lr_at(&self, step: u64, total: u64) -> f64 {
        let warmup = u64::try_from(self.lr_warmup_steps).unwrap_or(0);
        if step < warmup {
            return self.lr * (step as f64 + 1.0) / warmup as f64;
        }
        let span = total.saturating_sub(warmup).max(1) as f64;
        let progress = ((step - warmup) as f64 / span).min(1.0);
        match self.lr_scheduler {
            LrScheduler::Constant => self.lr,
            LrScheduler::Linear => self.lr * (1.0 - progress),
            LrScheduler::Cosine => self.lr * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
        }
    }

    pub(crate) fn check(&self, section: &str, problems: &mut Problems) {
        problems.non_negative(&format!("{section}.lr"), self.lr);
        for beta in self.betas {
            problems.require((0.0..1.0).contains(&beta), || {
                format!("`{section}.betas` must lie between 0 and 1 (1 excluded), found {beta}")
            });
        }
        problems.positive(&format!("{section}.eps"), self.eps);
        problems.non_negative(&format!("{section}.weight_decay"), self.weight_decay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_by_hand() {
        let mut optim = Optim { lr: 1.0, lr_warmup_steps: 2, ..Optim::default() };
        assert_eq!([0, 1, 2, 9].map(|s| optim.lr_at(s, 10)), [0.5, 1.0, 1.0, 1.0]);
        optim.lr_scheduler = LrScheduler::Linear;
        assert_eq!([0, 1, 2, 6, 10].map(|s| optim.lr_at(s, 10)), [0.5, 1.0, 1.0, 0.5, 0.0]);
        optim.lr_scheduler = LrScheduler::Cosine;
        assert!((optim.lr_at(6, 10) - 0.5).abs() < 1e-12);
        assert!(optim.lr_at(100, 10).abs() < 1e-12, "past the end it stays at 0");
    }
}
