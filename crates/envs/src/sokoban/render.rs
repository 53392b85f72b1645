//! The text of a Sokoban state: grid, coordinates, or both.

use super::{Board, Cell};
use crate::symbols::{ObservationFormat, positions};

/// Writes a state down.
pub(super) fn observation(board: &Board, symbols: &[char; 7], format: ObservationFormat) -> String {
    format.compose(|| board.draw(symbols), || coordinates(board))
}

/// Size and positions; kinds that do not occur are left out, and so are the walls (as in RAGEN).
fn coordinates(board: &Board) -> String {
    let mut text = format!("Board size: {} rows x {} cols (zero-indexed).", board.rows(), board.cols());
    let player_on_target = board.fixed().get(board.player()) == Some(&Cell::Target);
    let kinds = [
        ("Targets", Cell::Target, true),
        ("Boxes", Cell::Box, true),
        ("Boxes on target", Cell::BoxOnTarget, true),
        ("Player", Cell::Player, !player_on_target),
        ("Player on target", Cell::Player, player_on_target),
    ];
    for (name, kind, shown) in kinds {
        let cells = board.state().iter().enumerate().filter(|&(_, &cell)| cell == kind);
        let places = positions(cells.map(|(i, _)| board.position(i)));
        if shown && !places.is_empty() {
            text.push_str(&format!("\n{name}: {places}"));
        }
    }
    text
}
