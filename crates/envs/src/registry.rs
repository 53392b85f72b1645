//! Environments by name, and ready-made settings by tag.
//!
//! A new environment is one line in `ENVIRONMENTS`; a new tag is one entry in [`templates`].

use serde_json::{Value, json};

use crate::bandit::{self, Bandit};
use crate::config::{nearest, refuse};
use crate::external::{self, External};
use crate::frozen_lake::{self, FrozenLake};
use crate::openenv::{self, OpenEnv};
use crate::sokoban::{self, Sokoban};
use crate::wrappers;
use crate::{EnvError, Environment};

/// Makes an environment from its settings.
type Make = fn(&Value) -> Result<Box<dyn Environment>, EnvError>;

/// Every environment there is: registry name and constructor.
const ENVIRONMENTS: [(&str, Make); 5] = [
    (bandit::ENV_TYPE, |config| Ok(Box::new(Bandit::from_json(config)?))),
    (external::ENV_TYPE, |config| Ok(Box::new(External::from_json(config)?))),
    (frozen_lake::ENV_TYPE, |config| Ok(Box::new(FrozenLake::from_json(config)?))),
    (openenv::ENV_TYPE, |config| Ok(Box::new(OpenEnv::from_json(config)?))),
    (sokoban::ENV_TYPE, |config| Ok(Box::new(Sokoban::from_json(config)?))),
];

/// Settings that belong together under one name, as RAGEN's `custom_envs` entries do.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The name users refer to.
    pub tag: &'static str,
    /// Registry name of the environment.
    pub env_type: &'static str,
    /// Actions an episode may take.
    pub max_actions_per_traj: usize,
    /// Length of a response, in tokens, that the agent is told to keep to.
    pub max_tokens: usize,
    /// Rules and goal in words, for the prompt.
    pub env_instruction: &'static str,
    /// Settings of the environment, for [`make`].
    pub env_config: Value,
}

/// The registry names, sorted.
#[must_use]
pub fn env_types() -> Vec<&'static str> {
    ENVIRONMENTS.iter().map(|(name, _)| *name).collect()
}

/// Makes an environment. `null` settings are the defaults; a list `wrappers` among them is put on (see
/// [`crate::wrappers`]).
///
/// # Errors
/// [`EnvError::Config`] for an unknown environment (with the nearest known one), an unknown setting (likewise), a
/// wrong type or a value out of range.
pub fn make(env_type: &str, config: &Value) -> Result<Box<dyn Environment>, EnvError> {
    match ENVIRONMENTS.iter().find(|(name, _)| *name == env_type) {
        Some((_, make)) => {
            let (own, list) = wrappers::split(config);
            wrappers::wrap(make(&own)?, &list)
        }
        None => Err(unknown(env_type, "environment", &env_types())),
    }
}

/// The template of a tag.
///
/// # Errors
/// [`EnvError::Config`] for an unknown tag, with the nearest known one.
pub fn template(tag: &str) -> Result<Template, EnvError> {
    let mut all = templates();
    match all.iter().position(|template| template.tag == tag) {
        Some(i) => Ok(all.swap_remove(i)),
        None => Err(unknown(tag, "tag", &all.iter().map(|template| template.tag).collect::<Vec<_>>())),
    }
}

fn unknown(name: &str, kind: &str, known: &[&str]) -> EnvError {
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    };
    refuse(name, format!("no such {kind}; {hint}"))
}

/// All templates, with RAGEN's tags and settings.
#[must_use]
pub fn templates() -> Vec<Template> {
    let sokoban = |tag, max_tokens, env_config| Template {
        tag,
        env_type: sokoban::ENV_TYPE,
        max_actions_per_traj: 10,
        max_tokens,
        env_instruction: sokoban::INSTRUCTION,
        env_config,
    };
    let lake = |tag, max_tokens, env_config| Template {
        tag,
        env_type: frozen_lake::ENV_TYPE,
        max_actions_per_traj: 10,
        max_tokens,
        env_instruction: frozen_lake::INSTRUCTION,
        env_config,
    };
    let bandit = |tag, env_config| Template {
        tag,
        env_type: bandit::ENV_TYPE,
        max_actions_per_traj: 1,
        max_tokens: 100,
        env_instruction: bandit::INSTRUCTION,
        env_config,
    };
    vec![
        sokoban("SimpleSokoban", 100, json!({ "dim_x": 6, "dim_y": 6, "num_boxes": 1, "max_steps": 100 })),
        sokoban(
            "LargerSokoban",
            100,
            json!({ "dim_x": 8, "dim_y": 8, "num_boxes": 2, "max_steps": 100, "search_depth": 10 }),
        ),
        sokoban(
            "SokobanDifferentGridVocab",
            100,
            json!({
                "dim_x": 6, "dim_y": 6, "num_boxes": 1, "max_steps": 100, "search_depth": 30,
                "grid_lookup": { "0": "W", "1": ".", "2": "G", "3": "C", "4": "B", "5": "A", "6": "@" },
            }),
        ),
        Template {
            env_instruction: sokoban::INSTRUCTION_COORD,
            ..sokoban(
                "CoordSokoban",
                120,
                json!({
                    "dim_x": 6, "dim_y": 6, "num_boxes": 1, "max_steps": 100, "observation_format": "grid_coord",
                }),
            )
        },
        lake("FrozenLake", 100, json!({ "success_rate": 0.8 })),
        Template {
            env_instruction: frozen_lake::INSTRUCTION_COORD,
            ..lake("CoordFrozenLake", 120, json!({ "success_rate": 0.8, "observation_format": "grid_coord" }))
        },
        bandit("Bandit", json!({ "split": "train" })),
        bandit("BanditTest", json!({ "split": "test" })),
        bandit("BanditRev", json!({ "split": "train", "reversed": true })),
    ]
}
