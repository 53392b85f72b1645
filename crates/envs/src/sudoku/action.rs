//! Reads a placement out of what the agent wrote, in the spellings RAGEN understands.

use std::sync::LazyLock;

use regex::Regex;

/// Longest part of an action that is quoted back.
const MAX_QUOTED: usize = 60;

/// A number for a cell, all counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub row: usize,
    pub col: usize,
    pub number: u8,
}

/// The spellings, in the order they are tried. Each has three numbers.
static SPELLINGS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"place\s+([0-9]+)\s+at\s+row\s+([0-9]+)\s+col(?:umn)?\s+([0-9]+)",
        r"place\s+([0-9]+)\s+at\s+\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)",
        r"place\s+([0-9]+)\s+at\s+([0-9]+)\s*,\s*([0-9]+)",
        r"([0-9]+)\s+at\s+([0-9]+)\s*,\s*([0-9]+)",
        r"\(\s*([0-9]+)\s*,\s*([0-9]+)\s*,\s*([0-9]+)\s*\)",
        r"([0-9]+)\s*,\s*([0-9]+)\s*,\s*([0-9]+)",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// The placement that an action asks for on a grid of this size.
///
/// # Errors
/// What is wrong, in RAGEN's words.
pub(super) fn parse(action: &str, size: usize) -> Result<Placement, String> {
    let action = action.trim();
    let lower = action.to_lowercase();
    let Some(found) = SPELLINGS.iter().find_map(|spelling| spelling.captures(&lower)) else {
        return Err(format!(
            "Could not parse action: '{}'. Expected format: 'place 5 at row 2 col 3' or '2,3,5'",
            shorten(action)
        ));
    };
    let group = |i: usize| found.get(i).map_or("", |group| group.as_str());
    // "place" and "at" put the number before the cell.
    let number_first = lower.contains("place") || lower.contains("at");
    let (number, row, col) = if number_first { (group(1), group(2), group(3)) } else { (group(3), group(1), group(2)) };
    let read = |name: &str, digits: &str| match digits.parse::<usize>() {
        Ok(value) if (1..=size).contains(&value) => Ok(value),
        _ => Err(format!("{name} {} is out of range (1-{size})", shorten(digits))),
    };
    let (row, col, number) = (read("Row", row)?, read("Column", col)?, read("Number", number)?);
    Ok(Placement { row, col, number: number as u8 })
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for action in [
            "place 3 at row 1 col 2",
            "Place 3 at ROW 1 COLUMN 2, please",
            "place 3 at (1, 2)",
            "place 3 at 1,2",
            "3 at 1 , 2",
            "(1,2,3)",
            "I think 1, 2, 3 is it",
            "at 3,1,2",
            "fl(at) 3,1,2",
        ] {
            assert_eq!(parse(action, 4), Ok(Placement { row: 1, col: 2, number: 3 }), "{action}");
        }
    }

    #[test]
    fn what_is_wrong() {
        let error = |action: &str| parse(action, 9).expect_err("wrong");
        assert!(error("9 9 9").starts_with("Could not parse action: '9 9 9'."));
        assert_eq!(error("place 10 at row 1 col 1"), "Number 10 is out of range (1-9)");
        assert_eq!(error("0,1,1"), "Row 0 is out of range (1-9)");
        assert_eq!(error("1,99999999999999999999999,1"), "Column 99999999999999999999999 is out of range (1-9)");
        assert!(error(&"Up ".repeat(20_000)).len() < 200);
        assert!(error("").contains("''") && error("place 1 at row x col 2").contains("Could not parse"));
    }
}
