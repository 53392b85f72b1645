//! Data files of the text environments: JSON Lines or a JSON list, plain or compressed with gzip, read once a process,
//! and the division of their rows into training and validation.
//!
//! What is not here: what a row means; every environment reads its own.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use crate::config::{check_range, refuse};
use crate::{EnvError, Split};

/// Every how many-th row is kept for validation when there is no file of its own for it.
pub(crate) const VAL_EVERY: usize = 10;
/// Bytes of text, after decompression, that a data file may have.
const MAX_BYTES: u64 = 8 << 30;

/// The settings of an environment that say where its rows are.
pub(crate) struct DataFiles<'a> {
    /// Registry name, for messages.
    pub env_type: &'static str,
    /// What a row holds, for messages; files that are read in different ways must differ in it.
    pub rows_are: &'static str,
    /// Setting `data_path`.
    pub data_path: Option<&'a str>,
    /// Setting `val_path`.
    pub val_path: Option<&'a str>,
    /// Setting `val_every`.
    pub val_every: Option<usize>,
    /// One pool for training and validation, as the reference has it.
    pub shared: bool,
}

/// The rows of an environment, those for validation apart from those for training.
pub(crate) struct Pools<T> {
    train: Arc<Vec<T>>,
    /// A file of its own for validation.
    val: Option<Arc<Vec<T>>>,
    /// Without such a file: every how many-th row is for validation; 0 when both splits share all rows.
    every: usize,
}

impl<T: Send + Sync + 'static> Pools<T> {
    /// Reads the files, or takes them from memory when this process has read them before.
    ///
    /// # Errors
    /// [`EnvError::Config`] when `data_path` is missing, a file cannot be read, a row is not what it should be, or
    /// there are too few rows to keep some for validation.
    pub fn open(files: &DataFiles<'_>, parse: fn(&Value) -> Result<T, String>) -> Result<Self, EnvError> {
        let DataFiles { env_type, rows_are, val_every, shared, .. } = *files;
        let Some(path) = files.data_path else {
            return Err(refuse(
                env_type,
                format!("setting `data_path`: expected a JSON Lines file ({rows_are}), found none; name one"),
            ));
        };
        if let Some(every) = val_every {
            check_range(env_type, "val_every", every, 2, 1_000_000)?;
            let other = if shared { Some("compat") } else { files.val_path.map(|_| "val_path") };
            if let Some(other) = other {
                return Err(refuse(env_type, format!("`val_every` has no effect together with `{other}`; give one")));
            }
        }
        if shared && files.val_path.is_some() {
            return Err(refuse(env_type, "`val_path` has no effect together with `compat`; give one"));
        }
        let train = rows(env_type, rows_are, "data_path", path, parse)?;
        let val = match files.val_path {
            Some(path) => Some(rows(env_type, rows_are, "val_path", path, parse)?),
            None => None,
        };
        let every = if shared { 0 } else { val_every.unwrap_or(VAL_EVERY) };
        if val.is_none() && every > 0 && train.len() < every {
            return Err(refuse(
                env_type,
                format!(
                    "every {every}th row is kept for validation, but {path} has only {}; give `val_path` or a smaller \
                     `val_every`",
                    train.len()
                ),
            ));
        }
        Ok(Self { train, val, every })
    }
}

impl<T> Pools<T> {
    /// Rows of a split; at least one.
    pub fn len(&self, split: Split) -> usize {
        match (split, &self.val) {
            (Split::Val, Some(val)) => val.len(),
            (Split::Train, Some(_)) => self.train.len(),
            (_, None) if self.every == 0 => self.train.len(),
            (Split::Val, None) => self.train.len() / self.every,
            (Split::Train, None) => self.train.len() - self.train.len() / self.every,
        }
    }

    /// Row `i` of a split.
    pub fn get(&self, split: Split, i: usize) -> Option<&T> {
        match (split, &self.val) {
            (Split::Val, Some(val)) => val.get(i),
            (Split::Train, Some(_)) => self.train.get(i),
            (_, None) if self.every == 0 => self.train.get(i),
            (Split::Val, None) => self.train.get(i * self.every + self.every - 1),
            (Split::Train, None) => self.train.get(i + i / (self.every - 1)),
        }
    }
}

/// What tells whether a file is still the one that was read.
type Stamp = (u64, Option<SystemTime>);
type Cached = (Stamp, Arc<dyn Any + Send + Sync>);

/// What was read before, by what it was read as and the path: the members of all groups share it.
static CACHE: Mutex<BTreeMap<(&'static str, PathBuf), Cached>> = Mutex::new(BTreeMap::new());

/// Whatever `read` makes of the file or folder at `path`; made once a process, unless the file changes.
///
/// # Errors
/// [`EnvError::Config`] when nothing is there, and those of `read`.
pub(crate) fn cached<T: Send + Sync + 'static>(
    env_type: &str,
    read_as: &'static str,
    setting: &str,
    path: &str,
    read: impl FnOnce(&Path) -> Result<T, EnvError>,
) -> Result<Arc<T>, EnvError> {
    let path = PathBuf::from(path);
    let meta = std::fs::metadata(&path)
        .map_err(|error| refuse(env_type, format!("setting `{setting}`: cannot read {}: {error}", path.display())))?;
    let stamp = (meta.len(), meta.modified().ok());
    let key = (read_as, path);
    // Held while reading, so that many environments made at once do not all read the file.
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, value)) = cache.get(&key)
        && *known == stamp
        && let Ok(value) = Arc::clone(value).downcast::<T>()
    {
        return Ok(value);
    }
    let value = Arc::new(read(&key.1)?);
    cache.insert(key, (stamp, Arc::clone(&value) as Arc<dyn Any + Send + Sync>));
    Ok(value)
}

/// All rows of a file.
fn rows<T: Send + Sync + 'static>(
    env_type: &str,
    rows_are: &'static str,
    setting: &str,
    path: &str,
    parse: fn(&Value) -> Result<T, String>,
) -> Result<Arc<Vec<T>>, EnvError> {
    cached(env_type, rows_are, setting, path, |path| {
        let fail = |message: String| refuse(env_type, format!("setting `{setting}`: {}: {message}", path.display()));
        let mut rows = Vec::new();
        for (place, value) in values(path).map_err(fail)? {
            rows.push(parse(&value).map_err(|message| fail(format!("{place}: {message}")))?);
        }
        if rows.is_empty() {
            return Err(fail("expected at least one row, found none".to_owned()));
        }
        Ok(rows)
    })
}

/// The JSON values of a file, each with its place in words.
pub(crate) fn values(path: &Path) -> Result<Vec<(String, Value)>, String> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let (name, text): (&str, Box<dyn Read>) = match name.strip_suffix(".gz") {
        Some(inner) => (inner, Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file)))),
        None => (&name, Box::new(file)),
    };
    let mut reader = BufReader::new(text.take(MAX_BYTES));
    if name.ends_with(".json") {
        let list: Vec<Value> = serde_json::from_reader(reader).map_err(|error| format!("expected a list: {error}"))?;
        return Ok(list.into_iter().enumerate().map(|(i, value)| (format!("item {}", i + 1), value)).collect());
    }
    let mut found = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|error| format!("line {number}: {error}"))? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let value = serde_json::from_slice(&line).map_err(|error| format!("line {number}: {error}"))?;
        found.push((format!("line {number}"), value));
    }
    Ok(found)
}

/// The text under a key of a row.
///
/// # Errors
/// What was expected and what was found.
pub(crate) fn text<'a>(row: &'a Value, key: &str) -> Result<&'a str, String> {
    match row.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("`{key}`: expected text, found {}", kind(other))),
        None => Err(format!("expected the key `{key}`, found {}", keys(row))),
    }
}

/// The keys of a row in words.
pub(crate) fn keys(row: &Value) -> String {
    match row {
        Value::Object(object) if !object.is_empty() => {
            let names: Vec<String> = object.keys().take(12).map(|key| format!("`{key}`")).collect();
            format!("the keys {}", names.join(", "))
        }
        other => kind(other).to_owned(),
    }
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(object) if object.is_empty() => "an empty mapping",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn number(row: &Value) -> Result<i64, String> {
        row.get("n").and_then(Value::as_i64).ok_or_else(|| format!("expected the key `n`, found {}", keys(row)))
    }

    fn file(dir: &tempfile::TempDir, name: &str, text: &[u8]) -> String {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a name").to_owned()
    }

    fn files<'a>(data_path: Option<&'a str>, val_every: Option<usize>) -> DataFiles<'a> {
        DataFiles { env_type: "test", rows_are: "numbers", data_path, val_path: None, val_every, shared: false }
    }

    #[test]
    fn every_row_is_in_one_pool() {
        let dir = tempfile::tempdir().expect("a folder");
        let text: String = (0..23).map(|n| format!("{{\"n\": {n}}}\n\n")).collect();
        let path = file(&dir, "rows.jsonl", text.as_bytes());
        for every in [2, 3, 10, 23] {
            let pools = Pools::open(&files(Some(&path), Some(every)), number).expect("rows");
            let all = |split| -> Vec<i64> {
                let rows = (0..pools.len(split)).map(|i| *pools.get(split, i).expect("a row")).collect();
                assert_eq!(pools.get(split, pools.len(split)), None);
                rows
            };
            let (train, val) = (all(Split::Train), all(Split::Val));
            assert!(val.iter().all(|n| (n + 1) % every as i64 == 0), "{val:?}");
            let mut both = [train, val].concat();
            both.sort_unstable();
            assert_eq!(both, (0..23).collect::<Vec<_>>());
        }
        let shared = DataFiles { shared: true, ..files(Some(&path), None) };
        let pools = Pools::open(&shared, number).expect("rows");
        assert_eq!((pools.len(Split::Train), pools.len(Split::Val)), (23, 23));
    }

    #[test]
    fn lists_and_compressed_files_are_read_alike() {
        let dir = tempfile::tempdir().expect("a folder");
        let list: Vec<Value> = (0..12).map(|n| serde_json::json!({ "n": n })).collect();
        let list = serde_json::to_vec(&list).expect("JSON");
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zipped.write_all(&list).expect("compressed");
        let zipped = zipped.finish().expect("compressed");
        for path in [file(&dir, "a.json", &list), file(&dir, "a.json.gz", &zipped)] {
            let pools = Pools::open(&files(Some(&path), None), number).expect("rows");
            assert_eq!((pools.len(Split::Train), pools.len(Split::Val)), (11, 1));
            assert_eq!(pools.get(Split::Val, 0), Some(&9));
        }
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = file(&dir, "c.jsonl", b"{\"n\": 1}\n{\"n\": 2}\n");
        let first = Pools::open(&files(Some(&path), Some(2)), number).expect("rows");
        let again = Pools::open(&files(Some(&path), Some(2)), number).expect("rows");
        assert!(Arc::ptr_eq(&first.train, &again.train));
        file(&dir, "c.jsonl", b"{\"n\": 10}\n{\"n\": 20}\n");
        assert_eq!(Pools::open(&files(Some(&path), Some(2)), number).expect("rows").get(Split::Train, 0), Some(&10));
    }

    #[test]
    fn bad_files_are_refused_with_the_place() {
        let dir = tempfile::tempdir().expect("a folder");
        let good = file(&dir, "good.jsonl", b"{\"n\": 1}\n{\"n\": 2}\n");
        let message = |files: &DataFiles<'_>| match Pools::open(files, number) {
            Ok(_) => panic!("accepted"),
            Err(error) => error.to_string(),
        };
        for (path, every, expected) in [
            (None, None, "`data_path`: expected a JSON Lines file (numbers), found none"),
            (Some("/nowhere/rows.jsonl"), None, "cannot read /nowhere/rows.jsonl"),
            (Some(&*good), None, "every 10th row is kept for validation, but"),
            (Some(&*good), Some(1), "`val_every`: expected a value from 2"),
            (Some(&*file(&dir, "x.jsonl", b"{\"n\": 1}\n{\"n\": ")), Some(2), "line 2: EOF"),
            (
                Some(&*file(&dir, "y.jsonl", b"{\"n\": 1}\n\n{\"m\": 1}\n")),
                Some(2),
                "line 3: expected the key `n`, found the keys `m`",
            ),
            (Some(&*file(&dir, "z.jsonl", b"\n")), Some(2), "at least one row"),
            (Some(&*file(&dir, "u.jsonl", b"{\"n\": \"\xff\"}\n")), Some(2), "line 1"),
            (Some(&*file(&dir, "l.json", b"{\"n\": 1}")), Some(2), "expected a list"),
            (Some(&*file(&dir, "g.jsonl.gz", b"{\"n\": 1}\n{\"n\": 2}\n")), Some(2), "line 1: invalid gzip"),
        ] {
            let found = message(&files(path, every));
            assert!(found.contains(expected), "expected {expected:?} in {found:?}");
        }
        let both = DataFiles { val_path: Some(&good), ..files(Some(&good), Some(2)) };
        assert!(message(&both).contains("`val_every` has no effect together with `val_path`"));
    }
}
