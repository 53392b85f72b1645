//! `es_manager` and `custom_envs`: which environments are played, and how many of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::problems::Problems;

/// Episodes played at a time, at most. A slip of the keyboard should not end as a failed allocation.
pub(super) const MOST_EPISODES: usize = 1 << 20;

/// Environments of a split, by tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvConfigs {
    /// Tags: names of built-in templates or of entries of `custom_envs`. Default `[SimpleSokoban]`.
    pub tags: Vec<String>,
    /// Groups of each tag; null divides `env_groups` equally. Default null.
    pub n_groups: Option<Vec<usize>>,
}

impl Default for EnvConfigs {
    fn default() -> Self {
        Self { tags: vec!["SimpleSokoban".into()], n_groups: None }
    }
}

/// The environments of training or of validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EsSplit {
    /// Groups an iteration: different initial states. Default 32 in training, 256 in validation.
    pub env_groups: usize,
    /// Episodes of a group: same initial state, same random stream. Default 8 in training, 1 in validation.
    pub group_size: usize,
    /// Seed of the first group. Training goes on from there, `env_groups` seeds an iteration; validation always plays
    /// the same. Default 10000 in training, 123 in validation.
    pub seed: u64,
    /// Which environments.
    pub env_configs: EnvConfigs,
}

impl Default for EsSplit {
    fn default() -> Self {
        Self { env_groups: 32, group_size: 8, seed: 10000, env_configs: EnvConfigs::default() }
    }
}

impl EsSplit {
    /// Episodes played at a time: groups × group size.
    pub fn episodes(&self) -> usize {
        self.env_groups.saturating_mul(self.group_size)
    }

    /// Groups of each tag, in the order of the groups.
    ///
    /// # Errors
    /// A sentence that says why the groups cannot be divided; `section` names the keys in it.
    pub fn groups_per_tag(&self, section: &str) -> Result<Vec<(&str, usize)>, String> {
        let tags = &self.env_configs.tags;
        if tags.is_empty() {
            return Err(format!("`{section}.env_configs.tags` must name at least one environment"));
        }
        let Some(n_groups) = &self.env_configs.n_groups else {
            if !self.env_groups.is_multiple_of(tags.len()) {
                return Err(format!(
                    "`{section}.env_groups` ({}) cannot be divided equally among {} tags: give \
                     `{section}.env_configs.n_groups`",
                    self.env_groups,
                    tags.len()
                ));
            }
            let each = self.env_groups / tags.len();
            return Ok(tags.iter().map(|tag| (tag.as_str(), each)).collect());
        };
        if n_groups.len() != tags.len() {
            return Err(format!(
                "`{section}.env_configs.n_groups` has {} entries for {} tags: give one number a tag, or null for \
                 an equal division",
                n_groups.len(),
                tags.len()
            ));
        }
        let sum = n_groups.iter().fold(0usize, |sum, n| sum.saturating_add(*n));
        if sum != self.env_groups {
            return Err(format!(
                "`{section}.env_configs.n_groups` sums to {sum}, but `{section}.env_groups` is {}: make them equal, \
                 or set n_groups to null for an equal division",
                self.env_groups
            ));
        }
        Ok(tags.iter().map(String::as_str).zip(n_groups.iter().copied()).collect())
    }

    pub(crate) fn check(&self, section: &str, problems: &mut Problems) {
        problems.at_least_one(&format!("{section}.env_groups"), self.env_groups);
        problems.at_least_one(&format!("{section}.group_size"), self.group_size);
        problems.at_most(&format!("{section}.env_groups × group_size"), self.episodes(), MOST_EPISODES);
        if let Err(complaint) = self.groups_per_tag(section) {
            problems.0.push(complaint);
        }
    }
}

/// Which environments are played, and what a malformed turn costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EsManager {
    /// Added to the return of an episode for every turn with an unknown action or none. Default −0.1.
    pub format_penalty: f64,
    /// Training.
    pub train: EsSplit,
    /// Validation.
    pub val: EsSplit,
}

impl Default for EsManager {
    fn default() -> Self {
        Self {
            format_penalty: -0.1,
            train: EsSplit::default(),
            val: EsSplit { env_groups: 256, group_size: 1, seed: 123, env_configs: EnvConfigs::default() },
        }
    }
}

impl EsManager {
    pub(crate) fn check(&self, problems: &mut Problems) {
        let penalty = self.format_penalty;
        problems.finite("es_manager.format_penalty", penalty);
        problems.require(penalty.is_nan() || penalty <= 0.0, || {
            format!("`es_manager.format_penalty` is added to the return: at most 0, found {penalty}")
        });
        self.train.check("es_manager.train", problems);
        self.val.check("es_manager.val", problems);
    }
}

/// A template of an environment, laid over the built-in template of the same tag. What is null is taken from there; a
/// tag that is not built in must give `env_type`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CustomEnv {
    /// Registry name of the environment, e.g. sokoban.
    pub env_type: Option<String>,
    /// Most actions of an episode.
    pub max_actions_per_traj: Option<usize>,
    /// Most tokens of a turn, as the prompt announces them.
    pub max_tokens: Option<usize>,
    /// Rules and goal in plain words; null: the environment's own.
    pub env_instruction: Option<String>,
    /// The environment's own configuration, laid over its defaults; null: those.
    pub env_config: Option<serde_json::Map<String, serde_json::Value>>,
}

pub(crate) fn check_custom_envs(custom_envs: &BTreeMap<String, CustomEnv>, problems: &mut Problems) {
    for (tag, env) in custom_envs {
        if let Some(actions) = env.max_actions_per_traj {
            problems.at_least_one(&format!("custom_envs.{tag}.max_actions_per_traj"), actions);
        }
        if let Some(tokens) = env.max_tokens {
            problems.at_least_one(&format!("custom_envs.{tag}.max_tokens"), tokens);
        }
    }
}
