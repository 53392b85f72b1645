//! The reverse search that makes a level hard: starting with every box on its target, pull boxes away depth first and
//! keep the state of the best score.
//!
//! The order of exploration, the score and the limits are the reference's (gym-sokoban with RAGEN's changes), because
//! they decide which board a seed gives.

use std::collections::HashSet;

use super::{Board, Cell, Direction};

/// States after which the search stops.
const MAX_EXPLORED: usize = 300_000;
const NO_PULL: usize = usize::MAX;

/// The best state found.
pub(super) struct Best {
    /// What the cells show. Boxes that were pulled are marked [`Cell::BoxOnTarget`] wherever they stand.
    pub state: Vec<Cell>,
    /// Sum over the boxes of their Manhattan distances from their targets.
    pub displacement: usize,
}

/// A state, packed: the player and the boxes in ascending order, each with its mark.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Few(u128),
    Many(Box<[u16]>),
}

/// How to take a move back.
struct Undo {
    player: usize,
    pull: Option<Pull>,
}

struct Pull {
    target: usize,
    from: usize,
    mark: Cell,
}

/// A state on the path from the root.
struct Frame {
    /// Number of moves tried.
    tried: usize,
    swaps: usize,
    last_pull: usize,
    undo: Option<Undo>,
}

struct Search<'a> {
    board: &'a Board,
    state: Vec<Cell>,
    player: usize,
    /// Cell of each target.
    targets: Vec<usize>,
    /// Cell of the box that belongs to each target.
    boxes: Vec<usize>,
    seen: HashSet<Key>,
    best_score: Option<usize>,
    best: Best,
}

/// Searches from `start`, whose boxes stand on their targets; `targets` lists the targets in the order they were
/// placed.
pub(super) fn search(start: &Board, targets: &[usize], search_depth: usize) -> Best {
    let mut search = Search {
        board: start,
        state: start.state().to_vec(),
        player: start.player(),
        targets: targets.to_vec(),
        boxes: targets.to_vec(),
        seen: HashSet::new(),
        best_score: None,
        best: Best { state: start.state().to_vec(), displacement: 0 },
    };
    search.run(search_depth);
    search.best
}

impl Search<'_> {
    fn run(&mut self, search_depth: usize) {
        // The reference counts `search_depth` down before it looks at a state, so the root needs 2.
        if search_depth < 2 || !self.visit(0) {
            return;
        }
        let mut path = vec![Frame { tried: 0, swaps: 0, last_pull: NO_PULL, undo: None }];
        while let Some(frame) = path.last_mut() {
            let Some(&direction) = Direction::ALL.get(frame.tried) else {
                if let Some(undo) = path.pop().and_then(|frame| frame.undo) {
                    self.take_back(undo);
                }
                continue;
            };
            frame.tried += 1;
            let (swaps, last_pull) = (frame.swaps, frame.last_pull);
            if path.len() + 1 >= search_depth || self.seen.len() >= MAX_EXPLORED {
                continue;
            }
            let Some(undo) = self.pull(direction) else {
                continue;
            };
            let now = undo.pull.as_ref().map_or(last_pull, |pull| pull.target);
            let swaps = swaps + usize::from(now != last_pull);
            if self.visit(swaps) {
                path.push(Frame { tried: 0, swaps, last_pull: now, undo: Some(undo) });
            } else {
                self.take_back(undo);
            }
        }
    }

    /// Notes the present state and its score; false if it was seen before.
    fn visit(&mut self, swaps: usize) -> bool {
        let key = self.key();
        if !self.seen.insert(key) {
            return false;
        }
        let displacement = self.displacement();
        let all_visible = self.targets.iter().all(|&target| self.state[target] == Cell::Target);
        let score = if all_visible { swaps * displacement } else { 0 };
        if self.best_score.is_none_or(|best| score > best) {
            self.best_score = Some(score);
            self.best.state.copy_from_slice(&self.state);
            self.best.displacement = displacement;
        }
        true
    }

    /// Walks the player one cell, dragging along a box that stood right behind; `None` when the way is blocked.
    fn pull(&mut self, direction: Direction) -> Option<Undo> {
        let ahead = self.board.neighbour(self.player, direction).filter(|&ahead| self.state[ahead].is_free())?;
        let old = self.player;
        let mut undo = Undo { player: old, pull: None };
        self.state[old] = self.board.fixed()[old];
        self.state[ahead] = Cell::Player;
        self.player = ahead;
        let behind = self.board.neighbour(old, opposite(direction));
        if let Some(from) = behind.filter(|&from| self.state[from].is_box())
            && let Some(target) = self.boxes.iter().position(|&cell| cell == from)
        {
            undo.pull = Some(Pull { target, from, mark: self.state[from] });
            self.state[old] = Cell::BoxOnTarget;
            self.state[from] = self.board.fixed()[from];
            self.boxes[target] = old;
        }
        Some(undo)
    }

    fn take_back(&mut self, undo: Undo) {
        self.state[self.player] = self.board.fixed()[self.player];
        self.state[undo.player] = Cell::Player;
        self.player = undo.player;
        if let Some(pull) = undo.pull {
            self.state[pull.from] = pull.mark;
            self.boxes[pull.target] = pull.from;
        }
    }

    fn displacement(&self) -> usize {
        let distance = |(&a, &b): (&usize, &usize)| {
            let ((row_a, col_a), (row_b, col_b)) = (self.board.position(a), self.board.position(b));
            row_a.abs_diff(row_b) + col_a.abs_diff(col_b)
        };
        self.targets.iter().zip(&self.boxes).map(distance).sum()
    }

    /// Boards have at most 64 × 64 cells, so a position and a mark fit 16 bits.
    fn key(&self) -> Key {
        let marked = |cell: usize| (cell << 1 | usize::from(self.state[cell] == Cell::BoxOnTarget)) as u16;
        if self.boxes.len() <= 7 {
            let mut parts = [0u16; 7];
            for (part, &cell) in parts.iter_mut().zip(&self.boxes) {
                *part = marked(cell) + 1;
            }
            parts[..self.boxes.len()].sort_unstable();
            Key::Few(parts.iter().fold(self.player as u128, |key, &part| key << 16 | u128::from(part)))
        } else {
            let mut parts: Vec<u16> = self.boxes.iter().map(|&cell| marked(cell)).collect();
            parts.sort_unstable();
            parts.push(self.player as u16);
            Key::Many(parts.into_boxed_slice())
        }
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
        Direction::Left => Direction::Right,
        Direction::Right => Direction::Left,
    }
}
