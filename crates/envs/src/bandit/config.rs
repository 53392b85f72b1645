//! Settings of the bandit environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ENV_TYPE, TEST_PAIRS, TRAIN_PAIRS};
use crate::EnvError;
use crate::config::{check_range, read, refuse};

/// Rules and goal in words.
pub const INSTRUCTION: &str = "You play a bandit with two arms, named after occupations. One arm always pays a little, \
                               the other pays much now and then, and more on average. Judge by the meaning of the \
                               names and choose the arm that pays more on average.";

const KEYS: [&str; 8] = [
    "split",
    "reversed",
    "lo_arm_name",
    "hi_arm_name",
    "lo_arm_score",
    "hi_arm_loscore",
    "hi_arm_hiscore",
    "hi_arm_hiscore_prob",
];

/// Which list of names the arms are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameSplit {
    /// [`TRAIN_PAIRS`].
    #[default]
    Train,
    /// [`TEST_PAIRS`].
    Test,
}

/// Settings of the bandit environment, with RAGEN's names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BanditConfig {
    /// List of names, `train` or `test`. Default `train`.
    pub split: NameSplit,
    /// Swaps the payouts, so that the steady occupation names the high arm. Default false.
    pub reversed: bool,
    /// Fixed name of the low arm instead of one from the list; needs `hi_arm_name` too. Default none.
    pub lo_arm_name: Option<String>,
    /// Fixed name of the high arm instead of one from the list; needs `lo_arm_name` too. Default none.
    pub hi_arm_name: Option<String>,
    /// What the low arm always pays. Default 0.1.
    pub lo_arm_score: f64,
    /// What the high arm pays when it is unlucky. Default 0.
    pub hi_arm_loscore: f64,
    /// What the high arm pays when it is lucky. Default 1.
    pub hi_arm_hiscore: f64,
    /// Probability that the high arm is lucky, 0 to 1. Default 0.25.
    pub hi_arm_hiscore_prob: f64,
}

impl Default for BanditConfig {
    fn default() -> Self {
        Self {
            split: NameSplit::Train,
            reversed: false,
            lo_arm_name: None,
            hi_arm_name: None,
            lo_arm_score: 0.1,
            hi_arm_loscore: 0.0,
            hi_arm_hiscore: 1.0,
            hi_arm_hiscore_prob: 0.25,
        }
    }
}

impl BanditConfig {
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
        const LIMIT: f64 = 1e6;
        check_range(ENV_TYPE, "lo_arm_score", self.lo_arm_score, -LIMIT, LIMIT)?;
        check_range(ENV_TYPE, "hi_arm_loscore", self.hi_arm_loscore, -LIMIT, LIMIT)?;
        check_range(ENV_TYPE, "hi_arm_hiscore", self.hi_arm_hiscore, -LIMIT, LIMIT)?;
        check_range(ENV_TYPE, "hi_arm_hiscore_prob", self.hi_arm_hiscore_prob, 0.0, 1.0)?;
        let p = self.hi_arm_hiscore_prob;
        let expected = p * self.hi_arm_hiscore + (1.0 - p) * self.hi_arm_loscore;
        if expected <= self.lo_arm_score {
            return Err(refuse(
                ENV_TYPE,
                format!(
                    "the high arm has to pay more on average than the low one, but it pays {expected} and \
                     `lo_arm_score` is {}",
                    self.lo_arm_score
                ),
            ));
        }
        match (&self.lo_arm_name, &self.hi_arm_name) {
            (None, None) => Ok(()),
            (Some(low), Some(high)) => {
                for (key, name) in [("lo_arm_name", low), ("hi_arm_name", high)] {
                    if name.is_empty() || name.trim() != name || name.chars().any(char::is_control) {
                        return Err(refuse(
                            ENV_TYPE,
                            format!("setting `{key}`: expected a name without blanks around it, found {name:?}"),
                        ));
                    }
                }
                if low.eq_ignore_ascii_case(high) {
                    return Err(refuse(ENV_TYPE, format!("both arms are called `{low}`; give them different names")));
                }
                Ok(())
            }
            (Some(_), None) => Err(refuse(ENV_TYPE, "`lo_arm_name` is given without `hi_arm_name`; give both or none")),
            (None, Some(_)) => Err(refuse(ENV_TYPE, "`hi_arm_name` is given without `lo_arm_name`; give both or none")),
        }
    }

    /// Names of the low and the high arm, if they are fixed; the payouts are swapped here already.
    pub(super) fn fixed_names(&self) -> Option<(&str, &str)> {
        let (low, high) = (self.lo_arm_name.as_deref()?, self.hi_arm_name.as_deref()?);
        Some(if self.reversed { (high, low) } else { (low, high) })
    }

    /// The list that names are drawn from.
    pub(super) fn pairs(&self) -> &'static [(&'static str, &'static str)] {
        match self.split {
            NameSplit::Train => &TRAIN_PAIRS,
            NameSplit::Test => &TEST_PAIRS,
        }
    }
}
