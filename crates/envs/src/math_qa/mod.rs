//! Questions with one right answer, as RAGEN's MetaMathQA environment asks them: rows of MetaMathQA (`query`,
//! `response` with "The answer is: …") or of GSM8K (`question`, `answer` with "#### …") from a JSON Lines file.
//!
//! A right answer at the first attempt pays 1, at the second 1/2, then 1/4 and so on; a wrong one pays nothing and the
//! question stays open. Deviations from RAGEN, taken back by `compat: true`: training and validation draw from
//! different rows, and the question is shown again after a wrong answer.

mod answer;
mod config;
pub(crate) mod quiz;

pub use answer::{gsm8k_answer, matches, metamath_answer};
pub use config::{INSTRUCTION, MathQaConfig};

use rand_core::Rng;
use serde_json::Value;

use crate::dataset::{Pools, keys, text};
use crate::rng::PythonRandom;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Split, Step};
use quiz::{Question, Quiz};

/// Registry name.
pub const ENV_TYPE: &str = "metamathqa";

/// The question-answering environment.
pub struct MathQa {
    config: MathQaConfig,
    spec: EnvSpec,
    rows: Pools<Question>,
    quiz: Option<Quiz>,
}

impl MathQa {
    /// An environment with this configuration; reads the file unless this process has read it before.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range or the file is not what it should be.
    pub fn new(config: MathQaConfig) -> Result<Self, EnvError> {
        let rows = Pools::open(&config.files(), question)?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, rows, quiz: None })
    }

    /// An environment from JSON settings; see [`MathQaConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types, values out of range and a file that cannot be used.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(MathQaConfig::from_json(config)?)
    }
}

/// A row of either shape.
fn question(row: &Value) -> Result<Question, String> {
    if row.get("query").is_some() || row.get("response").is_some() {
        return metamath(row);
    }
    if row.get("question").is_some() || row.get("answer").is_some() {
        return gsm8k(row);
    }
    Err(format!("expected the keys `query` and `response`, or `question` and `answer`, found {}", keys(row)))
}

/// A row of MetaMathQA.
pub(crate) fn metamath(row: &Value) -> Result<Question, String> {
    let (query, response) = (text(row, "query")?, text(row, "response")?);
    let (solution, answer) = metamath_answer(response)
        .ok_or_else(|| format!("`response`: expected {:?} in it, found none", answer::METAMATH_MARK))?;
    Ok(Question::new(query, answer, solution))
}

/// A row of GSM8K.
pub(crate) fn gsm8k(row: &Value) -> Result<Question, String> {
    let (asked, worked) = (text(row, "question")?, text(row, "answer")?);
    let (solution, answer) =
        gsm8k_answer(worked).ok_or_else(|| format!("`answer`: expected {:?} in it, found none", answer::GSM8K_MARK))?;
    Ok(Question::new(asked, answer, solution))
}

impl Environment for MathQa {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let last = self.rows.len(split).saturating_sub(1);
        let row = PythonRandom::new(seed).randint(0, last as i64) as usize;
        let question = self.rows.get(split, row).ok_or_else(|| EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: "there are no rows".to_owned(),
        })?;
        let quiz = self.quiz.insert(Quiz::new(question.clone(), !self.config.compat));
        Ok(quiz.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let quiz = self.quiz.as_mut().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
        if quiz.solved() {
            return Err(EnvError::ended(ENV_TYPE));
        }
        if action.trim().is_empty() {
            return Ok(Step::not_understood(quiz.render()));
        }
        let right = matches(action, quiz.answer());
        Ok(quiz.answered(right))
    }

    fn render(&self) -> String {
        self.quiz.as_ref().map(Quiz::render).unwrap_or_default()
    }

    fn state_key(&self) -> String {
        self.quiz.as_ref().map(Quiz::key).unwrap_or_default()
    }

    fn can_hold_out(&self) -> bool {
        !self.config.compat
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.quiz.as_ref().map(|quiz| quiz.oracle(actions_left)).unwrap_or_default()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        Some(self.quiz.as_ref()?.optimum(actions_left))
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        _rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        self.quiz.as_ref()?.demonstrate(actions_left.min(max_actions), style)
    }
}
