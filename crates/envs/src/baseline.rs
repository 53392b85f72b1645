//! The floor and the ceiling of every score: the uniformly random policy and the oracle on the same instances.

use std::ops::Range;

use rand_core::Rng;

use crate::{EnvError, Environment, Split};

/// Seeds of the 256 validation instances.
pub const VAL_SEEDS: Range<u64> = 123..379;

/// An episode played to its end or to the end of its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// The goal was reached.
    pub success: bool,
    /// Sum of the rewards.
    pub total_reward: f64,
    /// Actions taken.
    pub actions: usize,
}

/// Averages over a set of instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Instances.
    pub instances: usize,
    /// Success rate of the uniformly random policy over instances and repetitions.
    pub random_success: f64,
    /// Standard error of `random_success` over all episodes played.
    pub random_standard_error: f64,
    /// Mean return of the uniformly random policy.
    pub random_return: f64,
    /// Success rate of the oracle, one episode an instance, on the instances' own random streams.
    pub oracle_success: f64,
    /// Mean return of the oracle.
    pub oracle_return: f64,
    /// Success probability of the best player, averaged over the instances; `None` when an instance does not know it.
    pub optimum: Option<f64>,
}

/// A uniformly random action, as [`Environment::sample_action`] draws it.
pub fn random_action(env: &dyn Environment, rng: &mut dyn Rng) -> Option<String> {
    env.sample_action(rng)
}

/// Plays an instance with uniformly random actions.
///
/// # Errors
/// Those of the environment.
pub fn play_random(
    env: &mut dyn Environment,
    seed: u64,
    split: Split,
    max_actions: usize,
    rng: &mut dyn Rng,
) -> Result<Played, EnvError> {
    env.reset(seed, split)?;
    let mut played = Played::default();
    while played.actions < max_actions {
        let Some(action) = random_action(env, rng) else {
            break;
        };
        if advance(env, &action, &mut played)? {
            break;
        }
    }
    Ok(played)
}

/// Plays an instance as the oracle does, asking it again whenever its plan is used up; stops when nothing helps.
///
/// # Errors
/// Those of the environment.
pub fn play_oracle(env: &mut dyn Environment, seed: u64, split: Split, max_actions: usize) -> Result<Played, EnvError> {
    env.reset(seed, split)?;
    let mut played = Played::default();
    'episode: while played.actions < max_actions {
        let plan = env.oracle(max_actions - played.actions);
        if plan.is_empty() {
            break;
        }
        for action in plan.iter().take(max_actions - played.actions) {
            if advance(env, action, &mut played)? {
                break 'episode;
            }
        }
    }
    Ok(played)
}

/// Random policy and oracle on every instance, the former `repetitions` times.
///
/// # Errors
/// Those of the environment.
pub fn baseline(
    env: &mut dyn Environment,
    seeds: impl IntoIterator<Item = u64>,
    split: Split,
    max_actions: usize,
    repetitions: usize,
    rng: &mut dyn Rng,
) -> Result<Baseline, EnvError> {
    let mut sum = Baseline::default();
    let mut optimum = Some(0.0);
    for seed in seeds {
        sum.instances += 1;
        for _ in 0..repetitions {
            let played = play_random(env, seed, split, max_actions, rng)?;
            sum.random_success += f64::from(u8::from(played.success));
            sum.random_return += played.total_reward;
        }
        let played = play_oracle(env, seed, split, max_actions)?;
        sum.oracle_success += f64::from(u8::from(played.success));
        sum.oracle_return += played.total_reward;
        env.reset(seed, split)?;
        optimum = optimum.zip(env.optimum(max_actions)).map(|(sum, value)| sum + value);
    }
    let instances = sum.instances.max(1) as f64;
    let episodes = instances * repetitions.max(1) as f64;
    let rate = sum.random_success / episodes;
    Ok(Baseline {
        instances: sum.instances,
        random_success: rate,
        random_standard_error: (rate * (1.0 - rate) / episodes).sqrt(),
        random_return: sum.random_return / episodes,
        oracle_success: sum.oracle_success / instances,
        oracle_return: sum.oracle_return / instances,
        optimum: optimum.filter(|_| sum.instances > 0).map(|value| value / instances),
    })
}

/// One action; true when the episode is over.
fn advance(env: &mut dyn Environment, action: &str, played: &mut Played) -> Result<bool, EnvError> {
    let step = env.step(action)?;
    played.actions += 1;
    played.total_reward += step.reward;
    played.success = step.info.success;
    Ok(step.terminated || step.truncated)
}
