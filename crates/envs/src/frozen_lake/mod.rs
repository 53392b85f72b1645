//! FrozenLake: reach the goal over slippery ice without falling into a hole. Maps, dynamics, random streams and text
//! follow RAGEN's variant of Gymnasium's environment.
//!
//! Deviations from RAGEN: a map that cannot be made is an error after a bounded number of draws rather than a re-seed
//! from a salted hash (the draws of one stream are as good as those of another).

mod config;
mod demonstrate;
mod lake;
mod plan;

pub use config::{FrozenLakeConfig, INSTRUCTION, INSTRUCTION_COORD, MapType};
pub use lake::{Lake, Move, SlipOutcome, Tile};
pub use plan::{HORIZON, Policy};

use rand_core::Rng;
use serde_json::Value;

use crate::claims::{self, Role};
use crate::rng::{NumpyGenerator, index_below};
use crate::{Agreement, DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "frozen_lake";

/// The FrozenLake environment.
pub struct FrozenLake {
    config: FrozenLakeConfig,
    symbols: [char; 6],
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    lake: Lake,
    player: usize,
    stream: NumpyGenerator,
}

impl Episode {
    fn over(&self) -> bool {
        self.lake.ends_at(self.player)
    }
}

impl FrozenLake {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: FrozenLakeConfig) -> Result<Self, EnvError> {
        config.check()?;
        let symbols = config.symbols()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: config.instruction().to_owned(),
            actions: Move::ALL.iter().map(|way| way.name().to_owned()).collect(),
            legend: config.legend(&symbols)?,
        };
        Ok(Self { config, symbols, spec, episode: None })
    }

    /// An environment from JSON settings; see [`FrozenLakeConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(FrozenLakeConfig::from_json(config)?)
    }

    /// The present map, if an episode has begun.
    #[must_use]
    pub fn lake(&self) -> Option<&Lake> {
        self.episode.as_ref().map(|episode| &episode.lake)
    }

    /// The player's cell, row-major, if an episode has begun.
    #[must_use]
    pub fn player(&self) -> Option<usize> {
        self.episode.as_ref().map(|episode| episode.player)
    }

    /// Starts an episode on a given map; the seed decides how the ice slips.
    pub fn start_on(&mut self, lake: Lake, seed: u64) -> String {
        let mut stream = NumpyGenerator::new(seed);
        // Gymnasium draws the start state, although there is only one.
        stream.random();
        self.episode = Some(Episode { player: lake.start(), lake, stream });
        self.render()
    }

    /// Probability that an intended move happens.
    fn success_rate(&self) -> f64 {
        self.config.intended()
    }

    fn plan(&self, actions_left: usize) -> Vec<Move> {
        match &self.episode {
            Some(episode) if !episode.over() => {
                Policy::optimal(&episode.lake, self.success_rate(), actions_left).plan(episode.player)
            }
            _ => Vec::new(),
        }
    }

    fn coordinates(&self, episode: &Episode) -> String {
        let lake = &episode.lake;
        let at = |cell: usize| {
            let (row, col) = lake.position(cell);
            format!("({row}, {col})")
        };
        let player = match lake.tile(episode.player) {
            Tile::Goal => "Player on goal",
            Tile::Hole => "Player in hole",
            Tile::Start | Tile::Frozen => "Player",
        };
        let mut text = format!(
            "Board size: {0} rows x {0} cols (zero-indexed).\nStart: {1}\nGoal: {2}\n{player}: {3}",
            lake.size(),
            at(lake.start()),
            at(lake.goal()),
            at(episode.player)
        );
        let holes = crate::symbols::positions(lake.holes().map(|cell| lake.position(cell)));
        if !holes.is_empty() {
            text.push_str(&format!("\nHoles: {holes}"));
        }
        text
    }
}

impl Environment for FrozenLake {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let lake = Lake::generate(&self.config, seed)?;
        Ok(self.start_on(lake, seed))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let success_rate = self.success_rate();
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.over() {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let Some(way) = Move::parse(action) else {
            return Ok(Step::not_understood(self.render()));
        };
        let outcomes = episode.lake.outcomes(episode.player, way, success_rate);
        let probabilities: Vec<f64> = outcomes.iter().map(|outcome| outcome.probability).collect();
        let drawn = episode.stream.categorical(&probabilities);
        let next = outcomes.get(drawn).map_or(episode.player, |outcome| outcome.next);
        let effective = next != episode.player;
        episode.player = next;
        let success = episode.lake.tile(next) == Tile::Goal;
        let terminated = episode.over();
        let info = Info { success, action_is_valid: true, action_is_effective: effective, ..Info::default() };
        let reward = if success { 1.0 } else { 0.0 };
        Ok(Step { observation: self.render(), reward, terminated, truncated: false, info })
    }

    fn render(&self) -> String {
        match &self.episode {
            Some(episode) => self
                .config
                .observation_format
                .compose(|| episode.lake.draw(episode.player, &self.symbols), || self.coordinates(episode)),
            None => String::new(),
        }
    }

    fn state_key(&self) -> String {
        match &self.episode {
            Some(episode) => format!("{} from {}", episode.lake.map().join("/"), episode.player),
            None => String::new(),
        }
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.plan(actions_left).into_iter().map(|way| way.name().to_owned()).collect()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let episode = self.episode.as_ref()?;
        Some(Policy::optimal(&episode.lake, self.success_rate(), actions_left).value(episode.player))
    }

    fn check_reasoning(&self, reasoning: &str, actions: &[String]) -> Option<Agreement> {
        let Episode { lake, player, .. } = self.episode.as_ref()?;
        let claims = claims::read(reasoning);
        let mut agreement = Agreement::default();
        for (role, (row, col)) in claims.positions {
            let cell = (row < lake.size() && col < lake.size()).then(|| row * lake.size() + col);
            agreement.count(match role {
                Role::Player => cell == Some(*player),
                Role::Target => cell == Some(lake.goal()),
                Role::Hole => cell.is_some_and(|cell| lake.tile(cell) == Tile::Hole),
                Role::Box => false,
                Role::Plan => continue,
            });
        }
        if let Some(offset) = claims.offset {
            agreement.count(claims::leads(offset, lake.position(*player), lake.position(lake.goal())));
        }
        for (way, hole) in Move::ALL.into_iter().zip(claims.holes_beside.into_iter().flatten()) {
            agreement.count(hole == (lake.tile(lake.neighbour(*player, way)) == Tile::Hole));
        }
        if let (Some(announced), Some(action)) = (claims.first_move, actions.first()) {
            agreement.count(action.eq_ignore_ascii_case(announced));
        }
        Some(agreement)
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let episode = self.episode.as_ref()?;
        let mut plan = self.plan(actions_left);
        plan.truncate(max_actions);
        demonstrate::turn(&episode.lake, episode.player, &plan, style, rng)
    }

    fn demonstrate_novice(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let episode = self.episode.as_ref()?;
        // As many steps at a time as the oracle dares.
        let steps = self.plan(actions_left).len().min(max_actions);
        let plan: Vec<Move> = (0..steps).map(|_| Move::ALL[index_below(rng, Move::ALL.len())]).collect();
        demonstrate::turn(&episode.lake, episode.player, &plan, style, rng)
    }
}
