//! The oracle of Sudoku: which number to write where.

use super::search::{Found, MAX_WRITES, complete, most_constrained};
use super::{Grid, Puzzle};

/// A number for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub cell: usize,
    pub number: u8,
    /// The only number that its row, column and box leave.
    pub only: bool,
}

/// How a grid is finished.
pub(super) struct Plan {
    pub moves: Vec<Move>,
    /// No other plan is shorter.
    pub shortest: bool,
}

/// A plan from `grid`; `None` when none was found, which takes own numbers that block each other.
pub(super) fn plan(grid: &Grid, puzzle: &Puzzle) -> Option<Plan> {
    let mut now = grid.clone();
    let mut moves = Vec::new();
    let agrees = |grid: &Grid| grid.cells().iter().zip(puzzle.solution.cells()).all(|(&a, &b)| a == 0 || a == b);
    // What was written may still lead to a solution, perhaps to another one than the puzzle was made from.
    let completion =
        if agrees(&now) { Found::Completion(puzzle.solution.clone()) } else { complete(&now, MAX_WRITES, &mut |_| {}) };
    let (solution, shortest) = match completion {
        Found::Completion(solution) => (solution, true),
        Found::Nothing | Found::GaveUp => (puzzle.solution.clone(), false),
    };
    // Wrong numbers are written over, those first whose place is not blocked by another wrong one.
    let wrong = |grid: &Grid, cell: usize| grid.cells()[cell] != 0 && grid.cells()[cell] != solution.cells()[cell];
    let mut evasions_left = now.cells().len();
    while let Some(any) = (0..now.cells().len()).find(|&cell| wrong(&now, cell)) {
        let free = (0..now.cells().len())
            .filter(|&cell| wrong(&now, cell))
            .find(|&cell| !now.conflict(cell, solution.cells()[cell]).any());
        let (cell, number) = match free {
            Some(cell) => (cell, solution.cells()[cell]),
            // Two that wait for each other: one takes some third number for the time being.
            None => {
                evasions_left = evasions_left.checked_sub(1)?;
                let evade = |cell: usize| now.candidates(cell).first().map(|&number| (cell, number));
                (any..now.cells().len()).filter(|&cell| wrong(&now, cell)).find_map(evade)?
            }
        };
        moves.push(Move { cell, number, only: false });
        now.set(cell, number);
    }
    while let Some(cell) = most_constrained(&now) {
        let number = solution.cells()[cell];
        moves.push(Move { cell, number, only: now.candidates(cell).len() == 1 });
        now.set(cell, number);
    }
    Some(Plan { moves, shortest })
}
