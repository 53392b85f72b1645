//! How hard a goal is.

use super::goal::Goal;

/// Difficulty of a goal, by how much there is to get right: one point an option, and one for every two attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// At most two points: a product of a kind with little to choose.
    Easy,
    /// Three points.
    Medium,
    /// Four points and more.
    Hard,
}

impl Grade {
    /// The grade of a goal.
    #[must_use]
    pub fn of(goal: &Goal) -> Self {
        match goal.options.len() + goal.attributes.len().div_ceil(2) {
            0..=2 => Self::Easy,
            3 => Self::Medium,
            _ => Self::Hard,
        }
    }
}
