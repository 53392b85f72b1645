//! Settings of the environment `openenv`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};

const KEYS: [&str; 12] = [
    "url",
    "actions",
    "action_field",
    "action_defaults",
    "observation_field",
    "success_field",
    "instruction",
    "reset",
    "connections",
    "timeout_s",
    "max_message_bytes",
    "max_failures",
];

/// Settings of the environment `openenv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenEnvConfig {
    /// The server, such as `http://127.0.0.1:8000`. Required.
    pub url: String,
    /// Names of actions with the objects that are sent for them, such as `{Up: {action_id: 0}}`. Default none: from the
    /// server's schema.
    pub actions: Map<String, Value>,
    /// The field of the action that the agent fills in. Null: the only required one, or the only one. Default null.
    pub action_field: Option<String>,
    /// Values of other fields of the action. Default none.
    pub action_defaults: Map<String, Value>,
    /// The field of the observation that is shown to the agent. Null: all, as text. Default null.
    pub observation_field: Option<String>,
    /// The field of the observation that is true when the goal is reached. Null: `success` where the observation has
    /// it, else the end with a positive reward. Default null.
    pub success_field: Option<String>,
    /// Rules and goal in words. Null: the server's description. Default null.
    pub instruction: Option<String>,
    /// Sent with every reset, beside `seed` and `split`. Default none.
    pub reset: Map<String, Value>,
    /// Connections at a time, at most; episodes beyond take turns and are played again when it is theirs. 0: as many as
    /// the server takes. Default 0.
    pub connections: usize,
    /// Seconds that an answer may take. Default 30.
    pub timeout_s: f64,
    /// Longest message in bytes. Default 262144.
    pub max_message_bytes: usize,
    /// Episodes in a row that may fail before the server is given up; the following ones then end at once. Default 32.
    pub max_failures: usize,
}

impl Default for OpenEnvConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            actions: Map::new(),
            action_field: None,
            action_defaults: Map::new(),
            observation_field: None,
            success_field: None,
            instruction: None,
            reset: Map::new(),
            connections: 0,
            timeout_s: 30.0,
            max_message_bytes: 256 * 1024,
            max_failures: 32,
        }
    }
}

impl OpenEnvConfig {
    /// Reads the settings from JSON and checks them.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let config: Self = read(ENV_TYPE, config, &KEYS)?;
        config.check()?;
        Ok(config)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`EnvError::Config`] with the setting, what was expected and what was found.
    pub fn check(&self) -> Result<(), EnvError> {
        self.authority()?;
        check_range(ENV_TYPE, "timeout_s", self.timeout_s, 0.001, 86_400.0)?;
        check_range(ENV_TYPE, "max_message_bytes", self.max_message_bytes, 256, 1 << 30)?;
        check_range(ENV_TYPE, "connections", self.connections, 0, 1 << 16)?;
        check_range(ENV_TYPE, "max_failures", self.max_failures, 1, 1 << 20)?;
        for (name, action) in &self.actions {
            if !action.is_object() || name.trim().is_empty() {
                let message = format!("setting `actions`: expected names with objects, found {name:?}: `{action}`");
                return Err(refuse(ENV_TYPE, message));
            }
        }
        Ok(())
    }

    /// Host and port of the server, and the path before the endpoints' (empty for most).
    ///
    /// # Errors
    /// [`EnvError::Config`] for an address that is none, or one over TLS.
    pub(super) fn authority(&self) -> Result<(String, String), EnvError> {
        let expected = "setting `url`: expected an address such as http://127.0.0.1:8000";
        let uri: ureq::http::Uri = self
            .url
            .trim_end_matches('/')
            .parse()
            .map_err(|error| refuse(ENV_TYPE, format!("{expected}, found `{}` ({error})", self.url)))?;
        if matches!(uri.scheme_str(), Some("https" | "wss")) {
            let message = format!("{expected}, found `{}`: TLS is not spoken; put a local proxy before it", self.url);
            return Err(refuse(ENV_TYPE, message));
        }
        match (uri.scheme_str(), uri.host()) {
            (Some("http" | "ws"), Some(host)) => {
                let path = uri.path().trim_end_matches('/').to_owned();
                Ok((format!("{host}:{}", uri.port_u16().unwrap_or(80)), path))
            }
            _ => Err(refuse(ENV_TYPE, format!("{expected}, found `{}`", self.url))),
        }
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses() {
        let of = |url: &str| OpenEnvConfig::from_json(&json!({ "url": url })).and_then(|config| config.authority());
        assert_eq!(of("http://localhost:8000/").unwrap(), ("localhost:8000".into(), String::new()));
        assert_eq!(of("ws://10.0.0.1/envs/echo").unwrap(), ("10.0.0.1:80".into(), "/envs/echo".into()));
        assert!(of("https://example.org").unwrap_err().to_string().contains("TLS is not spoken"));
        for wrong in ["", "localhost:8000", "ftp://x", "http://"] {
            assert!(of(wrong).unwrap_err().to_string().contains("setting `url`"), "{wrong}");
        }
    }
}
