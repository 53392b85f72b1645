//! The folder of a run: configuration, metrics, events, episodes, checkpoints, summary. It knows names and how to write
//! them so that a kill at any moment leaves a folder that can be read and resumed; it does not know what they mean.
//!
//! | name | content | written |
//! |---|---|---|
//! | `config.yaml` | the resolved configuration | once, renamed into place |
//! | `metrics.jsonl` | a line an iteration | appended |
//! | `metrics.discarded.jsonl` | lines that a resume has superseded | appended |
//! | `events.jsonl` | guard, errors, interventions, a line each | appended |
//! | `events.discarded.jsonl` | events that a resume has superseded | appended |
//! | `rollouts/` | episodes | by the rollout log |
//! | `tensorboard/` | event file | by the event writer |
//! | `checkpoints/global_step_N/` | weights and all state after iteration N | renamed into place |
//! | `model/` | the final model, as a Hugging Face folder | at the end |
//! | `summary.json` | the outcome; its presence says that the run has ended | renamed into place |
//! | `run.lock` | held by the process that writes the run | locked, never deleted |

pub mod atomic;
pub mod checkpoints;
mod journal;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::{Config, ConfigError};
use atomic::write_atomic;
pub use checkpoints::Checkpoint;

const CONFIG: &str = "config.yaml";
const METRICS: &str = "metrics.jsonl";
const DISCARDED: &str = "metrics.discarded.jsonl";
const EVENTS: &str = "events.jsonl";
const DISCARDED_EVENTS: &str = "events.discarded.jsonl";
const ROLLOUTS: &str = "rollouts";
const TENSORBOARD: &str = "tensorboard";
const CHECKPOINTS: &str = "checkpoints";
const SUMMARY: &str = "summary.json";
const LOCK: &str = "run.lock";
const MODEL: &str = "model";

/// The folder of a run. While a value made by [`RunDir::create`] or [`RunDir::open`] lives, no other process can write
/// the run; the lock goes when the process does, however it ends.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held for its lock; `None` for a reader.
    _lock: Option<File>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Another process is writing it.
    Running,
    /// It has a summary.
    Finished,
    /// It was interrupted.
    Interrupted,
}

impl std::fmt::Display for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
        })
    }
}

/// What can go wrong with a run folder.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// There is a run already.
    #[error(
        "{} holds a run already ({state}): resume it, or choose another folder; nothing in it was changed",
        .path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
        /// How far that run has come.
        state: RunState,
    },
    /// Something else stands where the run would write.
    #[error(
        "{} holds `{name}` but no run: a run would write over it; choose an empty folder, or move it away; nothing was \
         changed",
        .path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What is in the way.
        name: &'static str,
    },
    /// Another process is writing the run.
    #[error("the run in {} is being written by another process: wait for it, or choose another folder", .path.display())]
    Running {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no run.
    #[error("{} holds no run: expected a file `config.yaml` in it", .path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("cannot {action} {}: {error}{}", .path.display(), hint(.error))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        error: std::io::Error,
    },
    /// A file is there but does not hold what it should.
    #[error("{}, line {line}: {message}", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What was expected, what was found.
        message: String,
    },
    /// The latest checkpoint is not what was written.
    #[error(
        "the checkpoint {} is damaged: a file in it is missing or not as it was written; restore \
         it, or move the folder away to go on from {}; nothing was changed",
        .path.display(),
        .earlier.map_or_else(|| "the beginning".to_owned(), |step| format!("iteration {step}"))
    )]
    Damaged {
        /// Its folder.
        path: PathBuf,
        /// The iteration of the latest checkpoint before it that is complete.
        earlier: Option<u64>,
    },
    /// The content of a checkpoint could not be written. Earlier checkpoints are untouched.
    #[error("cannot write the checkpoint of iteration {step} in {}: {message}; earlier checkpoints are untouched", .path.display())]
    Checkpoint {
        /// The iteration.
        step: u64,
        /// The folder of the checkpoints.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The run's configuration cannot be read or written.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; free some space, then resume the run: what was complete before is untouched"
        }
        std::io::ErrorKind::PermissionDenied => "; choose a folder you may write, or change its permissions",
        std::io::ErrorKind::ReadOnlyFilesystem => "; choose a folder on a disk that can be written",
        _ => "",
    }
}

/// Makes an [`RunDirError::Io`] of a failure.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunDirError + use<> {
    let path = path.to_path_buf();
    move |error| RunDirError::Io { action, path, error }
}

impl RunDir {
    /// Makes the folder of a new run and writes its configuration.
    ///
    /// # Errors
    /// [`RunDirError::Exists`] or [`RunDirError::Running`] when the folder holds a run already, and
    /// [`RunDirError::Io`].
    pub fn create(path: impl Into<PathBuf>, config: &Config) -> Result<Self, RunDirError> {
        let path = path.into();
        refuse_what_is_in_the_way(&path)?;
        std::fs::create_dir_all(&path).map_err(io_error("make the run folder", &path))?;
        let lock = lock(&path)?.ok_or_else(|| RunDirError::Running { path: path.clone() })?;
        // Another process may have been faster.
        refuse_what_is_in_the_way(&path)?;
        let dir = Self { path, _lock: Some(lock) };
        for name in [ROLLOUTS, CHECKPOINTS] {
            let folder = dir.path.join(name);
            std::fs::create_dir_all(&folder).map_err(io_error("make the folder", &folder))?;
        }
        dir.write_config(config)?;
        Ok(dir)
    }

    /// Opens the folder of an interrupted or finished run to go on with it, and tidies up what a kill left half done:
    /// unfinished checkpoints go, a torn last line is ended.
    ///
    /// # Errors
    /// [`RunDirError::NotARun`], [`RunDirError::Running`], [`RunDirError::Io`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        if !path.join(CONFIG).is_file() {
            return Err(RunDirError::NotARun { path });
        }
        let lock = lock(&path)?.ok_or_else(|| RunDirError::Running { path: path.clone() })?;
        let dir = Self { path, _lock: Some(lock) };
        checkpoints::tidy(&dir.checkpoints_dir())?;
        journal::end_last_line(&dir.path.join(EVENTS))?;
        Ok(dir)
    }

    /// Opens the folder of a run for reading, whether or not it is being written.
    ///
    /// # Errors
    /// [`RunDirError::NotARun`].
    pub fn view(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        if path.join(CONFIG).is_file() { Ok(Self { path, _lock: None }) } else { Err(RunDirError::NotARun { path }) }
    }

    /// Whether the folder holds a run, and how far it has come.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn state_of(path: &Path) -> Result<Option<RunState>, RunDirError> {
        if !path.join(CONFIG).is_file() {
            return Ok(None);
        }
        Ok(Some(match is_locked(path)? {
            true => RunState::Running,
            false if path.join(SUMMARY).is_file() => RunState::Finished,
            false => RunState::Interrupted,
        }))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where episodes are written.
    pub fn rollouts_dir(&self) -> PathBuf {
        self.path.join(ROLLOUTS)
    }

    /// Where the TensorBoard event file is written.
    pub fn tensorboard_dir(&self) -> PathBuf {
        self.path.join(TENSORBOARD)
    }

    /// Where the final model is written, as a Hugging Face folder.
    pub fn model_dir(&self) -> PathBuf {
        self.path.join(MODEL)
    }

    /// Where checkpoints are written.
    pub fn checkpoints_dir(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// Writes the resolved configuration.
    ///
    /// # Errors
    /// [`RunDirError::Io`], [`RunDirError::Config`].
    pub fn write_config(&self, config: &Config) -> Result<(), RunDirError> {
        write_atomic(&self.path.join(CONFIG), config.to_yaml()?.as_bytes())
    }

    /// Reads the configuration of the run.
    ///
    /// # Errors
    /// [`RunDirError::Io`], [`RunDirError::Config`].
    pub fn read_config(&self) -> Result<Config, RunDirError> {
        let path = self.path.join(CONFIG);
        let text = std::fs::read_to_string(&path).map_err(io_error("read", &path))?;
        Ok(Config::from_resolved_yaml(&text, &path.display().to_string())?)
    }

    /// Writes the outcome of the run, which marks it as finished.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<(), RunDirError> {
        let path = self.path.join(SUMMARY);
        let mut text = serde_json::to_string_pretty(summary)
            .map_err(|error| io_error("write", &path)(std::io::Error::other(error)))?;
        text.push('\n');
        write_atomic(&path, text.as_bytes())
    }

    /// Reads the outcome of the run, if it has one.
    ///
    /// # Errors
    /// [`RunDirError::Io`], [`RunDirError::Broken`].
    pub fn read_summary<T: DeserializeOwned>(&self) -> Result<Option<T>, RunDirError> {
        let path = self.path.join(SUMMARY);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let summary = serde_json::from_str(&text);
        summary.map(Some).map_err(|error| RunDirError::Broken { path, line: error.line(), message: error.to_string() })
    }

    /// Whether the run has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.path.join(SUMMARY).is_file()
    }

    /// Goes back to the state after iteration `step`, for a run that resumes from there: later checkpoints and the
    /// summary go, later lines of metrics move aside.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn rewind(&self, step: u64) -> Result<(), RunDirError> {
        self.remove_summary()?;
        self.remove_checkpoints_after(step)?;
        self.truncate_events(step)?;
        self.truncate_metrics(step).map(|_| ())
    }

    fn remove_summary(&self) -> Result<(), RunDirError> {
        let path = self.path.join(SUMMARY);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", &path)(error)),
            _ => Ok(()),
        }
    }
}

/// A folder that a new run may be made in holds nothing that the run would write.
fn refuse_what_is_in_the_way(path: &Path) -> Result<(), RunDirError> {
    // A run that is being written, or was, is told apart by its configuration.
    if path.join(CONFIG).exists() {
        return Err(match RunDir::state_of(path)? {
            Some(RunState::Running) => RunDirError::Running { path: path.to_path_buf() },
            state => RunDirError::Exists { path: path.to_path_buf(), state: state.unwrap_or(RunState::Interrupted) },
        });
    }
    let written = [METRICS, DISCARDED, EVENTS, DISCARDED_EVENTS, ROLLOUTS, TENSORBOARD, CHECKPOINTS, SUMMARY, MODEL];
    match written.into_iter().find(|name| path.join(name).symlink_metadata().is_ok()) {
        Some(name) => Err(RunDirError::Occupied { path: path.to_path_buf(), name }),
        None => Ok(()),
    }
}

/// Takes the run's lock; `None` if another process (or another value in this one) holds it.
fn lock(path: &Path) -> Result<Option<File>, RunDirError> {
    let path = path.join(LOCK);
    let open = OpenOptions::new().create(true).append(true).open(&path);
    let file = open.map_err(io_error("make the lock file", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(io_error("lock", &path)(error)),
    }
}

/// Whether a process holds the run's lock. Changes nothing, so that it works on a folder that cannot be written.
fn is_locked(path: &Path) -> Result<bool, RunDirError> {
    let path = path.join(LOCK);
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        file => file.map_err(io_error("read", &path))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(io_error("lock", &path)(error)),
    }
}

#[cfg(test)]
mod tests;
