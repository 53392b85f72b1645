//! Equality to the bit, seen from outside: recorded against recomputed, threads, instruction sets, memory.

use std::path::Path;

use serde_json::Value;

use crate::support::{arg, ragen};

/// Several turns of 6×6 Sokoban with the tiny model, everything verified, every group kept: three iterations of a second
/// or two.
const RUN: [&str; 21] = [
    "train",
    "sokoban",
    "trainer.verify=full",
    "trainer.total_training_steps=3",
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
    "trainer.save_freq=-1",
    "trainer.log_rollouts=-1",
    "es_manager.train.env_groups=3",
    "es_manager.train.group_size=4",
    "es_manager.val.env_groups=1",
    "warm_start.max_steps=4",
    "warm_start.batch_size=8",
    "warm_start.target_success=1",
    "agent_proxy.max_turn=3",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "critic.ppo_mini_batch_size=4",
    "actor_rollout_ref.rollout.response_length=24",
    "actor_rollout_ref.rollout.rollout_filter_include_zero=true",
    "actor_rollout_ref.rollout.rollout_filter_value=1.0",
    "--run-dir",
];

/// Activations computed again in the backward pass.
const ALWAYS: &str = "actor_rollout_ref.actor.activation_checkpointing=always";

/// A context in which an episode of three turns finds no room.
const SHORT: &str = "actor_rollout_ref.rollout.max_model_len=170";

/// The summary of a run that has verified every token, after checking that it has.
fn summary(folder: &Path, more: &[&str]) -> Value {
    summary_of(3, folder, more)
}

/// The same for a run of so many iterations.
fn summary_of(iterations: usize, folder: &Path, more: &[&str]) -> Value {
    let folder_arg = arg(folder);
    ragen(&[&RUN[..], &[&folder_arg], more].concat()).done();
    let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let of_rollouts = metrics.lines().filter(|line| line.contains("\"rollout/mismatch_max\":0.0")).count();
    let of_updates = metrics.lines().filter(|line| line.contains("\"actor/mismatch_max\":0.0")).count();
    assert_eq!((of_rollouts, of_updates), (iterations, iterations), "every iteration is verified and exact: {metrics}");
    let text = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["mismatch_max"], 0.0);
    summary
}

#[test]
fn nothing_but_the_algorithm_changes_the_weights() {
    let root = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &[&str]| summary(&root.path().join(name), more)["weights_sha256"].clone();
    for (estimator, limit) in [("grpo", "0.2"), ("gae", "0.4")] {
        let setting = format!("algorithm.adv_estimator={estimator}");
        let memory = format!("actor_rollout_ref.actor.memory_limit_gib={limit}");
        let one = run(&format!("{estimator}-1"), &[&setting, "--threads", "1"]);
        let two = run(&format!("{estimator}-2"), &[&setting, "--threads", "2"]);
        let tight = run(&format!("{estimator}-tight"), &[&setting, "--threads", "2", &memory, ALWAYS]);
        assert_eq!(one, two, "{estimator}: threads");
        assert_eq!(one, tight, "{estimator}: activations computed again under a memory limit");
    }
}

/// The largest value of a metric over the iterations of a run.
fn largest(folder: &Path, name: &str) -> f64 {
    let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let lines = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| find(&line, name)).fold(0.0, f64::max)
}

/// The number under `name` in a record, wherever it lies.
fn find(record: &Value, name: &str) -> Option<f64> {
    let fields = record.as_object()?;
    fields.get(name).and_then(Value::as_f64).or_else(|| fields.values().find_map(|inner| find(inner, name)))
}

#[test]
fn every_context_mode_is_exact_on_any_number_of_threads() {
    let root = tempfile::tempdir().unwrap();
    let mut weights = std::collections::BTreeSet::new();
    for (name, settings) in [
        ("limited", vec!["agent_proxy.context_window_mode=limited_multi_turn", "agent_proxy.max_context_window=2"]),
        ("single", vec!["agent_proxy.context_window_mode=single_turn", "algorithm.adv_estimator=gae"]),
        ("dropping", vec!["agent_proxy.context_overflow=drop_oldest_turns", SHORT]),
        ("truncating", vec![SHORT]),
    ] {
        let run = |threads: &str| {
            let folder = root.path().join(format!("{name}-{threads}"));
            let more = [&settings[..], &["trainer.total_training_steps=2", "--threads", threads]].concat();
            (summary_of(2, &folder, &more)["weights_sha256"].clone(), folder)
        };
        let ((one, folder), (two, _)) = (run("1"), run("2"));
        assert_eq!(one, two, "{name}: threads");
        // Twelve episodes, not all of them of a single turn; one sample each only where contexts never leave
        // anything out.
        let samples = largest(&folder, "train/rollout/samples");
        assert_eq!(samples > 12.0, name != "truncating", "{name}: {samples} samples");
        assert_eq!(largest(&folder, "train/batch_size"), samples, "{name}: all groups are kept");
        assert_eq!(largest(&folder, "train/rollout/context_dropped_turns") > 0.0, name == "dropping");
        assert_eq!(largest(&folder, "train/rollout/context_truncated") > 0.0, name == "truncating");
        weights.insert(one.to_string());
    }
    assert_eq!(weights.len(), 4, "the modes train differently");
}

#[test]
fn a_memory_limit_that_nothing_fits_is_refused_with_what_would_do() {
    let root = tempfile::tempdir().unwrap();
    let folder = arg(&root.path().join("run"));
    let arguments = [&RUN[..], &[&folder, "actor_rollout_ref.actor.memory_limit_gib=0.01"]].concat();
    ragen(&arguments).refused(&["memory_limit_gib", "at least", "GiB"]);
    assert!(!root.path().join("run").exists(), "nothing is left behind");
}
