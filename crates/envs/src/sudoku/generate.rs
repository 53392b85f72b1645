//! Makes a puzzle from a seed: fill the grid at random, then empty cells in random order.
//!
//! The draws follow RAGEN's, so the same seed gives the same solution, and with `compat` the same puzzle. Without it a
//! cell stays filled when emptying it would allow a second solution (RAGEN says it checks this and does not). Where
//! RAGEN's backtracking, cell after cell in reading order, takes too long, as it does with 16 × 16, the grid is filled
//! most constrained cell first from the same random stream.

use super::search::{Found, MAX_WRITES, complete, forced};
use super::{ENV_TYPE, Grid, SudokuConfig};
use crate::EnvError;
use crate::rng::PythonRandom;

/// Numbers written in reading order before the other way of filling takes over. 9 × 9 grids take far fewer.
const MAX_READING_ORDER: usize = 200_000;

/// A puzzle with its solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puzzle {
    /// The given numbers.
    pub initial: Grid,
    /// A full grid that agrees with them; the only one unless made with `compat`.
    pub solution: Grid,
}

/// Makes the puzzle of a seed.
///
/// # Errors
/// [`EnvError::Config`] for settings out of range; [`EnvError::Instance`] when no grid could be filled, which has not
/// been seen.
pub fn puzzle(config: &SudokuConfig, seed: u64) -> Result<Puzzle, EnvError> {
    config.check()?;
    let mut random = PythonRandom::new(seed);
    let solution = full_grid(config.grid_size, &mut random).ok_or_else(|| EnvError::Instance {
        env_type: ENV_TYPE.to_owned(),
        seed,
        message: "the grid could not be filled; use another seed".to_owned(),
    })?;
    let mut order: Vec<usize> = (0..solution.cells().len()).collect();
    random.shuffle(&mut order);
    let mut left = config.blanks();
    let mut initial = solution.clone();
    for cell in order {
        if left == 0 {
            break;
        }
        let number = solution.cells()[cell];
        initial.set(cell, 0);
        if !config.compat && !forced(&initial, cell, number) {
            initial.set(cell, number);
            continue;
        }
        left -= 1;
    }
    Ok(Puzzle { initial, solution })
}

fn full_grid(size: usize, random: &mut PythonRandom) -> Option<Grid> {
    let empty = Grid::new(size, vec![0; size * size])?;
    let mut grid = empty.clone();
    let mut writes_left = MAX_READING_ORDER;
    if fill(&mut grid, random, &mut writes_left)? {
        return Some(grid);
    }
    // A few restarts get round an unlucky beginning.
    for _ in 0..100 {
        if let Found::Completion(grid) = complete(&empty, MAX_WRITES, &mut |numbers| random.shuffle(numbers)) {
            return Some(grid);
        }
    }
    None
}

/// Fills the first empty cell and the rest after it; false when the bound was reached, `None` when there is no way.
fn fill(grid: &mut Grid, random: &mut PythonRandom, writes_left: &mut usize) -> Option<bool> {
    let Some(cell) = grid.cells().iter().position(|&n| n == 0) else {
        return Some(true);
    };
    let mut numbers: Vec<u8> = (1..=grid.size() as u8).collect();
    random.shuffle(&mut numbers);
    let used = grid.used(cell);
    for number in numbers.into_iter().filter(|number| used >> number & 1 == 0) {
        let Some(left) = writes_left.checked_sub(1) else {
            return Some(false);
        };
        *writes_left = left;
        grid.set(cell, number);
        if let Some(filled) = fill(grid, random, writes_left) {
            return Some(filled);
        }
    }
    grid.set(cell, 0);
    None
}
