//! Where a run stands: everything beside the weights that a resumed run needs to end at the same bits.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::evaluate::{Baselines, EvalReport};
use crate::instances::SeedCounter;

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
    /// Random policy and oracle on the validation instances.
    pub baselines: Baselines,
    /// Wall-clock seconds so far.
    pub seconds: f64,
    /// Tokens sampled in iterations, and the seconds that took.
    pub generated: (u64, f64),
    /// Tokens that went through the actor's update in iterations, and the seconds that took.
    pub trained: (u64, f64),
    /// Largest mismatch of any iteration.
    pub mismatch_max: f64,
}

impl Progress {
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
