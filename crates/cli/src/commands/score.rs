//! `ragen score`: how likely a model finds a text, token by token.

use std::path::PathBuf;

use clap::Args;
use ragen_model::trainable::{Limits, Sequence};
use ragen_starpo::policy::Policy;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::model;
use crate::output::{self, Table};

/// Score every token of a text.
///
/// With --json prints `{"ids":[…],"log_prob":[…],"entropy":[…]}`: `log_prob[i]` is the log-probability of `ids[i+1]`
/// after `ids[0..=i]`, `entropy[i]` the entropy of the distribution it is taken from, both in nats.
#[derive(Args)]
#[command(
    after_help = "Example:\n  ragen score models/smollm2-135m-instruct-q4_1.gguf --text \"The sky is blue\" --json"
)]
pub struct Score {
    #[arg(value_name = "MODEL", help = model::MODEL_HELP)]
    model: String,
    #[command(flatten)]
    what: What,
    /// Softmax temperature, above 0.
    #[arg(long, value_name = "T", default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f32,
    /// Seed of the weights of `tiny`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is scored.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Token ids, separated by commas.
    #[arg(long, value_name = "1,2,3", value_delimiter = ',')]
    ids: Option<Vec<u32>>,
    /// A text; control tokens in it are recognised.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// A file with such a text.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Score {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(Failure::input(format!("--temperature has to be above 0, found {}", self.temperature)));
        }
        let text = match (&self.what.text, &self.what.file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(file)) => Some(std::fs::read_to_string(file).map_err(|error| {
                Failure::input(format!("cannot read --file {}: {error}; expected UTF-8 text", file.display()))
            })?),
            (None, None) => None,
        };
        let mut found = model::load(&self.model, self.seed)?;
        let ids = match (self.what.ids, text) {
            (Some(ids), _) => ids,
            (None, Some(text)) => found.source.tokenizer.encode(&text, true)?,
            (None, None) => Vec::new(),
        };
        if ids.len() < 2 {
            return Err(Failure::input(format!(
                "{} token(s) to score: at least 2 are needed, as the first has nothing before it",
                ids.len()
            )));
        }
        let mut policy = model::policy(&mut found.source, Limits::default());
        let mut sampled = vec![true; ids.len()];
        sampled[0] = false;
        let batch = [Sequence { tokens: ids.clone(), sampled }];
        let scores = policy.score(&batch, self.temperature)?;
        if self.json {
            output::json(&json!({ "ids": ids, "log_prob": scores.log_prob, "entropy": scores.entropy }));
            return Ok(());
        }
        let tokenizer = &found.source.tokenizer;
        let mut table = Table::new(&["token", "id", "log_prob", "entropy"]);
        let mut sum = 0.0;
        for ((id, log_prob), entropy) in ids.iter().skip(1).zip(&scores.log_prob).zip(&scores.entropy) {
            let text = tokenizer.decode(&[*id], false)?;
            table.row([format!("{text:?}"), id.to_string(), format!("{log_prob:.4}"), format!("{entropy:.4}")]);
            sum += f64::from(*log_prob);
        }
        table.print();
        let n = scores.log_prob.len().max(1) as f64;
        output::line(format_args!("mean log_prob {:.4}, perplexity {:.3}", sum / n, (-sum / n).exp()));
        Ok(())
    }
}
