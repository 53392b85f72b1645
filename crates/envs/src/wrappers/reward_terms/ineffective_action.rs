//! 1 for an action that is understood and changes nothing, such as walking into a wall.

use super::RewardTerm;
use crate::{Environment, Step};

/// 1 for an action that is valid and has no effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct IneffectiveAction;

impl RewardTerm for IneffectiveAction {
    fn value(&mut self, _env: &dyn Environment, step: &Step) -> f64 {
        f64::from(u8::from(step.info.action_is_valid && !step.info.action_is_effective))
    }
}
