use serde_json::{Value, json};

use super::*;
use crate::baseline::play_oracle;
use crate::checker::check;
use crate::registry::make;
use crate::{EnvSpec, Info, Split, Step};

/// An environment that answers what is written.
struct Scripted {
    spec: EnvSpec,
    steps: Vec<Step>,
    at: usize,
}

fn step(reward: f64, valid: bool, effective: bool) -> Step {
    let info = Info { action_is_valid: valid, action_is_effective: effective, ..Info::default() };
    Step { observation: "a#b".into(), reward, terminated: false, truncated: false, info }
}

fn scripted(steps: Vec<Step>) -> Box<dyn Environment> {
    let spec = EnvSpec {
        env_type: "scripted".into(),
        instruction: String::new(),
        actions: vec!["Go".into()],
        legend: vec![("#".into(), "wall".into())],
    };
    Box::new(Scripted { spec, steps, at: 0 })
}

impl Environment for Scripted {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _seed: u64, _split: Split) -> Result<String, EnvError> {
        self.at = 0;
        Ok("a#b".into())
    }
    fn step(&mut self, _action: &str) -> Result<Step, EnvError> {
        self.at += 1;
        Ok(self.steps[self.at - 1].clone())
    }
    fn render(&self) -> String {
        "a#b".into()
    }
    fn state_key(&self) -> String {
        // 0 1 0 1 …
        (self.at % 2).to_string()
    }
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        vec!["Go".into(); actions_left]
    }
    fn optimum(&self, actions_left: usize) -> Option<f64> {
        Some(f64::from(u8::from(actions_left >= 3)))
    }
}

fn rewards(steps: Vec<Step>, wrappers: Value) -> Vec<f64> {
    let n = steps.len();
    let mut env = wrap(scripted(steps), &wrappers).unwrap();
    env.reset(0, Split::Train).unwrap();
    (0..n).map(|_| env.step("Go").unwrap().reward).collect()
}

#[test]
fn rewards_are_scaled_shifted_and_clipped_in_order() {
    let steps = || vec![step(1.0, true, true), step(-3.0, true, true), step(f64::NAN, true, true)];
    let got =
        rewards(steps(), json!([{ "reward_scale": { "scale": 2.0, "shift": 0.5 } }, { "reward_clip": { "min": -4 } }]));
    assert_eq!(got[..2], [1.0, -4.0]);
    assert!(got[2].is_nan(), "a reward that is none must not become one");
    let got =
        rewards(steps(), json!([{ "reward_clip": { "min": -4 } }, { "reward_scale": { "scale": 2.0, "shift": 0.5 } }]));
    assert_eq!(got[..2], [2.5, -5.5]);
}

#[test]
fn reward_terms_pay_for_what_they_say() {
    let success =
        Step { terminated: true, info: Info { success: true, ..step(0.0, true, true).info }, ..step(0.0, true, true) };
    let mut scored = step(0.0, true, true);
    scored.info.extra.insert("score".into(), 7.0);
    let steps = || {
        vec![step(1.0, true, true), step(0.0, true, false), step(0.0, false, false), scored.clone(), success.clone()]
    };
    let of = |term: Value| rewards(steps(), json!([{ "reward_term": term }]));
    assert_eq!(of(json!({ "term": "step_cost", "weight": -0.5 })), [0.5, -0.5, -0.5, -0.5, -0.5]);
    assert_eq!(of(json!({ "term": "ineffective_action", "weight": -2 })), [1.0, -2.0, 0.0, 0.0, 0.0]);
    assert_eq!(of(json!({ "term": "invalid_action", "weight": -2 })), [1.0, 0.0, -2.0, 0.0, 0.0]);
    assert_eq!(of(json!({ "term": "revisit", "weight": -1 })), [1.0, -1.0, -1.0, -1.0, -1.0]);
    assert_eq!(of(json!({ "term": "success", "weight": 10 })), [1.0, 0.0, 0.0, 0.0, 10.0]);
    assert_eq!(of(json!({ "term": "info", "key": "score", "weight": 0.5 })), [1.0, 0.0, 0.0, 3.5, 0.0]);

    let mut env =
        wrap(scripted(steps()), &json!([{ "reward_term": { "term": "step_cost", "weight": -0.5 } }])).unwrap();
    env.reset(0, Split::Train).unwrap();
    assert_eq!(env.step("Go").unwrap().info.extra["reward_term/step_cost"], -0.5);
}

#[test]
fn a_revisit_is_of_this_episode() {
    let steps = vec![step(0.0, true, true); 2];
    let mut env = wrap(scripted(steps), &json!([{ "reward_term": { "term": "revisit" } }])).unwrap();
    for _ in 0..2 {
        env.reset(0, Split::Train).unwrap();
        assert_eq!((env.step("Go").unwrap().reward, env.step("Go").unwrap().reward), (0.0, 1.0));
    }
}

#[test]
fn a_time_limit_truncates_and_starts_again() {
    let steps = vec![step(0.0, true, true); 9];
    let mut env = wrap(scripted(steps), &json!([{ "time_limit": { "max_steps": 3 } }])).unwrap();
    for _ in 0..2 {
        env.reset(0, Split::Train).unwrap();
        assert_eq!((env.oracle(9).len(), env.oracle(2).len(), env.optimum(9)), (3, 2, Some(1.0)));
        assert!(!env.step("Go").unwrap().truncated && !env.step("Go").unwrap().truncated);
        assert_eq!((env.oracle(9).len(), env.optimum(9)), (1, Some(0.0)));
        assert!(env.step("Go").unwrap().truncated);
        assert!(env.oracle(9).is_empty());
        assert!(env.step("Go").unwrap_err().to_string().contains("after the end"));
    }
    let end = Step { terminated: true, ..step(1.0, true, true) };
    let mut env = wrap(scripted(vec![end]), &json!([{ "time_limit": { "max_steps": 1 } }])).unwrap();
    env.reset(0, Split::Train).unwrap();
    assert!(!env.step("Go").unwrap().truncated, "an end of its own counts for more");
}

#[test]
fn observations_are_rewritten_everywhere() {
    let config =
        json!([{ "observation_rewrite": { "replace": [["#", "b"], ["b", "c"]], "prefix": "<", "suffix": ">" } }]);
    let mut env = wrap(scripted(vec![step(0.0, true, true)]), &config).unwrap();
    assert_eq!(env.spec().legend, [("b".to_owned(), "wall".to_owned())]);
    assert_eq!(env.reset(0, Split::Train).unwrap(), "<abc>");
    assert_eq!((env.step("Go").unwrap().observation, env.render()), ("<abc>".into(), "<abc>".into()));
    let config = json!([{ "observation_rewrite": { "max_chars": 2 } }]);
    assert_eq!(wrap(scripted(vec![]), &config).unwrap().render(), "a#…");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |wrappers: Value| make("bandit", &json!({ "wrappers": wrappers })).err().unwrap().to_string();
    assert!(refused(json!({})).contains("expected a list"));
    assert!(refused(json!(["time_limit"])).contains("bandit.wrappers[0]"));
    assert!(refused(json!([{ "time_limt": {} }])).contains("did you mean `time_limit`?"));
    assert!(refused(json!([{ "time_limit": { "max_step": 1 } }])).contains("did you mean `max_steps`?"));
    assert!(refused(json!([{ "time_limit": { "max_steps": 0 } }])).contains("bandit.wrappers[0].time_limit"));
    assert!(refused(json!([{ "reward_clip": { "min": 2 } }])).contains("at most `max`"));
    assert!(refused(json!([{ "reward_term": {} }])).contains("known are ineffective_action"));
    assert!(refused(json!([{ "reward_term": { "term": "sucess" } }])).contains("did you mean `success`?"));
    assert!(refused(json!([{ "reward_term": { "term": "info" } }])).contains("needs `key`"));
    assert!(refused(json!([{ "reward_term": { "term": "success", "key": "x" } }])).contains("has none"));
    assert!(refused(json!([{ "observation_rewrite": { "replace": [["", "x"]] } }])).contains("an empty text"));
}

#[test]
fn built_in_environments_keep_their_promises_with_wrappers_on() {
    let wrappers = json!([
        { "time_limit": { "max_steps": 8 } },
        { "observation_rewrite": { "replace": [["_", "."]] } },
        { "reward_term": { "term": "revisit", "weight": -0.1 } },
        { "reward_scale": { "scale": 0.1 } },
    ]);
    for env_type in ["sokoban", "frozen_lake"] {
        let config = json!({ "wrappers": wrappers });
        let report = check(|| make(env_type, &config).unwrap(), 0..8);
        assert!(report.unwrap_or_else(|problems| panic!("{env_type}: {problems:?}")).oracle_checked == 8);
    }
    // The oracle knows of the limit: what takes more steps it does not win.
    let tight = json!({ "wrappers": [{ "time_limit": { "max_steps": 1 } }] });
    let mut env = make("sokoban", &tight).unwrap();
    assert!((123..140).any(|seed| {
        let played = play_oracle(&mut *env, seed, Split::Val, 10).unwrap();
        !played.success && played.actions <= 1
    }));
}
