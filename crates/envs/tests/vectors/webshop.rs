//! WebShop's search, comparisons and rewards against the original's.

use std::collections::HashMap;
use std::sync::Arc;

use ragen_envs::rng::PythonRandom;
use ragen_envs::webshop::search::analyze;
use ragen_envs::webshop::{
    COLOURS, Goal, GoalOptions, Shop, WebShopConfig, normalize_color, ragen_order, reward, title_nouns, token_set_ratio,
};
use serde_json::{Value, json};

/// The shop of the public thousand; `None` when there are no fixtures.
pub fn shop() -> Option<Arc<Shop>> {
    Some(Shop::open(&config()?).expect("a shop"))
}

pub fn config() -> Option<WebShopConfig> {
    let file = |name: &str| super::fixtures::root(name).map(|path| path.to_string_lossy().into_owned());
    let config = json!({
        "dataset": "small",
        "items_file": file("data/webshop/items_1000_slim.jsonl.gz")?,
        "attributes_file": file("data/webshop/items_ins_v2_1000.json")?,
        "nouns_file": file("vectors/webshop_title_nouns.json")?,
        "prices_file": file("vectors/webshop_prices_frozen.json")?,
    });
    Some(WebShopConfig::from_json(&config).expect("valid settings"))
}

pub fn numbers(shop: &Shop) -> HashMap<&str, usize> {
    shop.products().iter().enumerate().map(|(number, product)| (product.asin.as_str(), number)).collect()
}

pub fn words(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|word| word.as_str().expect("text").to_owned()).collect()
}

/// The options of a goal: a mapping for synthetic ones, a list for those of people.
pub fn goal_options(value: &Value) -> GoalOptions {
    match value {
        Value::Object(map) => {
            GoalOptions::Pairs(map.iter().map(|(n, v)| (n.clone(), v.as_str().expect("text").to_owned())).collect())
        }
        list => GoalOptions::Values(words(list)),
    }
}

#[test]
fn analyzer() {
    let Some(cases) = super::fixtures::json_lines("webshop_analyzer.jsonl") else { return };
    for case in cases {
        assert_eq!(json!(analyze(case[0].as_str().expect("text"))), case[1], "{}", case[0]);
    }
}

#[test]
fn stems() {
    let Some(text) = super::fixtures::read("webshop_stem.tsv") else { return };
    let mut compared = 0;
    for line in text.lines() {
        let (word, stem) = line.split_once('\t').expect("two columns");
        // Stop words have no stem.
        let expected: Vec<&str> = Some(stem).filter(|stem| !stem.is_empty()).into_iter().collect();
        assert_eq!(analyze(word), expected, "{word}");
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn document_lengths() {
    let (Some(shop), Some(lengths)) = (shop(), super::fixtures::json("webshop_doclen.json")) else { return };
    let numbers = numbers(&shop);
    let lengths = lengths.as_object().expect("a mapping");
    let wrong: Vec<_> = lengths
        .iter()
        .map(|(asin, length)| (asin, length.as_u64(), shop.index().document_length(numbers[asin.as_str()]) as u64))
        .filter(|(_, expected, got)| *expected != Some(*got))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), lengths.len());
}

#[test]
fn rankings() {
    let (Some(shop), Some(cases)) = (shop(), super::fixtures::json_lines("webshop_search.jsonl")) else { return };
    let name = |doc: usize| shop.products()[doc].asin.as_str();
    for case in cases {
        let query = case["query"].as_str().expect("text");
        let hits = shop.index().search(query, 50, name);
        let got: Vec<&str> = hits.iter().map(|hit| name(hit.doc)).collect();
        let expected = case["hits"].as_array().expect("hits");
        assert_eq!(json!(got), expected.iter().map(|hit| hit[0].clone()).collect::<Value>(), "{query}");
        assert_eq!(hits.len() as u64, case["total"].as_u64().expect("a number"), "{query}");
        for (hit, expected) in hits.iter().zip(expected) {
            let score = expected[1].as_f64().expect("a score");
            assert!((f64::from(hit.score) - score).abs() < 5e-5 + 1e-9, "{query}: {hit:?} and {expected}");
        }
    }
}

#[test]
fn colours() {
    let Some(Value::Array(cases)) = super::fixtures::json("webshop_normalize_color.json") else { return };
    assert!(!cases.is_empty());
    for case in cases {
        assert_eq!(normalize_color(case[0].as_str().expect("text")), case[1]);
    }
    let path = super::fixtures::root("data/webshop/color_list.json").expect("fixtures");
    let list: Vec<String> = serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("a list");
    assert_eq!(list, COLOURS);
}

#[test]
fn fuzzy_scores() {
    let Some(cases) = super::fixtures::json_lines("webshop_token_set_ratio.jsonl") else { return };
    for case in cases {
        let (a, b) = (case[0].as_str().expect("text"), case[1].as_str().expect("text"));
        assert_eq!(u64::from(token_set_ratio(a, b)), case[2].as_u64().expect("a score"), "{case}");
    }
}

#[test]
fn permutations() {
    let Some(orders) = super::fixtures::json("webshop_goal_permutations.json") else { return };
    let n = orders["n"].as_u64().expect("a number");
    let mut goals: Vec<u64> = (0..n).collect();
    PythonRandom::new(233).shuffle(&mut goals);
    assert_eq!(json!(goals), orders["shuffle233"]);
    assert_eq!(json!(ragen_order(n as usize).to_vec()), orders["ragen_perm42"]);
}

#[test]
fn rewards() {
    let (Some(shop), Some(cases)) = (shop(), super::fixtures::json_lines("webshop_reward.jsonl")) else { return };
    let numbers = numbers(&shop);
    let (mut by_rule, mut all) = (0, 0);
    for case in cases {
        let goal = &case["goal"];
        let number = |asin: &Value| numbers[asin.as_str().expect("an identifier")];
        let goal = Goal {
            product: number(&goal["asin"]),
            instruction_text: String::new(),
            base_instruction: String::new(),
            attributes: words(&goal["attributes"]),
            options: goal_options(&goal["goal_options"]),
            price_upper: goal["price_upper"].as_f64().expect("a price"),
        };
        let bought = number(&case["bought"]);
        // The file's price is the product's frozen one.
        assert!((shop.products()[bought].price - case["price"].as_f64().expect("a price")).abs() < 1e-9);
        let chosen: Vec<(String, String)> = case["options"]
            .as_object()
            .expect("a mapping")
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()))
            .collect();
        let got = shop.reward(&goal, bought, &chosen).expect("a product");
        let mut info = json!({
            "r_type": got.r_type,
            "r_att": got.r_att,
            "w_att": got.w_att,
            "query_match": got.query_match,
            "category_match": got.category_match,
            "title_score": got.title_score,
            "r_price": got.r_price,
            "w_price": got.w_price,
        });
        if let (Some(r), Some(w)) = (got.r_option, got.w_option) {
            info["r_option"] = json!(r);
            info["w_option"] = json!(w);
        }
        let same = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            _ => a == b,
        };
        assert!(same(&json!(got.total), &case["reward"]), "{case}: {got:?}");
        let expected = case["info"].as_object().expect("a mapping");
        assert_eq!(info.as_object().expect("a mapping").len(), expected.len(), "{case}");
        for (key, value) in expected {
            assert!(same(&info[key], value), "{key} of {case}: {got:?}");
        }
        // How far the word rule carries where there are no nouns.
        let mut ruled = [goal.product, bought].map(|number| shop.products()[number].clone());
        for product in &mut ruled {
            product.nouns = Some(title_nouns(&product.title));
        }
        let [wanted, bought] = ruled;
        all += 1;
        by_rule += usize::from((reward(&bought, &wanted, &goal, 0.0, &[]).r_type - got.r_type).abs() < 1e-9);
    }
    let share = by_rule as f64 / all as f64;
    println!("the word rule gives the type score of {by_rule} of {all} purchases, {:.1} %", 100.0 * share);
    assert!(share > 0.95, "{share}");
}
