//! Runs from end to end: outcome, the same weights again, stopping and going on.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ran, arg, ragen};

/// Settings of a run of a few seconds.
const SMALL: [&str; 19] = [
    "bandit",
    "es_manager.train.env_groups=4",
    "es_manager.train.group_size=4",
    "es_manager.val.env_groups=8",
    "algorithm.adv_estimator=grpo",
    "warm_start.demonstrator=oracle",
    "warm_start.max_steps=24",
    "warm_start.lr=3e-3",
    "warm_start.lr_warmup_steps=5",
    "warm_start.batch_size=8",
    "warm_start.eval_every=12",
    "warm_start.eval_instances=4",
    "warm_start.target_success=0.9",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "actor_rollout_ref.rollout.response_length=24",
    "actor_rollout_ref.rollout.rollout_filter_include_zero=true",
    "trainer.total_training_steps=2",
    "trainer.save_freq=1",
    "trainer.test_freq=1",
];

fn train(folder: &Path, more: &[&str]) -> Ran {
    let folder = arg(folder);
    ragen(&[&["train"], &SMALL[..], &["--run-dir", &folder], more].concat())
}

fn summary(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn hash(folder: &Path) -> String {
    summary(folder)["weights_sha256"].as_str().unwrap().to_owned()
}

/// A finished run, made once for all tests that only look at it.
fn finished() -> &'static (tempfile::TempDir, PathBuf, String, String) {
    static RUN: std::sync::OnceLock<(tempfile::TempDir, PathBuf, String, String)> = std::sync::OnceLock::new();
    RUN.get_or_init(|| {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        let ran = train(&folder, &["--threads", "1"]);
        ran.done();
        (root, folder, ran.stdout, ran.stderr)
    })
}

#[test]
fn a_run_leaves_everything_behind() {
    let (_, folder, stdout, stderr) = finished();
    for text in ["after the warm start", "after training", "random", "oracle", "95 % interval", "sha256", "mismatch"] {
        assert!(stdout.contains(text), "no {text:?} in {stdout}");
    }
    for text in ["warm start", "iteration    2/2", "entropy", "grad norm", "tokens/s", "left"] {
        assert!(stderr.contains(text), "no {text:?} in {stderr}");
    }
    let summary = summary(folder);
    assert_eq!(summary["iterations"], 2);
    assert_eq!((&summary["success"]["n"], &summary["success_by_tag"]["BanditTest"]["n"]), (&4.into(), &4.into()));
    assert_eq!(summary["success"]["oracle"], 1.0);
    assert_eq!(summary["mismatch_max"], 0.0);
    let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    assert!(metrics.contains("\"step\":2") && metrics.contains("actor/grad_norm"));
    for name in ["config.yaml", "model/model.safetensors", "checkpoints/global_step_2/actor/state.safetensors"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
}

#[test]
fn a_run_that_ends_early_says_why() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("early");
    // A model that has learned nothing never answers: all returns are equal.
    let ran = train(
        &folder,
        &[
            "warm_start.enabled=false",
            "trainer.val_before_train=false",
            "trainer.total_training_steps=5",
            "actor_rollout_ref.rollout.response_length=4",
            "actor_rollout_ref.rollout.rollout_filter_include_zero=false",
            "actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=2",
        ],
    );
    let out = ran.done();
    assert!(out.contains("ended early") && out.contains("rollout_filter_empty_stop_steps"), "{out}");
    let early = summary(&folder);
    assert_eq!((&early["iterations"], &early["ended_early"]), (&2.into(), &"nothing_to_learn_from".into()));
    ragen(&["train", "--resume", "--run-dir", &arg(&folder)]).done();
    assert_eq!(summary(&folder)["iterations"], 2, "what has ended stays ended");
    let more = "actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=3";
    ragen(&["train", "--resume", "--run-dir", &arg(&folder), more]).done();
    assert_eq!(summary(&folder)["iterations"], 3, "unless its settings change");
    let (_, whole, ..) = finished();
    assert_eq!(summary(whole).get("ended_early"), None);
}

#[test]
fn a_second_run_with_other_threads_ends_at_the_same_weights() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("again");
    let out = train(&folder, &["--threads", "2", "--json"]).json();
    let (_, first, ..) = finished();
    assert_eq!(hash(&folder), hash(first));
    assert_eq!(out["weights_sha256"], hash(first).as_str());
    assert_eq!(out["status"], "finished");
    let other = root.path().join("other");
    train(&other, &["seed=1"]).done();
    assert_ne!(hash(&other), hash(first));
}

#[test]
fn a_run_that_was_stopped_goes_on_to_the_same_weights() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("stopped");
    let stopped = train(&folder, &["--stop-after", "0"]);
    assert!(stopped.done().contains("--resume --run-dir"), "{}", stopped.stdout);
    assert!(!folder.join("summary.json").exists());
    let place = arg(&folder);
    train(&folder, &[]).refused(&["interrupted", "--resume"]);
    let again = ragen(&["train", "--resume", "--run-dir", &place, "--stop-after", "1", "--json"]).json();
    assert_eq!((&again["status"], &again["iterations"]), (&"interrupted".into(), &1.into()));
    ragen(&["train", "trainer.resume_mode=auto", "--run-dir", &place]).done();
    assert_eq!(hash(&folder), hash(&finished().1));
    let as_model = format!("model_path={place}");
    ragen(&["train", &as_model]).refused(&["is the folder of a run", "/model`", "ragen export"]);
    // A model of a run can be used by the name of the run.
    let episodes = arg(&root.path().join("episodes.jsonl"));
    let eval = ragen(&["eval", &place, "es_manager.val.env_groups=4", "--json", "--episodes", &episodes]).json();
    let lines = std::fs::read_to_string(&episodes).unwrap();
    ragen(&["eval", &place, "--episodes", &episodes]).refused(&["--episodes", "episodes.jsonl", "exists"]);
    assert_eq!(std::fs::read_to_string(&episodes).unwrap(), lines, "nothing is written over");
    assert_eq!(lines.lines().filter(|line| line.starts_with('{') && line.ends_with('}')).count(), 4);
    assert_eq!((&eval["n"], &eval["by_tag"]["BanditTest"]["n"]), (&2.into(), &2.into()));
    assert_eq!(eval["baselines"]["oracle"]["success"], 1.0);
    let ids = ["--ids", "3,4,5", "--json"];
    let of_run = ragen(&[&["score", &place], &ids[..]].concat()).json();
    let checkpoint = arg(&folder.join("checkpoints/global_step_2"));
    assert_eq!(ragen(&[&["score", &checkpoint], &ids[..]].concat()).json(), of_run);
    assert_ne!(ragen(&[&["score", "tiny"], &ids[..]].concat()).json(), of_run);
}

/// The tiny model without its fourth layer, as a setting.
fn three_layers(root: &Path) -> String {
    let out = root.join("three");
    ragen(&["export", "tiny", &arg(&out)]).done();
    let path = out.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["num_hidden_layers"] = 3.into();
    std::fs::write(&path, config.to_string()).unwrap();
    format!("model_path={}", out.display())
}

#[test]
fn resuming_with_another_model_is_refused_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    let short = ["warm_start.max_steps=1", "warm_start.target_success=1", "--stop-after", "0"];
    train(&folder, &[&short[..], &[&three_layers(root.path())]].concat()).done();
    let before = std::fs::read(folder.join("config.yaml")).unwrap();
    let refused = ragen(&["train", "--resume", "--run-dir", &arg(&folder), "model_path=tiny"]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("`model_path`") && refused.stderr.contains("three"), "{}", refused.stderr);
    assert_eq!(std::fs::read(folder.join("config.yaml")).unwrap(), before);
    for (key, words) in [
        ("seed=1", ["`seed` is 1", "begun with 0"]),
        ("warm_start.lr=1e-3", ["`warm_start.lr`", "0.003"]),
        ("es_manager.train.seed=7", ["`es_manager.train.seed`", "10000"]),
    ] {
        let refused = ragen(&["train", "--resume", "--run-dir", &arg(&folder), key]);
        assert_eq!(refused.status, 2, "{}", refused.stderr);
        assert!(words.iter().all(|word| refused.stderr.contains(word)), "{}", refused.stderr);
    }
    ragen(&["train", "frozen_lake", "--resume", "--run-dir", &arg(&folder)]).refused(&[
        "`frozen_lake` plays FrozenLake",
        "plays Bandit",
        "--run-dir",
    ]);
    assert_eq!(std::fs::read(folder.join("config.yaml")).unwrap(), before);
    // Left as it was, it still goes on; a task that is named beside it only says which run is meant.
    let named = ragen(&["train", "bandit", "--resume", "--run-dir", &arg(&folder), "--stop-after", "0"]);
    named.done();
    assert!(
        named.stderr.contains("its own settings") && named.stderr.contains("warm_start.max_steps"),
        "{}",
        named.stderr
    );
    ragen(&["train", "--resume", "--run-dir", &arg(&folder), "--stop-after", "0"]).done();
}

#[test]
fn a_finished_run_tells_the_same_again_and_an_earlier_stop_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    train(&folder, &[]).done();
    let (place, first) = (arg(&folder), summary(&folder));
    let rows = |text: &str| text.lines().take_while(|line| !line.contains("wall time")).collect::<Vec<_>>().join("\n");
    let again = ragen(&["train", "--resume", "--run-dir", &place]);
    assert_eq!(rows(again.done()), rows(&finished().2));
    assert!(again.stdout.contains("BanditTest (not trained on)"), "{}", again.stdout);
    assert_eq!(summary(&folder), first);
    // Asked to stop where it has been long ago, it plays nothing more.
    let more = ["trainer.total_training_steps=4", "--stop-after", "1", "--json"];
    let stopped = ragen(&[&["train", "--resume", "--run-dir", &place], &more[..]].concat()).json();
    assert_eq!((&stopped["status"], &stopped["iterations"]), (&"interrupted".into(), &2.into()));
}

#[test]
fn a_run_that_diverges_ends_with_an_error_and_keeps_its_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    train(&folder, &["--stop-after", "0"]).done();
    let lr = "actor_rollout_ref.actor.optim.lr=1e38";
    let ran = ragen(&[
        "train",
        "--resume",
        "--run-dir",
        &arg(&folder),
        lr,
        "actor_rollout_ref.actor.optim.lr_warmup_steps=0",
    ]);
    assert_eq!(ran.status, 1, "{}{}", ran.stdout, ran.stderr);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.contains("no longer finite") && last.contains("learning rate") && last.contains("--resume"), "{last}");
    let lr = "actor_rollout_ref.actor.optim.lr=1e-4";
    ragen(&["train", "--resume", "--run-dir", &arg(&folder), lr]).done();
    // The same in the warm start, of which nothing is kept.
    let warm = root.path().join("warm");
    let ran = train(&warm, &["warm_start.lr=1e38", "warm_start.lr_warmup_steps=0"]);
    assert_eq!(ran.status, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("no longer finite") && !warm.join("model").exists(), "{}", ran.stderr);
}

#[test]
fn the_plain_command_can_be_repeated() {
    let root = tempfile::tempdir().unwrap();
    let logs = format!("trainer.local_log_dir={}", root.path().display());
    let start = |command: &str| {
        let more = [&logs, "warm_start.max_steps=1", "warm_start.target_success=1", "--json"];
        ragen(&[&[command], &SMALL[..], &more[..]].concat()).json()["run_dir"].as_str().unwrap().to_owned()
    };
    assert!(start("warm-start").ends_with("bandit-warm-start"));
    let second = start("warm-start");
    assert!(second.ends_with("bandit-warm-start-2"));
    assert!(Path::new(&second).join("model/tokenizer.json").is_file());
    assert_eq!(summary(Path::new(&second))["iterations"], 0);
}

/// Starts a run and waits until `sign` is in its folder.
#[cfg(unix)]
fn begin(folder: &Path, sign: &str, more: &[&str]) -> std::process::Child {
    use std::process::{Command, Stdio};
    let place = arg(folder);
    let run_dir = ["--run-dir", &place];
    let child = Command::new(env!("CARGO_BIN_EXE_ragen"))
        .args([&["train"], &SMALL[..], &run_dir, more].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !folder.join(sign).exists() {
        assert!(std::time::Instant::now() < deadline, "no {sign}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_in_good_order() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    let child = begin(&folder, "checkpoints/global_step_1", &["trainer.total_training_steps=100000"]);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("interrupted after iteration"), "{stdout}");
    assert!(!folder.join("summary.json").exists());
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_kills() {
    let root = tempfile::tempdir().unwrap();
    // A step of many demonstrations is under way when both interrupts come.
    let child = begin(&root.path().join("run"), "config.yaml", &["warm_start.batch_size=100000"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    interrupt(&child);
    std::thread::sleep(std::time::Duration::from_millis(300));
    interrupt(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

#[cfg(unix)]
#[test]
fn a_run_that_was_killed_goes_on_to_the_same_weights() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    let mut child = begin(&folder, "checkpoints/global_step_1", &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    ragen(&["train", "--resume", "--run-dir", &arg(&folder)]).done();
    assert_eq!(hash(&folder), hash(&finished().1));
    // A line for every iteration, each once.
    let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let iterations = metrics.lines().filter(|line| line.contains("\"timing_s/step\"")).count();
    assert_eq!(iterations, 2, "{metrics}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_the_warm_start_changes_nothing_about_the_outcome() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    let child = begin(&folder, "config.yaml", &[]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupt(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    ragen(&["train", "--resume", "--run-dir", &arg(&folder)]).done();
    assert_eq!(hash(&folder), hash(&finished().1));
    assert_eq!(summary(&folder)["warm_start_steps"], 24);
}
