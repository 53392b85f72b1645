//! Sokoban: push every box onto a target. Generation, rules, rewards and text follow RAGEN's variant of gym-sokoban,
//! so that a seed gives the same board.
//!
//! Levels may come from files in Boxoban's format instead (Guez et al. 2018), see [`boxoban`].
//!
//! Deviations from RAGEN: a level that cannot be generated is re-seeded by a fixed rule (see [`generate`]), and the
//! text legend follows the configured symbols.

mod board;
pub mod boxoban;
mod config;
mod demonstrate;
pub mod generate;
pub mod pushes;
mod render;
mod reverse;
pub mod solve;

pub use board::{Board, Cell, Direction, Outcome};
pub use config::{INSTRUCTION, INSTRUCTION_COORD, SokobanConfig};

use std::cell::RefCell;

use rand_core::Rng;
use serde_json::Value;

use crate::claims::{self, Role};
use crate::{Agreement, DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "sokoban";

/// The Sokoban environment.
pub struct Sokoban {
    config: SokobanConfig,
    symbols: [char; 7],
    spec: EnvSpec,
    levels: Option<boxoban::Pools>,
    board: Option<Board>,
    /// For levels from files: a board and the plan made for it.
    planned: RefCell<Option<(Board, Vec<Direction>)>>,
    steps: usize,
    over: bool,
}

impl Sokoban {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: SokobanConfig) -> Result<Self, EnvError> {
        config.check()?;
        let symbols = config.symbols()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: config.instruction().to_owned(),
            actions: Direction::ALL.iter().map(|direction| direction.name().to_owned()).collect(),
            legend: config.legend(&symbols)?,
        };
        let levels = boxoban::Pools::open(&config)?;
        Ok(Self { config, symbols, spec, levels, board: None, planned: RefCell::new(None), steps: 0, over: false })
    }

    /// An environment from JSON settings; see [`SokobanConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(SokobanConfig::from_json(config)?)
    }

    /// The present board, if an episode has begun.
    #[must_use]
    pub fn board(&self) -> Option<&Board> {
        self.board.as_ref()
    }

    /// Starts an episode on a given board instead of a generated one.
    pub fn start_on(&mut self, board: Board) -> String {
        self.over = board.solved();
        self.steps = 0;
        self.board = Some(board);
        self.render()
    }

    fn plan(&self, actions_left: usize) -> Vec<Direction> {
        let Some(board) = self.board.as_ref().filter(|_| !self.over) else {
            return Vec::new();
        };
        let budget = actions_left.min(self.config.max_steps.saturating_sub(self.steps));
        if self.levels.is_none() {
            return solve::shortest(board, budget).unwrap_or_default();
        }
        let plan = self.few_pushes(board);
        if plan.len() <= budget { plan } else { Vec::new() }
    }

    /// A plan for a level from a file; empty when none was found. Following one plan to its end takes one search.
    fn few_pushes(&self, board: &Board) -> Vec<Direction> {
        let mut planned = self.planned.borrow_mut();
        if let Some((from, plan)) = planned.as_ref() {
            let mut on_the_way = from.clone();
            for done in 0..=plan.len() {
                if on_the_way == *board && (done < plan.len() || plan.is_empty()) {
                    return plan[done..].to_vec();
                }
                if let Some(&direction) = plan.get(done) {
                    on_the_way.step(direction);
                }
            }
        }
        let plan = pushes::few_pushes(board).unwrap_or_default();
        *planned = Some((board.clone(), plan.clone()));
        plan
    }
}

impl Environment for Sokoban {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let board = match &self.levels {
            Some(levels) => levels.level(seed, split).ok_or_else(|| EnvError::Instance {
                env_type: ENV_TYPE.to_owned(),
                seed,
                message: "the file has no such level".to_owned(),
            })?,
            None => generate::level(&self.config, seed)?.board,
        };
        Ok(self.start_on(board))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(board) = self.board.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if self.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let Some(direction) = Direction::parse(action) else {
            return Ok(Step::not_understood(self.render()));
        };
        let before = board.boxes_on_target();
        let outcome = board.step(direction);
        let after = board.boxes_on_target();
        let success = board.solved();
        // In this order the sums round as the reference's do.
        let mut reward = -0.1;
        if after > before {
            reward += 1.0;
        } else if after < before {
            reward -= 1.0;
        }
        if success {
            reward += 10.0;
        }
        self.steps += 1;
        let truncated = !success && self.steps >= self.config.max_steps;
        self.over = success || truncated;
        let info = Info {
            success,
            action_is_valid: true,
            action_is_effective: outcome != Outcome::Blocked,
            ..Info::default()
        };
        Ok(Step { observation: self.render(), reward, terminated: success, truncated, info })
    }

    fn render(&self) -> String {
        match &self.board {
            Some(board) => render::observation(board, &self.symbols, self.config.observation_format),
            None => String::new(),
        }
    }

    fn state_key(&self) -> String {
        self.board.as_ref().map(Board::to_text).unwrap_or_default()
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.plan(actions_left).into_iter().map(|direction| direction.name().to_owned()).collect()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let solved = self.board.as_ref().is_some_and(Board::solved);
        match solved || !self.plan(actions_left).is_empty() {
            true => Some(1.0),
            // For levels from files the plan need not be the shortest.
            false if self.levels.is_some() && actions_left > 0 && !self.over => None,
            false => Some(0.0),
        }
    }

    fn check_reasoning(&self, reasoning: &str, actions: &[String]) -> Option<Agreement> {
        let board = self.board.as_ref()?;
        let claims = claims::read(reasoning);
        let mut agreement = Agreement::default();
        for (role, (row, col)) in claims.positions {
            let cell = (row < board.rows() && col < board.cols()).then(|| row * board.cols() + col);
            agreement.count(match role {
                Role::Player => cell == Some(board.player()),
                Role::Box => cell.is_some_and(|cell| board.box_cells().any(|c| c == cell)),
                Role::Target => cell.is_some_and(|cell| board.fixed()[cell] == Cell::Target),
                Role::Hole => false,
                Role::Plan => continue,
            });
        }
        if let Some(offset) = claims.offset {
            let targets = || (0..board.state().len()).filter(|&cell| board.fixed()[cell] == Cell::Target);
            let from_box = |from| targets().any(|to| claims::leads(offset, board.position(from), board.position(to)));
            agreement.count(board.box_cells().any(from_box));
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
        let plan = self.plan(actions_left);
        demonstrate::turn(self.board.as_ref()?, &plan, max_actions, style, rng)
    }

    fn demonstrate_novice(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        demonstrate::novice_turn(self.board.as_ref()?, max_actions.min(actions_left), style, rng)
    }
}
