//! Studies and the guard from end to end.

use std::path::Path;

use serde_json::Value;

use crate::support::{arg, ragen};

/// Settings of a run of a few seconds.
const SMALL: [&str; 12] = [
    "es_manager.train.env_groups=4",
    "es_manager.train.group_size=4",
    "es_manager.val.env_groups=8",
    "warm_start.max_steps=2",
    "warm_start.target_success=1",
    "warm_start.batch_size=8",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "actor_rollout_ref.rollout.response_length=24",
    "actor_rollout_ref.rollout.rollout_filter_value=1",
    "actor_rollout_ref.rollout.rollout_filter_include_zero=true",
    "trainer.save_freq=1",
    "trainer.test_freq=1",
];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn hash(folder: &Path) -> String {
    let summary: Value = serde_json::from_str(&read(&folder.join("summary.json"))).unwrap();
    summary["weights_sha256"].as_str().unwrap().to_owned()
}

/// The events of a run without their times.
fn events(folder: &Path) -> Vec<Value> {
    let strip = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        event.as_object_mut().unwrap().shift_remove("time");
        event
    };
    read(&folder.join("events.jsonl")).lines().map(strip).collect()
}

#[test]
fn a_study_runs_skips_what_is_done_and_reports() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("study.yaml");
    let overrides: String = SMALL.iter().map(|o| format!("  - {o}\n")).collect();
    std::fs::write(
        &file,
        format!(
            "name: small\ntask: bandit\nseeds: [1]\nwarm_start: shared\nparallel: 2\nthreads: 1\noverrides:\n{overrides}\
             \x20 - trainer.total_training_steps=2\n  - actor_rollout_ref.actor.entropy_coeff=0.1\narms:\n  - name: plain\n  - name: fast\n    overrides: \
             [actor_rollout_ref.actor.optim.lr=1e-3]\n"
        ),
    )
    .unwrap();
    let (file, out) = (arg(&file), root.path().join("out"));
    let place = arg(&out);
    let planned = ragen(&["study", &file, "--out", &place, "--dry-run"]);
    assert_eq!(planned.done().lines().count(), 3, "{}", planned.stdout);
    assert!(!out.exists());
    ragen(&["study", &file, "--out", &place, "--report"]).refused(&["holds no run"]);

    let first = ragen(&["study", &file, "--out", &place]);
    assert!(first.done().contains("| fast | 1/1 |"), "{}{}", first.stdout, first.stderr);
    let table = read(&out.join("results.md"));
    assert!(table.contains("| plain | 1 |") && read(&out.join("curves.svg")).starts_with("<svg"));
    assert_ne!(hash(&out.join("plain/seed_1")), hash(&out.join("fast/seed_1")));

    // One run is lost, one is finished: only the lost one is run again, to the same weights.
    let before = hash(&out.join("fast/seed_1"));
    std::fs::remove_dir_all(out.join("fast")).unwrap();
    let second = ragen(&["study", &file, "--out", &place, "--json"]);
    assert_eq!(second.json()["arms"][1]["runs"][0]["finished"], true);
    assert_eq!(second.stderr.matches("finished before").count(), 2, "{}", second.stderr);
    assert_eq!(hash(&out.join("fast/seed_1")), before);

    // Other settings under the same names are not mixed with what is there.
    let changed = read(Path::new(&file)).replace("lr=1e-3", "lr=2e-3");
    std::fs::write(&file, changed).unwrap();
    let refused = ragen(&["study", &file, "--out", &place]);
    assert!(refused.status == 1 && refused.stderr.contains("made with other settings"), "{}", refused.stderr);
}

#[test]
fn a_guard_that_acts_is_resumed_to_the_same_weights_and_events() {
    let root = tempfile::tempdir().unwrap();
    // So touchy that it climbs its whole ladder within a few iterations.
    let touchy = [
        "bandit",
        "trainer.total_training_steps=7",
        "guard.mode=act",
        "guard.warmup=1",
        "guard.patience=1",
        "guard.quorum=1",
        "guard.rung_wait=1",
        "guard.snapshot_every=1",
        "guard.signals.grad_norm_factor=1.0001",
        "guard.signals.entropy_burst_factor=1.0001",
        "guard.signals.entropy_crash_share=1",
        "guard.ladder=[lr, kl, rollback]",
        // The entropy moves whether or not any group has something to compare.
        "actor_rollout_ref.actor.entropy_coeff=0.1",
        "actor_rollout_ref.actor.optim.lr=1e-3",
    ];
    let run = |folder: &Path, more: &[&str]| {
        let place = arg(folder);
        ragen(&[&["train", "--run-dir", &place], &touchy[..], &SMALL[..], more].concat())
    };
    let (whole, cut) = (root.path().join("whole"), root.path().join("cut"));
    let ran = run(&whole, &[]);
    ran.done();
    let seen = events(&whole);
    let done: Vec<&str> = seen.iter().filter_map(|e| e["action"].as_str()).collect();
    assert!(done.contains(&"lr") && done.contains(&"rollback"), "{seen:?}");
    assert!(ran.stderr.contains("guard after iteration") && ran.stderr.contains("intervention: "), "{}", ran.stderr);
    let summary: Value = serde_json::from_str(&read(&whole.join("summary.json"))).unwrap();
    assert!(summary["guard"]["rollbacks"].as_u64().unwrap() >= 1);
    run(&cut, &["--stop-after", "4"]).done();
    ragen(&["train", "--resume", "--run-dir", &arg(&cut)]).done();
    assert_eq!(hash(&cut), hash(&whole));
    assert_eq!(events(&cut), seen);
}

#[test]
fn every_estimator_trains() {
    let root = tempfile::tempdir().unwrap();
    for (name, more) in [
        ("gigpo", vec![]),
        ("turn_level", vec!["reasoning_reward.agreement=0.5", "collapse_detection.compute_freq=1"]),
        ("remax", vec!["actor_rollout_ref.rollout.rollout_filter_replace_budget=3"]),
        ("optimal_token_baseline", vec!["trainer.gradient_analysis_mode=true"]),
        ("gae", vec!["algorithm.bi_level_gae=true", "actor_rollout_ref.actor.entropy_band.enable=true"]),
    ] {
        let (folder, estimator) = (root.path().join(name), format!("algorithm.adv_estimator={name}"));
        let place = arg(&folder);
        let fixed = ["train", "frozen_lake", "--run-dir", &place, &estimator, "trainer.total_training_steps=1"];
        ragen(&[&fixed[..], &SMALL[..], &more[..]].concat()).done();
        let metrics = read(&folder.join("metrics.jsonl"));
        let expected = match name {
            "turn_level" => "shaping/agreement",
            "remax" => "rollout/replaced_groups",
            "optimal_token_baseline" => "grad_norm/all/task",
            _ => "actor/ratio_max",
        };
        assert!(metrics.contains(expected), "{name}: no {expected} in {metrics}");
    }
}
