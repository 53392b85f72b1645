//! `guard`: watching a run for collapse, and what is done about it.

use serde::{Deserialize, Serialize};

use super::names::named_enum;
use super::problems::Problems;

named_enum! {
    /// What the guard may do.
    pub enum GuardMode {
        /// Nothing is watched.
        Off = "off",
        /// Warnings only; the run goes on as if there were no guard.
        Observe = "observe",
        /// Interventions as well.
        Act = "act",
    }
}

named_enum! {
    /// A rung of the ladder of interventions.
    pub enum Rung {
        /// Keep fewer groups, those that differ most, and replace silent ones by fresh start states.
        Filter = "filter",
        /// A smaller learning rate. It stays when the guard lets go of the rest.
        Lr = "lr",
        /// An entropy term against the direction in which the entropy went.
        Entropy = "entropy",
        /// A pull towards the last healthy policy.
        Kl = "kl",
        /// Back to the last healthy policy, with fresh start states, fresh moments and a smaller learning rate.
        Rollback = "rollback",
    }
}

/// How far a signal may move before it counts. Shares are of the signal's own past in this run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardSignals {
    /// Spread of returns within groups below this share, while success does not rise. Default 0.5.
    pub reward_std_share: f64,
    /// Entropy below this share, while success does not rise. Default 0.4.
    pub entropy_crash_share: f64,
    /// Entropy above this multiple. Default 1.6.
    pub entropy_burst_factor: f64,
    /// Gradient norm above this multiple of its median. Default 3.
    pub grad_norm_factor: f64,
    /// Share of turns in the right format, fallen by this much from its best. Default 0.1.
    pub format_drop: f64,
    /// Mutual information of reasoning and prompt below this share of the first measurements. Default 0.4.
    pub mi_share: f64,
    /// Length of the reasoning below this share. Default 0.6.
    pub reasoning_length_share: f64,
    /// Repetition within groups risen by this much. Default 0.2.
    pub repetition_rise: f64,
    /// Success of training episodes below this share of its best. Default 0.85.
    pub success_share: f64,
    /// Success of validations below this share of its best. Default 0.85.
    pub validation_share: f64,
    /// Below this share of its best, success (in training or validation) calls for the rollback at once. Default 0.7.
    pub severe_share: f64,
}

impl Default for GuardSignals {
    fn default() -> Self {
        Self {
            reward_std_share: 0.5,
            entropy_crash_share: 0.4,
            entropy_burst_factor: 1.6,
            grad_norm_factor: 3.0,
            format_drop: 0.1,
            mi_share: 0.4,
            reasoning_length_share: 0.6,
            repetition_rise: 0.2,
            success_share: 0.85,
            validation_share: 0.85,
            severe_share: 0.7,
        }
    }
}

/// Watching a run for collapse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// What the guard may do. Default observe.
    pub mode: GuardMode,
    /// Iterations before signals have a past to be compared with. Default 10.
    pub warmup: u64,
    /// Iterations in a row in which signals have to speak before a change of state. Default 2.
    pub patience: u64,
    /// Different signals that call for an intervention when they speak together. Default 2.
    pub quorum: usize,
    /// Iterations in a row without a signal after which a run has recovered. Default 8.
    pub calm: u64,
    /// Interventions, mildest first; what is left out is never done. Default all five.
    pub ladder: Vec<Rung>,
    /// Iterations that a rung is given before the next one. Default 3.
    pub rung_wait: u64,
    /// Iterations between snapshots of the policy; one counts as healthy when it has stood that long. Default 10.
    pub snapshot_every: u64,
    /// filter: factor of `rollout_filter_value`. Default 0.7.
    pub filter_factor: f64,
    /// filter: fresh groups as a share of the batch. Default 0.5.
    pub replace_share: f64,
    /// lr: factor of the learning rate. Default 0.5.
    pub lr_factor: f64,
    /// entropy: weight of the term. Default 0.003.
    pub entropy_coeff: f64,
    /// kl: weight of the pull. Default 0.05.
    pub kl_coef: f64,
    /// rollback: factor of the learning rate, for each. Default 0.4.
    pub rollback_lr_factor: f64,
    /// Rollbacks before the run is stopped at its last healthy policy. Default 8.
    pub max_rollbacks: u64,
    /// When signals count.
    pub signals: GuardSignals,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            mode: GuardMode::Observe,
            warmup: 10,
            patience: 2,
            quorum: 2,
            calm: 8,
            ladder: vec![Rung::Filter, Rung::Lr, Rung::Entropy, Rung::Kl, Rung::Rollback],
            rung_wait: 3,
            snapshot_every: 10,
            filter_factor: 0.7,
            replace_share: 0.5,
            lr_factor: 0.5,
            entropy_coeff: 0.003,
            kl_coef: 0.05,
            rollback_lr_factor: 0.4,
            max_rollbacks: 8,
            signals: GuardSignals::default(),
        }
    }
}

impl Guard {
    pub(crate) fn check(&self, problems: &mut Problems) {
        let counts = [
            ("guard.warmup", self.warmup),
            ("guard.patience", self.patience),
            ("guard.calm", self.calm),
            ("guard.rung_wait", self.rung_wait),
            ("guard.snapshot_every", self.snapshot_every),
        ];
        for (key, value) in counts {
            problems.require(value >= 1, || format!("`{key}` must be at least 1, found 0"));
        }
        problems.at_least_one("guard.quorum", self.quorum);
        problems.require(self.mode != GuardMode::Act || !self.ladder.is_empty(), || {
            "`guard.mode` is act but `guard.ladder` is empty: name what may be done, or observe".into()
        });
        let mut seen = self.ladder.clone();
        seen.sort_by_key(|rung| rung.name());
        seen.dedup();
        problems.require(seen.len() == self.ladder.len(), || {
            "`guard.ladder` names an intervention twice: each once, the mildest first".into()
        });
        let factors = [
            ("guard.filter_factor", self.filter_factor),
            ("guard.lr_factor", self.lr_factor),
            ("guard.rollback_lr_factor", self.rollback_lr_factor),
        ];
        for (key, value) in factors {
            problems.require(value > 0.0 && value <= 1.0, || {
                format!("`{key}` must be greater than 0 and at most 1, found {value}")
            });
        }
        problems.unit_interval("guard.replace_share", self.replace_share);
        problems.non_negative("guard.entropy_coeff", self.entropy_coeff);
        problems.non_negative("guard.kl_coef", self.kl_coef);
        let s = &self.signals;
        let shares = [
            ("reward_std_share", s.reward_std_share),
            ("entropy_crash_share", s.entropy_crash_share),
            ("format_drop", s.format_drop),
            ("mi_share", s.mi_share),
            ("reasoning_length_share", s.reasoning_length_share),
            ("repetition_rise", s.repetition_rise),
            ("success_share", s.success_share),
            ("validation_share", s.validation_share),
            ("severe_share", s.severe_share),
        ];
        for (key, value) in shares {
            problems.unit_interval(&format!("guard.signals.{key}"), value);
        }
        for (key, value) in [("entropy_burst_factor", s.entropy_burst_factor), ("grad_norm_factor", s.grad_norm_factor)]
        {
            problems.require(value.is_finite() && value > 1.0, || {
                format!("`guard.signals.{key}` must be greater than 1, found {value}")
            });
        }
    }
}
