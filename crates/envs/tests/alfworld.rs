//! Household games of our own: every one can be done, the oracle's way is a shortest one, and chance does not do.

use std::collections::{BTreeSet, HashSet, VecDeque};

use ragen_envs::alfworld::goal::TaskType;
use ragen_envs::alfworld::world::Command;
use ragen_envs::alfworld::{Alfworld, Game, generate, plan};
use ragen_envs::baseline::{VAL_SEEDS, baseline};
use ragen_envs::{Environment, Split, make, template};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::json;

#[test]
fn every_task_can_be_done() {
    let mut lengths = BTreeSet::new();
    for task in TaskType::ALL {
        let mut goals = HashSet::new();
        for seed in 0..400 {
            let game = generate::game(seed, &[task], seed % 4 == 0).expect("a game");
            assert!(!game.goal.reached(&game.world), "{:?}", game.task);
            let names: HashSet<&String> = game.world.things.iter().map(|thing| &thing.name).collect();
            assert_eq!(names.len(), game.world.things.len());
            let plan = plan::shortest(&game.world, &game.goal).expect("a way");
            lengths.insert(plan.len());
            let mut world = game.world.clone();
            for (i, &command) in plan.iter().enumerate() {
                assert!(world.commands().contains(&command), "{:?}: {plan:?}", game.task);
                world.apply(command);
                assert_eq!(game.goal.reached(&world), i + 1 == plan.len(), "{:?}: {plan:?}", game.task);
            }
            goals.insert(game.task);
        }
        assert!(goals.len() > 20, "{task:?}: only {} different tasks", goals.len());
    }
    assert!(lengths.first() >= Some(&3) && lengths.last() <= Some(&14), "{lengths:?}");
}

/// Fewest commands to the goal by breadth-first search over the whole room, at most `depth`.
fn fewest(game: &Game, depth: usize) -> Option<usize> {
    let mut seen = HashSet::new();
    let key =
        |world: &ragen_envs::alfworld::world::World| format!("{:?}{:?}{:?}", world.at, world.things, world.receptacles);
    let mut queue = VecDeque::from([(game.world.clone(), 0)]);
    seen.insert(key(&game.world));
    while let Some((world, steps)) = queue.pop_front() {
        if game.goal.reached(&world) {
            return Some(steps);
        }
        if steps == depth {
            continue;
        }
        for command in world.commands() {
            if matches!(
                command,
                Command::Look
                    | Command::Inventory
                    | Command::Help
                    | Command::ExamineReceptacle(_)
                    | Command::ExamineThing(_)
            ) {
                continue;
            }
            let mut next = world.clone();
            next.apply(command);
            if seen.insert(key(&next)) {
                queue.push_back((next, steps + 1));
            }
        }
    }
    None
}

#[test]
fn no_way_is_shorter_than_the_planned_one() {
    // Small rooms, so that the search ends: the wanted things, one other, and the receptacles that matter.
    let mut compared = 0;
    for seed in 0..120u64 {
        let task = TaskType::ALL[(seed % 6) as usize];
        let mut game = generate::game(seed, &[task], false).expect("a game");
        let wanted = game.goal.object.clone();
        let lamp = game.goal.target.clone();
        let mut others = 0;
        game.world.things.retain(|thing| {
            others += usize::from(thing.kind != wanted && thing.kind != lamp);
            thing.kind == wanted || thing.kind == lamp || others == 1
        });
        let things = game.world.things.len();
        if things > 4 {
            continue;
        }
        // Begin with something in the hands every other time.
        if seed % 2 == 0 {
            let last = game.world.things.iter().rposition(|thing| thing.can.pickupable).expect("a thing");
            game.world.at = game.world.location_of(last);
            game.world.things[last].place = None;
        }
        let plan = plan::shortest(&game.world, &game.goal);
        let limit = plan.as_ref().map_or(5, |plan| plan.len().saturating_sub(1)).min(5);
        let found = fewest(&game, limit);
        match plan {
            Some(plan) if plan.len() <= 5 => assert!(found.is_none_or(|n| n == plan.len()), "{}: {plan:?}", game.task),
            _ => assert_eq!(found, None, "{}", game.task),
        }
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn floor_and_ceiling() {
    let template = template("Alfworld").expect("a known tag");
    let mut env = make(template.env_type, &template.env_config).expect("valid");
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let budget = template.max_actions_per_traj;
    let got = baseline(env.as_mut(), VAL_SEEDS, Split::Val, budget, 1, &mut rng).expect("playable");
    println!("Alfworld: {got:?}");
    assert_eq!((got.oracle_success, got.optimum, got.oracle_return), (1.0, Some(1.0), 10.0));
    assert!(got.random_success < 0.15, "{got:?}");
}

#[test]
fn unseen_houses_are_not_seen_in_training() {
    let intros = |config: serde_json::Value, split| -> HashSet<String> {
        let mut env = make("alfworld", &config).expect("valid");
        (0..2000)
            .map(|seed| {
                let text = env.reset(seed, split).expect("an instance");
                text.split("Your task").next().expect("a beginning").to_owned()
            })
            .collect()
    };
    let train = intros(json!(null), Split::Train);
    let seen = intros(json!({ "eval_dataset": "eval_in_distribution" }), Split::Val);
    let unseen = intros(json!({ "eval_dataset": "eval_out_of_distribution" }), Split::Val);
    assert_eq!(train, seen);
    assert!(train.len() > 90 && unseen.len() > 12, "{} {}", train.len(), unseen.len());
    assert!(unseen.intersection(&train).count() * 10 < unseen.len(), "houses of few receptacles may coincide");
}

#[test]
fn unknown_commands_cost_a_step_and_change_nothing() {
    let mut env = Alfworld::from_json(&json!({ "max_steps": 3 })).expect("valid");
    env.reset(1, Split::Train).expect("an instance");
    let key = env.state_key();
    for truncated in [false, false, true] {
        let step = env.step("dance").expect("a step");
        assert!(
            step.observation.starts_with("Nothing happens.\n\nAdmissible actions: [go to "),
            "{}",
            step.observation
        );
        assert_eq!((step.truncated, step.info.action_is_valid, env.state_key()), (truncated, false, key.clone()));
    }
    assert!(env.step("look").is_err() && env.oracle(50).is_empty() && env.available_actions().is_empty());
}

#[test]
fn settings_are_checked() {
    for (config, expected) in [
        (json!({ "task_types": [] }), "at least one kind of task"),
        (json!({ "task_types": ["pick_and_throw"] }), "unknown variant `pick_and_throw`"),
        (json!({ "max_step": 3 }), "did you mean `max_steps`?"),
        (json!({ "max_steps": 0 }), "`max_steps`"),
        (json!({ "eval_dataset": "test" }), "eval_out_of_distribution"),
    ] {
        let error = make("alfworld", &config).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
