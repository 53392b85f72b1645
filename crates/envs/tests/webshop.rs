//! WebShop on its generated catalogues: goals can be met, nonsense does no harm, the numbers have the public set's
//! shape.

use std::collections::{BTreeMap, BTreeSet};

use ragen_envs::baseline::{VAL_SEEDS, baseline};
use ragen_envs::checker::{check, malformed_actions};
use ragen_envs::rng::splitmix64;
use ragen_envs::webshop::{Action, Grade, PageKind, Session, Shop, WebShop, WebShopConfig, catalogue};
use ragen_envs::{DemoStyle, Environment, Split, Step, make, template};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::{Value, json};

fn env(config: Value) -> WebShop {
    WebShop::from_json(&config).expect("valid settings")
}

#[test]
fn every_setting_passes_the_checker() {
    for config in [
        json!({ "wrapper": "ragen_v2", "observation_mode": "text_rich", "show_attrs": true }),
        json!({ "wrapper": "verl_agent" }),
        json!({ "num_prev_obs": 2, "num_prev_actions": 1, "hints": false }),
        json!({ "dataset": "reduced", "compact": true, "results_per_page": 1, "eval_goals": "test" }),
        json!({ "difficulty": "hard", "limit_goals": 300, "num_products": 400, "data_seed": 9 }),
    ] {
        let report = check(|| make("webshop", &config).expect("valid"), 0..12);
        report.unwrap_or_else(|problems| panic!("{config}: {problems:#?}"));
    }
}

/// Buys as the oracle does, from the goal's first page.
fn oracle_reward(env: &mut WebShop, number: usize) -> (f64, usize) {
    let goal = env.shop().goal(number).expect("a goal");
    env.start_on(goal);
    let plan = env.oracle(9);
    (play(env, plan.iter()).reward, plan.len())
}

/// Takes all actions and returns the last step.
fn play<'a>(env: &mut WebShop, actions: impl Iterator<Item = &'a String>) -> Step {
    let mut last = None;
    for action in actions {
        last = Some(env.step(action).expect("a step"));
    }
    last.expect("at least one action")
}

#[test]
fn the_oracle_meets_every_goal() {
    for config in [json!({}), json!({ "data_seed": 1 }), json!({ "dataset": "reduced", "results_per_page": 4 })] {
        let mut env = env(config.clone());
        let mut lengths = BTreeMap::new();
        for number in 0..env.shop().num_goals() {
            let (reward, length) = oracle_reward(&mut env, number);
            assert_eq!(reward, 1.0, "{config}, goal {number}: {:?}", env.shop().goal(number));
            *lengths.entry(length).or_insert(0) += 1;
        }
        println!("{config}: {} goals, by number of actions {lengths:?}", env.shop().num_goals());
    }
}

#[test]
fn floor_and_ceiling() {
    for (tag, success, reward) in
        [("WebShop", RANDOM_WEBSHOP.0, RANDOM_WEBSHOP.1), ("WebShopTiny", RANDOM_TINY.0, RANDOM_TINY.1)]
    {
        let template = template(tag).expect("a known tag");
        let mut env = make(template.env_type, &template.env_config).expect("valid");
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let got = baseline(env.as_mut(), VAL_SEEDS, Split::Val, template.max_actions_per_traj, 8, &mut rng);
        let got = got.expect("playable");
        println!("{tag}: {got:?}");
        assert_eq!((got.oracle_success, got.oracle_return, got.optimum), (1.0, 1.0, Some(1.0)), "{tag}");
        assert!((got.random_success - success).abs() < 0.01, "{tag}: {got:?}");
        assert!((got.random_return - reward).abs() < 0.02, "{tag}: {got:?}");
    }
}

/// Success rate and mean reward of uniformly random actions, as the documentation says.
const RANDOM_WEBSHOP: (f64, f64) = (0.003, 0.09);
const RANDOM_TINY: (f64, f64) = (0.003, 0.08);

#[test]
fn grades_and_splits() {
    let all = env(json!({}));
    let mut counts = BTreeMap::new();
    for number in 0..all.shop().num_goals() {
        *counts.entry(Grade::of(&all.shop().goal(number).expect("a goal"))).or_insert(0) += 1;
    }
    println!("{counts:?}");
    for (name, grade) in [("easy", Grade::Easy), ("medium", Grade::Medium), ("hard", Grade::Hard)] {
        let some = env(json!({ "difficulty": name }));
        assert_eq!(some.shop().num_goals(), counts[&grade], "{name}");
        assert!(counts[&grade] > 500, "{name}: {counts:?}");
    }
    // No instance of validation occurs in training.
    for tag in ["WebShop", "WebShopTiny"] {
        let template = template(tag).expect("a known tag");
        let mut env = make(template.env_type, &template.env_config).expect("valid");
        let mut keys = |split, seeds: std::ops::Range<u64>| -> BTreeSet<String> {
            seeds
                .map(|seed| {
                    env.reset(seed, split).expect("an instance");
                    env.state_key()
                })
                .collect()
        };
        let (val, train) = (keys(Split::Val, 123..379), keys(Split::Train, 10_000..14_000));
        // In the reduced set two products can lead to the same instruction; training skips those of validation.
        let both = val.intersection(&train).count();
        println!("{tag}: {} validation instances, {} of training, {both} in both", val.len(), train.len());
        assert!(val.len() > 100 && train.len() > 500, "{tag}: {} {}", val.len(), train.len());
        assert!(if tag == "WebShop" { both == 0 } else { both * 10 < val.len() }, "{tag}: {both}");
    }
}

/// Text that no page offers, or that only looks as if.
fn nonsense(draw: &mut dyn FnMut(usize) -> usize, offered: &[String], malformed: &[String]) -> String {
    const PARTS: [&str; 24] = [
        "search",
        "click",
        "[",
        "]",
        "[[",
        "]]",
        "buy now",
        "< prev",
        "next >",
        "back to search",
        "\0",
        "\u{1b}",
        "\n",
        " ",
        "Search",
        "CLICK",
        "b0",
        "é",
        "💖",
        "\u{202e}",
        "search[",
        "click[",
        "|",
        "…",
    ];
    match draw(10) {
        0 => malformed[draw(malformed.len() - 3)].clone(),
        1 => format!("click[{}]", PARTS[draw(PARTS.len())]),
        2 => format!("search[{}{}]", PARTS[draw(PARTS.len())], PARTS[draw(PARTS.len())]),
        3 => {
            let mut action = offered.get(draw(offered.len().max(1))).cloned().unwrap_or_default();
            let at = draw(action.len() + 1);
            if action.is_char_boundary(at) {
                action.insert_str(at, PARTS[draw(PARTS.len())]);
            }
            action
        }
        4 => offered.get(draw(offered.len().max(1))).map(|action| action.to_uppercase()).unwrap_or_default(),
        5 if draw(200) == 0 => PARTS[draw(PARTS.len())].repeat(20_000),
        6 if draw(200) == 0 => format!("search[{}]", PARTS[draw(PARTS.len())].repeat(5_000)),
        _ => (0..draw(8)).map(|_| PARTS[draw(PARTS.len())]).collect(),
    }
}

#[test]
fn a_hundred_thousand_actions_do_no_harm() {
    let malformed = malformed_actions();
    let mut state = 5u64;
    let mut draw = |n: usize| {
        state = splitmix64(state);
        (state % n.max(1) as u64) as usize
    };
    let mut pages: BTreeMap<String, usize> = BTreeMap::new();
    for config in [
        json!({ "show_attrs": true }),
        json!({ "wrapper": "ragen_v2", "observation_mode": "text_rich" }),
        json!({ "wrapper": "verl_agent", "show_attrs": true }),
        json!({ "dataset": "reduced", "compact": true, "results_per_page": 4 }),
    ] {
        let lower = config["wrapper"] == "verl_agent";
        let mut env = env(config);
        env.reset(0, Split::Train).expect("an instance");
        for i in 0..25_000u64 {
            let offered = env.available_actions();
            // Shopping on purpose leads to every page; everything else is nonsense.
            let purposeful = draw(100) < 45;
            let action = match offered.get(draw(offered.len().max(1))) {
                Some(action) if purposeful => action.clone(),
                _ => nonsense(&mut draw, &offered, &malformed),
            };
            let session = env.session().expect("an episode").clone();
            let clickables = env.clickables();
            let (before, shown) = (env.state_key(), (i % 4 == 0).then(|| env.render()));
            let step = env.step(&action).expect("an episode in progress");
            let now = env.session().expect("an episode");
            *pages.entry(format!("{:?}", now.page())).or_insert(0) += 1;
            assert!((0.0..=10.0).contains(&step.reward) && !step.truncated, "{action:?}");
            assert_eq!(step.terminated, now.page() == PageKind::Done, "{action:?}");
            let read = if lower { action.to_lowercase() } else { action };
            judge(&env, &session, &read, &clickables, &before, shown.as_deref());
            if step.terminated || draw(30) == 0 {
                env.reset(i, if i % 2 == 0 { Split::Train } else { Split::Val }).expect("an instance");
            }
        }
    }
    println!("{pages:?}");
    for page in
        ["Index", "Results", "Item", "Sub(Description)", "Sub(Features)", "Sub(Reviews)", "Sub(Attributes)", "Done"]
    {
        assert!(pages.get(page).is_some_and(|count| *count > 100), "{page}: {pages:?}");
    }
}

/// Whether the state after an action is the one that the rules of the shop give.
fn judge(env: &WebShop, before: &Session, action: &str, clickables: &[String], key: &str, shown: Option<&str>) {
    let now = env.session().expect("an episode");
    let read = Action::parse(action);
    let argument = read.argument.as_deref().unwrap_or_default();
    let clickable = read.name == "click" && argument != "search" && clickables.iter().any(|name| name == argument);
    assert_eq!(now.goal(), before.goal());
    if read.name == "search" && !argument.is_empty() {
        assert_eq!((now.page(), now.page_number(), now.keywords()), (PageKind::Results, 1, argument));
        assert!(now.options().is_empty() && now.product_number().is_none());
    } else if !clickable {
        assert_eq!(env.state_key(), key, "{action:?}");
        assert!(shown.is_none_or(|shown| shown == env.render()), "{action:?}");
    }
    // A choice is always one that the product offers.
    if let Some(product) = now.product(env.shop()) {
        for (name, value) in now.options() {
            let known = product.options.iter().any(|(n, values)| n == name && values.contains(value));
            assert!(known, "{action:?}: {name} {value}");
        }
    } else {
        assert!(now.options().is_empty());
    }
}

#[test]
fn pages_lead_where_their_buttons_say() {
    let mut env = env(json!({ "show_attrs": true }));
    // A goal whose product has options.
    let number = (0..).find(|&i| env.shop().goal(i).is_some_and(|goal| goal.options.len() == 2)).expect("a goal");
    let goal = env.shop().goal(number).expect("a goal");
    env.start_on(goal.clone());
    let asin = env.shop().products()[goal.product].asin.to_lowercase();
    let value = goal.options.values()[0].to_owned();
    let title = env.shop().products()[goal.product].title.clone();
    let mut go = |action: &str| {
        let step = env.step(action).expect("a step");
        (step, env.session().expect("an episode").clone())
    };
    assert_eq!(go("click[buy now]").1.page(), PageKind::Index);
    assert_eq!(go(&format!("search[{title}]")).1.page(), PageKind::Results);
    assert_eq!(go("click[next >]").1.page_number(), 2);
    // Far beyond the last page there is still a next one.
    for number in 3..20 {
        assert_eq!(go("click[next >]").1.page_number(), number);
    }
    for number in (1..19).rev() {
        assert_eq!(go("click[< prev]").1.page_number(), number);
    }
    assert!(!go("click[< prev]").0.info.action_is_valid, "there is no page before the first");
    let (step, session) = go(&format!("click[{asin}]"));
    assert!(session.page() == PageKind::Item && step.info.extra["success_find"] == 1.0);
    let (step, session) = go(&format!("click[{value}]"));
    assert!(!step.info.action_is_effective && session.options().len() == 1, "a choice does not show in text mode");
    assert_eq!(go("click[attributes]").1.options().len(), 1);
    assert_eq!(go("click[< prev]").1.options().len(), 1);
    assert!(go("click[< prev]").1.options().is_empty());
    go(&format!("click[{asin}]"));
    // A search elsewhere is carried out, but not offered.
    let (step, session) = go("search[table]");
    assert!(session.page() == PageKind::Results && !step.info.action_is_valid && step.info.action_is_effective);
    let (_, session) = go("click[back to search]");
    assert!(session.page() == PageKind::Index && session.keywords().is_empty());
}

#[test]
fn wrappers_pay_differently() {
    for (wrapper, half, whole) in
        [("ragen_v1", None, 1.0), ("ragen_v2", Some(0.0), 1.0), ("verl_agent", Some(0.0), 10.0)]
    {
        let mut env = env(json!({ "wrapper": wrapper }));
        let number = (0..).find(|&i| env.shop().goal(i).is_some_and(|goal| goal.options.len() == 2)).expect("a goal");
        let goal = env.shop().goal(number).expect("a goal");
        env.start_on(goal.clone());
        let plan = env.oracle(9);
        let bought = play(&mut env, plan.iter());
        assert_eq!((bought.reward, bought.info.success), (whole, true), "{wrapper}");
        env.start_on(goal.clone());
        // The same without choosing the options.
        let bare = plan[..plan.len() - 3].iter().chain(plan.last());
        let bought = play(&mut env, bare);
        assert!(bought.terminated && !bought.info.success, "{wrapper}");
        let raw = bought.info.extra["raw_reward"];
        assert!((0.1..1.0).contains(&raw), "{wrapper}: {raw}");
        assert_eq!(bought.reward, half.unwrap_or(raw), "{wrapper}");
    }
}

#[test]
fn verl_agent_reads_capitals() {
    let mut env = env(json!({ "wrapper": "verl_agent" }));
    let prompt = env.reset(3, Split::Val).expect("an instance");
    assert!(prompt.contains("'search[<your query>]',\n'click[search]',"), "{prompt}");
    assert!(env.step("SEARCH[Table]").expect("a step").info.action_is_valid);
    let later = env.step("Click[Next >]").expect("a step");
    assert!(
        later.info.action_is_valid
            && later.observation.contains("[Observation 1: ''Search'', Action 1: 'search[table]']")
    );
}

#[test]
fn demonstrations_say_what_they_do() {
    let mut env = env(json!({ "dataset": "reduced", "compact": true, "results_per_page": 4 }));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut shown = String::new();
    for seed in 0..3 {
        shown.push_str(&env.reset(seed, Split::Train).expect("an instance"));
        while let Some(turn) = env.demonstrate(7, 1, DemoStyle::Brief, &mut rng) {
            shown.push_str(&format!("\n> {} | {:?}\n", turn.reasoning, turn.actions));
            let step = env.step(&turn.actions[0]).expect("a step");
            shown.push_str(&step.observation);
        }
        assert_eq!(env.session().and_then(Session::reward).map(|reward| reward.total), Some(1.0), "{shown}");
    }
    println!("{shown}");
}

/// Mean and quantiles of the built-in thousand beside the public one (in brackets below).
#[test]
fn the_catalogue_has_the_public_sets_shape() {
    let products = catalogue::builtin(0, 1000);
    let share = |count: usize| count as f64 / 1000.0;
    let near = |what: &str, got: f64, expected: f64, allowed: f64| {
        println!("{what}: {got:.3} (public set {expected})");
        assert!((got - expected).abs() <= allowed, "{what}: expected {expected} ± {allowed}, found {got}");
    };
    let count =
        |test: &dyn Fn(&ragen_envs::webshop::Product) -> bool| share(products.iter().filter(|p| test(p)).count());
    for (category, expected) in
        [("beauty", 0.238), ("electronics", 0.229), ("garden", 0.216), ("fashion", 0.2), ("grocery", 0.117)]
    {
        near(category, count(&|p| p.category == category), expected, 0.04);
    }
    let mut queries: BTreeMap<&str, usize> = BTreeMap::new();
    products.iter().for_each(|p| *queries.entry(&p.query).or_insert(0) += 1);
    near("queries", queries.len() as f64, 246.0, 15.0);
    near("products of the commonest query", queries.values().copied().max().unwrap_or(0) as f64, 12.0, 5.0);
    let paths: BTreeSet<&str> = products.iter().map(|p| p.product_category.as_str()).collect();
    near("paths", paths.len() as f64, 551.0, 120.0);
    near("price ranges", count(&|p| p.price_tag.contains(" to ")), 0.093, 0.03);
    let quantile = |mut values: Vec<f64>, q: f64| {
        values.sort_by(f64::total_cmp);
        values[((values.len() - 1) as f64 * q) as usize]
    };
    let prices: Vec<f64> = products.iter().map(|p| p.price).collect();
    near("median price", quantile(prices.clone(), 0.5), 29.5, 8.0);
    near("price, lowest tenth", quantile(prices.clone(), 0.1), 9.0, 3.0);
    near("price, highest tenth", quantile(prices, 0.9), 199.6, 80.0);
    let words = products.iter().map(|p| p.title.split_whitespace().count() as f64).collect();
    near("median words of a title", quantile(words, 0.5), 18.0, 3.0);
    near("no description", count(&|p| p.description.is_empty()), 0.33, 0.05);
    let chars = products.iter().map(|p| p.description.len() as f64).collect();
    near("median description", quantile(chars, 0.5), 307.0, 120.0);
    near("five bullet points", count(&|p| p.bullets.len() == 5), 0.56, 0.05);
    for (number, expected) in [(0, 0.577), (1, 0.245), (2, 0.165), (3, 0.013)] {
        near(&format!("{number} options"), count(&|p| p.options.len() == number), expected, 0.04);
    }
    near("with instruction", count(&|p| p.instruction.is_some()), 0.415, 0.04);
    let attributes: BTreeSet<&String> = products.iter().flat_map(|p| &p.attributes).collect();
    near("different attributes", attributes.len() as f64, 598.0, 250.0);
    let asked: Vec<bool> = products
        .iter()
        .flat_map(|p| {
            let text = [p.title.as_str(), &p.bullets.join(" "), &p.description].join(" ").to_lowercase();
            p.instruction_attributes.iter().map(move |a| text.contains(a.as_str())).collect::<Vec<_>>()
        })
        .collect();
    let literal = asked.iter().filter(|found| **found).count() as f64 / asked.len() as f64;
    near("attributes found literally", literal, 0.72, 0.2);
    let goals = Shop::open(&WebShopConfig::default()).expect("a shop").num_goals();
    near("goals", goals as f64, 6910.0, 3000.0);
    // The first products do not depend on how many follow.
    assert_eq!(catalogue::builtin(0, 50), products[..50]);
    assert_ne!(catalogue::builtin(1, 1), products[..1]);
}

#[test]
fn wrong_settings_are_refused() {
    let refused = |config: Value| match WebShop::from_json(&config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{config} was accepted"),
    };
    for (config, expected) in [
        (json!({ "data_set": "small" }), "did you mean `dataset`"),
        (json!({ "dataset": "large" }), "unknown variant `large`"),
        (json!({ "dataset": "small" }), "data_dir"),
        (json!({ "dataset": "small", "data_dir": "/nonexistent" }), "items_shuffle_1000.json"),
        (json!({ "data_dir": "/tmp" }), "has no effect"),
        (json!({ "human_goals": true }), "human_goals"),
        (json!({ "results_per_page": 0 }), "from 1 to 50"),
        (json!({ "limit_goals": 0 }), "limit_goals"),
        (json!({ "dataset": "reduced", "num_products": 261 }), "from 1 to 260"),
        (json!({ "dataset": "reduced", "difficulty": "hard" }), "leave no goal"),
        (json!({ "num_products": 1 }), "leave no goal"),
        (json!([1]), "expected a mapping"),
    ] {
        let message = refused(config.clone());
        assert!(message.contains(expected), "{config}: {message}");
    }
}
