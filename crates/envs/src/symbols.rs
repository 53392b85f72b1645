//! Grids in text: how a state is written down, with which symbols, and the legend that explains them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::EnvError;
use crate::config::refuse;

/// How a grid world's state is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationFormat {
    /// One symbol a cell, one line a row.
    #[default]
    Grid,
    /// Lists of (row, column) positions.
    Coord,
    /// Both, the positions first.
    GridCoord,
}

impl ObservationFormat {
    /// Puts grid and positions together as this format wants them.
    pub(crate) fn compose(self, grid: impl FnOnce() -> String, coordinates: impl FnOnce() -> String) -> String {
        match self {
            ObservationFormat::Grid => grid(),
            ObservationFormat::Coord => coordinates(),
            ObservationFormat::GridCoord => format!("Coordinates: \n{}\nGrid Map: \n{}", coordinates(), grid()),
        }
    }
}

/// The symbols in use by cell code: the defaults with the replacements of a `grid_lookup` setting.
pub(crate) fn lookup<const N: usize>(
    env_type: &str,
    mut symbols: [char; N],
    grid_lookup: &BTreeMap<String, String>,
) -> Result<[char; N], EnvError> {
    for (code, symbol) in grid_lookup {
        let slot = code.parse::<usize>().ok().and_then(|code| symbols.get_mut(code)).ok_or_else(|| {
            refuse(
                env_type,
                format!("setting `grid_lookup`: expected cell codes 0 to {}, found `{code}`", N.saturating_sub(1)),
            )
        })?;
        let mut chars = symbol.chars();
        match (chars.next(), chars.next()) {
            (Some(one), None) if !one.is_whitespace() && !one.is_control() => *slot = one,
            _ => {
                return Err(refuse(
                    env_type,
                    format!("setting `grid_lookup.{code}`: expected one visible character, found {symbol:?}"),
                ));
            }
        }
    }
    for i in 0..N {
        if let Some(other) = symbols[..i].iter().position(|&symbol| symbol == symbols[i]) {
            return Err(refuse(
                env_type,
                format!("setting `grid_lookup`: codes {other} and {i} share the symbol `{}`", symbols[i]),
            ));
        }
    }
    Ok(symbols)
}

/// Symbols with their meanings, the latter replaced where a `grid_vocab` setting says so; empty for a format that
/// shows no grid.
pub(crate) fn legend<const N: usize>(
    env_type: &str,
    symbols: &[char; N],
    meanings: &[&str; N],
    grid_vocab: &BTreeMap<String, String>,
    format: ObservationFormat,
) -> Result<Vec<(String, String)>, EnvError> {
    let mut legend: Vec<(String, String)> =
        symbols.iter().zip(meanings).map(|(symbol, meaning)| (symbol.to_string(), (*meaning).to_owned())).collect();
    for (symbol, meaning) in grid_vocab {
        match legend.iter_mut().find(|(known, _)| known == symbol) {
            Some(entry) => entry.1.clone_from(meaning),
            None => {
                let known: String = symbols.iter().collect();
                return Err(refuse(
                    env_type,
                    format!("setting `grid_vocab`: expected symbols out of `{known}`, found `{symbol}`"),
                ));
            }
        }
    }
    if format == ObservationFormat::Coord {
        legend.clear();
    }
    Ok(legend)
}

/// `(row, column)` positions in a list.
pub(crate) fn positions(places: impl Iterator<Item = (usize, usize)>) -> String {
    places.map(|(row, col)| format!("({row}, {col})")).collect::<Vec<_>>().join(", ")
}
