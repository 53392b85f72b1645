use std::path::Path;

use super::*;
use crate::config::Config;
use crate::policy::{LossFn, Sampling, Session, StepReport, TokenScores};

/// A policy that is a table of scores: it hands them to the loss, in micro-batches of `cut` sequences, and keeps what
/// the loss gives back.
struct Table {
    log_prob: Vec<f32>,
    entropy: Vec<f32>,
    cut: usize,
    grads: Vec<TokenGrads>,
    steps: Vec<OptimizerStep>,
    cleared: usize,
}

impl Table {
    fn new(tokens: usize, cut: usize) -> Self {
        let (log_prob, entropy) = (vec![-0.5; tokens], vec![1.0; tokens]);
        Self { log_prob, entropy, cut, grads: Vec::new(), steps: Vec::new(), cleared: 0 }
    }

    fn d_log_prob(&self) -> Vec<f32> {
        self.grads.iter().flat_map(|g| g.log_prob.clone()).collect()
    }

    fn d_entropy(&self) -> Vec<f32> {
        self.grads.iter().flat_map(|g| g.entropy.clone()).collect()
    }
}

impl Policy for Table {
    fn session(&mut self, _: &Sampling, _: usize) -> Result<Box<dyn Session + '_>, PolicyError> {
        Err(PolicyError::Request("a table does not speak".into()))
    }
    fn score(&mut self, _: &[Sequence], _: f32) -> Result<TokenScores, PolicyError> {
        Ok(TokenScores { log_prob: self.log_prob.clone(), entropy: self.entropy.clone(), value: Vec::new() })
    }
    fn accumulate(&mut self, batch: &[Sequence], _: f32, loss: &mut LossFn<'_>) -> Result<(), PolicyError> {
        // The first token of the first sequence says where in the table the batch begins.
        let mut at = batch[0].tokens[0] as usize;
        let indices: Vec<usize> = (0..batch.len()).collect();
        for part in indices.chunks(self.cut) {
            let n: usize = part.iter().map(|i| batch[*i].sampled_len()).sum();
            let of = |values: &[f32]| values[at..at + n].to_vec();
            let scores = TokenScores { log_prob: of(&self.log_prob), entropy: of(&self.entropy), value: Vec::new() };
            self.grads.push(loss(part, &scores));
            at += n;
        }
        Ok(())
    }
    fn gradient_norm(&self) -> f64 {
        1.0
    }
    fn clear_gradients(&mut self) {
        self.cleared += 1;
    }
    fn step(&mut self, step: OptimizerStep) -> Result<StepReport, PolicyError> {
        self.steps.push(step);
        Ok(StepReport { grad_norm: 2.0, applied: true })
    }
    fn save(&self, _: &Path) -> Result<(), PolicyError> {
        Ok(())
    }
    fn load(&mut self, _: &Path) -> Result<(), PolicyError> {
        Ok(())
    }
    fn weights_sha256(&self) -> String {
        String::new()
    }
    fn max_context(&self) -> usize {
        100
    }
}

/// Rows of one, two and one sampled tokens, in two turns.
fn batch() -> TrainingBatch {
    let lengths = [1usize, 2, 1];
    let starts = [0u32, 1, 3];
    let sequences = lengths.iter().zip(starts).map(|(n, start)| Sequence {
        tokens: std::iter::repeat_n(start, n + 1).collect(),
        sampled: std::iter::once(false).chain(std::iter::repeat_n(true, *n)).collect(),
    });
    TrainingBatch {
        sequences: sequences.collect(),
        rows: Rows::from_lengths(lengths),
        old_log_prob: vec![-0.5; 4],
        turns: vec![0, 0, 1, 0],
        advantages: vec![1.0, -1.0, -1.0, 0.5],
        ..TrainingBatch::default()
    }
}

fn config(overrides: &[&str]) -> Config {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Config::load(None, &overrides).unwrap()
}

const LR: &str = "actor_rollout_ref.actor.optim.lr_warmup_steps=0";
const CONSTANT: &str = "actor_rollout_ref.actor.optim.lr_scheduler=constant";
const NO_BONUS: &str = "actor_rollout_ref.actor.entropy_coeff=0";
const TOKEN_MEAN: &str = "actor_rollout_ref.actor.loss_agg_mode=token-mean";

fn run(table: &mut Table, config: &Config, controls: &Controls, batch: &TrainingBatch) -> UpdateReport {
    update_actor(table, batch, config, controls, Schedule { done: 0, total: 10 }, 0).unwrap()
}

#[test]
fn every_mini_batch_is_a_step_at_the_scaled_rate() {
    let config = config(&[LR, CONSTANT, "actor_rollout_ref.actor.ppo_mini_batch_size=2"]);
    let mut table = Table::new(4, 9);
    let controls = Controls { lr_scale: 0.5, ..Controls::of(&config) };
    let report = run(&mut table, &config, &controls, &batch());
    assert_eq!((report.steps, table.steps.len(), table.grads.len()), (2, 2, 2));
    assert!(table.steps.iter().all(|s| s.adamw.lr == 0.5 * config.actor_rollout_ref.actor.optim.lr));
    assert_eq!(report.metrics.get("actor/grad_norm_max"), Some(2.0));
    assert_eq!(report.metrics.get("actor/ratio_max"), Some(1.0));
    assert_eq!((report.mismatch_max, report.tokens), (0.0, 7));
    assert_eq!(report.turn_entropy, [(3.0, 3.0), (1.0, 1.0)]);
}

#[test]
fn token_mean_on_policy_is_minus_the_advantage_over_the_tokens() {
    let config = config(&[LR, TOKEN_MEAN, NO_BONUS]);
    let mut table = Table::new(4, 9);
    run(&mut table, &config, &Controls::of(&config), &batch());
    assert_eq!(table.d_log_prob(), [-0.25, 0.25, 0.25, -0.125]);
    assert!(table.d_entropy().is_empty(), "no term reads the entropy");
}

#[test]
fn micro_batches_change_nothing() {
    let config = config(&[LR, "actor_rollout_ref.actor.entropy_coeff=0.1"]);
    let (mut whole, mut cut) = (Table::new(4, 9), Table::new(4, 1));
    let one = run(&mut whole, &config, &Controls::of(&config), &batch());
    let other = run(&mut cut, &config, &Controls::of(&config), &batch());
    assert_eq!((whole.grads.len(), cut.grads.len()), (1, 3));
    assert_eq!(whole.d_log_prob(), cut.d_log_prob());
    assert_eq!(whole.d_entropy(), cut.d_entropy());
    assert_eq!(one.metrics.get("actor/entropy"), other.metrics.get("actor/entropy"));
}

#[test]
fn the_bonus_has_the_weight_of_the_run_not_of_the_file() {
    let config = config(&[LR, TOKEN_MEAN]);
    let mut table = Table::new(4, 9);
    run(&mut table, &config, &Controls { entropy_coeff: 0.4, ..Controls::of(&config) }, &batch());
    assert_eq!(table.d_entropy(), [-0.1; 4]);
}

#[test]
fn the_band_pushes_turns_that_leave_it() {
    let config = config(&[LR, TOKEN_MEAN, NO_BONUS, "actor_rollout_ref.actor.entropy_band.enable=true"]);
    let mut table = Table::new(4, 9);
    // Turn 0 lies at 1 below 0.8 · 2 and should rise; turn 1 has no past.
    let controls = Controls { turn_entropy: vec![Some(2.0)], ..Controls::of(&config) };
    run(&mut table, &config, &controls, &batch());
    let push = -0.01f32 / 4.0;
    assert_eq!(table.d_entropy(), [push, push, 0.0, push]);
}

#[test]
fn the_pull_towards_the_healthy_policy_is_off_by_default() {
    let config = config(&[LR, TOKEN_MEAN]);
    // The policy holds every token for likelier than the anchor does, so the pull lowers all of them.
    let anchored = TrainingBatch { anchor_log_prob: vec![-1.5; 4], advantages: vec![0.0; 4], ..batch() };
    let mut free = Table::new(4, 9);
    run(&mut free, &config, &Controls::of(&config), &anchored);
    assert_eq!(free.d_log_prob(), [0.0; 4]);
    let mut held = Table::new(4, 9);
    let report = run(&mut held, &config, &Controls { anchor_coef: 1.0, ..Controls::of(&config) }, &anchored);
    let want = (1.0 - (-1.0f64).exp()) / 4.0;
    assert!(held.d_log_prob().iter().all(|d| (f64::from(*d) - want).abs() < 1e-6), "{:?}", held.d_log_prob());
    assert!(report.metrics.get("actor/anchor_kl").unwrap() > 0.0);
}

#[test]
fn a_broken_number_stops_before_the_step() {
    let config = config(&[LR]);
    let mut table = Table::new(4, 9);
    let broken = TrainingBatch { advantages: vec![1.0, f64::NAN, 0.0, 0.0], ..batch() };
    let schedule = Schedule { done: 0, total: 10 };
    assert!(update_actor(&mut table, &broken, &config, &Controls::of(&config), schedule, 0).is_err());
    assert_eq!((table.steps.len(), table.cleared), (0, 1));
}

#[test]
fn an_empty_batch_takes_no_step() {
    let config = config(&[LR]);
    let mut table = Table::new(0, 9);
    let report = run(&mut table, &config, &Controls::of(&config), &TrainingBatch::default());
    assert_eq!((report.steps, table.steps.len()), (0, 0));
    assert_eq!(report.metrics.get("actor/ratio_max"), None);
}

#[test]
fn a_part_of_a_batch_holds_its_rows_tokens() {
    let part = batch().rows_subset(&[2, 1]);
    assert_eq!(part.rows, Rows::from_lengths([1, 2]));
    assert_eq!((part.advantages, part.turns), (vec![0.5, -1.0, -1.0], vec![0, 0, 1]));
    assert_eq!((part.sequences[0].tokens.clone(), part.ref_log_prob.len()), (vec![3, 3], 0));
}
