//! The puzzle environments beyond the contract: instances, rewards, fixed faults of the reference, floors and ceilings.

use std::collections::HashSet;

use ragen_envs::baseline::{Baseline, VAL_SEEDS, baseline};
use ragen_envs::countdown::{Countdown, Instance, has_solution};
use ragen_envs::game2048::{Board, Game2048};
use ragen_envs::navigation::Navigation;
use ragen_envs::rubik::{Cube, RubiksCube};
use ragen_envs::sudoku::{Grid, Sudoku, SudokuConfig, generate};
use ragen_envs::{EnvError, Environment, Split, make, template};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::{Value, json};

fn scored(tag: &str, repetitions: usize) -> Baseline {
    let template = template(tag).expect("a known tag");
    let mut env = make(template.env_type, &template.env_config).expect("a template makes an environment");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let got = baseline(env.as_mut(), VAL_SEEDS, Split::Val, template.max_actions_per_traj, repetitions, &mut rng);
    let got = got.expect("playable");
    println!("{tag}: {got:?}");
    got
}

/// The scores of `docs/environments.md`, as `ragen envs check` makes them.
#[test]
#[ignore = "takes a minute; prints a table"]
fn scores_of_all() {
    for template in ragen_envs::templates() {
        let Ok(mut env) = make(template.env_type, &template.env_config) else { continue };
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let budget = template.max_actions_per_traj;
        let got = baseline(env.as_mut(), VAL_SEEDS, Split::Val, budget, 4, &mut rng).expect("playable");
        println!(
            "{}: random {:.1} ± {:.1} return {:.2}, oracle {:.1} return {:.2}, best {:?}",
            template.tag,
            100.0 * got.random_success,
            100.0 * got.random_standard_error,
            got.random_return,
            100.0 * got.oracle_success,
            got.oracle_return,
            got.optimum
        );
    }
}

#[test]
fn the_reference_player_makes_2048() {
    let template = template("game_2048").expect("a known tag");
    let mut env = make(template.env_type, &template.env_config).expect("valid");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let got = baseline(env.as_mut(), 123..147, Split::Val, template.max_actions_per_traj, 1, &mut rng);
    let got = got.expect("playable");
    println!("game_2048: {got:?}");
    assert!(got.oracle_success >= 0.5 && got.random_success == 0.0, "{got:?}");
    // Within RAGEN's 700 actions no one makes the tile.
    let got = baseline(env.as_mut(), 123..131, Split::Val, 700, 1, &mut rng).expect("playable");
    assert_eq!(got.oracle_success, 0.0);
}

#[test]
fn countdown_instances_are_solvable_and_kept_apart() {
    let mut env = Countdown::from_json(&Value::Null).expect("valid");
    let mut instances = [HashSet::new(), HashSet::new()];
    for (split, instances) in [Split::Train, Split::Val].into_iter().zip(&mut instances) {
        for seed in 0..2_000 {
            let shown = env.reset(seed, split).expect("an instance");
            let Instance { target, mut nums } = env.instance().expect("an instance").clone();
            assert_eq!(shown, format!("Target: {target}, nums: {nums:?}"));
            assert!((1..=100).contains(&target) && (3..=4).contains(&nums.len()));
            assert!(nums.iter().all(|n| (1..=99).contains(n)) && has_solution(&nums, target as f64));
            nums.sort_unstable();
            instances.insert((target, nums));
        }
    }
    assert!(instances[0].is_disjoint(&instances[1]));
    assert!(instances.iter().all(|instances| instances.len() > 1_900));
    let mut compat = Countdown::from_json(&json!({ "compat": true })).expect("valid");
    let shown = |env: &mut Countdown, split| (0..200).map(|seed| env.reset(seed, split).expect("one")).collect();
    let (train, val): (Vec<String>, Vec<String>) = (shown(&mut compat, Split::Train), shown(&mut compat, Split::Val));
    assert_eq!(train, val);
}

#[test]
fn countdown_floor_and_ceiling() {
    let got = scored("Countdown", 20);
    assert_eq!((got.oracle_success, got.optimum, got.oracle_return), (1.0, Some(1.0), 1.0));
    // Wrong values with the right numbers are worth 0.1, whatever the random policy writes.
    let expected = got.random_success + 0.1 * (1.0 - got.random_success);
    assert!((got.random_return - expected).abs() < 1e-9 && got.random_success > 0.005, "{got:?}");
}

#[test]
fn countdown_answers_once() {
    let mut env = Countdown::from_json(&Value::Null).expect("valid");
    env.start_on(Instance { target: 10, nums: vec![2, 9, 3] });
    assert_eq!(env.oracle(1), ["9 + 3 - 2"]);
    assert!(env.oracle(0).is_empty());
    let step = env.step(" 9 - 2 + 3 ").expect("a step");
    assert_eq!((step.reward, step.terminated, step.info.success), (1.0, true, true));
    assert!(matches!(env.step("1"), Err(EnvError::Play { .. })) && env.oracle(1).is_empty());
}

#[test]
fn sudoku_puzzles_have_one_solution_unless_compatible() {
    for (size, difficulty, seeds) in [(4, "easy", 0..200), (9, "easy", 0..20), (9, "hard", 0..10), (16, "easy", 0..2)] {
        let config = |compat: bool| {
            let config = json!({ "grid_size": size, "difficulty": difficulty, "compat": compat });
            SudokuConfig::from_json(&config).expect("valid")
        };
        let (mut several, mut fewer) = (0, 0);
        for seed in seeds.clone() {
            let puzzle = generate::puzzle(&config(false), seed).expect("a puzzle");
            let reference = generate::puzzle(&config(true), seed).expect("a puzzle");
            assert_eq!(puzzle.solution, reference.solution, "the same grid lies under both");
            assert!(puzzle.solution.solved());
            assert_eq!(solutions(&puzzle.initial, 2), 1, "{size} {difficulty} {seed}");
            assert_eq!(reference.initial.empty(), config(true).blanks());
            fewer += usize::from(puzzle.initial.empty() < config(false).blanks());
            if size < 16 {
                several += usize::from(solutions(&reference.initial, 2) > 1);
            }
        }
        println!(
            "{size} {difficulty}: {several} of the reference's {seeds:?} have several solutions, {fewer} blanks fewer"
        );
    }
}

/// Number of completions up to `most`, by trying the cell with the fewest candidates.
fn solutions(grid: &Grid, most: usize) -> usize {
    let empty = grid.cells().iter().enumerate().filter(|&(_, &n)| n == 0).map(|(cell, _)| cell);
    let Some(cell) = empty.min_by_key(|&cell| grid.candidates(cell).len()) else {
        return 1;
    };
    let mut found = 0;
    for number in grid.candidates(cell) {
        let mut next = grid.clone();
        next.set(cell, number);
        found += solutions(&next, most - found);
        if found >= most {
            break;
        }
    }
    found
}

#[test]
fn sudoku_can_be_finished_within_its_budget() {
    for (tag, ceiling) in [("SmallSudoku", 19.0), ("SimpleSudoku", 42.0), ("MediumSudoku", 50.0)] {
        let got = scored(tag, 1);
        assert_eq!((got.oracle_success, got.optimum), (1.0, Some(1.0)), "{tag}");
        // 1 for every cell and 10 for the grid.
        assert!(got.oracle_return <= ceiling && got.oracle_return > ceiling - 3.0, "{tag}: {got:?}");
        assert!(got.random_success < 0.9 && got.random_return < got.oracle_return, "{tag}: {got:?}");
    }
    // The reference's own budget: 32 cells, 20 actions.
    let mut env = Sudoku::from_json(&json!({ "compat": true })).expect("valid");
    env.reset(10_000, Split::Train).expect("an instance");
    assert_eq!((env.optimum(20), env.optimum(31), env.optimum(32)), (Some(0.0), Some(0.0), Some(1.0)));
    assert_eq!(env.oracle(20).len(), 20);
}

#[test]
fn sixteen_by_sixteen_sudoku_is_solved() {
    let template = template("LargeSudoku").expect("a known tag");
    let mut env = make(template.env_type, &template.env_config).expect("valid");
    env.reset(123, Split::Val).expect("an instance");
    let plan = env.oracle(template.max_actions_per_traj);
    assert!(plan.len() >= 100, "{}", plan.len());
    let mut steps = Vec::new();
    for action in &plan {
        steps.push(env.step(action).expect("a step"));
    }
    let last = steps.pop().expect("steps");
    assert!(last.terminated && last.info.success && last.reward == 11.0 && steps.iter().all(|step| step.reward == 1.0));
}

#[test]
fn sudoku_pays_a_cell_once_unless_compatible() {
    let cells = vec![1, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 1];
    let solution = Grid::new(4, cells.clone()).expect("a grid");
    let mut initial = solution.clone();
    // Emptied so that 2 and 4 fit at row 1, column 2.
    for cell in [1, 3, 5, 7, 9, 13] {
        initial.set(cell, 0);
    }
    let play = |compat: bool| {
        let config = json!({ "grid_size": 4, "compat": compat, "max_steps": 6 });
        let mut env = Sudoku::from_json(&config).expect("valid");
        env.start_on(generate::Puzzle { initial: initial.clone(), solution: solution.clone() });
        let actions = ["1,2,4", "1,2,2", "1,2,4", "1,2,2", "place 2 at (1,2)", "9,9,9"];
        let steps: Vec<_> = actions.iter().map(|action| env.step(action).expect("a step")).collect();
        let rewards: Vec<f64> = steps.iter().map(|step| step.reward).collect();
        (rewards, steps.last().expect("steps").truncated)
    };
    assert_eq!(play(false), (vec![0.5, 0.5, 0.0, 0.0, -0.1, -0.1], true));
    assert_eq!(play(true), (vec![0.5, 1.0, 0.5, 1.0, -0.1, -0.1], false));
}

#[test]
fn sudoku_plays_on_from_wrong_numbers() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut env = make("sudoku", &json!({ "grid_size": 4, "difficulty": "hard" })).expect("valid");
    let mut repaired = 0;
    for seed in 0..100 {
        env.reset(seed, Split::Train).expect("an instance");
        for _ in 0..6 {
            if let Some(action) = env.sample_action(&mut rng) {
                env.step(&action).expect("a step");
            }
        }
        let plan = env.oracle(60);
        for (i, action) in plan.iter().enumerate() {
            assert_eq!(env.step(action).expect("a step").info.success, i + 1 == plan.len(), "seed {seed}: {plan:?}");
        }
        repaired += usize::from(!plan.is_empty());
    }
    // In the others random numbers block each other in a way that no number written over them undoes.
    assert!(repaired >= 89, "{repaired}");
}

#[test]
fn the_reference_player_makes_its_tile() {
    let template = template("Small2048").expect("a known tag");
    let mut env = make(template.env_type, &template.env_config).expect("valid");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let got = baseline(env.as_mut(), VAL_SEEDS, Split::Val, template.max_actions_per_traj, 4, &mut rng);
    let got = got.expect("playable");
    println!("Small2048: {got:?}");
    assert!(got.oracle_success > 0.95 && got.optimum.is_none() && got.random_success < 0.6, "{got:?}");
}

#[test]
fn making_the_tile_ends_the_game_unless_compatible() {
    let tiles = |a| Board::from_tiles(&[a, a, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect("tiles");
    let mut env = Game2048::from_json(&Value::Null).expect("valid");
    env.start_on(tiles(1024), 1);
    let step = env.step("left").expect("a step");
    assert_eq!((step.terminated, step.info.success, step.info.extra["max_tile"]), (true, true, 2048.0));
    assert!((step.reward - 0.1 * 2049f64.log2()).abs() < 1e-12 && env.available_actions().is_empty());
    let mut compat = Game2048::from_json(&json!({ "compat": true, "use_log_reward": false })).expect("valid");
    compat.start_on(tiles(1024), 1);
    let step = compat.step("left").expect("a step");
    assert_eq!((step.terminated, step.info.success, step.reward), (false, false, 2048.0));
    // Nothing moves up: an action is spent and nothing else happens.
    compat.start_on(tiles(64), 1);
    let (before, step) = (compat.render(), compat.step("Up").expect("a step"));
    assert_eq!((step.reward, step.info.action_is_valid, step.observation), (-0.1, false, before));
}

#[test]
fn the_cube_s_floor_and_ceiling() {
    let got = scored("rubikscube", 20);
    assert_eq!((got.oracle_success, got.optimum, got.oracle_return), (1.0, Some(1.0), 1.0));
    assert!(got.random_success > 0.1 && got.random_success < 0.5, "{got:?}");
    let got = scored("HarderRubiksCube", 4);
    assert_eq!((got.oracle_success, got.optimum), (1.0, Some(1.0)));
}

#[test]
fn scrambles_that_undo_themselves_are_replaced() {
    let mut reference = RubiksCube::from_json(&json!({ "scramble_depth": 2, "compat": true })).expect("valid");
    let mut env = RubiksCube::from_json(&json!({ "scramble_depth": 2 })).expect("valid");
    let (mut replaced, mut same) = (0, 0);
    for seed in 0..300 {
        let solved = {
            reference.reset(seed, Split::Train).expect("an instance");
            reference.cube().expect("a cube").solved()
        };
        env.reset(seed, Split::Train).expect("an instance");
        assert!(!env.cube().expect("a cube").solved(), "seed {seed}");
        // Others may differ too: the back face turns another way in the reference.
        assert!(!solved || env.cube() != reference.cube(), "seed {seed}");
        replaced += usize::from(solved);
        same += usize::from(env.cube() == reference.cube());
        if solved {
            // The reference's way out: a turn of one's own, taken back.
            assert_eq!(reference.oracle(20).len(), 2);
            // How far cubes are under the reference's turns is known for the nearest only.
            assert_eq!((reference.optimum(1), reference.optimum(2)), (None, Some(1.0)));
        }
    }
    // One in six: a turn taken back, or the opposite layer turned along.
    assert!((25..=80).contains(&replaced), "{replaced}");
    // On a solved cube the reference's turn of the back face exchanges stickers of one colour; as the second turn, of two
    // in twelve, it shows.
    let share = same as f64 / (300 - replaced) as f64;
    assert!((share - 10.0 / 12.0).abs() < 0.06, "{share}");
}

#[test]
fn the_cube_stops_at_its_limit() {
    let mut env = RubiksCube::from_json(&json!({ "max_steps": 2 })).expect("valid");
    env.start_on(Cube::solved_state().turned(0).turned(6).turned(8));
    assert!(env.oracle(20).is_empty() && env.optimum(20) == Some(0.0));
    assert!(!env.step("u").expect("a step").truncated);
    let step = env.step("U'").expect("a step");
    assert!(step.truncated && !step.terminated && env.step("U").is_err());
}

#[test]
fn navigation_floor_and_ceiling() {
    let got = scored("Spatial", 10);
    assert_eq!((got.oracle_success, got.optimum), (1.0, Some(1.0)));
    // An answer out of at most four, sooner or later.
    assert!(got.random_success > 0.2 && got.random_success < 0.5, "{got:?}");
    assert!(got.oracle_return > 9.4 && got.oracle_return <= 9.8, "{got:?}");
}

#[test]
fn navigation_rewards() {
    let mut env = Navigation::from_json(&json!({ "max_exp_steps": 4 })).expect("valid");
    let first = env.reset(3, Split::Train).expect("an instance");
    assert!(first.contains("Steps left: 5") && env.render() == first, "{first}");
    let (room, question) = env.instance().expect("an instance");
    let (name, right) = (room.objects[0].name, question.right);
    let wrong = (right + 1) % question.options.len();
    let letter = |i: usize| char::from(b'A' + i as u8);
    for (action, reward, valid) in [
        ("look", -1.0, false),
        ("Actions: [JumpTo(unicorn), Observe()]", -0.1, false),
        ("Actions: [Rotate(90), Observe()]", -0.1, true),
    ] {
        let step = env.step(action).expect("a step");
        assert_eq!((step.reward, step.info.action_is_valid, step.terminated), (reward, valid, false), "{action}");
    }
    assert!(env.render().contains("Steps left: 2") && env.render().contains("You face east."));
    let step = env.step(&format!("Actions: [Term({})]", letter(wrong))).expect("a step");
    assert_eq!((step.reward, step.terminated, step.info.success), (-1.1, true, false));
    let mut env = Navigation::from_json(&Value::Null).expect("valid");
    env.reset(3, Split::Train).expect("an instance");
    // Whatever is in view, one can jump to it, and it is then right here.
    let plan = env.oracle(5);
    assert!(plan.last().is_some_and(|action| action.contains("Term")), "{plan:?}");
    for _ in 0..4 {
        let shown = env.step("Rotate(90), Observe()").expect("a step").observation;
        if shown.contains(&format!("{name} ")) && shown.contains(" ahead") {
            let jumped = env.step(&format!("JumpTo({name}), Observe()")).expect("a step");
            if jumped.info.action_is_valid {
                assert!(jumped.observation.contains(&format!("{name} right here")), "{}", jumped.observation);
                return;
            }
        }
    }
    panic!("{name} was never in view");
}

#[test]
fn settings_are_checked() {
    for (env_type, config, expected) in [
        ("countdown", json!({ "max_numbers": 9 }), "from 2 to 8, found 9"),
        ("countdown", json!({ "min_numbers": 4, "max_numbers": 3 }), "not to be larger"),
        ("countdown", json!({ "max_targets": 9 }), "did you mean `max_target`?"),
        ("sudoku", json!({ "grid_size": 6 }), "expected 4, 9 or 16, found 6"),
        ("sudoku", json!({ "difficulty": "harder" }), "`difficulty`"),
        ("sudoku", json!({ "grid_sise": 9 }), "did you mean `grid_size`?"),
        ("sudoku", json!({ "max_steps": 0 }), "`max_steps`"),
        ("game_2048", json!({ "goal": 100 }), "power of two from 8 to 65536, found 100"),
        ("game_2048", json!({ "goal": 4 }), "found 4"),
        ("rubikscube", json!({ "scramble_depth": 0 }), "`scramble_depth`: expected a value from 1"),
        ("spatial", json!({ "num_objects": 1 }), "`num_objects`"),
        ("spatial", json!({ "question_types": ["where"] }), "found `where`"),
        ("spatial", json!({ "question_types": [] }), "found none"),
        ("spatial", json!({ "room_size": [2, 10] }), "`room_size`"),
        ("sokoban", json!({ "data_path": "/nowhere.txt" }), "`data_path`: cannot read /nowhere.txt"),
        ("sokoban", json!({ "data_path": "/nowhere.txt", "num_boxes": 4 }), "`num_boxes` has no effect"),
        ("sokoban", json!({ "val_every": 5 }), "need `data_path`"),
    ] {
        let found = match make(env_type, &config) {
            Ok(_) => panic!("{env_type} {config} was accepted"),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{env_type} {config}: expected {expected:?} in {found:?}");
    }
    let mut env = make("countdown", &json!({ "min_numbers": 2, "max_numbers": 2, "max_target": 2 })).expect("valid");
    assert!(env.reset(1, Split::Train).is_ok());
}
