//! Scoring: the forward pass of training.

use std::time::Instant;

use clap::Args;
use ragen_model::trainable::Sequence;
use ragen_starpo::policy::Policy;
use serde_json::json;

use super::{check_shape, median, peak_rss_bytes, policy, random_tokens};
use crate::arguments::at_least_one;
use crate::failure::Outcome;
use crate::model::MODEL_HELP;
use crate::output;

/// Scoring all tokens of a batch: the forward pass with the vocabulary projection of every token.
#[derive(Args)]
pub struct Score {
    #[arg(long, value_name = "PATH", default_value = "tiny", help = MODEL_HELP)]
    model: String,
    /// Sequences.
    #[arg(long, value_name = "N", default_value_t = 4)]
    batch: usize,
    /// Tokens of each.
    #[arg(long, value_name = "N", default_value_t = 256)]
    len: usize,
    /// Repetitions, of which the median counts.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    steps: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Score {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut policy = policy(&self.model)?;
        check_shape(self.batch, self.len, &policy)?;
        let batch: Vec<Sequence> = random_tokens(self.batch, self.len, &policy)
            .into_iter()
            .map(|tokens| Sequence { sampled: vec![true; tokens.len()], tokens })
            .collect();
        let tokens = (self.batch * self.len) as f64;
        let mut speeds = Vec::new();
        for _ in 0..self.steps.max(1) {
            let start = Instant::now();
            policy.score(&batch, 1.0)?;
            speeds.push(tokens / start.elapsed().as_secs_f64().max(1e-9));
        }
        let speed = median(&speeds);
        if self.json {
            output::json(&json!({ "batch": self.batch, "len": self.len, "tokens_per_s": speed,
                                  "peak_rss_bytes": peak_rss_bytes() }));
        } else {
            output::line(format_args!("{speed:.0} tokens/s, median of {}", speeds.len()));
        }
        Ok(())
    }
}
