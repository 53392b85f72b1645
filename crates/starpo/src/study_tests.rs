use std::fs;

use super::results::{results, smoothed, table};
use super::*;
use crate::metrics::Metrics;
use crate::run_dir::RunDir;

const STUDY: &str = "name: small
task: bandit
seeds: [3, 4]
warm_start: per_seed
env_seed_stride: 1000
overrides: [trainer.total_training_steps=2]
arms:
  - name: plain
  - name: high rate
    overrides: [actor_rollout_ref.actor.optim.lr=1e-3]
";

fn load(text: &str) -> Result<Study, StudyError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.yaml");
    fs::write(&path, text).unwrap();
    Study::load(&path)
}

#[test]
fn runs_are_seeds_times_arms_in_folders_of_their_own() {
    let study = load(STUDY).unwrap();
    let runs = study.runs(Path::new("out"));
    let places: Vec<_> = runs.iter().map(|run| run.path.display().to_string()).collect();
    assert_eq!(places, ["out/plain/seed_3", "out/high_rate/seed_3", "out/plain/seed_4", "out/high_rate/seed_4"]);
    assert_eq!(
        runs[1].arguments,
        [
            "bandit",
            "seed=3",
            "trainer.total_training_steps=2",
            "es_manager.train.seed=13000",
            "actor_rollout_ref.actor.optim.lr=1e-3",
            "model_path=out/warm/seed_3/model",
            "warm_start.enabled=false",
        ]
    );
    let warm = study.warm_starts(Path::new("out"));
    assert_eq!((warm.len(), &warm[1].path), (2, &PathBuf::from("out/warm/seed_4")));
    let shared = load(&STUDY.replace("per_seed", "shared")).unwrap();
    assert_eq!(shared.warm_starts(Path::new("out")).len(), 1);
    assert_eq!(shared.runs(Path::new("out"))[3].warm, Some(PathBuf::from("out/warm/shared")));
    assert!(load(&STUDY.replace("per_seed", "each")).unwrap().warm_starts(Path::new("out")).is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    for (from, to, told) in [
        ("optim.lr=1e-3", "optim.lrr=1e-3", "the arm `high rate`: unknown key"),
        ("high rate", "plain", "two arms share the folder `plain`"),
        ("[3, 4]", "[3, 3]", "the seed 3 stands there twice"),
        ("[3, 4]", "[]", "at least one entry"),
        ("name: small", "name: a/b", "names a folder"),
        ("high rate", "warm", "other than `warm`"),
        ("task: bandit", "task: bandid", "did you mean `bandit`?"),
        ("seeds:", "seed:", "study.yaml"),
        ("task: bandit", "task: bandit\nsmooth: 0", "at least 1"),
    ] {
        let message = load(&STUDY.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(told), "{to}: {message}");
    }
    assert!(Study::load(Path::new("nowhere.yaml")).unwrap_err().to_string().contains("nowhere.yaml"));
}

#[test]
fn smoothing_and_falls_by_hand() {
    let curve = [(0, 0.0), (5, 0.3), (10, 0.6), (15, 0.0)];
    let got = smoothed(&curve, 3);
    assert_eq!(got.iter().map(|p| p.0).collect::<Vec<_>>(), [10, 15]);
    assert!((got[0].1 - 0.3).abs() < 1e-12 && (got[1].1 - 0.3).abs() < 1e-12);
    assert_eq!(smoothed(&curve[..2], 3), [(5, 0.15)], "what there is");
    assert!(smoothed(&[], 3).is_empty());
}

#[test]
fn results_come_from_the_folders() {
    let study = load(&STUDY.replace("per_seed", "each")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let runs = study.runs(dir.path());
    for (run, values) in [(&runs[0], [0.2, 0.4, 0.6]), (&runs[2], [0.2, 0.8, 0.2])] {
        let folder = RunDir::create(&run.path, &Config::default()).unwrap();
        for (step, value) in values.iter().enumerate() {
            let mut metrics = Metrics::new();
            metrics.set("val/success", *value);
            metrics.set("timing_s/step", 30.0);
            folder.append_metrics(step as u64, &metrics).unwrap();
        }
        let event = |text: &str| serde_json::from_str(text).unwrap();
        folder.append_event(1, "guard", event(r#"{"from":"healthy","to":"warned","action":null}"#)).unwrap();
        folder
            .append_event(
                2,
                "guard",
                event(r#"{"from":"warned","to":"intervening","action":"rollback","only_observed":false}"#),
            )
            .unwrap();
        folder.write_summary(&serde_json::json!({})).unwrap();
    }
    let study = Study { smooth: 1, ..study };
    let found = results(&study, &runs).unwrap();
    let plain = &found[0];
    assert_eq!(plain.runs.len(), 2);
    let fallen = &plain.runs[1];
    assert_eq!((fallen.end, fallen.peak, fallen.fallen_by_a_quarter), (Some(0.2), Some(0.8), Some(2)));
    assert_eq!((fallen.first_warning, fallen.rollbacks, fallen.last_rollback), (Some(1), 1, Some(2)));
    assert!((plain.end.unwrap().mean - 0.4).abs() < 1e-12 && plain.runs[0].fallen_by_a_quarter.is_none());
    assert!(found[1].runs.is_empty() && found[1].end.is_none());
    let text = table(&study, &found);
    assert!(text.contains("| plain | 2/2 | 40.0 %") && text.contains("| high rate | 0/2 | – |"), "{text}");
    let picture = dir.path().join("curves.svg");
    plot::curves(&study, &found, &picture).unwrap();
    let svg = fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("plain") && svg.contains("polyline"));
}

#[test]
fn the_studies_that_come_with_the_project_can_be_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/studies");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let study = Study::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(study.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert!(study.seeds.len() >= 3);
        count += 1;
    }
    assert!(count >= 7);
}
