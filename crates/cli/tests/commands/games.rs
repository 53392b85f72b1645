//! Environments from the command line: lists, checks, games by hand.

use crate::support::{ragen, ragen_reading};

#[test]
fn environments_are_listed_and_checked() {
    let list = ragen(&["envs", "list", "--json"]).json();
    let tags: Vec<&str> = list.as_array().unwrap().iter().map(|t| t["tag"].as_str().unwrap()).collect();
    assert!(["SimpleSokoban", "FrozenLake", "Bandit"].iter().all(|tag| tags.contains(tag)));
    let table = ragen(&["envs", "list"]);
    assert!(tags.iter().all(|tag| table.done().contains(tag)));

    let checked = ragen(&["envs", "check", "Bandit", "--json"]).json();
    assert_eq!(checked[0]["ok"], true);
    let (random, oracle) =
        (checked[0]["random_success"].as_f64().unwrap(), checked[0]["oracle_success"].as_f64().unwrap());
    assert!((0.4..0.6).contains(&random) && oracle == 1.0, "{random} {oracle}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let list = ["envs", "list"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ragen")).args(list).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: cannot write"));
}

#[test]
fn a_game_by_hand() {
    // By letter and by name, several at once, a word that is no action, the rules, the end.
    let game = ragen_reading("zzz\na\nDOWN || left\n?\nquit\n", &["play", "SimpleSokoban", "--seed", "3"]);
    let shown = game.done();
    for text in ["no action `zzz`", "→ Up,", "→ Down,", "→ Left,", "P player", "not finished after 3 of 10 actions"]
    {
        assert!(shown.contains(text), "no {text:?} in {shown}");
    }
    // The input may end at any time.
    assert!(ragen(&["play", "SimpleSokoban"]).done().contains("not finished after 0"));
    // Actions beyond the budget are not taken.
    let many = format!("{}\n", ["Up"; 20].join("||"));
    assert!(ragen_reading(&many, &["play", "SimpleSokoban"]).done().contains("no actions left after 10 of 10"));
}

#[test]
fn watching() {
    for seed in ["1", "2", "3"] {
        assert!(ragen(&["play", "SimpleSokoban", "--oracle", "--seed", seed]).done().contains("solved after"));
    }
    let random = ragen(&["play", "Bandit", "--random"]);
    assert!(random.done().contains("after 1 of 1 actions"));
    let model = ragen(&[
        "play",
        "Bandit",
        "--model",
        "tiny",
        "actor_rollout_ref.rollout.response_length=8",
        "agent_proxy.max_turn=2",
    ]);
    assert!(model.done().contains("--- turn 2") && model.done().contains("turn limit after 0 of 1 actions"));
}
