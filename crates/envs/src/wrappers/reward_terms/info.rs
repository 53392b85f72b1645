//! One of the further numbers of an environment, such as 2048's score.

use super::RewardTerm;
use crate::{Environment, Step};

pub(super) const NAME: &str = "info";

/// The number of this name; 0 where a step has none, or none that is finite.
#[derive(Clone, Debug)]
pub struct InfoNumber {
    key: String,
}

impl InfoNumber {
    /// The number called `key`.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self { key: key.to_owned() }
    }
}

impl RewardTerm for InfoNumber {
    fn value(&mut self, _env: &dyn Environment, step: &Step) -> f64 {
        step.info.extra.get(&self.key).copied().filter(|number| number.is_finite()).unwrap_or(0.0)
    }
}
