//! Studies: arms × seeds from one file.
//!
//! What is here: reading the file, which runs it asks for and where they lie, and what their numbers say together
//! ([`results`]) and look like ([`plot`]). What is not here: starting runs, which is the command's.
//!
//! A study file:
//!
//! ```yaml
//! name: filtering                  # also the name of its folder
//! task: sokoban                    # a built-in task or a file, as for `train`
//! seeds: [0, 1, 2]
//! warm_start: per_seed             # one for all arms of a seed; `shared`: one for all runs; `each`: every run its own
//! overrides: [trainer.total_training_steps=100]
//! arms:
//!   - name: all groups
//!     overrides: [actor_rollout_ref.rollout.rollout_filter_value=1]
//!   - name: half
//!     overrides: [actor_rollout_ref.rollout.rollout_filter_value=0.5]
//! ```

pub mod plot;
pub mod results;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};

/// Name of the folder of warm starts within a study's.
const WARM: &str = "warm";

/// Who shares a warm start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmStarts {
    /// Every run has its own, by its configuration.
    #[default]
    Each,
    /// The arms of a seed.
    PerSeed,
    /// All runs; it has the first seed.
    Shared,
}

/// One way of doing it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Name in tables and plots.
    pub name: String,
    /// What sets it apart: `section.key=value`.
    #[serde(default)]
    pub overrides: Vec<String>,
}

/// A study as its file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name, also of its folder.
    pub name: String,
    /// What is asked, in a sentence; goes into the report.
    #[serde(default)]
    pub question: String,
    /// Built-in task or file.
    pub task: String,
    /// Master seeds. Each run has `seed=…` and, with `env_seed_stride`, training instances of its own.
    pub seeds: Vec<u64>,
    /// First training instance of seed s: the task's plus s times this. Default 0: all seeds play the same instances.
    #[serde(default)]
    pub env_seed_stride: u64,
    /// Who shares a warm start.
    #[serde(default)]
    pub warm_start: WarmStarts,
    /// For every run.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The arms.
    pub arms: Vec<Arm>,
    /// The metric that is compared, from lines of `metrics.jsonl` that have it.
    #[serde(default = "default_metric")]
    pub metric: String,
    /// Values that are averaged (the last ones) before anything is read off. Default 3.
    #[serde(default = "default_smooth")]
    pub smooth: usize,
    /// Runs at a time. Default 1.
    #[serde(default = "one")]
    pub parallel: usize,
    /// Threads of each run; 0: the task's. Default 0.
    #[serde(default)]
    pub threads: usize,
}

fn default_metric() -> String {
    "val/success".into()
}

fn default_smooth() -> usize {
    3
}

fn one() -> usize {
    1
}

/// Why a study cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("cannot read the study {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is no study.
    #[error("{}: {message}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What was expected, what was found.
        message: String,
    },
    /// The study makes no sense.
    #[error("the study {}: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The configuration of an arm cannot be used.
    #[error("the arm `{arm}`: {error}")]
    Arm {
        /// The arm.
        arm: String,
        /// Why.
        error: Box<ConfigError>,
    },
}

/// A run that a study asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRun {
    /// Index of its arm.
    pub arm: usize,
    /// Its seed.
    pub seed: u64,
    /// Its folder.
    pub path: PathBuf,
    /// The model it starts from, when warm starts are shared: the folder of a warm start.
    pub warm: Option<PathBuf>,
    /// Task and overrides, as arguments of `train`.
    pub arguments: Vec<String>,
}

/// A warm start that runs share.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedWarmStart {
    /// Its run folder.
    pub path: PathBuf,
    /// Task and overrides, as arguments of `warm-start`.
    pub arguments: Vec<String>,
}

impl Study {
    /// Reads a study and checks it, the configuration of every arm included.
    ///
    /// # Errors
    /// [`StudyError`], before anything is computed.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| StudyError::Read { path: path.to_path_buf(), error })?;
        let mut study: Self = serde_saphyr::from_str(&text)
            .map_err(|e| StudyError::Syntax { path: path.to_path_buf(), message: e.without_snippet().to_string() })?;
        // A task that is a file lies beside the study, wherever that is read from.
        let beside = path.parent().unwrap_or(Path::new("")).join(&study.task);
        if Path::new(&study.task).extension().is_some() && beside.is_file() {
            study.task = beside.display().to_string();
        }
        study.check().map_err(|problem| StudyError::Invalid { path: path.to_path_buf(), problem })?;
        for arm in &study.arms {
            let overrides = [&study.overrides[..], &arm.overrides].concat();
            Config::load(Some(&study.task), &overrides)
                .map_err(|error| StudyError::Arm { arm: arm.name.clone(), error: Box::new(error) })?;
        }
        Ok(study)
    }

    fn check(&self) -> Result<(), String> {
        let plain = |name: &str| !name.trim().is_empty() && !name.contains(['/', '\\', '\0']) && !name.starts_with('.');
        if !plain(&self.name) {
            return Err(format!("`name` names a folder: not empty and without slashes, found {:?}", self.name));
        }
        if self.arms.is_empty() || self.seeds.is_empty() {
            return Err("expected at least one entry each under `arms` and `seeds`".into());
        }
        let mut names: Vec<String> = self.arms.iter().map(|arm| folder_name(&arm.name)).collect();
        if let Some(arm) = self.arms.iter().find(|arm| !plain(&arm.name) || folder_name(&arm.name) == WARM) {
            return Err(format!("an arm's name names a folder other than `{WARM}`, found {:?}", arm.name));
        }
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two arms share the folder `{}`: name them apart", twice[0]));
        }
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        if let Some(twice) = seeds.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("the seed {} stands there twice", twice[0]));
        }
        if self.smooth == 0 || self.parallel == 0 {
            return Err("`smooth` and `parallel` must be at least 1".into());
        }
        Ok(())
    }

    fn common(&self, seed: u64) -> Vec<String> {
        let mut arguments = vec![self.task.clone(), format!("seed={seed}")];
        arguments.extend(self.overrides.iter().cloned());
        arguments
    }

    /// The runs of the study, seed by seed, in `folder`.
    pub fn runs(&self, folder: &Path) -> Vec<StudyRun> {
        let mut runs = Vec::new();
        for seed in &self.seeds {
            for (arm, each) in self.arms.iter().enumerate() {
                let mut arguments = self.common(*seed);
                if self.env_seed_stride > 0 {
                    let base = Config::load(Some(&self.task), &self.overrides).map(|c| c.es_manager.train.seed);
                    let first = base.unwrap_or_default().wrapping_add(seed.wrapping_mul(self.env_seed_stride));
                    arguments.push(format!("es_manager.train.seed={first}"));
                }
                arguments.extend(each.overrides.iter().cloned());
                let warm = self.warm_folder(folder, *seed);
                if let Some(warm) = &warm {
                    arguments.push(format!("model_path={}", warm.join("model").display()));
                    arguments.push("warm_start.enabled=false".into());
                }
                let path = folder.join(folder_name(&each.name)).join(format!("seed_{seed}"));
                runs.push(StudyRun { arm, seed: *seed, path, warm, arguments });
            }
        }
        runs
    }

    fn warm_folder(&self, folder: &Path, seed: u64) -> Option<PathBuf> {
        let name = match self.warm_start {
            WarmStarts::Each => return None,
            WarmStarts::PerSeed => format!("seed_{seed}"),
            WarmStarts::Shared => "shared".into(),
        };
        Some(folder.join(WARM).join(name))
    }

    /// The warm starts that its runs begin from.
    pub fn warm_starts(&self, folder: &Path) -> Vec<SharedWarmStart> {
        let seeds = match self.warm_start {
            WarmStarts::Each => &[],
            WarmStarts::PerSeed => &self.seeds[..],
            WarmStarts::Shared => &self.seeds[..1],
        };
        let make = |seed: &u64| {
            let path = self.warm_folder(folder, *seed)?;
            Some(SharedWarmStart { path, arguments: self.common(*seed) })
        };
        seeds.iter().filter_map(make).collect()
    }
}

/// A name as a folder: spaces become underscores.
fn folder_name(name: &str) -> String {
    name.trim().replace(char::is_whitespace, "_")
}

#[cfg(test)]
#[path = "study_tests.rs"]
mod tests;
