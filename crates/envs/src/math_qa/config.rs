//! Settings of the question-answering environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::read;
use crate::dataset::DataFiles;

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You solve mathematics problems. Work the problem out step by step, then answer with the \
                               result alone, without words or units.";

const KEYS: [&str; 4] = ["data_path", "val_path", "val_every", "compat"];

/// Settings of the question-answering environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MathQaConfig {
    /// File of the rows, as JSON Lines or a JSON list, also ending in `.gz`: `query` and `response` as in MetaMathQA,
    /// or
    /// `question` and `answer` as in GSM8K. Needed; no default.
    pub data_path: Option<String>,
    /// File of the validation rows. Default none: rows of `data_path` are kept for validation.
    pub val_path: Option<String>,
    /// Every how many-th row of `data_path` is for validation only, when there is no `val_path`, from 2. Default 10.
    pub val_every: Option<usize>,
    /// As the reference does it: one pool of rows for training and validation, no question in the state after a wrong
    /// answer. Default false.
    pub compat: bool,
}

impl MathQaConfig {
    /// Reads the settings from JSON; files are looked at when the environment is made.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys and wrong types.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        read(ENV_TYPE, config, &KEYS)
    }

    pub(super) fn files(&self) -> DataFiles<'_> {
        DataFiles {
            env_type: ENV_TYPE,
            rows_are: "`query` and `response`, or `question` and `answer`",
            data_path: self.data_path.as_deref(),
            val_path: self.val_path.as_deref(),
            val_every: self.val_every,
            shared: self.compat,
        }
    }
}
