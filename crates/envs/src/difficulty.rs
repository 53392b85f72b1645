//! How hard a set of instances is, and how much of it also occurs in training.

use std::collections::{BTreeMap, HashSet};

use crate::{EnvError, Environment, Split};

/// Number of instances by the length of the oracle's plan from the start: shortest solutions, where the environment is
/// deterministic. Length 0 counts those without a solution within `max_actions`.
///
/// # Errors
/// Those of the environment.
pub fn solution_lengths(
    env: &mut dyn Environment,
    seeds: impl IntoIterator<Item = u64>,
    split: Split,
    max_actions: usize,
) -> Result<BTreeMap<usize, usize>, EnvError> {
    let mut lengths = BTreeMap::new();
    for seed in seeds {
        env.reset(seed, split)?;
        *lengths.entry(env.oracle(max_actions).len()).or_insert(0) += 1;
    }
    Ok(lengths)
}

/// Overlap of two sets of instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leakage {
    /// Validation instances.
    pub val: usize,
    /// Different ones among them.
    pub val_distinct: usize,
    /// Validation instances (counted with their repetitions) that also occur in training.
    pub leaked: usize,
    /// Different ones among those.
    pub leaked_distinct: usize,
    /// Different training instances.
    pub train_distinct: usize,
}

/// Counts the validation instances that also occur among the training instances, by [`Environment::state_key`].
/// Training seeds that give no instance are passed over, as training would pass over them.
///
/// # Errors
/// Those of the environment on validation seeds.
pub fn leakage(
    env: &mut dyn Environment,
    val_seeds: impl IntoIterator<Item = u64>,
    train_seeds: impl IntoIterator<Item = u64>,
) -> Result<Leakage, EnvError> {
    let mut val = Vec::new();
    for seed in val_seeds {
        env.reset(seed, Split::Val)?;
        val.push(env.state_key());
    }
    let mut train = HashSet::new();
    for seed in train_seeds {
        if env.reset(seed, Split::Train).is_ok() {
            train.insert(env.state_key());
        }
    }
    let distinct: HashSet<_> = val.iter().collect();
    Ok(Leakage {
        val: val.len(),
        val_distinct: distinct.len(),
        leaked_distinct: distinct.iter().filter(|key| train.contains(**key)).count(),
        leaked: val.iter().filter(|key| train.contains(*key)).count(),
        train_distinct: train.len(),
    })
}
