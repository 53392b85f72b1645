//! Single questions of static data sets, judged as RAGEN's Static environment judges them: MetaMathQA, GSM8K, and
//! multiple choice as in MMLU.
//!
//! Attempts and rewards are those of [`crate::math_qa`]; the comparison of answers depends on the data set. RAGEN's
//! environment has no state text for its manager and cannot be played there; here it is complete.

mod config;
mod judge;

pub use config::{Dataset, INSTRUCTION, StaticQaConfig};
pub use judge::{choice, judge};

use rand_core::Rng;
use serde_json::Value;

use crate::dataset::{Pools, kind, text};
use crate::math_qa::quiz::{Question, Quiz};
use crate::math_qa::{gsm8k, metamath};
use crate::rng::PythonRandom;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "static";

/// The environment of static questions.
pub struct StaticQa {
    config: StaticQaConfig,
    spec: EnvSpec,
    rows: Pools<Question>,
    quiz: Option<Quiz>,
}

impl StaticQa {
    /// An environment with this configuration; reads the file unless this process has read it before.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range or the file is not what it should be.
    pub fn new(config: StaticQaConfig) -> Result<Self, EnvError> {
        let rows = Pools::open(
            &config.files(),
            match config.dataset {
                Dataset::Metamathqa => metamath,
                Dataset::Gsm8k => gsm8k,
                Dataset::Mmlu => mmlu,
            },
        )?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, rows, quiz: None })
    }

    /// An environment from JSON settings; see [`StaticQaConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types, values out of range and a file that cannot be used.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(StaticQaConfig::from_json(config)?)
    }
}

/// A multiple-choice row; the answer is a letter or the number of a choice, from 0.
fn mmlu(row: &Value) -> Result<Question, String> {
    let choices: Vec<&str> = match row.get("choices") {
        Some(Value::Array(choices)) if choices.len() == 4 => choices.iter().filter_map(Value::as_str).collect(),
        other => {
            let found = other.map_or("nothing".to_owned(), |value| match value {
                Value::Array(list) => format!("{} of them", list.len()),
                other => kind(other).to_owned(),
            });
            return Err(format!("`choices`: expected a list of four texts, found {found}"));
        }
    };
    if choices.len() != 4 {
        return Err("`choices`: expected four texts".to_owned());
    }
    let letter = match row.get("answer") {
        Some(Value::Number(number)) => number.as_u64().and_then(|i| judge::LETTERS.get(usize::try_from(i).ok()?)),
        Some(Value::String(text)) => judge::LETTERS.iter().find(|letter| **letter == text.trim()),
        _ => None,
    };
    let letter = letter.ok_or("`answer`: expected A, B, C or D, or a number from 0 to 3")?;
    let listed: Vec<String> = judge::LETTERS.iter().zip(&choices).map(|(l, c)| format!("{l}. {}", c.trim())).collect();
    let index = judge::LETTERS.iter().position(|l| l == letter).unwrap_or_default();
    let question = format!("{}\n{}", text(row, "question")?.trim(), listed.join("\n"));
    Ok(Question::new(&question, letter, &format!("The right choice is {letter}, {}.", choices[index].trim())))
}

impl Environment for StaticQa {
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
        match judge(self.config.dataset, action, quiz.answer(), self.config.compat) {
            Some(right) => Ok(quiz.answered(right)),
            None => Ok(Step::not_understood(quiz.render())),
        }
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

    /// The letters, for multiple choice: what the random policy chooses from. Answers in words are understood too.
    fn available_actions(&self) -> Vec<String> {
        let open = self.quiz.as_ref().is_some_and(|quiz| !quiz.solved());
        match self.config.dataset {
            Dataset::Mmlu if open => judge::LETTERS.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
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
