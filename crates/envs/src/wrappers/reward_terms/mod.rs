//! Reward terms by name: what a step was like, as a number. One a file.
//!
//! A term of one's own implements [`RewardTerm`] and is one line in the table `TERMS`.

mod ineffective_action;
mod info;
mod invalid_action;
mod revisit;
mod step_cost;
mod success;

pub use ineffective_action::IneffectiveAction;
pub use info::InfoNumber;
pub use invalid_action::InvalidAction;
pub use revisit::Revisit;
pub use step_cost::StepCost;
pub use success::Success;

use super::RewardTermConfig;
use crate::config::{nearest, refuse};
use crate::{EnvError, Environment, Step};

/// A number for every step, which a weight makes a reward.
pub trait RewardTerm: Send {
    /// An episode has begun; `env` is in its first state.
    fn begin(&mut self, env: &dyn Environment) {
        let _ = env;
    }

    /// The term's value for the step just taken; `env` is in the state after it.
    fn value(&mut self, env: &dyn Environment, step: &Step) -> f64;
}

/// Makes a term; the key is that of the settings.
type Make = fn(&str) -> Box<dyn RewardTerm>;

/// Every term there is.
const TERMS: [(&str, Make); 6] = [
    ("ineffective_action", |_| Box::new(IneffectiveAction)),
    (info::NAME, |key| Box::new(InfoNumber::new(key))),
    ("invalid_action", |_| Box::new(InvalidAction)),
    ("revisit", |_| Box::new(Revisit::default())),
    ("step_cost", |_| Box::new(StepCost)),
    ("success", |_| Box::new(Success)),
];

/// The names of the terms, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    TERMS.iter().map(|(name, _)| *name).collect()
}

pub(super) fn make(place: &str, config: &RewardTermConfig) -> Result<Box<dyn RewardTerm>, EnvError> {
    let name = config.term.as_str();
    let Some((_, make)) = TERMS.iter().find(|(known, _)| *known == name) else {
        let hint = match nearest(name, names().into_iter()).filter(|_| !name.is_empty()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", names().join(", ")),
        };
        return Err(refuse(place, format!("no such term as `{name}`; {hint}")));
    };
    match (&config.key, name == info::NAME) {
        (Some(key), true) => Ok(make(key)),
        (None, false) => Ok(make("")),
        (None, true) => Err(refuse(place, "the term `info` needs `key`, the name of one of the environment's numbers")),
        (Some(_), false) => Err(refuse(place, format!("`key` belongs to the term `info`; `{name}` has none"))),
    }
}
