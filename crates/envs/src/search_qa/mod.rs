//! Questions that are answered with the help of a search engine, as RAGEN-2's SearchQA asks them.
//!
//! `search[words]` shows the best documents, `finish[answer]` ends the episode. An exact answer pays 1, another one its
//! F1 from 0.3 on; as in the reference every answer that pays something counts as a success, and whether it was exact
//! is in the metrics. Text that is neither a search nor an answer is taken for an answer, found by [`extract`]; it is
//! not valid. Deviations from RAGEN, taken back by `compat: true`: training and validation draw from different rows,
//! and a retrieval server that fails ends the episode with an error.

mod answer;
mod bm25;
mod config;
pub mod corpus;
mod http;
mod retriever;

pub use answer::{Score, extract, normalise, score};
pub use bm25::Bm25;
pub use config::{INSTRUCTION, SearchQaConfig};
pub use http::HttpRetriever;
pub use retriever::{Document, Hit, Mock, Retriever};

use std::sync::Arc;
use std::time::Duration;

use rand_core::Rng;
use serde_json::Value;

use crate::config::refuse;
use crate::dataset::{Pools, cached, keys, text};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "search";
/// Characters of a document that are shown.
const DOCUMENT_CHARS: usize = 800;
/// Characters of all documents together that are shown.
const RESULT_CHARS: usize = 4000;
/// Rows that the reference reads.
const COMPAT_ROWS: usize = 20_000;

/// A question with its answers.
#[derive(Clone, Debug, PartialEq)]
struct Question {
    text: String,
    answers: Vec<String>,
}

/// The search environment.
pub struct SearchQa {
    config: SearchQaConfig,
    spec: EnvSpec,
    rows: Pools<Question>,
    retriever: Arc<dyn Retriever>,
    episode: Option<Episode>,
}

struct Episode {
    question: Question,
    /// What the agent was told last.
    told: String,
    searches: usize,
    /// The score of the answer, once it is given.
    answered: Option<Score>,
    over: bool,
}

impl SearchQa {
    /// An environment with this configuration; reads its files unless this process has read them before.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range, a file is not what it should be, or the server is not up.
    pub fn new(config: SearchQaConfig) -> Result<Self, EnvError> {
        config.check()?;
        let retriever: Arc<dyn Retriever> = match (&config.corpus_path, &config.retrieval_url) {
            (Some(path), _) => {
                // An index for another length of passages is another one.
                let words = config.passage_words;
                let indexed = cached(ENV_TYPE, "documents", "corpus_path", path, |path| {
                    let documents = corpus::load(path, words)
                        .map_err(|message| refuse(ENV_TYPE, format!("setting `corpus_path`: {message}")))?;
                    Ok((words, Bm25::new(documents)))
                })?;
                if indexed.0 == words {
                    Arc::new(Shared(indexed))
                } else {
                    let documents = corpus::load(std::path::Path::new(path), words)
                        .map_err(|message| refuse(ENV_TYPE, format!("setting `corpus_path`: {message}")))?;
                    Arc::new(Bm25::new(documents))
                }
            }
            (None, Some(url)) => Arc::new(
                HttpRetriever::connect(url, Duration::from_secs_f64(config.timeout_s))
                    .map_err(|message| refuse(ENV_TYPE, format!("setting `retrieval_url`: {message}")))?,
            ),
            (None, None) => Arc::new(Mock),
        };
        Self::with_retriever(config, retriever)
    }

    /// An environment that searches with `retriever`, whatever the settings say about that.
    ///
    /// # Errors
    /// [`EnvError::Config`] when the questions cannot be read.
    pub fn with_retriever(config: SearchQaConfig, retriever: Arc<dyn Retriever>) -> Result<Self, EnvError> {
        let rows = Pools::open(&config.files(), question)?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, rows, retriever, episode: None })
    }

    /// An environment from JSON settings; see [`SearchQaConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types, values out of range, files or servers that cannot be used.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(SearchQaConfig::from_json(config)?)
    }

    /// Documents for a query in words.
    fn find(&self, query: &str) -> Result<String, EnvError> {
        match self.retriever.retrieve(query, self.config.top_k) {
            Ok(hits) if hits.is_empty() => Ok("No documents were found.".to_owned()),
            Ok(hits) => Ok(show(&hits)),
            Err(message) if self.config.compat => Ok(format!("The search failed: {message}")),
            Err(message) => Err(EnvError::Play { env_type: ENV_TYPE.to_owned(), message }),
        }
    }
}

/// The index in memory, shared by all environments of the process.
struct Shared(Arc<(usize, Bm25)>);

impl Retriever for Shared {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Hit>, String> {
        Ok(self.0.1.search(query, k))
    }
}

fn question(row: &Value) -> Result<Question, String> {
    let answers =
        ["ground_truth", "golden_answers", "answers", "answer"].iter().find_map(|key| row.get(key)).ok_or_else(
            || format!("expected `ground_truth`, `golden_answers`, `answers` or `answer`, found {}", keys(row)),
        )?;
    let answers: Vec<String> = match answers {
        Value::String(answer) => vec![answer.clone()],
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if answers.is_empty() {
        return Err("the answer: expected text or a list of texts".to_owned());
    }
    Ok(Question { text: text(row, "question")?.trim().to_owned(), answers })
}

/// Documents as the agent reads them.
fn show(hits: &[Hit]) -> String {
    let shown: Vec<String> = (1..)
        .zip(hits)
        .map(|(number, Hit { document, score })| {
            let content = cut(&document.content, DOCUMENT_CHARS);
            format!("[Document {number}] (ID: {}, Score: {score:.3})\n{content}", document.id)
        })
        .collect();
    cut(&shown.join("\n\n"), RESULT_CHARS)
}

/// At most so many characters, with dots where something is missing.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text inside `name[…]`, which must begin and end the action; the name in any case.
fn inside<'a>(action: &'a str, name: &str) -> Option<&'a str> {
    let head = action.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name))?;
    action[head.len()..].strip_prefix('[')?.strip_suffix(']').map(str::trim)
}

impl Environment for SearchQa {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let rows = if self.config.compat { self.rows.len(split).min(COMPAT_ROWS) } else { self.rows.len(split) };
        let row = (seed % rows.max(1) as u64) as usize;
        let question = self.rows.get(split, row).cloned().ok_or_else(|| EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: "there are no rows".to_owned(),
        })?;
        let told = format!("Question: {}\nAvailable actions: search[query], finish[answer]", question.text);
        self.episode = Some(Episode { question, told, searches: 0, answered: None, over: false });
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let episode = self.episode.as_ref().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
        if episode.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let action = action.trim();
        if action.is_empty() {
            return Ok(Step::not_understood(self.render()));
        }
        if let Some(query) = inside(action, "search") {
            if query.is_empty() {
                return Ok(Step::not_understood(self.render()));
            }
            let told = self.find(query)?;
            let max_steps = self.config.max_steps;
            let episode = self.episode.as_mut().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
            episode.told = told;
            episode.searches += 1;
            episode.over = episode.searches >= max_steps;
            let truncated = episode.over;
            let info = Info { action_is_valid: true, action_is_effective: true, ..Info::default() };
            return Ok(Step { observation: self.render(), reward: 0.0, terminated: false, truncated, info });
        }
        let (answer, valid) = match inside(action, "finish") {
            Some(answer) => (answer.to_owned(), true),
            None => (extract(action), false),
        };
        let score = score(&answer, &episode.question.answers);
        let reward = score.reward();
        let mut info =
            Info { success: reward > 0.0, action_is_valid: valid, action_is_effective: true, ..Info::default() };
        info.extra.insert("exact_match".to_owned(), f64::from(u8::from(score.exact)));
        info.extra.insert("f1".to_owned(), score.f1);
        info.extra.insert("searches".to_owned(), episode.searches as f64);
        if let Some(episode) = self.episode.as_mut() {
            episode.answered = Some(score);
            episode.over = true;
            episode.told = format!("The answer scores {reward:.2}.");
        }
        Ok(Step { observation: self.render(), reward, terminated: true, truncated: false, info })
    }

    fn render(&self) -> String {
        self.episode.as_ref().map(|episode| episode.told.clone()).unwrap_or_default()
    }

    fn state_key(&self) -> String {
        match &self.episode {
            Some(Episode { question, told, searches, answered, .. }) => {
                format!("{} = {:?}; {searches} searches; {answered:?}\n{told}", question.text, question.answers)
            }
            None => String::new(),
        }
    }

    fn can_hold_out(&self) -> bool {
        !self.config.compat
    }

    /// Searches for the question once, where there is time for it, and answers.
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let Some(episode) = self.episode.as_ref().filter(|episode| !episode.over && actions_left > 0) else {
            return Vec::new();
        };
        let Some(answer) = episode.question.answers.first() else { return Vec::new() };
        let finish = format!("finish[{answer}]");
        let may_search = episode.searches == 0 && actions_left > 1 && self.config.max_steps > 1;
        if may_search { vec![format!("search[{}]", episode.question.text), finish] } else { vec![finish] }
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let episode = self.episode.as_ref()?;
        let done = episode.answered.is_some_and(|score| score.reward() > 0.0);
        Some(if done || !self.oracle(actions_left).is_empty() { 1.0 } else { 0.0 })
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        // One action a turn: what the search finds is to be read before it is answered.
        let mut actions = self.oracle(actions_left);
        actions.truncate(max_actions.min(1));
        let first = actions.first()?;
        let answer = self.episode.as_ref()?.question.answers.first()?;
        let reasoning = match (inside(first, "search"), style) {
            (Some(_), DemoStyle::Brief) => "I look it up first.".to_owned(),
            (None, DemoStyle::Brief) => {
                format!("It is {}.", answer.split_whitespace().take(9).collect::<Vec<_>>().join(" "))
            }
            (Some(words), DemoStyle::Verbose) => match index_below(rng, 2) {
                0 => format!("I am not sure about this one. Documents about \"{words}\" should help."),
                _ => format!("Before I answer I search for documents with the words of the question: {words}"),
            },
            (None, DemoStyle::Verbose) => match index_below(rng, 2) {
                0 => format!("I have seen what there is. The question asks for {answer}, so I finish with that."),
                _ => format!("What was found points to {answer}. I give this answer and nothing else."),
            },
        };
        Some(Demonstration { reasoning, actions })
    }
}
