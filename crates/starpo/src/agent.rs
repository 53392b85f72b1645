//! From a configuration to what plays: the model with its tokenizer and template, and the environments it plays.

use std::path::Path;
use std::sync::Arc;

use ragen_envs::{EnvError, registry};
use ragen_model::config::ModelConfig;
use ragen_model::init::random_params;
use ragen_model::tokenizer::{Tokenizer, TokenizerError};
use ragen_model::weights::{self, WeightsError};

use crate::config::{self, Config, ContextWindowMode, EsSplit, PromptStyle};
use crate::context::{ContextOptions, ContextOverflow, ContextWindow, Layout};
use crate::instances::EnvTag;
use crate::tiny;

/// Why an agent cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The tokenizer cannot be read.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// An environment's name or settings are wrong.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// The path leads nowhere.
    #[error(
        "model_path `{0}` does not exist: expected a Hugging Face folder (config.json, model.safetensors, \
         tokenizer.json), a GGUF file, or `tiny` for the built-in model; scripts/fetch_smollm2.sh fetches a real one"
    )]
    NoModel(String),
    /// The path is the folder of a run.
    #[error(
        "model_path `{0}` is the folder of a run, not of a model: the model of a finished run is `{0}/model`; `ragen \
         export {0} OUT` writes the latest checkpoint of one that goes on"
    )]
    RunFolder(String),
    /// The configured context is longer than the model's.
    #[error(
        "actor_rollout_ref.rollout.max_model_len is {wanted} and the model `{path}` holds {max} tokens; set it to {max} \
         or less"
    )]
    Context {
        /// Configured.
        wanted: usize,
        /// The model's.
        max: usize,
        /// The model.
        path: String,
    },
}

/// A model as read or made, before it is trained.
pub struct ModelSource {
    /// Sizes.
    pub config: ModelConfig,
    /// Weights in the layout's order.
    pub params: Vec<f32>,
    /// Tokenizer with its chat template.
    pub tokenizer: Tokenizer,
    /// Contents of `generation_config.json`, if any.
    pub generation_config: Option<serde_json::Value>,
}

impl ModelSource {
    /// The model at `path`: `tiny` (made from `seed`), a folder, or a GGUF file.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn load(path: &str, seed: u64) -> Result<Self, AgentError> {
        if path == tiny::NAME {
            let tokenizer = tiny::tokenizer()?;
            let config = tiny::model_config(&tokenizer);
            let params = random_params(&config, seed);
            return Ok(Self { config, params, tokenizer, generation_config: None });
        }
        if !Path::new(path).exists() {
            return Err(AgentError::NoModel(path.to_owned()));
        }
        if Path::new(path).join("config.yaml").is_file() && !Path::new(path).join("config.json").exists() {
            return Err(AgentError::RunFolder(path.to_owned()));
        }
        let loaded = weights::load(Path::new(path))?;
        Ok(Self {
            config: loaded.config,
            params: loaded.params,
            tokenizer: loaded.tokenizer,
            generation_config: loaded.generation_config,
        })
    }
}

/// How the conversation is laid out, by the configuration.
pub fn context_options(config: &Config) -> ContextOptions {
    ContextOptions {
        layout: match config.agent_proxy.prompt_style {
            PromptStyle::Full => Layout::Full,
            PromptStyle::Compact => Layout::Compact,
        },
        window: match (config.agent_proxy.context_window_mode, config.agent_proxy.window_turns()) {
            (ContextWindowMode::Full, _) => ContextWindow::Full,
            (ContextWindowMode::LimitedMultiTurn, turns) => ContextWindow::Dialogue { turns },
            (ContextWindowMode::SingleTurn, turns) => ContextWindow::Memory { turns },
        },
        overflow: match config.agent_proxy.context_overflow {
            config::ContextOverflow::Truncate => ContextOverflow::Truncate,
            config::ContextOverflow::DropOldestTurns => ContextOverflow::DropOldestTurns,
        },
        enable_think: config.agent_proxy.enable_think,
        action_sep: config.agent_proxy.action_sep.clone(),
        max_actions_per_turn: config.agent_proxy.max_actions_per_turn,
        system_prompt: None,
        legend_from_env_config: !config.compat.legend_ignores_env_config,
    }
}

/// The kind of environment that `tag` names: a built-in template, with the configuration's entry laid over it.
///
/// # Errors
/// [`EnvError`] for an unknown tag or environment, or settings it refuses.
pub fn env_tag(config: &Config, tag: &str) -> Result<EnvTag, EnvError> {
    let custom = config.custom_envs.get(tag);
    let template = match registry::template(tag) {
        Ok(template) => Some(template),
        Err(error) if custom.is_none() => return Err(error),
        Err(_) => None,
    };
    let mut env_type = template.as_ref().map(|t| t.env_type.to_owned());
    let mut env_config = template.as_ref().map_or(serde_json::Value::Null, |t| t.env_config.clone());
    let mut max_actions_per_traj = template.as_ref().map(|t| t.max_actions_per_traj);
    let mut max_tokens = template.as_ref().map(|t| t.max_tokens);
    let mut instruction = template.as_ref().map(|t| t.env_instruction.to_owned());
    if let Some(custom) = custom {
        if custom.env_type.is_some() && custom.env_type != env_type {
            // Another environment: nothing of the template fits it.
            (env_config, instruction) = (serde_json::Value::Null, None);
        }
        env_type = custom.env_type.clone().or(env_type);
        max_actions_per_traj = custom.max_actions_per_traj.or(max_actions_per_traj);
        max_tokens = custom.max_tokens.or(max_tokens);
        instruction = custom.env_instruction.clone().or(instruction);
        if let Some(own) = &custom.env_config {
            let mut merged = env_config.as_object().cloned().unwrap_or_default();
            merged.extend(own.clone());
            env_config = serde_json::Value::Object(merged);
        }
    }
    let env_type = env_type.ok_or_else(|| EnvError::Config {
        env_type: tag.to_owned(),
        message: format!("custom_envs.{tag} needs env_type, the name of a built-in environment"),
    })?;
    // Settings that the environment refuses should stop the run before it starts.
    let configured = registry::make(&env_type, &env_config)?;
    // An environment that cannot be had without settings has no default legend.
    let default = registry::make(&env_type, &serde_json::Value::Null).unwrap_or(configured);
    let default_legend = default.spec().legend.clone();
    let made = env_type.clone();
    let missing = |key: &str| EnvError::Config {
        env_type: tag.to_owned(),
        message: format!("custom_envs.{tag} needs {key}: there is no built-in template of that name to take it from"),
    };
    Ok(EnvTag {
        tag: tag.to_owned(),
        env_type,
        max_actions_per_traj: max_actions_per_traj.ok_or_else(|| missing("max_actions_per_traj"))?,
        max_tokens: max_tokens.ok_or_else(|| missing("max_tokens"))?,
        instruction,
        default_legend,
        make: Arc::new(move || registry::make(&made, &env_config)),
    })
}

/// The environments of a split with their numbers of groups.
///
/// # Errors
/// As [`env_tag`]; groups that cannot be divided are refused by the configuration's own validation.
pub fn group_plan(config: &Config, split: &EsSplit, section: &str) -> Result<Vec<(EnvTag, usize)>, EnvError> {
    let counts = split
        .groups_per_tag(section)
        .map_err(|message| EnvError::Config { env_type: split.env_configs.tags.join(", "), message })?;
    counts.into_iter().map(|(tag, n)| Ok((env_tag(config, tag)?, n))).collect()
}

/// Refuses an entry of `custom_envs` that names no environment, whether or not it is played: a misspelt one would only
/// be noticed when it is first needed. Environments are not made, as one that is not played need not be at hand.
///
/// # Errors
/// [`EnvError`].
pub fn check_custom_envs(config: &Config) -> Result<(), EnvError> {
    for (tag, custom) in &config.custom_envs {
        match &custom.env_type {
            Some(env_type) => registry::check_env_type(env_type)?,
            None => drop(registry::template(tag)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag_of(overrides: &[&str], tag: &str) -> Result<EnvTag, EnvError> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        env_tag(&Config::load(None, &overrides).unwrap(), tag)
    }

    #[test]
    fn a_tag_of_its_own_says_its_limits() {
        let message = |overrides: &[&str]| tag_of(overrides, "Mine").unwrap_err().to_string();
        let env = "custom_envs.Mine.env_type=sokoban";
        let (actions, tokens) = ("custom_envs.Mine.max_actions_per_traj=7", "custom_envs.Mine.max_tokens=50");
        assert!(message(&[actions]).contains("needs env_type"));
        assert!(message(&[env]).contains("custom_envs.Mine needs max_actions_per_traj"));
        assert!(message(&[env, actions]).contains("custom_envs.Mine needs max_tokens"));
        let mine = tag_of(&[env, actions, tokens], "Mine").unwrap();
        assert_eq!((mine.max_actions_per_traj, mine.max_tokens), (7, 50));
    }

    #[test]
    fn a_built_in_tag_lends_what_is_not_said() {
        let built_in = tag_of(&[], "SimpleSokoban").unwrap();
        let changed = tag_of(&["custom_envs.SimpleSokoban.max_tokens=33"], "SimpleSokoban").unwrap();
        assert_eq!((changed.max_actions_per_traj, changed.max_tokens), (built_in.max_actions_per_traj, 33));
        assert!(tag_of(&[], "SimpleSokobann").is_err());
    }
}
