//! Environments by name, and ready-made settings by tag.
//!
//! A new built-in environment is one line in `ENVIRONMENTS`, a new tag one entry in [`templates`]; a crate of one's own
//! calls [`register`].

use std::sync::{PoisonError, RwLock};

use serde_json::{Value, json};

use crate::alfworld::{self, Alfworld};
use crate::bandit::{self, Bandit};
use crate::code_tests::{self, CodeTests};
use crate::config::{nearest, refuse};
use crate::countdown::{self, Countdown};
use crate::external::{self, External};
use crate::frozen_lake::{self, FrozenLake};
use crate::game2048::{self, Game2048};
use crate::lean::{self, Lean};
use crate::math_qa::{self, MathQa};
use crate::navigation::{self, Navigation};
use crate::openenv::{self, OpenEnv};
use crate::rubik::{self, RubiksCube};
use crate::search_qa::{self, SearchQa};
use crate::sokoban::{self, Sokoban};
use crate::static_qa::{self, StaticQa};
use crate::sudoku::{self, Sudoku};
use crate::webshop::{self, WebShop};
use crate::wrappers;
use crate::{EnvError, Environment};

/// Makes an environment from its settings; JSON null stands for the defaults.
pub type Make = fn(&Value) -> Result<Box<dyn Environment>, EnvError>;

/// Every environment there is: registry name and constructor.
const ENVIRONMENTS: &[(&str, Make)] = &[
    (alfworld::ENV_TYPE, |config| Ok(Box::new(Alfworld::from_json(config)?))),
    (bandit::ENV_TYPE, |config| Ok(Box::new(Bandit::from_json(config)?))),
    (code_tests::ENV_TYPE, |config| Ok(Box::new(CodeTests::from_json(config)?))),
    (countdown::ENV_TYPE, |config| Ok(Box::new(Countdown::from_json(config)?))),
    (external::ENV_TYPE, |config| Ok(Box::new(External::from_json(config)?))),
    (frozen_lake::ENV_TYPE, |config| Ok(Box::new(FrozenLake::from_json(config)?))),
    (game2048::ENV_TYPE, |config| Ok(Box::new(Game2048::from_json(config)?))),
    (lean::ENV_TYPE, |config| Ok(Box::new(Lean::from_json(config)?))),
    (math_qa::ENV_TYPE, |config| Ok(Box::new(MathQa::from_json(config)?))),
    (navigation::ENV_TYPE, |config| Ok(Box::new(Navigation::from_json(config)?))),
    (openenv::ENV_TYPE, |config| Ok(Box::new(OpenEnv::from_json(config)?))),
    (rubik::ENV_TYPE, |config| Ok(Box::new(RubiksCube::from_json(config)?))),
    (search_qa::ENV_TYPE, |config| Ok(Box::new(SearchQa::from_json(config)?))),
    (sokoban::ENV_TYPE, |config| Ok(Box::new(Sokoban::from_json(config)?))),
    (static_qa::ENV_TYPE, |config| Ok(Box::new(StaticQa::from_json(config)?))),
    (sudoku::ENV_TYPE, |config| Ok(Box::new(Sudoku::from_json(config)?))),
    (webshop::ENV_TYPE, |config| Ok(Box::new(WebShop::from_json(config)?))),
];

/// Environments that cannot be made without something of the user's: registry name, setting, what it names.
const NEEDED: &[(&str, &str, &str)] = &[
    (code_tests::ENV_TYPE, "data_path", "a file of programming problems"),
    (lean::ENV_TYPE, "data_path", "a file of theorems; also a Kimina Lean server at server_url"),
    (math_qa::ENV_TYPE, "data_path", "a file of questions"),
    (search_qa::ENV_TYPE, "data_path", "a file of questions; also corpus_path or retrieval_url"),
    (static_qa::ENV_TYPE, "data_path", "a file of questions"),
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

impl Template {
    /// The setting that has to be given before this environment can be made, and what it names; `None` when nothing is
    /// missing.
    #[must_use]
    pub fn needs(&self) -> Option<(&'static str, &'static str)> {
        NEEDED
            .iter()
            .find(|(env_type, setting, _)| *env_type == self.env_type && self.env_config.get(setting).is_none())
            .map(|(_, setting, what)| (*setting, *what))
    }
}

/// What was registered while running.
static REGISTERED: RwLock<Vec<(Template, Make)>> = RwLock::new(Vec::new());

fn registered() -> Vec<(Template, Make)> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds an environment of one's own for the rest of this process: under the registry name `template.env_type`, with
/// `template.tag` for its settings. Further tags come as `custom_envs` in the configuration.
///
/// # Errors
/// [`EnvError::Config`] when the name or the tag is taken, or the environment refuses the template's own settings.
pub fn register(template: Template, make: Make) -> Result<(), EnvError> {
    if env_types().contains(&template.env_type) {
        return Err(refuse(template.env_type, "an environment of this name exists already; choose another name"));
    }
    if templates().iter().any(|known| known.tag == template.tag) {
        return Err(refuse(
            template.env_type,
            format!("the tag `{}` exists already; choose another tag", template.tag),
        ));
    }
    make(&template.env_config)?;
    REGISTERED.write().unwrap_or_else(PoisonError::into_inner).push((template, make));
    Ok(())
}

/// The registry names, sorted.
#[must_use]
pub fn env_types() -> Vec<&'static str> {
    let mut names: Vec<&str> = ENVIRONMENTS.iter().map(|(name, _)| *name).collect();
    names.extend(registered().iter().map(|(template, _)| template.env_type));
    names.sort_unstable();
    names
}

/// Whether there is an environment of that name.
///
/// # Errors
/// [`EnvError::Config`] with the nearest known name when there is none.
pub fn check_env_type(env_type: &str) -> Result<(), EnvError> {
    let known = env_types();
    if known.contains(&env_type) { Ok(()) } else { Err(unknown(env_type, "environment", &known)) }
}

/// Makes an environment. `null` settings are the defaults; a list `wrappers` among them is put on (see
/// [`crate::wrappers`]).
///
/// # Errors
/// [`EnvError::Config`] for an unknown environment (with the nearest known one), an unknown setting (likewise), a
/// wrong type or a value out of range.
pub fn make(env_type: &str, config: &Value) -> Result<Box<dyn Environment>, EnvError> {
    let built_in = ENVIRONMENTS.iter().find(|(name, _)| *name == env_type).map(|(_, make)| *make);
    let own = || registered().iter().find(|(template, _)| template.env_type == env_type).map(|(_, make)| *make);
    match built_in.or_else(own) {
        Some(make) => {
            let (settings, list) = wrappers::split(config);
            wrappers::wrap(make(&settings)?, &list)
        }
        None => Err(unknown(env_type, "environment", &env_types())),
    }
}

/// The template of a tag. Where no tag is spelled so, one that differs in case only is meant.
///
/// # Errors
/// [`EnvError::Config`] for an unknown tag, with the nearest known one.
pub fn template(tag: &str) -> Result<Template, EnvError> {
    let mut all = templates();
    let exact = all.iter().position(|template| template.tag == tag);
    match exact.or_else(|| all.iter().position(|template| template.tag.eq_ignore_ascii_case(tag))) {
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

/// All templates: the built-in ones, with RAGEN's tags and settings, and those that were registered.
#[must_use]
pub fn templates() -> Vec<Template> {
    let mut all = built_in_templates();
    all.extend(registered().into_iter().map(|(template, _)| template));
    all
}

fn built_in_templates() -> Vec<Template> {
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
    let household = |tag, eval_dataset| Template {
        tag,
        env_type: alfworld::ENV_TYPE,
        max_actions_per_traj: 50,
        max_tokens: 512,
        env_instruction: alfworld::INSTRUCTION,
        env_config: json!({ "eval_dataset": eval_dataset }),
    };
    let question = |tag, env_type, env_instruction, env_config| Template {
        tag,
        env_type,
        max_actions_per_traj: 1,
        max_tokens: 100,
        env_instruction,
        env_config,
    };
    let sudoku = |tag, max_actions_per_traj, env_config| Template {
        tag,
        env_type: sudoku::ENV_TYPE,
        max_actions_per_traj,
        max_tokens: 150,
        env_instruction: sudoku::INSTRUCTION,
        env_config,
    };
    let game2048 = |tag, max_actions_per_traj, env_config| Template {
        tag,
        env_type: game2048::ENV_TYPE,
        max_actions_per_traj,
        max_tokens: 100,
        env_instruction: game2048::INSTRUCTION,
        env_config,
    };
    let rubik = |tag, env_config| Template {
        tag,
        env_type: rubik::ENV_TYPE,
        max_actions_per_traj: 20,
        max_tokens: 96,
        env_instruction: rubik::INSTRUCTION,
        env_config,
    };
    let webshop = |tag, max_actions_per_traj, max_tokens, env_config| Template {
        tag,
        env_type: webshop::ENV_TYPE,
        max_actions_per_traj,
        max_tokens,
        env_instruction: webshop::INSTRUCTION,
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
        household("Alfworld", "eval_in_distribution"),
        household("AlfworldOOD", "eval_out_of_distribution"),
        question("MetamathQA", math_qa::ENV_TYPE, math_qa::INSTRUCTION, json!({})),
        Template {
            max_actions_per_traj: 10,
            max_tokens: 300,
            ..question("SearchQA", search_qa::ENV_TYPE, search_qa::INSTRUCTION, json!({}))
        },
        Template {
            max_actions_per_traj: 10,
            max_tokens: 300,
            ..question("SearchQAMock", search_qa::ENV_TYPE, search_qa::INSTRUCTION, json!({ "mock_mode": true }))
        },
        Template {
            max_actions_per_traj: 30,
            max_tokens: 512,
            ..question("Lean", lean::ENV_TYPE, lean::INSTRUCTION, json!({}))
        },
        Template {
            max_tokens: 8000,
            ..question("DeepCoder", code_tests::ENV_TYPE, code_tests::INSTRUCTION, json!({}))
        },
        question("StaticMetamathQA", static_qa::ENV_TYPE, static_qa::INSTRUCTION, json!({ "dataset": "metamathqa" })),
        question("StaticGSM8K", static_qa::ENV_TYPE, static_qa::INSTRUCTION, json!({ "dataset": "gsm8k" })),
        question("StaticMMLU", static_qa::ENV_TYPE, static_qa::INSTRUCTION, json!({ "dataset": "mmlu" })),
        Template {
            tag: "Countdown",
            env_type: countdown::ENV_TYPE,
            max_actions_per_traj: 1,
            max_tokens: 100,
            env_instruction: countdown::INSTRUCTION,
            env_config: json!({}),
        },
        // RAGEN gives 20 and 30 actions to fill 32 and 40 cells; here there are some to spare.
        sudoku("SimpleSudoku", 40, json!({ "grid_size": 9, "difficulty": "easy" })),
        sudoku("MediumSudoku", 50, json!({ "grid_size": 9, "difficulty": "medium" })),
        sudoku("SmallSudoku", 10, json!({ "grid_size": 4, "difficulty": "hard", "render_format": "simple" })),
        sudoku("LargeSudoku", 120, json!({ "grid_size": 16, "difficulty": "easy" })),
        // RAGEN gives 700 actions, in which no one makes 2048.
        game2048("game_2048", 1200, json!({})),
        game2048("Small2048", 100, json!({ "goal": 128 })),
        rubik("rubikscube", json!({ "scramble_depth": 1, "max_steps": 20 })),
        rubik("HarderRubiksCube", json!({ "scramble_depth": 5, "max_steps": 20 })),
        Template {
            tag: "Spatial",
            env_type: navigation::ENV_TYPE,
            max_actions_per_traj: 11,
            max_tokens: 100,
            env_instruction: navigation::INSTRUCTION,
            env_config: json!({}),
        },
        webshop("WebShop", 9, 200, json!({})),
        webshop("WebShopFull", 15, 200, json!({})),
        webshop(
            "WebShopTiny",
            7,
            48,
            json!({ "dataset": "reduced", "compact": true, "results_per_page": 4, "max_results": 12 }),
        ),
    ]
}
