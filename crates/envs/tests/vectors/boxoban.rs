//! Levels of Boxoban's own files: read, played, solved.

use std::collections::HashSet;

use ragen_envs::sokoban::boxoban::Levels;
use ragen_envs::sokoban::pushes::few_pushes;
use ragen_envs::{Environment, Split, checker, make};
use serde_json::json;

fn env(config: &serde_json::Value) -> Box<dyn Environment> {
    make("sokoban", config).expect("levels")
}

#[test]
fn files_hold_the_levels_they_say() {
    let Some(folder) = super::fixtures::data("boxoban") else { return };
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a file");
        // A file that was cut off ends with part of a level, which is refused.
        let whole = match Levels::parse(&text) {
            Ok(_) => &text[..],
            Err(error) => {
                let last = text.rfind(';').expect("a level");
                let line = text[..last].lines().count() + 2;
                assert!(error.contains(&format!("the level at line {line}")), "{error}");
                &text[..last]
            }
        };
        let levels = Levels::parse(whole).expect("levels");
        assert_eq!(levels.len(), whole.lines().filter(|line| line.starts_with(';')).count(), "{}", path.display());
        for i in 0..levels.len() {
            let board = levels.get(i).expect("a level");
            assert_eq!((board.rows(), board.cols(), board.box_cells().count()), (10, 10, 4));
        }
        count += levels.len();
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn plans_solve_unfiltered_levels() {
    let Some(path) = super::fixtures::data("boxoban/unfiltered_test_000.txt") else { return };
    let levels = Levels::read(&path).expect("levels");
    let (mut moves, mut solved) = (0, 0);
    let start = std::time::Instant::now();
    for i in 0..100 {
        let mut board = levels.get(i).expect("a level");
        let Some(plan) = few_pushes(&board) else { continue };
        for &direction in &plan {
            board.step(direction);
        }
        assert!(board.solved(), "level {i}");
        (moves, solved) = (moves + plan.len(), solved + 1);
    }
    let each = start.elapsed().as_secs_f64() / 100.0;
    println!("{solved} of 100 solved, {:.1} moves on average, {:.1} ms each", moves as f64 / 100.0, 1e3 * each);
    assert_eq!(solved, 100);
}

#[test]
fn an_environment_of_levels_keeps_the_contract() {
    let Some(path) = super::fixtures::data("boxoban/unfiltered_test_000.txt") else { return };
    let config = json!({ "data_path": path, "max_steps": 120 });
    let report = checker::check(|| env(&config), 0..12).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!(report.distinct_instances, 12);
    let mut env = env(&config);
    let boards = |env: &mut Box<dyn Environment>, split, count| -> HashSet<String> {
        (0..count).map(|seed| env.reset(seed, split).expect("a level")).collect()
    };
    let (train, val) = (boards(&mut env, Split::Train, 900), boards(&mut env, Split::Val, 100));
    assert_eq!((train.len(), val.len()), (900, 100));
    assert!(train.is_disjoint(&val));
    // Seeds begin again at the end, and one plan is followed to the end.
    let first = env.reset(0, Split::Val).expect("a level");
    assert_eq!(env.reset(100, Split::Val).expect("a level"), first);
    let plan = env.oracle(120);
    assert_eq!(env.optimum(120), Some(1.0));
    for (i, action) in plan.iter().enumerate() {
        assert_eq!(env.oracle(120 - i)[0], *action);
        assert_eq!(env.step(action).expect("a step").terminated, i + 1 == plan.len());
    }
    // Fewer moves than the plan has: unknown whether another way is shorter.
    env.reset(0, Split::Val).expect("a level");
    assert_eq!((env.optimum(plan.len() - 1), env.optimum(0)), (None, Some(0.0)));
}

#[test]
fn a_folder_of_its_own_for_validation() {
    let Some(folder) = super::fixtures::data("boxoban") else { return };
    let (train, val) = (folder.join("hard_003.txt"), folder.join("unfiltered_test_000.txt"));
    let mut env = env(&json!({ "data_path": train, "val_path": val }));
    let boards = |env: &mut Box<dyn Environment>, split| -> HashSet<String> {
        (0..1200).map(|seed| env.reset(seed, split).expect("a level")).collect()
    };
    assert_eq!(boards(&mut env, Split::Train).len(), 332);
    assert_eq!(boards(&mut env, Split::Val).len(), 1000);
}
