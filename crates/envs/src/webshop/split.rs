//! Which goal a seed means.

use std::ops::Range;
use std::sync::Arc;

use super::config::{EvalGoals, Wrapper};
use crate::Split;
use crate::rng::{NumpyLegacy, PythonRandom};

/// Goals of the test set in a catalogue of the usual size.
const TEST: usize = 500;
/// Goals of the validation set.
const VAL: usize = 1000;
/// Fewest goals that leave as many for training as are held out.
const ENOUGH: usize = 2 * (TEST + VAL);
/// Seed of RAGEN's order.
const RAGEN_ORDER: u64 = 42;

/// From seeds to numbers of goals.
#[derive(Clone, Debug)]
pub struct Splits {
    wrapper: Wrapper,
    eval: EvalGoals,
    goals: usize,
    /// RAGEN's second permutation.
    order: Arc<[u32]>,
}

/// RAGEN's order of this many goals, for [`Splits::new`].
#[must_use]
pub fn ragen_order(goals: usize) -> Arc<[u32]> {
    let mut order: Vec<u32> = (0..goals as u32).collect();
    PythonRandom::new(RAGEN_ORDER).shuffle(&mut order);
    order.into()
}

impl Splits {
    /// The splits of as many goals as `order` holds.
    #[must_use]
    pub fn new(wrapper: Wrapper, eval: EvalGoals, order: Arc<[u32]>) -> Self {
        Self { wrapper, eval, goals: order.len(), order }
    }

    /// The number of the goal that a seed means; below the number of goals.
    #[must_use]
    pub fn goal(&self, seed: u64, split: Split) -> usize {
        let range = self.range(split);
        let width = range.len().max(1);
        if self.wrapper == Wrapper::VerlAgent {
            // One environment's draw without replacement: the first of NumPy's permutation of the range. NumPy's seeds
            // have 32 bits.
            let draw = NumpyLegacy::new(seed as u32).permutation(width);
            return range.start + draw.first().copied().unwrap_or(0);
        }
        let index = range.start + usize::try_from(seed % width as u64).unwrap_or(0);
        self.order.get(index).map_or(0, |&number| number as usize)
    }

    /// The indices of a split. Below 3,000 goals, where the original's fixed numbers would leave little or nothing for
    /// training, the test set is a tenth and the validation set a fifth of them.
    #[must_use]
    pub fn range(&self, split: Split) -> Range<usize> {
        let (test, val) = match self.goals {
            0..ENOUGH => (self.goals / 10, self.goals / 5),
            _ => (TEST, VAL),
        };
        let held_out = test + val;
        match (split, self.wrapper, self.eval) {
            // verl-agent validates on the test set and trains on everything else.
            (Split::Val, Wrapper::VerlAgent, _) | (Split::Val, _, EvalGoals::Test) => 0..test.max(1),
            (Split::Train, Wrapper::VerlAgent, _) => self.behind(test),
            (Split::Val, ..) => test..held_out.max(test + 1).min(self.goals),
            (Split::Train, ..) => self.behind(held_out),
        }
    }

    /// The goals behind the first `held_out`: not the first one, if there is another.
    fn behind(&self, held_out: usize) -> Range<usize> {
        held_out.max(1).min(self.goals.saturating_sub(1))..self.goals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragen_ranges() {
        let splits = Splits::new(Wrapper::RagenV1, EvalGoals::Val, ragen_order(6910));
        assert_eq!((splits.range(Split::Val), splits.range(Split::Train)), (500..1500, 1500..6910));
        assert_eq!(splits.goal(123, Split::Val), splits.goal(1123, Split::Val));
        assert_eq!(splits.goal(10_000, Split::Train), splits.order[10_000 % 5410 + 1500] as usize);
        let test = Splits::new(Wrapper::RagenV2, EvalGoals::Test, ragen_order(6910));
        assert_eq!(test.goal(7, Split::Val), test.order[7] as usize);
    }

    #[test]
    fn splits_never_overlap_and_are_never_empty() {
        for wrapper in [Wrapper::RagenV1, Wrapper::RagenV2, Wrapper::VerlAgent] {
            for eval in [EvalGoals::Val, EvalGoals::Test] {
                for goals in [1, 2, 5, 9, 10, 30, 1501, 2999, 3000] {
                    let splits = Splits::new(wrapper, eval, ragen_order(goals));
                    let (train, val) = (splits.range(Split::Train), splits.range(Split::Val));
                    assert!(!train.is_empty() && !val.is_empty(), "{goals}: {train:?} {val:?}");
                    assert!(goals < 2 || train.start >= val.end, "{goals}: {train:?} {val:?}");
                    for seed in [0, 1, 500, u64::MAX] {
                        assert!(splits.goal(seed, Split::Train) < goals && splits.goal(seed, Split::Val) < goals);
                    }
                }
            }
        }
    }

    #[test]
    fn verl_agent_draws_as_numpy() {
        // numpy.random.RandomState(0).permutation(8)[0] is 6.
        let splits = Splits::new(Wrapper::VerlAgent, EvalGoals::Val, ragen_order(80));
        assert_eq!(splits.range(Split::Val), 0..8);
        assert_eq!(splits.goal(0, Split::Val), 6);
    }
}
