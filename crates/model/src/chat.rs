//! Chat templates: the Jinja source that a model carries, rendered as the reference library renders it.
//!
//! What is here: [`ChatTemplate`], with the functions and whitespace rules that templates rely on.
//! What is not here: token ids and multi-turn appending (see `turn_pieces`).

use std::collections::BTreeMap;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value, context};

use crate::tokenizer::{Tokenizer, TokenizerError};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Text.
    pub content: String,
}

impl Message {
    /// A message with the given role and text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// A system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// A user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// An assistant message.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}

/// Further variables of a template, such as `enable_thinking` = false.
pub type TemplateVariables = BTreeMap<String, serde_json::Value>;

/// Why a conversation cannot be turned into tokens.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The template is not valid Jinja.
    #[error("chat template does not parse: {0}")]
    Parse(String),
    /// The template failed or refused the conversation.
    #[error("chat template failed: {0}")]
    Render(String),
    /// There is no template.
    #[error("the model has no chat template; give one in tokenizer_config.json or chat_template.jinja")]
    NoTemplate,
    /// No append-only form could be found.
    #[error("this chat template cannot be used over several turns: {reason}; {remedy}")]
    NotAppendOnly {
        /// What was tried and why it failed.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// The template has no place for such an opening.
    #[error("the chat template cannot open a conversation {which}: {reason}")]
    Opening {
        /// `with a system message` or `without a system message`.
        which: &'static str,
        /// What the template said.
        reason: String,
    },
    /// Encoding failed.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// The date that `strftime_now` gives, in days since 1970-01-01: 26 July 2024, which is also the date that Llama 3's
/// template falls back to. A fixed date keeps prompts, and so whole runs, reproducible from one day to the next.
const DEFAULT_DAY: i64 = 19930;

/// Steps of the template engine that one rendering may take, some seconds' worth. Templates of real models take
/// thousands; without a limit, nested loops of a few lines never end.
const MOST_STEPS: u64 = 20_000_000;

/// A parsed chat template.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: Option<String>,
    eos: Option<String>,
    variables: TemplateVariables,
}

impl ChatTemplate {
    /// Parses a template. `bos` and `eos` are what `bos_token` and `eos_token` stand for in it.
    ///
    /// # Errors
    /// [`ChatError::Parse`].
    pub fn new(source: &str, bos: Option<&str>, eos: Option<&str>) -> Result<Self, ChatError> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(MOST_STEPS));
        let syntax = minijinja::syntax::SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|e| ChatError::Parse(full_message(&e)))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", |format: String| strftime(&format, DEFAULT_DAY));
        environment.add_filter("tojson", to_json);
        // In Jinja2 `none` cannot be iterated; templates ask `tools is iterable`.
        environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
        environment
            .add_template_owned("chat_template", without_generation_tags(source))
            .map_err(|e| ChatError::Parse(full_message(&e)))?;
        Ok(Self {
            environment,
            source: source.to_string(),
            bos: bos.map(str::to_string),
            eos: eos.map(str::to_string),
            variables: TemplateVariables::new(),
        })
    }

    /// The template of a tokenizer.
    ///
    /// # Errors
    /// [`ChatError::NoTemplate`] when it has none, [`ChatError::Parse`].
    pub fn of_tokenizer(tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let source = tokenizer.chat_template().ok_or(ChatError::NoTemplate)?;
        Self::new(source, tokenizer.bos_token(), tokenizer.eos_token())
    }

    /// Sets variables that every rendering sees.
    pub fn with_variables(mut self, variables: TemplateVariables) -> Self {
        self.variables = variables;
        self
    }

    /// What `bos_token` stands for.
    pub fn bos_token(&self) -> Option<&str> {
        self.bos.as_deref()
    }

    /// The Jinja source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a conversation. With `add_generation_prompt` the text ends where the assistant's next message begins.
    /// `extra` adds to, and overrides, the variables set at construction.
    ///
    /// # Errors
    /// [`ChatError::Render`] with the template's own message when it refuses the conversation.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
        extra: &TemplateVariables,
    ) -> Result<String, ChatError> {
        let messages: Vec<Value> =
            messages.iter().map(|m| context! { role => m.role.as_str(), content => m.content.as_str() }).collect();
        let mut variables: BTreeMap<String, Value> = BTreeMap::from([
            ("messages".to_string(), Value::from(messages)),
            ("add_generation_prompt".to_string(), Value::from(add_generation_prompt)),
            ("tools".to_string(), Value::from(())),
            ("documents".to_string(), Value::from(())),
        ]);
        for (name, token) in [("bos_token", &self.bos), ("eos_token", &self.eos)] {
            if let Some(token) = token {
                variables.insert(name.to_string(), Value::from(token.as_str()));
            }
        }
        for (name, value) in self.variables.iter().chain(extra) {
            variables.insert(name.clone(), from_json(value));
        }
        self.environment.get_template("chat_template").and_then(|t| t.render(Value::from(variables))).map_err(|e| {
            match e.kind() {
                ErrorKind::OutOfFuel => ChatError::Render(format!(
                    "it did not end within {MOST_STEPS} steps; give the model a template without endless loops"
                )),
                _ => ChatError::Render(full_message(&e)),
            }
        })
    }
}

fn full_message(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Templates may mark the assistant's text with `{% generation %}` … `{% endgeneration %}`, which only matters for
/// masks made by the reference library. The marks become an always-true `if`, so that whitespace control stays.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let inside = &tag[2..end];
        let word = inside.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        let replacement = match word {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        out.push_str("{%");
        match replacement {
            Some(new) => out.push_str(&inside.replace(word, new)),
            None => out.push_str(inside),
        }
        out.push_str("%}");
        rest = &tag[end + 2..];
    }
    out.push_str(rest);
    out
}

fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(i), _) => Value::from(i),
            (None, Some(x)) => Value::from(x),
            (None, None) => Value::from(()),
        },
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(list) => Value::from(list.iter().map(from_json).collect::<Vec<_>>()),
        serde_json::Value::Object(map) => {
            Value::from(map.iter().map(|(k, v)| (k.clone(), from_json(v))).collect::<BTreeMap<_, _>>())
        }
    }
}

/// `tojson` as templates expect it: separators with spaces, nothing escaped for HTML, optional `indent`.
fn to_json(value: Value, arguments: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    // Accepted and without effect: text is never escaped to ASCII and keys keep their order.
    let _: Option<bool> = arguments.get("ensure_ascii")?;
    let _: Option<bool> = arguments.get("sort_keys")?;
    arguments.assert_all_used()?;
    let mut out = String::new();
    write_json(&value, indent.map(|n| n.min(16)), 0, &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, indent: Option<usize>, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > 64 {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: values are nested too deeply"));
    }
    let line = |depth: usize, out: &mut String| {
        if let Some(n) = indent {
            out.push('\n');
            out.push_str(&" ".repeat(n * depth));
        }
    };
    let separator = if indent.is_some() { "," } else { ", " };
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&value.to_string()),
        ValueKind::Map => {
            out.push('{');
            let mut count = 0;
            for key in value.try_iter()? {
                if count > 0 {
                    out.push_str(separator);
                }
                count += 1;
                line(depth + 1, out);
                out.push_str(&quoted(&key.to_string()));
                out.push_str(": ");
                write_json(&value.get_item(&key)?, indent, depth + 1, out)?;
            }
            if count > 0 {
                line(depth, out);
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut count = 0;
            for item in value.try_iter()? {
                if count > 0 {
                    out.push_str(separator);
                }
                count += 1;
                line(depth + 1, out);
                write_json(&item, indent, depth + 1, out)?;
            }
            if count > 0 {
                line(depth, out);
            }
            out.push(']');
        }
        _ => out.push_str(&quoted(&value.to_string())),
    }
    Ok(())
}

/// Formats a day (since 1970-01-01, midnight) with the directives that templates use.
fn strftime(format: &str, day: i64) -> Result<String, Error> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    // Days → civil date, by eras of 400 years that start on 1 March.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let month_name = MONTHS.get((month - 1) as usize).copied().unwrap_or_default();
    let day_name = DAYS.get(day.rem_euclid(7) as usize).copied().unwrap_or_default();

    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match characters.next() {
            Some('d') => out.push_str(&format!("{date:02}")),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('Y') => out.push_str(&year.to_string()),
            Some('y') => out.push_str(&format!("{:02}", year.rem_euclid(100))),
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(month_name.get(..3).unwrap_or_default()),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(day_name.get(..3).unwrap_or_default()),
            Some('H' | 'M' | 'S') => out.push_str("00"),
            Some('%') => out.push('%'),
            other => {
                let directive = other.map(String::from).unwrap_or_default();
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("strftime_now: directive `%{directive}` is not supported"),
                ));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_the_calendar() {
        assert_eq!(strftime("%d %b %Y", DEFAULT_DAY).unwrap(), "26 Jul 2024");
        assert_eq!(strftime("%A %Y-%m-%d %H:%M", 0).unwrap(), "Thursday 1970-01-01 00:00");
        assert_eq!(strftime("%a %B %d %y%%", 11_016).unwrap(), "Tue February 29 00%");
        assert!(strftime("%q", 0).is_err());
    }

    #[test]
    fn generation_marks_disappear_and_keep_whitespace_control() {
        assert_eq!(
            without_generation_tags("a{%- generation -%}b{% endgeneration %}c{% if x %}"),
            "a{%- if true -%}b{% endif %}c{% if x %}"
        );
        assert_eq!(without_generation_tags("open {% never"), "open {% never");
    }
}
