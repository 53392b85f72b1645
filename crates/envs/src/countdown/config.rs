//! Settings of the Countdown environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You get some numbers and a target. Write an arithmetic expression that is worth the \
                               target and uses every number exactly once, with +, -, *, / and parentheses. For \
                               target 10 and the numbers 2, 3, 9 that would be 9 + 3 - 2.";

const KEYS: [&str; 5] = ["min_numbers", "max_numbers", "max_number", "max_target", "compat"];

/// Settings of the Countdown environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CountdownConfig {
    /// Fewest numbers of an instance, 2 to 8. Default 3.
    pub min_numbers: usize,
    /// Most numbers of an instance, 2 to 8. Default 4.
    pub max_numbers: usize,
    /// Numbers are drawn from 1 to this, 2 to 1,000,000. Default 99.
    pub max_number: u32,
    /// Targets lie between 1 and this, 2 to 1,000,000. Default 100.
    pub max_target: u32,
    /// As in RAGEN, training and validation draw from the same instances. Default false: of all instances every tenth,
    /// by what it consists of, is for validation only.
    pub compat: bool,
}

impl Default for CountdownConfig {
    fn default() -> Self {
        Self { min_numbers: 3, max_numbers: 4, max_number: 99, max_target: 100, compat: false }
    }
}

impl CountdownConfig {
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
        check_range(ENV_TYPE, "min_numbers", self.min_numbers, 2, 8)?;
        check_range(ENV_TYPE, "max_numbers", self.max_numbers, 2, 8)?;
        check_range(ENV_TYPE, "max_number", self.max_number, 2, 1_000_000)?;
        check_range(ENV_TYPE, "max_target", self.max_target, 2, 1_000_000)?;
        if self.min_numbers > self.max_numbers {
            return Err(refuse(
                ENV_TYPE,
                format!(
                    "`min_numbers` is {} and `max_numbers` {}; expected the former not to be larger",
                    self.min_numbers, self.max_numbers
                ),
            ));
        }
        Ok(())
    }
}
