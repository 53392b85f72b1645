//! Early stopping as the reference has it: a collapse of the spread within groups, and validations that hardly ever
//! succeed. Unlike there the state is part of a checkpoint, and the last validation and checkpoint are done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Iterations that make the base, and that have to lie below its tenth.
const WINDOW: usize = 10;
/// Share of the base that counts as collapsed.
const COLLAPSED: f64 = 0.1;
/// Success rate of a validation that counts as hopeless, and how many in a row it takes.
const HOPELESS: f64 = 0.01;
const VALIDATIONS: usize = 5;

/// What early stopping remembers. Part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlyStop {
    /// In-group spreads of the first iterations.
    pub base: Vec<f64>,
    /// Of the last ones.
    pub recent: Vec<f64>,
    /// Hopeless validations in a row, by tag.
    pub hopeless: BTreeMap<String, usize>,
}

impl EarlyStop {
    /// Tells the mean in-group spread of an iteration that kept groups. True: it has collapsed.
    pub fn spread(&mut self, std: f64) -> bool {
        if self.base.len() < WINDOW {
            self.base.push(std);
        }
        self.recent.push(std);
        if self.recent.len() > WINDOW {
            self.recent.remove(0);
        }
        let base = crate::tokens::mean(&self.base);
        self.base.len() == WINDOW && self.recent.len() == WINDOW && self.recent.iter().all(|s| *s < COLLAPSED * base)
    }

    /// Tells the success rate of a validation. True: this tag has hardly ever succeeded in the last ones.
    pub fn validation(&mut self, tag: &str, success: f64) -> bool {
        let count = self.hopeless.entry(tag.to_owned()).or_default();
        *count = if success < HOPELESS { *count + 1 } else { 0 };
        *count >= VALIDATIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_small_spreads_after_ten_that_make_the_base() {
        let mut stop = EarlyStop::default();
        assert!((0..10).all(|_| !stop.spread(2.0)));
        assert!((0..9).all(|_| !stop.spread(0.19)));
        let mut other = stop.clone();
        assert!(stop.spread(0.19));
        assert!(!other.spread(0.2), "the tenth part itself is not below");
        assert!((0..9).all(|_| !other.spread(0.1)) && other.spread(0.1));
    }

    #[test]
    fn five_hopeless_validations_in_a_row_of_one_tag() {
        let mut stop = EarlyStop::default();
        assert!((0..4).all(|_| !stop.validation("a", 0.0)));
        assert!(!stop.validation("b", 0.0));
        assert!(!stop.validation("a", 0.01));
        assert!((0..4).all(|_| !stop.validation("a", 0.009)) && stop.validation("a", 0.0));
    }
}
