//! Answers of search questions against the reference's comparisons, and retrieval over a public corpus.

use std::path::Path;

use ragen_envs::search_qa::{Bm25, corpus, extract, normalise, score};
use ragen_envs::{Split, make};
use serde_json::{Value, json};

#[test]
fn rewards() {
    let Some(cases) = super::fixtures::json_lines("searchqa_reward.jsonl") else { return };
    let (mut compared, mut extracted) = (0, 0);
    for case in cases {
        if let Some(text) = case.get("extract_from") {
            assert_eq!(json!(extract(text.as_str().expect("text"))), case["extracted"], "{case}");
            extracted += 1;
            continue;
        }
        let answer = case["answer"].as_str().expect("an answer");
        let truths: Vec<String> = match &case["truth"] {
            Value::Array(list) => list.iter().map(|truth| truth.as_str().expect("text").to_owned()).collect(),
            truth => vec![truth.as_str().expect("text").to_owned()],
        };
        let got = score(answer, &truths);
        assert_eq!(
            (json!(got.exact), json!(got.f1), json!(got.reward())),
            (case["em"].clone(), case["f1"].clone(), case["reward"].clone()),
            "{case}"
        );
        if let Some(expected) = case.get("norm_a") {
            assert_eq!(
                (json!(normalise(answer)), json!(normalise(&truths[0]))),
                (expected.clone(), case["norm_b"].clone()),
                "{case}"
            );
        }
        compared += 1;
    }
    assert!(compared > 0 && extracted > 0);
}

#[test]
fn a_public_corpus_is_searched() {
    let Some(path) = super::fixtures::data_file("search/searchr1_example_corpus.jsonl") else { return };
    let documents = corpus::load(Path::new(&path), 100).expect("documents");
    let index = Bm25::new(documents.clone());
    for document in &documents {
        // Every passage is the best one for its own words.
        assert_eq!(&index.search(&document.content, 1)[0].document, document);
    }
}

#[test]
fn public_questions_are_played() {
    let Some(questions) = super::fixtures::data_file("hotpotqa/hotpot_dev_v1_simplified.json.gz") else { return };
    let Some(corpus) = super::fixtures::data_file("search/searchr1_example_corpus.jsonl") else { return };
    let mut env = make("search", &json!({ "data_path": questions, "corpus_path": corpus })).expect("valid");
    for (split, seed) in [(Split::Train, 3), (Split::Val, 123)] {
        env.reset(seed, split).expect("an instance");
        let plan = env.oracle(10);
        assert_eq!(plan.len(), 2);
        let last = plan.iter().map(|action| env.step(action).expect("a step")).last().expect("a step");
        assert_eq!((last.reward, last.terminated), (1.0, true));
    }
}
