//! Proofs against a scripted Lean server that speaks the Kimina protocol, driven by us and by the public client.

mod support;

use std::process::Command;

use ragen_envs::checker::check;
use ragen_envs::lean::{Checked, Kimina, Message};
use ragen_envs::{EnvError, Environment, Split, make};
use serde_json::{Value, json};
use support::{Request, Server};

/// A Lean of very few words. A proof is `intro h` and then `exact h`; the other words are there to make trouble.
fn read(code: &str) -> Value {
    let message = |severity: &str, line: usize, data: &str| {
        let (pos, end) = (json!({ "line": line, "column": 2 }), json!({ "line": line, "column": 9 }));
        json!({ "severity": severity, "pos": pos, "endPos": end, "data": data })
    };
    if code.trim() == "#check Nat" {
        let place = |column| json!({ "line": 1, "column": column });
        let told = json!({ "severity": "info", "pos": place(0), "endPos": place(6), "data": "Nat : Type" });
        return json!({ "env": 0, "messages": [told] });
    }
    let (mut messages, mut sorries) = (Vec::new(), Vec::new());
    let (mut introduced, mut done, mut proofs) = (false, false, false);
    for (number, line) in (1..).zip(code.lines()) {
        if !proofs {
            proofs = line.ends_with(":= by");
            continue;
        }
        match line.trim() {
            "intro h" => introduced = true,
            "exact h" if introduced => done = true,
            "sorry" => {
                let (pos, end) = (json!({ "line": number, "column": 2 }), json!({ "line": number, "column": 7 }));
                sorries.push(json!({ "pos": pos, "endPos": end, "goal": "⊢ p" }));
                messages.push(message("warning", number, "declaration uses 'sorry'"));
                done = true;
            }
            "skip" | "" => {}
            other => messages.push(message("error", number, &format!("unknown tactic '{other}'"))),
        }
    }
    if proofs && !done {
        messages.push(message("error", 1, "unsolved goals\n⊢ p"));
    }
    json!({ "env": 1, "messages": messages, "sorries": sorries })
}

fn answer(request: &Request) -> (u16, String) {
    if request.path == "/health" {
        return (200, "{\"status\": \"ok\"}".to_owned());
    }
    let asked: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let Some(snippets) = asked["snippets"].as_array().filter(|_| request.path == "/api/check") else {
        return (422, "{\"detail\": \"snippets\"}".to_owned());
    };
    let mut results = Vec::new();
    for snippet in snippets {
        let (id, code) = (&snippet["id"], snippet["code"].as_str().unwrap_or_default());
        if code.contains("overload") {
            return (500, "no worker".to_owned());
        }
        results.push(if code.contains("hang") {
            json!({ "id": id, "time": 30.0, "error": "Lean REPL command timed out in 30 seconds", "response": null })
        } else if code.contains("crash") {
            json!({ "id": id, "time": 0.1, "error": "the REPL has ended", "response": null })
        } else if code.contains("confuse") {
            json!({ "id": id, "time": 0.1, "error": null, "response": { "message": "Unknown environment." } })
        } else {
            json!({ "id": id, "time": 0.1, "error": null, "response": read(code), "diagnostics": null })
        });
    }
    (200, json!({ "results": results }).to_string())
}

/// Theorems with proofs, some with words.
fn rows(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("theorems.jsonl");
    let text: String = (0..20)
        .map(|i| {
            let row = json!({
                "name": format!("t{i}"),
                "formal_statement": format!("import Mathlib\n\nopen Nat\n\ntheorem t{i} (p : Prop) : p → p := by sorry"),
                "natural_language_statement": "Everything follows from itself.",
                "tactics": ["intro h", "exact h"],
            });
            format!("{row}\n")
        })
        .collect();
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a name").to_owned()
}

/// Plays tactics and returns reward, truncated, terminated of each.
fn play(env: &mut dyn Environment, tactics: &[&str]) -> Vec<(f64, bool, bool)> {
    env.reset(1, Split::Train).expect("an instance");
    let play = |tactic: &&str| {
        let step = env.step(tactic).expect("a step");
        assert_eq!(step.observation, env.render());
        ((step.reward * 1e9).round() / 1e9, step.truncated, step.terminated)
    };
    tactics.iter().map(play).collect()
}

#[test]
fn rewards_of_all_outcomes() {
    let (dir, server) = (tempfile::tempdir().expect("a folder"), Server::start(answer));
    let config = json!({ "data_path": rows(&dir), "server_url": server.url(), "max_steps": 4 });
    let mut env = make("lean", &config).expect("valid");
    let on = |reward| (reward, false, false);
    assert_eq!(play(env.as_mut(), &["intro h", "exact h"]), [on(0.9), (10.9, false, true)]);
    assert!(env.step("skip").is_err());
    assert_eq!(
        play(env.as_mut(), &["nonsense", "sorry", "hang", "intro h"]),
        [on(-1.1), on(-1.1), on(-2.1), (-1.1, true, false)]
    );
    assert!(env.step("skip").is_err());
    assert_eq!(
        play(env.as_mut(), &["  ", "skip", "intro h", "exact h"]),
        [on(-1.1), on(0.9), on(0.9), (10.9, false, true)]
    );
}

#[test]
fn the_state_tells_what_happened() {
    let (dir, server) = (tempfile::tempdir().expect("a folder"), Server::start(answer));
    let mut env = make("lean", &json!({ "data_path": rows(&dir), "server_url": server.url() })).expect("valid");
    let name = env.reset(3, Split::Train).expect("an instance");
    let name = name.strip_prefix("Theorem ").and_then(|rest| rest.split(':').next()).expect("a name").to_owned();
    env.step("intro h").expect("a step");
    env.step("nonsense").expect("a step");
    let expected = format!(
        "Theorem {name}: step 2 of at most 100, accepted tactics: 1.\nIn words:\nEverything follows from itself.\nThe proof \
         so far:\n  1 theorem {name} (p : Prop) : p → p := by\n  2   intro h\nWhat was tried last:\n- `intro h`: accepted\n- \
         `nonsense`: rejected\nLean says:\n- error at 7:2: unknown tactic 'nonsense'\n- error at 1:2: unsolved goals\n⊢ p"
    );
    assert_eq!(env.render(), expected);
    let asked: Value = serde_json::from_str(&server.seen().pop().expect("a request").body).expect("JSON");
    let code =
        format!("import Mathlib\n\nopen Nat\n\ntheorem {name} (p : Prop) : p → p := by\n  intro h\n  nonsense\n");
    let snippet = json!({ "id": format!("{name}-1"), "code": code });
    assert_eq!(asked, json!({ "snippets": [snippet], "timeout": 30, "debug": false, "reuse": true, "infotree": null }));
}

#[test]
fn the_checker_passes_and_the_rows_own_proof_works() {
    let (dir, server) = (tempfile::tempdir().expect("a folder"), Server::start(answer));
    let config = json!({ "data_path": rows(&dir), "server_url": server.url() });
    let new = || make("lean", &config).expect("valid");
    let report = check(new, 0..6).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert!(report.distinct_instances > 3, "{report:?}");
    let mut env = new();
    env.reset(5, Split::Val).expect("an instance");
    assert_eq!(env.oracle(1), Vec::<String>::new());
    let plan = env.oracle(2);
    let last = plan.iter().map(|tactic| env.step(tactic).expect("a step")).last().expect("a step");
    assert!(last.info.success && last.terminated);
}

#[test]
fn a_server_that_fails_is_an_error_or_a_rejection() {
    let (dir, server) = (tempfile::tempdir().expect("a folder"), Server::start(answer));
    let path = rows(&dir);
    for (tactic, told) in [
        ("crash", "the Lean server failed: the REPL has ended"),
        ("confuse", "the Lean process failed: Unknown environment."),
        ("overload", "status 500: no worker (3 attempts)"),
    ] {
        let mut env = make("lean", &json!({ "data_path": path, "server_url": server.url() })).expect("valid");
        env.reset(0, Split::Train).expect("an instance");
        let error = env.step(tactic).expect_err("a failure");
        assert!(matches!(error, EnvError::Play { .. }) && error.to_string().contains(told), "{error}");
        let compat = json!({ "data_path": path, "server_url": server.url(), "compat": true });
        let mut env = make("lean", &compat).expect("valid");
        assert_eq!(play(env.as_mut(), &[tactic]), [(-1.1, false, false)]);
        assert!(env.render().contains(told), "{}", env.render());
    }
}

#[test]
fn answers_that_make_no_sense_are_errors() {
    for (body, expected) in [
        ("{}", "one entry under `results`"),
        ("{\"results\": []}", "one entry under `results`"),
        ("{\"results\": [{}]}", "expected `error` or `response`"),
        ("{\"results\": [{\"response\": 3}]}", "expected `error` or `response`"),
        ("{\"results\": [{\"response\": {\"messages\": [{\"severity\": 1}]}}]}", "`messages` of the Lean server"),
        ("no JSON", "expected JSON"),
    ] {
        let server = Server::start(move |_| (200, body.to_owned()));
        let kimina = Kimina::connect(&server.url(), std::time::Duration::from_secs(5)).expect("up");
        let error = kimina.check("id", "code").expect_err("nonsense");
        assert!(error.contains(expected), "{error}");
    }
    let refuses =
        Server::start(|request| if request.path == "/health" { (200, String::new()) } else { (422, "{}".to_owned()) });
    let kimina = Kimina::connect(&refuses.url(), std::time::Duration::from_secs(5)).expect("up");
    assert!(kimina.check("id", "code").expect_err("refused").contains("status 422"));
    // A request that is wrong is not repeated.
    assert_eq!(refuses.seen().iter().filter(|request| request.path == "/api/check").count(), 1);
}

#[test]
fn a_server_with_nothing_to_say_has_read_the_file() {
    let server = Server::start(|_| (200, "{\"results\": [{\"id\": \"i\", \"response\": {\"env\": 0}}]}".to_owned()));
    let kimina = Kimina::connect(&server.url(), std::time::Duration::from_secs(5)).expect("up");
    assert_eq!(kimina.check("i", "def x := 1"), Ok(Checked::Read { messages: Vec::<Message>::new(), sorries: 0 }));
}

#[test]
fn settings_are_checked() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = rows(&dir);
    for (config, expected) in [
        (json!({ "server_url": "http://127.0.0.1:1" }), "`data_path`: expected a JSON Lines file"),
        (json!({ "data_path": path, "server_url": "http://127.0.0.1:1" }), "`server_url`: the Lean server is not up"),
        (json!({ "data_path": path, "server_url": "ftp://x" }), "expected an address such as"),
        (json!({ "serverurl": "x" }), "did you mean `server_url`?"),
        (json!({ "timeout_s": 0.5 }), "`timeout_s`"),
    ] {
        let error = make("lean", &config).err().unwrap_or_else(|| panic!("{config} was accepted")).to_string();
        assert!(error.contains(expected), "{config}: {error}");
    }
}

/// The public client asks the scripted server what we ask it, and understands the answers as we do.
#[test]
fn the_public_client_drives_the_same_server() {
    let Some(python) = std::env::var_os("RAGEN_KIMINA_PYTHON") else {
        println!("skipped: RAGEN_KIMINA_PYTHON names no Python with kimina-client; see scripts/check_kimina_client.sh");
        return;
    };
    let server = Server::start(answer);
    // Before Python 3.12 the client's models want another TypedDict than the one that the client takes.
    const PROGRAM: &str = "\
import sys
import typing
import typing_extensions
typing.TypedDict = typing_extensions.TypedDict
from kimina_client import KiminaClient
client = KiminaClient(api_url=sys.argv[1], n_retries=1)
client.health()
client.test()
head = 'theorem t (p : Prop) : p → p := by\\n'
for tactics in ['intro h', 'intro h\\n  exact h', 'sorry', 'nonsense', 'hang', 'crash', 'confuse']:
    result = client.check(head + '  ' + tactics, timeout=30, show_progress=False).results[0]
    print('status', result.analyze().status.value)
";
    let output = Command::new(python).args(["-c", PROGRAM, &server.url()]).output().expect("Python runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let statuses = ["lean_error", "valid", "sorry", "lean_error", "timeout_error", "server_error", "repl_error"];
    // The client's own log is there as well.
    let found: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("status ")).collect();
    assert_eq!(found, statuses, "{}", String::from_utf8_lossy(&output.stderr));
    // What the client sends has the keys of what we send.
    let keys = |request: &Request| -> Vec<String> {
        let body: Value = serde_json::from_str(&request.body).expect("JSON");
        let mut keys: Vec<String> = body.as_object().expect("a mapping").keys().cloned().collect();
        keys.sort();
        keys
    };
    let theirs = server.seen().pop().expect("a request");
    let kimina = Kimina::connect(&server.url(), std::time::Duration::from_secs(5)).expect("up");
    kimina.check("id", "#check Nat").expect("an answer");
    assert_eq!(keys(&server.seen().pop().expect("a request")), keys(&theirs));
}
