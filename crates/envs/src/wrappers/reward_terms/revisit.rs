//! 1 for coming to a state that the episode has been in: with a negative weight, against walking in circles.

use std::collections::HashSet;

use super::RewardTerm;
use crate::{Environment, Step};

/// 1 when the state after the step was seen before in this episode, the first state included.
#[derive(Clone, Debug, Default)]
pub struct Revisit {
    seen: HashSet<String>,
}

impl RewardTerm for Revisit {
    fn begin(&mut self, env: &dyn Environment) {
        self.seen.clear();
        self.seen.insert(env.state_key());
    }

    fn value(&mut self, env: &dyn Environment, _step: &Step) -> f64 {
        f64::from(u8::from(!self.seen.insert(env.state_key())))
    }
}
