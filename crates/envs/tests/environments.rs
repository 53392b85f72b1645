//! Every built-in environment keeps the contract, has the known floor and ceiling, and survives nonsense.

use proptest::prelude::*;
use ragen_envs::baseline::{VAL_SEEDS, baseline, random_action};
use ragen_envs::checker::{check, malformed_actions};
use ragen_envs::difficulty::{leakage, solution_lengths};
use ragen_envs::sokoban::{Cell, Sokoban, SokobanConfig, generate::level};
use ragen_envs::{DemoStyle, Environment, Split, Template, make, template, templates};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::json;

/// The templates that need nothing of the user's; the others have tests of their own.
fn ready() -> Vec<Template> {
    templates().into_iter().filter(|template| template.needs().is_none()).collect()
}

fn env(template: &Template) -> Box<dyn Environment> {
    make(template.env_type, &template.env_config).expect("a template makes an environment")
}

fn tagged(tag: &str) -> Box<dyn Environment> {
    env(&template(tag).expect("a known tag"))
}

#[test]
fn every_template_passes_the_checker() {
    for template in ready() {
        // Making a 16 × 16 Sudoku takes a while.
        let seeds = if template.tag == "LargeSudoku" { 12 } else { 40 };
        let report = check(|| env(&template), 10_000..10_000 + seeds as u64)
            .unwrap_or_else(|problems| panic!("{}: {problems:#?}", template.tag));
        assert_eq!(report.seeds, seeds);
        // The checker's episodes are too short to come to the end of these games.
        let long = ["sudoku", "game_2048", "alfworld"].contains(&template.env_type) && template.tag != "SmallSudoku";
        assert!((report.ended > 0 || long) && report.distinct_instances > 10, "{}: {report:?}", template.tag);
        // How often the best player wins 2048 is not known.
        let checked = if template.env_type == "game_2048" { 0 } else { seeds };
        assert_eq!(report.oracle_checked, checked, "{}", template.tag);
    }
}

#[test]
fn coordinate_only_and_fixed_names_pass_the_checker() {
    for (env_type, config) in [
        ("sokoban", json!({ "num_boxes": 1, "observation_format": "grid_coord", "max_steps": 12 })),
        ("sokoban", json!({ "dim_room": [9, 7], "num_boxes": 2, "search_depth": 40 })),
        ("frozen_lake", json!({ "size": 6, "observation_format": "coord", "is_slippery": false })),
        ("frozen_lake", json!({ "map_type": "gymnasium", "p": 0.8, "success_rate": 0.3333333333333333 })),
        ("bandit", json!({ "lo_arm_name": "Phoenix", "hi_arm_name": "Dragon" })),
    ] {
        let report = check(|| make(env_type, &config).expect("valid"), 0..25);
        report.unwrap_or_else(|problems| panic!("{env_type} {config}: {problems:#?}"));
    }
}

/// Random within its 95 % interval around the reference, ceiling to three digits.
fn floor_and_ceiling(tag: &str, random: f64, optimum: f64, played: f64) {
    const REPETITIONS: usize = 20;
    let template = template(tag).expect("a known tag");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let got =
        baseline(env(&template).as_mut(), VAL_SEEDS, Split::Val, template.max_actions_per_traj, REPETITIONS, &mut rng)
            .expect("playable");
    println!("{tag}: {got:?}");
    assert_eq!(got.instances, 256);
    // The reference value is itself an average with three digits.
    let allowed = 1.96 * got.random_standard_error + 0.0005;
    assert!((got.random_success - random).abs() <= allowed, "{tag}: random {got:?}");
    let known = got.optimum.expect("known");
    assert!((known - optimum).abs() < 0.0005 + 1e-9, "{tag}: optimum {got:?}");
    assert!((got.oracle_success - played).abs() < 0.0005 + 1e-9, "{tag}: oracle {got:?}");
}

#[test]
fn sokoban_floor_and_ceiling() {
    floor_and_ceiling("SimpleSokoban", 0.191, 1.0, 1.0);
}

#[test]
fn frozen_lake_floor_and_ceiling() {
    floor_and_ceiling("FrozenLake", 0.243, 0.944, 0.914);
}

#[test]
fn bandit_floor_and_ceiling() {
    floor_and_ceiling("Bandit", 0.5, 1.0, 1.0);
    floor_and_ceiling("BanditTest", 0.5, 1.0, 1.0);
    floor_and_ceiling("BanditRev", 0.5, 1.0, 1.0);
}

#[test]
fn sokoban_solution_lengths() {
    let lengths = solution_lengths(tagged("SimpleSokoban").as_mut(), 123..635, Split::Val, 100).expect("instances");
    let expected = [(1, 48), (2, 127), (3, 55), (4, 86), (5, 75), (6, 52), (7, 28), (8, 26), (9, 7), (10, 8)];
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn sokoban_leakage() {
    let mut env = tagged("SimpleSokoban");
    let start = std::time::Instant::now();
    let found = leakage(env.as_mut(), VAL_SEEDS, 10_000..20_000).expect("instances");
    println!("{found:?}, {:.1} µs a board", start.elapsed().as_secs_f64() * 1e6 / 10_256.0);
    // The reference cannot reproduce the boards of four of these seeds, and counted without them. Our re-seeded board
    // of 17829 is that of validation seed 317.
    let irreproducible = [11_482, 12_230, 17_829, 18_974];
    let reproducible = (10_000..20_000).filter(|seed| !irreproducible.contains(seed));
    let compared = leakage(env.as_mut(), VAL_SEEDS, reproducible).expect("instances");
    assert_eq!((compared.val, compared.leaked, found.leaked), (256, 132, 133));
    let all = leakage(env.as_mut(), 123..635, 10_000..11_600).expect("instances");
    assert_eq!((all.val, all.val_distinct, all.leaked_distinct), (512, 472, 95));
}

#[test]
fn larger_sokoban_reseeds_where_the_reference_gives_up() {
    let template = template("LargerSokoban").expect("a known tag");
    let config = SokobanConfig::from_json(&template.env_config).expect("valid");
    let levels: Vec<_> = (251..379).map(|seed| (seed, level(&config, seed).expect("a level"))).collect();
    assert_eq!(levels.iter().filter(|(_, level)| level.reseeds > 0).count(), 12);
    let kept = levels.iter().filter(|(_, level)| level.reseeds == 0).map(|(seed, _)| *seed);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let got = baseline(env(&template).as_mut(), kept, Split::Val, 10, 100, &mut rng).expect("playable");
    println!("LargerSokoban: {got:?}");
    assert_eq!((got.instances, got.optimum, got.oracle_success), (116, Some(1.0), 1.0));
    // The reference's 0.025 has three digits; the standard error here is 0.0015.
    assert!((got.random_success - 0.025).abs() < 3.0 * got.random_standard_error + 0.0005, "{got:?}");
    assert!((got.random_return + 0.43).abs() < 0.06, "{got:?}");
}

#[test]
fn further_reference_points() {
    let lake_v1 = json!({ "p": 0.8, "success_rate": 1.0 / 3.0 });
    let sure_lake = json!({ "success_rate": 1.0 });
    let simple = json!({ "num_boxes": 1 });
    let vocab = json!({ "num_boxes": 1, "search_depth": 30 });
    for (env_type, config, seeds, random, optimum) in [
        ("frozen_lake", &lake_v1, 123..379, 0.212, 0.483),
        ("frozen_lake", &lake_v1, 123..635, 0.212, 0.484),
        ("frozen_lake", &lake_v1, 507..635, 0.212, 0.481),
        ("frozen_lake", &json!(null), 123..635, 0.246, 0.950),
        ("frozen_lake", &sure_lake, 123..635, 0.246, 1.0),
        ("sokoban", &simple, 123..635, 0.190, 1.0),
        // The reference gives 0.993: it counts seed 11482, which it cannot reproduce, as unsolved.
        ("sokoban", &simple, 10_000..11_600, 0.171, 0.99375),
        ("sokoban", &vocab, 379..507, 0.179, 1.0),
    ] {
        let mut env = make(env_type, config).expect("valid");
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let got = baseline(env.as_mut(), seeds.clone(), Split::Val, 10, 10, &mut rng).expect("playable");
        println!("{env_type} {config} {seeds:?}: {got:?}");
        assert!((got.optimum.expect("known") - optimum).abs() < 0.000_51, "{env_type} {config} {seeds:?}: {got:?}");
        // Both sides are samples: three standard errors of ours and the reference's rounding.
        let allowed = 3.0 * got.random_standard_error + 0.001;
        assert!((got.random_success - random).abs() < allowed, "{env_type} {config} {seeds:?}: {got:?}");
    }
}

#[test]
fn sokoban_resets_quickly() {
    for tag in ["SimpleSokoban", "LargerSokoban"] {
        let mut env = tagged(tag);
        let start = std::time::Instant::now();
        for seed in 0..1_000 {
            env.reset(seed, Split::Train).expect("an instance");
        }
        let each = start.elapsed().as_secs_f64() / 1_000.0;
        println!("{tag}: {:.1} µs a reset", each * 1e6);
        // A generous limit, for machines that are busy: typical is a small part of a millisecond.
        assert!(each < 5e-3, "{tag}: {each} s a reset");
    }
}

#[test]
fn ten_useless_moves_sum_as_the_reference_sums_them() {
    let mut env = tagged("SimpleSokoban");
    env.reset(10_000, Split::Train).expect("an instance");
    // Seed 10000 has the player at the lower wall.
    let rewards: Vec<f64> = (0..10).map(|_| env.step("Down").expect("a step").reward).collect();
    assert_eq!(rewards.iter().sum::<f64>(), -0.999_999_999_999_999_9);
}

#[test]
fn sokoban_truncates_at_its_own_limit() {
    let mut env = make("sokoban", &json!({ "num_boxes": 1, "max_steps": 3 })).expect("valid");
    env.reset(10_000, Split::Train).expect("an instance");
    assert!(env.oracle(10).len() == 3, "three moves solve it");
    let steps: Vec<_> = (0..3).map(|_| env.step("Down").expect("a step")).collect();
    assert_eq!(steps.iter().map(|step| step.truncated).collect::<Vec<_>>(), [false, false, true]);
    assert!(steps.iter().all(|step| !step.terminated && !step.info.action_is_effective));
    assert!(env.oracle(10).is_empty() && env.step("Up").is_err());
}

#[test]
fn groups_share_a_bandit_and_reversal_swaps_it() {
    let (mut a, mut b, mut reversed) = (tagged("Bandit"), tagged("Bandit"), tagged("BanditRev"));
    let mut wins = 0.0;
    for seed in 0..400 {
        let shown = a.reset(seed, Split::Train).expect("an instance");
        assert_eq!(shown, b.reset(seed, Split::Val).expect("an instance"));
        let best = a.oracle(1);
        let step = a.step(&best[0]).expect("a step");
        assert_eq!(step, b.step(&best[0]).expect("a step"));
        wins += step.reward;
        reversed.reset(seed, Split::Train).expect("an instance");
        let actions = reversed.available_actions();
        assert!(actions.contains(&best[0]) && reversed.oracle(1) != best);
        let lost = reversed.step(&best[0]).expect("a step");
        assert_eq!((lost.reward, lost.info.success, lost.terminated), (0.1, false, true));
    }
    // The high arm pays 1 with probability 1/4: mean 100, standard deviation 8.7.
    assert!((66.0..=134.0).contains(&wins), "{wins}");
}

#[test]
fn train_and_test_names_do_not_overlap() {
    let names = |tag: &str| {
        let mut env = tagged(tag);
        let mut names = std::collections::BTreeSet::new();
        for seed in 0..500 {
            env.reset(seed, Split::Train).expect("an instance");
            names.extend(env.available_actions());
        }
        names
    };
    let (train, test) = (names("Bandit"), names("BanditTest"));
    assert_eq!((train.len(), test.len()), (24, 16));
    assert!(train.is_disjoint(&test));
}

#[test]
fn settings_are_checked() {
    let message = |env_type: &str, config: serde_json::Value| match make(env_type, &config) {
        Ok(_) => panic!("{env_type} {config} was accepted"),
        Err(error) => error.to_string(),
    };
    for (env_type, config, expected) in [
        ("sokobon", json!(null), "did you mean `sokoban`?"),
        ("frozenlake", json!(null), "did you mean `frozen_lake`?"),
        ("sokoban", json!({ "num_box": 1 }), "did you mean `num_boxes`?"),
        ("sokoban", json!({ "num_boxes": "two" }), "`num_boxes`: invalid type"),
        ("sokoban", json!({ "num_boxes": 0 }), "from 1 to 64, found 0"),
        ("sokoban", json!({ "num_boxes": 15 }), "16 inner cells"),
        ("sokoban", json!({ "dim_x": 2 }), "`dim_x`: expected a value from 3 to 64, found 2"),
        ("sokoban", json!({ "dim_x": -6 }), "`dim_x`: invalid value"),
        ("sokoban", json!({ "max_steps": 0 }), "`max_steps`"),
        ("sokoban", json!({ "search_depth": 1 }), "`search_depth`"),
        ("sokoban", json!({ "observation_format": "grids" }), "`grid_coord`"),
        ("sokoban", json!({ "grid_lookup": { "0": "P" } }), "share the symbol `P`"),
        ("sokoban", json!({ "grid_lookup": { "7": "Q" } }), "expected cell codes 0 to 6"),
        ("sokoban", json!({ "grid_vocab": { "Q": "what" } }), "found `Q`"),
        ("sokoban", json!({ "render_mode": "rgb_array" }), "expected `text`"),
        ("sokoban", json!([1]), "expected a mapping"),
        ("frozen_lake", json!({ "succes_rate": 1 }), "did you mean `success_rate`?"),
        ("frozen_lake", json!({ "success_rate": 1.5 }), "from 0 to 1, found 1.5"),
        ("frozen_lake", json!({ "size": 1 }), "`size`"),
        ("bandit", json!({ "lo_arm_name": "A" }), "without `hi_arm_name`"),
        ("bandit", json!({ "lo_arm_name": "A", "hi_arm_name": "a" }), "different names"),
        ("bandit", json!({ "lo_arm_score": 0.5 }), "pay more on average"),
    ] {
        let found = message(env_type, config.clone());
        assert!(found.contains(expected), "{env_type} {config}: expected {expected:?} in {found:?}");
    }
    let unknown = template("SimpleSokobam").expect_err("unknown").to_string();
    assert!(unknown.contains("did you mean `SimpleSokoban`?"), "{unknown}");
}

#[test]
fn an_impossible_level_is_an_error() {
    // Depth 2 looks at the first state only, so no box is ever pulled away.
    let mut env = make("sokoban", &json!({ "dim_room": [3, 6], "num_boxes": 2, "search_depth": 2 })).expect("valid");
    let error = env.reset(1, Split::Train).expect_err("no level").to_string();
    assert!(error.contains("seed 1") && error.contains("re-seeds"), "{error}");
}

#[test]
fn a_lake_without_a_way_is_an_error() {
    let mut env = make("frozen_lake", &json!({ "size": 3, "p": 0, "map_type": "gymnasium" })).expect("valid");
    let error = env.reset(1, Split::Train).expect_err("no map").to_string();
    assert!(error.contains("seed 1") && error.contains("greater p"), "{error}");
    assert!(env.step("Left").is_err() && env.oracle(5).is_empty() && env.render().is_empty());
}

#[test]
fn odd_settings_never_panic() {
    let keys = [
        ("sokoban", "dim_room dim_x dim_y num_boxes max_steps search_depth observation_format grid_lookup grid_vocab"),
        ("frozen_lake", "size p success_rate is_slippery map_type observation_format grid_lookup render_mode"),
        ("bandit", "split reversed lo_arm_name hi_arm_name lo_arm_score hi_arm_loscore hi_arm_hiscore_prob"),
    ];
    let values = json!([
        null, true, 0, 1, 2, 5, 64, 65, -1, 0.5, 1e300, -1e300, 18446744073709551615u64, "", "x", "test", "coord",
        "gymnasium", [], [6], [6, 6], [0, 0], [4, 64], [6, 6, 6], {}, { "0": "" }, { "0": "W" }, { "0": "WW" },
        { "-1": "W" }, { "1": "\n" }, { "#": "" }, { "W": 1 }
    ]);
    let values = values.as_array().expect("values");
    let (mut accepted, mut refused) = (0, 0);
    for (env_type, keys) in keys {
        for key in keys.split(' ') {
            for value in values {
                match make(env_type, &json!({ key: value })) {
                    Ok(mut env) => {
                        accepted += 1;
                        if env.reset(5, Split::Val).is_ok() {
                            let action = env.available_actions().swap_remove(0);
                            assert!(env.step(&action).is_ok(), "{env_type} {key} {value}");
                        }
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(error.to_string().contains(env_type), "{error}");
                    }
                }
            }
        }
    }
    assert!(accepted > 40 && refused > 400, "{accepted} accepted, {refused} refused");
}

#[test]
fn sokoban_reasoning_can_be_read_off_the_board() {
    for tag in ["SimpleSokoban", "LargerSokoban"] {
        let template = template(tag).expect("a known tag");
        let mut env = Sokoban::from_json(&template.env_config).expect("valid");
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        for seed in 0..200 {
            env.reset(seed, Split::Train).expect("an instance");
            let mut left = 10;
            while let Some(turn) = env.demonstrate(left, 1, DemoStyle::Brief, &mut rng) {
                let board = env.board().expect("a board").clone();
                let mut places = 0;
                let (mut from, mut to, mut offset) = ((0, 0), (0, 0), (0, 0));
                for word in turn.reasoning.split_whitespace() {
                    let Some(digits) = word.find(|c: char| c.is_ascii_digit()) else { continue };
                    let (name, place) = word.split_at(digits);
                    let number: usize = place.parse().expect("row and column, a digit each, or a distance");
                    let far = number.cast_signed();
                    let distance = match name {
                        "up" => Some((-far, 0)),
                        "down" => Some((far, 0)),
                        "left" => Some((0, -far)),
                        "right" => Some((0, far)),
                        _ => None,
                    };
                    if let Some((down, right)) = distance {
                        offset = (offset.0 + down, offset.1 + right);
                        continue;
                    }
                    let cell = number / 10 * board.cols() + number % 10;
                    places += 1;
                    assert_ne!(board.fixed()[cell], Cell::Wall, "{}", turn.reasoning);
                    match name {
                        "P" => assert_eq!(cell, board.player(), "{}", turn.reasoning),
                        "box" => {
                            assert!(board.state()[cell].is_box(), "{}", turn.reasoning);
                            from = board.position(cell);
                        }
                        "goal" => {
                            assert_eq!(board.fixed()[cell], Cell::Target, "{}", turn.reasoning);
                            to = board.position(cell);
                        }
                        "stand" => assert!(!board.state()[cell].is_box(), "{}", turn.reasoning),
                        _ => panic!("an unknown place in {}", turn.reasoning),
                    }
                }
                assert!(places >= 3, "{}", turn.reasoning);
                let reached = (from.0.checked_add_signed(offset.0), from.1.checked_add_signed(offset.1));
                assert_eq!(reached, (Some(to.0), Some(to.1)), "{}", turn.reasoning);
                left -= 1;
                env.step(&turn.actions[0]).expect("a step");
            }
        }
    }
}

#[test]
fn symbols_and_legend_follow_the_settings() {
    let mut env = tagged("SokobanDifferentGridVocab");
    let text = env.reset(123, Split::Val).expect("an instance");
    assert!(text.chars().all(|symbol| "W.GCBA@\n".contains(symbol)), "{text}");
    assert_eq!(env.spec().legend[0], ("W".to_owned(), "wall".to_owned()));
}

#[test]
fn demonstrations_solve_what_they_explain() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for template in ready() {
        let mut env = env(&template);
        let mut wordings = std::collections::HashSet::new();
        // Their episodes have a hundred turns and more.
        let seeds = if ["LargeSudoku", "game_2048"].contains(&template.tag) { 2 } else { 60 };
        for seed in 0..seeds {
            env.reset(seed, Split::Train).expect("an instance");
            let mut left = template.max_actions_per_traj;
            'episode: while let Some(turn) = env.demonstrate(left, 2, DemoStyle::Brief, &mut rng) {
                assert!((1..=2).contains(&turn.actions.len()));
                assert_eq!(turn.actions, env.oracle(left)[..turn.actions.len()]);
                assert!(turn.reasoning.split_whitespace().count() <= 13, "{}", turn.reasoning);
                let long = env.demonstrate(left, 2, DemoStyle::Verbose, &mut rng).expect("a turn");
                assert!(long.reasoning.len() > turn.reasoning.len(), "{} / {}", long.reasoning, turn.reasoning);
                if seed < 3 {
                    println!("{}\n{} | {} -> {:?}", env.render(), turn.reasoning, long.reasoning, turn.actions);
                }
                wordings.insert(turn.reasoning);
                for action in &turn.actions {
                    left -= 1;
                    let step = env.step(action).expect("a step");
                    if step.terminated || step.truncated {
                        assert!(step.info.success || ["frozen_lake", "game_2048"].contains(&template.env_type));
                        break 'episode;
                    }
                }
            }
        }
        let fewest = match template.tag {
            // A single turn of the cube has twelve instances, and turning the opposite face undoes it as well.
            "rubikscube" => 5,
            // Ten or so things can be done in the small shop, each said in one way.
            "WebShopTiny" => 10,
            _ => 20,
        };
        assert!(wordings.len() > fewest, "{}: only {} wordings", template.tag, wordings.len());
    }
}

#[test]
fn nonsense_never_panics() {
    let malformed = malformed_actions();
    for tag in ["SimpleSokoban", "LargerSokoban", "FrozenLake", "CoordFrozenLake", "Bandit"] {
        let (mut env, mut rng) = (tagged(tag), ChaCha8Rng::seed_from_u64(11));
        env.reset(0, Split::Train).expect("an instance");
        for i in 0..20_000usize {
            let action = match rng.next_u32() % 8 {
                0 => malformed[i % (malformed.len() - 3)].clone(),
                1 if i % 500 == 0 => malformed[malformed.len() - 1 - i % 3].clone(),
                1 => (0..rng.next_u32() % 12).filter_map(|_| char::from_u32(rng.next_u32() % 0x11_0000)).collect(),
                _ => random_action(env.as_ref(), &mut rng).unwrap_or_default(),
            };
            match env.step(&action) {
                Ok(step) => assert!(step.reward.is_finite() && step.observation == env.render()),
                Err(_) => drop(env.reset(rng.next_u64(), Split::Val)),
            }
            let _ = env.state_key();
            if i % 50 == 0 {
                let _ = env.demonstrate((rng.next_u32() % 12) as usize, 3, DemoStyle::Verbose, &mut rng);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_either_work_or_say_why(
        rows in 0usize..12, cols in 0usize..12, boxes in 0usize..5, depth in 0usize..40, seed: u64, moves: Vec<String>,
    ) {
        let config = json!({ "dim_room": [rows, cols], "num_boxes": boxes, "search_depth": depth });
        if let Ok(mut env) = make("sokoban", &config) && env.reset(seed, Split::Train).is_ok() {
            for action in &moves {
                prop_assert!(env.step(action).is_ok());
            }
        }
    }

    #[test]
    fn sokoban_plans_solve_from_anywhere(seed in 0u64..5_000, moves in proptest::collection::vec(0usize..4, 0..8)) {
        let mut env = tagged("SimpleSokoban");
        env.reset(seed, Split::Train).expect("an instance");
        let actions = env.spec().actions.clone();
        for i in moves {
            if env.step(&actions[i]).expect("a step").terminated {
                return Ok(());
            }
        }
        let plan = env.oracle(50);
        // One action fewer than a shortest solution does not suffice.
        prop_assert!(plan.is_empty() || env.oracle(plan.len() - 1).is_empty());
        for (i, action) in plan.iter().enumerate() {
            let step = env.step(action).expect("a step");
            prop_assert_eq!(step.terminated, i + 1 == plan.len());
        }
    }
}

#[test]
fn demonstrations_claim_what_is_true_and_false_claims_are_found() {
    let mut rng = rand_chacha::ChaCha8Rng::from_seed([7; 32]);
    for tag in ["SimpleSokoban", "LargerSokoban", "FrozenLake"] {
        let mut env = tagged(tag);
        let mut claims = 0;
        for seed in 0..40 {
            env.reset(seed, Split::Train).unwrap();
            for style in [DemoStyle::Brief, DemoStyle::Verbose] {
                let Some(turn) = env.demonstrate(20, 5, style, &mut rng) else { continue };
                let found = env.check_reasoning(&turn.reasoning, &turn.actions).unwrap();
                assert_eq!(found.right, found.claims, "{tag}, seed {seed}: {}", turn.reasoning);
                claims += found.claims;
            }
        }
        assert!(claims > 80, "{tag}: {claims} claims checked");
        let actions = ["Up".to_owned()];
        let wrong = env.check_reasoning("P99 box99 goal99 hole99 push down", &actions).unwrap();
        assert_eq!((wrong.claims, wrong.right), (5, 0), "{tag}");
        assert_eq!(env.check_reasoning("nothing to see", &actions).unwrap().claims, 0);
    }
    let mut lake = tagged("FrozenLake");
    lake.reset(123, Split::Val).unwrap();
    let all = lake.check_reasoning("hole hole hole hole", &[]).unwrap();
    let none = lake.check_reasoning("left down right up", &[]).unwrap();
    assert_eq!((all.claims, none.claims, all.right + none.right), (4, 4, 4), "each side is a hole or is none");
    assert!(tagged("Bandit").check_reasoning("P11", &[]).is_none());
}

/// Share of the validation instances, eight episodes each, that a novice solves within `turns` turns and 10 actions.
fn novice_success(tag: &str, turns: usize) -> f64 {
    let template = template(tag).expect("a known tag");
    let mut env = make(template.env_type, &template.env_config).expect("a valid template");
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let mut solved = 0;
    for seed in VAL_SEEDS.flat_map(|seed| [seed; 8]) {
        env.reset(seed, Split::Val).expect("an instance");
        let mut left = 10;
        'episode: for _ in 0..turns {
            let Some(turn) = env.demonstrate_novice(left, 5, DemoStyle::Brief, &mut rng) else { break };
            for action in &turn.actions {
                let step = env.step(action).expect("a step");
                left -= 1;
                if step.terminated || step.truncated {
                    solved += usize::from(step.info.success);
                    break 'episode;
                }
            }
            if left == 0 {
                break;
            }
        }
    }
    solved as f64 / (8 * VAL_SEEDS.count()) as f64
}

/// A novice teaches how to act and leaves what to aim for to be learned.
#[test]
fn novices_are_far_from_the_oracle() {
    let (sokoban, lake) = (novice_success("SimpleSokoban", 5), novice_success("FrozenLake", 10));
    println!("novices: Sokoban {sokoban:.3}, FrozenLake {lake:.3}");
    assert!((0.40..0.50).contains(&sokoban), "{sokoban}");
    assert!((0.15..0.35).contains(&lake), "{lake}");
}
