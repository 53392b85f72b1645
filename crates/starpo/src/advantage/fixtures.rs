//! Reads the conformance vectors for the tests of this crate. Without `RAGEN_FIXTURES` those tests skip.

use std::path::PathBuf;

use serde_json::Value;

use crate::tokens::Rows;

/// The cases of `vectors/algorithms/<name>.json`; `None` (with a printed reason) when no fixtures are set.
pub(crate) fn cases(name: &str) -> Option<Vec<Value>> {
    let Some(root) = std::env::var_os("RAGEN_FIXTURES") else {
        eprintln!("skipped: RAGEN_FIXTURES is not set, so there are no vectors to compare with");
        return None;
    };
    let mut root = PathBuf::from(root);
    if root.is_relative() {
        root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(root);
    }
    let path = root.join("vectors/algorithms").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Some(value["cases"].as_array().expect("an array of cases").clone())
}

pub(crate) fn name(case: &Value) -> &str {
    case["name"].as_str().expect("a case name")
}

/// A number, or one of the strings that stand for numbers JSON does not have.
pub(crate) fn number(value: &Value) -> f64 {
    match value {
        Value::Number(n) => n.as_f64().expect("a float"),
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::String(s) if s == "NaN" => f64::NAN,
        Value::String(s) if s == "Infinity" => f64::INFINITY,
        Value::String(s) if s == "-Infinity" => f64::NEG_INFINITY,
        other => panic!("not a number: {other}"),
    }
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}")).iter().map(number).collect()
}

pub(crate) fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap_or_else(|| panic!("not a matrix: {value}")).iter().map(numbers).collect()
}

/// Labels of any kind as small numbers.
pub(crate) fn labels(value: &Value) -> Vec<usize> {
    let mut seen: Vec<String> = Vec::new();
    let items = value.as_array().expect("an array of labels");
    items
        .iter()
        .map(|item| {
            let text = item.to_string();
            seen.iter().position(|s| *s == text).unwrap_or_else(|| {
                seen.push(text);
                seen.len() - 1
            })
        })
        .collect()
}

/// A mask turned into the ragged layout.
pub(crate) struct Ragged {
    pub rows: Rows,
    /// Column of each flat token.
    pub columns: Vec<usize>,
    /// Row of each flat token.
    pub row_of: Vec<usize>,
    /// Flat tokens that masked columns follow directly.
    pub gaps: Vec<usize>,
}

impl Ragged {
    pub fn new(mask: &Value) -> Self {
        let mask = matrix(mask);
        let (mut columns, mut row_of, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        for (i, row) in mask.iter().enumerate() {
            for (t, m) in row.iter().enumerate() {
                if *m != 0.0 {
                    if row.get(t + 1) == Some(&0.0) {
                        gaps.push(columns.len());
                    }
                    columns.push(t);
                    row_of.push(i);
                }
            }
        }
        let rows = Rows::from_lengths(mask.iter().map(|row| row.iter().filter(|m| **m != 0.0).count()));
        Self { rows, columns, row_of, gaps }
    }

    /// The unmasked entries of a [B, T] matrix.
    pub fn pick(&self, value: &Value) -> Vec<f64> {
        let full = matrix(value);
        self.row_of.iter().zip(&self.columns).map(|(i, t)| full[*i][*t]).collect()
    }
}

/// Absolute plus relative comparison; NaN equals NaN.
#[track_caller]
pub(crate) fn close(case: &str, what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{case}: {what} has another length");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance + tolerance * w.abs();
        assert!(same, "{case}: {what}[{i}] is {g}, not {w}");
    }
}
