//! The guard: sees a collapse coming, says so, and where it may, does something about it.
//!
//! What is here: the states, the ladder of interventions, what is in force. What is not here: the signals
//! ([`signals`]), and carrying out what is decided, which is the trainer's. Everything follows from numbers of the run,
//! never from time, and the whole state is part of a checkpoint.

pub mod signals;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::{Guard as Setting, GuardMode, Rung};
use signals::{Alarm, Observation, Signal, Signals};

/// How a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// No signal speaks.
    #[default]
    Healthy,
    /// Signals speak.
    Warned,
    /// Something is being done.
    Intervening,
    /// It helped.
    Recovered,
    /// It did not: the run ends at its last healthy policy.
    Stopped,
}

impl Health {
    /// Name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Warned => "warned",
            Self::Intervening => "intervening",
            Self::Recovered => "recovered",
            Self::Stopped => "stopped",
        }
    }
}

/// A change of state, or an intervention within a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// State before.
    pub from: Health,
    /// State after.
    pub to: Health,
    /// What is done, if anything.
    pub action: Option<Rung>,
    /// It would be done if the guard might act.
    pub only_observed: bool,
    /// Why, in words.
    pub reason: String,
    /// The signals that speak.
    pub signals: Vec<Signal>,
}

impl Change {
    /// As the details of an event.
    pub fn details(&self) -> Map<String, Value> {
        let signals: Vec<Value> = self.signals.iter().map(|s| serde_json::to_value(s).unwrap_or_default()).collect();
        let mut details = Map::new();
        details.insert("from".into(), json!(self.from.name()));
        details.insert("to".into(), json!(self.to.name()));
        details.insert("action".into(), json!(self.action.map(Rung::name)));
        details.insert("only_observed".into(), json!(self.only_observed));
        details.insert("reason".into(), json!(self.reason));
        details.insert("signals".into(), Value::Array(signals));
        details
    }
}

/// What is in force in the next iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Factor of the learning rate.
    pub lr_scale: f64,
    /// Filter more strictly and replace silent groups.
    pub filter: bool,
    /// Added to the weight of the entropy bonus.
    pub entropy_coeff: f64,
    /// Weight of the pull towards the last healthy policy.
    pub anchor_coef: f64,
}

impl Default for Effects {
    fn default() -> Self {
        Self { lr_scale: 1.0, filter: false, entropy_coeff: 0.0, anchor_coef: 0.0 }
    }
}

/// What the trainer has to do after an iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What changed, for events and the terminal.
    pub changes: Vec<Change>,
    /// Put the last healthy policy back.
    pub rollback: bool,
    /// End the run (with the last healthy policy).
    pub stop: bool,
    /// Copy the present policy as a candidate, and let the former candidate count as healthy.
    pub snapshot: bool,
}

/// The guard's state. Part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guard {
    /// How the run is doing.
    pub health: Health,
    /// What is in force.
    pub effects: Effects,
    /// Interventions so far, rollbacks among them.
    pub interventions: u64,
    /// Rollbacks so far.
    pub rollbacks: u64,
    /// Warnings so far.
    pub warnings: u64,
    signals: Signals,
    /// The signals as they were at the candidate and at the healthy policy.
    at_candidate: Option<Box<Signals>>,
    at_healthy: Option<Box<Signals>>,
    /// Iterations in a row with a signal, with a quorum of them, without any.
    speaking: u64,
    together: u64,
    quiet: u64,
    /// Next rung, and iterations since the last one was climbed.
    next_rung: usize,
    since_rung: u64,
    since_snapshot: u64,
}

impl Guard {
    /// Takes note of an iteration and decides.
    pub fn observe(&mut self, now: &Observation, setting: &Setting) -> Decision {
        let mut decision = Decision::default();
        if setting.mode == GuardMode::Off || self.health == Health::Stopped {
            return decision;
        }
        let alarms = self.signals.update(now, &setting.signals, setting.warmup);
        let mut kinds: Vec<Signal> = alarms.iter().map(|a| a.signal).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let count = |on: bool, n: u64| if on { n + 1 } else { 0 };
        self.speaking = count(!kinds.is_empty(), self.speaking);
        self.together = count(kinds.len() >= setting.quorum, self.together);
        self.quiet = count(kinds.is_empty(), self.quiet);
        self.since_rung += 1;
        let severe = alarms.iter().any(|a| a.severe);
        self.warn(&alarms, severe, setting, &mut decision);
        let called = severe || self.together >= setting.patience;
        match self.health {
            Health::Warned if called => self.intervene(&alarms, severe, setting, &mut decision),
            // A rung that was just climbed has had no chance yet; only a rollback can not wait, and not twice.
            Health::Intervening
                if !kinds.is_empty()
                    && (severe || self.since_rung >= setting.rung_wait)
                    && (self.since_rung >= setting.rung_wait || !self.just_rolled_back()) =>
            {
                self.intervene(&alarms, severe, setting, &mut decision);
            }
            _ => {}
        }
        self.calm_down(setting, &mut decision);
        self.snapshot(setting, &mut decision);
        decision
    }

    fn just_rolled_back(&self) -> bool {
        self.rollbacks > 0 && self.since_rung < 2
    }

    fn warn(&mut self, alarms: &[Alarm], severe: bool, setting: &Setting, decision: &mut Decision) {
        let well = matches!(self.health, Health::Healthy | Health::Recovered);
        if well && (severe || self.speaking >= setting.patience) {
            self.warnings += 1;
            self.change(Health::Warned, None, false, alarms, decision);
        }
    }

    /// Climbs a rung; straight to the rollback when it is severe.
    fn intervene(&mut self, alarms: &[Alarm], severe: bool, setting: &Setting, decision: &mut Decision) {
        let rollback = setting.ladder.iter().position(|r| *r == Rung::Rollback);
        let next = self.next_rung.min(setting.ladder.len().saturating_sub(1));
        let at = rollback.filter(|_| severe).unwrap_or(next);
        let Some(rung) = setting.ladder.get(at).copied() else { return };
        if setting.mode == GuardMode::Observe {
            // Told once for each warning.
            if self.next_rung == 0 {
                self.next_rung = 1;
                self.change(self.health, Some(rung), true, alarms, decision);
            }
            return;
        }
        if rung == Rung::Rollback && self.rollbacks >= setting.max_rollbacks {
            self.change(Health::Stopped, Some(Rung::Rollback), false, alarms, decision);
            (decision.rollback, decision.stop) = (true, true);
            return;
        }
        self.interventions += 1;
        self.since_rung = 0;
        self.next_rung = at + 1;
        self.change(Health::Intervening, Some(rung), false, alarms, decision);
        match rung {
            Rung::Filter => self.effects.filter = true,
            Rung::Lr => self.effects.lr_scale *= setting.lr_factor,
            Rung::Entropy => {
                let burst = alarms.iter().any(|a| a.signal == Signal::EntropyBurst);
                self.effects.entropy_coeff = if burst { -setting.entropy_coeff } else { setting.entropy_coeff };
            }
            Rung::Kl => self.effects.anchor_coef = setting.kl_coef,
            Rung::Rollback => {
                self.rollbacks += 1;
                self.effects =
                    Effects { lr_scale: self.effects.lr_scale * setting.rollback_lr_factor, ..Effects::default() };
                self.signals = self.at_healthy.as_deref().cloned().unwrap_or_default();
                self.at_candidate = self.at_healthy.clone();
                (self.speaking, self.together, self.quiet, self.next_rung) = (0, 0, 0, 0);
                self.since_snapshot = 0;
                decision.rollback = true;
            }
        }
    }

    /// Warnings pass, and interventions end, when nothing speaks any more.
    fn calm_down(&mut self, setting: &Setting, decision: &mut Decision) {
        if self.quiet < setting.calm {
            return;
        }
        match self.health {
            Health::Warned => {
                self.next_rung = 0;
                self.change(Health::Healthy, None, false, &[], decision);
            }
            Health::Intervening => {
                // The learning rate stays where it did no harm; everything else ends.
                self.effects = Effects { lr_scale: self.effects.lr_scale, ..Effects::default() };
                self.next_rung = 0;
                self.change(Health::Recovered, None, false, &[], decision);
            }
            Health::Recovered if self.quiet >= 2 * setting.calm => {
                self.change(Health::Healthy, None, false, &[], decision);
            }
            _ => {}
        }
    }

    /// A snapshot is a candidate until the run has stayed well for as long again.
    fn snapshot(&mut self, setting: &Setting, decision: &mut Decision) {
        let well = matches!(self.health, Health::Healthy | Health::Recovered) && self.speaking == 0;
        if !well || setting.mode != GuardMode::Act || decision.rollback {
            return;
        }
        self.since_snapshot += 1;
        if self.since_snapshot >= setting.snapshot_every {
            self.since_snapshot = 0;
            self.at_healthy = self.at_candidate.take();
            self.at_candidate = Some(Box::new(self.signals.clone()));
            decision.snapshot = true;
        }
    }

    fn change(
        &mut self,
        to: Health,
        action: Option<Rung>,
        only_observed: bool,
        alarms: &[Alarm],
        decision: &mut Decision,
    ) {
        let mut reasons: Vec<&str> = alarms.iter().map(|a| a.reason.as_str()).collect();
        if reasons.is_empty() {
            reasons.push("no signal has spoken for a while");
        }
        let signals = alarms.iter().map(|a| a.signal).collect();
        let reason = reasons.join("; ");
        decision.changes.push(Change { from: self.health, to, action, only_observed, reason, signals });
        self.health = to;
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
