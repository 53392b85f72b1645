//! A 2048 board and its one rule: slide a line towards its end and merge equal neighbours once.

/// Where the tiles slide to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the first row.
    Up,
    /// To the last column.
    Right,
    /// To the last row.
    Down,
    /// To the first column.
    Left,
}

impl Direction {
    /// All directions, in the order of their action numbers.
    pub const ALL: [Direction; 4] = [Direction::Up, Direction::Right, Direction::Down, Direction::Left];

    /// The action's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "Up",
            Direction::Right => "Right",
            Direction::Down => "Down",
            Direction::Left => "Left",
        }
    }

    /// The direction of this name, without regard to case or surrounding blanks.
    #[must_use]
    pub fn parse(name: &str) -> Option<Direction> {
        let name = name.trim();
        Self::ALL.into_iter().find(|direction| direction.name().eq_ignore_ascii_case(name))
    }

    /// The cells of line `i`, beginning at the end that tiles slide to.
    fn line(self, i: usize) -> [usize; 4] {
        [0, 1, 2, 3].map(|k| match self {
            Direction::Up => 4 * k + i,
            Direction::Down => 4 * (3 - k) + i,
            Direction::Left => 4 * i + k,
            Direction::Right => 4 * i + 3 - k,
        })
    }
}

/// What a slide did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slide {
    /// The board after it, before a new tile appears.
    pub board: Board,
    /// Sum of the merged tiles.
    pub gain: u64,
    /// Something moved or merged.
    pub moved: bool,
}

/// Four rows of four cells, row-major. A cell holds the exponent of its tile (1 for 2, 11 for 2048), 0 when empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Board {
    cells: [u8; 16],
}

impl Board {
    /// A board from tile values; `None` for a value that is not 0 or a power of two from 2 to 2^62.
    #[must_use]
    pub fn from_tiles(tiles: &[u64; 16]) -> Option<Self> {
        let mut cells = [0; 16];
        for (cell, &tile) in cells.iter_mut().zip(tiles) {
            *cell = match tile {
                0 => 0,
                2.. if tile.is_power_of_two() && tile <= 1 << 62 => tile.trailing_zeros() as u8,
                _ => return None,
            };
        }
        Some(Self { cells })
    }

    /// The exponents, row-major.
    #[must_use]
    pub fn cells(&self) -> &[u8; 16] {
        &self.cells
    }

    /// The tile values, row-major; 0 for an empty cell.
    #[must_use]
    pub fn tiles(&self) -> [u64; 16] {
        self.cells.map(|exponent| if exponent == 0 { 0 } else { 1 << exponent })
    }

    /// The greatest tile; 0 on an empty board.
    #[must_use]
    pub fn max_tile(&self) -> u64 {
        self.tiles().into_iter().max().unwrap_or(0)
    }

    /// The empty cells in reading order.
    pub fn empty(&self) -> impl Iterator<Item = usize> + '_ {
        (0..16).filter(|&cell| self.cells[cell] == 0)
    }

    /// The board with a tile of this exponent in a cell (those beyond the board are ignored).
    #[must_use]
    pub fn with(mut self, cell: usize, exponent: u8) -> Self {
        if let Some(slot) = self.cells.get_mut(cell) {
            *slot = exponent.min(62);
        }
        self
    }

    /// Slides all tiles in a direction; a tile that has merged does not merge again.
    #[must_use]
    pub fn slide(&self, direction: Direction) -> Slide {
        let mut board = Board::default();
        let mut gain = 0;
        for i in 0..4 {
            let line = direction.line(i);
            let (mut end, mut open) = (0, false);
            for exponent in line.map(|cell| self.cells[cell]).into_iter().filter(|&exponent| exponent > 0) {
                if open && board.cells[line[end - 1]] == exponent && exponent < 62 {
                    board.cells[line[end - 1]] += 1;
                    gain += 1u64 << (exponent + 1);
                    open = false;
                } else {
                    board.cells[line[end]] = exponent;
                    end += 1;
                    open = true;
                }
            }
        }
        Slide { board, gain, moved: board != *self }
    }

    /// The directions in which something would move.
    pub fn moves(&self) -> impl Iterator<Item = Direction> + '_ {
        Direction::ALL.into_iter().filter(|&direction| self.slide(direction).moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tiles: [u64; 4]) -> Board {
        let mut all = [0; 16];
        all[..4].copy_from_slice(&tiles);
        Board::from_tiles(&all).expect("tiles")
    }

    #[test]
    fn each_tile_merges_once() {
        for (before, after, gain) in [
            ([2, 2, 2, 2], [4, 4, 0, 0], 8),
            ([4, 2, 2, 0], [4, 4, 0, 0], 4),
            ([2, 2, 2, 0], [4, 2, 0, 0], 4),
            ([2, 0, 0, 2], [4, 0, 0, 0], 4),
            ([2, 4, 8, 16], [2, 4, 8, 16], 0),
        ] {
            let slide = row(before).slide(Direction::Left);
            assert_eq!((slide.board, slide.gain, slide.moved), (row(after), gain, before != after), "{before:?}");
        }
        assert_eq!(row([2, 2, 2, 0]).slide(Direction::Right).board, row([0, 0, 2, 4]));
        assert!(Board::from_tiles(&[3; 16]).is_none() && Board::from_tiles(&[1; 16]).is_none());
    }

    #[test]
    fn a_full_board_without_pairs_has_no_moves() {
        let tiles = std::array::from_fn(|i| if (i / 4 + i % 4) % 2 == 0 { 2 } else { 4 });
        let board = Board::from_tiles(&tiles).expect("tiles");
        assert_eq!(board.moves().count(), 0);
        assert_eq!(board.with(5, 3).with(6, 3).moves().count(), 2);
    }
}
