//! How far a cube is from solved: a table over all 3,674,160 positions, made once by breadth-first search.
//!
//! Turning a face is turning the opposite one and then the whole cube. So the corner at down, left, back can be held
//! still: any position, turned as a whole until that corner sits right, is reached by turns of U, R and F alone, and the
//! other seven corners' places and twists number it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::LazyLock;

use super::cube::{Cube, Permutation, identity, permutation, ragen_permutation, then};

/// The most quarter turns any position needs.
pub const MAX_DISTANCE: usize = 14;

/// Stickers of the corners, the one on U or D first and the others in the same sense of rotation; the last corner is
/// the one that is held still.
const CORNERS: [[usize; 3]; 8] =
    [[2, 5, 8], [3, 9, 12], [0, 17, 4], [1, 13, 16], [20, 10, 7], [21, 14, 11], [23, 18, 15], [22, 6, 19]];
const PLACES: usize = 5040;
const TWISTS: usize = 729;
/// U, U', R, R', F, F' as turn indices.
const FREE_TURNS: [usize; 6] = [0, 1, 6, 7, 8, 9];

static DISTANCES: LazyLock<Vec<u8>> = LazyLock::new(distances);
static ROTATIONS: LazyLock<Vec<Permutation>> = LazyLock::new(rotations);

/// Quarter turns to the nearest solved position; `None` for stickers that no sequence of turns leads to.
#[must_use]
pub fn distance(cube: &Cube) -> Option<usize> {
    let corners = normalised(cube)?;
    let index = index(&corners.map(|corner| corner.0), &corners.map(|corner| corner.1));
    DISTANCES.get(index).map(|&distance| usize::from(distance)).filter(|&distance| distance <= MAX_DISTANCE)
}

/// A shortest sequence of turns that solves the cube, the first in the order of their numbers at every step.
#[must_use]
pub fn shortest(cube: &Cube) -> Option<Vec<usize>> {
    let mut left = distance(cube)?;
    let (mut cube, mut turns) = (*cube, Vec::with_capacity(left));
    while left > 0 {
        let turn = (0..12).find(|&turn| distance(&cube.turned(turn)).is_some_and(|after| after < left))?;
        cube = cube.turned(turn);
        turns.push(turn);
        left -= 1;
    }
    Some(turns)
}

/// A way to solve the cube by RAGEN's turns, whose B takes corners apart: found for cubes up to six turns from solved as
/// the cube was held at first, by looking three turns ahead and three back. Shortest up to three turns.
#[must_use]
pub fn solution_in_ragen(cube: &Cube) -> Option<Vec<usize>> {
    let back = within_three(&Cube::solved_state());
    let ways = within_three(cube).into_iter().filter_map(|(reached, mut there)| {
        if !reached.solved() {
            // A turn and its prime are neighbours.
            there.extend(back.get(&reached)?.iter().rev().map(|turn| turn ^ 1));
        }
        Some(there)
    });
    let mut way = ways.min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))?;
    // It may come by a solved cube that is held another way.
    let mut at = *cube;
    for i in 0..way.len() {
        at = at.moved(&ragen_permutation(way[i]));
        if at.solved() {
            way.truncate(i + 1);
            break;
        }
    }
    Some(way)
}

/// Cubes up to three of RAGEN's turns away, each with the first shortest way to it.
fn within_three(cube: &Cube) -> BTreeMap<Cube, Vec<usize>> {
    let mut found = BTreeMap::from([(*cube, Vec::new())]);
    let mut layer = vec![*cube];
    for _ in 0..3 {
        let mut next = Vec::new();
        for cube in layer {
            let way = found.get(&cube).cloned().unwrap_or_default();
            for turn in 0..12 {
                if let Entry::Vacant(slot) = found.entry(cube.moved(&ragen_permutation(turn))) {
                    next.push(*slot.key());
                    slot.insert(way.iter().copied().chain([turn]).collect());
                }
            }
        }
        layer = next;
    }
    found
}

/// The 24 ways to hold a cube.
fn rotations() -> Vec<Permutation> {
    let generators = [(0, 3), (6, 5), (8, 11)].map(|(a, b)| then(&permutation(a), &permutation(b)));
    let mut found = vec![identity()];
    let mut at = 0;
    while let Some(&rotation) = found.get(at) {
        for generator in &generators {
            let next = then(&rotation, generator);
            if !found.contains(&next) {
                found.push(next);
            }
        }
        at += 1;
    }
    found
}

/// Which corner stands at each of the seven places and how it is twisted, the cube held so that the eighth is right.
fn normalised(cube: &Cube) -> Option<[(u8, u8); 7]> {
    let home = CORNERS[7];
    let held = ROTATIONS.iter().find(|rotation| {
        home.iter().all(|&sticker| usize::from(cube.stickers()[usize::from(rotation[sticker])]) == sticker / 4)
    })?;
    let cube = cube.moved(held);
    let mut corners = [(0, 0); 7];
    for (corner, places) in corners.iter_mut().zip(&CORNERS) {
        let colours = places.map(|sticker| usize::from(cube.stickers()[sticker]));
        let twist = colours.iter().position(|&colour| colour == 0 || colour == 5)?;
        let turned: [usize; 3] = std::array::from_fn(|i| colours[(i + twist) % 3]);
        let which = CORNERS[..7].iter().position(|home| home.map(|sticker| sticker / 4) == turned)?;
        *corner = (which as u8, twist as u8);
    }
    Some(corners)
}

/// Number of a position: rank of the permutation, then the twists of six corners (the seventh follows from them).
fn index(places: &[u8; 7], twists: &[u8; 7]) -> usize {
    rank(places) * TWISTS + twist_rank(twists)
}

fn rank(places: &[u8; 7]) -> usize {
    (0..7).fold(0, |rank, i| {
        let smaller = places[i + 1..].iter().filter(|&&other| other < places[i]).count();
        rank * (7 - i) + smaller
    })
}

fn unrank(mut rank: usize) -> [u8; 7] {
    let mut digits = [0; 7];
    for i in (0..7).rev() {
        digits[i] = rank % (7 - i);
        rank /= 7 - i;
    }
    let mut left: Vec<u8> = (0..7).collect();
    digits.map(|digit| left.remove(digit))
}

fn twist_rank(twists: &[u8; 7]) -> usize {
    twists[..6].iter().fold(0, |rank, &twist| rank * 3 + usize::from(twist))
}

fn unrank_twists(mut rank: usize) -> [u8; 7] {
    let mut twists = [0; 7];
    for i in (0..6).rev() {
        twists[i] = (rank % 3) as u8;
        rank /= 3;
    }
    twists[6] = (3 - twists.iter().sum::<u8>() % 3) % 3;
    twists
}

/// For a turn: from which of the seven places each takes its corner, and by how much that corner is twisted on the way.
fn effect(turn: usize) -> [(usize, u8); 7] {
    let permutation = permutation(turn);
    std::array::from_fn(|place| {
        let from = usize::from(permutation[CORNERS[place][0]]);
        for (other, stickers) in CORNERS.iter().enumerate() {
            if let Some(i) = stickers.iter().position(|&sticker| sticker == from) {
                return (other, (3 - i as u8) % 3);
            }
        }
        (place, 0)
    })
}

/// The distance of every position, by breadth-first search from the solved one.
fn distances() -> Vec<u8> {
    let effects = FREE_TURNS.map(effect);
    let places: Vec<[u16; 6]> = (0..PLACES)
        .map(|r| {
            let before = unrank(r);
            effects.map(|effect| rank(&effect.map(|(from, _)| before[from])) as u16)
        })
        .collect();
    let twists: Vec<[u16; 6]> = (0..TWISTS)
        .map(|r| {
            let before = unrank_twists(r);
            effects.map(|effect| twist_rank(&effect.map(|(from, by)| (before[from] + by) % 3)) as u16)
        })
        .collect();
    let mut distances = vec![u8::MAX; PLACES * TWISTS];
    distances[0] = 0;
    let mut layer = vec![0u32];
    let mut depth = 0;
    while !layer.is_empty() {
        depth += 1;
        let mut next = Vec::new();
        for &at in &layer {
            let (place, twist) = (at as usize / TWISTS, at as usize % TWISTS);
            for turn in 0..6 {
                let to = usize::from(places[place][turn]) * TWISTS + usize::from(twists[twist][turn]);
                if distances[to] == u8::MAX {
                    distances[to] = depth;
                    next.push(to as u32);
                }
            }
        }
        layer = next;
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_by_distance_are_the_known_ones() {
        let mut counts = [0usize; MAX_DISTANCE + 1];
        for &distance in DISTANCES.iter() {
            counts[usize::from(distance)] += 1;
        }
        // Quarter-turn counts of the 2 × 2 × 2 cube.
        let known =
            [1, 6, 27, 120, 534, 2256, 8969, 33_058, 114_149, 360_508, 930_588, 1_350_852, 782_536, 90_280, 276];
        assert_eq!(counts, known);
        assert_eq!(ROTATIONS.len(), 24);
    }

    #[test]
    fn every_turn_changes_the_distance_by_one_from_anywhere() {
        let mut cube = Cube::solved_state();
        assert_eq!(distance(&cube), Some(0));
        let mut draws = 1;
        for _ in 0..2_000 {
            draws = crate::rng::splitmix64(draws);
            let before = distance(&cube).expect("a real position");
            cube = cube.turned((draws % 12) as usize);
            let after = distance(&cube).expect("a real position");
            assert!(before.abs_diff(after) == 1, "{before} {after}");
        }
        let turns = shortest(&cube).expect("solvable");
        assert!(turns.iter().fold(cube, |cube, &turn| cube.turned(turn)).solved());
        assert_eq!(Some(turns.len()), distance(&cube));
    }
}
