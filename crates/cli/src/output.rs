//! What commands print: lines, tables, JSON, numbers for people.
//!
//! Results go to standard output, everything else to standard error. A reader that goes away (`| head`) ends the
//! command quietly instead of failing it.

use std::fmt::Arguments;
use std::io::Write;

use serde_json::Value;

/// A line of the result.
pub fn line(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    check(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Text of the result without a line break at its end.
pub fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    check(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Ends the command where its result cannot be written: quietly when nobody reads on, else as a failure.
fn check(written: std::io::Result<()>) {
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            note(format_args!("error: cannot write the result to standard output: {error}"));
            std::process::exit(1);
        }
    }
}

/// A text as it can be shown on a terminal: control characters but line breaks and tabs, which could move the cursor or
/// worse, become `␛`. What a model says can hold anything.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '␛' } else { c }).collect()
}

/// A line beside the result. Where it cannot be written it is dropped.
pub fn note(text: Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A JSON document on a line of its own.
pub fn json(value: &Value) {
    line(format_args!("{value}"));
}

/// Rows with aligned columns, the first to the left and the others to the right.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|h| (*h).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as lines.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let mut text = String::new();
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                match i {
                    0 => text += &format!("{cell}{padding}"),
                    _ => text += &format!("  {padding}{cell}"),
                }
            }
            text.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }

    /// Names and values as lines, both to the left.
    pub fn left_lines(&self) -> Vec<String> {
        let name = |row: &Vec<String>| row.first().cloned().unwrap_or_default();
        let width = self.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
        self.rows.iter().map(|row| format!("{:width$}  {}", name(row), row[1.min(row.len())..].join("  "))).collect()
    }

    /// Prints the table.
    pub fn print(&self) {
        for row in self.lines() {
            line(format_args!("{row}"));
        }
    }
}

/// A share as a percentage: `45.3 %`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", 100.0 * share) } else { "–".to_owned() }
}

/// An interval of shares: `39.4–51.4 %`.
pub fn interval((low, high): (f64, f64)) -> String {
    format!("{:.1}–{:.1} %", 100.0 * low, 100.0 * high)
}

/// A number, or a dash where there is none.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"))
}

/// A duration for people: `42 s`, `3 min 05 s`, `2 h 07 min`.
pub fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align() {
        let mut table = Table::new(&["", "success", "n"]);
        table.row(["random".into(), "4.7 %".into(), "1024".into()]);
        table.row(["after".into(), "81.25 %".into(), "256".into()]);
        assert_eq!(table.lines(), ["        success     n", "random    4.7 %  1024", "after   81.25 %   256"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2J\u{9b}b\n\tc"), "a␛[2J␛b\n\tc");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            (duration(59.4), duration(61.0), duration(7620.0)),
            ("59 s".into(), "1 min 01 s".into(), "2 h 07 min".into())
        );
        assert_eq!(
            (percent(0.4531), number(None, 2), number(Some(1.0), 1)),
            ("45.3 %".into(), "–".into(), "1.0".into())
        );
        assert_eq!(interval((0.394, 0.514)), "39.4–51.4 %");
    }
}
