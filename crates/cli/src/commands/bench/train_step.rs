//! A whole training step on every token: forward, loss, backward, AdamW.

use std::time::Instant;

use clap::Args;
use ragen_model::trainable::{AdamW, OptimizerStep, Sequence};
use ragen_starpo::policy::{Policy, TokenGrads};
use serde_json::json;

use super::{check_shape, finish, policy, random_tokens};
use crate::arguments::at_least_one;
use crate::failure::Outcome;
use crate::model::MODEL_HELP;
use crate::output::{self, Table};

/// A training step with the loss on all tokens: forward, backward, AdamW.
///
/// With --json prints a line a step as it ends, with `tokens_per_s`, and a last one with `peak_rss_bytes`. The first
/// step allocates the optimiser's state: leave it out of averages.
#[derive(Args)]
pub struct TrainStep {
    #[arg(long, value_name = "PATH", default_value = "tiny", help = MODEL_HELP)]
    model: String,
    /// Sequences.
    #[arg(long, value_name = "N", default_value_t = 4)]
    batch: usize,
    /// Tokens of each.
    #[arg(long, value_name = "N", default_value_t = 256)]
    len: usize,
    /// Steps.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    steps: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl TrainStep {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut policy = policy(&self.model)?;
        check_shape(self.batch, self.len, &policy)?;
        let batch: Vec<Sequence> = random_tokens(self.batch, self.len, &policy)
            .into_iter()
            .map(|tokens| Sequence { sampled: vec![true; tokens.len()], tokens })
            .collect();
        let scored: usize = batch.iter().map(Sequence::sampled_len).sum();
        let weight = 1.0 / scored.max(1) as f32;
        let adamw = AdamW { lr: 1e-5, ..AdamW::default() };
        let mut table = Table::new(&["step", "tokens/s", "forward+backward s", "optimiser s", "loss", "grad norm"]);
        for step in 1..=self.steps {
            let start = Instant::now();
            let mut loss = 0.0;
            policy.accumulate(&batch, 1.0, &mut |_, scores| {
                loss -= scores.log_prob.iter().map(|l| f64::from(*l)).sum::<f64>() * f64::from(weight);
                TokenGrads { log_prob: vec![-weight; scores.log_prob.len()], ..TokenGrads::default() }
            })?;
            let accumulated = start.elapsed().as_secs_f64();
            let report = policy.step(OptimizerStep { adamw, grad_clip: 1.0 })?;
            let seconds = start.elapsed().as_secs_f64();
            let speed = (self.batch * self.len) as f64 / seconds.max(1e-9);
            if self.json {
                output::json(&json!({ "step": step, "tokens_per_s": speed, "seconds": seconds,
                                      "accumulate_seconds": accumulated, "loss": loss,
                                      "grad_norm": report.grad_norm }));
            }
            table.row([
                step.to_string(),
                format!("{speed:.0}"),
                format!("{accumulated:.3}"),
                format!("{:.3}", seconds - accumulated),
                format!("{loss:.4}"),
                format!("{:.3}", report.grad_norm),
            ]);
        }
        finish(self.json, &table);
        Ok(())
    }
}
