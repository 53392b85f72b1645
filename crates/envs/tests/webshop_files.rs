//! The public files' forms: JSON, JSON Lines, gzip; broken ones end in errors that say where.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use ragen_envs::webshop::{GoalOptions, WebShop};
use ragen_envs::{Environment, Split};
use serde_json::{Value, json};

fn items() -> Vec<Value> {
    let item = |asin: &str, name: &str, pricing: &str| {
        json!({
            "asin": asin, "name": name, "pricing": pricing, "query": "Mugs", "category": "garden",
            "product_category": "Home › Kitchen › Mugs", "full_description": "", "small_description": ["Made of clay"],
            "customization_options": { "Color": [{ "value": "Red", "image": null }, { "value": "Sky Blue" }] },
            "brand_url": "unused",
        })
    };
    vec![
        item("B000000001", "Clay mug", "$12.50"),
        item("B000000002", "Tin mug", "$8.00 - $19.00"),
        item("B000000001", "the same again", "$1.00"),
        item("nan", "nothing", ""),
    ]
}

fn attributes() -> Value {
    json!({
        "B000000001": { "attributes": ["dishwasher safe", "hand made"], "instruction": "Find me hand made mugs",
                        "instruction_attributes": ["hand made"] },
        "B000000002": { "attributes": ["light weight"] },
    })
}

/// A folder of the public files, in the given forms.
fn folder(items: &[u8], items_name: &str, attributes: &[u8], attributes_name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in [(items_name, items), (attributes_name, attributes)] {
        std::fs::write(folder.path().join(name), bytes).expect("writable");
    }
    folder
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

fn lines(values: &[Value]) -> Vec<u8> {
    values.iter().map(|value| format!("{value}\n")).collect::<String>().into_bytes()
}

fn open(folder: &Path) -> WebShop {
    WebShop::from_json(&json!({ "dataset": "small", "data_dir": folder, "results_per_page": 3 })).expect("readable")
}

fn failure(config: Value) -> String {
    match WebShop::from_json(&config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{config} was accepted"),
    }
}

#[test]
fn all_forms_give_the_same_shop() {
    let plain = serde_json::to_vec_pretty(&items()).expect("JSON");
    let map = attributes().to_string().into_bytes();
    let rows: Vec<Value> = attributes()
        .as_object()
        .expect("a mapping")
        .iter()
        .map(|(asin, record)| {
            let mut row = record.clone();
            row["asin"] = json!(asin);
            row
        })
        .collect();
    let folders = [
        folder(&plain, "items_shuffle_1000.json", &map, "items_ins_v2_1000.json"),
        folder(&gzip(&plain), "items_shuffle_1000.json.gz", &gzip(&map), "items_ins_v2_1000.json.gz"),
        folder(&lines(&items()), "items_shuffle_1000.jsonl", &lines(&rows), "items_ins_v2_1000.jsonl"),
        folder(&gzip(&lines(&items())), "items_shuffle_1000.jsonl.gz", &map, "items_ins_v2_1000.json"),
        // The name need not say that it is compressed.
        folder(&gzip(&plain), "items_shuffle_1000.json", &map, "items_ins_v2_1000.json"),
    ];
    let first = open(folders[0].path());
    assert_eq!((first.shop().products().len(), first.shop().num_goals()), (2, 2));
    assert_eq!(
        first.shop().products()[0].options,
        [("color".to_owned(), vec!["red".to_owned(), "sky blue".to_owned()])]
    );
    for folder in &folders[1..] {
        assert_eq!(open(folder.path()).shop().products(), first.shop().products());
    }
    // The drawn price lies within its range, and follows from the seed.
    let price = first.shop().products()[1].price;
    assert!((8.0..=19.0).contains(&price), "{price}");
    let other = json!({ "dataset": "small", "data_dir": folders[0].path(), "data_seed": 1 });
    assert_ne!(WebShop::from_json(&other).expect("readable").shop().products()[1].price, price);
}

#[test]
fn further_files() {
    let folder = folder(&lines(&items()), "items_shuffle_1000.jsonl", attributes().to_string().as_bytes(), "a.json");
    let write = |name: &str, value: Value| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, value.to_string()).expect("writable");
        path
    };
    let human = write(
        "human.json",
        json!({ "B000000002": [{
            "asin": "B000000002", "instruction": "a light mug.", "attributes": ["light weight"],
            "options": ["color: red"], "instruction_attributes": ["light weight"], "instruction_options": ["red"],
        }] }),
    );
    let nouns = write("nouns.json", json!({ "model": "by hand", "nouns": { "B000000001": ["mug"] } }));
    let prices = write("prices.json", json!({ "B000000002": 9.5 }));
    let config = json!({
        "dataset": "small", "data_dir": folder.path(), "attributes_file": folder.path().join("a.json"),
        "human_goals": true, "human_file": human, "nouns_file": nouns, "prices_file": prices,
    });
    let mut env = WebShop::from_json(&config).expect("readable");
    let products = env.shop().products();
    assert_eq!((products[0].nouns.as_deref(), products[1].price), (Some(["mug".to_owned()].as_slice()), 9.5));
    let goal = env.shop().goal(0).expect("a goal");
    assert_eq!(goal.options, GoalOptions::Values(vec!["red".to_owned()]));
    assert!(goal.instruction_text.starts_with("a light mug, and price lower than "), "{}", goal.instruction_text);
    // A goal of people can be bought as well.
    env.reset(0, Split::Train).expect("an instance");
    let plan = env.oracle(9);
    let rewards: Vec<f64> = plan.iter().map(|action| env.step(action).expect("a step").reward).collect();
    assert_eq!(rewards.last(), Some(&1.0), "{plan:?}");
    let few = json!({ "dataset": "small", "data_dir": folder.path(), "attributes_file": folder.path().join("a.json"),
                      "num_products": 1 });
    assert_eq!(WebShop::from_json(&few).expect("readable").shop().products().len(), 1);
}

#[test]
fn broken_files_are_refused() {
    let good = attributes().to_string().into_bytes();
    let plain = serde_json::to_vec(&items()).expect("JSON");
    let (names, ins) = ("items_shuffle_1000.json", "items_ins_v2_1000.json");
    let mut wrong_option = items();
    wrong_option[1]["customization_options"] = json!({ "Size": "large" });
    for (items, attributes, expected) in [
        (plain[..200].to_vec(), good.clone(), "EOF"),
        (b"[{\"asin\": 5}]".to_vec(), good.clone(), "expected a string"),
        (b"[1, 2]".to_vec(), good.clone(), "column"),
        (b"\xff\xfe".to_vec(), good.clone(), "column 1"),
        (gzip(&plain)[..60].to_vec(), good.clone(), names),
        (Vec::new(), good.clone(), "leave no goal"),
        (b"[]".to_vec(), good.clone(), "leave no goal"),
        (serde_json::to_vec(&wrong_option).expect("JSON"), good.clone(), "record 2: option `Size`"),
        (plain.clone(), b"[]".to_vec(), "a mapping of product identifiers"),
        (plain.clone(), b"{\"B000000001\": 3}".to_vec(), ins),
    ] {
        let folder = folder(&items, names, &attributes, ins);
        let message = failure(json!({ "dataset": "small", "data_dir": folder.path() }));
        assert!(message.contains(expected), "expected {expected:?} in {message:?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let message = failure(json!({ "dataset": "full", "data_dir": folder.path() }));
    assert!(message.contains("items_shuffle.json") && message.contains(".jsonl.gz"), "{message}");
}
