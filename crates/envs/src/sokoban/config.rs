//! Settings of the Sokoban environment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};
use crate::symbols::{self, ObservationFormat};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You play Sokoban. Push every box onto a target. Walking into a box pushes it one cell \
                               if the cell behind it is free. Boxes cannot be pulled, and two in a row cannot be \
                               pushed.";
/// [`INSTRUCTION`] for observations with coordinates.
pub const INSTRUCTION_COORD: &str = "You play Sokoban. Push every box onto a target. Walking into a box pushes it one \
                                     cell if the cell behind it is free. Boxes cannot be pulled, and two in a row \
                                     cannot be pushed. Positions are (row, column), counted from (0, 0) at the top \
                                     left: Down adds a row, Right adds a column.";

/// Symbols of wall, floor, target, box on target, box, player, player on target.
pub(super) const SYMBOLS: [char; 7] = ['#', '_', 'O', '√', 'X', 'P', 'S'];
const MEANINGS: [&str; 7] = ["wall", "empty", "target", "box on target", "box", "player", "player on target"];
const KEYS: [&str; 13] = [
    "dim_room",
    "dim_x",
    "dim_y",
    "num_boxes",
    "max_steps",
    "search_depth",
    "observation_format",
    "grid_lookup",
    "grid_vocab",
    "render_mode",
    "data_path",
    "val_path",
    "val_every",
];
/// Settings of the generator, which have no effect on levels from a file.
const GENERATOR_KEYS: [&str; 5] = ["dim_room", "dim_x", "dim_y", "num_boxes", "search_depth"];

/// Settings of the Sokoban environment, with RAGEN's names and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SokobanConfig {
    /// Rows and columns of the room, walls included, 3 to 64 each. Default (6, 6).
    pub dim_room: (usize, usize),
    /// Rows; replaces the first of `dim_room` when given. Default none.
    pub dim_x: Option<usize>,
    /// Columns; replaces the second of `dim_room` when given. Default none.
    pub dim_y: Option<usize>,
    /// Number of boxes and targets, 1 to 64 and as many as there is room for. Default 3.
    pub num_boxes: usize,
    /// Actions after which the episode is truncated, from 1. Default 100.
    pub max_steps: usize,
    /// Depth of the reverse search that makes a level, in states, 2 to 100,000. Default 300.
    pub search_depth: usize,
    /// `grid`, `coord` or `grid_coord`. Default `grid`.
    pub observation_format: ObservationFormat,
    /// Symbols by cell code: 0 wall, 1 floor, 2 target, 3 box on target, 4 box, 5 player, 6 player on target. Codes
    /// left out keep their symbol. Default `# _ O √ X P S`.
    pub grid_lookup: BTreeMap<String, String>,
    /// Meaning of symbols in the legend, by symbol. Symbols left out keep their meaning. Default none.
    pub grid_vocab: BTreeMap<String, String>,
    /// `text`, the only one there is. Default `text`.
    pub render_mode: String,
    /// A file of levels in Boxoban's format, or a folder of such files ending in `.txt`; they take the place of
    /// generated ones. Default none.
    pub data_path: Option<String>,
    /// The same for validation. Default none: every `val_every`-th level of `data_path` is kept for it.
    pub val_path: Option<String>,
    /// Every how many-th level is kept for validation, from 2. Default 10.
    pub val_every: Option<usize>,
}

impl Default for SokobanConfig {
    fn default() -> Self {
        Self {
            dim_room: (6, 6),
            dim_x: None,
            dim_y: None,
            num_boxes: 3,
            max_steps: 100,
            search_depth: 300,
            observation_format: ObservationFormat::Grid,
            grid_lookup: BTreeMap::new(),
            grid_vocab: BTreeMap::new(),
            render_mode: "text".to_owned(),
            data_path: None,
            val_path: None,
            val_every: None,
        }
    }
}

impl SokobanConfig {
    /// Reads the settings from JSON and checks them.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let settings: Self = read(ENV_TYPE, config, &KEYS)?;
        if settings.data_path.is_some()
            && let Some(key) = GENERATOR_KEYS.iter().find(|key| config.get(key).is_some())
        {
            return Err(refuse(ENV_TYPE, format!("`{key}` has no effect together with `data_path`; give one")));
        }
        settings.check()?;
        Ok(settings)
    }

    /// Rows and columns of the room.
    #[must_use]
    pub fn dims(&self) -> (usize, usize) {
        (self.dim_x.unwrap_or(self.dim_room.0), self.dim_y.unwrap_or(self.dim_room.1))
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`EnvError::Config`] with the setting, what was expected and what was found.
    pub fn check(&self) -> Result<(), EnvError> {
        let (rows, cols) = self.dims();
        check_range(ENV_TYPE, if self.dim_x.is_some() { "dim_x" } else { "dim_room" }, rows, 3, 64)?;
        check_range(ENV_TYPE, if self.dim_y.is_some() { "dim_y" } else { "dim_room" }, cols, 3, 64)?;
        check_range(ENV_TYPE, "num_boxes", self.num_boxes, 1, 64)?;
        let inner = (rows - 2) * (cols - 2);
        if self.num_boxes + 2 > inner {
            return Err(refuse(
                ENV_TYPE,
                format!(
                    "setting `num_boxes`: expected room for the boxes, the player and one more cell ({rows} × {cols} \
                     has {inner} inner cells), found {}",
                    self.num_boxes
                ),
            ));
        }
        check_range(ENV_TYPE, "max_steps", self.max_steps, 1, 1_000_000)?;
        check_range(ENV_TYPE, "search_depth", self.search_depth, 2, 100_000)?;
        if self.render_mode != "text" {
            return Err(refuse(
                ENV_TYPE,
                format!("setting `render_mode`: expected `text`, found `{}`", self.render_mode),
            ));
        }
        let symbols = self.symbols()?;
        self.legend(&symbols)?;
        Ok(())
    }

    /// The symbols in use, in the order of the cell codes.
    pub(super) fn symbols(&self) -> Result<[char; 7], EnvError> {
        symbols::lookup(ENV_TYPE, SYMBOLS, &self.grid_lookup)
    }

    /// Symbols with their meanings; empty when no grid is shown.
    pub(super) fn legend(&self, symbols: &[char; 7]) -> Result<Vec<(String, String)>, EnvError> {
        symbols::legend(ENV_TYPE, symbols, &MEANINGS, &self.grid_vocab, self.observation_format)
    }

    /// Rules and goal in words.
    #[must_use]
    pub fn instruction(&self) -> &'static str {
        match self.observation_format {
            ObservationFormat::Grid => INSTRUCTION,
            ObservationFormat::Coord | ObservationFormat::GridCoord => INSTRUCTION_COORD,
        }
    }
}
