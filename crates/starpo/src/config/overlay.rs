//! Lays configuration layers over each other, key by key, remembering which layer set what. Knows the legal keys (they
//! are the keys of the default configuration) but nothing about their meaning.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::nearest::nearest_path;
use super::{Config, ConfigError, CustomEnv, moved};

/// What may stand below a key.
#[derive(Clone, Copy)]
enum Schema<'a> {
    /// A section with known keys.
    Section(&'a Map<String, Value>),
    /// `custom_envs`: any tag, below each the keys of a template.
    Templates,
    /// Anything: configuration that belongs to an environment.
    Free,
    /// A single value or list.
    Leaf,
}

/// The layers laid on so far.
pub(super) struct Overlay {
    schema: Map<String, Value>,
    template: Map<String, Value>,
    known: Vec<String>,
    merged: Map<String, Value>,
    set_by: BTreeMap<String, String>,
}

impl Overlay {
    /// Nothing laid on yet.
    pub(super) fn new() -> Result<Self, ConfigError> {
        let schema = keys_of(&Config::default())?;
        let template = keys_of(&CustomEnv::default())?;
        let mut known = Vec::new();
        list_paths(&schema, "", &mut known);
        Ok(Self { schema, template, known, merged: Map::new(), set_by: BTreeMap::new() })
    }

    /// The keys at the top.
    pub(super) fn sections(&self) -> impl Iterator<Item = &str> {
        self.schema.keys().map(String::as_str)
    }

    /// Lays on a YAML text.
    pub(super) fn add_yaml(&mut self, text: &str, origin: &str) -> Result<(), ConfigError> {
        self.add(parse_yaml(text, origin)?, origin)
    }

    /// Lays on a parsed layer.
    pub(super) fn add(&mut self, layer: Value, origin: &str) -> Result<(), ConfigError> {
        // Taken out for the time of the walk, so that it may read the schema and write the rest.
        let mut merged = std::mem::take(&mut self.merged);
        let mut set_by = std::mem::take(&mut self.set_by);
        let mut walk = Walk { overlay: self, origin, set_by: &mut set_by };
        let result = walk.section(&mut merged, Schema::Section(&self.schema), layer, "");
        self.merged = merged;
        self.set_by = set_by;
        result
    }

    /// Lays on `section.key=value`.
    pub(super) fn add_override(&mut self, text: &str) -> Result<(), ConfigError> {
        let fail = |message: &str| ConfigError::Override { text: text.into(), message: message.into() };
        let Some((path, raw)) = text.split_once('=') else {
            return Err(fail("expected `section.key=value`, found no `=`"));
        };
        let (path, raw) = (path.trim(), raw.trim());
        if path.split('.').any(|key| key.trim().is_empty()) {
            return Err(fail("expected keys separated by single dots before the `=`"));
        }
        let origin = format!("the override `{text}`");
        let text_wanted = self.wants_text(path);
        let value = match parse_yaml(raw, &origin) {
            // Shells take quotes away: where text is wanted, `42` and `||` are text.
            Ok(Value::Number(_) | Value::Bool(_)) | Err(_) if text_wanted => Value::String(raw.into()),
            parsed => parsed?,
        };
        let layer = path.rsplit('.').fold(value, |value, key| {
            let mut section = Map::new();
            section.insert(key.trim().to_string(), value);
            Value::Object(section)
        });
        self.add(layer, &origin)
    }

    fn wants_text(&self, path: &str) -> bool {
        let mut keys = path.split('.');
        let Some(first) = keys.next() else { return false };
        let start = self.schema.get(first);
        matches!(keys.try_fold(start, |value, key| Some(value?.get(key))), Some(Some(Value::String(_))))
    }

    /// The configuration that all layers make together.
    pub(super) fn finish(self) -> Result<Config, ConfigError> {
        let Self { merged, set_by, .. } = self;
        serde_path_to_error::deserialize(Value::Object(merged)).map_err(|error| {
            let path = error.path().to_string();
            let key = path.split('[').next().unwrap_or(&path);
            let below = format!("{key}.");
            let origin = set_by
                .get(key)
                .or_else(|| set_by.iter().find(|(k, _)| k.starts_with(&below)).map(|(_, origin)| origin))
                .or_else(|| set_by.iter().rev().find(|(k, _)| key.starts_with(&format!("{k}."))).map(|(_, o)| o))
                .cloned()
                .unwrap_or_else(|| "the configuration".into());
            let (expected, found) = expected_found(&error.inner().to_string());
            ConfigError::WrongType { path, origin, expected, found }
        })
    }
}

/// One layer on its way.
struct Walk<'a> {
    overlay: &'a Overlay,
    origin: &'a str,
    set_by: &'a mut BTreeMap<String, String>,
}

impl<'a> Walk<'a> {
    /// Lays `layer` over the keys of a section, of the templates, or of something free.
    fn section(
        &mut self,
        target: &mut Map<String, Value>,
        schema: Schema<'a>,
        layer: Value,
        path: &str,
    ) -> Result<(), ConfigError> {
        let keys = match layer {
            Value::Object(keys) => keys,
            // A section whose keys are all commented out sets nothing.
            Value::Null => return Ok(()),
            other => {
                let known = match schema {
                    Schema::Section(keys) => keys.keys().cloned().collect::<Vec<_>>().join(", "),
                    _ => "tags of environments".into(),
                };
                return Err(ConfigError::WrongType {
                    path: if path.is_empty() { "(the whole file)".into() } else { path.into() },
                    origin: self.origin.into(),
                    expected: format!("a section with keys such as {known}"),
                    found: describe(&other),
                });
            }
        };
        for (key, value) in keys {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let child = self.child(schema, &key, path).ok_or_else(|| self.unknown(&below, &key))?;
            match (child, value) {
                (Schema::Section(_) | Schema::Templates, value) | (Schema::Free, value @ Value::Object(_)) => {
                    let mut section = take_section(target, &key);
                    self.section(&mut section, child, value, &below)?;
                    target.insert(key, Value::Object(section));
                }
                (Schema::Leaf, Value::Object(keys)) => {
                    return Err(match keys.keys().next() {
                        Some(first) => self.unknown(&format!("{below}.{first}"), first),
                        None => ConfigError::WrongType {
                            path: below,
                            origin: self.origin.into(),
                            expected: "a value".into(),
                            found: "an empty section".into(),
                        },
                    });
                }
                (Schema::Leaf | Schema::Free, value) => {
                    target.insert(key, value);
                    self.set_by.insert(below, self.origin.into());
                }
            }
        }
        Ok(())
    }

    fn child(&self, schema: Schema<'a>, key: &str, path: &str) -> Option<Schema<'a>> {
        match schema {
            Schema::Section(keys) => {
                let default = keys.get(key)?;
                Some(match default {
                    Value::Object(_) if path.is_empty() && key == "custom_envs" => Schema::Templates,
                    _ if path.starts_with("custom_envs.") && key == "env_config" => Schema::Free,
                    Value::Object(keys) => Schema::Section(keys),
                    _ => Schema::Leaf,
                })
            }
            Schema::Templates => Some(Schema::Section(&self.overlay.template)),
            Schema::Free => Some(Schema::Free),
            Schema::Leaf => None,
        }
    }

    /// `key` is the last key of `path` as it was written.
    fn unknown(&self, path: &str, key: &str) -> ConfigError {
        // Only overrides are written with dots.
        let nested = || {
            let (section, last) = key.rsplit_once('.')?;
            let known = self.overlay.known.iter().any(|known| known == path);
            known.then(|| format!("in a file sections are nested: write `{last}` indented below `{section}`"))
        };
        let advice = moved::advice(path).map(String::from).or_else(nested);
        let template_key = path.strip_prefix("custom_envs.").and_then(|rest| rest.split_once('.'));
        let nearest = match (&advice, template_key) {
            (Some(_), _) => None,
            (None, Some((tag, _))) => {
                let keys: Vec<String> =
                    self.overlay.template.keys().map(|key| format!("custom_envs.{tag}.{key}")).collect();
                nearest_path(path, &keys).map(String::from)
            }
            (None, None) => nearest_path(path, &self.overlay.known).map(String::from),
        };
        // Where nothing resembles it, what there is.
        let advice = advice.or_else(|| match nearest {
            Some(_) => None,
            None => Some(format!(
                "the sections are {}; configs/base.yaml names every key",
                self.overlay.sections().collect::<Vec<_>>().join(", ")
            )),
        });
        ConfigError::UnknownKey { path: path.into(), origin: self.origin.into(), nearest, advice }
    }
}

/// Takes out the mapping below `key`; whatever else stood there gives way.
fn take_section(target: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match target.shift_remove(key) {
        Some(Value::Object(section)) => section,
        _ => Map::new(),
    }
}

fn keys_of<T: serde::Serialize>(value: &T) -> Result<Map<String, Value>, ConfigError> {
    match serde_json::to_value(value) {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(other) => Err(ConfigError::Serialize(format!("expected a mapping, found {}", describe(&other)))),
        Err(error) => Err(ConfigError::Serialize(error.to_string())),
    }
}

fn list_paths(keys: &Map<String, Value>, path: &str, out: &mut Vec<String>) {
    for (key, value) in keys {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if let Value::Object(keys) = value {
            list_paths(keys, &below, out);
        }
        out.push(below);
    }
}

/// Parses a YAML text; an empty one is null.
pub(super) fn parse_yaml(text: &str, origin: &str) -> Result<Value, ConfigError> {
    serde_saphyr::from_str::<Option<Value>>(text).map(Option::unwrap_or_default).map_err(|error| {
        let plain = error.without_snippet();
        let position = plain.location().map(|at| (at.line(), at.column()));
        let message = plain.to_string();
        // The parser repeats the position behind its message.
        let tail = position.map(|(line, column)| format!(" at line {line}, column {column}")).unwrap_or_default();
        let message = in_plain_words(message.strip_suffix(tail.as_str()).unwrap_or(&message));
        ConfigError::Syntax { origin: origin.into(), position, message }
    })
}

/// Takes the parser's advice to programmers out of its messages.
fn in_plain_words(message: &str) -> String {
    let twice = message.strip_prefix("duplicate mapping key: ").and_then(|rest| rest.split(", set").next());
    if let Some(key) = twice {
        return format!("`{key}` is set twice in the same section; remove one of the two");
    }
    let number = message.strip_prefix("non-finite float `").and_then(|rest| rest.split('`').next());
    match number {
        Some(found) => format!("expected a finite number, found {found}"),
        None => message.to_owned(),
    }
}

/// Names a value by its kind, for messages.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)".into(),
        Value::Bool(_) => format!("the boolean {value}"),
        Value::Number(_) => format!("the number {value}"),
        Value::String(_) => format!("the text {value}"),
        Value::Array(_) => format!("the list {value}"),
        Value::Object(_) => "a section".into(),
    }
}

/// Takes a message of serde apart and puts its Rust words into plain ones.
fn expected_found(message: &str) -> (String, String) {
    let told = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let told = told.or_else(|| message.strip_prefix("invalid length "));
    let Some((found, expected)) = told.and_then(|told| told.split_once(", expected ")) else {
        return ("something else".into(), message.into());
    };
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number of at least 0",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        "an array of length 2" => "a list of two numbers",
        other => other,
    };
    let found = found.replace("floating point", "the number").replace("integer", "the number");
    let found = found.replace("string", "the text").replace("boolean", "the boolean").replace("sequence", "a list");
    (expected.into(), if found == "null" { "nothing (null)".into() } else { found })
}
