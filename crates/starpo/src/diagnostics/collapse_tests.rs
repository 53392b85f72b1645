use std::path::Path;

use super::*;
use crate::episode::fixtures::{episode, turn};
use crate::policy::{LossFn, OptimizerStep, Sampling, Sequence, Session, StepReport, TokenScores};

/// A policy that expects the text to repeat the last token of the prompt: such a token has the log-probability −1, any
/// other −3. With `blind` everything has −2.
#[derive(Default)]
pub(crate) struct Oracle {
    pub blind: bool,
    pub scored: usize,
    pub broken: bool,
}

impl Policy for Oracle {
    fn session(&mut self, _: &Sampling, _: usize) -> Result<Box<dyn Session + '_>, PolicyError> {
        Err(PolicyError::Request("it does not speak".into()))
    }
    fn score(&mut self, batch: &[Sequence], _: f32) -> Result<TokenScores, PolicyError> {
        self.scored += batch.len();
        let mut scores = TokenScores::default();
        for sequence in batch {
            let start = sequence.sampled.iter().position(|s| *s).unwrap();
            let last = sequence.tokens[start - 1];
            scores.log_prob.extend(sequence.tokens[start..].iter().map(|t| match (self.broken, self.blind) {
                (true, _) => f32::NAN,
                (_, true) => -2.0,
                _ if *t == last => -1.0,
                _ => -3.0,
            }));
        }
        Ok(scores)
    }
    fn accumulate(&mut self, _: &[Sequence], _: f32, _: &mut LossFn<'_>) -> Result<(), PolicyError> {
        Err(PolicyError::Request("it does not learn".into()))
    }
    fn gradient_norm(&self) -> f64 {
        0.0
    }
    fn clear_gradients(&mut self) {}
    fn step(&mut self, _: OptimizerStep) -> Result<StepReport, PolicyError> {
        Err(PolicyError::Request("it does not learn".into()))
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
        64
    }
}

/// Three groups of two; the reasoning of each repeats the last token of its group's prompt.
fn batch() -> Vec<Episode> {
    let make = |group: usize, member: usize| {
        let mut episode = episode(group, member, &[turn("s", 3, 0.0), turn("t", 3, 0.0)]);
        let own = 50 + group as u32;
        for turn in &mut episode.turns {
            turn.reasoning = Some(turn.response.start..turn.response.start + 2);
            episode.tokens[turn.prompt.end - 1] = own;
            episode.tokens[turn.response.start..turn.response.start + 2].fill(own);
        }
        episode
    };
    (0..6).map(|i| make(i / 2, i % 2)).collect()
}

fn measure(policy: &mut Oracle, episodes: &[Episode], state: &mut CollapseState) -> Metrics {
    measure_collapse(policy, episodes, &CollapseDetection::default(), state, 1.0, 0, 1).unwrap()
}

#[test]
fn reasoning_that_repeats_its_prompt_is_found() {
    let mut state = CollapseState::default();
    let mut policy = Oracle::default();
    let metrics = measure(&mut policy, &batch(), &mut state);
    let get = |name: &str| metrics.get(name).unwrap_or_else(|| panic!("no {name}"));
    // Per token: own −1, the marginal log((e⁻¹ + 2e⁻³)/3).
    let mi = -1.0 - (((-1f64).exp() + 2.0 * (-3f64).exp()) / 3.0).ln();
    assert!((get("collapse_first_turn_sample/mi_estimate") - mi).abs() < 1e-9);
    assert!((get("collapse_first_turn_sample/mi_upper_bound") - 3f64.ln()).abs() < 1e-12);
    assert_eq!(get("collapse_first_turn_sample/conditional_entropy_seq_est"), 2.0);
    assert_eq!(get("collapse_first_turn_sample/retrieval_accuracy"), 1.0);
    assert!((get("collapse_first_turn_sample/retrieval_chance_level") - 1.0 / 3.0).abs() < 1e-12);
    // A group's first and second turns end alike, and between them the policy can not tell.
    assert!(get("collapse_trajectory_sample/retrieval_above_chance") > 0.2);
    assert_eq!(get("collapse/valid_thinking_rate"), 1.0);
    assert_eq!(get("collapse/regime_healthy"), 1.0, "the first measurement is what others are compared with");
    // Three prompts and three texts of first turns; of trajectories no more than the distinct ones.
    assert!(policy.scored <= 9 + 6 * 3);
    assert!(state.samples.is_some() && state.first_turn.token.is_some() && state.trajectory.sequence.is_some());
}

#[test]
fn a_blind_policy_is_a_template_and_a_sure_one_is_compressed() {
    let mut state = CollapseState { reference: Some((0.8, 2.0)), ..CollapseState::default() };
    let metrics = measure(&mut Oracle { blind: true, ..Oracle::default() }, &batch(), &mut state);
    assert_eq!(metrics.get("collapse/regime_template_collapse"), Some(1.0));
    assert!(metrics.get("collapse_first_turn_sample/mi_estimate").unwrap().abs() < 1e-9);
    state.reference = Some((0.8, 100.0));
    let metrics = measure(&mut Oracle::default(), &batch(), &mut state);
    assert_eq!(metrics.get("collapse/regime_compressed"), Some(1.0));
    let metrics = measure(&mut Oracle { blind: true, ..Oracle::default() }, &batch(), &mut state);
    assert_eq!(metrics.get("collapse/regime_low_entropy_collapse"), Some(1.0));
}

#[test]
fn what_can_not_be_measured_is_left_out() {
    let mut state = CollapseState::default();
    let one_prompt: Vec<Episode> = batch().into_iter().take(2).collect();
    let metrics = measure(&mut Oracle::default(), &one_prompt, &mut state);
    assert_eq!(metrics.get("collapse_first_turn_sample/mi_estimate"), None);
    let empty = measure(&mut Oracle::default(), &[], &mut CollapseState::default());
    assert_eq!(empty.get("collapse/valid_thinking_rate"), Some(0.0));
    let broken = measure(&mut Oracle { broken: true, ..Oracle::default() }, &batch(), &mut CollapseState::default());
    assert_eq!(broken.get("collapse/failed"), Some(1.0));
    assert_eq!(broken.get("collapse_first_turn_sample/mi_estimate"), None);
}

#[test]
fn a_small_budget_takes_fewer_samples_and_keeps_to_them() {
    let episodes: Vec<Episode> = (0..40).flat_map(|_| batch()).collect();
    let setting = CollapseDetection { max_share: 1e-9, ..CollapseDetection::default() };
    assert_eq!(affordable(&episodes, &setting, 0), 8);
    let generous = CollapseDetection { max_share: 1.0, ..CollapseDetection::default() };
    assert_eq!(affordable(&episodes, &generous, 0), 64);
    let mut state = CollapseState { samples: Some(8), ..CollapseState::default() };
    let metrics = measure(&mut Oracle::default(), &episodes, &mut state);
    assert_eq!(metrics.get("collapse/trajectory_samples"), Some(8.0));
}
