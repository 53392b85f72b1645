//! Programming problems from rows of DeepCoder's kind, and putting an answer into the code that a problem starts with.

use serde_json::Value;

use crate::dataset::{keys, kind};

/// One test of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Standard input, or the arguments: a text with an argument a line, or a list.
    pub input: Value,
    /// What has to come out.
    pub output: Value,
}

/// A problem with its tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What is asked for.
    pub text: String,
    /// Code that the answer goes into; empty when there is none.
    pub starter: String,
    /// The function to call; `None` when programs read standard input.
    pub function: Option<String>,
    /// Tests, at least one.
    pub tests: Vec<Test>,
    /// A program that passes, where the row has one.
    pub solution: Option<String>,
}

/// Reads a row: `problem` (or `question`, `prompt`), `tests` as a list of `{input, output, testtype}` or as
/// `{inputs, outputs}`, either also as JSON in a text; optional `starter_code`, `metadata.func_name`, `solution`.
///
/// # Errors
/// What was expected and what was found.
pub fn problem(row: &Value) -> Result<Problem, String> {
    let text = ["problem", "question", "prompt"]
        .iter()
        .find_map(|key| row.get(key)?.as_str())
        .ok_or_else(|| format!("expected text under `problem`, `question` or `prompt`, found {}", keys(row)))?;
    let listed = unpacked(row.get("tests").ok_or_else(|| format!("expected `tests`, found {}", keys(row)))?, "tests")?;
    let metadata = match row.get("metadata") {
        Some(value) => unpacked(value, "metadata")?,
        None => Value::Null,
    };
    let mut function = name(&metadata);
    let mut tests = Vec::new();
    let mut types = Vec::new();
    match &listed {
        Value::Array(list) => {
            for test in list {
                function = function.or_else(|| name(test)).or_else(|| name(test.get("metadata")?));
                types.extend(["testtype", "type"].iter().find_map(|key| test.get(key)?.as_str()));
                let part = |key: &str| {
                    test.get(key).cloned().ok_or_else(|| format!("a test: expected `{key}`, found {}", keys(test)))
                };
                tests.push(Test { input: part("input")?, output: part("output")? });
            }
        }
        Value::Object(pairs) => {
            function = function.or_else(|| name(&listed));
            let part = |key: &str| match pairs.get(key) {
                Some(Value::Array(list)) => Ok(list),
                other => Err(format!("`tests.{key}`: expected a list, found {}", other.map_or("nothing", kind))),
            };
            let (inputs, outputs) = (part("inputs")?, part("outputs")?);
            if inputs.len() != outputs.len() {
                return Err(format!("`tests`: {} inputs, but {} outputs", inputs.len(), outputs.len()));
            }
            tests.extend(
                inputs.iter().zip(outputs).map(|(input, output)| Test { input: input.clone(), output: output.clone() }),
            );
        }
        other => return Err(format!("`tests`: expected a list or a mapping, found {}", kind(other))),
    }
    if tests.is_empty() {
        return Err("`tests`: expected at least one test, found none".to_owned());
    }
    let calls = types.iter().any(|of| of.starts_with("function"));
    let reads = types.iter().any(|of| of.contains("stdin"));
    if calls && reads {
        return Err("`tests`: expected one kind of test, found functional ones and ones with standard input".to_owned());
    }
    if calls && function.is_none() {
        return Err("functional tests need the name of a function under `metadata.func_name`".to_owned());
    }
    if reads {
        function = None;
    }
    if function.is_none() && !tests.iter().all(|test| test.input.is_string()) {
        return Err("`tests`: expected standard input as text".to_owned());
    }
    let starter = row.get("starter_code").and_then(Value::as_str).unwrap_or_default().to_owned();
    let solution = ["solution", "solutions", "canonical_solution"].iter().find_map(|key| match row.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => list.first()?.as_str().map(str::to_owned),
        _ => None,
    });
    Ok(Problem { text: text.trim().to_owned(), starter, function, tests, solution })
}

/// A value, or the value that a text holds as JSON.
fn unpacked(value: &Value, key: &str) -> Result<Value, String> {
    match value {
        Value::String(text) if text.trim().is_empty() => Ok(Value::Null),
        Value::String(text) => serde_json::from_str(text).map_err(|error| format!("`{key}`: expected JSON: {error}")),
        other => Ok(other.clone()),
    }
}

fn name(value: &Value) -> Option<String> {
    ["func_name", "fn_name"]
        .iter()
        .find_map(|key| value.get(key)?.as_str())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

/// The code that is run for an answer: a class `Solution` in the answer stands for itself; a function goes into the
/// starting code's class; anything else follows the starting code.
#[must_use]
pub fn merge(starter: &str, answer: &str) -> String {
    let holds_class = |code: &str| code.lines().any(|line| line.starts_with("class Solution"));
    if starter.trim().is_empty() || holds_class(answer) {
        return answer.to_owned();
    }
    let defines = answer.lines().any(|line| line.starts_with("def "));
    if !holds_class(starter) {
        // A function of the answer stands for the one that the starting code leaves empty.
        return if defines { answer.to_owned() } else { format!("{}\n{answer}", starter.trim_end()) };
    }
    if !defines {
        return format!("{}\n{}", starter.trim_end(), indented(answer, 8));
    }
    let mut header: Vec<&str> = Vec::new();
    for line in starter.lines() {
        header.push(line);
        if line.starts_with("class Solution") {
            break;
        }
    }
    // Imports stay outside, functions go into the class.
    let first = answer.lines().position(|line| line.starts_with("def ") || line.starts_with('@')).unwrap_or_default();
    let (before, functions): (Vec<&str>, Vec<&str>) =
        (answer.lines().take(first).collect(), answer.lines().skip(first).collect());
    format!("{}\n{}\n{}", before.join("\n"), header.join("\n"), indented(&functions.join("\n"), 4))
}

fn indented(code: &str, by: usize) -> String {
    let lines = code.lines().map(|line| if line.trim().is_empty() { String::new() } else { " ".repeat(by) + line });
    lines.collect::<Vec<_>>().join("\n")
}

/// The code in an answer: what stands between the first pair of Markdown fences, or all of it.
#[must_use]
pub fn unfenced(answer: &str) -> &str {
    let Some((_, rest)) = answer.split_once("```") else { return answer };
    let Some((_, code)) = rest.split_once('\n') else { return answer };
    code.split("```").next().unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_all_shapes() {
        let tests = json!([{ "input": "1\n2", "output": "3", "testtype": "functional" }]);
        for row in [
            json!({ "problem": "p", "tests": tests, "metadata": { "func_name": "add" } }),
            json!({ "question": "p", "tests": tests.to_string(), "metadata": "{\"func_name\": \"add\"}" }),
            json!({ "prompt": "p", "tests": { "inputs": ["1\n2"], "outputs": ["3"], "fn_name": "add" } }),
            json!({ "problem": "p", "tests": [{ "input": "1\n2", "output": "3", "metadata": { "func_name": "add" } }] }),
        ] {
            let got = problem(&row).unwrap_or_else(|error| panic!("{row}: {error}"));
            assert_eq!(got.function.as_deref(), Some("add"));
            assert_eq!(got.tests, [Test { input: json!("1\n2"), output: json!("3") }]);
        }
        let test = json!({ "input": "1", "output": "1", "type": "stdin_stdout" });
        let row = json!({ "problem": "p", "tests": [test], "metadata": { "func_name": "f" } });
        assert_eq!(problem(&row).expect("a problem").function, None);
    }

    #[test]
    fn rows_that_make_no_sense() {
        for (row, expected) in [
            (json!({ "tests": [] }), "`problem`, `question` or `prompt`, found the keys `tests`"),
            (json!({ "problem": "p" }), "expected `tests`"),
            (json!({ "problem": "p", "tests": "[" }), "`tests`: expected JSON"),
            (json!({ "problem": "p", "tests": [] }), "at least one test"),
            (json!({ "problem": "p", "tests": 3 }), "found a number"),
            (json!({ "problem": "p", "tests": [{ "input": "" }] }), "a test: expected `output`"),
            (json!({ "problem": "p", "tests": { "inputs": [1], "outputs": [] } }), "1 inputs, but 0 outputs"),
            (
                json!({ "problem": "p", "tests": [{ "input": "", "output": "", "testtype": "functional" }] }),
                "`metadata.func_name`",
            ),
            (json!({ "problem": "p", "tests": [{ "input": [1], "output": "" }] }), "standard input as text"),
        ] {
            let error = problem(&row).expect_err("no problem");
            assert!(error.contains(expected), "{row}: {error}");
        }
    }

    #[test]
    fn answers_go_into_the_starting_code() {
        let starter = "from typing import List\n\nclass Solution:\n    def add(self, a: int) -> int:\n";
        for (answer, merged) in [
            ("class Solution:\n    pass", "class Solution:\n    pass"),
            (
                "import re\ndef add(self, a):\n    return a",
                "import re\nfrom typing import List\n\nclass Solution:\n    def add(self, a):\n        return a",
            ),
            (
                "return a",
                "from typing import List\n\nclass Solution:\n    def add(self, a: int) -> int:\n        return a",
            ),
        ] {
            assert_eq!(merge(starter, answer), merged);
        }
        assert_eq!(merge("", "print(1)"), "print(1)");
        assert_eq!(merge("def f(a):\n", "def f(a):\n    return a"), "def f(a):\n    return a");
    }

    #[test]
    fn fences_are_taken_off() {
        for (answer, code) in [
            ("```python\nprint(1)\n```", "print(1)\n"),
            ("Here:\n```\nx\n``` and ```\ny\n```", "x\n"),
            ("print(1)", "print(1)"),
            ("```", "```"),
            ("```python\nx", "x"),
        ] {
            assert_eq!(unfenced(answer), code);
        }
    }
}
