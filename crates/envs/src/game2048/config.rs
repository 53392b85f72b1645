//! Settings of the 2048 environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{read, refuse};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You play 2048. Choose where all tiles slide: Up, Right, Down or Left. Two equal tiles \
                               that meet become one of twice the value, and a new tile appears after every move. Make \
                               the goal tile before no move is left. Answer with one action at a time.";

const KEYS: [&str; 3] = ["goal", "use_log_reward", "compat"];

/// Settings of the 2048 environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Game2048Config {
    /// The tile to be made, a power of two from 8 to 65536. Default 2048.
    pub goal: u64,
    /// Pay 0.1 · log2(1 + sum of merged tiles) for a move; otherwise the sum itself, and -0.1 for a move that moves
    /// nothing. Default true.
    pub use_log_reward: bool,
    /// As in RAGEN, making the goal tile does not end the game: it goes on until no move is left, and only then counts
    /// as a success. Default false.
    pub compat: bool,
}

impl Default for Game2048Config {
    fn default() -> Self {
        Self { goal: 2048, use_log_reward: true, compat: false }
    }
}

impl Game2048Config {
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
        if !self.goal.is_power_of_two() || !(8..=65536).contains(&self.goal) {
            return Err(refuse(
                ENV_TYPE,
                format!("setting `goal`: expected a power of two from 8 to 65536, found {}", self.goal),
            ));
        }
        Ok(())
    }
}
