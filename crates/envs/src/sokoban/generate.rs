//! Makes a Sokoban level from a seed: carve a room, place player and targets, pull the boxes away from the targets,
//! walk the player a little.
//!
//! The draws follow gym-sokoban with RAGEN's changes, so the same seed gives the same board. Where the reference gives
//! up on a seed it re-seeds from Python's salted string hash, which no one can reproduce; here seed *s* is followed by
//! `splitmix64(s)` cut to 32 bits, at most [`MAX_RESEEDS`] times.

use super::{Board, Cell, Direction, ENV_TYPE, SokobanConfig, reverse};
use crate::EnvError;
use crate::rng::{NumpyLegacy, PythonRandom, splitmix64};

/// Re-seeds before a seed is given up.
pub const MAX_RESEEDS: usize = 32;
const TRIES_PER_SEED: usize = 4;
const P_CHANGE_DIRECTION: f64 = 0.35;

/// Offsets of the cells that a brush opens around its centre.
const BRUSHES: [&[(isize, isize)]; 5] = [
    &[(0, -1), (0, 0), (0, 1)],
    &[(-1, 0), (0, 0), (1, 0)],
    &[(0, -1), (0, 0), (1, 0)],
    &[(0, -1), (0, 0), (1, -1), (1, 0)],
    &[(0, 0), (0, 1), (1, 0)],
];

/// A level and how it came about.
#[derive(Clone, Debug)]
pub struct Level {
    /// The first state.
    pub board: Board,
    /// How often the seed had to be replaced; 0 for a level the reference makes too.
    pub reseeds: usize,
}

/// Makes the level of a seed.
///
/// # Errors
/// [`EnvError::Instance`] when neither the seed nor its successors give a level, as in rooms too small for the boxes.
pub fn level(config: &SokobanConfig, seed: u64) -> Result<Level, EnvError> {
    config.check()?;
    let mut current = seed;
    for reseeds in 0..=MAX_RESEEDS {
        if let Some(board) = attempt(config, current) {
            return Ok(Level { board, reseeds });
        }
        current = splitmix64(current) & u64::from(u32::MAX);
    }
    let (rows, cols) = config.dims();
    Err(EnvError::Instance {
        env_type: ENV_TYPE.to_owned(),
        seed,
        message: format!(
            "no level of {rows} × {cols} cells with {} boxes after {MAX_RESEEDS} re-seeds; use a larger room, fewer \
             boxes or a greater search_depth",
            config.num_boxes
        ),
    })
}

fn attempt(config: &SokobanConfig, seed: u64) -> Option<Board> {
    let mut python = PythonRandom::new(seed);
    // NumPy's legacy seeds have 32 bits; longer ones are folded.
    let mut numpy = NumpyLegacy::new((seed ^ (seed >> 32)) as u32);
    let (rows, cols) = config.dims();
    for _ in 0..TRIES_PER_SEED {
        let room = topology(rows, cols, &mut python);
        let (start, targets) = place(rows, cols, room, config.num_boxes, &mut numpy)?;
        let best = reverse::search(&start, &targets, config.search_depth);
        if best.displacement == 0 {
            continue;
        }
        // Every pulled box is off its target or counts as such from here on (the reference's rule).
        let state = best.state.iter().map(|&cell| if cell == Cell::BoxOnTarget { Cell::Box } else { cell }).collect();
        let mut board = Board::new(rows, cols, start.fixed().to_vec(), state)?;
        walk(&mut board, best.displacement, &mut python);
        return Some(board);
    }
    None
}

/// Carves floor into a room of walls with a wandering brush; the border stays wall.
fn topology(rows: usize, cols: usize, random: &mut PythonRandom) -> Vec<Cell> {
    const HEADINGS: [(i64, i64); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];
    let (last_row, last_col) = (rows as i64 - 2, cols as i64 - 2);
    let steps = (1.7 * (rows + cols) as f64) as usize;
    let mut room = vec![Cell::Wall; rows * cols];
    let mut heading = HEADINGS[random.randbelow(4) as usize];
    let mut row = random.randint(1, rows as i64 - 1);
    let mut col = random.randint(1, cols as i64 - 1);
    for _ in 0..steps {
        if random.random() < P_CHANGE_DIRECTION {
            heading = HEADINGS[random.randbelow(4) as usize];
        }
        row = (row + heading.0).clamp(1, last_row);
        col = (col + heading.1).clamp(1, last_col);
        for &(down, right) in BRUSHES[random.randbelow(BRUSHES.len() as u64) as usize] {
            let (r, c) = ((row as usize).wrapping_add_signed(down), (col as usize).wrapping_add_signed(right));
            if (1..rows - 1).contains(&r) && (1..cols - 1).contains(&c) {
                room[r * cols + c] = Cell::Floor;
            }
        }
    }
    room
}

/// Places player and targets on free floor, boxes on the targets; `None` when the floor does not suffice.
fn place(
    rows: usize,
    cols: usize,
    mut room: Vec<Cell>,
    boxes: usize,
    random: &mut NumpyLegacy,
) -> Option<(Board, Vec<usize>)> {
    let mut floor: Vec<usize> = (0..room.len()).filter(|&i| room[i] == Cell::Floor).collect();
    if floor.len() <= boxes + 1 {
        return None;
    }
    let player = floor.remove(random.randint(floor.len() as u64) as usize);
    let mut state = room.clone();
    state[player] = Cell::Player;
    let mut targets = Vec::with_capacity(boxes);
    for _ in 0..boxes {
        let target = floor.remove(random.randint(floor.len() as u64) as usize);
        room[target] = Cell::Target;
        state[target] = Cell::Box;
        targets.push(target);
    }
    Some((Board::new(rows, cols, room, state)?, targets))
}

/// RAGEN's last touch: with some probability the player wanders up to three cells, never back.
fn walk(board: &mut Board, displacement: usize, random: &mut PythonRandom) {
    let probability = if displacement == 1 { 0.8 } else { 0.5 };
    if random.random() > probability {
        return;
    }
    let mut visited = vec![board.player()];
    for _ in 0..3 {
        let free: Vec<usize> = Direction::ALL
            .into_iter()
            .filter_map(|direction| board.neighbour(board.player(), direction))
            .filter(|cell| board.state()[*cell].is_free() && !visited.contains(cell))
            .collect();
        let Some(&next) = random.choice(&free) else {
            return;
        };
        board.walk(next);
        visited.push(next);
        if random.random() > 0.5 {
            return;
        }
    }
}
