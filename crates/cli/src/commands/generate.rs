//! `ragen generate`: text from a model.

use std::io::IsTerminal;

use clap::Args;
use ragen_model::trainable::Limits;
use ragen_starpo::chat_dialogue::ChatDialogue;
use ragen_starpo::dialogue::Dialogue;
use ragen_starpo::policy::{Policy, Request, Response, Sampling};
use ragen_starpo::rollout::sampling_seed;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::model;
use crate::output;

/// Answers that are held in memory at a time.
const MOST_ANSWERS: usize = 10_000;

/// Let a model answer a prompt.
///
/// The prompt is put into the model's chat template unless --raw is given. The same seed gives the same text on every
/// number of threads.
#[derive(Args)]
#[command(after_help = "Example:\n  ragen generate runs/sokoban --prompt \"Where is the box?\" --temperature 0.5 -n 3")]
pub struct Generate {
    #[arg(value_name = "MODEL", help = model::MODEL_HELP)]
    model: String,
    /// What the user says; with --raw, the text to continue.
    #[arg(long, value_name = "TEXT")]
    prompt: String,
    /// The system message.
    #[arg(long, value_name = "TEXT", conflicts_with = "raw")]
    system: Option<String>,
    /// Most tokens of an answer.
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_new_tokens: usize,
    /// Softmax temperature; 0 always takes the likeliest token.
    #[arg(long, value_name = "T", default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f32,
    /// Draw from the K likeliest tokens only; 0: from all.
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,
    /// Draw from the smallest set of likeliest tokens that holds this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f32,
    /// Seed of the random streams, and of the weights of `tiny`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Answers to draw.
    #[arg(short, value_name = "N", default_value_t = 1)]
    n: usize,
    /// Continue the prompt as it is, without the chat template; control tokens in it are recognised.
    #[arg(long)]
    raw: bool,
    /// Print JSON: the prompt's ids and, per answer, text, ids, log-probabilities and whether it ended by itself.
    #[arg(long)]
    json: bool,
}

impl Generate {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.check()?;
        let mut found = model::load(&self.model, self.seed)?;
        let tokenizer = found.source.tokenizer.clone();
        let mut stop = found.source.config.eos_token_ids.clone();
        let prompt = if self.raw {
            tokenizer.encode(&self.prompt, true)?
        } else {
            let dialogue = ChatDialogue::of_tokenizer(tokenizer.clone())?;
            stop.push(dialogue.end_of_turn());
            dialogue.opening(self.system.as_deref(), &self.prompt)?
        };
        if prompt.is_empty() {
            return Err(Failure::input("the prompt is empty: give --prompt a text of at least one token"));
        }
        let mut policy = model::policy(&mut found.source, Limits::default());
        let max = policy.max_context();
        if prompt.len() >= max {
            return Err(Failure::input(format!(
                "the prompt has {} tokens and the model {} holds {max}: shorten it",
                prompt.len(),
                found.origin
            )));
        }
        let answers = self.answers(&mut policy, &prompt, &stop)?;
        let shown = |response: &Response| {
            let stopped = usize::from(response.stopped);
            let kept = response.tokens.len().saturating_sub(stopped);
            tokenizer.decode(response.tokens.get(..kept).unwrap_or_default(), !self.raw)
        };
        if self.json {
            let mut list = Vec::new();
            for answer in &answers {
                list.push(json!({
                    "text": shown(answer)?,
                    "ids": answer.tokens,
                    "log_probs": answer.log_probs,
                    "stopped": answer.stopped,
                }));
            }
            output::json(&json!({ "prompt_ids": prompt, "answers": list }));
            return Ok(());
        }
        for (i, answer) in answers.iter().enumerate() {
            if i > 0 {
                output::line(format_args!("---"));
            }
            let text = shown(answer)?;
            let text = if std::io::stdout().is_terminal() { output::printable(&text) } else { text };
            output::line(format_args!("{text}"));
            if !answer.stopped {
                output::note(format_args!("(cut after {} tokens)", answer.tokens.len()));
            }
        }
        Ok(())
    }

    fn check(&self) -> Outcome {
        let wrong = |what: String| Err(Failure::input(what));
        if self.n == 0 || self.n > MOST_ANSWERS || self.max_new_tokens == 0 {
            return wrong(format!("-n has to be 1 to {MOST_ANSWERS} and --max-new-tokens at least 1"));
        }
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return wrong(format!("--temperature has to be 0 or a positive number, found {}", self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return wrong(format!("--top-p has to be above 0 and at most 1, found {}", self.top_p));
        }
        Ok(())
    }

    fn answers(&self, policy: &mut dyn Policy, prompt: &[u32], stop: &[u32]) -> Outcome<Vec<Response>> {
        let room = policy.max_context() - prompt.len();
        let sampling = Sampling {
            temperature: self.temperature,
            top_k: (self.top_k > 0).then_some(self.top_k),
            top_p: self.top_p,
            stop: stop.to_vec(),
        };
        let mut session = policy.session(&sampling, self.n.min(64))?;
        let mut answers = Vec::new();
        for id in 0..self.n as u64 {
            session.submit(Request {
                id,
                given: prompt.to_vec(),
                seed: sampling_seed(self.seed, 0, id, 0),
                max_new_tokens: self.max_new_tokens.min(room),
            })?;
        }
        while answers.len() < self.n {
            for response in session.step()? {
                session.close(response.id);
                answers.push(response);
            }
            if session.active() == 0 && answers.len() < self.n {
                return Err(Failure::run("generation ended before every answer was there"));
            }
        }
        answers.sort_by_key(|answer| answer.id);
        Ok(answers)
    }
}
