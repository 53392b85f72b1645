//! Rotary position embedding (Su et al. 2021) in the rotate-half layout of Hugging Face models.
//!
//! Element `i` of a head is paired with element `i + head_dim / 2`, and the pair is turned by
//! `position · theta^(−2i / head_dim)`. The angles come from a table made once.
//! What is not here: scaled frequencies by name; [`RopeTable::from_frequencies`] takes any.

use rayon::prelude::*;

use crate::simd::multiversion;

/// Elements above which the tokens are spread over threads.
const PARALLEL_FROM: usize = 1 << 16;

/// Cosines and sines of every angle up to a position.
#[derive(Clone, Debug)]
pub struct RopeTable {
    /// One angular frequency a pair, in radians a position.
    frequencies: Vec<f64>,
    positions: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeTable {
    /// Angles `position · theta^(−2i / head_dim)` for positions `0..max_positions`, computed in `f64`.
    ///
    /// # Panics
    /// If `head_dim` is odd.
    pub fn new(head_dim: usize, theta: f64, max_positions: usize) -> Self {
        assert_eq!(head_dim % 2, 0, "head_dim must be even, found {head_dim}");
        let frequencies = (0..head_dim / 2).map(|i| libm::pow(theta, -2.0 * i as f64 / head_dim as f64)).collect();
        Self::from_frequencies(frequencies, max_positions)
    }

    /// Angles `position · frequencies[i]`, for models that scale their frequencies. The head has twice as many elements
    /// as there are frequencies.
    pub fn from_frequencies(frequencies: Vec<f64>, max_positions: usize) -> Self {
        let mut table = Self { frequencies, positions: 0, cos: Vec::new(), sin: Vec::new() };
        table.grow(max_positions);
        table
    }

    /// Extends the table to at least the positions `0..max_positions`. Entries already there do not change.
    pub fn grow(&mut self, max_positions: usize) {
        for position in self.positions..max_positions {
            for &frequency in &self.frequencies {
                let angle = position as f64 * frequency;
                self.cos.push(libm::cos(angle) as f32);
                self.sin.push(libm::sin(angle) as f32);
            }
        }
        self.positions = self.positions.max(max_positions);
    }

    /// Elements of a head.
    pub fn head_dim(&self) -> usize {
        2 * self.frequencies.len()
    }

    /// Positions in the table: `0..positions()`.
    pub fn positions(&self) -> usize {
        self.positions
    }
}

/// Turns every head of every token by its position, in place.
///
/// # Shapes
/// `x`: `[tokens, heads, head_dim]`; `positions`: `[tokens]`.
///
/// # Panics
/// If a slice has not exactly the elements of its shape, `head_dim` is not the table's, or a position is not in the
/// table.
pub fn apply(tokens: usize, heads: usize, head_dim: usize, x: &mut [f32], positions: &[u32], table: &RopeTable) {
    rotate(tokens, heads, head_dim, x, positions, table, 1.0);
}

/// Turns gradients back: the transpose of [`apply`], in place.
///
/// # Shapes
/// `dx`: `[tokens, heads, head_dim]`; `positions`: `[tokens]`.
///
/// # Panics
/// As [`apply`].
pub fn apply_backward(
    tokens: usize,
    heads: usize,
    head_dim: usize,
    dx: &mut [f32],
    positions: &[u32],
    table: &RopeTable,
) {
    rotate(tokens, heads, head_dim, dx, positions, table, -1.0);
}

fn rotate(
    tokens: usize,
    heads: usize,
    head_dim: usize,
    x: &mut [f32],
    positions: &[u32],
    table: &RopeTable,
    direction: f32,
) {
    assert_eq!(x.len(), tokens * heads * head_dim, "x must have tokens * heads * head_dim elements");
    assert_eq!(positions.len(), tokens, "positions must have tokens elements");
    assert_eq!(head_dim, table.head_dim(), "head_dim must be that of the table");
    if let Some(&highest) = positions.iter().max() {
        assert!(
            (highest as usize) < table.positions,
            "position {highest} is not in a table of {} positions: grow it first",
            table.positions
        );
    }
    if x.is_empty() {
        return;
    }
    let width = heads * head_dim;
    let half = head_dim / 2;
    let turn = |x: &mut [f32], &position: &u32| {
        let from = position as usize * half;
        let cos = &table.cos[from..from + half];
        let sin = &table.sin[from..from + half];
        turn_heads(x, cos, sin, direction);
    };
    if x.len() < PARALLEL_FROM {
        x.chunks_exact_mut(width).zip(positions).for_each(|(x, position)| turn(x, position));
    } else {
        x.par_chunks_exact_mut(width).zip(positions).with_min_len(16).for_each(|(x, position)| turn(x, position));
    }
}

multiversion! {
    fn turn_heads(x: &mut [f32], cos: &[f32], sin: &[f32], direction: f32) {
        let half = cos.len();
        for head in x.chunks_exact_mut(2 * half) {
            let (first, second) = head.split_at_mut(half);
            for ((a, b), (&cos, &sin)) in first.iter_mut().zip(second).zip(cos.iter().zip(sin)) {
                let sin = sin * direction;
                let turned = a.mul_add(cos, -(*b * sin));
                *b = b.mul_add(cos, *a * sin);
                *a = turned;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(n: usize) -> Vec<f32> {
        (0..n).map(|i| (i % 13) as f32 * 0.25 - 1.5).collect()
    }

    #[test]
    fn position_zero_is_the_identity() {
        let table = RopeTable::new(8, 1e4, 4);
        let mut x = ramp(2 * 8);
        apply(2, 1, 8, &mut x, &[0, 0], &table);
        assert_eq!(x, ramp(2 * 8));
    }

    #[test]
    fn pairs_lie_half_a_head_apart() {
        let table = RopeTable::new(4, 1e4, 2);
        let mut x = [1.0, 0.0, 0.0, 0.0];
        apply(1, 1, 4, &mut x, &[1], &table);
        assert_eq!(x, [libm::cos(1.0) as f32, 0.0, libm::sin(1.0) as f32, 0.0]);
        let mut x = [0.0, 1.0, 0.0, 0.0];
        apply(1, 1, 4, &mut x, &[1], &table);
        assert_eq!(x, [0.0, libm::cos(0.01) as f32, 0.0, libm::sin(0.01) as f32]);
    }

    #[test]
    fn scores_depend_on_the_distance_only() {
        let table = RopeTable::new(16, 1e4, 600);
        let score = |query: u32, key: u32| -> f32 {
            let mut x = ramp(2 * 16);
            apply(2, 1, 16, &mut x, &[query, key], &table);
            x[..16].iter().zip(&x[16..]).map(|(q, k)| q * k).sum()
        };
        for (query, key) in [(5, 2), (103, 100), (599, 596)] {
            assert!((score(query, key) - score(3, 0)).abs() < 1e-4, "{query} {key}");
        }
        assert!((score(4, 0) - score(3, 0)).abs() > 1e-2);
    }

    #[test]
    fn backward_undoes_forward() {
        let table = RopeTable::new(6, 1e6, 1_000);
        let mut x = ramp(3 * 2 * 6);
        apply(3, 2, 6, &mut x, &[1, 999, 500], &table);
        apply_backward(3, 2, 6, &mut x, &[1, 999, 500], &table);
        for (x, before) in x.iter().zip(ramp(3 * 2 * 6)) {
            assert!((x - before).abs() < 1e-6);
        }
    }

    #[test]
    fn growing_changes_nothing_that_was_there() {
        let whole = RopeTable::new(8, 1e4, 100);
        let mut grown = RopeTable::new(8, 1e4, 10);
        grown.grow(100);
        grown.grow(50);
        assert_eq!(grown.positions(), 100);
        assert_eq!((grown.cos, grown.sin), (whole.cos, whole.sin));
    }

    #[test]
    #[should_panic(expected = "position 10 is not in a table of 10 positions")]
    fn positions_beyond_the_table_are_refused() {
        apply(1, 1, 2, &mut [0.0; 2], &[10], &RopeTable::new(2, 1e4, 10));
    }
}
