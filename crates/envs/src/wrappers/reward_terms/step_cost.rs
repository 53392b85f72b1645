//! 1 for every step: with a negative weight, a price on length.

use super::RewardTerm;
use crate::{Environment, Step};

/// 1 for every step.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepCost;

impl RewardTerm for StepCost {
    fn value(&mut self, _env: &dyn Environment, _step: &Step) -> f64 {
        1.0
    }
}
