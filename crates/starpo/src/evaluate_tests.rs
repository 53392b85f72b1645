//! Tests of intervals and baselines.

use ragen_envs::Split;

use super::*;
use crate::dialogue::scripted::{ByteDialogue, ScriptedPolicy, Trouble, line};

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() < tolerance
}

fn groups(n: u64) -> Vec<Group> {
    (0..n).map(|i| Group { tag: line(Trouble::None, ""), seed: 2 * i, split: Split::Val }).collect()
}

const OPTIONS: BaselineOptions = BaselineOptions { max_turn: 5, max_actions_per_turn: 2, repeats: 1, seed: 1 };

#[test]
fn wilson_s_interval() {
    for (k, n, low, high) in [
        (0, 10, 0.0, 0.277_533),
        (5, 10, 0.236_593, 0.763_407),
        (10, 10, 0.722_467, 1.0),
        (49, 256, 0.147_917, 0.244_020),
    ] {
        let (l, h) = wilson95(k, n);
        assert!(near(l, low, 2e-6) && near(h, high, 2e-6), "{k}/{n}: {l} {h}");
    }
    assert_eq!(wilson95(0, 0), (0.0, 1.0));
}

#[test]
fn student_s_interval() {
    // mean 3, sample standard deviation √2.5, t(4) = 2.776445: half width 1.963243.
    let m = mean_over_seeds(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let (low, high) = m.ci95.unwrap();
    assert!(near(m.mean, 3.0, 1e-12) && near(m.std, 2.5f64.sqrt(), 1e-12));
    assert!(near(low, 3.0 - 1.963_243, 1e-5) && near(high, 3.0 + 1.963_243, 1e-5));
    assert_eq!(mean_over_seeds(&[2.0]).unwrap().ci95, None);
    assert_eq!(mean_over_seeds(&[]), None);
}

#[test]
fn student_s_quantiles() {
    for (df, t) in
        [(1, 12.7062), (2, 4.3027), (30, 2.0423), (31, 2.039_513), (40, 2.021_075), (60, 2.000_298), (120, 1.979_930)]
    {
        assert!(near(t975(df), t, 6e-5), "{df}: {}", t975(df));
    }
    assert!(near(t975(1_000_000), Z95, 1e-5));
}

#[test]
fn baselines_are_floor_and_ceiling() {
    let b = baselines(&groups(20), &BaselineOptions { repeats: 100, ..OPTIONS });
    let (random, oracle) = (b.random.unwrap(), b.oracle.unwrap());
    assert_eq!((oracle.success, oracle.n), (1.0, 20));
    assert!(near(oracle.mean_return, 10.7, 1e-9));
    assert_eq!(random.n, 2000);
    // A symmetric walk from 3 between 0 and 7 that ends after 10 moves, by exact enumeration.
    let mut at = [0.0; 8];
    at[3] = 1.0;
    for _ in 0..10 {
        let mut next = [0.0; 8];
        (next[0], next[7]) = (at[0], at[7]);
        for p in 1..7 {
            next[p - 1] += at[p] / 2.0;
            next[p + 1] += at[p] / 2.0;
        }
        at = next;
    }
    assert!(random.ci95.0 < at[0] && at[0] < random.ci95.1, "{random:?} against {}", at[0]);
    assert_eq!(b, baselines(&groups(20), &BaselineOptions { repeats: 100, ..OPTIONS }));
}

#[test]
fn baselines_keep_to_the_policy_s_budget() {
    let b = baselines(&groups(3), &BaselineOptions { max_turn: 1, ..OPTIONS });
    assert!(b.oracle.is_none(), "three moves do not fit in two actions, so the oracle has nothing to say: {b:?}");
    assert_eq!(b.random.unwrap().success, 0.0);
}

#[test]
fn baselines_survive_failing_environments() {
    for trouble in [Trouble::StepPanic, Trouble::StepError, Trouble::Nan, Trouble::ResetPanic] {
        let group = |seed| Group { tag: line(trouble, ""), seed, split: Split::Val };
        let b = baselines(&[group(0), group(1)], &OPTIONS);
        let oracle = b.oracle.unwrap();
        assert_eq!((oracle.success, oracle.n), (0.5, 2), "{trouble:?}");
        assert!(oracle.mean_return.is_finite());
    }
}

#[test]
fn a_report_puts_the_score_beside_its_baselines() {
    let mut policy = ScriptedPolicy::saying("a</think><answer>Right||Right</answer>");
    let dialogue = ByteDialogue { tags_as_tokens: true };
    let options = RolloutOptions { group_size: 1, temperature: 0.5, ..RolloutOptions::default() };
    let b = baselines(&groups(8), &OPTIONS);
    let validation = Validation::new(groups(8), &["Line"], &OPTIONS);
    let (report, episodes) =
        evaluate(&mut policy, &dialogue, &ContextOptions::default(), &validation, &options).unwrap();
    assert_eq!((report.score.success, report.score.n, episodes.len()), (1.0, 8, 8));
    assert_eq!(report.outcomes["solved"], 8);
    assert!(near(report.score.mean_return, 10.7, 1e-9));
    assert_eq!(report.baselines, b);
    assert_eq!(report.metrics["Line/success"], 1.0);
    let nothing = Validation::new(Vec::new(), &["Line"], &OPTIONS);
    let empty = evaluate(&mut policy, &dialogue, &ContextOptions::default(), &nothing, &options);
    assert!(matches!(empty, Err(RolloutError::Option(_))));
}

#[test]
fn tags_that_training_never_plays_are_reported_apart() {
    let mut policy = ScriptedPolicy::saying("a</think><answer>Right||Right</answer>");
    let dialogue = ByteDialogue { tags_as_tokens: true };
    let options = RolloutOptions { group_size: 1, temperature: 0.5, ..RolloutOptions::default() };
    let mut mixed = groups(6);
    mixed.extend((6..8).map(|seed| {
        let mut tag = line(Trouble::StepError, "");
        tag.tag = "Broken".into();
        Group { tag, seed, split: Split::Val }
    }));
    let mut report = |trained: &[&str]| {
        let validation = Validation::new(mixed.clone(), trained, &OPTIONS);
        evaluate(&mut policy, &dialogue, &ContextOptions::default(), &validation, &options).unwrap().0
    };
    let known = report(&["Line"]);
    assert_eq!((known.score.success, known.score.n), (1.0, 6));
    assert_eq!(known.by_tag["Broken"].score.n, 2);
    assert!(known.by_tag["Broken"].score.success < 1.0);
    assert_eq!(known.by_tag["Line"].baselines, known.baselines);
    assert_eq!(known.baselines.oracle.unwrap().n, 6);
    let unknown = report(&["Other"]);
    assert_eq!(unknown.score.n, 8, "training plays none of them, so all count");
}
