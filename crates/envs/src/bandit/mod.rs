//! A two-armed bandit whose arms are named after occupations: one pays a small sure amount, the other a large one now
//! and then, and more on average. One action, one episode.
//!
//! The rules of the draws are RAGEN v1's (members of a group share the seed, hence names, order and payout), the names
//! RAGEN-2's pairs. RAGEN-2 itself adds a construction counter to the seed, which makes instances depend on how many
//! environments there are; that is left out.

mod config;
mod names;

pub use config::{BanditConfig, INSTRUCTION, NameSplit};
pub use names::{TEST_PAIRS, TRAIN_PAIRS};

use rand_core::Rng;
use serde_json::Value;

use crate::rng::{NumpyGenerator, index_below};
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "bandit";

/// The bandit environment.
pub struct Bandit {
    config: BanditConfig,
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    low: String,
    high: String,
    low_first: bool,
    stream: NumpyGenerator,
    /// The arm chosen and what it paid.
    outcome: Option<(String, f64)>,
}

impl Episode {
    fn arms(&self) -> [&str; 2] {
        if self.low_first { [&self.low, &self.high] } else { [&self.high, &self.low] }
    }
}

impl Bandit {
    /// A bandit with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: BanditConfig) -> Result<Self, EnvError> {
        config.check()?;
        // With names from a list the actions change from instance to instance: see `available_actions`.
        let actions = match config.fixed_names() {
            Some((low, high)) => vec![low.to_owned(), high.to_owned()],
            None => Vec::new(),
        };
        let spec =
            EnvSpec { env_type: ENV_TYPE.to_owned(), instruction: INSTRUCTION.to_owned(), actions, legend: Vec::new() };
        Ok(Self { config, spec, episode: None })
    }

    /// A bandit from JSON settings; see [`BanditConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(BanditConfig::from_json(config)?)
    }

    /// The names of the low and the high arm of the present instance, if an episode has begun.
    #[must_use]
    pub fn arms(&self) -> Option<(&str, &str)> {
        self.episode.as_ref().map(|episode| (episode.low.as_str(), episode.high.as_str()))
    }

    /// The present instance, while there is something left to choose.
    fn open(&self) -> Option<&Episode> {
        self.episode.as_ref().filter(|episode| episode.outcome.is_none())
    }
}

impl Environment for Bandit {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let mut stream = NumpyGenerator::new(seed);
        let (low, high) = match self.config.fixed_names() {
            Some(names) => names,
            None => {
                let pairs = self.config.pairs();
                let pair = (stream.random() * pairs.len() as f64) as usize;
                let (low, high) = pairs[pair.min(pairs.len() - 1)];
                if self.config.reversed { (high, low) } else { (low, high) }
            }
        };
        let low_first = stream.random() < 0.5;
        self.episode = Some(Episode { low: low.to_owned(), high: high.to_owned(), low_first, stream, outcome: None });
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.outcome.is_some() {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let action = action.trim();
        let (arm, success, reward) = if action.eq_ignore_ascii_case(&episode.low) {
            (episode.low.clone(), false, self.config.lo_arm_score)
        } else if action.eq_ignore_ascii_case(&episode.high) {
            let lucky = episode.stream.random() < self.config.hi_arm_hiscore_prob;
            let paid = if lucky { self.config.hi_arm_hiscore } else { self.config.hi_arm_loscore };
            (episode.high.clone(), true, paid)
        } else {
            return Ok(Step::not_understood(self.render()));
        };
        episode.outcome = Some((arm, reward));
        let info = Info { success, action_is_valid: true, action_is_effective: true, ..Info::default() };
        Ok(Step { observation: self.render(), reward, terminated: true, truncated: false, info })
    }

    fn render(&self) -> String {
        match &self.episode {
            Some(Episode { outcome: Some((arm, paid)), .. }) => format!("{arm} paid {paid}."),
            Some(episode) => {
                let [first, second] = episode.arms();
                format!("Arms: {first}, {second}")
            }
            None => String::new(),
        }
    }

    /// Twelve pairs of names in two orders are all there is; what is held out are the names of `BanditTest`.
    fn can_hold_out(&self) -> bool {
        false
    }

    fn action_lookup(&self) -> Vec<String> {
        self.available_actions()
    }

    fn available_actions(&self) -> Vec<String> {
        match &self.episode {
            Some(Episode { outcome: Some(_), .. }) => Vec::new(),
            Some(episode) => episode.arms().map(str::to_owned).to_vec(),
            None => self.spec.actions.clone(),
        }
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        match self.open() {
            Some(episode) if actions_left > 0 => vec![episode.high.clone()],
            _ => Vec::new(),
        }
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let episode = self.episode.as_ref()?;
        let reached = match &episode.outcome {
            Some((arm, _)) => *arm == episode.high,
            None => actions_left > 0,
        };
        Some(if reached { 1.0 } else { 0.0 })
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let episode = self.open()?;
        if actions_left == 0 || max_actions == 0 {
            return None;
        }
        let (low, high) = (&episode.low, &episode.high);
        let choice = index_below(rng, 3);
        let reasoning = match style {
            DemoStyle::Brief => match choice {
                0 => format!("{high} pays more than {low}."),
                1 => format!("{low} is the low arm, {high} the high one."),
                _ => format!("Best on average: {high}."),
            },
            DemoStyle::Verbose => match choice {
                0 => format!(
                    "{low} stands for the small sure payout and {high} for the large rare one, which is worth \
                              more on average, so I choose {high}."
                ),
                1 => format!("Of the two arms I expect {high} to pay more on average than {low}. I take {high}."),
                _ => format!("Choosing {low} earns little. {high} pays rarely but much more, so {high} is better."),
            },
        };
        Some(Demonstration { reasoning, actions: vec![high.clone()] })
    }
}
