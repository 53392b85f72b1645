//! Finds completions of a grid: always the most constrained cell next, within a bound on the work.

use super::Grid;

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A full grid without conflicts.
    Completion(Grid),
    /// There is none.
    Nothing,
    /// The bound was reached first.
    GaveUp,
}

/// Numbers written before a search gives up. Most 16 × 16 grids take some hundreds.
pub(super) const MAX_WRITES: usize = 50_000;

/// A completion of `grid` that tries the candidates of each cell in the order that `order` puts them in.
pub(super) fn complete(grid: &Grid, max_writes: usize, order: &mut dyn FnMut(&mut [u8])) -> Found {
    let mut search = Search { grid: grid.clone(), writes_left: max_writes, order };
    match search.run() {
        Some(true) => Found::Completion(search.grid),
        Some(false) => Found::Nothing,
        None => Found::GaveUp,
    }
}

/// Whether the only completion of `grid` is the one it was made from, in which `cell` holds `number`. `false` also when
/// that could not be found out within the bound.
pub(super) fn forced(grid: &Grid, cell: usize, number: u8) -> bool {
    grid.candidates(cell).into_iter().filter(|&other| other != number).all(|other| {
        let mut changed = grid.clone();
        changed.set(cell, other);
        complete(&changed, MAX_WRITES, &mut |_| {}) == Found::Nothing
    })
}

struct Search<'a> {
    grid: Grid,
    writes_left: usize,
    order: &'a mut dyn FnMut(&mut [u8]),
}

impl Search<'_> {
    /// `Some(true)` with the completion in `grid`, `Some(false)` when there is none, `None` when the bound is reached.
    fn run(&mut self) -> Option<bool> {
        let Some(cell) = most_constrained(&self.grid) else {
            return Some(true);
        };
        let mut candidates = self.grid.candidates(cell);
        (self.order)(&mut candidates);
        for number in candidates {
            self.writes_left = self.writes_left.checked_sub(1)?;
            self.grid.set(cell, number);
            if self.run()? {
                return Some(true);
            }
        }
        self.grid.set(cell, 0);
        Some(false)
    }
}

/// The empty cell with the fewest candidates, the first of those in reading order; `None` in a full grid.
pub(super) fn most_constrained(grid: &Grid) -> Option<usize> {
    let mut best: Option<(u32, usize)> = None;
    for (cell, _) in grid.cells().iter().enumerate().filter(|&(_, &n)| n == 0) {
        let candidates = grid.size() as u32 - grid.used(cell).count_ones();
        if best.is_none_or(|(fewest, _)| candidates < fewest) {
            best = Some((candidates, cell));
            if candidates <= 1 {
                break;
            }
        }
    }
    best.map(|(_, cell)| cell)
}
