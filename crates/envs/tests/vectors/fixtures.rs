//! Finds the conformance vectors through `RAGEN_FIXTURES`.

use std::path::PathBuf;

use serde_json::Value;

/// A file or folder of public data; `None` when there are no fixtures.
pub fn data(name: &str) -> Option<PathBuf> {
    inside("data", name)
}

/// The path of a data file as text; `None` when there are no fixtures.
pub fn data_file(name: &str) -> Option<String> {
    let path = data(name)?;
    assert!(path.exists(), "cannot read {}", path.display());
    Some(path.to_str().expect("a name in UTF-8").to_owned())
}

fn path(name: &str) -> Option<PathBuf> {
    inside("vectors", name)
}

/// A file below the fixtures' folder; `None` when there are no fixtures.
pub fn root(name: &str) -> Option<PathBuf> {
    inside("", name)
}

fn inside(folder: &str, name: &str) -> Option<PathBuf> {
    match std::env::var_os("RAGEN_FIXTURES") {
        Some(root) => Some(PathBuf::from(root).join(folder).join(name)),
        None => {
            println!("skipped: RAGEN_FIXTURES is not set, so there is no {name} to compare with");
            None
        }
    }
}

/// The text of a vector file; `None` when there are no fixtures.
pub fn read(name: &str) -> Option<String> {
    let path = path(name)?;
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())))
}

/// A JSON file; `None` when there are no fixtures.
pub fn json(name: &str) -> Option<Value> {
    Some(serde_json::from_str(&read(name)?).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// A JSON Lines file; `None` when there are no fixtures.
pub fn json_lines(name: &str) -> Option<Vec<Value>> {
    let text = read(name)?;
    let rows: Vec<Value> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect();
    assert!(!rows.is_empty(), "{name} holds no cases");
    Some(rows)
}
