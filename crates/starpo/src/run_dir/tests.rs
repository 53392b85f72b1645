use std::fs;

use serde_json::{Map, Value, json};

use super::*;
use crate::metrics::Metrics;

fn new_run() -> (tempfile::TempDir, PathBuf, RunDir) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("runs/a");
    let run = RunDir::create(&path, &Config::default()).unwrap();
    (root, path, run)
}

fn loss(value: f64) -> Metrics {
    [("loss".to_string(), value)].into_iter().collect()
}

fn fill(text: &'static str) -> impl FnOnce(&Path) -> std::io::Result<()> {
    move |dir| {
        fs::create_dir(dir.join("actor"))?;
        fs::write(dir.join("actor/weights"), text)?;
        fs::write(dir.join("state.json"), "{}")
    }
}

fn steps(run: &RunDir) -> Vec<u64> {
    run.checkpoints().unwrap().iter().map(|checkpoint| checkpoint.step).collect()
}

#[test]
fn a_run_is_never_overwritten() {
    let (_root, path, run) = new_run();
    assert_eq!(RunDir::state_of(&path).unwrap(), Some(RunState::Running));
    assert!(matches!(RunDir::create(&path, &Config::default()), Err(RunDirError::Running { .. })));
    assert!(matches!(RunDir::open(&path), Err(RunDirError::Running { .. })));
    drop(run);
    let interrupted = RunDir::create(&path, &Config::default()).unwrap_err().to_string();
    assert!(interrupted.contains("holds a run already (interrupted): resume it"), "{interrupted}");
    let run = RunDir::open(&path).unwrap();
    run.write_summary(&json!({"success": 0.5})).unwrap();
    drop(run);
    assert_eq!(RunDir::state_of(&path).unwrap(), Some(RunState::Finished));
    let finished = RunDir::create(&path, &Config::default()).unwrap_err().to_string();
    assert!(finished.contains("(finished)"), "{finished}");
    let summary: Value = RunDir::view(&path).unwrap().read_summary().unwrap().unwrap();
    assert_eq!(summary["success"], 0.5);
}

#[test]
fn an_empty_folder_may_become_a_run_and_other_folders_hold_none() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(RunDir::open(root.path()), Err(RunDirError::NotARun { .. })));
    assert!(matches!(RunDir::view(root.path()), Err(RunDirError::NotARun { .. })));
    assert_eq!(RunDir::state_of(root.path()).unwrap(), None);
    RunDir::create(root.path(), &Config::default()).unwrap();
}

#[test]
fn the_configuration_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let mut config = Config { seed: 99, ..Config::default() };
    config.trainer.experiment_name = "yes: no # 1".into();
    let run = RunDir::create(root.path(), &config).unwrap();
    assert_eq!(run.read_config().unwrap(), config);
}

#[test]
fn a_configuration_cut_short_is_not_filled_up_with_defaults() {
    let (_root, path, run) = new_run();
    for text in ["", "seed: 1\n"] {
        fs::write(path.join("config.yaml"), text).unwrap();
        let error = run.read_config().unwrap_err().to_string();
        assert!(error.contains("config.yaml") && error.contains("lacks") && error.contains("trainer"), "{error}");
    }
}

#[test]
fn metrics_after_the_checkpoint_move_aside() {
    let (_root, path, run) = new_run();
    for step in 1..=4 {
        run.append_metrics(step, &loss(step as f64)).unwrap();
    }
    let file = path.join("metrics.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.clone() + "{\"step\":5,\"lo").unwrap();
    assert_eq!(run.read_metrics().unwrap().len(), 4, "a torn last line is no data");
    run.rewind(2).unwrap();
    run.append_metrics(3, &loss(30.0)).unwrap();
    let read = run.read_metrics().unwrap();
    assert_eq!(read.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(read[2].1.get("loss"), Some(30.0));
    let discarded = fs::read_to_string(path.join("metrics.discarded.jsonl")).unwrap();
    assert_eq!(discarded.lines().count(), 3);
    assert!(discarded.contains("{\"step\":4,\"loss\":4.0}") && discarded.ends_with("\"lo\n"));
    assert_eq!(run.truncate_metrics(3).unwrap(), 0, "nothing left to do");
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_number() {
    let (_root, path, run) = new_run();
    fs::write(path.join("metrics.jsonl"), "{\"step\":1}\nnonsense\n{\"step\":2}\n").unwrap();
    assert!(matches!(run.read_metrics(), Err(RunDirError::Broken { line: 2, .. })));
}

#[test]
fn events_survive_a_torn_line() {
    let (_root, path, run) = new_run();
    let details = |value: u64| Map::from_iter([("episodes".to_string(), value.into())]);
    run.append_event(1, "env_error", details(3)).unwrap();
    drop(run);
    let file = path.join("events.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "{\"step\":2,").unwrap();
    let run = RunDir::open(&path).unwrap();
    run.append_event(2, "resumed", Map::new()).unwrap();
    let events = run.read_events().unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0]["event"], &events[0]["episodes"]), (&json!("env_error"), &json!(3)));
    assert_eq!((&events[1]["event"], &events[1]["step"]), (&json!("resumed"), &json!(2)));
}

#[test]
fn the_latest_checkpoints_are_kept() {
    let (_root, _path, run) = new_run();
    assert_eq!(run.latest_checkpoint().unwrap(), None);
    for step in [2, 10, 9] {
        run.write_checkpoint(step, 3, fill("w")).unwrap();
    }
    assert_eq!(steps(&run), [2, 9, 10], "by number, not by name");
    run.write_checkpoint(11, 2, fill("w")).unwrap();
    assert_eq!(steps(&run), [10, 11]);
    let latest = run.latest_checkpoint().unwrap().unwrap();
    assert_eq!(fs::read_to_string(latest.path.join("actor/weights")).unwrap(), "w");
    run.write_checkpoint(12, 0, fill("w")).unwrap();
    assert_eq!(steps(&run), [12], "keeping none would lose the run");
}

#[test]
fn a_failed_checkpoint_leaves_the_earlier_ones() {
    let (_root, _path, run) = new_run();
    run.write_checkpoint(1, 1, fill("old")).unwrap();
    let failing = |dir: &Path| {
        fs::write(dir.join("half"), "x")?;
        Err(std::io::Error::other("no space"))
    };
    let error = run.write_checkpoint(2, 1, failing).unwrap_err().to_string();
    assert!(error.contains("iteration 2") && error.contains("no space") && error.contains("untouched"), "{error}");
    assert_eq!(steps(&run), [1]);
    assert_eq!(fs::read_dir(run.checkpoints_dir()).unwrap().count(), 1, "no rubbish stays");
}

#[test]
fn damaged_checkpoints_are_named_and_half_written_ones_tidied() {
    let (_root, path, run) = new_run();
    run.write_checkpoint(1, 9, fill("one")).unwrap();
    let second = run.write_checkpoint(2, 9, fill("two")).unwrap();
    fs::write(second.path.join("actor/weights"), "tw").unwrap();
    let dir = run.checkpoints_dir();
    fs::create_dir(dir.join("global_step_3")).unwrap();
    fs::create_dir(dir.join(".global_step_4.tmp")).unwrap();
    fs::create_dir(dir.join("global_step_x")).unwrap();
    for name in ["global_step_3", "global_step_2"] {
        let error = run.latest_checkpoint().unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("damaged") && error.contains("from iteration 1;"), "{error}");
        fs::rename(dir.join(name), path.join(name)).unwrap();
    }
    assert_eq!(run.latest_checkpoint().unwrap().unwrap().step, 1);
    fs::write(dir.join("global_step_1/actor/weights"), "").unwrap();
    let error = run.latest_checkpoint().unwrap_err().to_string();
    assert!(error.contains("from the beginning"), "{error}");
    // As long as before, and still not what was written.
    fs::write(dir.join("global_step_1/actor/weights"), "onf").unwrap();
    assert!(matches!(run.latest_checkpoint(), Err(RunDirError::Damaged { earlier: None, .. })));
    fs::write(dir.join("global_step_1/actor/weights"), "one").unwrap();
    assert_eq!(run.latest_checkpoint().unwrap().unwrap().step, 1);
    // A kill between moving the old one away and moving the new one in.
    fs::rename(dir.join("global_step_1"), dir.join(".global_step_1.replaced.tmp")).unwrap();
    drop(run);
    let run = RunDir::open(&path).unwrap();
    assert_eq!(steps(&run), [1]);
    assert!(!dir.join(".global_step_4.tmp").exists());
    run.write_checkpoint(2, 9, fill("again")).unwrap();
    assert_eq!(steps(&run), [1, 2]);
    assert_eq!(fs::read_to_string(dir.join("global_step_2/actor/weights")).unwrap(), "again");
}

#[test]
fn rewinding_forgets_later_checkpoints_and_the_summary() {
    let (_root, _path, run) = new_run();
    for step in 1..=3 {
        run.write_checkpoint(step, 9, fill("w")).unwrap();
    }
    run.write_summary(&json!({})).unwrap();
    run.rewind(2).unwrap();
    assert_eq!(steps(&run), [1, 2]);
    assert!(!run.is_finished());
}

#[test]
fn an_atomic_write_that_fails_keeps_the_old_file() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("f");
    write_atomic(&path, b"old").unwrap();
    // The temporary name is taken by a folder, so the new content has nowhere to go.
    fs::create_dir(root.path().join(".f.tmp")).unwrap();
    let error = write_atomic(&path, b"new").unwrap_err();
    assert!(matches!(error, RunDirError::Io { action: "write", .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn disk_and_permission_errors_say_what_to_do() {
    let full = io_error("write", Path::new("runs/a/metrics.jsonl"))(std::io::ErrorKind::StorageFull.into());
    let text = full.to_string();
    assert!(text.starts_with("cannot write runs/a/metrics.jsonl: ") && text.contains("free some space"), "{text}");
    let denied = io_error("make the folder", Path::new("/x"))(std::io::ErrorKind::PermissionDenied.into());
    assert!(denied.to_string().contains("permissions"), "{denied}");
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let error = RunDir::create(root.path().join("file/run"), &Config::default()).unwrap_err();
    assert!(error.to_string().contains("file/run"), "{error}");
}
