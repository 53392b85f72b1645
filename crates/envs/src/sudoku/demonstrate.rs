//! Reasoning in words for a Sudoku turn.

use rand_core::Rng;

use super::player::Move;
use super::{Grid, spell};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// Words for a turn that makes these moves on `grid`; `None` for no moves.
pub(super) fn turn(grid: &Grid, moves: &[Move], style: DemoStyle, rng: &mut dyn Rng) -> Option<Demonstration> {
    if moves.is_empty() {
        return None;
    }
    let mut now = grid.clone();
    let mut reasons = Vec::new();
    for place in moves {
        reasons.push(match style {
            DemoStyle::Brief => brief(&now, place),
            DemoStyle::Verbose => verbose(&now, place, rng),
        });
        now.set(place.cell, place.number);
    }
    let actions = moves.iter().map(|place| spell(grid, place.cell, place.number)).collect();
    Some(Demonstration { reasoning: reasons.join(" "), actions })
}

/// As in Sokoban, brief words follow from the situation and never from chance: the cell and the numbers it may take.
fn brief(grid: &Grid, place: &Move) -> String {
    let (row, col) = grid.position(place.cell);
    let numbers: Vec<String> = grid.candidates(place.cell).iter().map(u8::to_string).collect();
    let cell = format!("{},{}:{}", row + 1, col + 1, numbers.join("/"));
    if place.only { cell } else { format!("{cell} take {}", place.number) }
}

fn verbose(grid: &Grid, place: &Move, rng: &mut dyn Rng) -> String {
    let (row, col) = grid.position(place.cell);
    let (row, col, number) = (row + 1, col + 1, place.number);
    let choice = index_below(rng, 3);
    if place.only {
        return match choice {
            0 => format!("In row {row}, column {col}, every number but {number} is taken by its row, column or box."),
            1 => format!("The cell at row {row}, column {col} leaves only {number}, so I write {number}."),
            _ => format!("Row, column and box around ({row}, {col}) hold everything except {number}; it goes there."),
        };
    }
    let numbers: Vec<String> = grid.candidates(place.cell).iter().map(u8::to_string).collect();
    let numbers = numbers.join(", ");
    match choice {
        0 => format!("Row {row}, column {col} could take {numbers}; looking further, {number} works out."),
        1 => format!("For the cell ({row}, {col}) there are {numbers}. The rest of the grid asks for {number}."),
        _ => format!("Of {numbers} at row {row}, column {col} I choose {number}, which leads to a full grid."),
    }
}
