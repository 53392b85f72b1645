//! Trying a sandbox out: a program that attempts what is forbidden, and what has to come of it.

use std::time::Duration;

use serde_json::Value;

use super::sandbox::{Limits, Output, Sandbox};

/// Attempts, each a Python expression statement that must fail, and what it means when it does not.
const FORBIDDEN: [(&str, &str); 8] = [
    ("import os; os.fork() or os._exit(0)", "it can start processes"),
    ("import subprocess; subprocess.run(['true'])", "it can start programs"),
    ("import socket; socket.create_connection(('192.0.2.1', 9), 1)", "it has a network"),
    ("open('/usr/sandbox-trial', 'w')", "it can write to the system"),
    ("open('/sandbox-trial', 'w')", "it can write to the root folder"),
    ("open('/etc/passwd').read()", "it can read the system's settings"),
    ("open(OWN, 'rb').read(1)", "it can read files outside the system's folders"),
    ("bytearray(1 << 30)", "its memory is not limited"),
];
/// What has to work all the same.
const ALLOWED: &str = "import threading; t = threading.Thread(target=lambda: open('/tmp/x', 'w').write('y')); t.start(); \
                       t.join(); print(open('/tmp/x').read())";

/// Runs all attempts in the sandbox.
///
/// # Errors
/// The first promise that is broken, in words.
pub(super) fn examine(sandbox: &Sandbox) -> Result<(), String> {
    let limits = Limits { time: Duration::from_secs(20), memory: 512 << 20, file_megabytes: 4 };
    // The running program itself is a file that has no business in there, unless it is installed with the system.
    let own = std::env::current_exe().unwrap_or_default().to_string_lossy().into_owned();
    let own = if sandbox.shows(&own) { "/proc/self/exe".to_owned() } else { own };
    let program = format!("OWN = {}\nexec(input())", Value::from(own));
    let mut inputs: Vec<Value> = FORBIDDEN.iter().map(|(attempt, _)| Value::from(*attempt)).collect();
    inputs.push(Value::from(ALLOWED));
    let run = sandbox.run(&program, None, &inputs, &limits)?;
    for ((_, meaning), output) in FORBIDDEN.iter().zip(&run.outputs) {
        if !matches!(output, Output::Failed(_)) {
            return Err((*meaning).to_owned());
        }
    }
    match run.outputs.last() {
        Some(Output::Value { text, .. }) if text == "y\n" => Ok(()),
        Some(Output::Failed(problem)) => Err(format!("ordinary programs do not work in it: {problem}")),
        _ => Err("ordinary programs do not work in it".to_owned()),
    }
}
