//! `reward_clip`: every reward within bounds.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Wrapper;
use crate::config::{read, refuse};
use crate::{EnvError, Environment, Step};

pub(super) const NAME: &str = "reward_clip";

/// Settings of `reward_clip`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardClipConfig {
    /// The least reward. Default −1.
    pub min: f64,
    /// The greatest. Default 1.
    pub max: f64,
}

impl Default for RewardClipConfig {
    fn default() -> Self {
        Self { min: -1.0, max: 1.0 }
    }
}

/// Clips rewards. One that is no number stays what it is: it must not pass for a reward.
#[derive(Clone, Debug)]
pub struct RewardClip {
    min: f64,
    max: f64,
}

impl RewardClip {
    pub(super) fn from_json(place: &str, config: &Value) -> Result<Self, EnvError> {
        let RewardClipConfig { min, max } = read(place, config, &["min", "max"])?;
        if min <= max {
            return Ok(Self { min, max });
        }
        Err(refuse(place, format!("expected `min` to be at most `max`, found {min} and {max}")))
    }
}

impl Wrapper for RewardClip {
    fn step(&mut self, _env: &dyn Environment, _action: &str, step: &mut Step) {
        if step.reward.is_finite() {
            step.reward = step.reward.clamp(self.min, self.max);
        }
    }
}
