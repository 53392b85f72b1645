//! The messages of the environment protocol, as both sides write and read them. `docs/environment-protocol.md` says what
//! they mean.
//!
//! One JSON object a line. A request is answered by one reply with its `id`: `result` or `error`, never both.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Split;

/// The protocol's name, in `hello` and its answer.
pub const PROTOCOL: &str = "ragen-env";
/// The version that is spoken here.
pub const VERSION: u32 = 1;

/// A line from the trainer to the environment process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Rises by one a request; the reply repeats it.
    pub id: u64,
    /// What is asked for.
    #[serde(flatten)]
    pub call: Call,
}

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Call {
    /// The first request: who is there? Answered by [`Hello`].
    Hello {
        /// [`PROTOCOL`].
        protocol: String,
        /// Versions the trainer speaks; the process picks one.
        versions: Vec<u32>,
        /// Settings of the environment (`env_config.config`).
        #[serde(default)]
        config: Value,
    },
    /// Starts an episode, anew if it is known. Answered by [`Started`].
    Reset {
        /// The episode's number, chosen by the trainer. A process plays many at a time.
        episode: u64,
        /// Names the instance.
        seed: u64,
        /// `train` or `val`.
        split: WireSplit,
    },
    /// Takes one action. Answered by [`Stepped`].
    Step {
        /// The episode.
        episode: u64,
        /// The action.
        action: String,
    },
    /// The present state as text. Answered by [`Rendered`].
    Render {
        /// The episode.
        episode: u64,
    },
    /// The next actions of the best player; only asked of a process with the feature `oracle`. Answered by [`Advice`].
    Oracle {
        /// The episode.
        episode: u64,
        /// Actions left in the episode.
        actions_left: usize,
    },
    /// The episode is over for the trainer. Answered by an empty object.
    Close {
        /// The episode.
        episode: u64,
    },
}

/// [`Split`] as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireSplit {
    /// Instances for training.
    Train,
    /// Instances for evaluation.
    Val,
}

impl From<Split> for WireSplit {
    fn from(split: Split) -> Self {
        match split {
            Split::Train => WireSplit::Train,
            Split::Val => WireSplit::Val,
        }
    }
}

impl From<WireSplit> for Split {
    fn from(split: WireSplit) -> Self {
        match split {
            WireSplit::Train => Split::Train,
            WireSplit::Val => Split::Val,
        }
    }
}

/// A line from the environment process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The request's.
    pub id: u64,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why there is none. The process goes on; the episode is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
}

/// Why a request was not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// In words.
    pub message: String,
}

/// Who is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: String,
    /// The version that will be spoken, one of those offered.
    pub version: u32,
    /// Name of the environment, for messages.
    pub name: String,
    /// Rules and goal in plain words.
    #[serde(default)]
    pub instruction: String,
    /// Legal action names; empty: free text.
    #[serde(default)]
    pub actions: Vec<String>,
    /// Symbols of the observation with their meanings.
    #[serde(default)]
    pub legend: Vec<(String, String)>,
    /// Whether validation instances can be kept out of training; false where there are only a few.
    #[serde(default = "yes")]
    pub can_hold_out: bool,
    /// What it can do beyond the required calls: `oracle`.
    #[serde(default)]
    pub features: Vec<String>,
}

/// An episode has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The first observation; left out, it is asked for with `render`.
    #[serde(default)]
    pub observation: Option<String>,
    /// Equal keys, equal states; left out: the observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_key: Option<String>,
    /// Legal action names in this episode; left out: those of [`Hello`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<String>>,
    /// The actions that make sense now; left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_actions: Option<Vec<String>>,
}

/// An action was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stepped {
    /// The state after it; left out, it is asked for with `render`.
    #[serde(default)]
    pub observation: Option<String>,
    /// Raw reward.
    pub reward: Reward,
    /// The environment itself ended the episode.
    pub terminated: bool,
    /// A step limit ended it.
    #[serde(default)]
    pub truncated: bool,
    /// The goal is reached; left out: `terminated` with a positive reward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The action was understood. Default true.
    #[serde(default = "yes")]
    pub action_is_valid: bool,
    /// The action changed the state; left out: whether the state's key changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_is_effective: Option<bool>,
    /// Further numbers for the metrics, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// As in [`Started`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_key: Option<String>,
    /// As in [`Started`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_actions: Option<Vec<String>>,
}

/// The present state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rendered {
    /// As text.
    pub observation: String,
}

/// What the best player would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Its next actions; empty when nothing helps.
    #[serde(default)]
    pub actions: Vec<String>,
    /// The probability that it reaches the goal with the actions left; null when not known.
    #[serde(default)]
    pub optimum: Option<f64>,
}

/// A reward on the wire: a JSON number, or one of the words `NaN`, `Infinity`, `-Infinity`, for which JSON has no
/// number. The latter end the episode as any reward that is no finite number does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reward(pub f64);

impl Serialize for Reward {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            x if x.is_finite() => serializer.serialize_f64(x),
            x if x.is_nan() => serializer.serialize_str("NaN"),
            x if x > 0.0 => serializer.serialize_str("Infinity"),
            _ => serializer.serialize_str("-Infinity"),
        }
    }
}

impl<'de> Deserialize<'de> for Reward {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match (&value, value.as_f64()) {
            (_, Some(number)) => Ok(Reward(number)),
            (Value::String(word), _) if word == "NaN" => Ok(Reward(f64::NAN)),
            (Value::String(word), _) if word == "Infinity" => Ok(Reward(f64::INFINITY)),
            (Value::String(word), _) if word == "-Infinity" => Ok(Reward(f64::NEG_INFINITY)),
            _ => Err(serde::de::Error::custom(format!(
                "expected a number, or \"NaN\", \"Infinity\" or \"-Infinity\", found `{value}`"
            ))),
        }
    }
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_written_as_documented() {
        let written = |call| serde_json::to_value(Request { id: 3, call }).unwrap();
        let reset = Call::Reset { episode: 7, seed: u64::MAX, split: WireSplit::Val };
        assert_eq!(
            written(reset.clone()),
            json!({ "id": 3, "method": "reset", "episode": 7, "seed": u64::MAX, "split": "val" })
        );
        let read: Request = serde_json::from_value(written(reset.clone())).unwrap();
        assert_eq!(read, Request { id: 3, call: reset });
        assert_eq!(
            written(Call::Step { episode: 7, action: "Up".into() }),
            json!({ "id": 3, "method": "step", "episode": 7, "action": "Up" })
        );
    }

    #[test]
    fn rewards_that_json_cannot_write_are_words() {
        let read = |text: &str| serde_json::from_str::<Reward>(text);
        assert_eq!(read("-0.5").unwrap().0, -0.5);
        assert!(read("\"NaN\"").unwrap().0.is_nan());
        assert_eq!(read("\"-Infinity\"").unwrap().0, f64::NEG_INFINITY);
        assert_eq!(serde_json::to_string(&Reward(f64::INFINITY)).unwrap(), "\"Infinity\"");
        assert!(read("\"1\"").unwrap_err().to_string().contains("expected a number"));
        assert!(read("null").is_err());
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        let misspelt = json!({ "reward": 1, "terminate": true, "terminated": false });
        let error = serde_json::from_value::<Stepped>(misspelt).unwrap_err().to_string();
        assert!(error.contains("terminate"), "{error}");
    }
}
