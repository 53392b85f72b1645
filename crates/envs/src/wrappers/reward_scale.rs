//! `reward_scale`: every reward times a factor, plus a constant. The counterpart of Gymnasium's `TransformReward`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Wrapper;
use crate::config::{check_range, read};
use crate::{EnvError, Environment, Step};

pub(super) const NAME: &str = "reward_scale";

/// Settings of `reward_scale`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardScaleConfig {
    /// The factor. Default 1.
    pub scale: f64,
    /// Added after that, every step. Default 0.
    pub shift: f64,
}

impl Default for RewardScaleConfig {
    fn default() -> Self {
        Self { scale: 1.0, shift: 0.0 }
    }
}

/// Scales and shifts rewards.
#[derive(Clone, Debug)]
pub struct RewardScale {
    scale: f64,
    shift: f64,
}

impl RewardScale {
    /// `reward · scale + shift`.
    #[must_use]
    pub fn new(scale: f64, shift: f64) -> Self {
        Self { scale, shift }
    }

    pub(super) fn from_json(place: &str, config: &Value) -> Result<Self, EnvError> {
        let config: RewardScaleConfig = read(place, config, &["scale", "shift"])?;
        check_range(place, "scale", config.scale, -1e9, 1e9)?;
        check_range(place, "shift", config.shift, -1e9, 1e9)?;
        Ok(Self::new(config.scale, config.shift))
    }
}

impl Wrapper for RewardScale {
    fn step(&mut self, _env: &dyn Environment, _action: &str, step: &mut Step) {
        step.reward = step.reward * self.scale + self.shift;
    }
}
