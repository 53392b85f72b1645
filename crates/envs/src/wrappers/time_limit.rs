//! `time_limit`: an episode of at most so many steps. The counterpart of Gymnasium's `TimeLimit`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Wrapper;
use crate::config::{check_range, read};
use crate::{EnvError, Environment, Step};

pub(super) const NAME: &str = "time_limit";

/// Settings of `time_limit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeLimitConfig {
    /// Steps of an episode, at least 1; invalid actions count. Default 100.
    pub max_steps: usize,
}

impl Default for TimeLimitConfig {
    fn default() -> Self {
        Self { max_steps: 100 }
    }
}

/// Truncates an episode after a number of steps.
#[derive(Clone, Debug)]
pub struct TimeLimit {
    max_steps: usize,
    taken: usize,
}

impl TimeLimit {
    /// At most `max_steps` steps.
    #[must_use]
    pub fn new(max_steps: usize) -> Self {
        Self { max_steps, taken: 0 }
    }

    pub(super) fn from_json(place: &str, config: &Value) -> Result<Self, EnvError> {
        let config: TimeLimitConfig = read(place, config, &["max_steps"])?;
        check_range(place, "max_steps", config.max_steps, 1, usize::MAX)?;
        Ok(Self::new(config.max_steps))
    }
}

impl Wrapper for TimeLimit {
    fn begin(&mut self, _env: &dyn Environment) {
        self.taken = 0;
    }

    fn step(&mut self, _env: &dyn Environment, _action: &str, step: &mut Step) {
        self.taken += 1;
        step.truncated |= !step.terminated && self.taken >= self.max_steps;
    }

    fn actions_left(&self, actions_left: usize) -> usize {
        actions_left.min(self.max_steps.saturating_sub(self.taken))
    }
}
