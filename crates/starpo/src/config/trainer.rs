//! `trainer`: how long, how often, where to.

use serde::{Deserialize, Serialize};

use super::names::named_enum;
use super::problems::Problems;

named_enum! {
    /// What to do when the run folder holds a run already.
    pub enum ResumeMode {
        /// Refuse to start.
        Disable = "disable",
        /// Go on from its latest checkpoint.
        Auto = "auto",
    }
}

named_enum! {
    /// Where metrics go besides `metrics.jsonl`, which is always written.
    pub enum Logger {
        /// One line an iteration on the terminal.
        Console = "console",
        /// A TensorBoard event file in the run folder.
        Tensorboard = "tensorboard",
    }
}

named_enum! {
    /// Which recorded log-probabilities are computed again and compared with what was recorded.
    pub enum Verify {
        /// Those of the first mini-batch of every iteration, which are computed anyway.
        First = "first",
        /// Those of all sampled tokens of every iteration, in a scoring pass of their own.
        Full = "full",
    }
}

named_enum! {
    /// How groups are sorted into buckets for gradient analysis.
    pub enum GradientBuckets {
        /// Equal numbers of groups.
        Quantile = "quantile",
        /// By the spread itself: [0, 1), [1, 2), …, [5, ∞).
        FixedRv = "fixed_rv",
    }
}

/// How long, how often, where to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trainer {
    /// Name of the project, for reports. Default ragen.
    pub project_name: String,
    /// Name of the run, and of its folder under `local_log_dir`. Default sokoban.
    pub experiment_name: String,
    /// Iterations of training. Default 250.
    pub total_training_steps: u64,
    /// Iterations between checkpoints; −1: none but the last. Default 50.
    pub save_freq: i64,
    /// Iterations between validations; −1: never. Default 25.
    pub test_freq: i64,
    /// Validate before the first iteration. Default true.
    pub val_before_train: bool,
    /// Iterations during which only the critic learns. Default 0.
    pub critic_warmup: u64,
    /// Checkpoints that are kept; the latest are. At least 1. Default 2.
    pub max_actor_ckpt_to_keep: usize,
    /// Folder that holds the run folders. Default runs.
    pub local_log_dir: String,
    /// What to do when the run folder holds a run already. Default disable.
    pub resume_mode: ResumeMode,
    /// Iterations between those whose training episodes are written to `rollouts/`; −1: none. Default 10.
    pub log_rollouts: i64,
    /// Which recorded log-probabilities are computed again, for `actor/mismatch_max`. Default first.
    pub verify: Verify,
    /// Stop when the spread of returns within groups has collapsed, or when five validations in a row hardly ever
    /// succeed, by the reference's rules. Default false.
    pub early_stopping: bool,
    /// Measure where the gradient comes from, by buckets of the spread within groups. Default false.
    pub gradient_analysis_mode: bool,
    /// Iterations between these measurements; the first one is measured. Default 50.
    pub gradient_analysis_every: u64,
    /// Buckets, with `quantile`. Default 6.
    pub gradient_analysis_num_buckets: usize,
    /// How groups are sorted into buckets. Default quantile.
    pub gradient_analysis_bucket_mode: GradientBuckets,
    /// Threads for numerics; 0: one per core. Never changes a result. Default 0.
    pub threads: usize,
    /// Where metrics go besides `metrics.jsonl`. Default `[console, tensorboard]`.
    pub logger: Vec<Logger>,
}

impl Default for Trainer {
    fn default() -> Self {
        Self {
            project_name: "ragen".into(),
            experiment_name: "sokoban".into(),
            total_training_steps: 250,
            save_freq: 50,
            test_freq: 25,
            val_before_train: true,
            critic_warmup: 0,
            max_actor_ckpt_to_keep: 2,
            local_log_dir: "runs".into(),
            resume_mode: ResumeMode::Disable,
            log_rollouts: 10,
            verify: Verify::First,
            early_stopping: false,
            gradient_analysis_mode: false,
            gradient_analysis_every: 50,
            gradient_analysis_num_buckets: 6,
            gradient_analysis_bucket_mode: GradientBuckets::Quantile,
            threads: 0,
            logger: vec![Logger::Console, Logger::Tensorboard],
        }
    }
}

/// Whether something that happens every `every` iterations (−1: never) is due after iteration `step` (from 1). The
/// last iteration counts as due as well, unless it never happens.
pub fn is_due(every: i64, step: u64, last_step: u64) -> bool {
    match u64::try_from(every) {
        Ok(every) if every > 0 => step == last_step || step.is_multiple_of(every),
        _ => false,
    }
}

impl Trainer {
    /// Whether gradient analysis is due at iteration `step` (from 1).
    pub fn gradient_analysis_due(&self, step: u64) -> bool {
        self.gradient_analysis_mode && step > 0 && (step - 1).is_multiple_of(self.gradient_analysis_every.max(1))
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.every("trainer.save_freq", self.save_freq);
        problems.every("trainer.test_freq", self.test_freq);
        problems.every("trainer.log_rollouts", self.log_rollouts);
        problems.require(self.gradient_analysis_every >= 1, || {
            "`trainer.gradient_analysis_every` must be at least 1, found 0; `gradient_analysis_mode` switches it off".into()
        });
        problems.at_least_one("trainer.gradient_analysis_num_buckets", self.gradient_analysis_num_buckets);
        problems.at_least_one("trainer.max_actor_ckpt_to_keep", self.max_actor_ckpt_to_keep);
        let name = self.experiment_name.as_str();
        let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
        problems.require(plain, || {
            format!("`trainer.experiment_name` names a folder: not empty and without slashes, found {name:?}")
        });
        problems.require(!self.local_log_dir.is_empty(), || "`trainer.local_log_dir` must not be empty".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_dates() {
        let due = |every| (1..=5).filter(|s| is_due(every, *s, 5)).collect::<Vec<_>>();
        assert_eq!(due(2), [2, 4, 5]);
        assert_eq!(due(-1), [0u64; 0]);
        assert_eq!(due(0), [0u64; 0]);
        assert_eq!(due(9), [5]);
    }
}
