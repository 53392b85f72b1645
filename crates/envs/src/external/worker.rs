//! One environment process as the pool keeps it: the handshake, and calls with their replies.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExternalConfig;
use super::message::{Call, Hello, PROTOCOL, Reply, Request, VERSION};
use super::process::{Broken, Process, excerpt};

/// Why a call was not answered.
#[derive(Debug)]
pub(super) enum CallError {
    /// The process answered that it cannot: an exception in the environment. It goes on.
    Refused(String),
    /// The process is of no use any more.
    Broken(Broken),
}

/// A process with the episodes that it plays.
pub(super) struct Worker {
    /// `None` once it is broken.
    line: Mutex<Option<Line>>,
    alive: AtomicBool,
    /// Episodes that play on it.
    pub load: AtomicUsize,
    /// Kept for one episode.
    pub reserved: AtomicBool,
}

struct Line {
    process: Process,
    next_id: u64,
}

impl Worker {
    /// Starts a process and shakes hands.
    ///
    /// # Errors
    /// In words: what was started, and what went wrong.
    pub fn start(config: &ExternalConfig) -> Result<(Self, Hello), String> {
        let process = Process::start(config).map_err(|error| {
            let folder = config.working_dir.as_ref().map_or_else(String::new, |folder| format!(" in `{folder}`"));
            format!("cannot start `{}`{folder}: {error}", config.command_line())
        })?;
        let mut line = Line { process, next_id: 0 };
        let call = Call::Hello {
            protocol: PROTOCOL.to_owned(),
            versions: vec![VERSION],
            config: Value::Object(config.config.clone()),
        };
        let hello = match line.call(&call, config.start_limit()) {
            Ok(value) => understand::<Hello>(value).and_then(check_hello),
            Err(CallError::Refused(message)) => Err(format!("refused the handshake: {message}")),
            Err(CallError::Broken(broken)) => {
                line.process.kill();
                Err(broken.to_string())
            }
        };
        let hello = hello.map_err(|message| format!("`{}` {message}", config.command_line()))?;
        let worker = Self {
            line: Mutex::new(Some(line)),
            alive: AtomicBool::new(true),
            load: AtomicUsize::new(0),
            reserved: AtomicBool::new(false),
        };
        Ok((worker, hello))
    }

    /// Whether it can be called.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// Asks the process; a broken one is ended.
    pub fn call(&self, call: &Call, limit: Duration) -> Result<Value, CallError> {
        let mut guard = self.lock();
        let Some(line) = guard.as_mut() else {
            return Err(CallError::Broken(Broken::Exited("was ended after another episode's failure".to_owned())));
        };
        let answer = line.call(call, limit);
        if matches!(answer, Err(CallError::Broken(_))) {
            self.alive.store(false, Ordering::Relaxed);
            line.process.kill();
            *guard = None;
        }
        answer
    }

    /// Ends the process in good order.
    pub fn shut_down(&self) {
        self.alive.store(false, Ordering::Relaxed);
        *self.lock() = None;
    }

    /// A call that panicked leaves nothing half done that the next one would not notice.
    fn lock(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn call(&mut self, call: &Call, limit: Duration) -> Result<Value, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = Request { id, call: call.clone() };
        let mut text = serde_json::to_vec(&request).map_err(|error| {
            CallError::Broken(Broken::Garbage(format!("was asked what cannot be written: {error}")))
        })?;
        text.push(b'\n');
        self.process.check_quiet().map_err(CallError::Broken)?;
        let line = self.process.exchange(&text, limit).map_err(CallError::Broken)?;
        let garbage = |why: String| CallError::Broken(Broken::Garbage(why));
        let reply: Reply = serde_json::from_slice(&line)
            .map_err(|error| garbage(format!("answered what is no reply ({error}): {}", excerpt(&line))))?;
        if reply.id != id {
            return Err(garbage(format!("answered request {} when it was asked {id}", reply.id)));
        }
        match (reply.result, reply.error) {
            (Some(value), None) => Ok(value),
            (None, Some(refusal)) => Err(CallError::Refused(shorten(refusal.message))),
            _ => Err(garbage(format!("answered neither `result` nor `error`, or both: {}", excerpt(&line)))),
        }
    }
}

/// Reads a result.
///
/// # Errors
/// In words, with the path of what does not fit.
pub(super) fn understand<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at `{path}`") };
        format!("sent a reply that cannot be used{place}: {}", error.into_inner())
    })
}

fn check_hello(hello: Hello) -> Result<Hello, String> {
    if hello.protocol != PROTOCOL || hello.version != VERSION {
        return Err(format!(
            "speaks `{}` version {}; expected `{PROTOCOL}` version {VERSION}",
            hello.protocol, hello.version
        ));
    }
    for (i, action) in hello.actions.iter().enumerate() {
        if action.trim().is_empty() || hello.actions.iter().take(i).any(|other| other.eq_ignore_ascii_case(action)) {
            return Err(format!("names the action {action:?}: expected names that differ, without regard to case"));
        }
    }
    Ok(hello)
}

/// A message of bearable length.
fn shorten(mut message: String) -> String {
    if let Some((cut, _)) = message.char_indices().nth(2000) {
        message.truncate(cut);
        message.push('…');
    }
    message
}
