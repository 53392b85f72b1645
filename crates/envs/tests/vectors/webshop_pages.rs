//! WebShop's pages and RAGEN's wrapper around them.

use ragen_envs::webshop::{EvalGoals, Goal, ObservationMode, Splits, WebShop, WebShopConfig, Wrapper};
use ragen_envs::{Environment, Split};
use serde_json::{Value, json};

use super::webshop::{config, goal_options, numbers, shop, words};

fn env(change: impl FnOnce(&mut WebShopConfig)) -> Option<WebShop> {
    let mut config = WebShopConfig { wrapper: Wrapper::RagenV2, ..config()? };
    change(&mut config);
    Some(WebShop::in_shop(shop()?, config))
}

/// The goal of a transcript. Its cap was drawn by the original from a stream without a seed; all else is compared with
/// the goal of that number.
fn goal_of(env: &WebShop, case: &Value) -> Goal {
    let number = case["goal_index"].as_u64().expect("a number") as usize;
    let mut goal = env.shop().goal(number).expect("a goal");
    let told = &case["goal"];
    assert_eq!(env.shop().products()[goal.product].asin, told["asin"]);
    assert_eq!(goal.attributes, words(&told["attributes"]));
    assert_eq!(goal.options, goal_options(&told["goal_options"]));
    let text = told["instruction_text"].as_str().expect("text");
    let without_cap = |text: &str| text.split(", and price lower than").next().unwrap_or_default().to_owned();
    assert_eq!(without_cap(&goal.instruction_text), without_cap(text));
    goal.price_upper = told["price_upper"].as_f64().expect("a price");
    goal.instruction_text = text.to_owned();
    goal
}

#[test]
fn transcripts() {
    let Some(cases) = super::fixtures::json_lines("webshop_transcripts.jsonl") else { return };
    let mut env = env(|_| {}).expect("fixtures");
    assert_eq!(env.shop().num_goals(), 6910);
    let mut steps = 0;
    for case in cases {
        let seed = case["seed"].as_u64().expect("a seed");
        let (split, eval) = match case["mode"].as_str().expect("a mode") {
            "train" => (Split::Train, EvalGoals::Val),
            "val" => (Split::Val, EvalGoals::Val),
            _ => (Split::Val, EvalGoals::Test),
        };
        let splits = Splits::new(Wrapper::RagenV2, eval, env.shop().order().clone());
        assert_eq!(splits.goal(seed, split) as u64, case["goal_index"].as_u64().expect("a number"), "seed {seed}");
        let goal = goal_of(&env, &case);
        let shown = env.start_on(goal.clone());
        assert!(shown.starts_with(&format!("Instruction: {}.", goal.instruction_text)), "{shown}");
        let first = &case["first"];
        assert_eq!(env.observation(), first["obs"]);
        assert_eq!(
            json!([env.clickables(), env.has_search_bar()]),
            json!([first["clickables"], first["has_search_bar"]])
        );
        assert_eq!(json!(env.listed_actions()), first["avail"]);
        for (i, expected) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let step = env.step(expected["action"].as_str().expect("text")).expect("a step");
            let got = json!({
                "action": expected["action"],
                "reward": step.reward,
                "raw_reward": same_number(step.info.extra["raw_reward"], &expected["raw_reward"]),
                "done": step.terminated,
                "valid": step.info.action_is_valid,
                "effective": step.info.action_is_effective,
                "end_of_page": step.info.extra["end_of_page"] as u8,
                // The last page's words are our own.
                "obs": if step.terminated { expected["obs"].clone() } else { json!(env.observation()) },
                "clickables": env.clickables(),
                "has_search_bar": env.has_search_bar(),
                "avail": env.listed_actions(),
            });
            assert_eq!(&got, expected, "seed {seed}, step {i}");
            if step.terminated {
                let page = env.observation();
                let options = expected["obs"].as_str().and_then(|obs| obs.split(" [SEP] ").nth(8)).expect("options");
                assert!(page.contains(options) && page.contains("Your score (min 0.0, max 1.0) [SEP] "), "{page}");
            }
            steps += 1;
        }
    }
    println!("{steps} steps");
}

/// The recorded number where ours is equal to it, so that 0 and 0.0 are one.
fn same_number(ours: f64, recorded: &Value) -> Value {
    let ours = Value::from(ours);
    if ours.as_f64() == recorded.as_f64() { recorded.clone() } else { ours }
}

#[test]
fn rich_text() {
    let Some(Value::Array(pages)) = super::fixtures::json("webshop_text_rich_sample.json") else { return };
    let mut env = env(|config| config.observation_mode = ObservationMode::TextRich).expect("fixtures");
    let first = pages[0][1].as_str().expect("text");
    let text = first.lines().nth(2).expect("the instruction");
    // The goal is the one of the product that is opened.
    let asin = pages[2][0].as_str().and_then(|action| action.strip_prefix("click[")).expect("a click");
    let product = numbers(env.shop())[asin.trim_end_matches(']').to_uppercase().as_str()];
    let number = (0..env.shop().num_goals()).find(|&i| env.shop().goal(i).is_some_and(|goal| goal.product == product));
    let goal = env.shop().goal(number.expect("a goal of this product")).expect("a goal");
    env.start_on(Goal { instruction_text: text.to_owned(), ..goal });
    for page in &pages {
        let action = page[0].as_str().expect("text");
        if action != "reset" {
            env.step(action).expect("a step");
        }
        assert_eq!(env.observation(), page[1], "{action}");
    }
}

/// The sentences of advice are ours, everything around them is RAGEN's.
#[test]
fn ragen_prompt_has_the_references_structure() {
    let (Some(sample), Some(transcripts)) = (
        super::fixtures::json("webshop_ragen_render_sample.json"),
        super::fixtures::json_lines("webshop_transcripts.jsonl"),
    ) else {
        return;
    };
    let case = transcripts.iter().find(|case| case["seed"] == sample["episode_seed"]).expect("the episode");
    let mut env = env(|_| {}).expect("fixtures");
    let goal = goal_of(&env, case);
    let mut shown = vec![env.start_on(goal)];
    shown.push(env.step(case["steps"][0]["action"].as_str().expect("text")).expect("a step").observation);
    for (got, expected) in shown.iter().zip([&sample["first"], &sample["after_first_step"]]) {
        let expected = expected.as_str().expect("text");
        let ends = |text: &str| {
            let lines: Vec<&str> = text.split('\n').collect();
            (lines.len(), lines[lines.len() - 1].to_owned())
        };
        assert_eq!(ends(got), ends(expected));
        let page = env_page(expected);
        assert!(got.starts_with(page), "{got}");
    }
}

/// What stands before the advice: everything up to the full stop that no blank follows.
fn env_page(prompt: &str) -> &str {
    let first = prompt.split('\n').next().unwrap_or_default();
    let glued = |at: usize| first[at + 1..].chars().next().is_some_and(char::is_uppercase);
    match first.match_indices('.').map(|(at, _)| at).find(|&at| glued(at)) {
        Some(at) => &first[..=at],
        None => first,
    }
}
