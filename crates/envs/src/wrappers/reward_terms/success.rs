//! 1 for the step that ends the episode at the goal.

use super::RewardTerm;
use crate::{Environment, Step};

/// 1 when the goal is reached and the episode ends with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Success;

impl RewardTerm for Success {
    fn value(&mut self, _env: &dyn Environment, step: &Step) -> f64 {
        f64::from(u8::from(step.terminated && step.info.success))
    }
}
