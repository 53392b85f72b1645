//! Settings of the household environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use super::goal::TaskType;
use crate::EnvError;
use crate::config::{check_range, read, refuse};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You are in a room of a household and have a task. Walk to receptacles, open and close \
                               them, take and move objects, clean objects with a sinkbasin, heat them with a \
                               microwave, cool them with a fridge, use lamps. You can carry one object at a time. \
                               Answer with one of the admissible actions, word for word.";

const KEYS: [&str; 3] = ["task_types", "eval_dataset", "max_steps"];

/// Which houses validation plays in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalDataset {
    /// Houses that training shows too.
    #[default]
    EvalInDistribution,
    /// Houses that training never shows.
    EvalOutOfDistribution,
}

/// Settings of the household environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlfworldConfig {
    /// Kinds of tasks, at least one. Default all six.
    pub task_types: Vec<TaskType>,
    /// Houses of the validation games: `eval_in_distribution` or `eval_out_of_distribution`. Default
    /// `eval_in_distribution`.
    pub eval_dataset: EvalDataset,
    /// Actions, understood or not, after which the episode is truncated, from 1. Default 50.
    pub max_steps: usize,
}

impl Default for AlfworldConfig {
    fn default() -> Self {
        Self { task_types: TaskType::ALL.to_vec(), eval_dataset: EvalDataset::default(), max_steps: 50 }
    }
}

impl AlfworldConfig {
    /// Reads the settings from JSON and checks them.
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
        if self.task_types.is_empty() {
            return Err(refuse(ENV_TYPE, "setting `task_types`: expected at least one kind of task, found none"));
        }
        check_range(ENV_TYPE, "max_steps", self.max_steps, 1, 1_000_000)
    }
}
