//! What a run tells: events on the way, how it ended, why it failed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::AgentError;
use crate::evaluate::EvalReport;
use crate::guard::Change;
use crate::metrics::Metrics;
use crate::policy::PolicyError;
use crate::rollout::RolloutError;
use crate::warm_start::WarmStartReport;

/// Why a run ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The model or an environment cannot be set up.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// `memory_limit_gib` is too low.
    #[error("`actor_rollout_ref.actor.memory_limit_gib`: {0}")]
    Memory(#[from] ragen_model::memory::TooLittle),
    /// The chat template cannot be used.
    #[error(transparent)]
    Chat(#[from] ragen_model::chat::ChatError),
    /// A rollout failed as a whole.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// An estimator refused the batch.
    #[error(transparent)]
    Advantage(#[from] crate::advantage::AdvantageError),
    /// The filter refused the batch.
    #[error(transparent)]
    Filter(#[from] crate::filter::FilterError),
    /// The groups could not be selected.
    #[error(transparent)]
    Select(#[from] crate::select::SelectError),
    /// The update failed.
    #[error(transparent)]
    Update(#[from] crate::update::UpdateError),
    /// The warm start failed.
    #[error(transparent)]
    WarmStart(#[from] crate::warm_start::WarmStartError),
    /// Behind the seam.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The run folder.
    #[error(transparent)]
    RunDir(#[from] crate::run_dir::RunDirError),
    /// A rollout file.
    #[error(transparent)]
    RolloutLog(#[from] crate::rollout_log::RolloutLogError),
    /// The event file.
    #[error(transparent)]
    Events(#[from] crate::tensorboard::EventError),
    /// A resumed run with another beginning.
    #[error(
        "`{key}` is {now}, but the run was begun with {begun}, and that part of it is over: leave `{key}` as it was to go \
         on, or start a new run"
    )]
    Past {
        /// The key.
        key: String,
        /// What the run was begun with.
        begun: String,
        /// What it is resumed with.
        now: String,
    },
    /// A checkpoint cannot be read.
    #[error("cannot resume from {0}")]
    Resume(String),
}

impl TrainError {
    /// The user's input is at fault (as opposed to something that went wrong while running).
    pub fn is_input(&self) -> bool {
        match self {
            Self::Agent(_) | Self::Chat(_) | Self::Memory(_) | Self::Past { .. } | Self::Resume(_) => true,
            Self::WarmStart(error) => matches!(error, crate::warm_start::WarmStartError::Data(_)),
            _ => false,
        }
    }
}

/// What a run tells whoever watches it.
pub enum Event<'a> {
    /// A warm-start step is done.
    WarmStart {
        /// Steps done.
        step: u64,
        /// Its numbers.
        report: WarmStartReport,
    },
    /// An evaluation on the validation instances is done.
    Evaluated {
        /// Iterations done.
        iteration: u64,
        /// Its result.
        report: &'a EvalReport,
    },
    /// The warm start was evaluated on held-out training instances.
    WarmStartEvaluated {
        /// Steps done.
        step: u64,
        /// Success rate.
        success: f64,
    },
    /// The guard's view of the run has changed.
    Guard {
        /// Iterations done.
        iteration: u64,
        /// What changed, and why.
        change: &'a Change,
    },
    /// An iteration is done.
    Iteration {
        /// Its number, from 1.
        iteration: u64,
        /// Its metrics.
        metrics: &'a Metrics,
    },
}

/// Watches a run.
pub type Observer<'a> = dyn FnMut(Event<'_>) + 'a;

/// How a run went.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Iterations done.
    pub iterations: u64,
    /// Why it ended before its last iteration, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
    /// Wall-clock seconds, over all sessions of a resumed run.
    pub seconds: f64,
    /// Sampled tokens per second of rollout.
    pub generated_tokens_per_second: f64,
    /// Tokens per second of update, given ones included.
    pub trained_tokens_per_second: f64,
    /// Success rates on the validation instances of the tags that training plays.
    pub success: SuccessSummary,
    /// Of each tag, when validation has several: those that training never plays speak of generalisation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub success_by_tag: BTreeMap<String, SuccessSummary>,
    /// Largest difference between a recorded and a recomputed log-probability.
    pub mismatch_max: f64,
    /// SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Warm-start steps taken.
    pub warm_start_steps: u64,
    /// What the guard did.
    pub guard: GuardSummary,
    /// Training instances skipped because a validation instance has the same board.
    pub leaked_instances_skipped: u64,
}

/// Why a run ended before its last iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedEarly {
    /// In `rollout_filter_empty_stop_steps` iterations in a row no group was left to learn from.
    NothingToLearnFrom,
    /// `trainer.early_stopping`: the spread of returns within groups collapsed.
    SpreadCollapsed,
    /// `trainer.early_stopping`: validation success stayed hopeless.
    LowValidation,
    /// The guard went back as often as it may.
    Guard,
}

impl EndedEarly {
    /// The reason in words that go on after "ended early: ".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NothingToLearnFrom => {
                "several iterations in a row left no group to learn from, as all returns of a group were equal \
                 (actor_rollout_ref.rollout.rollout_filter_empty_stop_steps)"
            }
            Self::SpreadCollapsed => "the spread of returns within groups collapsed (trainer.early_stopping)",
            Self::LowValidation => "validation success stayed hopeless (trainer.early_stopping)",
            Self::Guard => "the guard went back as often as it may (guard.max_rollbacks)",
        }
    }
}

/// What the guard did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardSummary {
    /// Times it warned.
    pub warnings: u64,
    /// Interventions, rollbacks among them.
    pub interventions: u64,
    /// Times it went back to an earlier policy.
    pub rollbacks: u64,
}

/// Success rates with their floor and ceiling.
#[derive(Clone, Debug, Serialize)]
pub struct SuccessSummary {
    /// After the warm start; `null` without one.
    pub warm_start: Option<f64>,
    /// At the end.
    pub r#final: f64,
    /// Uniformly random actions.
    pub random: Option<f64>,
    /// The oracle.
    pub oracle: Option<f64>,
    /// Episodes of random actions.
    pub random_n: Option<usize>,
    /// Episodes of the oracle.
    pub oracle_n: Option<usize>,
    /// Validation episodes.
    pub n: usize,
    /// 95 % interval of `final` (Wilson).
    pub ci95: [f64; 2],
}

/// Whether a run came to its end or was asked to stop.
#[derive(Clone, Debug)]
pub enum RunEnd {
    /// All iterations are done.
    Finished(Box<Summary>),
    /// It was interrupted and can be resumed.
    Interrupted {
        /// Iterations done.
        iteration: u64,
    },
}
