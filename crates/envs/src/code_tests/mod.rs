//! Programming problems that are answered with code and judged by tests, as RAGEN-2's DeepCoder environment does it.
//!
//! One answer, one episode; the reward is the share of the tests that pass, and nothing when the time is up before the
//! last one. Answers run in a [`Sandbox`]; where there is none, the environment refuses to be made. Expected outputs
//! never enter the sandbox. Deviations from RAGEN, taken back by `compat: true`: training and validation draw from
//! different rows (RAGEN trains on its test split), results are also compared as JSON, Markdown fences are taken off.

mod compare;
mod config;
mod problem;
mod sandbox;
mod trial;

pub use compare::python_str;
pub use config::{CodeTestsConfig, INSTRUCTION};
pub use problem::{Problem, Test, merge, problem, unfenced};
pub use sandbox::{Limits, Mechanism, Output, Run, Sandbox};

use rand_core::Rng;
use serde_json::Value;

use crate::config::refuse;
use crate::dataset::Pools;
use crate::rng::PythonRandom;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "deepcoder";

/// The environment of programming problems.
pub struct CodeTests {
    config: CodeTestsConfig,
    spec: EnvSpec,
    rows: Pools<Problem>,
    sandbox: Sandbox,
    episode: Option<Episode>,
}

struct Episode {
    problem: Problem,
    /// What the tests said, once the answer is given.
    verdict: Option<Verdict>,
}

struct Verdict {
    passed: usize,
    told: String,
}

impl CodeTests {
    /// An environment with this configuration; tries the sandbox out unless this process has done so before.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range, the file is not what it should be, or no sandbox can be
    /// had.
    pub fn new(config: CodeTestsConfig) -> Result<Self, EnvError> {
        config.check()?;
        let rows = Pools::open(&config.files(), problem)?;
        let sandbox = Sandbox::open(config.sandbox, &config.python).map_err(|problem| refuse(ENV_TYPE, problem))?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, rows, sandbox, episode: None })
    }

    /// An environment from JSON settings; see [`CodeTestsConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types, values out of range, a file that cannot be used, and where
    /// no sandbox can be had.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(CodeTestsConfig::from_json(config)?)
    }

    /// Runs an answer on the tests of a problem.
    fn judge(&self, problem: &Problem, answer: &str) -> Result<Verdict, EnvError> {
        let strict = self.config.compat;
        let code = merge(&problem.starter, if strict { answer } else { unfenced(answer) });
        let inputs: Vec<Value> = problem.tests.iter().map(|test| test.input.clone()).collect();
        let function = problem.function.as_deref();
        let run = self
            .sandbox
            .run(&code, function, &inputs, &self.config.limits())
            .map_err(|message| EnvError::Play { env_type: ENV_TYPE.to_owned(), message })?;
        let total = problem.tests.len();
        if run.timed_out {
            let told = format!("The time of {} s was up before all {total} tests had ended.", self.config.timeout_s);
            return Ok(Verdict { passed: 0, told });
        }
        let passes = |(test, output): (&Test, &Output)| match function {
            Some(_) => compare::function(output, &test.output, strict),
            None => compare::program(output, &test.output, strict),
        };
        let passed = problem.tests.iter().zip(&run.outputs).filter(|pair| passes(*pair)).count();
        let mut told = format!("{passed} of {total} tests passed.");
        let failed = run.outputs.iter().find_map(|output| match output {
            Output::Failed(problem) => Some(problem.as_str()),
            Output::Missing => Some("the program ended before the test"),
            Output::Value { .. } => None,
        });
        if let Some(problem) = failed {
            told.push_str(&format!(" First failure: {problem}"));
        }
        Ok(Verdict { passed, told })
    }
}

impl Environment for CodeTests {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let row = PythonRandom::new(seed).randbelow(self.rows.len(split) as u64) as usize;
        let problem = self.rows.get(split, row).cloned().ok_or_else(|| EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: "there are no rows".to_owned(),
        })?;
        self.episode = Some(Episode { problem, verdict: None });
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let episode = self.episode.as_ref().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
        if episode.verdict.is_some() {
            return Err(EnvError::ended(ENV_TYPE));
        }
        if action.trim().is_empty() {
            return Ok(Step::not_understood(self.render()));
        }
        let verdict = self.judge(&episode.problem, action)?;
        let (passed, total) = (verdict.passed, episode.problem.tests.len());
        let mut info =
            Info { success: passed == total, action_is_valid: true, action_is_effective: true, ..Info::default() };
        info.extra.insert("tests_passed".to_owned(), passed as f64);
        info.extra.insert("tests".to_owned(), total as f64);
        if let Some(episode) = self.episode.as_mut() {
            episode.verdict = Some(verdict);
        }
        let reward = passed as f64 / total as f64;
        Ok(Step { observation: self.render(), reward, terminated: true, truncated: false, info })
    }

    fn render(&self) -> String {
        match &self.episode {
            None => String::new(),
            Some(Episode { verdict: Some(verdict), .. }) => verdict.told.clone(),
            Some(Episode { problem: Problem { text, starter, function, .. }, .. }) => {
                let mut state = text.clone();
                if !starter.trim().is_empty() {
                    state.push_str(&format!("\n\nStart from this code:\n{}", starter.trim_end()));
                }
                match function {
                    Some(name) => state.push_str(&format!("\n\nThe tests call the function `{name}`.")),
                    None => state.push_str("\n\nThe program reads standard input and prints to standard output."),
                }
                state
            }
        }
    }

    fn state_key(&self) -> String {
        match &self.episode {
            Some(Episode { problem, verdict }) => {
                let told = verdict.as_ref().map(|verdict| verdict.told.as_str());
                format!("{}\n{:?}\n{told:?}", problem.text, problem.tests.first())
            }
            None => String::new(),
        }
    }

    fn can_hold_out(&self) -> bool {
        !self.config.compat
    }

    /// The row's own solution, where it has one.
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        match &self.episode {
            Some(Episode { problem: Problem { solution: Some(solution), .. }, verdict: None }) if actions_left > 0 => {
                vec![solution.clone()]
            }
            _ => Vec::new(),
        }
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        _rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let actions = self.oracle(actions_left.min(max_actions));
        actions.first()?;
        let problem = &self.episode.as_ref()?.problem;
        let form = match &problem.function {
            Some(name) => format!("the function {name}"),
            None => "a program".to_owned(),
        };
        let reasoning = match style {
            DemoStyle::Brief => format!("I write {form}."),
            DemoStyle::Verbose => {
                let first = problem.text.lines().next().unwrap_or_default();
                format!("The problem begins with: {first} I write {form} for it and return what is asked for.")
            }
        };
        Some(Demonstration { reasoning, actions })
    }
}
