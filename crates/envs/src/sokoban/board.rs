//! A Sokoban board and its one rule: push or move.

/// What a cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cell {
    /// Impassable.
    Wall = 0,
    /// Empty floor.
    Floor = 1,
    /// A target without box or player.
    Target = 2,
    /// A box on a target.
    BoxOnTarget = 3,
    /// A box elsewhere.
    Box = 4,
    /// The player, whether on floor or on a target.
    Player = 5,
}

impl Cell {
    /// Floor or target: may be walked on.
    #[must_use]
    pub fn is_free(self) -> bool {
        matches!(self, Cell::Floor | Cell::Target)
    }

    /// Holds a box.
    #[must_use]
    pub fn is_box(self) -> bool {
        matches!(self, Cell::BoxOnTarget | Cell::Box)
    }
}

/// A move of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// One row less.
    Up,
    /// One row more.
    Down,
    /// One column less.
    Left,
    /// One column more.
    Right,
}

impl Direction {
    /// All directions, in the order of their action numbers.
    pub const ALL: [Direction; 4] = [Direction::Up, Direction::Down, Direction::Left, Direction::Right];

    /// The action's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "Up",
            Direction::Down => "Down",
            Direction::Left => "Left",
            Direction::Right => "Right",
        }
    }

    /// The direction of this name, without regard to case or surrounding blanks.
    #[must_use]
    pub fn parse(name: &str) -> Option<Direction> {
        let name = name.trim();
        Self::ALL.into_iter().find(|direction| direction.name().eq_ignore_ascii_case(name))
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing moved.
    Blocked,
    /// The player walked.
    Moved,
    /// The player pushed a box.
    Pushed,
}

/// A board: `rows × cols` cells, row-major. Exactly one cell is the player.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Board {
    rows: usize,
    cols: usize,
    /// Walls, floor and targets.
    fixed: Vec<Cell>,
    /// The same with boxes and player on top.
    state: Vec<Cell>,
    player: usize,
    boxes: usize,
}

impl Board {
    /// A board from its two layers, `rows × cols` cells each; `None` unless the sizes agree and there is exactly one
    /// player.
    #[must_use]
    pub fn new(rows: usize, cols: usize, fixed: Vec<Cell>, state: Vec<Cell>) -> Option<Board> {
        let cells = rows.checked_mul(cols)?;
        if fixed.len() != cells || state.len() != cells {
            return None;
        }
        let player = state.iter().position(|&cell| cell == Cell::Player)?;
        if state.iter().filter(|&&cell| cell == Cell::Player).count() != 1 {
            return None;
        }
        let boxes = state.iter().filter(|cell| cell.is_box()).count();
        Some(Board { rows, cols, fixed, state, player, boxes })
    }

    /// Reads a board in the symbols `# _ O √ X P S`, rows separated by line breaks; `None` for other symbols, ragged
    /// rows, or not exactly one player.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Board> {
        let (mut fixed, mut state, mut rows, mut cols) = (Vec::new(), Vec::new(), 0, 0);
        for line in text.lines() {
            for symbol in line.chars() {
                let (below, above) = match symbol {
                    '#' => (Cell::Wall, Cell::Wall),
                    '_' => (Cell::Floor, Cell::Floor),
                    'O' => (Cell::Target, Cell::Target),
                    '√' => (Cell::Target, Cell::BoxOnTarget),
                    'X' => (Cell::Floor, Cell::Box),
                    'P' => (Cell::Floor, Cell::Player),
                    'S' => (Cell::Target, Cell::Player),
                    _ => return None,
                };
                fixed.push(below);
                state.push(above);
            }
            rows += 1;
            if rows == 1 {
                cols = state.len();
            } else if state.len() != rows * cols {
                return None;
            }
        }
        Board::new(rows, cols, fixed, state)
    }

    /// The board in the symbols of [`Board::from_text`].
    #[must_use]
    pub fn to_text(&self) -> String {
        self.draw(&super::config::SYMBOLS)
    }

    /// The board in symbols given in the order wall, floor, target, box on target, box, player, player on target.
    #[must_use]
    pub fn draw(&self, symbols: &[char; 7]) -> String {
        let mut text = String::with_capacity(self.state.len() * 2);
        for (i, &cell) in self.state.iter().enumerate() {
            if i > 0 && i % self.cols == 0 {
                text.push('\n');
            }
            let on_target = cell == Cell::Player && self.fixed[i] == Cell::Target;
            text.push(if on_target { symbols[6] } else { symbols[cell as usize] });
        }
        text
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Walls, floor and targets, row-major.
    #[must_use]
    pub fn fixed(&self) -> &[Cell] {
        &self.fixed
    }

    /// What the cells show, row-major.
    #[must_use]
    pub fn state(&self) -> &[Cell] {
        &self.state
    }

    /// Index of the player's cell.
    #[must_use]
    pub fn player(&self) -> usize {
        self.player
    }

    /// Row and column of a cell index, from 0.
    #[must_use]
    pub fn position(&self, cell: usize) -> (usize, usize) {
        (cell / self.cols, cell % self.cols)
    }

    /// Indices of the cells that hold a box, ascending.
    pub fn box_cells(&self) -> impl Iterator<Item = usize> + '_ {
        self.state.iter().enumerate().filter(|(_, cell)| cell.is_box()).map(|(i, _)| i)
    }

    /// Number of boxes less the targets without a box. A target under the player counts as empty.
    #[must_use]
    pub fn boxes_on_target(&self) -> usize {
        let empty = (0..self.state.len())
            .filter(|&i| self.fixed[i] == Cell::Target && self.state[i] != Cell::BoxOnTarget)
            .count();
        self.boxes.saturating_sub(empty)
    }

    /// Every target holds a box.
    #[must_use]
    pub fn solved(&self) -> bool {
        self.boxes_on_target() == self.boxes
    }

    /// The cell next to `cell`, unless it is off the board.
    #[must_use]
    pub fn neighbour(&self, cell: usize, direction: Direction) -> Option<usize> {
        let (row, col) = self.position(cell);
        match direction {
            Direction::Up => (row > 0).then(|| cell - self.cols),
            Direction::Down => (row + 1 < self.rows).then(|| cell + self.cols),
            Direction::Left => (col > 0).then(|| cell - 1),
            Direction::Right => (col + 1 < self.cols).then(|| cell + 1),
        }
    }

    /// Pushes or moves the player one cell, or does nothing.
    pub fn step(&mut self, direction: Direction) -> Outcome {
        let Some(ahead) = self.neighbour(self.player, direction) else {
            return Outcome::Blocked;
        };
        if self.state[ahead].is_box() {
            let Some(far) = self.neighbour(ahead, direction).filter(|&far| self.state[far].is_free()) else {
                return Outcome::Blocked;
            };
            self.state[far] = if self.fixed[far] == Cell::Target { Cell::BoxOnTarget } else { Cell::Box };
            self.walk(ahead);
            Outcome::Pushed
        } else if self.state[ahead].is_free() {
            self.walk(ahead);
            Outcome::Moved
        } else {
            Outcome::Blocked
        }
    }

    /// Puts the player on `cell`, which must not hold a box that is still wanted.
    pub(super) fn walk(&mut self, cell: usize) {
        self.state[self.player] = self.fixed[self.player];
        self.state[cell] = Cell::Player;
        self.player = cell;
    }
}
