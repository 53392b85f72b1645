//! Reading an environment's configuration from JSON: unknown keys are refused with the nearest known one, wrong types
//! with the path and what was expected.
//!
//! What is not here: the meaning of the keys; each environment's own `config` checks its ranges.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::EnvError;

/// Reads a configuration; `null` gives the defaults of `T`.
///
/// # Errors
/// [`EnvError::Config`] for something that is not an object, an unknown key or a value of the wrong type.
pub fn read<T: DeserializeOwned + Default>(env_type: &str, config: &Value, known: &[&str]) -> Result<T, EnvError> {
    let object = match config {
        Value::Null => return Ok(T::default()),
        Value::Object(object) => object,
        other => {
            return Err(refuse(env_type, format!("expected a mapping of settings, found `{}`", shorten(other))));
        }
    };
    for key in object.keys() {
        if !known.contains(&key.as_str()) {
            let hint = match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known settings are: {}", known.join(", ")),
            };
            return Err(refuse(env_type, format!("unknown setting `{key}`; {hint}")));
        }
    }
    serde_path_to_error::deserialize(config).map_err(|error| {
        let path = error.path().to_string();
        refuse(env_type, format!("setting `{path}`: {}", error.into_inner()))
    })
}

/// A configuration error of this environment.
#[must_use]
pub fn refuse(env_type: &str, message: impl Into<String>) -> EnvError {
    EnvError::Config { env_type: env_type.to_owned(), message: message.into() }
}

/// Refuses a number outside `low..=high`.
///
/// # Errors
/// [`EnvError::Config`] that names the setting, the range and the value.
pub fn check_range<T: PartialOrd + std::fmt::Display>(
    env_type: &str,
    key: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), EnvError> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(refuse(env_type, format!("setting `{key}`: expected a value from {low} to {high}, found {value}")))
}

/// The candidate most like `name`, if any is alike at all.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    candidates
        .map(|candidate| (strsim::jaro_winkler(&name, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
