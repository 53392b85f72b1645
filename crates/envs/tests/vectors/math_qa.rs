//! Questions with one answer: the reference's comparisons, and episodes on public rows.

use ragen_envs::baseline::{VAL_SEEDS, baseline};
use ragen_envs::checker::check;
use ragen_envs::math_qa::{matches, metamath_answer};
use ragen_envs::{DemoStyle, Environment, Split, make};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::{Value, json};

#[test]
fn metamath_comparisons() {
    let Some(cases) = super::fixtures::json_lines("metamath_check.jsonl") else { return };
    for case in cases {
        let answer = metamath_answer(case["response"].as_str().expect("a response")).map(|(_, answer)| answer);
        assert_eq!(json!(answer), case["label"], "{case}");
        let action = case["action"].as_str().expect("an action");
        let correct = answer.is_some_and(|answer| matches(action, answer));
        let valid = !action.trim().is_empty();
        assert_eq!(json!([correct, valid]), case["result"], "{case}");
    }
}

/// Plays one episode with the answer at the `attempt`-th attempt (from 0), and returns the rewards.
fn rewards(env: &mut dyn Environment, seed: u64, attempt: usize) -> Vec<f64> {
    env.reset(seed, Split::Val).expect("an instance");
    let answer = env.oracle(9).swap_remove(0);
    let mut rewards = Vec::new();
    for _ in 0..attempt {
        let step = env.step("surely wrong").expect("a step");
        assert!(step.info.action_is_valid && !step.terminated && step.observation == env.render());
        rewards.push(step.reward);
        // No answer is no attempt.
        let step = env.step("  ").expect("a step");
        assert!(!step.info.action_is_valid && !step.terminated);
    }
    let step = env.step(&answer.to_uppercase()).expect("a step");
    assert!(step.terminated && step.info.success);
    assert!(env.step(&answer).is_err());
    rewards.push(step.reward);
    rewards
}

#[test]
fn episodes_on_public_rows() {
    for (env_type, file, extra) in [
        ("metamathqa", "gsm8k/metamathqa_shaped_from_gsm8k_500.jsonl", json!({})),
        ("metamathqa", "gsm8k/test.jsonl", json!({})),
        ("metamathqa", "gsm8k/train.jsonl.gz", json!({ "val_every": 4 })),
        ("static", "gsm8k/metamathqa_shaped_from_gsm8k_500.jsonl", json!({ "dataset": "metamathqa" })),
        ("static", "gsm8k/test.jsonl", json!({ "dataset": "gsm8k", "compat": true })),
    ] {
        let Some(path) = super::fixtures::data_file(file) else { return };
        let mut config = extra;
        config["data_path"] = json!(path);
        let new = || make(env_type, &config).expect("valid");
        let report = check(new, 0..40).unwrap_or_else(|problems| panic!("{env_type} {file}: {problems:#?}"));
        assert!(report.distinct_instances > 30 && report.oracle_checked == 40, "{env_type} {file}: {report:?}");
        let mut env = new();
        for seed in 0..50 {
            assert_eq!(rewards(env.as_mut(), seed, (seed % 4) as usize).pop(), Some(0.5f64.powi((seed % 4) as i32)));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let got = baseline(env.as_mut(), VAL_SEEDS, Split::Val, 1, 1, &mut rng).expect("playable");
        assert_eq!((got.oracle_success, got.optimum, got.random_success), (1.0, Some(1.0), 0.0));
        env.reset(3, Split::Train).expect("an instance");
        let brief = env.demonstrate(1, 1, DemoStyle::Brief, &mut rng).expect("a turn");
        let long = env.demonstrate(1, 1, DemoStyle::Verbose, &mut rng).expect("a turn");
        assert!(brief.reasoning.split_whitespace().count() <= 12 && long.reasoning.len() >= brief.reasoning.len());
        assert!(!long.reasoning.contains("<<") && !long.reasoning.contains("####"), "{}", long.reasoning);
    }
}

#[test]
fn training_and_validation_rows_differ() {
    let Some(path) = super::fixtures::data_file("gsm8k/test.jsonl") else { return };
    let questions = |config: Value, split| -> std::collections::BTreeSet<String> {
        let mut env = make("metamathqa", &config).expect("valid");
        (0..3000).map(|seed| env.reset(seed, split).expect("an instance")).collect()
    };
    let config = json!({ "data_path": path });
    let (train, val) = (questions(config.clone(), Split::Train), questions(config, Split::Val));
    assert!(train.len() > 900 && val.len() == 131 && train.is_disjoint(&val), "{} {}", train.len(), val.len());
    let compat = json!({ "data_path": path, "compat": true });
    assert_eq!(questions(compat.clone(), Split::Train), questions(compat, Split::Val));
}

#[test]
fn the_reference_draws_the_row() {
    let Some(path) = super::fixtures::data_file("gsm8k/metamathqa_shaped_from_gsm8k_500.jsonl") else { return };
    let rows: Vec<Value> = std::fs::read_to_string(&path)
        .expect("readable")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    let mut env = make("metamathqa", &json!({ "data_path": path, "compat": true })).expect("valid");
    // random.Random(seed).randint(0, 499) in Python 3.11.
    for (seed, row) in [(0, 432), (123, 26), (10_000, 295)] {
        assert_eq!(json!(env.reset(seed, Split::Train).expect("an instance")), rows[row]["query"], "seed {seed}");
    }
}
