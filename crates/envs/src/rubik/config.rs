//! Settings of the Rubik's cube environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You solve a 2x2 Rubik's cube. Turn faces until every face shows one colour. U, D, L, R, \
                               F and B turn the up, down, left, right, front and back face a quarter clockwise, as seen \
                               from outside; with ' the turn is anticlockwise.";

const KEYS: [&str; 3] = ["scramble_depth", "max_steps", "compat"];

/// Settings of the Rubik's cube environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RubikConfig {
    /// Random quarter turns that scramble the cube, 1 to 1,000. Default 5.
    pub scramble_depth: usize,
    /// Turns after which the episode is truncated, from 1. Default 20.
    pub max_steps: usize,
    /// As in RAGEN, B and B' take corners apart, and a scramble may undo itself and leave the cube solved. Default false:
    /// they turn the back face like any other, and such a scramble is drawn again.
    pub compat: bool,
}

impl Default for RubikConfig {
    fn default() -> Self {
        Self { scramble_depth: 5, max_steps: 20, compat: false }
    }
}

impl RubikConfig {
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
        check_range(ENV_TYPE, "scramble_depth", self.scramble_depth, 1, 1000)?;
        check_range(ENV_TYPE, "max_steps", self.max_steps, 1, 1_000_000)
    }
}
