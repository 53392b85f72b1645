//! Whether an output is the expected one.

use serde_json::Value;

use super::sandbox::Output;

/// Compares the output of a program with the expected text: equal but for white space at both ends, and, unless
/// `strict`, at the end of each line.
#[must_use]
pub fn program(output: &Output, expected: &Value, strict: bool) -> bool {
    let Output::Value { text, .. } = output else { return false };
    let expected = python_str(expected);
    if text.trim() == expected.trim() {
        return true;
    }
    let lines = |text: &str| -> Vec<String> { text.trim().lines().map(|line| line.trim_end().to_owned()).collect() };
    !strict && lines(text) == lines(&expected)
}

/// Compares what a function returned with the expected value: equal as Python's `str` writes them. Unless `strict` also
/// equal as JSON, since data sets write expected texts in quotes and truth values in lower case.
#[must_use]
pub fn function(output: &Output, expected: &Value, strict: bool) -> bool {
    let Output::Value { text, json } = output else { return false };
    if *text == python_str(expected) {
        return true;
    }
    let Some(value) = json.as_ref().filter(|_| !strict) else { return false };
    let same = |expected: &Value| equal(value, expected);
    same(expected)
        || expected.as_str().and_then(|text| serde_json::from_str(text).ok()).is_some_and(|expected| same(&expected))
}

/// Equal values; whole numbers and decimals are compared as numbers.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// A JSON value as Python's `str` writes it.
#[must_use]
pub fn python_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => python_repr(other),
    }
}

fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => python_float(float),
            None => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(python_repr).collect::<Vec<_>>().join(", ")),
        Value::Object(items) => {
            let items: Vec<String> =
                items.iter().map(|(key, value)| format!("{}: {}", quoted(key), python_repr(value))).collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

/// The shortest digits that give the number back, with an exponent below 1e-4 and from 1e16.
fn python_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}

/// A text in quotes: single ones, unless it contains those and no double ones.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_as_python_writes_them() {
        for (value, expected) in [
            (json!("a'b"), "a'b"),
            (json!([1, 2.0, "a'b", "q", null, true]), "[1, 2.0, \"a'b\", 'q', None, True]"),
            (json!({ "k": [false] }), "{'k': [False]}"),
            (json!(1e16), "1e+16"),
            (json!(0.00001), "1e-05"),
            (json!(-0.0001), "-0.0001"),
            (json!(1.5e300), "1.5e+300"),
            (json!(123456789.125), "123456789.125"),
            (json!(["\n\u{7f}'\""]), "['\\n\\x7f\\'\"']"),
        ] {
            assert_eq!(python_str(&value), expected);
        }
    }

    #[test]
    fn returned_values_are_compared_as_text_and_as_json() {
        let out = |text: &str, json| Output::Value { text: text.to_owned(), json };
        for (output, expected, strict, lenient) in [
            (out("[1, 2]", Some(json!([1, 2]))), json!("[1, 2]"), true, true),
            (out("[1, 2]", Some(json!([1, 2]))), json!("[1,2]"), false, true),
            (out("True", Some(json!(true))), json!("true"), false, true),
            (out("abc", Some(json!("abc"))), json!("\"abc\""), false, true),
            (out("2.0", Some(json!(2.0))), json!(2), false, true),
            (out("3", Some(json!(3))), json!(2), false, false),
            (out("{1, 2}", None), json!("{1, 2}"), true, true),
            (Output::Failed("x".to_owned()), json!("x"), false, false),
            (Output::Missing, json!(null), false, false),
        ] {
            let got = (function(&output, &expected, true), function(&output, &expected, false));
            assert_eq!(got, (strict, lenient), "{output:?} for {expected}");
        }
    }

    #[test]
    fn written_text_is_compared_without_white_space_at_the_ends() {
        let out = |text: &str| Output::Value { text: text.to_owned(), json: None };
        for (output, expected, strict, lenient) in [
            (out("1 2\n"), json!("1 2"), true, true),
            (out("1 \n2"), json!("1\n2\n"), false, true),
            (out("1\n2"), json!("1 2"), false, false),
            (out("3\n"), json!(3), true, true),
            (out(""), json!(""), true, true),
            (Output::Missing, json!(""), false, false),
        ] {
            let got = (program(&output, &expected, true), program(&output, &expected, false));
            assert_eq!(got, (strict, lenient), "{output:?} for {expected}");
        }
    }
}
