//! `reward_term`: an addition to the reward out of what a step was like. The terms are in [`super::reward_terms`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Wrapper;
use super::reward_terms::{self, RewardTerm};
use crate::config::{check_range, read};
use crate::{EnvError, Environment, Step};

pub(super) const NAME: &str = "reward_term";

/// Settings of `reward_term`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardTermConfig {
    /// The term's name, see [`reward_terms::names`]. Required.
    pub term: String,
    /// What a unit of it pays; negative for a penalty. Default 1.
    pub weight: f64,
    /// For the term `info`: which of the environment's further numbers. Default none.
    pub key: Option<String>,
}

impl Default for RewardTermConfig {
    fn default() -> Self {
        Self { term: String::new(), weight: 1.0, key: None }
    }
}

/// Adds a weighted term to every reward and reports it among the step's further numbers as `reward_term/NAME`.
pub struct RewardTermWrapper {
    term: Box<dyn RewardTerm>,
    weight: f64,
    name: String,
}

impl RewardTermWrapper {
    /// Adds `weight` times `term`; `name` is that of its metric.
    #[must_use]
    pub fn new(name: &str, term: Box<dyn RewardTerm>, weight: f64) -> Self {
        Self { term, weight, name: format!("reward_term/{name}") }
    }

    pub(super) fn from_json(place: &str, config: &Value) -> Result<Self, EnvError> {
        let config: RewardTermConfig = read(place, config, &["term", "weight", "key"])?;
        check_range(place, "weight", config.weight, -1e9, 1e9)?;
        let term = reward_terms::make(place, &config)?;
        let name = match &config.key {
            Some(key) => format!("{}/{key}", config.term),
            None => config.term.clone(),
        };
        Ok(Self::new(&name, term, config.weight))
    }
}

impl Wrapper for RewardTermWrapper {
    fn begin(&mut self, env: &dyn Environment) {
        self.term.begin(env);
    }

    fn step(&mut self, env: &dyn Environment, _action: &str, step: &mut Step) {
        let paid = self.weight * self.term.value(env, step);
        step.reward += paid;
        *step.info.extra.entry(self.name.clone()).or_default() += paid;
    }
}
