//! The checker finds the faults it is there to find.

use std::sync::atomic::{AtomicUsize, Ordering};

use ragen_envs::checker::check;
use ragen_envs::{EnvError, EnvSpec, Environment, Info, Split, Step};

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    ForgetsSeed,
    OneInstance,
    StepsBeforeReset,
    StepsAfterEnd,
    PanicsOnEmpty,
    AcceptsNonsense,
    NonsenseMoves,
    CaseSensitive,
    NanReward,
    ObservationIsNotRender,
    KeyHidesState,
    KeepsStateOverReset,
    OracleGoesWrong,
    OracleIsTooModest,
    RefusesOffered,
}

/// A walk along a line of seven cells from the seed's cell to the right end.
struct Line {
    fault: Fault,
    spec: EnvSpec,
    at: Option<usize>,
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Line {
    fn boxed(fault: Fault) -> Box<dyn Environment> {
        let spec = EnvSpec {
            env_type: "line".to_owned(),
            instruction: "Go to the right end.".to_owned(),
            actions: vec!["Left".to_owned(), "Right".to_owned()],
            legend: Vec::new(),
        };
        Box::new(Line { fault, spec, at: None })
    }
}

impl Environment for Line {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let start = match self.fault {
            Fault::ForgetsSeed => CALLS.fetch_add(1, Ordering::Relaxed) as u64,
            Fault::OneInstance => 0,
            _ => seed,
        };
        if self.fault != Fault::KeepsStateOverReset || self.at.is_none() {
            self.at = Some((start % 6) as usize);
        }
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let at = match self.at {
            None if self.fault == Fault::StepsBeforeReset => 0,
            None => return Err(EnvError::not_started("line")),
            Some(6) if self.fault != Fault::StepsAfterEnd => return Err(EnvError::ended("line")),
            Some(at) => at,
        };
        assert!(self.fault != Fault::PanicsOnEmpty || !action.is_empty(), "a fault made on purpose");
        let known = |name: &str| match self.fault {
            Fault::CaseSensitive => action == name,
            Fault::RefusesOffered => false,
            _ => action.trim().eq_ignore_ascii_case(name),
        };
        let next = if known("Right") {
            (at + 1).min(6)
        } else if known("Left") {
            at.saturating_sub(1)
        } else if self.fault == Fault::AcceptsNonsense {
            at
        } else {
            if self.fault == Fault::NonsenseMoves {
                self.at = Some((at + 1).min(5));
            }
            return Ok(Step::not_understood(self.render()));
        };
        self.at = Some(next);
        let success = next == 6;
        let info = Info { success, action_is_valid: true, action_is_effective: next != at, ..Info::default() };
        let observation = match self.fault {
            Fault::ObservationIsNotRender => format!("moved to {next}"),
            _ => self.render(),
        };
        let reward = match self.fault {
            Fault::NanReward => f64::NAN,
            _ => f64::from(u8::from(success)),
        };
        Ok(Step { observation, reward, terminated: success, truncated: false, info })
    }

    fn render(&self) -> String {
        self.at.map_or_else(String::new, |at| format!("cell {at} of 6"))
    }

    fn state_key(&self) -> String {
        match self.fault {
            Fault::KeyHidesState => "line".to_owned(),
            _ => self.render(),
        }
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let way = if self.fault == Fault::OracleGoesWrong { "Left" } else { "Right" };
        match self.at {
            Some(at) if at < 6 && 6 - at <= actions_left => vec![way.to_owned(); 6 - at],
            _ => Vec::new(),
        }
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let reached = self.at.is_some_and(|at| 6 - at <= actions_left);
        Some(if reached && self.fault != Fault::OracleIsTooModest { 1.0 } else { 0.0 })
    }
}

#[test]
fn a_sound_environment_passes() {
    let report = check(|| Line::boxed(Fault::None), 0..20).expect("no problems");
    assert!(report.ended > 0 && report.steps > 100);
    assert_eq!((report.seeds, report.distinct_instances, report.oracle_success), (20, 6, 1.0));
}

#[test]
fn every_fault_is_named() {
    for (fault, rule) in [
        (Fault::ForgetsSeed, "same seed, same episode"),
        (Fault::OneInstance, "different seeds differ"),
        (Fault::StepsBeforeReset, "step before reset is refused"),
        (Fault::StepsAfterEnd, "same seed, same episode"),
        (Fault::PanicsOnEmpty, "malformed actions change nothing"),
        (Fault::AcceptsNonsense, "malformed actions change nothing"),
        (Fault::NonsenseMoves, "malformed actions change nothing"),
        (Fault::CaseSensitive, "actions are matched without regard to case"),
        (Fault::NanReward, "same seed, same episode"),
        (Fault::ObservationIsNotRender, "same seed, same episode"),
        (Fault::KeyHidesState, "same seed, same episode"),
        (Fault::KeepsStateOverReset, "reset starts afresh"),
        (Fault::OracleGoesWrong, "the oracle keeps its promise"),
        (Fault::OracleIsTooModest, "the oracle keeps its promise"),
        (Fault::RefusesOffered, "same seed, same episode"),
    ] {
        let problems = check(|| Line::boxed(fault), 0..20).expect_err("a fault");
        assert!(problems.iter().any(|problem| problem.rule == rule), "expected {rule:?} among {problems:#?}");
    }
}
