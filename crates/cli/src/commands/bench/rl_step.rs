//! One reinforcement-learning update: groups that share their prompts, a loss on the responses.

use std::time::Instant;

use clap::Args;
use ragen_model::trainable::{AdamW, OptimizerStep, Sequence};
use ragen_starpo::policy::{Policy, TokenGrads, TokenScores};
use serde_json::json;

use super::{check_shape, finish, policy, random_tokens};
use crate::arguments::at_least_one;
use crate::failure::{Failure, Outcome};
use crate::model::MODEL_HELP;
use crate::output::{self, Table};

/// Coefficient of the entropy bonus.
const ENTROPY_COEFF: f32 = 1e-3;

/// A policy-gradient update with an entropy bonus on the responses of groups that share their prompts.
///
/// The recorded log-probabilities serve as the old ones, so there is one forward and one backward pass. The first step
/// allocates the optimiser's state: leave it out of averages.
#[derive(Args)]
pub struct RlStep {
    #[arg(long, value_name = "PATH", default_value = "tiny", help = MODEL_HELP)]
    model: String,
    /// Groups.
    #[arg(long, value_name = "N", default_value_t = 8)]
    groups: usize,
    /// Members of each.
    #[arg(long, value_name = "N", default_value_t = 8)]
    members: usize,
    /// Tokens of a prompt.
    #[arg(long, value_name = "N", default_value_t = 170)]
    prompt_len: usize,
    /// Tokens of a response.
    #[arg(long, value_name = "N", default_value_t = 60)]
    response_len: usize,
    /// Steps.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    steps: usize,
    /// Print JSON, a line a step.
    #[arg(long)]
    json: bool,
}

impl RlStep {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut policy = policy(&self.model)?;
        if self.prompt_len == 0 || self.response_len == 0 || self.members == 0 {
            return Err(Failure::input("--members, --prompt-len and --response-len have to be at least 1"));
        }
        let (rows, len) = (self.groups.saturating_mul(self.members), self.prompt_len.saturating_add(self.response_len));
        check_shape(rows, len, &policy)?;
        let prompts = random_tokens(self.groups, self.prompt_len, &policy);
        let responses = random_tokens(rows + self.groups, self.response_len, &policy).split_off(self.groups);
        let batch: Vec<Sequence> = responses
            .into_iter()
            .enumerate()
            .map(|(row, response)| {
                let tokens = [&prompts[row / self.members][..], &response].concat();
                Sequence { sampled: (0..len).map(|t| t >= self.prompt_len).collect(), tokens }
            })
            .collect();
        let sampled = rows * self.response_len;
        let weight = 1.0 / sampled as f32;
        let adamw = AdamW { lr: 1e-6, ..AdamW::default() };
        let mut table = Table::new(&["step", "seconds", "response tokens/s", "all tokens/s", "grad norm"]);
        for step in 1..=self.steps {
            let start = Instant::now();
            policy.accumulate(&batch, 1.0, &mut |indices, scores| self.gradients(indices, scores, weight))?;
            let report = policy.step(OptimizerStep { adamw, grad_clip: 1.0 })?;
            let seconds = start.elapsed().as_secs_f64().max(1e-9);
            let (of_responses, of_all) = (sampled as f64 / seconds, (rows * len) as f64 / seconds);
            if self.json {
                output::json(&json!({ "step": step, "update_s": seconds, "sampled_tokens": sampled,
                                      "all_tokens": rows * len, "sampled_tokens_per_s": of_responses,
                                      "all_tokens_per_s": of_all, "grad_norm": report.grad_norm }));
            }
            table.row([
                step.to_string(),
                format!("{seconds:.3}"),
                format!("{of_responses:.0}"),
                format!("{of_all:.0}"),
                format!("{:.4}", report.grad_norm),
            ]);
        }
        finish(self.json, &table);
        Ok(())
    }

    /// Of `-mean(A · ratio) - c · mean(entropy)` at a ratio of one; the advantages of a group's members spread around 0.
    fn gradients(&self, indices: &[usize], scores: &TokenScores, weight: f32) -> TokenGrads {
        let middle = (self.members as f32 - 1.0) / 2.0;
        let log_prob = indices.iter().flat_map(|&row| {
            let advantage = (row % self.members) as f32 - middle;
            std::iter::repeat_n(-weight * advantage, self.response_len)
        });
        TokenGrads {
            log_prob: log_prob.collect(),
            entropy: vec![-weight * ENTROPY_COEFF; scores.entropy.len()],
            value: Vec::new(),
        }
    }
}
