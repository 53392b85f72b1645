//! Writing so that a name always stands for something complete: temporary name, to the disk, rename.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{RunDirError, io_error};

/// Writes a file under a temporary name beside it, puts it on the disk and renames it. A former file of that name stays
/// as it is until then, and for good if anything fails.
///
/// # Errors
/// [`RunDirError::Io`].
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<(), RunDirError> {
    let temporary = temporary_name(path);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, path)) {
        // Best effort: what is left of it does no harm, and the first error is the one to report.
        let _ = std::fs::remove_file(&temporary);
        return Err(io_error("write", path)(error));
    }
    sync_dir(path.parent().unwrap_or(Path::new(".")));
    Ok(())
}

/// The hidden name beside `path` that half-written content has.
pub(super) fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// Whether a file name is that of half-written content.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Puts the names in a folder on the disk, where the system can do that. A failure is not reported: the content is
/// safe, and some file systems refuse.
pub(super) fn sync_dir(path: &Path) {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    if let Ok(dir) = File::open(path) {
        let _ = dir.sync_all();
    }
}
