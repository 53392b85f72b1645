//! Settings of the environment `external`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};

const KEYS: [&str; 11] = [
    "command",
    "working_dir",
    "env",
    "config",
    "processes",
    "episodes_per_process",
    "start_timeout_s",
    "reset_timeout_s",
    "step_timeout_s",
    "max_reply_bytes",
    "max_failures",
];

/// Settings of the environment `external`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalConfig {
    /// The program that plays and its arguments. No shell reads them. Required.
    pub command: Vec<String>,
    /// Folder the program starts in. Default: the trainer's.
    pub working_dir: Option<String>,
    /// Environment variables of the program, beside those of the trainer. `PYTHONHASHSEED` is 0 unless it is given here:
    /// otherwise a Python set has another order in every process.
    pub env: BTreeMap<String, String>,
    /// Settings that are handed to the environment in the handshake. Default none.
    pub config: serde_json::Map<String, Value>,
    /// Processes to keep, 1 to 1024. They start when they are needed. Default 2.
    pub processes: usize,
    /// Episodes that a process plays at a time, at most; more processes start when all are full. 1 is for environments
    /// that keep state outside of their object. 0: no limit. Default 0.
    pub episodes_per_process: usize,
    /// Seconds until the program must have answered the handshake. Default 60.
    pub start_timeout_s: f64,
    /// Seconds that a reset may take. Default 30.
    pub reset_timeout_s: f64,
    /// Seconds that any other call may take. Default 10.
    pub step_timeout_s: f64,
    /// Longest reply in bytes. Default 262144.
    pub max_reply_bytes: usize,
    /// Episodes in a row that processes may fail before the environment is given up; the following ones then end at
    /// once. Default 32.
    pub max_failures: usize,
}

impl Default for ExternalConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            working_dir: None,
            env: BTreeMap::new(),
            config: serde_json::Map::new(),
            processes: 2,
            episodes_per_process: 0,
            start_timeout_s: 60.0,
            reset_timeout_s: 30.0,
            step_timeout_s: 10.0,
            max_reply_bytes: 256 * 1024,
            max_failures: 32,
        }
    }
}

impl ExternalConfig {
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
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(refuse(
                ENV_TYPE,
                "setting `command`: expected a program and its arguments, found none; for a Python class: [python3, -m, \
                 ragen_env, \"my_module:MyEnv\"]",
            ));
        }
        check_range(ENV_TYPE, "processes", self.processes, 1, 1024)?;
        check_range(ENV_TYPE, "episodes_per_process", self.episodes_per_process, 0, 1 << 20)?;
        check_range(ENV_TYPE, "start_timeout_s", self.start_timeout_s, 0.001, 86_400.0)?;
        check_range(ENV_TYPE, "reset_timeout_s", self.reset_timeout_s, 0.001, 86_400.0)?;
        check_range(ENV_TYPE, "step_timeout_s", self.step_timeout_s, 0.001, 86_400.0)?;
        check_range(ENV_TYPE, "max_reply_bytes", self.max_reply_bytes, 256, 1 << 30)?;
        check_range(ENV_TYPE, "max_failures", self.max_failures, 1, 1 << 20)
    }

    /// The program as a user would type it.
    #[must_use]
    pub fn command_line(&self) -> String {
        self.command.join(" ")
    }

    pub(super) fn start_limit(&self) -> Duration {
        Duration::from_secs_f64(self.start_timeout_s)
    }

    pub(super) fn reset_limit(&self) -> Duration {
        Duration::from_secs_f64(self.reset_timeout_s)
    }

    pub(super) fn step_limit(&self) -> Duration {
        Duration::from_secs_f64(self.step_timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_makes_no_sense_is_refused_with_the_key() {
        let refused = |config: Value| ExternalConfig::from_json(&config).unwrap_err().to_string();
        assert!(refused(Value::Null).contains("`command`"));
        assert!(refused(json!({ "command": [" "] })).contains("`command`"));
        assert!(refused(json!({ "comand": ["x"] })).contains("did you mean `command`?"));
        assert!(refused(json!({ "command": ["x"], "processes": 0 })).contains("1 to 1024, found 0"));
        assert!(refused(json!({ "command": ["x"], "step_timeout_s": 0 })).contains("`step_timeout_s`"));
        assert!(refused(json!({ "command": ["x"], "step_timeout_s": 1e300 })).contains("`step_timeout_s`"));
        assert!(ExternalConfig::from_json(&json!({ "command": ["x"] })).is_ok());
    }
}
