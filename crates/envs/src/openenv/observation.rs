//! From a server's observation to what the trainer knows: text, reward, end, success.

use serde_json::{Map, Value};

use super::OpenEnvConfig;
use crate::config::nearest;

/// An observation as it came, read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub text: String,
    pub reward: f64,
    pub done: bool,
    /// A limit rather than the environment ended the episode, where the server says so.
    pub truncated: bool,
    pub success: bool,
    pub available: Option<Vec<String>>,
    pub state_key: Option<String>,
    pub action_is_valid: Option<bool>,
    pub action_is_effective: Option<bool>,
}

/// Fields that say something about an observation rather than show it.
const MEANINGS: [&str; 6] =
    ["success", "truncated", "available_actions", "state_key", "action_is_valid", "action_is_effective"];

/// Reads the data of an `observation` message.
///
/// # Errors
/// In words, when it is no observation or lacks a field that the settings name.
pub(super) fn read(data: &Value, config: &OpenEnvConfig) -> Result<Seen, String> {
    let Some(fields) = data["observation"].as_object() else {
        return Err(format!("sent no observation: {}", data.to_string().chars().take(200).collect::<String>()));
    };
    let reward = match &data["reward"] {
        // No reward was given; a NaN is written as null too.
        Value::Null => 0.0,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        other => other.as_f64().ok_or_else(|| format!("sent a reward that is no number: `{other}`"))?,
    };
    let done = data["done"].as_bool().unwrap_or(false);
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool);
    let success = match &config.success_field {
        Some(name) => field(fields, name)?.as_bool().unwrap_or(false),
        None => flag("success").unwrap_or(done && reward > 0.0),
    };
    let text = match &config.observation_field {
        Some(name) => shown(field(fields, name)?),
        None => all(fields),
    };
    let words = |list: &Vec<Value>| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(Seen {
        text,
        reward,
        done,
        truncated: flag("truncated").unwrap_or(false),
        success,
        available: fields.get("available_actions").and_then(Value::as_array).map(words),
        state_key: fields.get("state_key").and_then(Value::as_str).map(str::to_owned),
        action_is_valid: flag("action_is_valid"),
        action_is_effective: flag("action_is_effective"),
    })
}

fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, String> {
    fields.get(name).ok_or_else(|| {
        let hint = match nearest(name, fields.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
        };
        format!("sent an observation without the field `{name}`; {hint}")
    })
}

/// The only field as it is; several one a line with their names. Metadata is not for the agent.
fn all(fields: &Map<String, Value>) -> String {
    let open: Vec<(&String, &Value)> = fields
        .iter()
        .filter(|(name, value)| *name != "metadata" && !MEANINGS.contains(&name.as_str()) && !value.is_null())
        .collect();
    match open.as_slice() {
        [(_, only)] => shown(only),
        several => {
            several.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect::<Vec<_>>().join("\n")
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(settings: Value) -> OpenEnvConfig {
        let mut all = json!({ "url": "http://localhost" });
        for (key, value) in settings.as_object().unwrap() {
            all[key] = value.clone();
        }
        OpenEnvConfig::from_json(&all).unwrap()
    }

    #[test]
    fn what_is_shown() {
        let data = json!({
            "observation": { "metadata": { "secret": 1 }, "text": "a\nb", "n": [1, 2], "none": null },
            "reward": null, "done": false,
        });
        let seen = read(&data, &config(json!({}))).unwrap();
        assert_eq!((seen.text.as_str(), seen.reward, seen.success), ("text: a\nb\nn: [1,2]", 0.0, false));
        assert_eq!(read(&data, &config(json!({ "observation_field": "text" }))).unwrap().text, "a\nb");
        let error = read(&data, &config(json!({ "observation_field": "txt" }))).unwrap_err();
        assert!(error.contains("did you mean `text`?"), "{error}");
        let one = json!({ "observation": { "echo": "hi", "success": false }, "reward": true, "done": true });
        let seen = read(&one, &config(json!({}))).unwrap();
        assert_eq!((seen.text.as_str(), seen.reward, seen.success), ("hi", 1.0, false));
    }

    #[test]
    fn success_is_told_or_inferred() {
        let data = |reward: f64, done: bool| json!({ "observation": { "won": true }, "reward": reward, "done": done });
        let success = |data: &Value, settings: Value| read(data, &config(settings)).unwrap().success;
        assert!(success(&data(1.0, true), json!({})));
        assert!(!success(&data(0.0, true), json!({})) && !success(&data(1.0, false), json!({})));
        assert!(success(&data(0.0, false), json!({ "success_field": "won" })));
    }

    #[test]
    fn what_is_no_observation_is_refused() {
        assert!(read(&json!({}), &config(json!({}))).unwrap_err().contains("no observation"));
        let text = json!({ "observation": {}, "reward": "much" });
        assert!(read(&text, &config(json!({}))).unwrap_err().contains("no number"));
    }
}
