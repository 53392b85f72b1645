//! The stickers of a 2 × 2 × 2 cube and its twelve quarter turns.
//!
//! A sticker's index is face × 4 + place, faces in the order U, L, F, R, B, D, places top left, top right, bottom left,
//! bottom right as one looks at the face. Colours are numbered like the faces they start on.

use std::sync::LazyLock;

/// Letters of the faces.
pub const FACES: [char; 6] = ['U', 'L', 'F', 'R', 'B', 'D'];
/// Letters of the colours: white, orange, green, red, blue, yellow.
pub const COLOURS: [char; 6] = ['W', 'O', 'G', 'R', 'B', 'Y'];
/// Names of the quarter turns in the order of their numbers; a prime turns anticlockwise.
pub const TURNS: [&str; 12] = ["U", "U'", "D", "D'", "L", "L'", "R", "R'", "F", "F'", "B", "B'"];

/// `permutation[i]` is the index of the sticker that lands at `i`.
pub type Permutation = [u8; 24];

/// For U, D, L, R, F, B turned clockwise: the face, and its neighbours' stickers in pairs, each of which takes the place
/// of the pair before it, the first that of the last.
type Turn = (usize, [(usize, [usize; 2]); 4]);

const U: usize = 0;
const L: usize = 1;
const F: usize = 2;
const R: usize = 3;
const B: usize = 4;
const D: usize = 5;

const CLOCKWISE: [Turn; 6] = [
    (U, [(F, [0, 1]), (R, [0, 1]), (B, [0, 1]), (L, [0, 1])]),
    (D, [(F, [2, 3]), (L, [2, 3]), (B, [2, 3]), (R, [2, 3])]),
    (L, [(U, [0, 2]), (B, [3, 1]), (D, [0, 2]), (F, [0, 2])]),
    (R, [(U, [1, 3]), (F, [1, 3]), (D, [1, 3]), (B, [2, 0])]),
    (F, [(U, [2, 3]), (L, [3, 1]), (D, [1, 0]), (R, [0, 2])]),
    (B, [(U, [0, 1]), (R, [1, 3]), (D, [3, 2]), (L, [2, 0])]),
];

/// RAGEN's turn of the back face, which brings the stickers between it and the down face to each other's places: it
/// takes corners apart, and no real cube can do it.
const RAGEN_BACK: Turn = (B, [(U, [0, 1]), (R, [1, 3]), (D, [2, 3]), (L, [2, 0])]);

/// The permutations of [`TURNS`].
static PERMUTATIONS: LazyLock<[Permutation; 12]> = LazyLock::new(|| permutations(&CLOCKWISE));
static RAGEN_PERMUTATIONS: LazyLock<[Permutation; 12]> = LazyLock::new(|| {
    let mut turns = CLOCKWISE;
    turns[5] = RAGEN_BACK;
    permutations(&turns)
});

fn permutations(clockwise: &[Turn; 6]) -> [Permutation; 12] {
    let mut all = [identity(); 12];
    for (i, turn) in clockwise.iter().enumerate() {
        let once = quarter(turn);
        all[2 * i] = once;
        all[2 * i + 1] = then(&then(&once, &once), &once);
    }
    all
}

/// The permutation of a turn by its index in [`TURNS`]; nothing moves for an index beyond.
#[must_use]
pub fn permutation(turn: usize) -> Permutation {
    PERMUTATIONS.get(turn).copied().unwrap_or_else(identity)
}

/// The same in RAGEN, where B and B' are not what a cube does.
#[must_use]
pub fn ragen_permutation(turn: usize) -> Permutation {
    RAGEN_PERMUTATIONS.get(turn).copied().unwrap_or_else(identity)
}

pub(super) fn identity() -> Permutation {
    std::array::from_fn(|i| i as u8)
}

fn quarter((face, pairs): &Turn) -> Permutation {
    let mut permutation = identity();
    for (place, from) in [(0, 2), (2, 3), (3, 1), (1, 0)] {
        permutation[face * 4 + place] = (face * 4 + from) as u8;
    }
    for i in 0..4 {
        let ((to_face, to), (from_face, from)) = (pairs[i], pairs[(i + 1) % 4]);
        for k in 0..2 {
            permutation[to_face * 4 + to[k]] = (from_face * 4 + from[k]) as u8;
        }
    }
    permutation
}

/// First one permutation, then another.
pub(super) fn then(first: &Permutation, second: &Permutation) -> Permutation {
    second.map(|from| first[usize::from(from)])
}

/// The colours of all stickers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cube {
    stickers: [u8; 24],
}

impl Cube {
    /// The cube with a colour a face, white up and green in front.
    #[must_use]
    pub fn solved_state() -> Self {
        Self { stickers: std::array::from_fn(|i| (i / 4) as u8) }
    }

    /// The colours by sticker index.
    #[must_use]
    pub fn stickers(&self) -> &[u8; 24] {
        &self.stickers
    }

    /// The cube after moving its stickers.
    #[must_use]
    pub fn moved(&self, permutation: &Permutation) -> Self {
        Self { stickers: permutation.map(|from| self.stickers[usize::from(from)]) }
    }

    /// The cube after a turn, by its index in [`TURNS`].
    #[must_use]
    pub fn turned(&self, turn: usize) -> Self {
        self.moved(&permutation(turn))
    }

    /// Every face shows one colour; which way the cube is held does not matter.
    #[must_use]
    pub fn solved(&self) -> bool {
        self.stickers.chunks(4).all(|face| face.iter().all(|colour| *colour == face[0]))
    }
}

/// Index in [`TURNS`] of a name, without regard to case or surrounding blanks.
#[must_use]
pub fn parse_turn(name: &str) -> Option<usize> {
    let name = name.trim();
    TURNS.iter().position(|turn| turn.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(turns: &[usize]) -> usize {
        let mut cube = Cube::solved_state();
        for n in 1..1000 {
            cube = turns.iter().fold(cube, |cube, &turn| cube.turned(turn));
            if cube == Cube::solved_state() {
                return n;
            }
        }
        0
    }

    #[test]
    fn orders_of_turns_and_sequences() {
        assert!((0..12).all(|turn| order(&[turn]) == 4));
        assert!((0..12).step_by(2).all(|turn| order(&[turn, turn + 1]) == 1));
        // Neighbouring faces are alike; with RAGEN's B some of these differ.
        let opposite = |a: usize, b: usize| [[0, 2], [4, 6], [8, 10]].contains(&[a.min(b), a.max(b)]);
        for a in (0..12).step_by(2) {
            assert!((0..12).step_by(2).all(|b| a == b || opposite(a, b) || order(&[a, b]) == 15));
        }
        // R U, and the commutator R U R' U'.
        assert_eq!((order(&[6, 0]), order(&[6, 0, 7, 1])), (15, 6));
        // Opposite layers turned the same way round turn the whole cube.
        for pair in [[0, 3], [6, 5], [8, 11]] {
            let cube = pair.iter().fold(Cube::solved_state(), |cube, &turn| cube.turned(turn));
            assert!(cube.solved() && cube != Cube::solved_state());
        }
        assert_eq!((parse_turn(" r' "), parse_turn("R"), parse_turn("R2")), (Some(7), Some(6), None));
    }
}
