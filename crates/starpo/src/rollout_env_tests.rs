//! Rollouts, baselines and demonstrations over the built-in environments.

use std::collections::HashSet;
use std::sync::Arc;

use ragen_envs::{DemoStyle, Split, registry};
use serde_json::Value;

use crate::context::{ContextOptions, Layout};
use crate::dialogue::scripted::{ByteDialogue, END, ScriptedPolicy};
use crate::episode::{Episode, Outcome};
use crate::evaluate::{BaselineOptions, baselines};
use crate::guarded_env::GuardedEnv;
use crate::instances::{EnvTag, Group, InstanceKeys, SeedCounter, validation_groups};
use crate::rollout::{RolloutOptions, collect};
use crate::warm_start_data::{WarmStartDataOptions, demonstrations};

const DIALOGUE: ByteDialogue = ByteDialogue { tags_as_tokens: true };

fn builtin(tag: &str) -> EnvTag {
    let template = registry::template(tag).unwrap();
    let config = template.env_config;
    EnvTag {
        tag: template.tag.into(),
        env_type: template.env_type.into(),
        max_actions_per_traj: template.max_actions_per_traj,
        max_tokens: template.max_tokens,
        instruction: Some(template.env_instruction.into()),
        default_legend: registry::make(template.env_type, &Value::Null).unwrap().spec().legend.clone(),
        make: Arc::new(move || registry::make(template.env_type, &config)),
    }
}

fn say(reasoning: &str, actions: &str) -> Vec<u32> {
    [ByteDialogue::bytes(&format!("{reasoning}</think><answer>{actions}</answer>")), vec![END]].concat()
}

fn play(tag: &EnvTag, seed: u64, max_turn: usize, script: impl Fn(usize) -> Vec<u32> + 'static) -> Episode {
    let mut policy = ScriptedPolicy::new(move |_, turn, _, _| script(turn));
    let group = Group { tag: tag.clone(), seed, split: Split::Val };
    let options = RolloutOptions { group_size: 1, max_turn, ..RolloutOptions::default() };
    collect(&mut policy, &DIALOGUE, &ContextOptions::default(), &[group], &options).unwrap().remove(0)
}

#[test]
fn sokoban_solved_in_n_moves_returns_11_minus_a_tenth_each() {
    let tag = builtin("SimpleSokoban");
    let mut lengths = HashSet::new();
    for seed in 123..160 {
        let mut env = GuardedEnv::make(&*tag.make).unwrap();
        env.reset(seed, Split::Val).unwrap();
        let moves = env.oracle(10).unwrap();
        let n = moves.len();
        lengths.insert(n);
        let e = play(&tag, seed, 10, move |turn| say("go", &moves[turn]));
        assert_eq!((e.outcome.clone(), e.num_actions()), (Outcome::Solved, n));
        assert!((e.total_return() - (11.0 - 0.1 * n as f64)).abs() < 1e-9, "{n} moves: {}", e.total_return());
    }
    assert!(lengths.contains(&3), "the case of 10.7 occurs: {lengths:?}");
}

#[test]
fn sokoban_useless_moves_and_invalid_turns() {
    let tag = builtin("SimpleSokoban");
    // Walking into a wall changes nothing: find an instance where two steps up end at one.
    let e = (123..200)
        .map(|seed| play(&tag, seed, 5, |_| say("go", "up || UP")))
        .find(|e| e.outcome == Outcome::ActionBudget && (e.total_return() + 1.0).abs() < 1e-9)
        .unwrap();
    assert_eq!((e.num_actions(), e.turns.len()), (10, 5));
    assert_eq!(e.metrics["action_is_valid"], 1.0);
    assert!(e.metrics["action_is_effective"] < 1.0);
    let e = play(&tag, 123, 5, |_| say("go", "fly"));
    assert_eq!((e.outcome.clone(), e.num_actions()), (Outcome::TurnLimit, 0));
    assert!((e.total_return() + 0.5).abs() < 1e-12);
}

#[test]
fn baselines_of_the_reference_validation_set() {
    // Published for the same 256 instances and 10 actions: a random player solves .191, the oracle all.
    let tag = builtin("SimpleSokoban");
    let groups = validation_groups(&[(tag, 256)], 123);
    let b = baselines(&groups, &BaselineOptions { max_turn: 10, max_actions_per_turn: 1, repeats: 8, seed: 0 });
    let random = b.random.unwrap();
    assert!(random.ci95.0 < 0.191 && 0.191 < random.ci95.1, "{random:?}");
    assert_eq!(b.oracle.unwrap().success, 1.0);
}

#[test]
fn members_of_a_group_share_instance_and_chance() {
    let tag = builtin("FrozenLake");
    let mut policy = ScriptedPolicy::new(|_, _, _, _| say("go", "Right || Down"));
    let group = |seed| Group { tag: tag.clone(), seed, split: Split::Train };
    let groups: Vec<Group> = (10_000..10_008).map(group).collect();
    let options = RolloutOptions { group_size: 4, ..RolloutOptions::default() };
    let episodes = collect(&mut policy, &DIALOGUE, &ContextOptions::default(), &groups, &options).unwrap();
    for members in episodes.chunks(4) {
        assert!(members.iter().all(|e| e.turns == members[0].turns && e.tokens == members[0].tokens));
    }
    assert_ne!(episodes[0].turns[0].state_key, episodes[4].turns[0].state_key);
}

#[test]
fn training_instances_are_no_validation_instances() {
    let tag = builtin("SimpleSokoban");
    let validation = InstanceKeys::of(&validation_groups(&[(tag.clone(), 64)], 123));
    // Training seeds that run into the validation seeds.
    let mut seeds = SeedCounter::new(120);
    let groups = seeds.next_groups(&[(tag, 16)], &validation);
    assert_eq!(seeds.skipped, 64);
    let got: Vec<u64> = groups.iter().map(|g| g.seed).collect();
    assert_eq!(got[..4], [120, 121, 122, 187]);
}

#[test]
fn demonstrations_of_every_grid_world() {
    for tag in ["SimpleSokoban", "LargerSokoban", "CoordSokoban", "FrozenLake", "CoordFrozenLake"] {
        let tag = builtin(tag);
        for (layout, style) in [(Layout::Full, DemoStyle::Verbose), (Layout::Compact, DemoStyle::Brief)] {
            let context = ContextOptions { layout, ..ContextOptions::default() };
            let options = WarmStartDataOptions { style, ..Default::default() };
            let mut seeds = SeedCounter::new(10_000);
            let data =
                demonstrations(&DIALOGUE, &context, &tag, 20, &mut seeds, &InstanceKeys::default(), &options).unwrap();
            assert!(data.solved >= 8, "{}: {} of 20 solved", tag.tag, data.solved);
            assert_eq!(data.faults, 0);
            assert!(data.turns > 20);
        }
    }
}

#[test]
fn the_legend_follows_the_configuration_unless_compatible() {
    let tag = builtin("SokobanDifferentGridVocab");
    let env = GuardedEnv::make(&*tag.make).unwrap();
    let own = tag.prompt(env.spec(), true).legend;
    let default = tag.prompt(env.spec(), false).legend;
    assert!(own.iter().any(|(symbol, _)| symbol == "W") && !own.iter().any(|(symbol, _)| symbol == "#"));
    assert!(default.iter().any(|(symbol, _)| symbol == "#"));
}
