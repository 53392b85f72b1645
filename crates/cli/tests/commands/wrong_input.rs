//! Wrong input ends with status 2 and one paragraph that says what to do, and leaves nothing behind.

use crate::support::{Ran, arg, ragen};

/// A training run that must not get as far as making its folder.
#[track_caller]
fn train(arguments: &[&str]) -> Ran {
    let root = tempfile::tempdir().unwrap();
    let logs = format!("trainer.local_log_dir={}/runs", root.path().display());
    let mut all = vec!["train"];
    all.extend(arguments);
    all.push(&logs);
    let ran = ragen(&all);
    assert!(!root.path().join("runs").exists(), "a folder was left behind");
    ran
}

#[test]
fn a_missing_model() {
    train(&["model_path=models/nowhere"]).refused(&["models/nowhere", "does not exist", "tiny", "GGUF"]);
    for command in [["generate", "nowhere", "--prompt", "x"], ["score", "nowhere", "--text", "x"]] {
        ragen(&command).refused(&["`nowhere`", "expected", "tiny"]);
    }
    ragen(&["export", "nowhere", "/tmp/ragen-test-never-written"]).refused(&["`nowhere`"]);
    ragen(&["eval", "nowhere"]).refused(&["`nowhere`"]);
}

#[test]
fn unknown_names_come_with_the_nearest_known_one() {
    train(&["sokobann"]).refused(&["sokobann", "did you mean `sokoban`?"]);
    train(&["trainer.total_trainin_steps=3"])
        .refused(&["trainer.total_trainin_steps", "`trainer.total_training_steps`"]);
    train(&["es_manager.train.env_configs.tags=[SimpleSokobann]"]).refused(&["did you mean `SimpleSokoban`?"]);
    ragen(&["play", "FrozenLak"]).refused(&["did you mean `FrozenLake`?"]);
    ragen(&["envs", "check", "Bandi"]).refused(&["did you mean `Bandit`?"]);
    ragen(&["train", "sokoban", "bandit"]).refused(&["unexpected argument `bandit`", "section.key=value"]);
}

#[test]
fn keys_that_resemble_nothing_and_keys_with_dots() {
    train(&["foo=1"]).refused(&["unknown key `foo`", "seed, model_path", "configs/base.yaml"]);
    train(&["seed={}"]).refused(&["`seed`", "expected"]);
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("mine.yaml");
    std::fs::write(&path, "trainer.total_training_steps: 3\n").unwrap();
    train(&[&arg(&path)]).refused(&[
        "mine.yaml",
        "sections are nested",
        "`total_training_steps` indented below `trainer`",
    ]);
}

#[test]
fn environments_that_cannot_be_played() {
    train(&["custom_envs.Mine.env_type=sokobann"]).refused(&["`sokobann`", "did you mean `sokoban`?"]);
    train(&["custom_envs.Mine.max_tokens=9"]).refused(&["Mine"]);
}

#[test]
fn a_folder_with_something_else_in_it() {
    let root = tempfile::tempdir().unwrap();
    for name in ["rollouts", "model", "checkpoints/global_step_3", "summary.json", "tensorboard"] {
        let folder = root.path().join(name.replace('/', "-"));
        let inside = folder.join(name);
        std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
        std::fs::write(&inside, "mine").unwrap();
        let first = name.split('/').next().unwrap();
        ragen(&["train", "--run-dir", &arg(&folder)]).refused(&[&format!("`{first}`"), "write over", "empty folder"]);
        assert_eq!(std::fs::read_to_string(&inside).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing was left in it");
    }
}

#[test]
fn values_that_make_no_sense() {
    train(&["trainer.total_training_steps=-5"]).refused(&["trainer.total_training_steps", "at least 0", "-5"]);
    train(&["es_manager.train.group_size=1"]).refused(&["`es_manager.train.group_size` is 1", "grpo", "at least 2"]);
    train(&["agent_proxy.max_context_window=3"]).refused(&["max_context_window", "no effect", "single_turn"]);
    train(&["actor_rollout_ref.rollout.max_model_len=100000"]).refused(&["100000", "2048"]);
    train(&["es_manager.val.env_groups=1000000000000"]).refused(&["es_manager.val.env_groups", "at most"]);
    train(&["agent_proxy.max_turn=1000000000000"]).refused(&["agent_proxy.max_turn", "at most"]);
    train(&["warm_start.batch_size=1000000000000"]).refused(&["warm_start.batch_size", "at most"]);
    for key in ["actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.actor.entropy_coeff", "warm_start.lr"] {
        train(&[&format!("{key}=1e39")]).refused(&[key, "single precision"]);
    }
    train(&["es_manager.format_penalty=-1e39"]).refused(&["es_manager.format_penalty", "single precision"]);
    train(&["actor_rollout_ref.rollout.temperature=1e-45"]).refused(&["rollout.temperature", "1e-4"]);
    train(&["actor_rollout_ref.rollout.val_kwargs.temperature=1e-45"]).refused(&["val_kwargs.temperature", "1e-4"]);
    train(&["trainer.threads=1000000"]).refused(&["1000000 threads", "at most"]);
    ragen(&["generate", "tiny", "--prompt", "x", "--temperature", "-1"]).refused(&["--temperature", "-1"]);
    ragen(&["generate", "tiny", "--prompt", "x", "--top-p", "0"]).refused(&["--top-p", "found 0"]);
    ragen(&["score", "tiny", "--ids", "1,999999"]).refused(&["999999", "512"]);
    ragen(&["score", "tiny", "--ids", "1"]).refused(&["at least 2"]);
    ragen(&["bench", "train-step", "--len", "100000"]).refused(&["100000", "2048"]);
    ragen(&["bench", "gemm", "--rows", "18446744073709551615"]).refused(&["--rows"]);
    let long = "Up ".repeat(5000);
    ragen(&["generate", "tiny", "--prompt", &long]).refused(&["the prompt has", "2048", "shorten"]);
    ragen(&["score", "tiny", "--text", &long]).refused(&["2048"]);
}

#[test]
fn broken_yaml() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("mine.yaml");
    for (text, words) in [
        ("trainer: [1, 2\nseed: {", vec!["mine.yaml", "line"]),
        ("trainer: 5\n", vec!["`trainer`", "mine.yaml", "expected"]),
        ("seed: many\n", vec!["`seed`", "mine.yaml", "many"]),
        ("seed: 1\nseed: 2\n", vec!["mine.yaml", "line 2", "`seed` is set twice"]),
        ("warm_start:\n  lr: .nan\n", vec!["mine.yaml", "line 2", "expected a finite number, found .nan"]),
        ("trainer:\n  save_frequency: 3\n", vec!["trainer.save_frequency", "mine.yaml"]),
    ] {
        std::fs::write(&path, text).unwrap();
        train(&[&arg(&path)]).refused(&words);
    }
    std::fs::write(&path, b"seed: \xff\xfe").unwrap();
    train(&[&arg(&path)]).refused(&["mine.yaml"]);
    train(&[&arg(&root.path().join("other.yaml"))]).refused(&["other.yaml"]);
}

#[test]
fn usage_errors_have_status_2_as_well() {
    for arguments in [vec!["score", "tiny"], vec!["no-such-command"], vec!["train", "--threads", "-1"], vec![]] {
        assert_eq!(ragen(&arguments).status, 2, "{arguments:?}");
    }
    for bench in ["iteration", "train-step", "rl-step", "score"] {
        let ran = ragen(&["bench", bench, "--steps", "0"]);
        assert!(ran.status == 2 && ran.stderr.contains("--steps"), "{}", ran.stderr);
    }
    assert!(ragen(&["train", "--help"]).done().contains("Ctrl-C"));
}

#[test]
fn nothing_to_resume() {
    let root = tempfile::tempdir().unwrap();
    let folder = arg(&root.path().join("run"));
    ragen(&["train", "--resume", "--run-dir", &folder]).refused(&["nothing to resume", &folder, "--resume"]);
    assert!(!root.path().join("run").exists());
}

#[test]
fn a_folder_that_cannot_be_made() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inside = arg(&file.join("run"));
    ragen(&["train", "--run-dir", &inside]).refused(&["file", "--run-dir"]);
    ragen(&["eval", "tiny", "es_manager.val.env_groups=1", "--episodes", &inside]).refused(&["--episodes", "file"]);
}
