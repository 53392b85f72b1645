//! Settings of the proof environment.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read};
use crate::dataset::DataFiles;

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You prove theorems in Lean 4 with Mathlib, one tactic after the other. Every tactic is \
                               appended to the proof and checked; one that Lean refuses is taken back. Look at the \
                               messages, then give the next tactic.";

const KEYS: [&str; 7] = ["data_path", "val_path", "val_every", "server_url", "timeout_s", "max_steps", "compat"];

/// Settings of the proof environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeanConfig {
    /// File of the theorems, as JSON Lines or a JSON list, also ending in `.gz`: `name`, `formal_statement` (ending in
    /// `:= by`, with or without `sorry`), optional `natural_language_statement` and `tactics`. Needed; no default.
    pub data_path: Option<String>,
    /// File of the validation theorems. Default none: rows of `data_path` are kept for validation.
    pub val_path: Option<String>,
    /// Every how many-th row of `data_path` is for validation only, when there is no `val_path`, from 2. Default 10.
    pub val_every: Option<usize>,
    /// Address of the Kimina Lean server. Default `http://127.0.0.1:8000`.
    pub server_url: String,
    /// Seconds that Lean may take for a file, 1 to 86,400; whole seconds count. Default 30.
    pub timeout_s: f64,
    /// Tactics after which the episode is truncated, from 1. Default 100.
    pub max_steps: usize,
    /// As the reference does it: one pool of theorems for training and validation; a server that fails is a rejected
    /// tactic instead of an error. Default false.
    pub compat: bool,
}

impl Default for LeanConfig {
    fn default() -> Self {
        Self {
            data_path: None,
            val_path: None,
            val_every: None,
            server_url: "http://127.0.0.1:8000".to_owned(),
            timeout_s: 30.0,
            max_steps: 100,
            compat: false,
        }
    }
}

impl LeanConfig {
    /// Reads the settings from JSON and checks them; the file and the server are looked at when the environment is
    /// made.
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
        check_range(ENV_TYPE, "timeout_s", self.timeout_s, 1.0, 86_400.0)?;
        check_range(ENV_TYPE, "max_steps", self.max_steps, 1, 1_000_000)
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }

    pub(super) fn files(&self) -> DataFiles<'_> {
        DataFiles {
            env_type: ENV_TYPE,
            rows_are: "`name` and `formal_statement`",
            data_path: self.data_path.as_deref(),
            val_path: self.val_path.as_deref(),
            val_every: self.val_every,
            shared: self.compat,
        }
    }
}
