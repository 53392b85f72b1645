//! Theorems from rows, and the file that a proof attempt makes of them.

use serde_json::Value;

use crate::dataset::{keys, text};

/// Commands that a statement begins with.
const BEGINNINGS: [&str; 5] = ["theorem", "lemma", "def", "example", "instance"];

/// A theorem that waits for its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its name.
    pub name: String,
    /// Import lines.
    pub imports: String,
    /// Options, opened namespaces and the like.
    pub preamble: String,
    /// The statement, up to and with `:= by`.
    pub body: String,
    /// The statement in words; empty when the row has none.
    pub informal: String,
    /// A proof, a tactic an entry; empty when the row has none.
    pub proof: Vec<String>,
}

impl Statement {
    /// Splits Lean text into imports, preamble and body; a `sorry` at its end is taken off.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn parse(name: &str, source: &str) -> Result<Self, String> {
        let mut imports = Vec::new();
        let mut preamble = Vec::new();
        let mut body = Vec::new();
        for line in source.lines() {
            let begins = BEGINNINGS.iter().any(|word| {
                let rest = line.trim_start().strip_prefix(word);
                rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == ':' || c == '('))
            });
            if !body.is_empty() || begins {
                body.push(line);
            } else if line.starts_with("import ") {
                imports.push(line);
            } else {
                preamble.push(line);
            }
        }
        if body.is_empty() {
            return Err(format!("expected a statement that begins with {}, found none", BEGINNINGS.join(", ")));
        }
        let body = body.join("\n");
        let body = body.trim_end();
        let body = body.strip_suffix("sorry").map_or(body, str::trim_end);
        let open = body.strip_suffix("by").map(str::trim_end).is_some_and(|rest| rest.ends_with(":="));
        if !open {
            let end: String = body.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
            return Err(format!("expected a statement that ends in `:= by`, found the end `{end}`"));
        }
        Ok(Self {
            name: name.to_owned(),
            imports: imports.join("\n"),
            preamble: preamble.join("\n").trim().to_owned(),
            body: body.to_owned(),
            informal: String::new(),
            proof: Vec::new(),
        })
    }

    /// The Lean file with these tactics.
    #[must_use]
    pub fn file(&self, tactics: &[String]) -> String {
        let mut parts = Vec::new();
        parts.extend([&self.imports, &self.preamble].into_iter().filter(|part| !part.is_empty()).cloned());
        parts.push(format!("{}\n{}", self.body, indented(tactics)));
        parts.join("\n\n")
    }

    /// The lines of the theorem with these tactics.
    #[must_use]
    pub fn transcript(&self, tactics: &[String]) -> Vec<String> {
        format!("{}\n{}", self.body, indented(tactics)).lines().map(str::to_owned).collect()
    }
}

/// Tactics on lines of their own, two spaces in.
fn indented(tactics: &[String]) -> String {
    let lines = tactics.iter().flat_map(|tactic| tactic.lines()).map(|line| format!("  {line}\n"));
    lines.collect::<String>()
}

/// Reads a row: `name`, `formal_statement` (or `source`), optional `natural_language_statement` and `tactics`.
pub(super) fn statement(row: &Value) -> Result<Statement, String> {
    let name = text(row, "name")?;
    let source = ["formal_statement", "source"]
        .iter()
        .find_map(|key| row.get(key)?.as_str())
        .ok_or_else(|| format!("expected text under `formal_statement` or `source`, found {}", keys(row)))?;
    let mut statement = Statement::parse(name, source).map_err(|message| format!("`{name}`: {message}"))?;
    let words = ["natural_language_statement", "informal_statement", "informal_prefix"];
    if let Some(informal) = words.iter().find_map(|key| row.get(key)?.as_str()) {
        statement.informal = informal.trim().to_owned();
    }
    if let Some(tactics) = row.get("tactics").and_then(Value::as_array) {
        statement.proof = tactics.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_apart_and_put_together() {
        let head = "import Mathlib\n\nset_option maxHeartbeats 0\n\nopen Nat\n\n";
        let body = "theorem t (x : ℕ)\n    (h : x = 1) : x = 1 := by";
        let source = &format!("{head}{body} sorry");
        let statement = Statement::parse("t", source).expect("a statement");
        assert_eq!(statement.imports, "import Mathlib");
        assert_eq!(statement.preamble, "set_option maxHeartbeats 0\n\nopen Nat");
        assert_eq!(statement.body, body);
        let tactics = ["have y := h".to_owned(), "cases y with\n| refl => rfl".to_owned()];
        assert_eq!(statement.file(&tactics), format!("{head}{body}\n  have y := h\n  cases y with\n  | refl => rfl\n"));
        assert_eq!(statement.transcript(&tactics).len(), 5);
    }

    #[test]
    fn statements_that_cannot_be_proved_step_by_step_are_refused() {
        for (source, expected) in [
            ("import Mathlib", "begins with theorem, lemma"),
            ("theorem t : 1 = 1 := rfl", "ends in `:= by`, found the end `theorem t : 1 = 1 := rfl`"),
            ("theoremt : 1 = 1 := by", "begins with"),
            ("example : 1 = 1 := sorry", "ends in `:= by`"),
        ] {
            let error = Statement::parse("t", source).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
        assert!(Statement::parse("t", "example : 1 = 1 := by\n  sorry\n").is_ok());
    }
}
