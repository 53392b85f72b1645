//! The map of a frozen lake, how it is drawn from a seed, and where a move may end.

use super::{ENV_TYPE, FrozenLakeConfig, MapType};
use crate::EnvError;
use crate::rng::NumpyGenerator;

/// Maps drawn before a seed is given up.
const MAX_DRAWS: usize = 20_000;

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// Ice, where the player starts.
    Start,
    /// Ice.
    Frozen,
    /// A hole: the end.
    Hole,
    /// The goal: the end, and the reward.
    Goal,
}

/// A move, in Gymnasium's order: neighbours in this (cyclic) order are at right angles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// One column less.
    Left,
    /// One row more.
    Down,
    /// One column more.
    Right,
    /// One row less.
    Up,
}

impl Move {
    /// All moves, in the order of their action numbers.
    pub const ALL: [Move; 4] = [Move::Left, Move::Down, Move::Right, Move::Up];

    /// The action's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Move::Left => "Left",
            Move::Down => "Down",
            Move::Right => "Right",
            Move::Up => "Up",
        }
    }

    /// The move of this name, without regard to case or surrounding blanks.
    #[must_use]
    pub fn parse(name: &str) -> Option<Move> {
        let name = name.trim();
        Self::ALL.into_iter().find(|way| way.name().eq_ignore_ascii_case(name))
    }

    fn turned(self, quarter_turns: usize) -> Move {
        Self::ALL[(self as usize + quarter_turns) % 4]
    }
}

/// Where a move may end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlipOutcome {
    /// How likely.
    pub probability: f64,
    /// The cell, row-major.
    pub next: usize,
}

/// A square map with one start and one goal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lake {
    size: usize,
    tiles: Vec<Tile>,
    start: usize,
    goal: usize,
}

impl Lake {
    /// Reads a map in the letters S, F, H, G, one string a row; `None` unless it is square with one start and one goal.
    #[must_use]
    pub fn from_map<S: AsRef<str>>(rows: &[S]) -> Option<Lake> {
        let mut tiles = Vec::with_capacity(rows.len() * rows.len());
        for row in rows {
            for letter in row.as_ref().chars() {
                tiles.push(match letter {
                    'S' => Tile::Start,
                    'F' => Tile::Frozen,
                    'H' => Tile::Hole,
                    'G' => Tile::Goal,
                    _ => return None,
                });
            }
            if tiles.len() % rows.len() != 0 {
                return None;
            }
        }
        Lake::new(rows.len(), tiles)
    }

    fn new(size: usize, tiles: Vec<Tile>) -> Option<Lake> {
        let only = |wanted: Tile| {
            let mut places = tiles.iter().enumerate().filter(|&(_, &tile)| tile == wanted).map(|(i, _)| i);
            places.next().filter(|_| places.next().is_none())
        };
        if tiles.len() != size.checked_mul(size)? {
            return None;
        }
        let (start, goal) = (only(Tile::Start)?, only(Tile::Goal)?);
        Some(Lake { size, tiles, start, goal })
    }

    /// Draws the map of a seed.
    ///
    /// # Errors
    /// [`EnvError::Instance`] when no draw lets the player reach the goal.
    pub fn generate(config: &FrozenLakeConfig, seed: u64) -> Result<Lake, EnvError> {
        config.check()?;
        let mut stream = NumpyGenerator::new(seed);
        for _ in 0..MAX_DRAWS {
            if let Some(lake) = draw(config, &mut stream).filter(Lake::goal_is_reachable) {
                return Ok(lake);
            }
        }
        Err(EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: format!(
                "no map of size {} with p = {} had a way to the goal in {MAX_DRAWS} draws; use a greater p",
                config.size, config.p
            ),
        })
    }

    /// Rows and columns.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The start cell, row-major.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// The goal cell, row-major.
    #[must_use]
    pub fn goal(&self) -> usize {
        self.goal
    }

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.tiles.len()
    }

    /// What a cell is; off the map everything is a hole.
    #[must_use]
    pub fn tile(&self, cell: usize) -> Tile {
        self.tiles.get(cell).copied().unwrap_or(Tile::Hole)
    }

    /// The hole cells, ascending.
    pub fn holes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.tiles.len()).filter(|&cell| self.tiles[cell] == Tile::Hole)
    }

    /// An episode ends on this cell.
    #[must_use]
    pub fn ends_at(&self, cell: usize) -> bool {
        matches!(self.tile(cell), Tile::Hole | Tile::Goal)
    }

    /// Row and column of a cell.
    #[must_use]
    pub fn position(&self, cell: usize) -> (usize, usize) {
        (cell / self.size, cell % self.size)
    }

    /// The cell a move leads to; the edge holds the player back.
    #[must_use]
    pub fn neighbour(&self, cell: usize, way: Move) -> usize {
        let (row, col) = self.position(cell);
        match way {
            Move::Left if col > 0 => cell - 1,
            Move::Down if row + 1 < self.size => cell + self.size,
            Move::Right if col + 1 < self.size => cell + 1,
            Move::Up if row > 0 => cell - self.size,
            _ => cell,
        }
    }

    /// Where a move may end, in Gymnasium's order: a quarter turn back, as meant, a quarter turn on. A single outcome
    /// when nothing slips or the episode is over at `cell`.
    #[must_use]
    pub fn outcomes(&self, cell: usize, way: Move, success_rate: f64) -> Vec<SlipOutcome> {
        if self.ends_at(cell) {
            return vec![SlipOutcome { probability: 1.0, next: cell }];
        }
        if success_rate >= 1.0 {
            return vec![SlipOutcome { probability: 1.0, next: self.neighbour(cell, way) }];
        }
        let slip = (1.0 - success_rate) / 2.0;
        [(3, slip), (0, success_rate), (1, slip)]
            .map(|(turns, probability)| SlipOutcome { probability, next: self.neighbour(cell, way.turned(turns)) })
            .to_vec()
    }

    /// Some path over ice leads from start to goal.
    #[must_use]
    pub fn goal_is_reachable(&self) -> bool {
        let mut seen = vec![false; self.tiles.len()];
        let mut open = vec![self.start];
        while let Some(cell) = open.pop() {
            if cell == self.goal {
                return true;
            }
            if self.tile(cell) == Tile::Hole || std::mem::replace(&mut seen[cell], true) {
                continue;
            }
            open.extend(Move::ALL.map(|way| self.neighbour(cell, way)));
        }
        false
    }

    /// The map in the letters S, F, H, G, one string a row.
    #[must_use]
    pub fn map(&self) -> Vec<String> {
        let letter = |tile: &Tile| match tile {
            Tile::Start => 'S',
            Tile::Frozen => 'F',
            Tile::Hole => 'H',
            Tile::Goal => 'G',
        };
        self.tiles.chunks(self.size).map(|row| row.iter().map(letter).collect()).collect()
    }

    /// The map with the player on it, in symbols of player, ice, hole, goal, player in a hole, player on the goal.
    pub(super) fn draw(&self, player: usize, symbols: &[char; 6]) -> String {
        let mut text = String::with_capacity(self.tiles.len() * 2);
        for (cell, tile) in self.tiles.iter().enumerate() {
            if cell > 0 && cell % self.size == 0 {
                text.push('\n');
            }
            text.push(match (tile, cell == player) {
                (Tile::Start | Tile::Frozen, true) => symbols[0],
                (Tile::Start | Tile::Frozen, false) => symbols[1],
                (Tile::Hole, false) => symbols[2],
                (Tile::Goal, false) => symbols[3],
                (Tile::Hole, true) => symbols[4],
                (Tile::Goal, true) => symbols[5],
            });
        }
        text
    }
}

/// One draw of a map, which may turn out impassable; `None` when start and goal fall together.
fn draw(config: &FrozenLakeConfig, stream: &mut NumpyGenerator) -> Option<Lake> {
    let size = config.size;
    let weights = [config.p, 1.0 - config.p];
    let mut tiles: Vec<Tile> = (0..size * size)
        .map(|_| if stream.choice_p(&weights) == Some(0) { Tile::Frozen } else { Tile::Hole })
        .collect();
    let (start, goal) = match config.map_type {
        MapType::Gymnasium => (0, size * size - 1),
        MapType::Ragen => {
            let mut place = || {
                let row = stream.integers(0, size as i64) as usize;
                row * size + stream.integers(0, size as i64) as usize
            };
            (place(), place())
        }
    };
    if start == goal {
        return None;
    }
    tiles[start] = Tile::Start;
    tiles[goal] = Tile::Goal;
    Some(Lake { size, tiles, start, goal })
}
