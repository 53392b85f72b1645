//! Episodes on disk, as JSON Lines: one record an episode with its tokens, masks, probabilities, texts and rewards.
//!
//! One file holds one batch. It is written under a temporary name and renamed, so a file that exists is complete, and
//! repeating an iteration after a resume replaces its file by the same one.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::episode::Episode;

/// Version of the record format. It grows when a field changes its meaning or goes away.
pub const RECORD_VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutRecord {
    /// See [`RECORD_VERSION`].
    pub version: u32,
    /// `train` or `val`.
    pub phase: String,
    /// Training iteration; 0 is before the first.
    pub iteration: u64,
    /// Raw return, for readers that do not want to add up turns.
    #[serde(rename = "return")]
    pub total_return: f64,
    /// The goal was reached.
    pub success: bool,
    /// The episode itself.
    pub episode: Episode,
}

/// What can go wrong with a rollout file.
#[derive(Debug, thiserror::Error)]
pub enum RolloutLogError {
    /// Reading or writing failed.
    #[error("rollout file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no record of this version.
    #[error("rollout file {path}, line {line}: {message}")]
    Record {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What was expected, what was found.
        message: String,
    },
}

/// Writes a batch to `<dir>/<phase>_<iteration>.jsonl`, making the folder if need be. Returns the file's path.
///
/// # Errors
/// [`RolloutLogError::Io`]; an older file of that name is then untouched.
pub fn write_rollouts(
    dir: &Path,
    phase: &str,
    iteration: u64,
    episodes: &[Episode],
) -> Result<PathBuf, RolloutLogError> {
    let path = dir.join(format!("{phase}_{iteration:06}.jsonl"));
    let temporary = dir.join(format!(".{phase}_{iteration:06}.jsonl.tmp"));
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let mut file = BufWriter::new(File::create(&temporary)?);
        for episode in episodes {
            let record = RolloutRecord {
                version: RECORD_VERSION,
                phase: phase.to_owned(),
                iteration,
                total_return: episode.total_return(),
                success: episode.outcome.is_success(),
                episode: episode.clone(),
            };
            serde_json::to_writer(&mut file, &record)?;
            file.write_all(b"\n")?;
        }
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&temporary, &path)
    };
    write().map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        RolloutLogError::Io { path: path.clone(), source }
    })?;
    Ok(path)
}

/// Reads a file that [`write_rollouts`] wrote.
///
/// # Errors
/// [`RolloutLogError`], naming file and line.
pub fn read_rollouts(path: &Path) -> Result<Vec<RolloutRecord>, RolloutLogError> {
    let io = |source| RolloutLogError::Io { path: path.to_owned(), source };
    let file = BufReader::new(File::open(path).map_err(io)?);
    let mut records = Vec::new();
    for (i, line) in file.lines().enumerate() {
        let line = line.map_err(io)?;
        if !line.trim().is_empty() {
            let wrong = |message| RolloutLogError::Record { path: path.to_owned(), line: i + 1, message };
            records.push(read_record(&line).map_err(wrong)?);
        }
    }
    Ok(records)
}

fn read_record(line: &str) -> Result<RolloutRecord, String> {
    /// The version stands apart so that a record of another version is named as such.
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_str(line).map_err(|e| format!("no rollout record: {e}"))?;
    if version != RECORD_VERSION {
        return Err(format!("expected a record of version {RECORD_VERSION}, found version {version}"));
    }
    serde_json::from_str(line).map_err(|e| e.to_string())
}

#[cfg(test)]
#[path = "rollout_log_tests.rs"]
mod tests;
