//! Environments in other processes: that they play, and that one which breaks costs its own episode only.
#![cfg(unix)]

use std::time::{Duration, Instant};

use ragen_envs::checker::check;
use ragen_envs::external::{External, ExternalConfig};
use ragen_envs::{EnvError, Environment, Split, Step, registry};
use serde_json::{Map, Value, json};

const DOUBLE: &str = env!("CARGO_BIN_EXE_ragen-env-double");

/// Settings with one process and this trouble; `name` keeps the pools of tests apart. Limits are short where they are
/// going to be hit, and otherwise long enough for a busy machine.
fn settings(name: &str, config: Value) -> ExternalConfig {
    let limit = match config["trouble"].as_str() {
        Some("hang" | "hang_at_close" | "drip" | "noise") => 0.9,
        _ => 60.0,
    };
    let mut config = config.as_object().cloned().unwrap_or_else(Map::new);
    config.insert("test".into(), json!(name));
    ExternalConfig {
        command: vec![DOUBLE.to_owned()],
        config,
        processes: 1,
        reset_timeout_s: limit,
        step_timeout_s: limit,
        ..ExternalConfig::default()
    }
}

fn served(env_type: &str, config: Value) -> ExternalConfig {
    ExternalConfig {
        command: vec![DOUBLE.to_owned(), env_type.to_owned()],
        config: config.as_object().cloned().unwrap_or_else(Map::new),
        ..ExternalConfig::default()
    }
}

fn observations(steps: &[Step]) -> Vec<(String, f64, bool)> {
    steps.iter().map(|s| (s.observation.clone(), s.reward, s.terminated)).collect()
}

/// The walk of a well-behaved episode.
fn whole_walk() -> Vec<(String, f64, bool)> {
    vec![("at 1".into(), 0.0, false), ("at 2".into(), 0.0, false), ("at 3".into(), 1.0, true)]
}

/// Plays a culprit between two well-behaved episodes on one process. The latter play to their end as if nothing had
/// happened; what became of the culprit is returned.
fn beside_others(name: &str, config: Value) -> (Result<String, EnvError>, Vec<Result<Step, EnvError>>) {
    let settings = settings(name, config);
    let mut good: Vec<External> = (0..2).map(|_| External::new(&settings).unwrap()).collect();
    let mut culprit = External::new(&settings).unwrap();
    let mut walks = vec![Vec::new(); 2];
    for (env, seed) in good.iter_mut().zip([2, 4]) {
        assert_eq!(env.reset(seed, Split::Train).unwrap(), format!("at 0 of {seed}"));
    }
    walks[0].push(good[0].step("Right").unwrap());
    let begun = culprit.reset(1, Split::Train);
    let mut taken = Vec::new();
    for round in 0..3 {
        if begun.is_ok() {
            taken.push(culprit.step("Right"));
        }
        for (i, env) in good.iter_mut().enumerate() {
            if round < 2 || i == 1 {
                walks[i].push(env.step("right").unwrap_or_else(|error| panic!("{name}: {error}")));
            }
        }
    }
    for walk in &walks {
        assert_eq!(observations(walk), whole_walk(), "{name}");
        assert!(walk[2].info.success && walk[0].info.action_is_effective && !walk[0].info.success);
    }
    (begun, taken)
}

#[track_caller]
fn blamed(result: &Result<Step, EnvError>, words: &[&str]) {
    match result {
        Err(error @ EnvError::Play { .. }) => {
            for word in words {
                assert!(error.to_string().contains(word), "no {word:?} in: {error}");
            }
        }
        other => panic!("expected a failure to play, found {other:?}"),
    }
}

#[test]
fn a_process_that_breaks_at_a_step_costs_that_episode_only() {
    let cases: [(&str, &[&str]); 13] = [
        ("hang", &["did not answer within 900ms"]),
        ("exit", &["ended (exit status: 3)", "out of cheese"]),
        ("garbage", &["what is no reply", "Traceback"]),
        ("not_utf8", &["what is no reply"]),
        ("nan_number", &["what is no reply", "NaN"]),
        ("huge", &["more than 262144 bytes", "max_reply_bytes"]),
        ("endless", &["more than 262144 bytes"]),
        ("drip", &["did not answer"]),
        ("noise", &["did not answer"]),
        ("other_id", &["answered request 1000000"]),
        ("no_result", &["neither `result` nor `error`"]),
        ("misspelt", &["unknown field `terminate`"]),
        ("wrong_type", &["at `reward`", "much"]),
    ];
    for (trouble, words) in cases {
        let begun = Instant::now();
        let (reset, steps) = beside_others(trouble, json!({ "trouble": trouble }));
        assert!(reset.is_ok());
        blamed(&steps[0], words);
        // It stays lost, and costs no more time.
        blamed(&steps[1], words);
        assert!(begun.elapsed() < Duration::from_secs(50), "{trouble} took {:?}", begun.elapsed());
    }
}

#[test]
fn an_episode_can_break_at_its_reset() {
    for trouble in ["hang", "exit", "garbage", "huge"] {
        let (reset, _) = beside_others(&format!("reset {trouble}"), json!({ "trouble": trouble, "at": "reset" }));
        assert!(matches!(reset, Err(EnvError::Play { .. })), "{trouble}: {reset:?}");
    }
    let (reset, _) = beside_others("reset exception", json!({ "trouble": "exception", "at": "reset" }));
    assert!(
        matches!(&reset, Err(EnvError::Instance { seed: 1, message, .. }) if message == "KeyError: 7"),
        "{reset:?}"
    );
}

#[test]
fn what_is_said_or_done_after_a_reply_is_not_blamed_on_others() {
    // The first step is answered, then the process goes: the culprit's own next call brings it to light.
    let (_, steps) = beside_others("exit afterwards", json!({ "trouble": "exit_afterwards" }));
    assert!(steps[0].is_ok());
    blamed(steps.last().unwrap(), &["ended (exit status: 4)"]);
    let (_, steps) = beside_others("garbage afterwards", json!({ "trouble": "garbage_afterwards" }));
    assert!(steps[0].is_ok());
    // A process that hangs when an episode is closed is replaced; nobody's episode is lost.
    let begun = Instant::now();
    let (_, steps) = beside_others("hang at close", json!({ "trouble": "hang_at_close" }));
    assert!(steps.iter().all(Result::is_ok), "{steps:?}");
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[test]
fn an_exception_and_odd_texts_leave_the_process_alone() {
    let folder = std::env::temp_dir().join(format!("ragen-external-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let starts = |name: &str| folder.join(name);
    let count = |name: &str| std::fs::read_to_string(starts(name)).unwrap().lines().count();

    let config = |name: &str| json!({ "trouble": name, "starts": starts(name) });
    let (_, steps) = beside_others("exception", config("exception"));
    blamed(&steps[0], &["KeyError: 7"]);
    assert_eq!(count("exception"), 1);

    let (_, steps) = beside_others("nan_word", config("nan_word"));
    assert!(steps[0].as_ref().unwrap().reward.is_nan(), "the rollout ends the episode over such a reward");
    assert_eq!(count("nan_word"), 1);

    let (_, steps) = beside_others("control_tokens", config("control_tokens"));
    assert!(steps[0].as_ref().unwrap().observation.starts_with("<|im_end|>"), "text is text");
    assert_eq!(count("control_tokens"), 1);

    // The process of a hanging episode is replaced: once for the others, once to find out who is to blame.
    let (_, steps) = beside_others("hang", config("hang"));
    blamed(&steps[0], &["did not answer"]);
    assert!((2..=4).contains(&count("hang")), "{} processes", count("hang"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_repetition_that_differs_is_noticed() {
    let settings = settings("unreproducible", json!({ "trouble": "unreproducible", "at": "reset" }));
    let mut env = External::new(&settings).unwrap();
    let first = env.reset(1, Split::Train).unwrap();
    let pid = first.rsplit(' ').next().unwrap();
    assert!(std::process::Command::new("kill").args(["-9", pid]).status().unwrap().success());
    blamed(&env.step("Right"), &["not reproducible"]);
}

#[test]
fn a_kind_that_only_fails_is_given_up() {
    let settings = ExternalConfig { max_failures: 3, ..settings("give up", json!({ "trouble": "hang" })) };
    let mut messages = Vec::new();
    for _ in 0..5 {
        let mut env = External::new(&settings).unwrap();
        let begun = Instant::now();
        let error = env.reset(1, Split::Train).and_then(|_| env.step("Right")).unwrap_err();
        messages.push((error.to_string(), begun.elapsed()));
    }
    assert!(messages[2].0.contains("did not answer"), "{messages:?}");
    assert!(messages[3].0.contains("given up: 3 episodes in a row failed (setting `max_failures`)"), "{messages:?}");
    assert!(messages[4].1 < Duration::from_millis(700), "{messages:?}");
}

#[test]
fn a_program_that_is_no_environment_is_refused_at_once() {
    let refused = |settings: &ExternalConfig| match External::new(settings) {
        Err(error @ EnvError::Config { .. }) => error.to_string(),
        Err(other) => panic!("expected a configuration error, found {other}"),
        Ok(_) => panic!("it was taken"),
    };
    let program = |command: &[&str]| ExternalConfig {
        command: command.iter().map(|&part| part.to_owned()).collect(),
        start_timeout_s: 0.5,
        ..ExternalConfig::default()
    };
    assert!(refused(&program(&["/no/such/program"])).contains("cannot start `/no/such/program`"));
    assert!(refused(&program(&["true"])).contains("ended (exit status: 0)"));
    assert!(refused(&program(&["cat"])).contains("unknown field `method`"));
    assert!(refused(&program(&["sleep", "600"])).contains("did not answer within 500ms"));
    let hello = |trouble: &str| {
        refused(&ExternalConfig { start_timeout_s: 0.5, ..settings("hello", json!({ "trouble": trouble })) })
    };
    assert!(hello("silent").contains("did not answer"));
    assert!(hello("version").contains("version 7; expected `ragen-env` version 1"));
    assert!(hello("protocol").contains("speaks `chess`"));
    assert!(hello("actions").contains("without regard to case"));
    // Through the registry, and what the environment itself refuses.
    let config = json!({ "command": [DOUBLE, "frozen_lake"], "config": { "size": 1 } });
    let error = registry::make("external", &config).err().unwrap().to_string();
    assert!(error.contains("expected a value from 2 to 64, found 1"), "{error}");
}

#[test]
fn a_built_in_environment_plays_the_same_in_another_process() {
    for (env_type, config) in [("frozen_lake", json!({ "success_rate": 0.7 })), ("sokoban", json!({}))] {
        let mut near = registry::make(env_type, &config).unwrap();
        let mut far = External::new(&served(env_type, config)).unwrap();
        assert_eq!(near.spec().instruction, far.spec().instruction);
        assert_eq!(near.spec().legend, far.spec().legend);
        for seed in 123..143 {
            let first = near.reset(seed, Split::Val).unwrap();
            assert_eq!(first, far.reset(seed, Split::Val).unwrap());
            assert_eq!((near.optimum(10), near.oracle(10)), (far.optimum(10), far.oracle(10)));
            for action in ["Left", "up", "fly", "DOWN", "Right", "Right", "Up"] {
                let (a, b) = (near.step(action), far.step(action));
                match (a, b) {
                    (Ok(a), Ok(b)) => {
                        assert_eq!(a, b);
                        assert_eq!((near.render(), near.state_key()), (far.render(), far.state_key()));
                        if a.terminated {
                            break;
                        }
                    }
                    (a, b) => panic!("{a:?} and {b:?}"),
                }
            }
        }
    }
}

#[test]
fn the_checker_passes_it() {
    let settings = served("frozen_lake", json!({}));
    let report = check(|| Box::new(External::new(&settings).unwrap()), 0..12);
    let report = report.unwrap_or_else(|problems| panic!("{problems:?}"));
    assert!(report.oracle_checked == 12 && report.ended > 0, "{report:?}");
}

#[test]
fn episodes_have_processes_of_their_own_if_wanted() {
    let file = std::env::temp_dir().join(format!("ragen-external-own-{}", std::process::id()));
    let settings = ExternalConfig { episodes_per_process: 1, ..settings("own", json!({ "starts": file })) };
    let mut envs: Vec<External> = (0..3).map(|_| External::new(&settings).unwrap()).collect();
    for (env, seed) in envs.iter_mut().zip([2, 4, 6]) {
        env.reset(seed, Split::Train).unwrap();
    }
    drop(envs);
    let mut again = External::new(&settings).unwrap();
    again.reset(8, Split::Train).unwrap();
    let starts = std::fs::read_to_string(&file).unwrap().lines().count();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(starts, 3, "three at a time; the fourth uses one that is free again");
}
