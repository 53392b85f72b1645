//! The best policy on a frozen lake: exact dynamic programming over (cell, actions left).
//!
//! Among moves of equal probability of success it takes the one with the fewest expected actions, so that it does not
//! dawdle while there is time.

use super::{Lake, Move, Tile};

/// Actions left beyond this count as this many; the value has long converged by then.
pub const HORIZON: usize = 400;

/// Differences of probability below this are rounding.
const TIE: f64 = 1e-12;

/// Values and best moves, by actions left and cell.
pub struct Policy<'a> {
    lake: &'a Lake,
    deterministic: bool,
    /// Probability of success; index actions left, then cell.
    values: Vec<Vec<f64>>,
    /// Best move, `None` where nothing helps; index actions left, then cell.
    moves: Vec<Vec<Option<Move>>>,
}

impl<'a> Policy<'a> {
    /// The policy that maximises the probability of reaching the goal within `actions_left` actions.
    #[must_use]
    pub fn optimal(lake: &'a Lake, success_rate: f64, actions_left: usize) -> Self {
        let cells = lake.cells();
        let at_goal: Vec<f64> = (0..cells).map(|cell| if lake.tile(cell) == Tile::Goal { 1.0 } else { 0.0 }).collect();
        let outcomes: Vec<[Vec<_>; 4]> =
            (0..cells).map(|cell| Move::ALL.map(|way| lake.outcomes(cell, way, success_rate))).collect();
        let mut values = vec![at_goal];
        let mut moves = vec![vec![None; cells]];
        // Expected number of actions still taken.
        let mut lengths = vec![0.0; cells];
        for left in 1..=actions_left.min(HORIZON) {
            let before = &values[left - 1];
            let mut value = before.clone();
            let mut length = vec![0.0; cells];
            let mut best_move = vec![None; cells];
            for cell in (0..cells).filter(|&cell| !lake.ends_at(cell)) {
                let mut best = (0.0, f64::INFINITY);
                for (way, outcomes) in Move::ALL.iter().zip(&outcomes[cell]) {
                    let expect = |of: &[f64]| outcomes.iter().map(|o| o.probability * of[o.next]).sum::<f64>();
                    let (v, l) = (expect(before), 1.0 + expect(&lengths));
                    if v > 0.0 && (v > best.0 + TIE || (v > best.0 - TIE && l < best.1 - TIE)) {
                        best = (v, l);
                        best_move[cell] = Some(*way);
                    }
                }
                value[cell] = best.0;
                length[cell] = if best_move[cell].is_some() { best.1 } else { 0.0 };
            }
            values.push(value);
            moves.push(best_move);
            lengths = length;
        }
        Self { lake, deterministic: success_rate >= 1.0, values, moves }
    }

    /// Probability of success from a cell with all the actions; 0 off the map.
    #[must_use]
    pub fn value(&self, cell: usize) -> f64 {
        self.values.last().and_then(|values| values.get(cell)).copied().unwrap_or(0.0)
    }

    /// The next moves from a cell: all of them where nothing slips, else one; none when nothing helps.
    #[must_use]
    pub fn plan(&self, cell: usize) -> Vec<Move> {
        let mut plan = Vec::new();
        let mut at = cell;
        for moves in self.moves.iter().rev() {
            let Some(way) = moves.get(at).copied().flatten() else {
                break;
            };
            plan.push(way);
            if !self.deterministic {
                break;
            }
            at = self.lake.neighbour(at, way);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corridor_of_ice_takes_its_length() {
        let lake = Lake::from_map(&["SFF", "HHF", "HHG"]).expect("a map");
        let policy = Policy::optimal(&lake, 1.0, 10);
        assert_eq!(policy.plan(lake.start()), [Move::Right, Move::Right, Move::Down, Move::Down]);
        assert_eq!(Policy::optimal(&lake, 1.0, 3).value(0), 0.0);
        assert!(Policy::optimal(&lake, 1.0, 3).plan(0).is_empty());
    }

    #[test]
    fn one_slippery_step_by_hand() {
        // Next to the goal with one action left: only the intended move helps.
        let lake = Lake::from_map(&["SG", "FF"]).expect("a map");
        assert_eq!(Policy::optimal(&lake, 0.8, 1).value(0), 0.8);
        // With two: 0.8 + 0.1 (bumped into the wall above, try again) * 0.8 + 0.1 (slid down, no way in one).
        // From below, two moves would be needed, and one is left: only a slip would help, which needs the start's row.
        let value = Policy::optimal(&lake, 0.8, 2).value(0);
        assert!((value - 0.88).abs() < 1e-12, "{value}");
    }
}
