//! Whether the reasoning depends on the prompt: mutual information, conditional entropy and retrieval on first turns
//! and on whole trajectories, and which of the four regimes the run is in (RAGEN-2, arXiv 2604.06268).

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::scoring::{cost, cross_scores, fit};
use super::thoughts::{Pairs, count, first_turns, trajectories};
use crate::config::CollapseDetection;
use crate::episode::Episode;
use crate::metrics::Metrics;
use crate::mi::{Collapse, CrossScores, Information, MarginalEma, collapse};
use crate::policy::{Policy, PolicyError, Sequence, shared_rows};
use crate::rollout::sampling_seed;

/// Keeps the draws of the diagnostics apart from those of sampling.
const STREAM: u64 = 0x636F_6C6C_6170;
/// Numbers of samples that are tried, when fewer than the configured one fit the budget.
const FEWER: [usize; 7] = [64, 48, 32, 24, 16, 12, 8];
/// What a token costs while an episode is decoded and trained on, in forward passes of scoring: one backward pass is
/// worth two, and decoding uses the machine worse than a batch, with the tiny model as with one of 135M parameters.
const TRAINED_TOKEN: f64 = 3.0;
const DECODED_TOKEN: f64 = 6.0;

/// What the measurements remember. Part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollapseState {
    /// Moving averages of first turns.
    pub first_turn: MarginalEma,
    /// Moving averages of trajectories.
    pub trajectory: MarginalEma,
    /// Mutual information and conditional entropy when first measured, in nats of whole texts: what the regimes are
    /// relative to.
    pub reference: Option<(f64, f64)>,
    /// Trajectory samples that fit the budget; decided once, so that numbers stay comparable.
    pub samples: Option<usize>,
    /// Seconds spent so far, and those of the iterations they are a share of.
    pub seconds: (f64, f64),
}

/// The four regimes: does reasoning vary for one prompt, and does it depend on the prompt?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// Varies, depends.
    Healthy,
    /// Varies, does not depend: looks diverse and ignores the input.
    TemplateCollapse,
    /// Does not vary, depends.
    Compressed,
    /// Does not vary, does not depend.
    LowEntropyCollapse,
}

impl Regime {
    /// By mutual information and conditional entropy, relative to those at the first measurement.
    pub fn of(now: &Information, reference: (f64, f64), setting: &CollapseDetection) -> Self {
        let dependent = now.mutual_information >= setting.regime_mi_share * reference.0.max(0.0);
        let varied = now.conditional_entropy >= setting.regime_entropy_share * reference.1;
        match (varied, dependent) {
            (true, true) => Self::Healthy,
            (true, false) => Self::TemplateCollapse,
            (false, true) => Self::Compressed,
            (false, false) => Self::LowEntropyCollapse,
        }
    }

    /// Name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::TemplateCollapse => "template_collapse",
            Self::Compressed => "compressed",
            Self::LowEntropyCollapse => "low_entropy_collapse",
        }
    }
}

/// Measures a batch with the present weights. What can not be measured (one prompt only, no reasoning) is left out.
///
/// # Errors
/// What the policy says.
pub fn measure_collapse(
    policy: &mut dyn Policy,
    episodes: &[Episode],
    setting: &CollapseDetection,
    state: &mut CollapseState,
    temperature: f32,
    seed: u64,
    iteration: u64,
) -> Result<Metrics, PolicyError> {
    let mut metrics = Metrics::new();
    let (valid, all) = count(episodes);
    metrics.set("collapse/valid_thinking_rate", valid as f64 / all.max(1) as f64);
    let firsts = episodes.iter().filter(|e| !e.turns.is_empty());
    let first_valid = firsts.clone().filter(|e| e.turns[0].reasoning.as_ref().is_some_and(|r| !r.is_empty())).count();
    let first_total = firsts.count();
    metrics.set("collapse/first_turn_num_total", first_total as f64);
    metrics.set("collapse/first_turn_num_valid", first_valid as f64);
    metrics.set("collapse/first_turn_valid_rate", first_valid as f64 / first_total.max(1) as f64);
    let draw = |kind: u64| sampling_seed(seed, iteration, kind, STREAM);
    let mut measured: Option<Collapse> = None;
    if setting.first_turn_enabled {
        let began = Instant::now();
        let pairs = first_turns(episodes, setting.num_samples, draw(0));
        metrics.set("collapse/prompt_mismatch", f64::from(u8::from(pairs.is_none())));
        if let Some(pairs) = pairs
            && let Some(found) = score(policy, pairs, temperature, &mut metrics)?
        {
            report("collapse_first_turn_sample", &found, &mut state.first_turn, &mut metrics);
            measured = Some(found);
        }
        metrics.set("timing_s/collapse_first_turn_step", began.elapsed().as_secs_f64());
    }
    if setting.multi_turn_enabled {
        let began = Instant::now();
        let samples = *state.samples.get_or_insert_with(|| affordable(episodes, setting, draw(1)));
        let pairs = trajectories(episodes, samples, draw(1));
        if let Some(found) = score(policy, pairs, temperature, &mut metrics)? {
            report("collapse_trajectory_sample", &found, &mut state.trajectory, &mut metrics);
            measured.get_or_insert(found);
        }
        metrics.set("collapse/trajectory_samples", samples as f64);
        metrics.set("timing_s/collapse_multi_turn_step", began.elapsed().as_secs_f64());
    }
    if let Some(found) = measured {
        let now = found.sequence;
        let reference = *state.reference.get_or_insert((now.mutual_information, now.conditional_entropy));
        let regime = Regime::of(&now, reference, setting);
        for one in [Regime::Healthy, Regime::TemplateCollapse, Regime::Compressed, Regime::LowEntropyCollapse] {
            metrics.set(format!("collapse/regime_{}", one.name()), f64::from(u8::from(one == regime)));
        }
    }
    Ok(metrics)
}

/// The largest number of trajectory samples whose scoring is expected to stay within `max_share` of the iterations it
/// is spread over. Counts tokens, never seconds, so that it is the same on every machine.
fn affordable(episodes: &[Episode], setting: &CollapseDetection, seed: u64) -> usize {
    let sequences: Vec<Sequence> = episodes.iter().flat_map(Episode::to_sequences).collect();
    let trained = shared_rows(sequences.iter().map(|s| &s.tokens[..])) as f64;
    let decoded: f64 = episodes.iter().map(|e| e.response_length() as f64).sum();
    let budget = setting.max_share * setting.compute_freq.max(1) as f64;
    let budget = budget * (TRAINED_TOKEN * trained + DECODED_TOKEN * decoded);
    let first = match setting.first_turn_enabled {
        true => first_turns(episodes, setting.num_samples, seed).as_ref().map_or(0.0, cost),
        false => 0.0,
    };
    let fits = |samples: usize| first + cost(&trajectories(episodes, samples, seed)) <= budget;
    if fits(setting.num_samples) {
        return setting.num_samples;
    }
    let smallest = FEWER[FEWER.len() - 1].min(setting.num_samples);
    FEWER.into_iter().filter(|n| *n < setting.num_samples).find(|n| fits(*n)).unwrap_or(smallest)
}

fn score(
    policy: &mut dyn Policy,
    mut pairs: Pairs<'_>,
    temperature: f32,
    metrics: &mut Metrics,
) -> Result<Option<Collapse>, PolicyError> {
    let dropped = fit(&mut pairs, policy.max_context());
    let before = metrics.get("collapse/too_long").unwrap_or(0.0);
    metrics.set("collapse/too_long", before + dropped as f64);
    let prompts: std::collections::BTreeSet<&[u32]> = pairs.columns.iter().copied().collect();
    if prompts.len() < 2 || pairs.texts.is_empty() {
        return Ok(None);
    }
    let cross = cross_scores(policy, &pairs, temperature)?;
    let lengths: Vec<usize> = pairs.texts.iter().map(|t| t.len()).collect();
    let scores =
        CrossScores { log_prob: &cross.log_prob, lengths: &lengths, own: &pairs.own, signatures: &cross.signatures };
    match collapse(scores) {
        Ok(found) => Ok(found),
        Err(error) => {
            // A number that is not finite says something about the policy, and nothing that should end the run.
            tracing::warn!("the collapse diagnostics of this iteration are left out: {error}");
            metrics.set("collapse/failed", 1.0);
            Ok(None)
        }
    }
}

fn report(namespace: &str, found: &Collapse, ema: &mut MarginalEma, metrics: &mut Metrics) {
    let (zscore, zscore_seq) = ema.update(found);
    for (name, value) in found.metrics() {
        metrics.set(format!("{namespace}/{name}"), value);
    }
    metrics.set_some(format!("{namespace}/marginal_std_ema"), ema.token);
    metrics.set_some(format!("{namespace}/marginal_std_ema_seq"), ema.sequence);
    metrics.set(format!("{namespace}/mi_zscore_ema"), zscore);
    metrics.set(format!("{namespace}/mi_zscore_ema_seq"), zscore_seq);
}

#[cfg(test)]
#[path = "collapse_tests.rs"]
pub(super) mod tests;
