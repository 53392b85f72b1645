//! Client of a Kimina Lean server: `POST /api/check` with snippets of Lean code answers the messages of each; the
//! protocol is that of the server's own client, `kimina-client`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::dataset::kind;
use crate::http::Client;

/// Longer than the server may take, so that its own answer about a timeout arrives.
const GRACE: Duration = Duration::from_secs(30);

/// A place in a file: line from 1, column from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 0.
    pub column: u64,
}

/// Something that Lean says about a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Message {
    /// `error`, `warning`, `info` or `trace`.
    pub severity: String,
    /// Where.
    #[serde(default)]
    pub pos: Position,
    /// What.
    pub data: String,
}

impl Message {
    /// It says that something is wrong.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// It is an error that more tactics cannot mend.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.is_error() && !self.data.contains("unsolved goals")
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Lean has read it.
    Read {
        /// What Lean says.
        messages: Vec<Message>,
        /// Holes that were left with `sorry`.
        sorries: usize,
    },
    /// Lean took too long.
    TimedOut(String),
}

/// A Kimina Lean server.
pub struct Kimina {
    client: Client,
    timeout: Duration,
}

impl Kimina {
    /// Connects to the server at `url` and asks whether it is up. A file may take `timeout`. The key that the server
    /// asks for, if it does, is taken from the environment variable `LEAN_SERVER_API_KEY`.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn connect(url: &str, timeout: Duration) -> Result<Self, String> {
        let key = std::env::var("LEAN_SERVER_API_KEY").ok().filter(|key| !key.is_empty());
        let client = Client::new(url, timeout + GRACE, key)?;
        client.expect_up().map_err(|error| format!("the Lean server is not up: {error}"))?;
        Ok(Self { client, timeout })
    }

    /// Lets the server read a file; `id` names it in the server's log.
    ///
    /// # Errors
    /// What is wrong with the server or its answer, in words.
    pub fn check(&self, id: &str, code: &str) -> Result<Checked, String> {
        let request = json!({
            "snippets": [{ "id": id, "code": code }],
            "timeout": self.timeout.as_secs().max(1),
            "debug": false,
            "reuse": true,
            "infotree": null,
        });
        checked(&self.client.post("/api/check", &request)?)
    }
}

/// Reads the server's answer for one snippet.
fn checked(answer: &Value) -> Result<Checked, String> {
    let results = answer.get("results").and_then(Value::as_array);
    let Some([result]) = results.map(Vec::as_slice) else {
        return Err(format!("expected one entry under `results` from the Lean server, found {}", kind(answer)));
    };
    if let Some(error) = result.get("error").and_then(Value::as_str) {
        return if error.contains("timed out") {
            Ok(Checked::TimedOut(error.to_owned()))
        } else {
            Err(format!("the Lean server failed: {error}"))
        };
    }
    let response = result.get("response").filter(|response| response.is_object());
    let Some(response) = response else {
        return Err("expected `error` or `response` from the Lean server, found neither".to_owned());
    };
    if let Some(message) = response.get("message").and_then(Value::as_str) {
        return Err(format!("the Lean process failed: {message}"));
    }
    let messages = match response.get("messages") {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => {
            Vec::<Message>::deserialize(list).map_err(|error| format!("`messages` of the Lean server: {error}"))?
        }
    };
    let sorries = response.get("sorries").and_then(Value::as_array).map_or(0, Vec::len);
    Ok(Checked::Read { messages, sorries })
}
