//! Levels from files in Boxoban's format, which is the common text format of Sokoban levels.
//!
//! `#` wall, `@` player, `+` player on target, `$` box, `*` box on target, `.` target, a blank floor; a line that begins
//! with `;` ends one level and names the next. Boxoban's own are 10 × 10 with four boxes, a thousand a file; other sizes
//! up to 64 × 64 are read as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::{Board, Cell, ENV_TYPE, SokobanConfig};
use crate::config::{check_range, refuse};
use crate::{EnvError, Split};

/// Rows and columns a level may have.
const MAX_SIDE: usize = 64;

/// Levels in the order of their files, the files of a folder by name.
#[derive(Debug, Default)]
pub struct Levels {
    text: String,
    /// Where each level begins and ends in `text`.
    spans: Vec<(usize, usize)>,
}

impl Levels {
    /// Reads the levels of a text.
    ///
    /// # Errors
    /// The line and what is wrong there; a text without levels.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut levels = Self::default();
        levels.add(text)?;
        levels.not_empty()
    }

    /// Reads a file, or all files ending in `.txt` in a folder and the folders in it.
    ///
    /// # Errors
    /// The file and what is wrong; a folder without levels.
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut levels = Self::default();
        for file in files(path)? {
            let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            levels.add(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        levels.not_empty()
    }

    /// Number of levels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Level `i` as a board.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Board> {
        let &(start, end) = self.spans.get(i)?;
        level(self.text.get(start..end)?).ok()
    }

    fn not_empty(self) -> Result<Self, String> {
        if self.is_empty() { Err("expected at least one level, found none".to_owned()) } else { Ok(self) }
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        let mut first_line = None;
        let mut open = String::new();
        // A last line that ends the last level.
        for (number, line) in text.lines().chain(std::iter::once(";")).enumerate() {
            if !line.starts_with(';') && !line.trim().is_empty() {
                first_line.get_or_insert(number + 1);
                open.push_str(line.trim_end());
                open.push('\n');
                continue;
            }
            if let Some(first) = first_line.take() {
                level(&open).map_err(|error| format!("the level at line {first}: {error}"))?;
                self.spans.push((self.text.len(), self.text.len() + open.len()));
                self.text.push_str(&open);
                open.clear();
            }
        }
        Ok(())
    }
}

/// Every how many-th level is kept for validation when there is no file of its own for it.
const VAL_EVERY: usize = 10;

/// The levels of an environment, those for validation apart from those for training.
pub(super) struct Pools {
    train: Arc<Levels>,
    /// Levels of their own for validation.
    val: Option<Arc<Levels>>,
    /// Without them: every how many-th level is for validation.
    every: usize,
}

impl Pools {
    /// The levels that the settings name; `None` when levels are to be generated.
    pub fn open(config: &SokobanConfig) -> Result<Option<Self>, EnvError> {
        let Some(path) = &config.data_path else {
            return match (&config.val_path, config.val_every) {
                (None, None) => Ok(None),
                _ => {
                    Err(refuse(ENV_TYPE, "`val_path` and `val_every` need `data_path`, a file of levels; give it too"))
                }
            };
        };
        if config.val_path.is_some() && config.val_every.is_some() {
            return Err(refuse(ENV_TYPE, "`val_every` has no effect together with `val_path`; give one"));
        }
        let train = shared("data_path", path)?;
        let val = config.val_path.as_ref().map(|path| shared("val_path", path)).transpose()?;
        let every = config.val_every.unwrap_or(VAL_EVERY);
        check_range(ENV_TYPE, "val_every", every, 2, 1_000_000)?;
        if val.is_none() && train.len() < every {
            return Err(refuse(
                ENV_TYPE,
                format!(
                    "every {every}th level is kept for validation, but {path} has only {}; give `val_path` or a \
                     smaller `val_every`",
                    train.len()
                ),
            ));
        }
        Ok(Some(Self { train, val, every }))
    }

    /// The level of a seed: seeds count through the levels of the split and begin again at their end.
    pub fn level(&self, seed: u64, split: Split) -> Option<Board> {
        let nth = |count: usize| usize::try_from(seed % count.max(1) as u64).unwrap_or(0);
        let held_out = self.train.len() / self.every;
        match (split, &self.val) {
            (Split::Val, Some(val)) => val.get(nth(val.len())),
            (Split::Train, Some(_)) => self.train.get(nth(self.train.len())),
            (Split::Val, None) => self.train.get(nth(held_out) * self.every + self.every - 1),
            (Split::Train, None) => {
                let i = nth(self.train.len() - held_out);
                self.train.get(i + i / (self.every - 1))
            }
        }
    }
}

/// Size and time of change of a file that was read, and its levels.
type Known = (u64, Option<SystemTime>, Arc<Levels>);

/// The levels at a path, read once a process unless the file changes: the members of all groups share them.
fn shared(setting: &str, path: &str) -> Result<Arc<Levels>, EnvError> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());
    let fail = |error: String| refuse(ENV_TYPE, format!("setting `{setting}`: {error}"));
    let path = PathBuf::from(path);
    let meta = std::fs::metadata(&path).map_err(|error| fail(format!("cannot read {}: {error}", path.display())))?;
    let (size, changed) = (meta.len(), meta.modified().ok());
    // Held while reading, so that many environments made at once do not all read the file.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known_size, known_change, levels)) = known.get(&path)
        && (*known_size, *known_change) == (size, changed)
    {
        return Ok(Arc::clone(levels));
    }
    let levels = Arc::new(Levels::read(&path).map_err(fail)?);
    known.insert(path, (size, changed, Arc::clone(&levels)));
    Ok(levels)
}

/// The files that a path stands for, sorted.
fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut entries = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>())
        .map_err(fail)?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry)?);
        } else if entry.extension().is_some_and(|extension| extension == "txt") {
            found.push(entry);
        }
    }
    Ok(found)
}

/// The board of one level.
fn level(text: &str) -> Result<Board, String> {
    let rows: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let cols = rows.iter().map(Vec::len).max().unwrap_or(0);
    if rows.len() > MAX_SIDE || cols > MAX_SIDE {
        return Err(format!("expected at most {MAX_SIDE} rows and columns, found {} × {cols}", rows.len()));
    }
    let (mut fixed, mut state) = (Vec::new(), Vec::new());
    for row in &rows {
        for col in 0..cols {
            // What lies beyond the end of a line is outside.
            let (below, above) = match row.get(col).copied().unwrap_or('#') {
                '#' => (Cell::Wall, Cell::Wall),
                ' ' | '-' | '_' => (Cell::Floor, Cell::Floor),
                '.' => (Cell::Target, Cell::Target),
                '$' => (Cell::Floor, Cell::Box),
                '*' => (Cell::Target, Cell::BoxOnTarget),
                '@' => (Cell::Floor, Cell::Player),
                '+' => (Cell::Target, Cell::Player),
                other => return Err(format!("expected one of `# @ + $ * .` and blanks, found {other:?}")),
            };
            fixed.push(below);
            state.push(above);
        }
    }
    let count = |cells: &[Cell], kind: Cell| cells.iter().filter(|&&cell| cell == kind).count();
    let (boxes, targets) = (state.iter().filter(|cell| cell.is_box()).count(), count(&fixed, Cell::Target));
    if boxes == 0 || boxes != targets {
        return Err(format!("expected as many boxes as targets and at least one, found {boxes} and {targets}"));
    }
    let players = count(&state, Cell::Player);
    Board::new(rows.len(), cols, fixed, state).ok_or_else(|| format!("expected one player, found {players}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_with_or_without_numbers() {
        let text = "; 0\n#####\n#@$.#\n#####\n\n; 1\n  ####\n###  #\n#+$ *#\n######\n";
        let levels = Levels::parse(text).expect("levels");
        assert_eq!((levels.len(), levels.get(2)), (2, None));
        assert_eq!(levels.get(0).expect("a board").to_text(), "#####\n#PXO#\n#####");
        assert_eq!(levels.get(1).expect("a board").to_text(), "__####\n###__#\n#SX_√#\n######");
    }

    #[test]
    fn bad_levels_are_refused_with_the_line() {
        for (text, expected) in [
            ("", "at least one level"),
            ("; 0\n#####\n#@$.#\n#####\n; 1\n####\n#@?#\n####\n", "the level at line 6: expected one of"),
            ("#####\n#@$ #\n#####", "1 and 0"),
            ("#####\n# $.#\n#####", "expected one player, found 0"),
            ("#####\n#@  #\n#####", "0 and 0"),
            (&"#".repeat(65), "at most 64"),
        ] {
            let error = Levels::parse(text).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
        assert!(Levels::read(Path::new("/nowhere")).is_err());
    }
}
