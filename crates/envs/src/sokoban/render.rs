//! The text of a Sokoban state: grid, coordinates, or both.

use super::{Board, Cell, ObservationFormat};

/// Writes a state down.
pub(super) fn observation(board: &Board, symbols: &[char; 7], format: ObservationFormat) -> String {
    match format {
        ObservationFormat::Grid => board.draw(symbols),
        ObservationFormat::Coord => coordinates(board),
        ObservationFormat::GridCoord => {
            format!("Coordinates: \n{}\nGrid Map: \n{}", coordinates(board), board.draw(symbols))
        }
    }
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
        let places: Vec<String> = board
            .state()
            .iter()
            .enumerate()
            .filter(|&(_, &cell)| cell == kind)
            .map(|(i, _)| {
                let (row, col) = board.position(i);
                format!("({row}, {col})")
            })
            .collect();
        if shown && !places.is_empty() {
            text.push_str(&format!("\n{name}: {}", places.join(", ")));
        }
    }
    text
}
