//! From the text of an action to the object that a server wants, by its JSON schema.

use serde_json::{Map, Value, json};

use super::OpenEnvConfig;
use crate::config::nearest;

/// Numbers of an integer field that become names, at most.
const MAX_NAMES: i64 = 256;

/// How an agent's text becomes a typed action.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionForm {
    /// One of a few names, each with its object.
    Choice(Vec<(String, Value)>),
    /// The text goes into a field as it is.
    Text {
        /// The field.
        field: String,
        /// The other fields.
        defaults: Map<String, Value>,
    },
    /// The text is a number for a field.
    Number {
        /// The field.
        field: String,
        /// Whether it has to be whole.
        whole: bool,
        /// The other fields.
        defaults: Map<String, Value>,
    },
    /// The text is a JSON object with these fields.
    Object {
        /// The fields.
        fields: Vec<Field>,
        /// Values of fields that the agent leaves out.
        defaults: Map<String, Value>,
    },
}

/// A field of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// JSON's name of its type: `string`, `integer`, `number`, `boolean`, `array`, `object`; `None`: anything.
    pub kind: Option<String>,
    /// The values allowed, if listed.
    pub values: Option<Vec<Value>>,
    /// It has to be given.
    pub required: bool,
    /// What it is, in words.
    pub description: String,
}

impl ActionForm {
    /// The form that the schema and the settings ask for.
    ///
    /// # Errors
    /// In words, when a setting names a field that there is not, or the schema is no object's.
    pub fn of(schema: &Value, config: &OpenEnvConfig) -> Result<Self, String> {
        if !config.actions.is_empty() {
            return Ok(ActionForm::Choice(config.actions.iter().map(|(name, o)| (name.clone(), o.clone())).collect()));
        }
        let fields = fields(schema)?;
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        for name in config.action_defaults.keys().chain(&config.action_field) {
            if !known.contains(&name.as_str()) {
                let near = nearest(name, known.iter().copied());
                let hint = near
                    .map_or_else(|| format!("it has {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
                return Err(format!("the server's action has no field `{name}`; {hint}"));
            }
        }
        let defaults = config.action_defaults.clone();
        let open: Vec<&Field> = fields.iter().filter(|field| !defaults.contains_key(&field.name)).collect();
        let required: Vec<&Field> = open.iter().copied().filter(|field| field.required).collect();
        let chosen = match (&config.action_field, required.as_slice(), open.as_slice()) {
            (Some(name), ..) => fields.iter().find(|field| field.name == *name),
            (None, [only], _) | (None, [], [only]) => Some(*only),
            _ => None,
        };
        let Some(field) = chosen else {
            return Ok(ActionForm::Object { fields, defaults });
        };
        let name = field.name.clone();
        let named = |values: Vec<Value>| {
            ActionForm::Choice(
                values
                    .into_iter()
                    .map(|value| {
                        let mut object = defaults.clone();
                        object.insert(name.clone(), value.clone());
                        (text_of(&value), Value::Object(object))
                    })
                    .collect(),
            )
        };
        Ok(match (field.kind.as_deref(), &field.values) {
            (_, Some(values)) => named(values.clone()),
            (Some("boolean"), None) => named(vec![json!(true), json!(false)]),
            (Some("integer" | "number"), None) => {
                ActionForm::Number { whole: field.kind.as_deref() == Some("integer"), field: name, defaults }
            }
            (Some("string") | None, None) => ActionForm::Text { field: name, defaults },
            _ => ActionForm::Object { fields, defaults },
        })
    }

    /// The names of the actions; empty when the text is free.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            ActionForm::Choice(names) => names.iter().map(|(name, _)| name.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// What the agent has to know to write one; empty where the names say it.
    #[must_use]
    pub fn explain(&self) -> String {
        match self {
            ActionForm::Choice(_) | ActionForm::Text { .. } => String::new(),
            ActionForm::Number { whole: true, .. } => "An action is a whole number.".to_owned(),
            ActionForm::Number { whole: false, .. } => "An action is a number.".to_owned(),
            ActionForm::Object { fields, .. } => {
                let parts: Vec<String> = fields.iter().map(Field::explain).collect();
                format!("An action is a JSON object with the fields {}.", parts.join(", "))
            }
        }
    }

    /// The object for a text; `None` when it is none that the schema allows.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<Value> {
        let with = |defaults: &Map<String, Value>, field: &String, value: Value| {
            let mut object = defaults.clone();
            object.insert(field.clone(), value);
            Some(Value::Object(object))
        };
        match self {
            ActionForm::Choice(names) => {
                let wanted = text.trim().to_lowercase();
                names.iter().find(|(name, _)| name.to_lowercase() == wanted).map(|(_, object)| object.clone())
            }
            ActionForm::Text { field, defaults } => with(defaults, field, json!(text)),
            ActionForm::Number { field, whole, defaults } => {
                let text = text.trim();
                let value = match text.parse::<i64>() {
                    Ok(number) => json!(number),
                    Err(_) if !whole => json!(text.parse::<f64>().ok().filter(|number| number.is_finite())?),
                    Err(_) => return None,
                };
                with(defaults, field, value)
            }
            ActionForm::Object { fields, defaults } => {
                let Value::Object(given) = serde_json::from_str(text.trim()).ok()? else {
                    return None;
                };
                let mut object = defaults.clone();
                for (name, value) in given {
                    let field = fields.iter().find(|field| field.name == name)?;
                    if !field.allows(&value) {
                        return None;
                    }
                    object.insert(name, value);
                }
                let complete = fields.iter().all(|field| !field.required || object.contains_key(&field.name));
                complete.then_some(Value::Object(object))
            }
        }
    }
}

impl Field {
    fn allows(&self, value: &Value) -> bool {
        let kind = match self.kind.as_deref() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            _ => true,
        };
        kind && self.values.as_ref().is_none_or(|values| values.contains(value))
    }

    fn explain(&self) -> String {
        let mut notes = Vec::new();
        if let Some(kind) = &self.kind {
            notes.push(kind.clone());
        }
        if let Some(values) = &self.values {
            notes.push(format!("one of {}", values.iter().map(text_of).collect::<Vec<_>>().join(" ")));
        }
        if !self.required {
            notes.push("optional".to_owned());
        }
        if !self.description.is_empty() {
            notes.push(self.description.clone());
        }
        format!("`{}` ({})", self.name, notes.join("; "))
    }
}

/// The fields of an action's schema; `metadata`, which every action has, is left out.
fn fields(schema: &Value) -> Result<Vec<Field>, String> {
    let properties = schema["properties"]
        .as_object()
        .ok_or_else(|| format!("the server's action schema has no `properties`: {}", shorten(schema)))?;
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, own): (&String, &Value)| {
        let resolved = resolve(own, schema, 0);
        let values = resolved["enum"].as_array().cloned();
        let values =
            values.or_else(|| resolved.get("const").map(|only| vec![only.clone()])).or_else(|| range(resolved));
        Field {
            name: name.clone(),
            kind: resolved["type"].as_str().map(str::to_owned),
            values,
            required: required.contains(&name.as_str()),
            description: own["description"]
                .as_str()
                .or(resolved["description"].as_str())
                .unwrap_or_default()
                .to_owned(),
        }
    };
    Ok(properties.iter().filter(|(name, _)| *name != "metadata").map(field).collect())
}

/// A field's schema behind references and beside `null`.
fn resolve<'a>(own: &'a Value, root: &'a Value, depth: usize) -> &'a Value {
    if depth > 8 {
        // References in a circle.
        return own;
    }
    if let Some(target) = own["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        return resolve(target, root, depth + 1);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let mut choices = own[key].as_array().into_iter().flatten().filter(|choice| choice["type"] != "null");
        if let (Some(only), None) = (choices.next(), choices.next()) {
            return resolve(only, root, depth + 1);
        }
    }
    own
}

/// The numbers of an integer with narrow bounds.
fn range(field: &Value) -> Option<Vec<Value>> {
    let bound = |key: &str, exclusive: &str, inward: i64| {
        field[key].as_i64().or_else(|| field[exclusive].as_i64()?.checked_add(inward))
    };
    let (low, high) = (bound("minimum", "exclusiveMinimum", 1)?, bound("maximum", "exclusiveMaximum", -1)?);
    let narrow = field["type"] == "integer" && low <= high && high.checked_sub(low)? < MAX_NAMES;
    narrow.then(|| (low..=high).map(|number| json!(number)).collect())
}

/// A value as a name.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shorten(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(schema: Value, settings: Value) -> Result<ActionForm, String> {
        let mut config = json!({ "url": "http://localhost" });
        for (key, value) in settings.as_object().unwrap() {
            config[key] = value.clone();
        }
        ActionForm::of(&schema, &OpenEnvConfig::from_json(&config).unwrap())
    }

    fn metadata() -> Value {
        json!({ "type": "object", "additionalProperties": true })
    }

    #[test]
    fn one_string_takes_the_text_as_it_is() {
        let properties = json!({ "metadata": metadata(), "message": { "type": "string" } });
        let schema = json!({ "properties": properties, "required": ["message"] });
        let form = form(schema, json!({})).unwrap();
        assert_eq!(form.read(" hi {}"), Some(json!({ "message": " hi {}" })));
        assert!(form.names().is_empty() && form.explain().is_empty());
    }

    #[test]
    fn a_listed_field_gives_names() {
        let schema = json!({
            "properties": { "move": { "$ref": "#/$defs/Move" }, "speed": { "type": "integer" } },
            "required": ["move"],
            "$defs": { "Move": { "type": "string", "enum": ["Up", "Down"] } },
        });
        let listed = form(schema.clone(), json!({ "action_defaults": { "speed": 2 } })).unwrap();
        assert_eq!(listed.names(), ["Up", "Down"]);
        assert_eq!(listed.read("down"), Some(json!({ "speed": 2, "move": "Down" })));
        assert_eq!(listed.read("left"), None);
        let named = form(schema, json!({ "actions": { "Go": { "move": "Up", "speed": 9 } } })).unwrap();
        assert_eq!(named.read("GO"), Some(json!({ "move": "Up", "speed": 9 })));
    }

    #[test]
    fn numbers_with_narrow_bounds_are_names_and_others_are_read() {
        let narrow = json!({ "properties": { "n": { "type": "integer", "minimum": 0, "exclusiveMaximum": 3 } } });
        assert_eq!(form(narrow, json!({})).unwrap().names(), ["0", "1", "2"]);
        let wide = form(json!({ "properties": { "n": { "type": "integer" } } }), json!({})).unwrap();
        assert_eq!((wide.read(" 12 "), wide.read("1.5"), wide.read("x")), (Some(json!({ "n": 12 })), None, None));
        let real = form(json!({ "properties": { "x": { "type": "number" } } }), json!({})).unwrap();
        assert_eq!((real.read("1.5"), real.read("NaN")), (Some(json!({ "x": 1.5 })), None));
        let truth = form(json!({ "properties": { "b": { "type": "boolean" } } }), json!({})).unwrap();
        assert_eq!(truth.read("False"), Some(json!({ "b": false })));
    }

    #[test]
    fn several_fields_are_a_json_object() {
        let schema = json!({
            "properties": {
                "x": { "type": "integer" },
                "note": { "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "a remark" },
                "y": { "type": "integer" },
            },
            "required": ["x", "y"],
        });
        let object = form(schema.clone(), json!({})).unwrap();
        assert_eq!(object.read("{\"x\": 1, \"y\": 2}"), Some(json!({ "x": 1, "y": 2 })));
        for wrong in ["{\"x\": 1}", "{\"x\": 1, \"y\": \"2\"}", "{\"x\": 1, \"y\": 2, \"z\": 3}", "[1, 2]", "x", ""] {
            assert_eq!(object.read(wrong), None, "{wrong}");
        }
        assert!(object.explain().contains("`note` (string; optional; a remark)"), "{}", object.explain());
        let one = form(schema.clone(), json!({ "action_field": "x", "action_defaults": { "y": 5 } })).unwrap();
        assert_eq!(one.read("3"), Some(json!({ "y": 5, "x": 3 })));
        let error = form(schema, json!({ "action_field": "nte" })).unwrap_err();
        assert!(error.contains("did you mean `note`?"), "{error}");
    }

    #[test]
    fn odd_schemas_do_not_hang() {
        let circle = json!({
            "properties": { "a": { "$ref": "#/$defs/A" } },
            "$defs": { "A": { "$ref": "#/$defs/A" } },
        });
        assert!(form(circle, json!({})).is_ok());
        assert!(form(json!([]), json!({})).unwrap_err().contains("no `properties`"));
        let endless = json!({ "properties": { "n": { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX } } });
        assert!(form(endless, json!({})).unwrap().names().is_empty());
    }
}
