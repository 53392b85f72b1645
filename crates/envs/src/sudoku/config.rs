//! Settings of the Sudoku environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ENV_TYPE, SIZES};
use crate::EnvError;
use crate::config::{check_range, read, refuse};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You solve a Sudoku. Fill the empty cells so that every row, every column and every box \
                               holds each number once. Given numbers cannot be changed. Rows and columns are counted \
                               from 1. Write a number into a cell with `place 5 at row 2 col 3` or, as row, column, \
                               number, `2,3,5`.";

const KEYS: [&str; 7] =
    ["grid_size", "difficulty", "max_steps", "render_format", "show_conflicts", "show_valid_numbers", "compat"];

/// How many cells are empty at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difficulty {
    /// 40 %.
    #[default]
    Easy,
    /// 50 %.
    Medium,
    /// 60 %.
    Hard,
}

/// How the state is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderFormat {
    /// One line a row, numbers separated by blanks, a dot for an empty cell.
    Simple,
    /// Boxes, given numbers in brackets, and what became of the last action.
    Detailed,
    /// The same with possible numbers and progress.
    #[default]
    WithFeedback,
}

/// Settings of the Sudoku environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SudokuConfig {
    /// Rows and columns of the grid: 4, 9 or 16. Default 9.
    pub grid_size: usize,
    /// `easy` (40 % of the cells empty), `medium` (50 %) or `hard` (60 %). Default `easy`.
    pub difficulty: Difficulty,
    /// Actions, refused ones included, after which the episode is truncated, from 1. Default 81, and 256 for a grid of
    /// 16 × 16, which has more empty cells than 81 (with `compat` 81 there too).
    pub max_steps: Option<usize>,
    /// `simple`, `detailed` or `with_feedback`. Default `with_feedback`.
    pub render_format: RenderFormat,
    /// Mark conflicting numbers with `*`. As placements that conflict are refused, there are none to mark. Default true.
    pub show_conflicts: bool,
    /// List the possible numbers when at most ten cells are empty (`with_feedback` only). Default true.
    pub show_valid_numbers: bool,
    /// As in RAGEN, a puzzle may have several solutions, every consistent placement pays again and again, and the step
    /// limit is only looked at after an accepted placement. Default false.
    pub compat: bool,
}

impl Default for SudokuConfig {
    fn default() -> Self {
        Self {
            grid_size: 9,
            difficulty: Difficulty::Easy,
            max_steps: None,
            render_format: RenderFormat::WithFeedback,
            show_conflicts: true,
            show_valid_numbers: true,
            compat: false,
        }
    }
}

impl SudokuConfig {
    /// Reads the settings from JSON and checks them.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let config: Self = read(ENV_TYPE, config, &KEYS)?;
        config.check()?;
        Ok(config)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`EnvError::Config`] with the setting, what was expected and what was found.
    pub fn check(&self) -> Result<(), EnvError> {
        if !SIZES.contains(&self.grid_size) {
            return Err(refuse(
                ENV_TYPE,
                format!("setting `grid_size`: expected 4, 9 or 16, found {}", self.grid_size),
            ));
        }
        check_range(ENV_TYPE, "max_steps", self.step_limit(), 1, 1_000_000)
    }

    /// Actions after which the episode is truncated.
    #[must_use]
    pub fn step_limit(&self) -> usize {
        let default = if self.grid_size > 9 && !self.compat { self.grid_size * self.grid_size } else { 81 };
        self.max_steps.unwrap_or(default)
    }

    /// Cells to empty.
    #[must_use]
    pub fn blanks(&self) -> usize {
        let tenths = match self.difficulty {
            Difficulty::Easy => 4,
            Difficulty::Medium => 5,
            Difficulty::Hard => 6,
        };
        self.grid_size * self.grid_size * tenths / 10
    }
}
