//! Environments in other processes and on servers, from the command line.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::{ragen, ragen_reading};

const RAGEN: &str = env!("CARGO_BIN_EXE_ragen");

/// What is on the board in the course of a game.
fn boards(shown: &str) -> Vec<&str> {
    shown.lines().filter(|line| line.starts_with('#') && line.ends_with('#')).collect()
}

#[test]
fn a_game_in_another_process() {
    let far = format!(
        "custom_envs.Far={{env_type: external, max_actions_per_traj: 10, max_tokens: 100, env_config: {{command: [{RAGEN}, envs, serve, \
         SimpleSokoban, --stdio], config: {{dim_x: 7}}}}}}"
    );
    let near = "custom_envs.SimpleSokoban={env_config: {dim_x: 7}}";
    for player in ["--oracle", "--random"] {
        let there = ragen(&["play", "Far", &far, player, "--seed", "7"]);
        let here = ragen(&["play", "SimpleSokoban", near, player, "--seed", "7"]);
        assert_eq!(boards(there.done()), boards(here.done()));
        assert!(boards(here.done()).len() >= 14);
        assert_eq!(there.stderr, "", "a process in good order says nothing");
    }
    let wrong = far.replace("dim_x: 7", "dim_xx: 7");
    ragen(&["play", "Far", &wrong]).refused(&["unknown setting `dim_xx`", "did you mean `dim_x`?"]);
    ragen(&["play", "Far", "custom_envs.Far={env_type: external, max_actions_per_traj: 10, max_tokens: 100}"])
        .refused(&["`command`"]);
    let nothing = "custom_envs.Far={env_type: external, max_actions_per_traj: 10, max_tokens: 100, env_config: {command: [/no/such/program]}}";
    ragen(&["play", "Far", nothing]).refused(&["cannot start `/no/such/program`"]);
}

/// Ends the server with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_game_on_a_server() {
    let mut child = Command::new(RAGEN)
        .args(["envs", "serve", "SimpleSokoban", "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _served = Served(child);
    let url = line.trim().rsplit(' ').next().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{line}");
    let far = format!(
        "custom_envs.Far={{env_type: openenv, max_actions_per_traj: 10, max_tokens: 100, env_config: {{url: \"{url}\"}}}}"
    );
    let moves = "Down || left\nUP\nquit\n";
    let there = ragen_reading(moves, &["play", "Far", &far, "--seed", "123"]);
    let here = ragen_reading(moves, &["play", "SimpleSokoban", "--seed", "123"]);
    assert_eq!(boards(there.done()), boards(here.done()));
    assert!(here.done().contains("solved after 3") && there.done().contains("solved after 3"));
    ragen(&["play", "Far", &far.replace("http:", "https:")]).refused(&["TLS is not spoken"]);
}
