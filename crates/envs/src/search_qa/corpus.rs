//! Documents from a folder or a file.
//!
//! Text files (`.txt`, `.md`) are cut into passages of so many words, since only the beginning of a document is shown
//! to the agent. Rows of JSON Lines files (`.jsonl`, `.json`, also with `.gz`) are documents as they are.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::retriever::Document;
use crate::dataset::{keys, values};

/// The documents of a file, or of all files in a folder and the folders in it, in the order of their paths. Files of
/// other kinds are not looked at.
///
/// # Errors
/// The file or row that cannot be read, in words.
pub fn load(path: &Path, passage_words: usize) -> Result<Vec<Document>, String> {
    let mut files = Vec::new();
    if path.is_dir() {
        collect(path, &mut files)?;
        files.sort();
    } else {
        files.push(path.to_path_buf());
    }
    let mut documents = Vec::new();
    for file in &files {
        let name = file.strip_prefix(path).ok().filter(|name| !name.as_os_str().is_empty()).unwrap_or(file);
        let fail = |message: String| format!("{}: {message}", file.display());
        match kind(file) {
            Some(Kind::Text) => {
                let text = std::fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
                documents.extend(passages(&name.to_string_lossy(), &text, passage_words));
            }
            Some(Kind::Rows) => {
                for (place, row) in values(file).map_err(fail)? {
                    documents.push(document(&row).map_err(|message| fail(format!("{place}: {message}")))?);
                }
            }
            None if files.len() == 1 => return Err(fail("expected .txt, .md, .jsonl or .json".to_owned())),
            None => {}
        }
    }
    if documents.is_empty() {
        return Err(format!("{}: expected documents (.txt, .md, .jsonl, .json), found none", path.display()));
    }
    Ok(documents)
}

enum Kind {
    Text,
    Rows,
}

fn kind(file: &Path) -> Option<Kind> {
    let name = file.file_name()?.to_string_lossy().to_lowercase();
    match Path::new(name.strip_suffix(".gz").unwrap_or(&name)).extension()?.to_str()? {
        "txt" | "md" if !name.ends_with(".gz") => Some(Kind::Text),
        "jsonl" | "json" => Some(Kind::Rows),
        _ => None,
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // A link to a folder is not followed: it may lead round in a circle.
        let of = entry.file_type().map_err(|error| format!("{}: {error}", entry.path().display()))?;
        if of.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind(&entry.path()).is_some() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Passages of a text, cut between words.
fn passages(name: &str, text: &str, words: usize) -> Vec<Document> {
    let all: Vec<&str> = text.split_whitespace().collect();
    let pieces = all.chunks(words.max(1));
    let whole = pieces.len() == 1;
    pieces
        .enumerate()
        .map(|(i, piece)| Document {
            id: if whole { name.to_owned() } else { format!("{name}#{i}") },
            content: piece.join(" "),
        })
        .collect()
}

/// A document of a row: `contents`, `content` or `text`, with `title` in front, and `id`.
fn document(row: &Value) -> Result<Document, String> {
    let text = ["contents", "content", "text"]
        .iter()
        .find_map(|key| row.get(key)?.as_str())
        .ok_or_else(|| format!("expected text under `contents`, `content` or `text`, found {}", keys(row)))?;
    let id = match row.get("id").or_else(|| row.get("_id")) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(format!("expected text or a number under `id`, found {}", keys(row))),
    };
    let content = match row.get("title").and_then(Value::as_str) {
        Some(title) if !title.is_empty() => format!("{title}\n{text}"),
        _ => text.to_owned(),
    };
    Ok(Document { id, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_in_order() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("b.txt", "one two three four five");
        write("a/deep.md", "alone");
        write("c.jsonl", "{\"id\": 7, \"title\": \"T\", \"text\": \"body\"}\n{\"_id\": \"x\", \"contents\": \"c\"}\n");
        write("ignored.png", "\u{0}");
        write(".hidden.txt", "no");
        let found: Vec<(String, String)> =
            load(dir.path(), 2).expect("documents").into_iter().map(|d| (d.id, d.content)).collect();
        let expected = [
            ("a/deep.md", "alone"),
            ("b.txt#0", "one two"),
            ("b.txt#1", "three four"),
            ("b.txt#2", "five"),
            ("7", "T\nbody"),
            ("x", "c"),
        ];
        assert_eq!(found, expected.map(|(id, content)| (id.to_owned(), content.to_owned())));
        write("d.jsonl", "{\"id\": 1}\n");
        let error = load(dir.path(), 2).expect_err("no text");
        assert!(error.contains("d.jsonl: line 1: expected text under `contents`"), "{error}");
        assert!(load(&dir.path().join("ignored.png"), 2).is_err());
    }
}
