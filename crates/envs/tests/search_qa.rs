//! Search and answer: over documents in memory, over HTTP, and what happens when the server fails.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use ragen_envs::baseline::{VAL_SEEDS, baseline};
use ragen_envs::checker::check;
use ragen_envs::search_qa::{HttpRetriever, Retriever};
use ragen_envs::{DemoStyle, EnvError, Split, make};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::{Value, json};
use support::Server;

const CITIES: [(&str, &str); 12] = [
    ("France", "Paris"),
    ("Italy", "Rome"),
    ("Spain", "Madrid"),
    ("Norway", "Oslo"),
    ("Japan", "Tokyo"),
    ("Peru", "Lima"),
    ("Egypt", "Cairo"),
    ("Kenya", "Nairobi"),
    ("Cuba", "Havana"),
    ("Chile", "Santiago"),
    ("Ghana", "Accra"),
    ("Austria", "Vienna"),
];

/// A folder with questions and documents; the questions' path and the documents' path.
fn world(dir: &tempfile::TempDir) -> (String, String) {
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    let (questions, documents) = (path("questions.jsonl"), path("documents"));
    let rows: String = CITIES
        .iter()
        .map(|(land, city)| {
            format!("{}\n", json!({ "question": format!("What is the capital of {land}?"), "ground_truth": [city] }))
        })
        .collect();
    std::fs::write(&questions, rows).expect("a file");
    std::fs::create_dir_all(&documents).expect("a folder");
    for (land, city) in CITIES {
        let filler = "It is known for its weather and its food. ".repeat(30);
        std::fs::write(format!("{documents}/{land}.txt"), format!("{city} is the capital of {land}. {filler}"))
            .expect("a file");
    }
    (questions, documents)
}

fn config(dir: &tempfile::TempDir) -> Value {
    let (questions, documents) = world(dir);
    json!({ "data_path": questions, "corpus_path": documents, "val_every": 3 })
}

#[test]
fn searching_finds_the_document_and_the_answer_pays() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut env = make("search", &config(&dir)).expect("valid");
    let state = env.reset(0, Split::Train).expect("an instance");
    assert_eq!(state, "Question: What is the capital of France?\nAvailable actions: search[query], finish[answer]");
    let step = env.step("Search[capital of France]").expect("a step");
    assert!(step.observation.starts_with("[Document 1] (ID: France.txt#0, Score: "), "{}", step.observation);
    assert!(step.observation.contains("\nParis is the capital of France."));
    assert!(step.observation.contains("\n\n[Document 5] (ID: ") && !step.observation.contains("[Document 6]"));
    assert_eq!((step.reward, step.terminated, step.info.action_is_valid), (0.0, false, true));
    let step = env.step("finish[the Paris.]").expect("a step");
    assert_eq!((step.reward, step.terminated, step.info.success), (1.0, true, true));
    assert_eq!((step.info.extra["exact_match"], step.info.extra["searches"]), (1.0, 1.0));
    assert!(env.step("finish[x]").is_err());
}

#[test]
fn partial_answers_pay_their_f1_and_prose_is_searched_for_an_answer() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut env = make("search", &config(&dir)).expect("valid");
    for (action, reward, valid) in [
        ("finish[Paris Texas]", 2.0 / 3.0, true),
        ("finish[Rome]", 0.0, true),
        ("I think the answer is Paris.", 1.0, false),
        ("finish[Paris] or Rome", 0.0, false),
        ("search[", 0.0, false),
    ] {
        env.reset(0, Split::Train).expect("an instance");
        let step = env.step(action).expect("a step");
        assert!((step.reward - reward).abs() < 1e-12, "{action}: {step:?}");
        assert_eq!(
            (step.terminated, step.info.action_is_valid, step.info.success),
            (true, valid, reward > 0.0),
            "{action}"
        );
    }
}

#[test]
fn searches_without_an_answer_end_the_episode() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut settings = config(&dir);
    settings["max_steps"] = json!(3);
    let mut env = make("search", &settings).expect("valid");
    let first = env.reset(1, Split::Train).expect("an instance");
    for nothing in ["", "  ", "search[]", "search[ ]"] {
        let step = env.step(nothing).expect("a step");
        assert!(!step.info.action_is_valid && !step.truncated && step.observation == first, "{nothing:?}");
    }
    let ends: Vec<bool> = (0..3).map(|_| env.step("search[zebra]").expect("a step").truncated).collect();
    assert_eq!(ends, [false, false, true]);
    assert_eq!(env.render(), "No documents were found.");
    assert!(env.step("finish[Rome]").is_err());
}

#[test]
fn the_checker_passes_and_the_oracle_reads_before_it_answers() {
    let dir = tempfile::tempdir().expect("a folder");
    let settings = config(&dir);
    let new = || make("search", &settings).expect("valid");
    let report = check(new, 0..24).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!((report.distinct_instances, report.oracle_checked), (8, 24));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let got = baseline(new().as_mut(), VAL_SEEDS, Split::Val, 10, 1, &mut rng).expect("playable");
    assert_eq!((got.oracle_success, got.oracle_return, got.optimum), (1.0, 1.0, Some(1.0)));
    let mut env = new();
    env.reset(2, Split::Train).expect("an instance");
    assert_eq!(env.oracle(1).len(), 1);
    for expected in ["search[", "finish["] {
        let brief = env.demonstrate(5, 3, DemoStyle::Brief, &mut rng).expect("a turn");
        assert_eq!(brief.actions.len(), 1);
        assert!(brief.actions[0].starts_with(expected) && brief.reasoning.split_whitespace().count() <= 12);
        env.step(&brief.actions[0]).expect("a step");
    }
}

/// A server that speaks the protocol and finds `content` for everything.
fn server(content: &'static str) -> Server {
    Server::start(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => (200, "{\"status\": \"healthy\"}".to_owned()),
        ("POST", "/retrieve") => {
            let body: Value = serde_json::from_str(&request.body).expect("JSON");
            let k = body["top_k"].as_u64().expect("a number");
            let hit = |i| json!({ "id": format!("d{i}"), "content": content, "score": 1.0 / (1.0 + i as f64) });
            (200, json!({ "results": (0..k).map(hit).collect::<Vec<_>>() }).to_string())
        }
        _ => (404, String::new()),
    })
}

#[test]
fn a_retrieval_server_is_asked_by_the_protocol() {
    let dir = tempfile::tempdir().expect("a folder");
    let (questions, _) = world(&dir);
    let long: &'static str = "ä".repeat(2000).leak();
    let server = server(long);
    let settings = json!({ "data_path": questions, "retrieval_url": server.url(), "top_k": 2, "val_every": 2 });
    let mut env = make("search", &settings).expect("valid");
    env.reset(0, Split::Train).expect("an instance");
    let step = env.step("search[any \"thing\"]").expect("a step");
    let shown = format!("{}...", "ä".repeat(800));
    let expected =
        format!("[Document 1] (ID: d0, Score: 1.000)\n{shown}\n\n[Document 2] (ID: d1, Score: 0.500)\n{shown}");
    assert_eq!(step.observation, expected);
    let asked = server.seen().pop().expect("a request");
    assert_eq!(
        serde_json::from_str::<Value>(&asked.body).expect("JSON"),
        json!({ "query": "any \"thing\"", "top_k": 2 })
    );
    assert!(asked.headers.iter().any(|header| header == "content-type: application/json"), "{asked:?}");
    // All the documents together are cut as well.
    let settings = json!({ "data_path": questions, "retrieval_url": server.url(), "top_k": 9, "val_every": 2 });
    let mut env = make("search", &settings).expect("valid");
    env.reset(0, Split::Train).expect("an instance");
    let step = env.step("search[x]").expect("a step");
    assert_eq!(step.observation.chars().count(), 4003);
}

#[test]
fn a_server_that_fails_ends_the_episode_or_is_told_to_the_agent() {
    let dir = tempfile::tempdir().expect("a folder");
    let (questions, _) = world(&dir);
    let server = Server::start(|request| match request.path.as_str() {
        "/health" => (200, String::new()),
        _ => (500, "out of memory".to_owned()),
    });
    let settings = |compat| match compat {
        true => json!({ "data_path": questions, "retrieval_url": server.url(), "compat": true }),
        false => json!({ "data_path": questions, "retrieval_url": server.url(), "val_every": 2 }),
    };
    let mut env = make("search", &settings(false)).expect("valid");
    env.reset(0, Split::Train).expect("an instance");
    let error = env.step("search[x]").expect_err("a failure");
    let told = error.to_string();
    assert!(
        matches!(error, EnvError::Play { .. }) && told.contains("status 500: out of memory (3 attempts)"),
        "{told}"
    );
    assert_eq!(server.seen().iter().filter(|request| request.path == "/retrieve").count(), 3);
    let mut env = make("search", &settings(true)).expect("valid");
    env.reset(0, Split::Train).expect("an instance");
    let step = env.step("search[x]").expect("a step");
    assert!(step.observation.starts_with("The search failed: "), "{}", step.observation);
}

#[test]
fn answers_that_make_no_sense_are_errors() {
    for (body, expected) in [
        ("[]", "expected a list `results` from the retrieval server, found a list"),
        ("{\"results\": 3}", "expected a list `results`"),
        ("{\"results\": [{\"content\": \"c\"}]}", "`id`: expected text or a number, found nothing"),
        ("{\"results\": [{\"id\": \"i\", \"content\": null}]}", "`content`: expected text, found null"),
        ("<html>", "expected JSON"),
    ] {
        let asked = AtomicUsize::new(0);
        let server = Server::start(move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            (200, body.to_owned())
        });
        let retriever = HttpRetriever::connect(&server.url(), std::time::Duration::from_secs(5)).expect("up");
        let error = retriever.retrieve("q", 3).expect_err("nonsense");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn settings_are_checked() {
    let dir = tempfile::tempdir().expect("a folder");
    let (questions, documents) = world(&dir);
    for (settings, expected) in [
        (json!({ "data_path": questions }), "nothing to search in"),
        (json!({ "mock_mode": true }), "`data_path`: expected a JSON Lines file"),
        (
            json!({ "data_path": questions, "mock_mode": true, "corpus_path": documents }),
            "found corpus_path and mock_mode",
        ),
        (json!({ "data_path": questions, "corpus_path": "/nowhere" }), "`corpus_path`: cannot read /nowhere"),
        (json!({ "data_path": questions, "retrieval_url": "https://x" }), "expected a plain http:// address"),
        (json!({ "data_path": questions, "retrieval_url": "127.0.0.1:1" }), "expected an address such as"),
        (json!({ "data_path": questions, "retrieval_url": "http://127.0.0.1:1" }), "the retrieval server is not up"),
        (json!({ "topk": 3 }), "did you mean `top_k`?"),
        (json!({ "mock_mode": true, "top_k": 51 }), "`top_k`: expected a value from 1 to 50"),
        (json!({ "mock_mode": true, "timeout_s": -1.0 }), "`timeout_s`"),
    ] {
        let error = make("search", &settings).err().unwrap_or_else(|| panic!("{settings} was accepted")).to_string();
        assert!(error.contains(expected), "{settings}: {error}");
    }
    let mock = json!({ "data_path": questions, "mock_mode": true, "val_every": 2 });
    let mut env = make("search", &mock).expect("valid");
    env.reset(0, Split::Train).expect("an instance");
    assert!(env.step("search[x]").expect("a step").observation.contains("[Document 2] (ID: mock_2, Score: 0.800)"));
}
