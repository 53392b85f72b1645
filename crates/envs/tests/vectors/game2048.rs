//! 2048 against RAGEN's moves and games.

use ragen_envs::game2048::{Board, Direction, Game2048};
use ragen_envs::{Environment, Split};
use serde_json::{Value, json};

fn board(grid: &Value) -> Board {
    let rows: Vec<Vec<u64>> = serde_json::from_value(grid.clone()).expect("a grid");
    let tiles: [u64; 16] = rows.concat().try_into().expect("16 tiles");
    Board::from_tiles(&tiles).expect("powers of two")
}

fn grid(board: &Board) -> Value {
    board.tiles().chunks(4).map(<[u64]>::to_vec).collect()
}

fn direction(number: &Value) -> Direction {
    Direction::ALL[number.as_u64().expect("an action") as usize]
}

fn mask(board: &Board) -> Value {
    json!(Direction::ALL.map(|direction| board.slide(direction).moved))
}

#[test]
fn moves() {
    let Some(cases) = super::fixtures::json_lines("game2048_moves.jsonl") else { return };
    for case in cases {
        let slide = board(&case["grid"]).slide(direction(&case["a"]));
        assert_eq!(grid(&slide.board), case["after"], "{case}");
        assert_eq!((json!(slide.gain), json!(slide.moved)), (case["gain"].clone(), case["moved"].clone()), "{case}");
    }
}

/// Games recorded from their first step, played again draw for draw.
#[test]
fn games() {
    let Some(cases) = super::fixtures::json_lines("game2048_ragen.jsonl") else { return };
    let mut whole = 0;
    for case in cases.iter().filter(|case| case["steps"].as_array().map(Vec::len) == whole_length(case)) {
        whole += 1;
        let seed = case["seed"].as_u64().expect("a seed");
        let mut env = Game2048::from_json(&json!({ "compat": true })).expect("valid");
        let observation = env.reset(seed, Split::Train).expect("an instance");
        if let Some(first) = case["obs"].as_str() {
            assert_eq!(observation, first, "seed {seed}");
        }
        assert_eq!(grid(env.board().expect("a board")), case["grid"], "seed {seed}");
        for (i, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let got = env.step(direction(&step["a"]).name()).expect("a step");
            let after = env.board().expect("a board");
            let got = json!({
                "a": step["a"],
                "grid": grid(after),
                "reward": got.reward,
                "raw": got.info.extra["raw_reward"],
                "score": got.info.extra["score"] as u64,
                "done": got.terminated || got.truncated,
                "valid": got.info.action_is_valid,
                "mask": mask(after),
            });
            assert_eq!(&got, step, "seed {seed}, step {i}");
        }
        assert_eq!(env.render(), case["last_obs"], "seed {seed}");
    }
    assert!(whole > 0, "no game is recorded from its first step");
}

fn whole_length(case: &Value) -> Option<usize> {
    match case.get("nsteps").and_then(Value::as_u64) {
        Some(steps) => usize::try_from(steps).ok(),
        None => case["steps"].as_array().map(Vec::len),
    }
}

/// Of longer games the end is recorded: each step is checked on the board before it, up to the tile that appears.
#[test]
fn ends_of_games() {
    let Some(cases) = super::fixtures::json_lines("game2048_ragen.jsonl") else { return };
    for case in &cases {
        let steps = case["steps"].as_array().expect("steps");
        for pair in steps.windows(2) {
            let (before, step) = (board(&pair[0]["grid"]), &pair[1]);
            let mut env = Game2048::from_json(&json!({ "compat": true })).expect("valid");
            env.start_on(before, 0);
            let got = env.step(direction(&step["a"]).name()).expect("a step");
            assert_eq!(json!(got.reward), step["reward"], "{pair:?}");
            assert_eq!(json!(got.info.extra["raw_reward"]), step["raw"], "{pair:?}");
            assert_eq!(json!(got.info.action_is_valid), step["valid"], "{pair:?}");
            let after = board(&step["grid"]);
            let slide = before.slide(direction(&step["a"]));
            let appeared: Vec<usize> = (0..16).filter(|&i| slide.board.cells()[i] != after.cells()[i]).collect();
            assert_eq!(appeared.len(), usize::from(slide.moved), "{pair:?}");
            assert!(appeared.iter().all(|&i| slide.board.cells()[i] == 0 && after.cells()[i] <= 2), "{pair:?}");
            assert_eq!(mask(&after), step["mask"], "{pair:?}");
            assert_eq!(json!(after.moves().next().is_none()), step["done"], "{pair:?}");
        }
    }
}
