//! The line files of a run: metrics and events. Lines are appended whole; a torn last line, from a kill in the middle of
//! a write, is noticed and never mistaken for data.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::atomic::write_atomic;
use super::{DISCARDED, DISCARDED_EVENTS, EVENTS, METRICS, RunDir, RunDirError, io_error};
use crate::metrics::Metrics;

impl RunDir {
    /// Appends the metrics of an iteration to `metrics.jsonl`.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn append_metrics(&self, step: u64, metrics: &Metrics) -> Result<(), RunDirError> {
        append_line(&self.path.join(METRICS), metrics.to_json_line(step))
    }

    /// Reads all lines of `metrics.jsonl`. A torn last line is left out.
    ///
    /// # Errors
    /// [`RunDirError::Io`]; [`RunDirError::Broken`] for a broken line that is not the last.
    pub fn read_metrics(&self) -> Result<Vec<(u64, Metrics)>, RunDirError> {
        let path = self.path.join(METRICS);
        let text = read_or_empty(&path)?;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let lines = whole.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(index, line)| {
                Metrics::from_json_line(line).map_err(|error| RunDirError::Broken {
                    path: path.clone(),
                    line: index + 1,
                    message: error.to_string(),
                })
            })
            .collect()
    }

    /// Prepares `metrics.jsonl` for going on after iteration `last_step`: later lines, and lines that cannot be read,
    /// move to `metrics.discarded.jsonl`. Returns how many moved.
    ///
    /// # Errors
    /// [`RunDirError::Io`]; nothing is lost then, at worst a line is in both files.
    pub fn truncate_metrics(&self, last_step: u64) -> Result<usize, RunDirError> {
        let path = self.path.join(METRICS);
        let text = read_or_empty(&path)?;
        let stays = |line: &&str| Metrics::from_json_line(line).is_ok_and(|(step, _)| step <= last_step);
        let (kept, discarded): (Vec<&str>, Vec<&str>) =
            text.lines().filter(|line| !line.trim().is_empty()).partition(stays);
        if discarded.is_empty() && (text.is_empty() || text.ends_with('\n')) {
            return Ok(0);
        }
        if !discarded.is_empty() {
            append_line(&self.path.join(DISCARDED), discarded.join("\n"))?;
        }
        write_atomic(&path, kept.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())?;
        Ok(discarded.len())
    }

    /// Appends an event (guard, error, intervention) to `events.jsonl`: its kind, the iteration, the time in seconds
    /// since 1970, and whatever else is known about it.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn append_event(&self, step: u64, kind: &str, details: Map<String, Value>) -> Result<(), RunDirError> {
        let mut event = Map::new();
        event.insert("step".into(), step.into());
        event.insert("event".into(), kind.into());
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
        event.insert("time".into(), time.into());
        for (key, value) in details {
            event.entry(key).or_insert(value);
        }
        append_line(&self.path.join(EVENTS), Value::Object(event).to_string())
    }

    /// Moves the events after iteration `last_step` to `events.discarded.jsonl`: the run comes there again.
    ///
    /// # Errors
    /// [`RunDirError::Io`]; nothing is lost then, at worst a line is in both files.
    pub(super) fn truncate_events(&self, last_step: u64) -> Result<(), RunDirError> {
        let path = self.path.join(EVENTS);
        let text = read_or_empty(&path)?;
        let step = |line: &str| serde_json::from_str::<Map<String, Value>>(line).ok()?.get("step")?.as_u64();
        let later = |line: &&str| step(line).is_some_and(|step| step > last_step);
        let (discarded, kept): (Vec<&str>, Vec<&str>) = text.lines().partition(later);
        if discarded.is_empty() {
            return Ok(());
        }
        append_line(&self.path.join(DISCARDED_EVENTS), discarded.join("\n"))?;
        write_atomic(&path, kept.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())
    }

    /// Reads all events. Lines that a kill has torn are left out.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn read_events(&self) -> Result<Vec<Map<String, Value>>, RunDirError> {
        let text = read_or_empty(&self.path.join(EVENTS))?;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// Appends a line in one write, so that it is in the file whole or (on a kill or a full disk) torn at the end.
fn append_line(path: &Path, mut line: String) -> Result<(), RunDirError> {
    line.push('\n');
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(io_error("append to", path))
}

/// Ends a torn last line, so that the next one starts afresh.
pub(super) fn end_last_line(path: &Path) -> Result<(), RunDirError> {
    let repair = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        if file.metadata()?.len() > 0 {
            let mut last = [0u8];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(())
    };
    match repair() {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error("repair", path)(error)),
        _ => Ok(()),
    }
}

fn read_or_empty(path: &Path) -> Result<String, RunDirError> {
    match std::fs::read(path) {
        // A torn line may end within a character.
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(io_error("read", path)(error)),
    }
}
