//! Shortest solutions by breadth-first search over player and box positions.
//!
//! Pushes onto cells from which a box can reach no target are left out, which loses no solution.

use std::collections::HashSet;
use std::hash::Hash;

use super::{Board, Cell, Direction};

/// Box positions kept before the search gives up: about 100 MB and a second or two. That is more than a million states
/// with one or two boxes.
const MAX_KEPT: usize = 16_000_000;

/// A shortest sequence of at most `budget` moves that solves the board: the first in the order up, down, left, right.
/// `Some` of nothing when it is solved already, `None` when there is none within the budget (or too many
/// states lie before it).
#[must_use]
pub fn shortest(board: &Board, budget: usize) -> Option<Vec<Direction>> {
    if board.solved() {
        return Some(Vec::new());
    }
    let boxes: Vec<u16> = board.box_cells().map(|cell| cell as u16).collect();
    if board.state().len() > usize::from(u16::MAX) {
        return None;
    }
    let search = Search::new(board);
    // Positions packed into one number where they fit: eight of 16 bits with the player.
    if boxes.len() < 8 {
        search.run(budget, boxes, |player, boxes| {
            boxes.iter().fold(u128::from(player), |key, &cell| key << 16 | u128::from(cell))
        })
    } else {
        search.run(budget, boxes, |player, boxes| {
            let mut key = boxes.to_vec();
            key.push(player);
            key
        })
    }
}

struct Search {
    /// Neighbour of each cell by direction, `NONE` at walls and off the board.
    next: Vec<[u16; 4]>,
    target: Vec<bool>,
    /// A box here can still be pushed to some target.
    alive: Vec<bool>,
    targets: usize,
    player: u16,
}

const NONE: u16 = u16::MAX;

struct Node {
    player: u16,
    parent: u32,
    direction: u8,
}

impl Search {
    fn new(board: &Board) -> Self {
        let open = |cell: usize| board.fixed()[cell] != Cell::Wall;
        let next: Vec<[u16; 4]> = (0..board.state().len())
            .map(|cell| {
                Direction::ALL.map(|direction| match board.neighbour(cell, direction) {
                    Some(other) if open(other) => other as u16,
                    _ => NONE,
                })
            })
            .collect();
        let target: Vec<bool> = board.fixed().iter().map(|&cell| cell == Cell::Target).collect();
        let alive = alive_cells(&next, &target);
        let targets = target.iter().filter(|&&is| is).count();
        Self { next, target, alive, targets, player: board.player() as u16 }
    }

    fn run<K: Hash + Eq>(
        &self,
        budget: usize,
        start: Vec<u16>,
        key: impl Fn(u16, &[u16]) -> K,
    ) -> Option<Vec<Direction>> {
        let count = start.len();
        let max_states = MAX_KEPT / (count + 8);
        let mut nodes = vec![Node { player: self.player, parent: 0, direction: 0 }];
        // Boxes of node i: `count` ascending cells from i * count.
        let mut boxes = start;
        let mut seen = HashSet::new();
        seen.insert(key(self.player, &boxes));
        let (mut layer, mut depth) = (0..1, 0);
        let mut moved = Vec::with_capacity(count);
        while depth < budget && !layer.is_empty() {
            for at in layer.clone() {
                for direction in 0..4 {
                    let ahead = self.next[usize::from(nodes[at].player)][direction];
                    if ahead == NONE {
                        continue;
                    }
                    moved.clear();
                    moved.extend_from_slice(&boxes[at * count..(at + 1) * count]);
                    let mut solved = false;
                    if let Ok(pushed) = moved.binary_search(&ahead) {
                        let far = self.next[usize::from(ahead)][direction];
                        if far == NONE || !self.alive[usize::from(far)] || moved.binary_search(&far).is_ok() {
                            continue;
                        }
                        moved[pushed] = far;
                        moved.sort_unstable();
                        let placed = moved.iter().filter(|&&cell| self.target[usize::from(cell)]).count();
                        solved = placed == self.targets;
                    }
                    if !seen.insert(key(ahead, &moved)) {
                        continue;
                    }
                    nodes.push(Node { player: ahead, parent: at as u32, direction: direction as u8 });
                    boxes.extend_from_slice(&moved);
                    if solved {
                        return Some(path(&nodes));
                    }
                    if nodes.len() >= max_states {
                        return None;
                    }
                }
            }
            layer = layer.end..nodes.len();
            depth += 1;
        }
        None
    }
}

/// Cells from which a lone box can be pushed to a target: pull backwards from every target.
fn alive_cells(next: &[[u16; 4]], target: &[bool]) -> Vec<bool> {
    let mut alive = target.to_vec();
    let mut open: Vec<usize> = (0..target.len()).filter(|&cell| target[cell]).collect();
    while let Some(cell) = open.pop() {
        for direction in 0..4 {
            // Pulled towards `direction`, the box lands on `to` and the player stands one further.
            let to = next[cell][direction];
            if to == NONE || alive[usize::from(to)] || next[usize::from(to)][direction] == NONE {
                continue;
            }
            alive[usize::from(to)] = true;
            open.push(usize::from(to));
        }
    }
    alive
}

fn path(nodes: &[Node]) -> Vec<Direction> {
    let mut moves = Vec::new();
    let mut at = nodes.len() - 1;
    while at > 0 {
        moves.push(Direction::ALL[usize::from(nodes[at].direction)]);
        at = nodes[at].parent as usize;
    }
    moves.reverse();
    moves
}
