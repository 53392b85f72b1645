//! FrozenLake against Gymnasium's tables, maps and rollouts and RAGEN's episodes.

use ragen_envs::frozen_lake::{FrozenLake, FrozenLakeConfig, Lake, Move, Tile};
use ragen_envs::{Environment, Split};
use serde_json::{Value, json};

fn lake(map: &Value) -> Lake {
    let rows: Vec<&str> = map.as_array().expect("rows").iter().map(|row| row.as_str().expect("a row")).collect();
    Lake::from_map(&rows).expect("a map")
}

fn way(number: &Value, first: u64) -> Move {
    Move::ALL[(number.as_u64().expect("an action") - first) as usize]
}

#[test]
fn transition_tables() {
    let Some(cases) = super::fixtures::json_lines("frozenlake_gymnasium_tables.jsonl") else { return };
    for case in cases {
        let lake = lake(&case["desc"]);
        let rate = case["success_rate"].as_f64().expect("a rate");
        let rate = if case["slippery"] == json!(true) { rate } else { 1.0 };
        let table = case["P"].as_object().expect("a table");
        assert_eq!(table.len(), lake.cells());
        for (cell, row) in table {
            let cell: usize = cell.parse().expect("a cell");
            for (action, wanted) in row.as_object().expect("a row") {
                let way = Move::ALL[action.parse::<usize>().expect("an action")];
                let got: Vec<Value> = lake
                    .outcomes(cell, way, rate)
                    .iter()
                    .map(|o| {
                        let reward = if lake.tile(o.next) == Tile::Goal && !lake.ends_at(cell) { 1.0 } else { 0.0 };
                        json!([o.probability, o.next, reward, lake.ends_at(o.next)])
                    })
                    .collect();
                // The reference writes the reward of staying on an absorbing cell as the integer 0.
                let wanted: Vec<Value> = wanted
                    .as_array()
                    .expect("outcomes")
                    .iter()
                    .map(|o| json!([o[0].as_f64(), o[1], o[2].as_f64(), o[3]]))
                    .collect();
                assert_eq!(got, wanted, "map {} cell {cell} action {action}", case["map"]);
            }
        }
    }
}

#[test]
fn maps() {
    let Some(all) = super::fixtures::json("frozenlake_maps.json") else { return };
    for map_type in ["gymnasium", "ragen"] {
        let cases = all[map_type].as_array().expect("cases");
        assert!(!cases.is_empty());
        for case in cases {
            let config = json!({ "size": case["size"], "p": case["p"], "map_type": map_type });
            let config = FrozenLakeConfig::from_json(&config).expect("valid");
            let lake = Lake::generate(&config, case["seed"].as_u64().expect("a seed")).expect("a map");
            assert_eq!(json!(lake.map()), case["map"], "{map_type} {case}");
        }
    }
}

#[test]
fn reachability() {
    let Some(cases) = super::fixtures::json_lines("frozenlake_validity.jsonl") else { return };
    for case in cases {
        assert_eq!(json!(lake(&case["board"]).goal_is_reachable()), case["valid"], "{case}");
    }
}

#[test]
fn gymnasium_rollouts() {
    let Some(Value::Array(cases)) = super::fixtures::json("frozenlake_rollouts.json") else { return };
    assert!(!cases.is_empty());
    let map = Lake::from_map(&["SFFF", "FHFH", "FFFH", "HFFG"]).expect("a map");
    for case in cases {
        let mut env = FrozenLake::from_json(&json!({ "success_rate": 1.0 / 3.0 })).expect("valid");
        env.start_on(map.clone(), case["seed"].as_u64().expect("a seed"));
        let mut states = vec![env.player()];
        let mut rewards = Vec::new();
        for action in case["actions"].as_array().expect("actions") {
            let step = env.step(way(action, 0).name()).expect("a step");
            states.push(env.player());
            rewards.push(step.reward);
        }
        assert_eq!((json!(states), json!(rewards)), (case["states"].clone(), case["rewards"].clone()), "{case}");
    }
}

#[test]
fn ragen_episodes() {
    let Some(cases) = super::fixtures::json_lines("frozenlake_ragen.jsonl") else { return };
    for case in cases {
        let seed = case["seed"].as_u64().expect("a seed");
        let config = json!({ "is_slippery": case["slippery"], "success_rate": case["success_rate"] });
        let mut env = FrozenLake::from_json(&config).expect("valid");
        assert_eq!(env.reset(seed, Split::Train).expect("an instance"), case["obs"], "seed {seed}");
        assert_eq!(json!(env.lake().expect("a lake").map()), case["desc"], "seed {seed}");
        for (i, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let got = env.step(way(&step["a"], 1).name()).expect("a step");
            let got = json!({
                "a": step["a"],
                "obs": got.observation,
                "s": env.player(),
                "reward": got.reward as i64,
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
    let Some(Value::Array(cases)) = super::fixtures::json("frozenlake_ragen_gridcoord.json") else { return };
    assert!(!cases.is_empty());
    let mut env = FrozenLake::from_json(&json!({ "observation_format": "grid_coord" })).expect("valid");
    for case in cases {
        let observation = env.reset(case[0].as_u64().expect("a seed"), Split::Train).expect("an instance");
        assert_eq!(observation, case[1]);
    }
}
