//! 2048 on 4 × 4 cells: slide and merge tiles until the goal tile is made.
//!
//! Rules, random stream, rewards and text are RAGEN's. Deviation unless `compat` is set: making the goal tile ends the
//! game as a success. In RAGEN the game goes on and success is only looked at when no move is left; with its 700 actions
//! it cannot be had at all, because every move adds 2.2 on average and 2048 takes more than 900 of them.

mod board;
mod config;
mod player;

pub use board::{Board, Direction, Slide};
pub use config::{Game2048Config, INSTRUCTION};

use std::fmt::Write;

use rand_core::Rng;
use serde_json::Value;

use crate::rng::{NumpyGenerator, index_below};
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "game_2048";

/// What a move that moves nothing costs before rewards are put on a logarithmic scale.
const INVALID: f64 = -0.1;

/// The 2048 environment.
pub struct Game2048 {
    config: Game2048Config,
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    board: Board,
    score: u64,
    over: bool,
    stream: NumpyGenerator,
}

impl Episode {
    /// A new tile on an empty cell: 2 with probability 0.9, else 4.
    fn spawn(&mut self) {
        let empty: Vec<usize> = self.board.empty().collect();
        let pick = self.stream.integers(0, empty.len() as i64);
        if let Some(&cell) = usize::try_from(pick).ok().and_then(|i| empty.get(i)) {
            let exponent = if self.stream.random() < 0.9 { 1 } else { 2 };
            self.board = self.board.with(cell, exponent);
        }
    }
}

impl Game2048 {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: Game2048Config) -> Result<Self, EnvError> {
        config.check()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Direction::ALL.iter().map(|direction| direction.name().to_owned()).collect(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, episode: None })
    }

    /// An environment from JSON settings; see [`Game2048Config`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(Game2048Config::from_json(config)?)
    }

    /// The present board, if an episode has begun.
    #[must_use]
    pub fn board(&self) -> Option<&Board> {
        self.episode.as_ref().map(|episode| &episode.board)
    }

    /// Sum of all merged tiles so far.
    #[must_use]
    pub fn score(&self) -> u64 {
        self.episode.as_ref().map_or(0, |episode| episode.score)
    }

    /// Starts an episode on a given board; the seed decides where new tiles appear.
    pub fn start_on(&mut self, board: Board, seed: u64) -> String {
        let stream = NumpyGenerator::new(seed);
        let over = board.moves().next().is_none() || self.reached(&board);
        self.episode = Some(Episode { board, score: 0, over, stream });
        self.render()
    }

    fn open(&self) -> Option<&Episode> {
        self.episode.as_ref().filter(|episode| !episode.over)
    }

    /// Making the goal tile has ended the game.
    fn reached(&self, board: &Board) -> bool {
        !self.config.compat && board.max_tile() >= self.config.goal
    }

    fn best_move(&self, actions_left: usize) -> Option<(&Board, Direction)> {
        let episode = self.open().filter(|_| actions_left > 0)?;
        Some((&episode.board, player::best_move(&episode.board)?))
    }
}

impl Environment for Game2048 {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let mut episode = Episode { board: Board::default(), score: 0, over: false, stream: NumpyGenerator::new(seed) };
        episode.spawn();
        episode.spawn();
        self.episode = Some(episode);
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(mut episode) = self.episode.take() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.over {
            self.episode = Some(episode);
            return Err(EnvError::ended(ENV_TYPE));
        }
        let Some(direction) = Direction::parse(action) else {
            self.episode = Some(episode);
            return Ok(Step::not_understood(self.render()));
        };
        let slide = episode.board.slide(direction);
        let mut raw = INVALID;
        if slide.moved {
            raw = slide.gain as f64;
            episode.score += slide.gain;
            episode.board = slide.board;
            episode.spawn();
        }
        let stuck = episode.board.moves().next().is_none();
        episode.over = stuck || self.reached(&episode.board);
        let (terminated, max_tile) = (episode.over, episode.board.max_tile());
        let success = terminated && max_tile >= self.config.goal;
        let reward = match self.config.use_log_reward {
            true if raw > 0.0 => 0.1 * (raw + 1.0).log2(),
            true => 0.0,
            false => raw,
        };
        let extra = [("raw_reward", raw), ("score", episode.score as f64), ("max_tile", max_tile as f64)];
        let extra = extra.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.episode = Some(episode);
        let info = Info { success, action_is_valid: slide.moved, action_is_effective: slide.moved, extra };
        Ok(Step { observation: self.render(), reward, terminated, truncated: false, info })
    }

    fn render(&self) -> String {
        let Some(episode) = &self.episode else {
            return String::new();
        };
        let mut text = "Current 2048 Grid:\n".to_owned();
        for (i, row) in episode.board.tiles().chunks(4).enumerate() {
            let _ = writeln!(text, "Row {}: {row:?}", i + 1);
        }
        let moves: Vec<String> =
            episode.board.moves().map(|direction| format!("{}({})", direction as usize, direction.name())).collect();
        let moves = if moves.is_empty() { "None".to_owned() } else { moves.join(", ") };
        let _ = write!(
            text,
            "\nValid Actions: {moves}.\nGoal: Merge same numbers to reach {}.\nCurrent Score: {}\nWhat is your next \
             move?",
            self.config.goal, episode.score
        );
        text
    }

    /// The directions in which something moves; the others cost an action and change nothing.
    fn available_actions(&self) -> Vec<String> {
        match &self.episode {
            Some(episode) if episode.over => Vec::new(),
            Some(episode) => episode.board.moves().map(|direction| direction.name().to_owned()).collect(),
            None => self.spec.actions.clone(),
        }
    }

    /// The next move of a strong player: what tile comes after it is chance.
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.best_move(actions_left).map(|(_, direction)| direction.name().to_owned()).into_iter().collect()
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let (board, direction) = self.best_move(actions_left).filter(|_| max_actions > 0)?;
        let way = direction.name().to_lowercase();
        let slide = board.slide(direction);
        let (max, empty) = (board.max_tile(), slide.board.empty().count());
        let choice = index_below(rng, 3);
        let reasoning = match style {
            // As in Sokoban, brief words follow from the situation and never from chance.
            DemoStyle::Brief => format!("max {max} {way} gains {} leaves {empty} free", slide.gain),
            DemoStyle::Verbose => match choice {
                0 => format!(
                    "The largest tile is {max}. Sliding {way} merges tiles worth {} and leaves {empty} cells free, \
                     which keeps the board in order.",
                    slide.gain
                ),
                1 => {
                    format!("I slide {way}: it gains {} points, and {empty} cells stay free for new tiles.", slide.gain)
                }
                _ => format!(
                    "With {max} as the largest tile I want room and order. Going {way} leaves {empty} free cells and \
                     gains {}.",
                    slide.gain
                ),
            },
        };
        Some(Demonstration { reasoning, actions: vec![direction.name().to_owned()] })
    }
}
