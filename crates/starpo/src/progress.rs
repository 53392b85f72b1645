//! Where a run stands: everything beside the weights that a resumed run needs to end at the same bits.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{Config, GuardMode};
use crate::diagnostics::collapse::CollapseState;
use crate::early_stop::EarlyStop;
use crate::entropy_control::EntropyControl;
use crate::evaluate::EvalReport;
use crate::guard::Guard;
use crate::instances::SeedCounter;
use crate::trainer::EndedEarly;

/// File within a checkpoint.
const FILE: &str = "progress.json";

/// The state of a run between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Warm-start steps done.
    pub warm_start_steps: u64,
    /// The warm start is over.
    pub warm_start_done: bool,
    /// Iterations done.
    pub iteration: u64,
    /// Optimiser steps of the actor in those iterations.
    pub actor_steps: u64,
    /// And of the critic.
    pub critic_steps: u64,
    /// Training instances.
    pub train_seeds: SeedCounter,
    /// Instances of the warm start.
    pub warm_start_seeds: SeedCounter,
    /// Coefficient of the KL penalty in the reward.
    pub kl_coef: f64,
    /// Iterations in a row whose groups were all filtered out.
    pub empty_iterations: usize,
    /// Evaluation after the warm start.
    pub warm_start_eval: Option<EvalReport>,
    /// The latest evaluation.
    pub latest_eval: Option<EvalReport>,
    /// Wall-clock seconds so far.
    pub seconds: f64,
    /// Tokens sampled in iterations, and the seconds that took.
    pub generated: (u64, f64),
    /// Tokens that went through the actor's update in iterations, and the seconds that took.
    pub trained: (u64, f64),
    /// Largest mismatch of any iteration.
    pub mismatch_max: f64,
    /// Entropy control.
    #[serde(default)]
    pub entropy: EntropyControl,
    /// Measurements of reasoning collapse.
    #[serde(default)]
    pub collapse: CollapseState,
    /// Early stopping.
    #[serde(default)]
    pub early_stop: EarlyStop,
    /// The guard.
    #[serde(default)]
    pub guard: Guard,
    /// Success of a validation that the guard has not seen yet.
    #[serde(default)]
    pub unseen_validation: Option<f64>,
    /// Why the run ends before its last iteration, once that is decided.
    #[serde(default)]
    pub ended_early: Option<EndedEarly>,
}

impl Progress {
    /// Forgets the end of a run that the settings of today would not have ended: they may have changed since.
    pub fn review_end(&mut self, config: &Config) {
        let limit = config.actor_rollout_ref.rollout.rollout_filter_empty_stop_steps;
        self.ended_early = self.ended_early.filter(|reason| match reason {
            EndedEarly::NothingToLearnFrom => limit > 0 && self.empty_iterations >= limit,
            EndedEarly::SpreadCollapsed | EndedEarly::LowValidation => config.trainer.early_stopping,
            EndedEarly::Guard => {
                config.guard.mode == GuardMode::Act && self.guard.rollbacks >= config.guard.max_rollbacks
            }
        });
    }

    /// Writes the state into a checkpoint folder.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save(&self, dir: &Path) -> std::io::Result<()> {
        std::fs::write(dir.join(FILE), serde_json::to_vec_pretty(self)?)
    }

    /// Reads the state from a checkpoint folder.
    ///
    /// # Errors
    /// What the operating system says, or a file that does not parse.
    pub fn load(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path)?;
        serde_json::from_slice(&text).map_err(|e| std::io::Error::other(format!("{}: {e}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_progress() -> Progress {
        let mut guard = Guard::default();
        guard.rollbacks = 2;
        Progress {
            warm_start_steps: 7,
            warm_start_done: true,
            iteration: 3,
            actor_steps: 12,
            critic_steps: 0,
            train_seeds: SeedCounter::new(10_000),
            warm_start_seeds: SeedCounter::new(20_000),
            kl_coef: 0.1 + 0.2,
            empty_iterations: 1,
            warm_start_eval: None,
            latest_eval: None,
            seconds: 1.5,
            generated: (10, 0.25),
            trained: (20, 0.5),
            mismatch_max: 0.0,
            entropy: EntropyControl { alpha: Some(0.1), measured: Some(1.0 / 3.0), turns: vec![(0.7, 2)] },
            collapse: CollapseState { reference: Some((0.1, 0.7)), samples: Some(8), ..CollapseState::default() },
            early_stop: EarlyStop { base: vec![0.1], ..EarlyStop::default() },
            guard,
            unseen_validation: Some(0.3),
            ended_early: Some(EndedEarly::Guard),
        }
    }

    #[test]
    fn what_was_saved_comes_back_to_the_bit() {
        let dir = tempfile::tempdir().unwrap();
        some_progress().save(dir.path()).unwrap();
        assert_eq!(Progress::load(dir.path()).unwrap(), some_progress());
    }

    #[test]
    fn an_end_holds_as_long_as_its_settings() {
        let mut progress = some_progress();
        progress.empty_iterations = 5;
        let mut holds = |reason: EndedEarly, setting: &str| {
            progress.ended_early = Some(reason);
            progress.review_end(&Config::load(None, &[setting.to_owned()]).unwrap());
            progress.ended_early == Some(reason)
        };
        let limit = |n: u32| format!("actor_rollout_ref.rollout.rollout_filter_empty_stop_steps={n}");
        assert!(holds(EndedEarly::NothingToLearnFrom, &limit(5)));
        assert!(!holds(EndedEarly::NothingToLearnFrom, &limit(6)));
        assert!(!holds(EndedEarly::NothingToLearnFrom, &limit(0)), "never");
        for reason in [EndedEarly::SpreadCollapsed, EndedEarly::LowValidation] {
            assert!(holds(reason, "trainer.early_stopping=true"));
            assert!(!holds(reason, "trainer.early_stopping=false"));
        }
        assert!(!holds(EndedEarly::Guard, "guard.mode=observe"));
    }

    #[test]
    fn older_checkpoints_can_be_read_and_broken_ones_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = serde_json::to_value(some_progress()).unwrap();
        for newer in ["entropy", "collapse", "early_stop", "guard", "unseen_validation", "ended_early"] {
            assert!(old.as_object_mut().unwrap().shift_remove(newer).is_some(), "{newer}");
        }
        let path = dir.path().join(FILE);
        std::fs::write(&path, old.to_string()).unwrap();
        let read = Progress::load(dir.path()).unwrap();
        let fresh = Progress {
            entropy: EntropyControl::default(),
            collapse: CollapseState::default(),
            early_stop: EarlyStop::default(),
            guard: Guard::default(),
            unseen_validation: None,
            ended_early: None,
            ..some_progress()
        };
        assert_eq!(read, fresh);
        std::fs::write(&path, "{\"iteration\": -1}").unwrap();
        assert!(Progress::load(dir.path()).unwrap_err().to_string().contains(FILE));
        std::fs::remove_file(&path).unwrap();
        assert!(Progress::load(dir.path()).is_err());
    }
}
