//! Tests of the rollout file.

use ragen_envs::Split;

use super::*;
use crate::context::ContextOptions;
use crate::dialogue::scripted::{ByteDialogue, ScriptedPolicy, Trouble, line};
use crate::instances::Group;
use crate::rollout::{RolloutOptions, collect};

fn episodes() -> Vec<Episode> {
    let mut policy = ScriptedPolicy::saying("a</think><answer>Right||Right</answer>");
    let group = |seed| Group { tag: line(Trouble::StepError, "\nline"), seed, split: Split::Train };
    let dialogue = ByteDialogue { tags_as_tokens: true };
    let options = RolloutOptions { group_size: 2, ..RolloutOptions::default() };
    collect(&mut policy, &dialogue, &ContextOptions::default(), &[group(0), group(1)], &options).unwrap()
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut written = episodes();
    let path = write_rollouts(&dir.path().join("rollouts"), "train", 12, &written).unwrap();
    assert!(path.ends_with("train_000012.jsonl"));
    let records = read_rollouts(&path).unwrap();
    assert_eq!(records.len(), 4);
    for (record, episode) in records.iter().zip(&written) {
        assert_eq!((record.version, record.phase.as_str(), record.iteration), (1, "train", 12));
        assert_eq!(record.success, episode.outcome.is_success());
        assert!((record.total_return - episode.total_return()).abs() < 1e-12);
        assert_eq!(record.episode.tokens, episode.tokens);
        assert_eq!(record.episode.log_probs, episode.log_probs);
        assert_eq!(record.episode.turns.len(), episode.turns.len());
        assert_eq!(record.episode.outcome, episode.outcome);
    }
    // A number that is none does not make the file unreadable; a second write replaces the first.
    written[0].log_probs[0] = f32::NAN;
    written[0].turns[0].info.as_mut().unwrap().extra.insert("odd".into(), f64::INFINITY);
    assert_eq!(write_rollouts(&dir.path().join("rollouts"), "train", 12, &written[..1]).unwrap(), path);
    let records = read_rollouts(&path).unwrap();
    assert_eq!(records.len(), 1);
    assert!(records[0].episode.log_probs[0].is_nan());
    assert!(records[0].episode.turns[0].info.as_ref().unwrap().extra["odd"].is_nan());
    assert_eq!(std::fs::read_dir(dir.path().join("rollouts")).unwrap().count(), 1);
}

#[test]
fn bad_lines_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_rollouts(dir.path(), "val", 0, &episodes()[..1]).unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    for (bad, part) in [
        ("{\"version\":2}", "found version 2"),
        ("nonsense", "no rollout record"),
        ("{\"version\":1}", "missing field"),
    ] {
        std::fs::write(&path, format!("{good}\n{bad}\n")).unwrap();
        let error = read_rollouts(&path).unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains(part), "{error}");
    }
    assert!(matches!(read_rollouts(&dir.path().join("none")), Err(RolloutLogError::Io { .. })));
    assert!(matches!(write_rollouts(&path, "train", 1, &[]), Err(RolloutLogError::Io { .. })));
}
