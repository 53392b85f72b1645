//! Sudoku against RAGEN's puzzles and episodes.

use ragen_envs::sudoku::Sudoku;
use ragen_envs::{Environment, Split, Step};
use serde_json::{Map, Value, json};

/// RAGEN's `info`, except the error message, which is part of our text instead.
fn info(step: &Step) -> Value {
    let mut info = Map::new();
    info.insert("action_is_effective".to_owned(), json!(step.info.action_is_effective));
    info.insert("action_is_valid".to_owned(), json!(step.info.action_is_valid));
    info.insert("success".to_owned(), json!(step.info.success));
    for (name, value) in &step.info.extra {
        let value = if name == "correct_placement" { json!(*value == 1.0) } else { json!(*value as i64) };
        info.insert(name.clone(), value);
    }
    Value::Object(info)
}

fn rows(cells: &[u8], size: usize) -> Value {
    cells.chunks(size).map(<[u8]>::to_vec).collect()
}

#[test]
fn puzzles_and_episodes() {
    let Some(cases) = super::fixtures::json_lines("sudoku_ragen.jsonl") else { return };
    for case in cases {
        let seed = case["seed"].as_u64().expect("a seed");
        let size = case["size"].as_u64().expect("a size") as usize;
        let config = json!({ "grid_size": size, "difficulty": case["difficulty"], "compat": true });
        let mut env = Sudoku::from_json(&config).expect("valid");
        let observation = env.reset(seed, Split::Train).expect("an instance");
        let puzzle = env.puzzle().expect("a puzzle").clone();
        assert_eq!(rows(puzzle.solution.cells(), size), case["solution"], "seed {seed}");
        assert_eq!(rows(puzzle.initial.cells(), size), case["initial"], "seed {seed}");
        assert_eq!(observation, case["obs"], "seed {seed}");
        for (i, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let got = env.step(step["a"].as_str().expect("an action")).expect("a step");
            assert_eq!(json!(got.reward), step["reward"], "seed {seed}, step {i}");
            assert_eq!(json!(got.terminated || got.truncated), step["done"], "seed {seed}, step {i}");
            if !step["obs"].is_null() {
                assert_eq!(got.observation, step["obs"], "seed {seed}, step {i}");
            }
            let mut wanted = step["info"].clone();
            if let Some(error) = wanted.as_object_mut().expect("info").remove("error") {
                let error = error.as_str().expect("text");
                // The text names a conflicting number without the word.
                let shown = if error.contains("conflicts") { error.trim_start_matches("Number ") } else { error };
                assert!(got.observation.contains(shown), "seed {seed}, step {i}: {error}\n{}", got.observation);
            }
            assert_eq!(info(&got), wanted, "seed {seed}, step {i}");
        }
    }
}
