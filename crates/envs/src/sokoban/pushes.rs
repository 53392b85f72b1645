//! Solutions of larger levels: A* over pushes. Few pushes rather than few moves, and for hard levels perhaps none in
//! time: a strong reference player, not an oracle.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::{Board, Cell, Direction};

/// States looked at before the search gives up; a few seconds' worth.
const MAX_STATES: usize = 1_000_000;
const NONE: u16 = u16::MAX;
const FAR: u16 = u16::MAX;

/// Moves that solve the board by a least number of pushes; `None` when there are none or the search gave up.
#[must_use]
pub fn few_pushes(board: &Board) -> Option<Vec<Direction>> {
    if board.solved() {
        return Some(Vec::new());
    }
    let boxes: Vec<u16> = board.box_cells().map(|cell| cell as u16).collect();
    if boxes.len() > 8 || board.state().len() >= usize::from(NONE) {
        return None;
    }
    let mut search = Search::new(board, boxes.len())?;
    let pushes = search.run(board.player() as u16, boxes.clone())?;
    search.moves(board.player() as u16, boxes, &pushes)
}

/// A box that was pushed: where it stood, and which way.
#[derive(Clone, Copy)]
struct Push {
    from: u16,
    direction: u8,
}

struct Node {
    player: u16,
    boxes: Vec<u16>,
    parent: u32,
    push: Push,
    pushes: u16,
}

struct Search {
    /// Neighbour of each cell by direction, `NONE` at walls and off the board.
    next: Vec<[u16; 4]>,
    target: Vec<bool>,
    /// Pushes that bring a lone box from a cell to each target, `FAR` where none do.
    distances: Vec<Vec<u16>>,
    /// When a cell was last reached in a walk.
    reached: Vec<u32>,
    walk: u32,
}

impl Search {
    fn new(board: &Board, boxes: usize) -> Option<Self> {
        let open = |cell: usize| board.fixed()[cell] != Cell::Wall;
        let cells = board.state().len();
        let next: Vec<[u16; 4]> = (0..cells)
            .map(|cell| {
                Direction::ALL.map(|direction| match board.neighbour(cell, direction) {
                    Some(other) if open(cell) && open(other) => other as u16,
                    _ => NONE,
                })
            })
            .collect();
        let target: Vec<bool> = board.fixed().iter().map(|&cell| cell == Cell::Target).collect();
        let targets: Vec<usize> = (0..cells).filter(|&cell| target[cell]).collect();
        if targets.len() != boxes {
            return None;
        }
        let distances = targets.iter().map(|&to| pull_distances(&next, to)).collect();
        Some(Self { next, target, distances, reached: vec![0; cells], walk: 0 })
    }

    fn run(&mut self, player: u16, boxes: Vec<u16>) -> Option<Vec<Push>> {
        let player = self.corner(player, &boxes);
        let bound = self.bound(&boxes)?;
        let start = Push { from: NONE, direction: 0 };
        let mut best: HashMap<(u16, Vec<u16>), u16> = HashMap::new();
        best.insert((player, boxes.clone()), 0);
        let mut nodes = vec![Node { player, boxes, parent: 0, push: start, pushes: 0 }];
        // Equal sums: the state nearer to the goal, then the newer one first.
        let mut open = BinaryHeap::new();
        open.push((Reverse(bound), Reverse(bound), 0u32));
        while let Some((_, _, at)) = open.pop() {
            let (player, boxes) = (nodes[at as usize].player, nodes[at as usize].boxes.clone());
            let pushes = nodes[at as usize].pushes;
            if best.get(&(player, boxes.clone())).is_some_and(|&fewest| fewest < pushes) {
                continue;
            }
            if boxes.iter().all(|&cell| self.target[usize::from(cell)]) {
                return Some(path(&nodes, at));
            }
            for push in self.possible(player, &boxes) {
                let to = self.next[usize::from(push.from)][usize::from(push.direction)];
                let mut moved = boxes.clone();
                if let Ok(i) = moved.binary_search(&push.from) {
                    moved[i] = to;
                }
                moved.sort_unstable();
                if self.stuck(to, &moved) {
                    continue;
                }
                let Some(bound) = self.bound(&moved) else {
                    continue;
                };
                let corner = self.corner(push.from, &moved);
                let key = (corner, moved);
                let pushes = pushes + 1;
                if best.get(&key).is_some_and(|&fewest| fewest <= pushes) {
                    continue;
                }
                if nodes.len() >= MAX_STATES {
                    return None;
                }
                best.insert(key.clone(), pushes);
                open.push((Reverse(pushes + bound), Reverse(bound), nodes.len() as u32));
                nodes.push(Node { player: key.0, boxes: key.1, parent: at, push, pushes });
            }
        }
        None
    }

    /// Marks the cells the player can walk to and gives the least of them, which stands for all.
    fn corner(&mut self, player: u16, boxes: &[u16]) -> u16 {
        self.walk += 1;
        let (mut least, mut open) = (player, vec![player]);
        self.reached[usize::from(player)] = self.walk;
        while let Some(cell) = open.pop() {
            least = least.min(cell);
            for to in self.next[usize::from(cell)] {
                if to != NONE && self.reached[usize::from(to)] != self.walk && boxes.binary_search(&to).is_err() {
                    self.reached[usize::from(to)] = self.walk;
                    open.push(to);
                }
            }
        }
        least
    }

    /// Pushes that the player can make from where it can walk.
    fn possible(&mut self, player: u16, boxes: &[u16]) -> Vec<Push> {
        self.corner(player, boxes);
        let mut pushes = Vec::new();
        for &from in boxes {
            for direction in 0..4u8 {
                let (to, stand) = (self.step(from, direction), self.step(from, direction ^ 1));
                if to != NONE
                    && stand != NONE
                    && self.reached[usize::from(stand)] == self.walk
                    && boxes.binary_search(&to).is_err()
                {
                    pushes.push(Push { from, direction });
                }
            }
        }
        pushes
    }

    /// The neighbour in a direction; up and down, left and right differ in the last bit.
    fn step(&self, cell: u16, direction: u8) -> u16 {
        self.next[usize::from(cell)][usize::from(direction)]
    }

    /// A square of four cells around `to` holds nothing but walls and boxes, and one of the boxes is not on a target.
    fn stuck(&self, to: u16, boxes: &[u16]) -> bool {
        let full = |cell: u16| cell == NONE || boxes.binary_search(&cell).is_ok();
        let misplaced = |cell: u16| cell != NONE && full(cell) && !self.target[usize::from(cell)];
        [(0, 2), (0, 3), (1, 2), (1, 3)].into_iter().any(|(vertical, horizontal)| {
            let (a, b) = (self.step(to, vertical), self.step(to, horizontal));
            // The cell across is reached by either way; behind two walls it does not matter what it holds.
            let across = match (a, b) {
                (NONE, NONE) => NONE,
                (NONE, b) => self.step(b, vertical),
                (a, _) => self.step(a, horizontal),
            };
            full(a) && full(b) && full(across) && [to, a, b, across].into_iter().any(misplaced)
        })
    }

    /// Fewest pushes that bring every box to a target of its own, other boxes aside; `None` when nothing does.
    fn bound(&self, boxes: &[u16]) -> Option<u16> {
        // Assignment by dynamic programming over sets of targets that are taken.
        let mut costs = vec![FAR; 1 << self.distances.len()];
        costs[0] = 0;
        for (i, &cell) in boxes.iter().enumerate() {
            for taken in (0..costs.len()).filter(|taken| taken.count_ones() as usize == i) {
                let cost = costs[taken];
                for (target, distances) in self.distances.iter().enumerate() {
                    let distance = distances[usize::from(cell)];
                    if cost != FAR && distance != FAR && taken >> target & 1 == 0 {
                        let with = &mut costs[taken | 1 << target];
                        *with = (*with).min(cost.saturating_add(distance));
                    }
                }
            }
        }
        costs.last().copied().filter(|&cost| cost != FAR)
    }

    /// Walks between the pushes.
    fn moves(&self, mut player: u16, mut boxes: Vec<u16>, pushes: &[Push]) -> Option<Vec<Direction>> {
        let mut moves = Vec::new();
        for push in pushes {
            moves.extend(self.walk_to(player, self.step(push.from, push.direction ^ 1), &boxes)?);
            moves.push(*Direction::ALL.get(usize::from(push.direction))?);
            let pushed = boxes.binary_search(&push.from).ok()?;
            boxes[pushed] = self.step(push.from, push.direction);
            boxes.sort_unstable();
            player = push.from;
        }
        Some(moves)
    }

    /// A shortest walk around the boxes.
    fn walk_to(&self, from: u16, to: u16, boxes: &[u16]) -> Option<Vec<Direction>> {
        let mut came: Vec<Option<(u16, u8)>> = vec![None; self.next.len()];
        let mut open = VecDeque::from([from]);
        while let Some(cell) = open.pop_front() {
            if cell == to {
                break;
            }
            for direction in 0..4u8 {
                let next = self.step(cell, direction);
                if next == NONE || next == from || boxes.binary_search(&next).is_ok() {
                    continue;
                }
                let slot = &mut came[usize::from(next)];
                if slot.is_none() {
                    *slot = Some((cell, direction));
                    open.push_back(next);
                }
            }
        }
        let (mut cell, mut moves) = (to, Vec::new());
        while cell != from {
            let (before, direction) = (*came.get(usize::from(cell))?)?;
            moves.push(*Direction::ALL.get(usize::from(direction))?);
            cell = before;
        }
        moves.reverse();
        Some(moves)
    }
}

/// Pushes from every cell to `target` for a lone box, by pulling it away from there.
fn pull_distances(next: &[[u16; 4]], target: usize) -> Vec<u16> {
    let mut distances = vec![FAR; next.len()];
    distances[target] = 0;
    let mut open = VecDeque::from([target]);
    while let Some(cell) = open.pop_front() {
        for direction in 0..4 {
            // Pulled towards `direction`, the box lands on `to` and the player stands one further.
            let to = next[cell][direction];
            if to == NONE || distances[usize::from(to)] != FAR || next[usize::from(to)][direction] == NONE {
                continue;
            }
            distances[usize::from(to)] = distances[cell] + 1;
            open.push_back(usize::from(to));
        }
    }
    distances
}

fn path(nodes: &[Node], mut at: u32) -> Vec<Push> {
    let mut pushes = Vec::new();
    while at > 0 {
        let node = &nodes[at as usize];
        pushes.push(node.push);
        at = node.parent;
    }
    pushes.reverse();
    pushes
}
