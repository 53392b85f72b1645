//! Household tasks in text: games in ALFWorld's grammar, generated from tables of our own.
//!
//! ALFWorld's game files are a download; its rules and its words are here, so that games need no files. A room, its
//! things and a task follow from the seed; the oracle knows where everything is and takes a shortest way. The reward is
//! 10 when the task is done, as in RAGEN. Own games can be played from facts: [`facts::game`], [`Alfworld::start_on`].

mod config;
mod demonstrate;
pub mod facts;
pub mod generate;
pub mod goal;
pub mod plan;
pub mod tables;
pub mod text;
pub mod world;

pub use config::{AlfworldConfig, EvalDataset, INSTRUCTION};
pub use generate::Game;

use rand_core::Rng;
use serde_json::Value;

use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
use world::Command;

/// Registry name.
pub const ENV_TYPE: &str = "alfworld";
/// What a done task pays.
const REWARD: f64 = 10.0;

/// The household environment.
pub struct Alfworld {
    config: AlfworldConfig,
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    game: Game,
    /// The answer to the last command that did something: with the room, this is the state.
    told: String,
    /// The last command was not understood.
    nothing: bool,
    /// Commands taken, understood or not.
    steps: usize,
    won: bool,
    over: bool,
}

impl Alfworld {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: AlfworldConfig) -> Result<Self, EnvError> {
        config.check()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, episode: None })
    }

    /// An environment from JSON settings; see [`AlfworldConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(AlfworldConfig::from_json(config)?)
    }

    /// Starts an episode on a given game instead of a generated one.
    pub fn start_on(&mut self, game: Game) -> String {
        let told = text::intro(&game.world, &game.task);
        self.episode = Some(Episode { game, told, nothing: false, steps: 0, won: false, over: false });
        self.render()
    }

    /// The present game, if an episode has begun.
    #[must_use]
    pub fn game(&self) -> Option<&Game> {
        self.episode.as_ref().map(|episode| &episode.game)
    }

    /// The last answer of the game, without the list of admissible actions.
    #[must_use]
    pub fn told(&self) -> Option<&str> {
        self.episode.as_ref().map(|episode| if episode.nothing { text::NOTHING } else { episode.told.as_str() })
    }

    /// A shortest way to the goal that takes at most so many actions.
    fn plan(&self, actions_left: usize) -> Vec<Command> {
        let Some(episode) = self.episode.as_ref().filter(|episode| !episode.over) else { return Vec::new() };
        let left = actions_left.min(self.config.max_steps.saturating_sub(episode.steps));
        plan::shortest(&episode.game.world, &episode.game.goal).filter(|plan| plan.len() <= left).unwrap_or_default()
    }
}

impl Episode {
    /// What may be typed now, sorted, with what it does.
    fn admissible(&self) -> Vec<(String, Command)> {
        let world = &self.game.world;
        let mut list: Vec<_> =
            world.commands().into_iter().map(|command| (text::command(world, command), command)).collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    }

    fn render(&self) -> String {
        let told = if self.nothing { text::NOTHING } else { self.told.as_str() };
        let names: Vec<String> = self.admissible().into_iter().map(|(name, _)| name).collect();
        format!("{told}\n\nAdmissible actions: [{}]", names.join(", "))
    }
}

impl Environment for Alfworld {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let unseen = split == Split::Val && self.config.eval_dataset == EvalDataset::EvalOutOfDistribution;
        let game = generate::game(seed, &self.config.task_types, unseen).ok_or_else(|| EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: "no task fits the house".to_owned(),
        })?;
        Ok(self.start_on(game))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let max_steps = self.config.max_steps;
        let episode = self.episode.as_mut().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
        if episode.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let action = action.trim().to_lowercase();
        let found = episode.admissible().into_iter().find(|(name, _)| *name == action).map(|(_, command)| command);
        episode.steps += 1;
        episode.nothing = found.is_none();
        let mut effective = false;
        if let Some(command) = found {
            let before = episode.game.world.clone();
            episode.game.world.apply(command);
            effective = before != episode.game.world;
            episode.told = text::feedback(&episode.game.world, command);
            episode.won = episode.game.goal.reached(&episode.game.world);
        }
        let won = episode.won;
        let truncated = !won && episode.steps >= max_steps;
        episode.over = won || truncated;
        let info =
            Info { success: won, action_is_valid: found.is_some(), action_is_effective: effective, ..Info::default() };
        let reward = if won { REWARD } else { 0.0 };
        Ok(Step { observation: self.render(), reward, terminated: won, truncated, info })
    }

    fn render(&self) -> String {
        self.episode.as_ref().map(Episode::render).unwrap_or_default()
    }

    /// The whole room, also what cannot be seen, the task and the last answer.
    fn state_key(&self) -> String {
        let Some(Episode { game: Game { world, task, .. }, told, .. }) = &self.episode else { return String::new() };
        let doors: Vec<&str> =
            world.receptacles.iter().filter(|r| r.open).map(|receptacle| receptacle.name.as_str()).collect();
        let things: Vec<String> =
            world.things.iter().map(|thing| format!("{} in {:?} {:?}", thing.name, thing.place, thing.is)).collect();
        format!("{task}; at {:?}; open {doors:?}; {}; {told}", world.at, things.join("; "))
    }

    fn action_lookup(&self) -> Vec<String> {
        // The game itself answers what it does not understand, as the reference's does.
        Vec::new()
    }

    fn available_actions(&self) -> Vec<String> {
        match &self.episode {
            Some(episode) if !episode.over => episode.admissible().into_iter().map(|(name, _)| name).collect(),
            _ => Vec::new(),
        }
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let Some(episode) = &self.episode else { return Vec::new() };
        self.plan(actions_left).into_iter().map(|command| text::command(&episode.game.world, command)).collect()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let episode = self.episode.as_ref()?;
        Some(if episode.won || !self.plan(actions_left).is_empty() { 1.0 } else { 0.0 })
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let Game { world, goal, .. } = &self.episode.as_ref()?.game;
        let plan = self.plan(actions_left);
        let actions = plan.iter().take(max_actions).map(|&command| text::command(world, command)).collect();
        demonstrate::turn(world, goal, &plan, actions, style, rng)
    }
}
