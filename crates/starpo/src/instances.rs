//! Which instances are played: tags, groups, seeds, and keeping training apart from validation.
//!
//! Seeds follow RAGEN: training group `g` of an iteration gets `base + counter + g` and the counter moves on by the
//! number of groups; validation group `g` always gets `base + g`. Unlike the reference the counter is part of a
//! checkpoint, and a training seed whose instance also occurs in the validation set is skipped and counted.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ragen_envs::{EnvSpec, Split};
use serde::{Deserialize, Serialize};

use crate::context::EnvPrompt;
use crate::guarded_env::{Fault, GuardedEnv, MakeEnv};

/// Seeds in a row that may be skipped before an instance is taken although it occurs in the validation set too. A
/// small environment has no other instances, and the run must not stand still.
const MAX_SKIPS: usize = 100;

/// A kind of environment as a run names it.
#[derive(Clone)]
pub struct EnvTag {
    /// Name of the template, the prefix of its metrics.
    pub tag: String,
    /// Registry name of the environment.
    pub env_type: String,
    /// Most actions in an episode.
    pub max_actions_per_traj: usize,
    /// Longest response in tokens, as told to the agent.
    pub max_tokens: usize,
    /// Instruction to the agent; `None` takes the environment's own.
    pub instruction: Option<String>,
    /// The legend of the environment's *default* configuration, for the compatibility mode only.
    pub default_legend: Vec<(String, String)>,
    /// Makes one environment of this kind.
    pub make: Arc<MakeEnv>,
}

impl EnvTag {
    /// What the agent is told about this environment.
    pub fn prompt(&self, spec: &EnvSpec, legend_from_env_config: bool) -> EnvPrompt {
        EnvPrompt {
            instruction: self.instruction.clone().unwrap_or_else(|| spec.instruction.clone()),
            actions: spec.actions.clone(),
            legend: if legend_from_env_config { spec.legend.clone() } else { self.default_legend.clone() },
            max_actions_per_traj: self.max_actions_per_traj,
            max_tokens: self.max_tokens,
        }
    }
}

impl std::fmt::Debug for EnvTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvTag").field("tag", &self.tag).field("env_type", &self.env_type).finish_non_exhaustive()
    }
}

/// One group: the instance all its members play.
#[derive(Clone, Debug)]
pub struct Group {
    /// What is played.
    pub tag: EnvTag,
    /// The instance.
    pub seed: u64,
    /// Where the instance comes from.
    pub split: Split,
}

/// A number of groups per tag, laid out tag by tag.
pub type GroupPlan = [(EnvTag, usize)];

/// The initial states of validation instances, per environment type.
#[derive(Clone, Debug, Default)]
pub struct InstanceKeys {
    keys: BTreeMap<String, HashSet<String>>,
}

impl InstanceKeys {
    /// Collects the initial states of `groups`. An instance that cannot be made has no state and is left out, and so is
    /// one of an environment with too few instances to hold any out.
    pub fn of(groups: &[Group]) -> Self {
        let mut keys = Self::default();
        let mut env: Option<(String, GuardedEnv)> = None;
        for group in groups {
            let reusable = env.take().filter(|(tag, _)| *tag == group.tag.tag).map(|(_, e)| e);
            let made = reusable.map_or_else(|| GuardedEnv::make(&*group.tag.make), Ok);
            let Ok(mut made) = made else { continue };
            if !made.can_hold_out() {
                continue;
            }
            if let Ok(key) = initial_key(&mut made, group.seed, group.split) {
                keys.keys.entry(group.tag.env_type.clone()).or_default().insert(key);
                env = Some((group.tag.tag.clone(), made));
            }
        }
        keys
    }

    /// Whether an instance of `env_type` with this initial state is among them.
    pub fn contains(&self, env_type: &str, key: &str) -> bool {
        self.keys.get(env_type).is_some_and(|keys| keys.contains(key))
    }

    /// Number of distinct instances.
    pub fn len(&self) -> usize {
        self.keys.values().map(HashSet::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where the training seeds stand. Part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedCounter {
    /// First seed (`seed.train`).
    pub base: u64,
    /// Seeds used or skipped so far.
    pub counter: u64,
    /// Seeds skipped because their instance is a validation instance.
    pub skipped: u64,
    /// Instances taken although they are validation instances, because no other was found.
    pub overlapping: u64,
}

impl SeedCounter {
    /// Starts at `base`.
    pub fn new(base: u64) -> Self {
        Self { base, counter: 0, skipped: 0, overlapping: 0 }
    }

    /// The next training seed for `tag` that is not in `validation`.
    pub fn next_seed(&mut self, tag: &EnvTag, validation: &InstanceKeys) -> u64 {
        let mut env = None;
        for _ in 0..MAX_SKIPS {
            let seed = self.take();
            if validation.is_empty() || !is_validation_instance(&mut env, tag, seed, validation) {
                return seed;
            }
            self.skipped += 1;
        }
        self.overlapping += 1;
        tracing::warn!(tag = %tag.tag, "{MAX_SKIPS} training instances in a row are validation instances; taking one");
        self.take()
    }

    /// The groups of one iteration.
    pub fn next_groups(&mut self, plan: &GroupPlan, validation: &InstanceKeys) -> Vec<Group> {
        let mut groups = Vec::new();
        for (tag, n) in plan {
            for _ in 0..*n {
                groups.push(Group { tag: tag.clone(), seed: self.next_seed(tag, validation), split: Split::Train });
            }
        }
        groups
    }

    fn take(&mut self) -> u64 {
        let seed = self.base.wrapping_add(self.counter);
        self.counter = self.counter.wrapping_add(1);
        seed
    }
}

/// The fixed validation groups: seed `base + g`.
pub fn validation_groups(plan: &GroupPlan, base: u64) -> Vec<Group> {
    plan.iter()
        .flat_map(|(tag, n)| std::iter::repeat_n(tag, *n))
        .zip(0u64..)
        .map(|(tag, g)| Group { tag: tag.clone(), seed: base.wrapping_add(g), split: Split::Val })
        .collect()
}

fn is_validation_instance(env: &mut Option<GuardedEnv>, tag: &EnvTag, seed: u64, validation: &InstanceKeys) -> bool {
    // A fault here is left to the episode, where it is recorded.
    if env.is_none() {
        *env = GuardedEnv::make(&*tag.make).ok();
    }
    let Some(made) = env.as_mut() else { return false };
    match initial_key(made, seed, Split::Train) {
        Ok(key) => validation.contains(&tag.env_type, &key),
        Err(_) => {
            *env = None;
            false
        }
    }
}

fn initial_key(env: &mut GuardedEnv, seed: u64, split: Split) -> Result<String, Fault> {
    env.reset(seed, split)?;
    env.state_key()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::scripted::{Trouble, line};

    #[test]
    fn training_seeds_advance_and_validation_seeds_do_not() {
        let tag = line(Trouble::None, "");
        let plan = [(tag.clone(), 5), (tag, 3)];
        let mut seeds = SeedCounter::new(10_000);
        for step in 0..4u64 {
            // A counter restored from its serialised form goes on where it stood.
            seeds = serde_json::from_str(&serde_json::to_string(&seeds).unwrap()).unwrap();
            let groups = seeds.next_groups(&plan, &InstanceKeys::default());
            let got: Vec<u64> = groups.iter().map(|g| g.seed).collect();
            let first = 10_000 + 8 * step;
            assert_eq!(got, (first..first + 8).collect::<Vec<_>>());
            assert!(groups.iter().all(|g| g.split == Split::Train));
            let val: Vec<u64> = validation_groups(&plan, 123).iter().map(|g| g.seed).collect();
            assert_eq!(val, (123..131).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_environment_with_no_other_instances_does_not_stop_the_run() {
        let tag = line(Trouble::None, "");
        let validation = InstanceKeys::of(&validation_groups(&[(tag.clone(), 10)], 0));
        let mut seeds = SeedCounter::new(0);
        assert_eq!(seeds.next_seed(&tag, &validation), 100);
        assert_eq!((seeds.skipped, seeds.overlapping), (100, 1));
    }

    #[test]
    fn instances_that_fail_are_left_to_their_episodes() {
        let tag = line(Trouble::ResetError, "");
        let validation = InstanceKeys::of(&validation_groups(&[(tag.clone(), 4)], 0));
        assert_eq!(validation.len(), 2);
        let mut seeds = SeedCounter::new(0);
        assert_eq!(seeds.next_seed(&tag, &validation), 1);
        assert!(!validation.contains("other", "0 3") && validation.contains("line", "0 3"));
    }
}
