//! Settings of the environment of programming problems.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use super::sandbox::{Limits, Mechanism};
use crate::EnvError;
use crate::config::{check_range, read};
use crate::dataset::DataFiles;

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You solve programming problems in Python 3. Think about the problem, then answer with \
                               the complete code and nothing else. The code is run on tests: as a program that reads \
                               standard input and prints, or through the function that the problem names.";

const KEYS: [&str; 9] =
    ["data_path", "val_path", "val_every", "python", "sandbox", "timeout_s", "memory_mb", "file_mb", "compat"];

/// Settings of the environment of programming problems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeTestsConfig {
    /// File of the problems, as JSON Lines or a JSON list, also ending in `.gz`: `problem`, `tests`, optional
    /// `starter_code`, `metadata`, `solution`. Needed; no default.
    pub data_path: Option<String>,
    /// File of the validation problems. Default none: rows of `data_path` are kept for validation.
    pub val_path: Option<String>,
    /// Every how many-th row of `data_path` is for validation only, when there is no `val_path`, from 2. Default 10.
    pub val_every: Option<usize>,
    /// The Python interpreter that runs answers, a name or a path. Default `python3`.
    pub python: String,
    /// What shuts programs in: `bwrap`, `unshare`, or `auto` for the first that works. Default `auto`.
    pub sandbox: Mechanism,
    /// Seconds for all tests of an answer together, above 0. Default 3.
    pub timeout_s: f64,
    /// Address space of a program in MiB, 64 to 65,536. Default 1024.
    pub memory_mb: u64,
    /// Size of a program's files, each and together, in MiB, 1 to 1024. Default 16.
    pub file_mb: u64,
    /// As the reference does it: one pool of problems for training and validation, results compared as text only, and
    /// Markdown fences are part of the code. Default false.
    pub compat: bool,
}

impl Default for CodeTestsConfig {
    fn default() -> Self {
        Self {
            data_path: None,
            val_path: None,
            val_every: None,
            python: "python3".to_owned(),
            sandbox: Mechanism::Auto,
            timeout_s: 3.0,
            memory_mb: 1024,
            file_mb: 16,
            compat: false,
        }
    }
}

impl CodeTestsConfig {
    /// Reads the settings from JSON and checks them; files and the sandbox are looked at when the environment is made.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let config: Self = read(ENV_TYPE, config, &KEYS)?;
        config.check()?;
        Ok(config)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`EnvError::Config`] with the setting, what was expected and what was found.
    pub fn check(&self) -> Result<(), EnvError> {
        check_range(ENV_TYPE, "timeout_s", self.timeout_s, 0.01, 3600.0)?;
        check_range(ENV_TYPE, "memory_mb", self.memory_mb, 64, 65_536)?;
        check_range(ENV_TYPE, "file_mb", self.file_mb, 1, 1024)
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            time: Duration::from_secs_f64(self.timeout_s),
            memory: self.memory_mb << 20,
            file_megabytes: self.file_mb,
        }
    }

    pub(super) fn files(&self) -> DataFiles<'_> {
        DataFiles {
            env_type: ENV_TYPE,
            rows_are: "`problem` and `tests`",
            data_path: self.data_path.as_deref(),
            val_path: self.val_path.as_deref(),
            val_every: self.val_every,
            shared: self.compat,
        }
    }
}
