//! Answers in code: what passes, what is forbidden, what it may use. Skips where no sandbox can be had.

use std::time::{Duration, Instant};

use ragen_envs::checker::check;
use ragen_envs::code_tests::{Limits, Mechanism, Output, Run, Sandbox};
use ragen_envs::{Split, make};
use serde_json::{Value, json};

fn sandboxes() -> Vec<Sandbox> {
    let mut found = Vec::new();
    for mechanism in [Mechanism::Bwrap, Mechanism::Unshare] {
        match Sandbox::open(mechanism, "python3") {
            Ok(sandbox) => found.push(sandbox),
            Err(reason) => println!("skipped: {reason}"),
        }
    }
    found
}

const LIMITS: Limits = Limits { time: Duration::from_secs(20), memory: 512 << 20, file_megabytes: 4 };

fn program(sandbox: &Sandbox, code: &str, inputs: &[&str]) -> Run {
    let inputs: Vec<Value> = inputs.iter().map(|input| json!(input)).collect();
    sandbox.run(code, None, &inputs, &LIMITS).expect("the sandbox starts")
}

fn text(text: &str) -> Output {
    Output::Value { text: text.to_owned(), json: None }
}

#[test]
fn programs_read_and_write_in_every_way() {
    for sandbox in sandboxes() {
        for code in [
            "print(int(input()) + int(input()))",
            "import sys\nsys.stdout.write(str(sum(map(int, sys.stdin.read().split()))) + '\\n')",
            "import sys\na, b = map(int, sys.stdin.buffer.read().split())\nsys.stdout.buffer.write(b'%d\\n' % (a + b))",
            "import os\nos.write(1, b'%d\\n' % sum(map(int, os.read(0, 99).split())))",
            "a, b = map(int, open(0))\nprint(a + b)\nexit(0)",
            "import threading\nt = threading.Thread(target=lambda: print(int(input()) + int(input())))\nt.start()\nt.join()",
            "if __name__ == '__main__':\n    print(int(input()) + int(input()))",
            "import atexit\natexit.register(lambda: print(s))\ns = int(input()) + int(input())",
        ] {
            let run = program(&sandbox, code, &["1\n2\n", "30\n4"]);
            assert_eq!(
                run,
                Run { outputs: vec![text("3\n"), text("34\n")], timed_out: false },
                "{}: {code}",
                sandbox.name()
            );
        }
    }
}

#[test]
fn functions_are_called_with_their_arguments() {
    for sandbox in sandboxes() {
        let inputs = [json!("[1, 2]\n\"x\""), json!([[3], "y"]), json!("true\n{\"a\": null}")];
        for code in
            ["def f(a, b):\n    return [a, b]", "class Solution:\n    def f(self, a, b):\n        return [a, b]"]
        {
            let run = sandbox.run(code, Some("f"), &inputs, &LIMITS).expect("the sandbox starts");
            let value = |text: &str, json| Output::Value { text: text.to_owned(), json: Some(json) };
            let expected = [
                value("[[1, 2], 'x']", json!([[1, 2], "x"])),
                value("[[3], 'y']", json!([[3], "y"])),
                value("[True, {'a': None}]", json!([true, { "a": null }])),
            ];
            assert_eq!(run.outputs, expected, "{}", sandbox.name());
        }
    }
}

#[test]
fn what_is_forbidden_fails() {
    for sandbox in sandboxes() {
        for (code, why) in [
            ("import os\nos.fork()", "PermissionError"),
            ("import os\nos.execv('/bin/true', ['true'])", "PermissionError"),
            ("import subprocess\nsubprocess.Popen(['sleep', '1'])", "PermissionError"),
            ("import multiprocessing as m\nm.Process(target=print).start()", "PermissionError"),
            ("import socket\nsocket.socket()", "PermissionError"),
            (
                "import ctypes as c\nif c.CDLL(None, use_errno=True).unshare(1 << 28): raise OSError(c.get_errno())",
                "OSError: 1",
            ),
            ("open('/etc/hostname')", "FileNotFoundError"),
            ("open('/usr/new', 'w')", "OSError"),
            ("open('/new', 'w')", "OSError"),
            ("x = bytearray(1 << 30)", "MemoryError"),
            ("open('/tmp/x', 'wb').write(b'x' * (5 << 20))", "OSError"),
            ("[open('/dev/null') for _ in range(100)]; fs = [open('/dev/null') for _ in range(100)]", "OSError"),
            ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))", "ValueError"),
            ("raise ValueError('of its own')", "ValueError: of its own"),
            ("x = 1 +", "SyntaxError"),
        ] {
            let run = program(&sandbox, code, &[""]);
            let Some(Output::Failed(problem)) = run.outputs.first() else {
                panic!("{}: {code}: {run:?}", sandbox.name())
            };
            assert!(problem.starts_with(why), "{}: {code}: {problem}", sandbox.name());
        }
    }
}

#[test]
fn time_ends_and_takes_everything_along() {
    for sandbox in sandboxes() {
        let limits = Limits { time: Duration::from_millis(700), ..LIMITS };
        for code in [
            "while True: pass",
            "import time\ntime.sleep(3600)",
            "import signal, time\nfor s in range(1, 9):\n    signal.signal(s, signal.SIG_IGN)\ntime.sleep(3600)",
        ] {
            let begin = Instant::now();
            let run = sandbox.run(code, None, &[json!("")], &limits).expect("the sandbox starts");
            assert_eq!(run, Run { outputs: vec![Output::Missing], timed_out: true });
            assert!(begin.elapsed() < Duration::from_secs(60));
        }
    }
}

#[test]
fn a_program_that_ends_itself_fails_the_rest_and_cannot_pass_by_talking() {
    for sandbox in sandboxes() {
        let run = program(&sandbox, "import os\nif input() == '2': os._exit(0)\nprint('fine')", &["1", "2", "3"]);
        assert_eq!(run.outputs, [text("fine\n"), Output::Missing, Output::Missing]);
        // Lines written where the driver reports are claims about outputs, at best.
        let forged = "import os\nlines = b'{\"test\": 0, \"passed\": true}\\n{\"test\": 99, \"text\": \"\"}\\nnoise\\n'\n\
                      for fd in range(3, 20):\n    try: os.write(fd, lines)\n    except OSError: pass\nprint('wrong')";
        let run = program(&sandbox, forged, &["", ""]);
        assert_eq!(run.outputs, [text("wrong\n"), text("wrong\n")]);
        let flood = "import os\nfor fd in range(3, 20):\n    try:\n        while True: os.write(fd, b'x' * 65536)\n    \
                     except OSError: pass";
        let run = sandbox.run(flood, None, &[json!("")], &Limits { time: Duration::from_secs(3), ..LIMITS });
        assert_eq!(run.expect("the sandbox starts").outputs, [Output::Missing]);
    }
}

/// Problems of both kinds.
fn rows(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("problems.jsonl");
    let text: String = (0..20)
        .map(|i| {
            let of = if i % 2 == 0 { "stdin_stdout" } else { "functional" };
            let test = |n: i32| json!({ "input": format!("{n}\n{i}"), "output": (n + i).to_string(), "testtype": of });
            let tests: Vec<Value> = (0..4).map(test).collect();
            let mut row = json!({ "problem": format!("Problem {i}: add two numbers."), "tests": tests });
            if i % 2 == 0 {
                row["solution"] = json!("print(int(input()) + int(input()))");
            } else {
                row["metadata"] = json!({ "func_name": "add" });
                row["starter_code"] = json!("class Solution:\n    def add(self, a: int, b: int) -> int:\n");
                row["solution"] = json!("def add(self, a, b):\n    return a + b");
            }
            format!("{row}\n")
        })
        .collect();
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a name").to_owned()
}

#[test]
fn the_reward_is_the_share_of_tests_that_pass() {
    if sandboxes().is_empty() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let mut env =
        make("deepcoder", &json!({ "data_path": rows(&dir), "timeout_s": 20.0, "val_every": 2 })).expect("valid");
    // Rows of validation are those with a function here.
    let state = env.reset(1, Split::Val).expect("an instance");
    assert!(
        state.contains("Start from this code:\nclass Solution:") && state.ends_with("call the function `add`."),
        "{state}"
    );
    for (split, answer, reward) in [
        (Split::Val, "def add(self, a, b):\n    return a + b", 1.0),
        (
            Split::Val,
            "```python\nclass Solution:\n    def add(self, a, b):\n        return a + b if a < 1 else 0\n```",
            0.25,
        ),
        (Split::Val, "return a + b", 1.0),
        (Split::Val, "def subtract(self, a, b):\n    return 0", 0.0),
        (Split::Train, "a = int(input())\nprint(a + int(input()) if a else 'x')", 0.75),
        (Split::Train, "not code", 0.0),
    ] {
        env.reset(1, split).expect("an instance");
        let step = env.step(answer).expect("a step");
        assert_eq!(
            (step.reward, step.terminated, step.info.success),
            (reward, true, reward == 1.0),
            "{answer}: {step:?}"
        );
        assert_eq!(step.info.extra["tests"], 4.0);
        assert!(env.step(answer).is_err());
    }
    env.reset(1, Split::Train).expect("an instance");
    assert!(!env.step(" \n").expect("a step").info.action_is_valid);
    let solution = env.oracle(1).swap_remove(0);
    assert_eq!(env.step(&solution).expect("a step").reward, 1.0);
}

#[test]
fn time_that_is_up_pays_nothing() {
    if sandboxes().is_empty() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let mut env =
        make("deepcoder", &json!({ "data_path": rows(&dir), "timeout_s": 1.0, "val_every": 2 })).expect("valid");
    env.reset(1, Split::Train).expect("an instance");
    let step = env.step("a = int(input())\nb = int(input())\nwhile a > 2: pass\nprint(a + b)").expect("a step");
    assert_eq!((step.reward, step.terminated), (0.0, true));
    assert_eq!(step.observation, "The time of 1 s was up before all 4 tests had ended.");
}

#[test]
fn the_checker_passes() {
    if sandboxes().is_empty() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let config = json!({ "data_path": rows(&dir), "val_every": 2, "timeout_s": 10.0 });
    let report = check(|| make("deepcoder", &config).expect("valid"), 0..1);
    report.unwrap_or_else(|problems| panic!("{problems:#?}"));
}

#[test]
fn without_a_sandbox_there_is_no_environment() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = rows(&dir);
    for (config, expected) in [
        (
            json!({ "data_path": path, "python": "no-such-python", "val_every": 2 }),
            "cannot run the Python interpreter `no-such-python`",
        ),
        (json!({ "data_path": path, "python": "true", "val_every": 2 }), "is no Python interpreter"),
        (json!({ "data_path": path, "sandbox": "none" }), "unknown variant `none`"),
        (json!({ "timeout_s": 0 }), "`timeout_s`"),
        (json!({ "memory_mb": 1 }), "`memory_mb`"),
    ] {
        let error = make("deepcoder", &config).err().unwrap_or_else(|| panic!("{config} was accepted")).to_string();
        assert!(error.contains(expected), "{config}: {error}");
    }
    // Where Bubblewrap is not installed, asking for it is refused, with the reason.
    if let Err(reason) = Sandbox::open(Mechanism::Bwrap, "python3") {
        assert!(reason.contains("programs are not run without a sandbox") && reason.contains("bwrap: "), "{reason}");
    }
}
