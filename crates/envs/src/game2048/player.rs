//! The reference player of 2048: expectimax over the next tiles with a hand-made value of positions.
//!
//! It is strong, not optimal. Positions are looked up by rows: a row of four tiles is one of 65,536, and the value of a
//! board is the sum over its rows and columns.

use std::sync::LazyLock;

use super::{Board, Direction};

/// Exponents beyond this are valued as this one.
const MAX_EXPONENT: u8 = 15;
/// Value of a position without a move left.
const LOST: f64 = -1.0e6;

/// The value of every row.
static ROWS: LazyLock<Vec<f32>> = LazyLock::new(|| {
    (0..=u16::MAX)
        .map(|packed| {
            let row: [i32; 4] = std::array::from_fn(|i| i32::from(packed >> (4 * i) & 15));
            row_value(row)
        })
        .collect()
});

/// Room, order, and neighbours that can merge are good; large tiles spread out are bad.
fn row_value(row: [i32; 4]) -> f32 {
    let weight = |exponent: i32| (f64::from(exponent)).powf(3.2);
    let empty = row.iter().filter(|&&exponent| exponent == 0).count();
    let (mut merges, mut falls, mut rises) = (0, 0.0, 0.0);
    for pair in row.windows(2) {
        if pair[0] == pair[1] && pair[0] > 0 {
            merges += 1;
        }
        let step = weight(pair[1]) - weight(pair[0]);
        if step > 0.0 { rises += step } else { falls -= step }
    }
    let spread: f64 = row.iter().map(|&exponent| weight(exponent)).sum();
    (300.0 * empty as f64 + 600.0 * f64::from(merges) - 3.0 * rises.min(falls) - 1.5 * spread) as f32
}

fn pack(cells: [u8; 4]) -> usize {
    cells.iter().rev().fold(0, |packed, &exponent| packed << 4 | usize::from(exponent.min(MAX_EXPONENT)))
}

fn value(board: &Board) -> f64 {
    let cells = board.cells();
    (0..4)
        .map(|i| {
            let row = pack([cells[4 * i], cells[4 * i + 1], cells[4 * i + 2], cells[4 * i + 3]]);
            let col = pack([cells[i], cells[4 + i], cells[8 + i], cells[12 + i]]);
            f64::from(ROWS[row]) + f64::from(ROWS[col])
        })
        .sum()
}

/// The move that looks best, the first of equals; `None` when nothing can be moved.
pub(super) fn best_move(board: &Board) -> Option<Direction> {
    let mut best: Option<(f64, Direction)> = None;
    for direction in Direction::ALL {
        let slide = board.slide(direction);
        if !slide.moved {
            continue;
        }
        let empty = slide.board.empty().count();
        // The fewer cells are free, the more a single tile decides, and the fewer there are to look at.
        let value = expected(&slide.board, if empty <= 3 { 1 } else { 0 });
        if best.is_none_or(|(most, _)| value > most) {
            best = Some((value, direction));
        }
    }
    best.map(|(_, direction)| direction)
}

/// Mean value over the tile that appears, when the best move follows; `deeper` more tiles are looked at after it.
fn expected(board: &Board, deeper: usize) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for cell in board.empty() {
        for (exponent, probability) in [(1, 0.9), (2, 0.1)] {
            sum += probability * answered(&board.with(cell, exponent), deeper);
        }
        count += 1.0;
    }
    sum / count
}

fn answered(board: &Board, deeper: usize) -> f64 {
    let slides = Direction::ALL.iter().map(|&direction| board.slide(direction)).filter(|slide| slide.moved);
    let values = slides.map(|slide| if deeper > 0 { expected(&slide.board, deeper - 1) } else { value(&slide.board) });
    values.fold(LOST, f64::max)
}
