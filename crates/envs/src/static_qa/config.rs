//! Settings of the environment of static questions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::read;
use crate::dataset::DataFiles;

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You answer questions. Think first, then give the answer alone: a number or an \
                               expression, or the letter of the right choice where choices are listed.";

const KEYS: [&str; 5] = ["dataset", "data_path", "val_path", "val_every", "compat"];

/// The shape of the rows and the way their answers are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dataset {
    /// `query` and `response`; equal but for case, punctuation and white space.
    Metamathqa,
    /// `question` and `answer`; the first number, or the text.
    #[default]
    Gsm8k,
    /// `question`, four `choices` and `answer`; the letter.
    Mmlu,
}

/// Settings of the environment of static questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticQaConfig {
    /// `metamathqa`, `gsm8k` or `mmlu`. Default `gsm8k`.
    pub dataset: Dataset,
    /// File of the rows, as JSON Lines or a JSON list, also ending in `.gz`. Needed; no default.
    pub data_path: Option<String>,
    /// File of the validation rows. Default none: rows of `data_path` are kept for validation.
    pub val_path: Option<String>,
    /// Every how many-th row of `data_path` is for validation only, when there is no `val_path`, from 2. Default 10.
    pub val_every: Option<usize>,
    /// As the reference does it: one pool of rows for training and validation, no question in the state after a wrong
    /// answer, and any capital A to D counts as a choice, wherever it stands. Default false.
    pub compat: bool,
}

impl StaticQaConfig {
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
            rows_are: match self.dataset {
                Dataset::Metamathqa => "`query` and `response`",
                Dataset::Gsm8k => "`question` and `answer`",
                Dataset::Mmlu => "`question`, `choices` and `answer`",
            },
            data_path: self.data_path.as_deref(),
            val_path: self.val_path.as_deref(),
            val_every: self.val_every,
            shared: self.compat,
        }
    }
}
