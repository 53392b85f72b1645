//! Generation: reading prompts and producing tokens.

use std::time::Instant;

use clap::Args;
use ragen_starpo::policy::{Policy, Request, Sampling};
use serde_json::json;

use super::{check_shape, median, peak_rss_bytes, policy, random_tokens};
use crate::arguments::at_least_one;
use crate::failure::{Failure, Outcome};
use crate::model::MODEL_HELP;
use crate::output::{self, Table};

/// Generation with sampling: prompt tokens read and new tokens produced a second, by batch size; medians.
#[derive(Args)]
pub struct Decode {
    #[arg(long, value_name = "PATH", default_value = "tiny", help = MODEL_HELP)]
    model: String,
    /// Sequences that decode together.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    batch: Vec<usize>,
    /// Tokens of a prompt; prompts are all different.
    #[arg(long, value_name = "N", default_value_t = 170)]
    prompt_len: usize,
    /// Tokens to produce.
    #[arg(long, value_name = "N", default_value_t = 60)]
    new_tokens: usize,
    /// Rounds after one that warms up; what is printed are medians.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    rounds: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Decode {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut policy = policy(&self.model)?;
        if self.new_tokens < 2 {
            return Err(Failure::input(
                "--new-tokens has to be at least 2: the first one belongs to reading the prompt",
            ));
        }
        let mut results = Vec::new();
        for &batch in &self.batch {
            check_shape(batch, self.prompt_len.saturating_add(self.new_tokens), &policy)?;
            let prompts = random_tokens(batch, self.prompt_len, &policy);
            generate(&mut policy, &prompts, self.new_tokens)?;
            // One token comes with the reading; what more tokens take on top is decoding.
            let (mut reading, mut all) = (Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                reading.push(generate(&mut policy, &prompts, 1)?);
                all.push(generate(&mut policy, &prompts, self.new_tokens)?);
            }
            let (prefill, all) = (median(&reading), median(&all));
            let read = (batch * self.prompt_len) as f64 / prefill.max(1e-9);
            // On a noisy machine a few tokens of a small model can seem to take no time at all.
            let produced = (all > prefill).then(|| (batch * (self.new_tokens - 1)) as f64 / (all - prefill));
            let whole = (batch * self.new_tokens) as f64 / all.max(1e-9);
            results.push((batch, read, produced, whole));
        }
        let peak = peak_rss_bytes();
        if self.json {
            let list = results.iter().map(|(batch, read, produced, whole)| {
                json!({ "batch": batch, "prompt_len": self.prompt_len, "new_tokens": self.new_tokens,
                        "prefill_tokens_per_s": read, "decode_tokens_per_s": produced,
                        "new_tokens_per_s_with_prefill": whole, "peak_rss_bytes": peak })
            });
            output::json(&list.collect());
            return Ok(());
        }
        let mut table = Table::new(&["batch", "prompt tokens/s", "new tokens/s", "with prefill"]);
        for (batch, read, produced, whole) in results {
            table.row([
                batch.to_string(),
                format!("{read:.0}"),
                produced.map_or_else(|| "–".to_owned(), |speed| format!("{speed:.0}")),
                format!("{whole:.0}"),
            ]);
        }
        table.print();
        Ok(())
    }
}

/// Seconds that it takes to produce `new_tokens` after each of the prompts.
fn generate(policy: &mut dyn Policy, prompts: &[Vec<u32>], new_tokens: usize) -> Outcome<f64> {
    let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: Vec::new() };
    let mut session = policy.session(&sampling, prompts.len())?;
    let start = Instant::now();
    for (given, id) in prompts.iter().cloned().zip(0u64..) {
        session.submit(Request { id, given, seed: id, max_new_tokens: new_tokens })?;
    }
    let mut done = 0;
    while done < prompts.len() {
        for response in session.step()? {
            session.close(response.id);
            done += 1;
        }
        if session.active() == 0 && done < prompts.len() {
            return Err(Failure::run("generation ended before every answer was there"));
        }
    }
    Ok(start.elapsed().as_secs_f64())
}
