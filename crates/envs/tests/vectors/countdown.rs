//! Countdown's rewards against RAGEN's.

use ragen_envs::countdown::{has_solution, reward};
use serde_json::json;

#[test]
fn rewards() {
    let Some(cases) = super::fixtures::json_lines("countdown_reward.jsonl") else { return };
    for case in cases {
        let nums: Vec<i64> = serde_json::from_value(case["nums"].clone()).expect("numbers");
        let target = case["target"].as_f64().expect("a target");
        let got = reward(case["action"].as_str().expect("an action"), target, &nums);
        assert_eq!(got, case["reward"].as_f64().expect("a reward"), "{case}");
        if let Some(solvable) = case.get("has_solution") {
            assert_eq!(json!(has_solution(&nums, target)), *solvable, "{case}");
        }
    }
}
