//! A Sudoku grid: numbers, the rule that no row, column or box holds one twice, and which numbers a cell may take.

/// Sides that a grid may have.
pub const SIZES: [usize; 3] = [4, 9, 16];

/// Rows, columns or boxes that hold a number already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    /// The cell's row holds it.
    pub row: bool,
    /// The cell's column holds it.
    pub col: bool,
    /// The cell's box holds it.
    pub in_box: bool,
}

impl Conflict {
    /// There is one.
    #[must_use]
    pub fn any(self) -> bool {
        self.row || self.col || self.in_box
    }
}

/// A grid of side 4, 9 or 16, row-major; 0 is an empty cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    size: usize,
    side: usize,
    cells: Vec<u8>,
}

impl Grid {
    /// A grid from its cells; `None` unless there are size × size of them, of a size in [`SIZES`], each 0 to size.
    #[must_use]
    pub fn new(size: usize, cells: Vec<u8>) -> Option<Self> {
        let sound =
            SIZES.contains(&size) && cells.len() == size * size && cells.iter().all(|&n| usize::from(n) <= size);
        sound.then(|| Self { size, side: size.isqrt(), cells })
    }

    /// Number of rows, of columns and of different numbers.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Rows and columns of a box.
    #[must_use]
    pub fn side(&self) -> usize {
        self.side
    }

    /// The cells, row-major.
    #[must_use]
    pub fn cells(&self) -> &[u8] {
        &self.cells
    }

    /// Writes a number, or 0, into a cell; cells beyond the grid are left alone.
    pub fn set(&mut self, cell: usize, number: u8) {
        if let Some(slot) = self.cells.get_mut(cell) {
            *slot = number;
        }
    }

    /// Row and column of a cell, from 0.
    #[must_use]
    pub fn position(&self, cell: usize) -> (usize, usize) {
        (cell / self.size, cell % self.size)
    }

    /// Number of the box that a cell lies in.
    fn box_of(&self, cell: usize) -> usize {
        let (row, col) = self.position(cell);
        row / self.side * self.side + col / self.side
    }

    /// Where a number stands already in the units of a cell, the cell itself included.
    #[must_use]
    pub fn conflict(&self, cell: usize, number: u8) -> Conflict {
        let (row, col) = self.position(cell);
        let mut conflict = Conflict::default();
        for (other, _) in self.cells.iter().enumerate().filter(|&(_, &n)| n == number) {
            let (r, c) = self.position(other);
            conflict.row |= r == row;
            conflict.col |= c == col;
            conflict.in_box |= self.box_of(other) == self.box_of(cell);
        }
        conflict
    }

    /// The numbers that may be written into a cell without a conflict, ascending.
    #[must_use]
    pub fn candidates(&self, cell: usize) -> Vec<u8> {
        let used = self.used(cell);
        (1..=self.size as u8).filter(|number| used >> number & 1 == 0).collect()
    }

    /// The numbers in the units of a cell as bits.
    pub(super) fn used(&self, cell: usize) -> u32 {
        let (row, col) = self.position(cell);
        let corner = row / self.side * self.side * self.size + col / self.side * self.side;
        let mut used = 0;
        for i in 0..self.size {
            used |= 1 << self.cells[row * self.size + i];
            used |= 1 << self.cells[i * self.size + col];
            used |= 1 << self.cells[corner + i / self.side * self.size + i % self.side];
        }
        used & !1
    }

    /// Number of empty cells.
    #[must_use]
    pub fn empty(&self) -> usize {
        self.cells.iter().filter(|&&n| n == 0).count()
    }

    /// Every cell is filled and no unit holds a number twice.
    #[must_use]
    pub fn solved(&self) -> bool {
        let all = (1u32 << (self.size + 1)) - 2;
        // A unit of as many cells as numbers holds none twice when it holds them all.
        (0..self.size).all(|i| {
            let (mut row, mut col, mut in_box) = (0u32, 0u32, 0u32);
            let corner = i / self.side * self.side * self.size + i % self.side * self.side;
            for j in 0..self.size {
                row |= 1 << self.cells[i * self.size + j];
                col |= 1 << self.cells[j * self.size + i];
                in_box |= 1 << self.cells[corner + j / self.side * self.size + j % self.side];
            }
            row == all && col == all && in_box == all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_small_grid() {
        let grid = Grid::new(4, vec![1, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 4]).expect("a grid");
        assert_eq!(grid.candidates(3), [3]);
        assert_eq!(grid.candidates(0), [2, 4]);
        assert_eq!(grid.conflict(5, 1), Conflict { row: false, col: false, in_box: true });
        assert_eq!(grid.conflict(4, 3), Conflict { row: false, col: true, in_box: false });
        assert!(!grid.conflict(5, 4).any() && !grid.solved());
        assert_eq!(grid.empty(), 12);
        let full = Grid::new(4, vec![1, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 1]).expect("a grid");
        assert!(full.solved());
        let twice = Grid::new(4, vec![1, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 2]).expect("a grid");
        assert!(!twice.solved());
        assert!(Grid::new(5, vec![0; 25]).is_none() && Grid::new(4, vec![5; 16]).is_none());
    }
}
