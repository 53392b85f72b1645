//! Runs the binary and looks at what it leaves.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a command left.
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the binary with these arguments.
pub fn ragen(arguments: &[&str]) -> Ran {
    ragen_reading("", arguments)
}

/// Runs the binary with these arguments and this standard input.
pub fn ragen_reading(input: &str, arguments: &[&str]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ragen"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may end without reading it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { status: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Ran {
    /// The command succeeded; its output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.done();
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// The command succeeded; its output.
    #[track_caller]
    pub fn done(&self) -> &str {
        assert_eq!(self.status, 0, "{}", self.stderr);
        &self.stdout
    }

    /// The command refused its input in one paragraph that holds all these words.
    #[track_caller]
    pub fn refused(&self, words: &[&str]) {
        assert_eq!(self.status, 2, "{}{}", self.stdout, self.stderr);
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "not one paragraph: {}", self.stderr);
        assert!(lines[0].starts_with("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("a fault in ragen"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
    }
}

/// A path as an argument.
pub fn arg(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
