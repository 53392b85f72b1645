//! Tests of demonstrations.

use super::*;
use crate::context::ContextWindow;
use crate::dialogue::scripted::{ByteDialogue, END, ScriptedPolicy, Trouble, line};
use crate::instances::{Group, validation_groups};
use crate::rollout::{RolloutOptions, collect};

const DIALOGUE: ByteDialogue = ByteDialogue { tags_as_tokens: true };

fn make(options: &WarmStartDataOptions, context: &ContextOptions, count: usize) -> WarmStartData {
    let mut seeds = SeedCounter::new(10_000);
    let tag = line(Trouble::None, "");
    demonstrations(&DIALOGUE, context, &tag, count, &mut seeds, &InstanceKeys::default(), options).unwrap()
}

#[test]
fn a_demonstration_has_the_tokens_of_a_rollout() {
    // The tokens of a rollout whose responses are those of the demonstration.
    for layout in [crate::context::Layout::Full, crate::context::Layout::Compact] {
        let context = ContextOptions { layout, ..ContextOptions::default() };
        let options = WarmStartDataOptions {
            fewer_actions_prob: 0.5,
            random_turn_prob: 0.0,
            invalid_turn_prob: 0.0,
            ..Default::default()
        };
        for (i, sequence) in make(&options, &context, 10).sequences.into_iter().enumerate() {
            let mut responses: Vec<Vec<u32>> = Vec::new();
            for (j, token) in sequence.tokens.iter().enumerate().filter(|(j, _)| sequence.sampled[*j]) {
                if !sequence.sampled[j - 1] {
                    responses.push(Vec::new());
                }
                responses.last_mut().unwrap().push(*token);
            }
            assert!(responses.iter().all(|r| r.last() == Some(&END)));
            let mut policy = ScriptedPolicy::new(move |_, turn, _, _| responses[turn].clone());
            let group = Group { tag: line(Trouble::None, ""), seed: 10_000 + i as u64, split: Split::Train };
            let options = RolloutOptions { group_size: 1, ..RolloutOptions::default() };
            let episode = collect(&mut policy, &DIALOGUE, &context, &[group], &options).unwrap().remove(0);
            assert!(episode.outcome.is_success());
            assert_eq!(episode.to_sequences(), [sequence]);
        }
    }
}

#[test]
fn windowed_demonstrations_have_the_tokens_of_windowed_rollouts() {
    for window in [ContextWindow::Dialogue { turns: 2 }, ContextWindow::Memory { turns: 2 }] {
        let context = ContextOptions { window, ..ContextOptions::default() };
        let options = WarmStartDataOptions {
            fewer_actions_prob: 1.0,
            random_turn_prob: 0.0,
            invalid_turn_prob: 0.0,
            ..Default::default()
        };
        let made = make(&options, &context, 1).sequences;
        assert_eq!(made.len(), 3, "a sample a turn");
        let said = |s: &crate::policy::Sequence| -> Vec<u32> {
            s.tokens.iter().zip(&s.sampled).filter(|(_, sampled)| **sampled).map(|(t, _)| *t).collect()
        };
        let responses: Vec<Vec<u32>> = made.iter().map(said).collect();
        let mut policy = ScriptedPolicy::new(move |_, turn, _, _| responses[turn].clone());
        let group = Group { tag: line(Trouble::None, ""), seed: 10_000, split: Split::Train };
        let options = RolloutOptions { group_size: 1, ..RolloutOptions::default() };
        let episode = collect(&mut policy, &DIALOGUE, &context, &[group], &options).unwrap().remove(0);
        assert!(episode.outcome.is_success());
        assert_eq!(episode.to_sequences(), made);
    }
}

#[test]
fn random_actions_teach_the_format_alone() {
    let options = WarmStartDataOptions {
        demonstrator: Demonstrator::Random,
        fewer_actions_prob: 0.0,
        invalid_turn_prob: 0.0,
        ..WarmStartDataOptions::default()
    };
    let data = make(&options, &ContextOptions::default(), 100);
    assert_eq!((data.sequences.len(), data.without_demonstration), (100, 0));
    assert!((1..60).contains(&data.solved), "{} of 100 walks reached the goal", data.solved);
    for sequence in &data.sequences {
        let said: Vec<u32> =
            sequence.tokens.iter().zip(&sequence.sampled).filter(|(_, sampled)| **sampled).map(|(t, _)| *t).collect();
        let text = DIALOGUE.decode(&said).unwrap();
        assert!(text.contains("I try ") && text.contains("<answer>"), "{text}");
    }
    assert_eq!(make(&options, &ContextOptions::default(), 100), data);
}

#[test]
fn fewer_actions_make_more_turns() {
    let turns = |p: f64| {
        let options = WarmStartDataOptions {
            fewer_actions_prob: p,
            random_turn_prob: 0.0,
            invalid_turn_prob: 0.0,
            ..Default::default()
        };
        let data = make(&options, &ContextOptions::default(), 100);
        assert_eq!((data.sequences.len(), data.solved, data.random_turns), (100, 100, 0));
        data.turns
    };
    assert_eq!(turns(0.0), 200);
    assert_eq!(turns(1.0), 300);
    assert!((210..290).contains(&turns(0.5)));
}

#[test]
fn random_turns_are_given_and_then_recovered_from() {
    let options = WarmStartDataOptions {
        fewer_actions_prob: 0.0,
        random_turn_prob: 0.5,
        invalid_turn_prob: 0.0,
        ..Default::default()
    };
    let data = make(&options, &ContextOptions::default(), 200);
    assert!(data.random_turns > 50 && data.solved > 120, "{} {}", data.random_turns, data.solved);
    let mut untrained = 0;
    for sequence in &data.sequences {
        assert!(sequence.sampled_len() > 0);
        assert_eq!(sequence.sampled.last(), Some(&true), "nothing follows the last demonstrated response");
        // Every trained action leads to the goal: `Left` is only ever said in an untrained turn.
        let trained = sequence.tokens.iter().zip(&sequence.sampled).filter(|(_, s)| **s).map(|(t, _)| *t);
        let trained: Vec<u32> = trained.collect();
        assert!(!DIALOGUE.decode(&trained).unwrap().contains("Left"));
        let given = sequence.tokens.iter().zip(&sequence.sampled).filter(|(_, s)| !**s).map(|(t, _)| *t);
        untrained += usize::from(DIALOGUE.decode(&given.collect::<Vec<_>>()).unwrap().contains("Left</answer>"));
    }
    assert!(untrained > 20, "{untrained}");
}

#[test]
fn the_same_seed_makes_the_same_data() {
    let options = WarmStartDataOptions::default();
    let context = ContextOptions::default();
    assert_eq!(make(&options, &context, 30), make(&options, &context, 30));
    let other = WarmStartDataOptions { seed: 1, ..options.clone() };
    assert_ne!(make(&options, &context, 30), make(&other, &context, 30));
}

#[test]
fn validation_instances_are_left_out() {
    let tag = line(Trouble::None, "");
    // Ten instances exist; four of them are for validation.
    let validation = InstanceKeys::of(&validation_groups(&[(tag.clone(), 4)], 20));
    assert_eq!(validation.len(), 4);
    let mut seeds = SeedCounter::new(100);
    let options = WarmStartDataOptions::default();
    let data =
        demonstrations(&DIALOGUE, &ContextOptions::default(), &tag, 12, &mut seeds, &validation, &options).unwrap();
    assert_eq!(data.sequences.len(), 12);
    assert_eq!((seeds.counter, seeds.skipped, seeds.overlapping), (20, 8, 0));
}

#[test]
fn an_environment_without_demonstrations_says_so() {
    let mut tag = line(Trouble::None, "");
    tag.max_actions_per_traj = 2;
    let mut seeds = SeedCounter::new(0);
    let options = WarmStartDataOptions::default();
    let result =
        demonstrations(&DIALOGUE, &ContextOptions::default(), &tag, 1, &mut seeds, &InstanceKeys::default(), &options);
    assert!(matches!(result, Err(WarmStartDataError::NoDemonstrations { tried: 200, .. })), "{result:?}");
    // It is noticed before training, and says what to do; where there is one, its seed stays for training.
    let config = crate::config::Config::default();
    let try_one = |tag: &EnvTag| {
        let context = ContextOptions::default();
        let seeds = SeedCounter::new(0);
        crate::warm_start::try_demonstrations(&DIALOGUE, &context, &[tag], &seeds, &InstanceKeys::default(), &config)
    };
    let error = try_one(&tag).unwrap_err().to_string();
    assert!(error.contains("warm_start.enabled=false") && error.contains("warm_start.demonstrator=random"), "{error}");
    tag.max_actions_per_traj = 20;
    assert!(try_one(&tag).is_ok());
}

#[test]
fn sequences_keep_to_the_context() {
    let full = make(
        &WarmStartDataOptions {
            random_turn_prob: 0.0,
            invalid_turn_prob: 0.0,
            fewer_actions_prob: 1.0,
            ..Default::default()
        },
        &ContextOptions::default(),
        1,
    );
    let len = full.sequences[0].tokens.len();
    let options = WarmStartDataOptions {
        random_turn_prob: 0.0,
        invalid_turn_prob: 0.0,
        fewer_actions_prob: 1.0,
        max_model_len: len - 1,
        ..Default::default()
    };
    let short = make(&options, &ContextOptions::default(), 1);
    let tokens = &short.sequences[0].tokens;
    assert!(tokens.len() < len);
    assert_eq!(tokens[..], full.sequences[0].tokens[..tokens.len()]);
    assert_eq!(short.solved, 0);
}

#[test]
fn failing_instances_are_counted_and_passed_over() {
    let tag = line(Trouble::ResetError, "");
    let mut seeds = SeedCounter::new(0);
    let options = WarmStartDataOptions { random_turn_prob: 0.0, invalid_turn_prob: 0.0, ..Default::default() };
    let data =
        demonstrations(&DIALOGUE, &ContextOptions::default(), &tag, 5, &mut seeds, &InstanceKeys::default(), &options)
            .unwrap();
    assert_eq!((data.sequences.len(), data.faults), (5, 4));
}

#[test]
fn invalid_turns_are_marked_and_recovered_from() {
    let options = WarmStartDataOptions {
        fewer_actions_prob: 0.0,
        random_turn_prob: 0.0,
        invalid_turn_prob: 0.3,
        ..Default::default()
    };
    let context = ContextOptions { layout: crate::context::Layout::Compact, ..ContextOptions::default() };
    let data = make(&options, &context, 100);
    assert!(data.invalid_turns > 40 && data.solved > 80, "{} {}", data.invalid_turns, data.solved);
    let texts: Vec<String> = data.sequences.iter().map(|s| DIALOGUE.decode(&s.tokens).unwrap()).collect();
    // A marked turn shows the same state and as many actions left as before.
    assert!(texts.iter().any(|t| t.contains("0.0\ninvalid\nat 3\n10 left")));
    assert!(texts.iter().map(|t| t.matches("invalid").count()).sum::<usize>() >= data.invalid_turns - 20);
    // None of it is trained: every trained response holds an action.
    for sequence in &data.sequences {
        let trained = sequence.tokens.iter().zip(&sequence.sampled).filter(|(_, s)| **s).map(|(t, _)| *t);
        let text = DIALOGUE.decode(&trained.collect::<Vec<_>>()).unwrap();
        let answers = text.matches("<answer>").count();
        assert!(answers > 0 && text.matches("<answer>Right").count() == answers, "{text}");
    }
}
