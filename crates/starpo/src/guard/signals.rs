//! Signals of a coming collapse, each compared with its own past in this run.

use serde::{Deserialize, Serialize};

use crate::config::GuardSignals;
use crate::metrics::Metrics;

/// Weight of the newest value in the fast and slow moving averages.
const FAST: f64 = 0.4;
const SLOW: f64 = 0.07;
/// The same for success, whose noise between iterations is large: groups differ in difficulty.
const SUCCESS: f64 = 0.12;
/// A fall of success also has to exceed its own noise this many times.
const NOISE: f64 = 2.5;
/// Gradient norms that the median is taken over.
const NORMS: usize = 30;
/// Validations that are averaged, measurements of information that make the reference and the present.
const SMOOTHED: usize = 3;
/// Success below which a share of the best says nothing.
const LEAST_SUCCESS: f64 = 0.1;
/// How much success has to rise for a falling spread or entropy to count as learning.
const RISING: f64 = 0.01;

/// What one iteration tells the guard; `None` where it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Success of training episodes.
    pub success: Option<f64>,
    /// Standard deviation of returns within groups.
    pub reward_std: Option<f64>,
    /// Mean token entropy.
    pub entropy: Option<f64>,
    /// Gradient norm before clipping.
    pub grad_norm: Option<f64>,
    /// Share of turns in the right format.
    pub format_valid: Option<f64>,
    /// Mutual information of reasoning and prompt.
    pub mutual_information: Option<f64>,
    /// Tokens of reasoning a turn.
    pub reasoning_length: Option<f64>,
    /// Share of repeated n-grams within groups.
    pub repetition: Option<f64>,
    /// Success of the validation after the last iteration, if there was one.
    pub validation: Option<f64>,
}

impl Observation {
    /// Reads the metrics of an iteration; `success` is over all training episodes.
    pub fn of(metrics: &Metrics, success: f64, validation: Option<f64>) -> Self {
        let finite = |name: &str| metrics.get(name).filter(|v| v.is_finite());
        let mi = finite("collapse_first_turn_sample/mi_seq_estimate");
        Self {
            success: Some(success),
            reward_std: finite("rollout/in_group_return_std"),
            entropy: finite("actor/entropy"),
            // A norm that is not finite is the largest spike there is.
            grad_norm: metrics.get("actor/grad_norm_max").map(|v| if v.is_finite() { v } else { f64::MAX }),
            format_valid: finite("train/rollout/format_valid"),
            mutual_information: mi.or_else(|| finite("collapse_trajectory_sample/mi_seq_estimate")),
            reasoning_length: finite("rollout/reasoning_length"),
            repetition: finite("rollout/repetition_rate"),
            validation,
        }
    }
}

/// A number with its past.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tracker {
    /// Moving average that follows quickly.
    pub fast: f64,
    /// Moving average that remembers.
    pub slow: f64,
    /// Highest value of the slow one once there is a past: the fast one has peaks by chance.
    pub best: f64,
    /// Moving average of the squared distance from the fast average.
    pub variance: f64,
    /// Values so far.
    pub n: u64,
}

impl Tracker {
    fn add(&mut self, value: f64, fast: f64, warmup: u64) {
        self.n += 1;
        // Until the weights settle both are plain means.
        let n = self.n as f64;
        let weight = |w: f64| w.max(1.0 / n);
        if self.n > 1 {
            let distance = value - self.fast;
            self.variance += weight(SLOW) * (distance * distance - self.variance);
        }
        self.fast += weight(fast) * (value - self.fast);
        self.slow += weight(SLOW) * (value - self.slow);
        if self.n >= warmup {
            self.best = self.best.max(self.slow);
        }
    }

    /// Standard deviation of a moving average of this weight, by the noise between iterations.
    fn noise(&self, weight: f64) -> f64 {
        (self.variance * weight / (2.0 - weight)).sqrt()
    }

    fn known(&self, warmup: u64) -> bool {
        self.n > warmup
    }
}

/// Why a signal speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    /// Which signal.
    pub signal: Signal,
    /// It calls for the strongest intervention by itself.
    pub severe: bool,
    /// In words, with the numbers.
    pub reason: String,
}

/// The signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Spread of returns within groups.
    RewardStd,
    /// Entropy fell.
    EntropyCrash,
    /// Entropy rose.
    EntropyBurst,
    /// Gradient norm.
    GradNorm,
    /// Format validity.
    Format,
    /// Mutual information.
    MutualInformation,
    /// Length of reasoning.
    ReasoningLength,
    /// Repetition.
    Repetition,
    /// Success in training.
    Success,
    /// Success in validation.
    Validation,
}

/// The past of every signal. Part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signals {
    success: Tracker,
    reward_std: Tracker,
    entropy: Tracker,
    format_valid: Tracker,
    reasoning_length: Tracker,
    repetition: Tracker,
    grad_norms: Vec<f64>,
    information: Vec<f64>,
    information_reference: Vec<f64>,
    validations: Vec<f64>,
    best_validation: f64,
}

impl Signals {
    /// Takes note of an iteration and says which signals speak. The past that an iteration is compared with does not
    /// contain it where one value could hide itself (gradient norms).
    pub fn update(&mut self, now: &Observation, limits: &GuardSignals, warmup: u64) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        if let Some(value) = now.success {
            self.success.add(value, SUCCESS, warmup);
        }
        self.performance(now, limits, warmup, &mut alarms);
        if let Some(value) = now.reward_std {
            self.reward_std.add(value, FAST, warmup);
            let t = &self.reward_std;
            if t.known(warmup) && t.fast < limits.reward_std_share * t.slow && !self.rising() {
                alarms.push(alarm(
                    Signal::RewardStd,
                    false,
                    "spread of returns within groups",
                    t.fast,
                    "fell from",
                    t.slow,
                ));
            }
        }
        if let Some(value) = now.entropy {
            self.entropy.add(value, FAST, warmup);
            let t = &self.entropy;
            if t.known(warmup) && t.fast < limits.entropy_crash_share * t.slow && !self.rising() {
                alarms.push(alarm(Signal::EntropyCrash, false, "entropy", t.fast, "fell from", t.slow));
            }
            if t.known(warmup) && t.fast > limits.entropy_burst_factor * t.slow {
                alarms.push(alarm(Signal::EntropyBurst, false, "entropy", t.fast, "rose from", t.slow));
            }
        }
        if let Some(value) = now.grad_norm {
            let median = median(&self.grad_norms);
            if self.grad_norms.len() as u64 >= warmup && value > limits.grad_norm_factor * median {
                alarms.push(alarm(Signal::GradNorm, false, "gradient norm", value, "rose from", median));
            }
            push(&mut self.grad_norms, value, NORMS);
        }
        if let Some(value) = now.format_valid {
            self.format_valid.add(value, FAST, warmup);
            let t = &self.format_valid;
            if t.known(warmup) && t.fast < t.best - limits.format_drop {
                let severe = t.fast < t.best - 3.0 * limits.format_drop;
                alarms.push(alarm(Signal::Format, severe, "format validity", t.fast, "fell from", t.best));
            }
        }
        if let Some(value) = now.mutual_information {
            if self.information_reference.len() < SMOOTHED {
                self.information_reference.push(value);
            }
            push(&mut self.information, value, SMOOTHED - 1);
            let (reference, now) =
                (crate::tokens::mean(&self.information_reference), crate::tokens::mean(&self.information));
            if self.information_reference.len() == SMOOTHED && now < limits.mi_share * reference {
                let name = "mutual information of reasoning and prompt";
                alarms.push(alarm(Signal::MutualInformation, false, name, now, "fell from", reference));
            }
        }
        if let Some(value) = now.reasoning_length {
            self.reasoning_length.add(value, FAST, warmup);
            let t = &self.reasoning_length;
            if t.known(warmup) && t.fast < limits.reasoning_length_share * t.slow {
                alarms.push(alarm(Signal::ReasoningLength, false, "length of reasoning", t.fast, "fell from", t.slow));
            }
        }
        if let Some(value) = now.repetition {
            self.repetition.add(value, FAST, warmup);
            let t = &self.repetition;
            if t.known(warmup) && t.fast > t.slow + limits.repetition_rise {
                alarms.push(alarm(Signal::Repetition, false, "repetition within groups", t.fast, "rose from", t.slow));
            }
        }
        alarms
    }

    fn performance(&mut self, now: &Observation, limits: &GuardSignals, warmup: u64, alarms: &mut Vec<Alarm>) {
        let t = &self.success;
        let beyond_noise = t.best - t.fast > NOISE * t.noise(SUCCESS);
        let low = t.best >= LEAST_SUCCESS && t.fast < limits.success_share * t.best;
        if t.known(warmup) && low && beyond_noise {
            let severe = t.fast < limits.severe_share * t.best;
            alarms.push(alarm(Signal::Success, severe, "success in training", t.fast, "fell from", t.best));
        }
        if let Some(value) = now.validation {
            push(&mut self.validations, value, SMOOTHED);
        }
        if self.validations.len() == SMOOTHED {
            let smoothed = crate::tokens::mean(&self.validations);
            self.best_validation = self.best_validation.max(smoothed);
            let best = self.best_validation;
            if best >= LEAST_SUCCESS && smoothed < limits.validation_share * best {
                let severe = smoothed < limits.severe_share * best;
                alarms.push(alarm(Signal::Validation, severe, "success in validation", smoothed, "fell from", best));
            }
        }
    }

    /// Success is rising: what falls meanwhile falls because the policy learns.
    fn rising(&self) -> bool {
        self.success.fast > self.success.slow + RISING
    }

    /// The entropy that the run was used to.
    pub fn usual_entropy(&self) -> Option<f64> {
        (self.entropy.n > 0).then_some(self.entropy.slow)
    }
}

fn alarm(signal: Signal, severe: bool, name: &str, now: f64, verb: &str, past: f64) -> Alarm {
    Alarm { signal, severe, reason: format!("{name} {verb} {past:.3} to {now:.3}") }
}

fn push(values: &mut Vec<f64>, value: f64, most: usize) {
    values.push(value);
    if values.len() > most {
        values.remove(0);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::INFINITY,
        n if n % 2 == 1 => sorted[n / 2],
        n => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
    }
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
