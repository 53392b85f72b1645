//! Settings of the spatial navigation environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ENV_TYPE, Kind};
use crate::EnvError;
use crate::config::{check_range, read, refuse};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You explore a room to answer a question about it. You see what lies within 45 degrees \
                               to either side of where you face. Answer with a list of movements that ends with a look \
                               around, such as `Actions: [Rotate(90), Observe()]`: Rotate(90), Rotate(180) and \
                               Rotate(270) turn you clockwise, JumpTo(object) takes you to an object in view. When you \
                               know the answer, give its letter: `Actions: [Term(B)]`.";

const KEYS: [&str; 4] = ["room_size", "num_objects", "max_exp_steps", "question_types"];

/// Settings of the spatial navigation environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NavigationConfig {
    /// Cells from west to east and from south to north, 3 to 100 each. Default (10, 10).
    pub room_size: (i32, i32),
    /// Number of objects, 2 to 8. Default 3.
    pub num_objects: usize,
    /// Actions for exploring, 1 to 1,000; one more may be taken to answer. Default 10.
    pub max_exp_steps: usize,
    /// Kinds of questions: `direction`, `rotation`, `perspective`, `location`, `fov`, `navigation`, `distance`,
    /// `nearest`, `extreme`, `count`. Default all.
    pub question_types: Vec<String>,
}

impl Default for NavigationConfig {
    fn default() -> Self {
        Self {
            room_size: (10, 10),
            num_objects: 3,
            max_exp_steps: 10,
            question_types: Kind::ALL.map(|kind| kind.name().to_owned()).to_vec(),
        }
    }
}

impl NavigationConfig {
    /// Reads the settings from JSON and checks them.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let config: Self = read(ENV_TYPE, config, &KEYS)?;
        config.check()?;
        Ok(config)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`EnvError::Config`] with the setting, what was expected and what was found.
    pub fn check(&self) -> Result<(), EnvError> {
        check_range(ENV_TYPE, "room_size", self.room_size.0, 3, 100)?;
        check_range(ENV_TYPE, "room_size", self.room_size.1, 3, 100)?;
        check_range(ENV_TYPE, "num_objects", self.num_objects, 2, 8)?;
        check_range(ENV_TYPE, "max_exp_steps", self.max_exp_steps, 1, 1000)?;
        self.kinds().map(|_| ())
    }

    /// The kinds of questions.
    ///
    /// # Errors
    /// [`EnvError::Config`] for an unknown name, or none at all.
    pub(super) fn kinds(&self) -> Result<Vec<Kind>, EnvError> {
        let known = || Kind::ALL.map(Kind::name).join(", ");
        if self.question_types.is_empty() {
            return Err(refuse(
                ENV_TYPE,
                format!("setting `question_types`: expected some of {}, found none", known()),
            ));
        }
        let find = |name: &String| Kind::ALL.into_iter().find(|kind| kind.name() == name);
        self.question_types
            .iter()
            .map(|name| {
                find(name).ok_or_else(|| {
                    refuse(ENV_TYPE, format!("setting `question_types`: expected some of {}, found `{name}`", known()))
                })
            })
            .collect()
    }
}
