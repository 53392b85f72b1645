//! Household games of our own: every one can be done, the oracle's way is a shortest one, and chance does not do.

use std::collections::{BTreeSet, HashSet, VecDeque};

use ragen_envs::alfworld::goal::{Goal, TaskType};
use ragen_envs::alfworld::world::{Command, World};
use ragen_envs::alfworld::{Alfworld, Game, generate, plan};
use ragen_envs::baseline::{VAL_SEEDS, baseline};
use ragen_envs::checker::check;
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

/// Whether the goal can be reached with at most `depth` commands, by breadth-first search over the whole room. Closing,
/// slicing and looking are left out: they help nobody.
fn reachable(game: &Game, depth: usize) -> bool {
    let key = |world: &World| {
        let things: Vec<_> = world.things.iter().map(|t| (t.place, t.is.clean, t.is.hot, t.is.cool, t.is.on)).collect();
        (world.at, things, world.receptacles.iter().map(|r| r.open).collect::<Vec<_>>())
    };
    let mut seen = HashSet::from([key(&game.world)]);
    let mut queue = VecDeque::from([(game.world.clone(), 0)]);
    while let Some((world, steps)) = queue.pop_front() {
        if game.goal.reached(&world) {
            return true;
        }
        if steps == depth {
            continue;
        }
        for command in world.commands() {
            if matches!(
                command,
                Command::GoTo(_)
                    | Command::Open(_)
                    | Command::Take(..)
                    | Command::Move(..)
                    | Command::Clean(..)
                    | Command::Heat(..)
                    | Command::Cool(..)
                    | Command::Use(_)
            ) {
                let mut next = world.clone();
                next.apply(command);
                if seen.insert(key(&next)) {
                    queue.push_back((next, steps + 1));
                }
            }
        }
    }
    false
}

#[test]
fn no_way_is_shorter_than_the_planned_one() {
    let (mut compared, mut whole) = (0, 0);
    for seed in 0..90u64 {
        let task = TaskType::ALL[(seed % 6) as usize];
        let mut game = generate::game(seed, &[task], false).expect("a game");
        // A room of few things and receptacles, so that the search ends: what the goal names, two others, and where
        // these can be.
        let Goal { object, target, .. } = game.goal.clone();
        let mut others = 0;
        game.world.things.retain(|thing| {
            let named = thing.kind == object || thing.kind == target;
            others += usize::from(!named);
            named || others <= 2
        });
        // Begin with something in the hands two times out of three, in the end with what is not wanted.
        let pickupable = |t: &usize| game.world.things[*t].can.pickupable;
        let held = match seed % 3 {
            0 => None,
            1 => (0..game.world.things.len()).filter(pickupable).find(|&t| game.world.things[t].kind == object),
            _ => (0..game.world.things.len()).filter(pickupable).find(|&t| game.world.things[t].kind != object),
        };
        if let Some(held) = held {
            game.world.at = game.world.location_of(held);
            game.world.things[held].place = None;
        }
        let Some(plan) = plan::shortest(&game.world, &game.goal) else { continue };
        let depth = plan.len().saturating_sub(1).min(4);
        assert!(!plan.is_empty() && !reachable(&game, depth), "{}: {plan:?}", game.task);
        compared += 1;
        whole += usize::from(plan.len() <= 5);
    }
    assert!(compared > 80 && whole > 25, "{compared} {whole}");
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
fn short_games_pass_the_checker() {
    let config = json!({ "max_steps": 25 });
    let report = check(|| make("alfworld", &config).expect("valid"), 0..20);
    let report = report.unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!((report.ended, report.oracle_success), (20, 1.0));
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
