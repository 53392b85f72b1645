//! Sokoban against RAGEN's boards and episodes.

use ragen_envs::sokoban::{Cell, Sokoban, SokobanConfig, generate, solve};
use ragen_envs::{Environment, Split};
use serde_json::{Value, json};

fn config(name: &str) -> Value {
    match name {
        "simple" => json!({ "dim_x": 6, "dim_y": 6, "num_boxes": 1, "max_steps": 100 }),
        "large" => json!({ "dim_x": 8, "dim_y": 8, "num_boxes": 2, "max_steps": 100, "search_depth": 10 }),
        other => panic!("unknown configuration {other}"),
    }
}

fn layer(cells: &[Cell], cols: usize) -> Value {
    cells.chunks(cols).map(|row| row.iter().map(|&cell| cell as u8).collect::<Vec<_>>()).collect()
}

#[test]
fn boards_and_episodes() {
    let Some(cases) = super::fixtures::json_lines("sokoban_ragen.jsonl") else { return };
    for case in cases {
        let seed = case["seed"].as_u64().expect("a seed");
        let config = config(case["cfg"].as_str().expect("a configuration"));
        let level = generate::level(&SokobanConfig::from_json(&config).expect("valid"), seed).expect("a level");
        assert_eq!(level.reseeds, 0, "seed {seed}");
        assert_eq!(layer(level.board.fixed(), level.board.cols()), case["room_fixed"], "seed {seed}");
        assert_eq!(layer(level.board.state(), level.board.cols()), case["room_state"], "seed {seed}");
        let shortest = case["shortest"].as_u64().expect("a length");
        if shortest > 0 {
            let plan = solve::shortest(&level.board, 100).expect("solvable");
            assert_eq!(plan.len() as u64, shortest, "seed {seed}");
        }
        let mut env = Sokoban::from_json(&config).expect("valid");
        assert_eq!(env.reset(seed, Split::Train).expect("an instance"), case["obs"], "seed {seed}");
        for (i, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let action = ["Up", "Down", "Left", "Right"][step["a"].as_u64().expect("an action") as usize - 1];
            let got = env.step(action).expect("a step");
            let got = json!({
                "a": step["a"],
                "obs": got.observation,
                "reward": got.reward,
                "done": got.terminated || got.truncated,
                "info": {
                    "action_is_effective": got.info.action_is_effective,
                    "action_is_valid": got.info.action_is_valid,
                    "success": got.info.success,
                },
            });
            assert_eq!(&got, step, "seed {seed}, step {i}");
        }
    }
}

#[test]
fn coordinates() {
    let Some(Value::Array(cases)) = super::fixtures::json("sokoban_ragen_gridcoord.json") else { return };
    assert!(!cases.is_empty());
    let config = json!({ "num_boxes": 1, "observation_format": "grid_coord" });
    let mut env = Sokoban::from_json(&config).expect("valid");
    for case in cases {
        let observation = env.reset(case[0].as_u64().expect("a seed"), Split::Train).expect("an instance");
        assert_eq!(observation, case[1]);
    }
}
