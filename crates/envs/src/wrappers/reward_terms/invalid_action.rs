//! 1 for an action that the environment does not understand. What the agent's answer lacks as a text is dropped before it
//! gets here, and costs `es_manager.format_penalty`.

use super::RewardTerm;
use crate::{Environment, Step};

/// 1 for an action that is not understood.
#[derive(Clone, Copy, Debug, Default)]
pub struct InvalidAction;

impl RewardTerm for InvalidAction {
    fn value(&mut self, _env: &dyn Environment, step: &Step) -> f64 {
        f64::from(u8::from(!step.info.action_is_valid))
    }
}
