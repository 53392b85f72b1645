//! Multiple choice, which needs no public rows to be tested.

use ragen_envs::baseline::{VAL_SEEDS, baseline};
use ragen_envs::checker::check;
use ragen_envs::{Split, make, template};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::json;

fn rows(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("choice.jsonl");
    let text: String = (0..200)
        .map(|n| {
            let answer = if n % 2 == 0 { json!(n % 4) } else { json!(["A", "B", "C", "D"][n % 4]) };
            let choices = [n, n + 1, n + 2, n + 3].map(|c| c.to_string());
            format!(
                "{}\n",
                json!({ "question": format!("What is {n} + {}?", n % 4), "choices": choices, "answer": answer })
            )
        })
        .collect();
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a name").to_owned()
}

#[test]
fn multiple_choice_is_a_coin_with_four_sides_for_the_random_policy() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = json!({ "dataset": "mmlu", "data_path": rows(&dir) });
    let new = || make("static", &config).expect("valid");
    let report = check(new, 0..40).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert!(report.ended > 20 && report.oracle_checked == 40, "{report:?}");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let got = baseline(new().as_mut(), VAL_SEEDS, Split::Val, 1, 20, &mut rng).expect("playable");
    assert!((got.random_success - 0.25).abs() < 3.0 * got.random_standard_error, "{got:?}");
    assert_eq!(got.oracle_success, 1.0);
}

#[test]
fn words_without_a_choice_are_not_an_attempt() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut env = make("static", &json!({ "dataset": "mmlu", "data_path": rows(&dir) })).expect("valid");
    let state = env.reset(5, Split::Train).expect("an instance");
    assert!(state.lines().count() == 5 && state.contains("\nA. ") && state.contains("\nD. "), "{state}");
    let step = env.step("no idea").expect("a step");
    assert!(!step.info.action_is_valid && step.observation == state);
    let right = env.oracle(1).swap_remove(0);
    let step = env.step(&format!("The right one is {right}.")).expect("a step");
    assert_eq!((step.reward, step.terminated), (1.0, true));
}

#[test]
fn settings_that_are_missing_or_wrong_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a name").to_owned()
    };
    let message = |env_type: &str, config: serde_json::Value| match make(env_type, &config) {
        Ok(_) => panic!("{config} was accepted"),
        Err(error) => error.to_string(),
    };
    for (env_type, config, expected) in [
        ("metamathqa", json!(null), "`data_path`: expected a JSON Lines file"),
        ("metamathqa", json!({ "datapath": "x" }), "did you mean `data_path`?"),
        ("metamathqa", json!({ "data_path": 3 }), "`data_path`: invalid type"),
        (
            "metamathqa",
            json!({ "data_path": file("a", "{\"query\": \"q\", \"response\": \"2\"}") }),
            "line 1: `response`: expected \"The answer is: \"",
        ),
        ("metamathqa", json!({ "data_path": file("b", "{\"q\": 1}") }), "found the keys `q`"),
        ("static", json!({ "dataset": "gsm9k" }), "unknown variant `gsm9k`"),
        (
            "static",
            json!({ "dataset": "mmlu", "data_path": file("c", "{\"choices\": [\"1\"], \"answer\": 0}") }),
            "four texts, found 1 of them",
        ),
        (
            "static",
            json!({ "dataset": "mmlu", "data_path": file("d", "{\"choices\": [\"1\", \"\", \"\", \"\"], \"answer\": 4}") }),
            "`answer`: expected A, B, C or D",
        ),
    ] {
        let found = message(env_type, config.clone());
        assert!(found.contains(expected) && found.contains(env_type), "{config}: expected {expected:?} in {found:?}");
    }
    let needed = |tag: &str| template(tag).expect("a known tag").needs();
    assert_eq!(needed("MetamathQA").map(|(setting, _)| setting), Some("data_path"));
    assert_eq!(needed("SimpleSokoban"), None);
}
