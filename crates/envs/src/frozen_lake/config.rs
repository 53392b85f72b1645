//! Settings of the FrozenLake environment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};
use crate::symbols::{self, ObservationFormat};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You cross a frozen lake. Reach the goal and stay out of the holes. The ice is slippery: \
                               you may slide sideways instead of going where you want.";
/// [`INSTRUCTION`] for observations with coordinates.
pub const INSTRUCTION_COORD: &str = "You cross a frozen lake. Reach the goal and stay out of the holes. The ice is \
                                     slippery: you may slide sideways instead of going where you want. Positions are \
                                     (row, column), counted from (0, 0) at the top left: Down adds a row, Right adds \
                                     a column.";

/// Symbols of player, ice, hole, goal, player in a hole, player on the goal.
pub(super) const SYMBOLS: [char; 6] = ['P', '_', 'O', 'G', 'X', '√'];
const MEANINGS: [&str; 6] = ["player", "ice", "hole", "goal", "player in a hole", "player on the goal"];
const KEYS: [&str; 9] = [
    "size",
    "p",
    "success_rate",
    "is_slippery",
    "map_type",
    "observation_format",
    "grid_lookup",
    "grid_vocab",
    "render_mode",
];

/// Where start and goal lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapType {
    /// Anywhere (RAGEN).
    #[default]
    Ragen,
    /// Start at the top left, goal at the bottom right (Gymnasium).
    Gymnasium,
}

/// Settings of the FrozenLake environment, with RAGEN's names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrozenLakeConfig {
    /// Rows and columns of the lake, 2 to 64. Default 4.
    pub size: usize,
    /// Probability that a cell is ice rather than a hole, 0 to 1. Default 0.9.
    pub p: f64,
    /// Probability that a move goes where it was meant to, 0 to 1; the rest is shared by the two directions at right
    /// angles. Default 0.8.
    pub success_rate: f64,
    /// Whether the ice is slippery at all; if not, every move goes where it was meant to. Default true.
    pub is_slippery: bool,
    /// `ragen` (start and goal anywhere) or `gymnasium` (in opposite corners). Default `ragen`.
    pub map_type: MapType,
    /// `grid`, `coord` or `grid_coord`. Default `grid`.
    pub observation_format: ObservationFormat,
    /// Symbols by code: 0 player, 1 ice, 2 hole, 3 goal, 4 player in a hole, 5 player on the goal. Codes left out keep
    /// their symbol. Default `P _ O G X √`.
    pub grid_lookup: BTreeMap<String, String>,
    /// Meaning of symbols in the legend, by symbol. Symbols left out keep their meaning. Default none.
    pub grid_vocab: BTreeMap<String, String>,
    /// `text`, the only one there is. Default `text`.
    pub render_mode: String,
}

impl Default for FrozenLakeConfig {
    fn default() -> Self {
        Self {
            size: 4,
            p: 0.9,
            success_rate: 0.8,
            is_slippery: true,
            map_type: MapType::Ragen,
            observation_format: ObservationFormat::Grid,
            grid_lookup: BTreeMap::new(),
            grid_vocab: BTreeMap::new(),
            render_mode: "text".to_owned(),
        }
    }
}

impl FrozenLakeConfig {
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
        check_range(ENV_TYPE, "size", self.size, 2, 64)?;
        check_range(ENV_TYPE, "p", self.p, 0.0, 1.0)?;
        check_range(ENV_TYPE, "success_rate", self.success_rate, 0.0, 1.0)?;
        if self.render_mode != "text" {
            return Err(refuse(
                ENV_TYPE,
                format!("setting `render_mode`: expected `text`, found `{}`", self.render_mode),
            ));
        }
        self.legend(&self.symbols()?)?;
        Ok(())
    }

    /// Probability that a move goes where it was meant to.
    #[must_use]
    pub fn intended(&self) -> f64 {
        if self.is_slippery { self.success_rate } else { 1.0 }
    }

    /// Rules and goal in words.
    #[must_use]
    pub fn instruction(&self) -> &'static str {
        match self.observation_format {
            ObservationFormat::Grid => INSTRUCTION,
            ObservationFormat::Coord | ObservationFormat::GridCoord => INSTRUCTION_COORD,
        }
    }

    pub(super) fn symbols(&self) -> Result<[char; 6], EnvError> {
        symbols::lookup(ENV_TYPE, SYMBOLS, &self.grid_lookup)
    }

    pub(super) fn legend(&self, symbols: &[char; 6]) -> Result<Vec<(String, String)>, EnvError> {
        symbols::legend(ENV_TYPE, symbols, &MEANINGS, &self.grid_vocab, self.observation_format)
    }
}
