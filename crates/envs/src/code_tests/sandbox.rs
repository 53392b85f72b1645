//! Running programs that nobody has read: in namespaces of their own, with limits, and not at all where that cannot be
//! had.
//!
//! A program sees a read-only copy of the system's libraries, an empty `/tmp` of limited size, no network, no other
//! processes; it cannot start processes or programs, and has limits on memory, processor time, file sizes and wall
//! time. The namespaces are made by `bwrap` (Bubblewrap) or by `unshare` (util-linux), both without privileges; the
//! limits and a system call filter are set by the driver inside, before the program starts. Before it is used, a
//! sandbox is tried out: a program that attempts what is forbidden has to fail at all of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Time for setting up a sandbox and starting the interpreter; does not count as the program's.
const START_UP: Duration = Duration::from_secs(30);
/// Bytes that all outputs of a run may have together.
const OUTPUT_BYTES: u64 = 8 << 20;
const DRIVER: &str = include_str!("driver.py");
const SCRIPT: &str = include_str!("sandbox.sh");
/// Folders with the system's programs and libraries.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/lib", "/lib64", "/lib32", "/sbin"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What makes the namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The first of the others that works.
    #[default]
    Auto,
    /// Bubblewrap.
    Bwrap,
    /// `unshare`, `mount`, `pivot_root` and `setpriv` of util-linux.
    Unshare,
}

/// What a run may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Wall time for all tests together.
    pub time: Duration,
    /// Address space in bytes.
    pub memory: u64,
    /// Size of `/tmp` and of each file, in megabytes.
    pub file_megabytes: u64,
}

/// What came of one test.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// What the program wrote, or `str` of what the function returned, with its JSON where it has one.
    Value {
        /// The text.
        text: String,
        /// The value, for functions.
        json: Option<Value>,
    },
    /// The program failed, in words.
    Failed(String),
    /// The program did not get that far.
    Missing,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// One for every input.
    pub outputs: Vec<Output>,
    /// The time was up before the last test ended.
    pub timed_out: bool,
}

/// A sandbox that has been tried out.
#[derive(Clone, Debug)]
pub struct Sandbox {
    mechanism: Mechanism,
    python: PathBuf,
    folders: Vec<String>,
}

/// Sandboxes tried out in this process, or why they cannot be had.
static TRIED: Mutex<BTreeMap<(Mechanism, String), Result<Sandbox, String>>> = Mutex::new(BTreeMap::new());

impl Sandbox {
    /// A sandbox for programs of the Python interpreter `python` (a name or a path).
    ///
    /// # Errors
    /// Why there is none that keeps its promises on this machine.
    pub fn open(mechanism: Mechanism, python: &str) -> Result<Self, String> {
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        tried.entry((mechanism, python.to_owned())).or_insert_with(|| Self::try_out(mechanism, python)).clone()
    }

    fn try_out(mechanism: Mechanism, python: &str) -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err("programs can be shut in on Linux only; train this environment there".to_owned());
        }
        let (python, folders) = interpreter(python)?;
        let candidates = match mechanism {
            Mechanism::Auto => vec![Mechanism::Bwrap, Mechanism::Unshare],
            one => vec![one],
        };
        let mut problems = Vec::new();
        for mechanism in candidates {
            let sandbox = Self { mechanism, python: python.clone(), folders: folders.clone() };
            match super::trial::examine(&sandbox) {
                Ok(()) => return Ok(sandbox),
                Err(problem) => problems.push(format!("{}: {problem}", sandbox.name())),
            }
        }
        Err(format!(
            "programs are not run without a sandbox, and none can be had here ({}); install bubblewrap, or allow \
             unprivileged user namespaces",
            problems.join("; ")
        ))
    }

    /// The program that makes the namespaces.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.mechanism {
            Mechanism::Bwrap => "bwrap",
            Mechanism::Auto | Mechanism::Unshare => "unshare",
        }
    }

    /// A path lies in one of the folders that can be read inside.
    pub(super) fn shows(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| Path::new(path).starts_with(folder))
    }

    /// Runs `code` on every input: as a program that reads it from standard input, or by calling `function` with it.
    ///
    /// # Errors
    /// Why the sandbox could not be started, in words. Whatever the program does is not an error.
    pub fn run(&self, code: &str, function: Option<&str>, inputs: &[Value], limits: &Limits) -> Result<Run, String> {
        let request = json!({
            "code": code,
            "function": function,
            "inputs": inputs,
            "memory_bytes": limits.memory,
            "file_bytes": limits.file_megabytes << 20,
            "cpu_seconds": limits.time.as_secs() + 2,
            "output_bytes": OUTPUT_BYTES,
        });
        let mut child = self
            .command(limits)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.name()))?;
        let lines = attend(&mut child, request.to_string());
        let run = follow(&lines, inputs.len(), limits.time);
        // The whole of the sandbox ends with its first process, which ends with this one.
        let _ = child.kill();
        let _ = child.wait();
        run.map_err(|problem| {
            let mut told = String::new();
            if let Some(stderr) = child.stderr.take() {
                let _ = stderr.take(2000).read_to_string(&mut told);
            }
            format!("{problem}: {}", told.trim().lines().last().unwrap_or("no message"))
        })
    }

    fn command(&self, limits: &Limits) -> Command {
        let megabytes = limits.file_megabytes.to_string();
        let mut command = Command::new(self.name());
        match self.mechanism {
            Mechanism::Bwrap => {
                command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]);
                command.args(["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]);
                command.args(["--setenv", "PYTHONHASHSEED", "0", "--setenv", "LANG", "C.UTF-8"]);
                for folder in &self.folders {
                    match std::fs::read_link(folder) {
                        Ok(target) => command.arg("--symlink").arg(target).arg(folder),
                        Err(_) => command.args(["--ro-bind", folder, folder]),
                    };
                }
                let size = (limits.file_megabytes << 20).to_string();
                for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
                    command.args(["--dev-bind", device, device]);
                }
                command.args(["--size", &size, "--tmpfs", "/tmp", "--remount-ro", "/"]);
                command.args(["--chdir", "/tmp", "--"]).arg(&self.python).args(["-s", "-B", "-c", DRIVER]);
                command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_else(|| PATH.into()));
            }
            Mechanism::Auto | Mechanism::Unshare => {
                command.args(["--user", "--map-root-user", "--mount", "--net", "--pid", "--ipc", "--uts"]);
                command.args(["--fork", "--kill-child", "sh", "-c", SCRIPT, "sandbox"]);
                // The place that is built on is hidden, so it must not be one that is needed.
                let hidden = self.folders.iter().any(|folder| folder.starts_with("/tmp/"));
                command.args([if hidden { "/mnt" } else { "/tmp" }, megabytes.as_str()]);
                command.arg(&self.python).arg(DRIVER).args(&self.folders);
                command.env_clear().env("PATH", PATH).env("PYTHONHASHSEED", "0").env("LANG", "C.UTF-8");
            }
        }
        command
    }
}

/// The interpreter's own path and the folders that it and the system need.
fn interpreter(python: &str) -> Result<(PathBuf, Vec<String>), String> {
    const QUESTION: &str = "import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)";
    let output = Command::new(python)
        .args(["-c", QUESTION])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run the Python interpreter `{python}`: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let (Some(path), Some(prefix)) = (lines.next(), lines.next()) else {
        return Err(format!("`{python}` is no Python interpreter: it does not tell where it is"));
    };
    let mut folders: Vec<String> =
        SYSTEM.iter().filter(|folder| Path::new(folder).exists()).map(|&folder| folder.to_owned()).collect();
    let inside = |folder: &str| folder == "/usr" || folder.starts_with("/usr/");
    if !inside(prefix) {
        folders.push(prefix.to_owned());
    }
    if !inside(path) && !Path::new(path).starts_with(prefix) {
        folders.extend(Path::new(path).parent().map(|folder| folder.to_string_lossy().into_owned()));
    }
    Ok((PathBuf::from(path), folders))
}

/// Sends the request and collects the answer's lines, each on a thread of its own.
fn attend(child: &mut Child, request: String) -> Receiver<String> {
    if let Some(mut stdin) = child.stdin.take() {
        // A child that does not read leaves a broken pipe, which is told by its silence.
        std::thread::spawn(move || stdin.write_all(request.as_bytes()));
    }
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout.take(2 * OUTPUT_BYTES));
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
    }
    lines
}

/// Reads the driver's lines until all tests are done or the time is up.
fn follow(lines: &Receiver<String>, tests: usize, time: Duration) -> Result<Run, String> {
    let ready = lines.recv_timeout(START_UP).ok().and_then(|line| serde_json::from_str::<Value>(&line).ok());
    if ready.and_then(|ready| ready.get("ready").cloned()) != Some(Value::Bool(true)) {
        return Err("the sandbox did not start".to_owned());
    }
    let end = Instant::now() + time;
    let mut outputs = vec![Output::Missing; tests];
    let mut done = 0;
    while done < tests {
        let line = match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(Run { outputs, timed_out: true }),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // A program may write lines of its own here; they claim outputs, and outputs are compared outside.
        let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
        let place = line.get("test").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let slot = place.and_then(|place| outputs.get_mut(place)).filter(|slot| **slot == Output::Missing);
        let Some(slot) = slot else { continue };
        *slot = match (line.get("text").and_then(Value::as_str), line.get("error").and_then(Value::as_str)) {
            (Some(text), _) => {
                let json = line.get("json").and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
                Output::Value { text: text.to_owned(), json }
            }
            (None, Some(error)) => Output::Failed(error.to_owned()),
            (None, None) => continue,
        };
        done += 1;
    }
    Ok(Run { outputs, timed_out: false })
}
