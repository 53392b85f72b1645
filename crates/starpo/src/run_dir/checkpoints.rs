//! Checkpoints of a run: folders `global_step_N`. One is written under a temporary name together with a list of its
//! files with their sizes and checksums, put on the disk, and renamed; only then may an older one go. A kill therefore leaves nothing
//! incomplete under a checkpoint's own name: what is incomplete there was damaged by something else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic::{is_temporary, sync_dir, temporary_name};
use super::{RunDir, RunDirError, io_error};

const PREFIX: &str = "global_step_";
const MANIFEST: &str = "checkpoint.json";

/// A complete checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The iteration after which it was written.
    pub step: u64,
    /// Its folder.
    pub path: PathBuf,
}

/// The list of what a checkpoint holds, written last.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    step: u64,
    /// By path within the checkpoint, with slashes.
    files: BTreeMap<String, Content>,
}

/// What a file of a checkpoint has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// Size in bytes.
    size: u64,
    /// CRC-32 (IEEE 802.3) of all bytes.
    crc32: u32,
}

impl Content {
    /// Reads a file to its end.
    fn of(path: &Path) -> std::io::Result<Self> {
        let (mut file, mut hasher, mut size) = (File::open(path)?, crc32fast::Hasher::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Self { size, crc32: hasher.finalize() }),
                n => {
                    hasher.update(&buffer[..n]);
                    size += n as u64;
                }
            }
        }
    }
}

impl RunDir {
    /// The complete checkpoints, oldest first.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>, RunDirError> {
        let dir = self.checkpoints_dir();
        let mut found = Vec::new();
        for (name, path) in entries(&dir)? {
            if let Some(step) = step_of(&name)
                && is_complete(&path, step, Depth::Sizes)
            {
                found.push(Checkpoint { step, path });
            }
        }
        found.sort_by_key(|checkpoint| checkpoint.step);
        Ok(found)
    }

    /// The latest checkpoint.
    ///
    /// # Errors
    /// [`RunDirError::Damaged`] when it is not complete: going on from an earlier one, or from the beginning, would throw
    /// away what may still be mended. [`RunDirError::Io`].
    pub fn latest_checkpoint(&self) -> Result<Option<Checkpoint>, RunDirError> {
        let latest = self.checkpoints()?.pop();
        let newest = entries(&self.checkpoints_dir())?
            .into_iter()
            .filter_map(|(name, path)| Some((step_of(&name)?, path)))
            .max_by_key(|(step, _)| *step);
        match newest {
            Some((step, path)) if latest.as_ref().is_none_or(|checkpoint| checkpoint.step < step) => {
                Err(RunDirError::Damaged { path, earlier: latest.map(|checkpoint| checkpoint.step) })
            }
            _ => match latest {
                Some(last) if !is_complete(&last.path, last.step, Depth::Bytes) => {
                    let earlier = self.checkpoints()?.iter().rev().nth(1).map(|checkpoint| checkpoint.step);
                    Err(RunDirError::Damaged { path: last.path, earlier })
                }
                latest => Ok(latest),
            },
        }
    }

    /// Writes the checkpoint of iteration `step` and then deletes all but the latest `keep` (at least one). `fill`
    /// writes the content into the empty folder it is given. If anything fails, the checkpoints there were before are
    /// untouched.
    ///
    /// # Errors
    /// [`RunDirError::Checkpoint`] when `fill` fails, [`RunDirError::Io`].
    pub fn write_checkpoint<E: std::fmt::Display>(
        &self,
        step: u64,
        keep: usize,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Checkpoint, RunDirError> {
        let dir = self.checkpoints_dir();
        std::fs::create_dir_all(&dir).map_err(io_error("make the folder", &dir))?;
        let path = dir.join(format!("{PREFIX}{step}"));
        let temporary = temporary_name(&path);
        if let Err(error) = fill_and_seal(&temporary, step, fill) {
            // Best effort: half a checkpoint is ignored by readers and goes with the next tidying.
            let _ = std::fs::remove_dir_all(&temporary);
            return Err(match error {
                Failure::Fill(message) => RunDirError::Checkpoint { step, path: dir, message },
                Failure::Io(error) => error,
            });
        }
        // A resumed run may reach an iteration again whose old checkpoint is still there.
        let replaced = temporary_name(&dir.join(format!("{PREFIX}{step}.replaced")));
        if path.exists() {
            std::fs::rename(&path, &replaced).map_err(io_error("move away", &path))?;
        }
        std::fs::rename(&temporary, &path).map_err(io_error("rename", &temporary))?;
        sync_dir(&dir);
        if replaced.exists() {
            std::fs::remove_dir_all(&replaced).map_err(io_error("remove", &replaced))?;
        }
        self.forget_old_checkpoints(keep)?;
        Ok(Checkpoint { step, path })
    }

    /// Deletes the checkpoints after `last_step`: a run that goes on from there writes them again.
    pub(super) fn remove_checkpoints_after(&self, last_step: u64) -> Result<(), RunDirError> {
        let later = self.checkpoints()?.into_iter().filter(|checkpoint| checkpoint.step > last_step);
        later.into_iter().try_for_each(|checkpoint| remove(&checkpoint.path))
    }

    fn forget_old_checkpoints(&self, keep: usize) -> Result<(), RunDirError> {
        let all = self.checkpoints()?;
        let surplus = all.len().saturating_sub(keep.max(1));
        all.iter().take(surplus).try_for_each(|checkpoint| remove(&checkpoint.path))
    }
}

/// The iteration that a checkpoint's folder name speaks of.
fn step_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

enum Failure {
    Fill(String),
    Io(RunDirError),
}

fn fill_and_seal<E: std::fmt::Display>(
    temporary: &Path,
    step: u64,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), Failure> {
    let io = |action, path: &Path| {
        let wrap = io_error(action, path);
        move |error| Failure::Io(wrap(error))
    };
    if temporary.exists() {
        std::fs::remove_dir_all(temporary).map_err(io("remove", temporary))?;
    }
    std::fs::create_dir(temporary).map_err(io("make the folder", temporary))?;
    fill(temporary).map_err(|error| Failure::Fill(error.to_string()))?;
    let mut manifest = Manifest { step, files: BTreeMap::new() };
    list_files(temporary, "", &mut manifest.files).map_err(Failure::Io)?;
    for name in manifest.files.keys() {
        let path = temporary.join(name);
        File::open(&path).and_then(|file| file.sync_all()).map_err(io("write", &path))?;
    }
    let path = temporary.join(MANIFEST);
    let text = serde_json::to_string_pretty(&manifest).map_err(std::io::Error::other).map_err(io("write", &path))?;
    super::atomic::write_atomic(&path, text.as_bytes()).map_err(Failure::Io)
}

/// How closely a checkpoint is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Every file has its size.
    Sizes,
    /// And every byte is what was written, as far as a checksum can tell.
    Bytes,
}

/// A checkpoint is complete when its manifest names its step and every file in it is as it was written.
fn is_complete(path: &Path, step: u64, depth: Depth) -> bool {
    let manifest = std::fs::read(path.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok());
    manifest.is_some_and(|manifest| {
        let whole = |(name, content): (&String, &Content)| {
            let path = path.join(name);
            std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() == content.size)
                && (depth == Depth::Sizes || Content::of(&path).is_ok_and(|found| found == *content))
        };
        manifest.step == step && manifest.files.iter().all(whole)
    })
}

/// Deletes a checkpoint. Renaming comes first, so that a kill in between leaves no half of one under its name.
fn remove(path: &Path) -> Result<(), RunDirError> {
    let temporary = temporary_name(path);
    if temporary.exists() {
        std::fs::remove_dir_all(&temporary).map_err(io_error("remove", &temporary))?;
    }
    std::fs::rename(path, &temporary).map_err(io_error("remove", path))?;
    std::fs::remove_dir_all(&temporary).map_err(io_error("remove", &temporary))
}

/// Deletes what a kill has left half written or half deleted; a replaced checkpoint whose successor did not arrive
/// comes back.
pub(super) fn tidy(dir: &Path) -> Result<(), RunDirError> {
    for (name, path) in entries(dir)? {
        if !is_temporary(&name) {
            continue;
        }
        let replaced = name.trim_start_matches('.').strip_suffix(".replaced.tmp").map(|name| dir.join(name));
        match replaced {
            Some(original) if !original.exists() => {
                std::fs::rename(&path, &original).map_err(io_error("restore", &original))?;
            }
            _ => std::fs::remove_dir_all(&path).map_err(io_error("remove", &path))?,
        }
    }
    Ok(())
}

/// Names and paths of what a folder holds, sorted; nothing if it does not exist.
fn entries(dir: &Path) -> Result<Vec<(String, PathBuf)>, RunDirError> {
    let read = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(io_error("read the folder", dir))?,
    };
    let mut out = Vec::new();
    for entry in read {
        let entry = entry.map_err(io_error("read the folder", dir))?;
        out.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    out.sort();
    Ok(out)
}

fn list_files(dir: &Path, prefix: &str, out: &mut BTreeMap<String, Content>) -> Result<(), RunDirError> {
    for (name, path) in entries(dir)? {
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            list_files(&path, &format!("{name}/"), out)?;
        } else {
            out.insert(name, Content::of(&path).map_err(io_error("read", &path))?);
        }
    }
    Ok(())
}
