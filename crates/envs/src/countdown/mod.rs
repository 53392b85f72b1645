//! Countdown: make an arithmetic expression of the given numbers, each used exactly once, that is worth the target. One
//! answer, one episode.
//!
//! Rules and rewards are RAGEN's; the answer is read by an expression parser instead of Python's `eval`. Deviations from
//! RAGEN unless `compat` is set: instances for validation are disjoint from those for training. Always: intermediate
//! integers beyond 128 bits count as a wrong value.

mod config;
mod demonstrate;
mod digits;
mod expression;
mod instance;

pub use config::{CountdownConfig, INSTRUCTION};
pub use expression::{Number, evaluate};
pub use instance::{Instance, has_solution, reward};

use rand_core::Rng;
use serde_json::Value;

use crate::rng::index_below;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "countdown";

/// The Countdown environment.
pub struct Countdown {
    config: CountdownConfig,
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    instance: Instance,
    /// What the answer was worth.
    points: Option<f64>,
}

impl Countdown {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: CountdownConfig) -> Result<Self, EnvError> {
        config.check()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, episode: None })
    }

    /// An environment from JSON settings; see [`CountdownConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(CountdownConfig::from_json(config)?)
    }

    /// The present instance, if an episode has begun.
    #[must_use]
    pub fn instance(&self) -> Option<&Instance> {
        self.episode.as_ref().map(|episode| &episode.instance)
    }

    /// Starts an episode on a given instance.
    pub fn start_on(&mut self, instance: Instance) -> String {
        self.episode = Some(Episode { instance, points: None });
        self.render()
    }

    /// The present instance, while it has not been answered.
    fn open(&self) -> Option<&Instance> {
        self.episode.as_ref().filter(|episode| episode.points.is_none()).map(|episode| &episode.instance)
    }
}

impl Environment for Countdown {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let instance = Instance::generate(&self.config, seed, split)?;
        Ok(self.start_on(instance))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.points.is_some() {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let Instance { target, nums } = &episode.instance;
        let reward = reward(action, *target as f64, nums);
        episode.points = Some(reward);
        // Any text is an answer; only the points tell how good it was.
        let info = Info { success: reward == 1.0, action_is_valid: true, action_is_effective: true, ..Info::default() };
        Ok(Step { observation: self.render(), reward, terminated: true, truncated: false, info })
    }

    fn render(&self) -> String {
        match &self.episode {
            Some(Episode { points: Some(points), .. }) => format!("Your answer is worth {points} points."),
            Some(Episode { instance, .. }) => instance.to_string(),
            None => String::new(),
        }
    }

    /// A random expression of all the numbers, in random order, with random operators out of `+ - * /`.
    fn sample_action(&self, rng: &mut dyn Rng) -> Option<String> {
        let mut nums = self.open()?.nums.clone();
        let mut text = String::new();
        while !nums.is_empty() {
            let number = nums.swap_remove(index_below(rng, nums.len()));
            if !text.is_empty() {
                text.push_str([" + ", " - ", " * ", " / "][index_below(rng, 4)]);
            }
            text.push_str(&number.to_string());
        }
        Some(text)
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let solution = self.open().filter(|_| actions_left > 0).and_then(Instance::solution);
        solution.iter().map(|terms| instance::expression(terms)).collect()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        match self.episode.as_ref()? {
            Episode { points: Some(points), .. } => Some(if *points == 1.0 { 1.0 } else { 0.0 }),
            _ if actions_left == 0 => Some(0.0),
            // An instance without a sum may still have a product.
            Episode { instance, .. } => instance.solution().map(|_| 1.0),
        }
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        if actions_left == 0 || max_actions == 0 {
            return None;
        }
        let instance = self.open()?;
        Some(demonstrate::turn(instance, &instance.solution()?, style, rng))
    }
}
