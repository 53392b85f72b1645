//! Public theorems become files that wait for their proofs.

use ragen_envs::lean::Statement;
use serde_json::Value;

#[test]
fn public_theorems_are_read() {
    let Some(path) = super::fixtures::data_file("lean/minif2f_lean4.jsonl") else { return };
    let text = std::fs::read_to_string(path).expect("readable");
    let mut read = 0;
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a row");
        let source = row["source"].as_str().expect("text");
        let statement = Statement::parse("name", source).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(statement.imports.starts_with("import ") && statement.body.ends_with(":= by"), "{line}");
        // With the hole in its place the file says what the row says, but for blank lines.
        let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(bare(&statement.file(&["sorry".to_owned()])), bare(source), "{line}");
        read += 1;
    }
    assert!(read > 0);
}
