//! Sudoku of 4 × 4, 9 × 9 and 16 × 16: fill the grid so that every row, column and box holds each number once.
//!
//! Generation, rewards and text are RAGEN's. Deviations unless `compat` is set: a puzzle has exactly one solution; a cell
//! pays at most once for a consistent number and once more for the right one, so that writing back and forth earns
//! nothing; the step limit also ends an episode after a refused action, and 16 × 16 has steps enough to be solved.

mod action;
mod config;
mod demonstrate;
pub mod generate;
mod grid;
mod player;
mod render;
mod search;

pub use config::{Difficulty, INSTRUCTION, RenderFormat, SudokuConfig};
pub use generate::Puzzle;
pub use grid::{Conflict, Grid, SIZES};

use rand_core::Rng;
use serde_json::Value;

use crate::rng::index_below;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
use action::Placement;

/// Registry name.
pub const ENV_TYPE: &str = "sudoku";

/// What an action that is refused costs.
const REFUSED: f64 = -0.1;
/// What the right number pays.
const RIGHT: f64 = 1.0;
/// What a number pays that is consistent but not the right one.
const CONSISTENT: f64 = 0.5;
/// What finishing pays on top.
const SOLVED: f64 = 10.0;

/// The Sudoku environment.
pub struct Sudoku {
    config: SudokuConfig,
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    puzzle: Puzzle,
    grid: Grid,
    /// What was paid for each cell so far.
    paid: Vec<f64>,
    /// Actions, refused ones included.
    steps: usize,
    /// Accepted placements.
    accepted: usize,
    /// What became of the last action.
    feedback: Option<String>,
    /// The same of the last accepted one.
    last_accepted: Option<String>,
    over: bool,
}

impl Sudoku {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: SudokuConfig) -> Result<Self, EnvError> {
        config.check()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, episode: None })
    }

    /// An environment from JSON settings; see [`SudokuConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(SudokuConfig::from_json(config)?)
    }

    /// The present puzzle, if an episode has begun.
    #[must_use]
    pub fn puzzle(&self) -> Option<&Puzzle> {
        self.episode.as_ref().map(|episode| &episode.puzzle)
    }

    /// The present grid, if an episode has begun.
    #[must_use]
    pub fn grid(&self) -> Option<&Grid> {
        self.episode.as_ref().map(|episode| &episode.grid)
    }

    /// Starts an episode on a given puzzle.
    pub fn start_on(&mut self, puzzle: Puzzle) -> String {
        let (grid, over) = (puzzle.initial.clone(), puzzle.initial.solved());
        let paid = vec![0.0; grid.cells().len()];
        let (feedback, last_accepted) = (None, None);
        self.episode = Some(Episode { puzzle, grid, paid, steps: 0, accepted: 0, feedback, last_accepted, over });
        self.render()
    }

    fn open(&self) -> Option<&Episode> {
        self.episode.as_ref().filter(|episode| !episode.over)
    }

    /// Actions that can still be taken.
    fn left(&self, episode: &Episode, actions_left: usize) -> usize {
        actions_left.min(self.config.step_limit().saturating_sub(episode.steps))
    }

    /// The oracle's next moves, as many as can still be made.
    fn plan(&self, actions_left: usize) -> Vec<player::Move> {
        let Some(episode) = self.open() else {
            return Vec::new();
        };
        let mut moves = player::plan(&episode.grid, &episode.puzzle).map(|plan| plan.moves).unwrap_or_default();
        // Even a grid that cannot be finished in time pays for every number.
        moves.truncate(self.left(episode, actions_left));
        moves
    }
}

impl Episode {
    /// Writes a number down, or says why not.
    fn place(&mut self, Placement { row, col, number }: Placement) -> Result<usize, String> {
        let cell = (row - 1) * self.grid.size() + col - 1;
        if self.puzzle.initial.cells()[cell] != 0 {
            return Err("❌ Cannot modify initial cells".to_owned());
        }
        let conflict = self.grid.conflict(cell, number);
        if conflict.any() {
            let side = self.grid.side();
            let units = [
                conflict.row.then(|| format!("row {row}")),
                conflict.col.then(|| format!("column {col}")),
                conflict.in_box.then(|| format!("box ({},{})", (row - 1) / side + 1, (col - 1) / side + 1)),
            ];
            let units: Vec<String> = units.into_iter().flatten().collect();
            return Err(format!("❌ Invalid placement: {number} conflicts with {}", units.join(", ")));
        }
        self.grid.set(cell, number);
        Ok(cell)
    }

    /// What the number just written into a cell earns.
    fn pay(&mut self, cell: usize, compat: bool) -> f64 {
        let right = self.grid.cells()[cell] == self.puzzle.solution.cells()[cell];
        let value = if right { RIGHT } else { CONSISTENT };
        if compat {
            return value;
        }
        let more = (value - self.paid[cell]).max(0.0);
        self.paid[cell] += more;
        more
    }
}

/// An action that writes a number into a cell.
fn spell(grid: &Grid, cell: usize, number: u8) -> String {
    let (row, col) = grid.position(cell);
    format!("place {number} at row {} col {}", row + 1, col + 1)
}

impl Environment for Sudoku {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let puzzle = generate::puzzle(&self.config, seed)?;
        Ok(self.start_on(puzzle))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let (compat, limit) = (self.config.compat, self.config.step_limit());
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        episode.steps += 1;
        let placed = action::parse(action, episode.grid.size())
            .map_err(|message| format!("❌ Invalid action format: {message}"))
            .and_then(|placement| Ok((episode.place(placement)?, placement)));
        let (cell, Placement { row, col, number }) = match placed {
            Ok(placed) => placed,
            Err(feedback) => {
                episode.feedback = Some(feedback);
                let truncated = !compat && episode.steps >= limit;
                episode.over = truncated;
                let info = Info::default();
                return Ok(Step { observation: self.render(), reward: REFUSED, terminated: false, truncated, info });
            }
        };
        episode.accepted += 1;
        let right = number == episode.puzzle.solution.cells()[cell];
        let mut reward = episode.pay(cell, compat);
        let success = episode.grid.solved();
        let mut feedback = match right {
            true => format!("✓ Correct! Placed {number} at ({row},{col})"),
            false => format!("✓ Possible so far: placed {number} at ({row},{col})"),
        };
        if success {
            reward += SOLVED;
            feedback.push_str("\n🎉 Congratulations! Puzzle solved!");
        }
        episode.last_accepted = Some(feedback.clone());
        episode.feedback = Some(feedback);
        let truncated = !success && episode.steps >= limit;
        episode.over = success || truncated;
        let (cells, empty) = (episode.grid.cells().len(), episode.grid.empty());
        let extra = [
            ("correct_placement", f64::from(u8::from(right))),
            ("steps_remaining", limit.saturating_sub(episode.steps) as f64),
            ("cells_filled", (cells - empty) as f64),
            ("cells_remaining", empty as f64),
        ];
        let extra = extra.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let info = Info { success, action_is_valid: true, action_is_effective: true, extra };
        Ok(Step { observation: self.render(), reward, terminated: success, truncated, info })
    }

    fn render(&self) -> String {
        self.episode.as_ref().map(|episode| render::observation(episode, &self.config)).unwrap_or_default()
    }

    /// The given and the written numbers with the last accepted placement; a refused action leaves no trace in it.
    fn state_key(&self) -> String {
        let Some(episode) = &self.episode else {
            return String::new();
        };
        format!(
            "{:?} {:?} after {} {}",
            episode.puzzle.initial.cells(),
            episode.grid.cells(),
            episode.accepted,
            episode.last_accepted.as_deref().unwrap_or_default()
        )
    }

    /// Any number that can be written into any cell that is not given, all such placements alike.
    fn sample_action(&self, rng: &mut dyn Rng) -> Option<String> {
        let Episode { puzzle, grid, .. } = self.open()?;
        let mut choices = Vec::new();
        for (cell, _) in puzzle.initial.cells().iter().enumerate().filter(|&(_, &given)| given == 0) {
            choices.extend(grid.candidates(cell).into_iter().map(|number| (cell, number)));
        }
        let (cell, number) = *choices.get(index_below(rng, choices.len()))?;
        Some(spell(grid, cell, number))
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let Some(episode) = self.open() else {
            return Vec::new();
        };
        self.plan(actions_left).into_iter().map(|place| spell(&episode.grid, place.cell, place.number)).collect()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let episode = self.episode.as_ref()?;
        if episode.over {
            return Some(if episode.grid.solved() { 1.0 } else { 0.0 });
        }
        let left = self.left(episode, actions_left);
        if episode.grid.empty() > left {
            return Some(0.0);
        }
        let plan = player::plan(&episode.grid, &episode.puzzle)?;
        match plan.moves.len() <= left {
            true => Some(1.0),
            false => plan.shortest.then_some(0.0),
        }
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let mut moves = self.plan(actions_left);
        moves.truncate(max_actions);
        demonstrate::turn(&self.open()?.grid, &moves, style, rng)
    }
}
