//! Where processes and their pipes are not handled: the environment `external` is refused.

use serde_json::Value;

use super::{ENV_TYPE, ExternalConfig};
use crate::config::refuse;
use crate::{EnvError, EnvSpec, Environment, Split, Step};

/// There is none on this system.
pub enum External {}

impl External {
    /// Refuses.
    ///
    /// # Errors
    /// [`EnvError::Config`] always.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        ExternalConfig::from_json(config)?;
        Err(refuse(ENV_TYPE, "environments in another process need Linux or macOS; this system is neither"))
    }
}

impl Environment for External {
    fn spec(&self) -> &EnvSpec {
        match *self {}
    }

    fn reset(&mut self, _seed: u64, _split: Split) -> Result<String, EnvError> {
        match *self {}
    }

    fn step(&mut self, _action: &str) -> Result<Step, EnvError> {
        match *self {}
    }

    fn render(&self) -> String {
        match *self {}
    }
}

/// Nothing to do.
pub fn shut_down() {}
