//! Settings of the search environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};
use crate::dataset::DataFiles;

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You answer questions with the help of a search engine. Write search[words] to look for \
                               documents and finish[answer] when you know the answer. Keep the answer short: a name, a \
                               number, a date, yes or no. For example: search[capital of France], later finish[Paris].";

const KEYS: [&str; 11] = [
    "data_path",
    "val_path",
    "val_every",
    "corpus_path",
    "passage_words",
    "retrieval_url",
    "timeout_s",
    "mock_mode",
    "top_k",
    "max_steps",
    "compat",
];

/// Settings of the search environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchQaConfig {
    /// File of the questions, as JSON Lines or a JSON list, also ending in `.gz`: `question`, and `ground_truth`,
    /// `golden_answers`, `answers` or `answer` as text or a list of texts. Needed; no default.
    pub data_path: Option<String>,
    /// File of the validation questions. Default none: rows of `data_path` are kept for validation.
    pub val_path: Option<String>,
    /// Every how many-th row of `data_path` is for validation only, when there is no `val_path`, from 2. Default 10.
    pub val_every: Option<usize>,
    /// Folder or file of documents, searched in memory with BM25. One of this, `retrieval_url` and `mock_mode` is
    /// needed.
    pub corpus_path: Option<String>,
    /// Words of a passage that text files in `corpus_path` are cut into, from 10. Default 100.
    pub passage_words: usize,
    /// Address of a retrieval server, e.g. `http://127.0.0.1:8000`. Default none.
    pub retrieval_url: Option<String>,
    /// Seconds that the retrieval server may take for an answer, above 0. Default 30.
    pub timeout_s: f64,
    /// Every search finds the same two placeholder documents. Default false.
    pub mock_mode: bool,
    /// Documents that a search shows, 1 to 50. Default 5.
    pub top_k: usize,
    /// Searches after which the episode is truncated, from 1. Default 10.
    pub max_steps: usize,
    /// As the reference does it: one pool of questions, the first 20,000, for training and validation; a retrieval
    /// server that fails is told to the agent instead of ending the episode with an error. Default false.
    pub compat: bool,
}

impl Default for SearchQaConfig {
    fn default() -> Self {
        Self {
            data_path: None,
            val_path: None,
            val_every: None,
            corpus_path: None,
            passage_words: 100,
            retrieval_url: None,
            timeout_s: 30.0,
            mock_mode: false,
            top_k: 5,
            max_steps: 10,
            compat: false,
        }
    }
}

impl SearchQaConfig {
    /// Reads the settings from JSON and checks them; files and servers are looked at when the environment is made.
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
        check_range(ENV_TYPE, "passage_words", self.passage_words, 10, 1_000_000)?;
        check_range(ENV_TYPE, "timeout_s", self.timeout_s, 0.001, 86_400.0)?;
        check_range(ENV_TYPE, "top_k", self.top_k, 1, 50)?;
        check_range(ENV_TYPE, "max_steps", self.max_steps, 1, 1_000_000)?;
        let mut given = Vec::new();
        given.extend(self.corpus_path.as_ref().map(|_| "corpus_path"));
        given.extend(self.retrieval_url.as_ref().map(|_| "retrieval_url"));
        given.extend(self.mock_mode.then_some("mock_mode"));
        match given[..] {
            [_] => Ok(()),
            [] => Err(refuse(
                ENV_TYPE,
                "nothing to search in; give `corpus_path` (a folder of documents), `retrieval_url` (a retrieval server) \
                 or `mock_mode: true`",
            )),
            _ => Err(refuse(ENV_TYPE, format!("expected one place to search in, found {}", given.join(" and ")))),
        }
    }

    pub(super) fn files(&self) -> DataFiles<'_> {
        DataFiles {
            env_type: ENV_TYPE,
            rows_are: "`question` and `ground_truth`",
            data_path: self.data_path.as_deref(),
            val_path: self.val_path.as_deref(),
            val_every: self.val_every,
            shared: self.compat,
        }
    }
}
