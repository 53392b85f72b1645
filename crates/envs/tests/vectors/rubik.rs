//! The 2 × 2 cube against RAGEN's turns and episodes.

use ragen_envs::rubik::RubiksCube;
use ragen_envs::rubik::cube::{TURNS, permutation, ragen_permutation};
use ragen_envs::{Environment, Split};
use serde_json::json;

#[test]
fn permutations() {
    let Some(moves) = super::fixtures::json("rubik2x2_moves.json") else { return };
    for (i, turn) in TURNS.iter().enumerate() {
        assert_eq!(json!(ragen_permutation(i)), moves["perm"][turn], "{turn}");
        // A real cube turns like RAGEN's, except that RAGEN's B takes corners apart.
        assert_eq!(permutation(i) == ragen_permutation(i), !turn.starts_with('B'), "{turn}");
    }
}

#[test]
fn episodes() {
    let Some(cases) = super::fixtures::json_lines("rubik2x2_ragen.jsonl") else { return };
    for case in cases {
        let seed = case["seed"].as_u64().expect("a seed");
        let mut env =
            RubiksCube::from_json(&json!({ "scramble_depth": case["depth"], "compat": true })).expect("valid");
        assert_eq!(env.reset(seed, Split::Train).expect("an instance"), case["obs"], "seed {seed}");
        assert_eq!(json!(env.cube().expect("a cube").stickers()), case["state"], "seed {seed}");
        let plan = env.oracle(20);
        assert!((1..=5).contains(&plan.len()) && env.optimum(20) == Some(1.0), "seed {seed}: {plan:?}");
        for (i, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let turn = TURNS[step["a"].as_u64().expect("an action") as usize - 1];
            let got = env.step(turn).expect("a step");
            let got = json!({
                "a": step["a"],
                "state": env.cube().expect("a cube").stickers(),
                "reward": got.reward,
                "done": got.terminated || got.truncated,
                "success": got.info.success,
            });
            assert_eq!(&got, step, "seed {seed}, step {i}");
        }
        assert_eq!(env.render(), case["last_obs"], "seed {seed}");
        env.reset(seed, Split::Train).expect("an instance");
        let last = plan.iter().map(|turn| env.step(turn).expect("a step")).fold(None, |_, step| Some(step));
        assert!(last.expect("a plan").info.success, "seed {seed}: {plan:?}");
    }
}
