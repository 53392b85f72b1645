//! Scores and how sure one can be of them.
//!
//! What is here: evaluation on fixed instances, the floor (uniformly random actions) and the ceiling (the oracle) on
//! the same instances, Wilson's interval for a success rate, Student's interval for a mean over seeds.
//! What is not here: which instances are evaluated ([`crate::instances`]).

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::context::ContextOptions;
use crate::dialogue::Dialogue;
use crate::episode::Episode;
use crate::guarded_env::{Fault, GuardedEnv};
use crate::instances::Group;
use crate::policy::Policy;
use crate::rollout::{RolloutError, RolloutOptions, collect, sampling_seed};
use crate::rollout_metrics::batch_metrics;

/// Standard normal quantile at 0.975.
const Z95: f64 = 1.959_963_984_540_054;

/// A success rate with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Share of episodes that reached the goal.
    pub success: f64,
    /// Number of episodes.
    pub n: usize,
    /// 95 % confidence interval of the success rate, by Wilson.
    pub ci95: (f64, f64),
    /// Mean raw return.
    pub mean_return: f64,
}

impl Score {
    /// From the success and the return of each episode; `None` without episodes.
    pub fn of(episodes: impl IntoIterator<Item = (bool, f64)>) -> Option<Self> {
        let (mut n, mut successes, mut sum) = (0usize, 0usize, 0.0);
        for (success, value) in episodes {
            n += 1;
            successes += usize::from(success);
            sum += value;
        }
        (n > 0).then(|| Self {
            success: successes as f64 / n as f64,
            n,
            ci95: wilson95(successes, n),
            mean_return: sum / n as f64,
        })
    }
}

/// What can be had without learning and what is possible at all, on the same instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baselines {
    /// Uniformly random valid actions; `None` when actions are free text.
    pub random: Option<Score>,
    /// The best player; `None` when no environment has an oracle.
    pub oracle: Option<Score>,
    /// The best possible success rate, where every environment knows it: what the oracle reaches on average.
    pub optimum: Option<f64>,
}

/// The instances of an evaluation, with what others score on them.
pub struct Validation {
    /// One group for each instance.
    pub groups: Vec<Group>,
    /// Tags whose episodes make up the score: those that training plays too, or all when training plays none of them.
    /// The other tags speak of generalisation and are reported on their own.
    pub scored: Vec<String>,
    /// Floor and ceiling of the scored tags together.
    pub baselines: Baselines,
    /// Floor and ceiling of each tag.
    pub by_tag: BTreeMap<String, Baselines>,
}

impl Validation {
    /// Plays the baselines on `groups`. `trained`: tags that training plays.
    pub fn new(groups: Vec<Group>, trained: &[&str], options: &BaselineOptions) -> Self {
        let mut tags: Vec<String> = Vec::new();
        for group in &groups {
            if !tags.contains(&group.tag.tag) {
                tags.push(group.tag.tag.clone());
            }
        }
        let known: Vec<String> = tags.iter().filter(|tag| trained.contains(&tag.as_str())).cloned().collect();
        let scored = if known.is_empty() { tags.clone() } else { known };
        let of = |wanted: &[String]| -> Baselines {
            let groups: Vec<Group> = groups.iter().filter(|g| wanted.contains(&g.tag.tag)).cloned().collect();
            baselines(&groups, options)
        };
        let together = of(&scored);
        let by_tag = if tags.len() == 1 {
            tags.into_iter().map(|tag| (tag, together)).collect()
        } else {
            tags.into_iter().map(|tag| (tag.clone(), of(&[tag]))).collect()
        };
        Self { groups, scored, baselines: together, by_tag }
    }
}

/// An evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// The policy's score on the tags that count ([`Validation::scored`]).
    #[serde(flatten)]
    pub score: Score,
    /// Floor and ceiling.
    pub baselines: Baselines,
    /// Each tag on its own, also those that the score leaves out.
    pub by_tag: BTreeMap<String, TagScore>,
    /// Number of episodes per outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// All rollout metrics under RAGEN's names.
    pub metrics: BTreeMap<String, f64>,
}

/// A policy's score on the instances of one tag.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagScore {
    /// The policy's score.
    #[serde(flatten)]
    pub score: Score,
    /// Floor and ceiling on the same instances.
    pub baselines: Baselines,
}

/// Plays the validation instances with the policy and compares. Returns the report and the episodes.
///
/// Intervals take episodes as independent: use a group size of 1, or read them as too narrow.
///
/// # Errors
/// [`RolloutError`]; also when there is nothing to evaluate.
pub fn evaluate(
    policy: &mut dyn Policy,
    dialogue: &dyn Dialogue,
    context: &ContextOptions,
    validation: &Validation,
    options: &RolloutOptions,
) -> Result<(EvalReport, Vec<Episode>), RolloutError> {
    let episodes = collect(policy, dialogue, context, &validation.groups, options)?;
    let score_of = |counts: &dyn Fn(&str) -> bool| {
        let counted = episodes.iter().filter(|e| counts(&e.tag));
        Score::of(counted.map(|e| (e.outcome.is_success(), e.total_return())))
    };
    let Some(score) = score_of(&|tag| validation.scored.iter().any(|s| s == tag)) else {
        return Err(RolloutError::Option("there are no validation groups; es_manager.val.env_groups is 0".into()));
    };
    let by_tag = validation
        .by_tag
        .iter()
        .filter_map(|(tag, baselines)| {
            let score = score_of(&|other| other == tag)?;
            Some((tag.clone(), TagScore { score, baselines: *baselines }))
        })
        .collect();
    let mut outcomes = BTreeMap::new();
    for episode in &episodes {
        *outcomes.entry(episode.outcome.name().to_owned()).or_default() += 1;
    }
    let metrics = batch_metrics(&episodes);
    Ok((EvalReport { score, baselines: validation.baselines, by_tag, outcomes, metrics }, episodes))
}

/// How the baselines are played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineOptions {
    /// Most turns in an episode.
    pub max_turn: usize,
    /// Most actions in a turn. With `max_turn` it limits the actions as it does for the policy.
    pub max_actions_per_turn: usize,
    /// Random episodes per instance. They differ in their actions only, not in the environment's chance.
    pub repeats: usize,
    /// Seed of the random actions.
    pub seed: u64,
}

impl BaselineOptions {
    /// Actions that an episode of `group` can take.
    fn budget(&self, group: &Group) -> usize {
        group.tag.max_actions_per_traj.min(self.max_turn.saturating_mul(self.max_actions_per_turn))
    }
}

/// Scores the random policy and the oracle on the instances of `groups`. Instances whose environment fails count as
/// failures with what they earned until then, as they do for the policy.
pub fn baselines(groups: &[Group], options: &BaselineOptions) -> Baselines {
    let (mut random, mut oracle) = (Vec::new(), Vec::new());
    let mut has_oracle = false;
    let mut optimum = Some(0.0);
    for (g, group) in groups.iter().enumerate() {
        for repeat in 0..options.repeats {
            let seed = sampling_seed(options.seed, RANDOM_STREAM, g as u64, repeat as u64);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut chose = false;
            let result = play(group, options, |env, _| {
                let actions = env.available_actions()?;
                let pick = usize::try_from(below(&mut rng, actions.len() as u64)).unwrap_or(0);
                chose |= !actions.is_empty();
                Ok(actions.into_iter().nth(pick).into_iter().collect())
            });
            if chose {
                random.push(result);
            }
        }
        optimum = optimum.and_then(|sum| Some(sum + instance_optimum(group, options)?));
        oracle.push(play(group, options, |env, left| {
            let actions = env.oracle(left)?;
            has_oracle |= !actions.is_empty();
            Ok(actions)
        }));
    }
    Baselines {
        random: Score::of(random),
        oracle: if has_oracle { Score::of(oracle) } else { None },
        optimum: optimum.filter(|_| !groups.is_empty()).map(|sum| sum / groups.len() as f64),
    }
}

/// The environment's own knowledge of how often its instance can be solved.
fn instance_optimum(group: &Group, options: &BaselineOptions) -> Option<f64> {
    let mut env = GuardedEnv::make(&*group.tag.make).ok()?;
    env.reset(group.seed, group.split).ok()?;
    env.optimum(options.budget(group)).ok()?
}

/// Keeps the random policy's streams apart from those of sampling.
const RANDOM_STREAM: u64 = 0x7261_6E64_6F6D;

/// Plays one episode with the actions that `choose` plans; none ends it. Returns success and return.
fn play(
    group: &Group,
    options: &BaselineOptions,
    mut choose: impl FnMut(&mut GuardedEnv, usize) -> Result<Vec<String>, Fault>,
) -> (bool, f64) {
    let budget = options.budget(group);
    let mut total = 0.0;
    let mut run = || -> Result<bool, Fault> {
        let mut env = GuardedEnv::make(&*group.tag.make)?;
        env.reset(group.seed, group.split)?;
        let mut left = budget;
        while left > 0 {
            let actions = choose(&mut env, left)?;
            if actions.is_empty() {
                return Ok(false);
            }
            for action in actions.iter().take(left) {
                let step = env.step(action)?;
                left -= 1;
                if !step.reward.is_finite() {
                    return Ok(false);
                }
                total += step.reward;
                if step.terminated || step.truncated {
                    return Ok(step.info.success);
                }
            }
        }
        Ok(false)
    };
    let success = run().unwrap_or(false);
    (success, total)
}

/// A uniform number below `n` (0 for n = 0), by multiplication; the bias is below n / 2⁶⁴.
pub(crate) fn below(rng: &mut dyn Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Wilson's 95 % score interval of a proportion (Wilson 1927); (0, 1) without observations.
pub fn wilson95(successes: usize, n: usize) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (n as f64, successes as f64 / n as f64);
    let z2 = Z95 * Z95;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// A mean over independent runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanOverSeeds {
    /// The mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1); 0 for one run.
    pub std: f64,
    /// 95 % confidence interval by Student's t; `None` for one run, which says nothing about the spread.
    pub ci95: Option<(f64, f64)>,
    /// Number of runs.
    pub n: usize,
}

/// Mean, spread and Student's 95 % interval of one number per seed; `None` without numbers.
pub fn mean_over_seeds(values: &[f64]) -> Option<MeanOverSeeds> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(MeanOverSeeds { mean, std: 0.0, ci95: None, n });
    }
    let std = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt();
    let half = t975(n - 1) * std / (n as f64).sqrt();
    Some(MeanOverSeeds { mean, std, ci95: Some((mean - half, mean + half)), n })
}

/// Student's t quantile at 0.975: a table up to 30 degrees of freedom, from there the Cornish–Fisher expansion, which
/// is right to five digits.
fn t975(df: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
        2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
        2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
    ];
    if let Some(t) = df.checked_sub(1).and_then(|i| TABLE.get(i)) {
        return *t;
    }
    let (z, v) = (Z95, df as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v.powi(3))
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
