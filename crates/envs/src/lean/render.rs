//! The state of a proof in words.

use super::kimina::Message;
use super::statement::Statement;

/// Lines of the proof that are shown.
const PROOF_LINES: usize = 40;
/// Entries of the log that are shown.
const LOG_ENTRIES: usize = 5;
/// Columns of the statement in words.
const WIDTH: usize = 88;
/// Characters of one message that are shown.
const MESSAGE_CHARS: usize = 1000;

/// What the agent reads.
pub(super) fn state(
    statement: &Statement,
    tactics: &[String],
    log: &[String],
    messages: &[Message],
    steps: usize,
    max_steps: usize,
) -> String {
    let mut text = format!(
        "Theorem {}: step {steps} of at most {max_steps}, accepted tactics: {}.",
        statement.name,
        tactics.len()
    );
    if !statement.informal.is_empty() {
        text.push_str(&format!("\nIn words:\n{}", wrapped(&statement.informal)));
    }
    let lines = statement.transcript(tactics);
    let first = lines.len().saturating_sub(PROOF_LINES);
    text.push_str("\nThe proof so far:");
    for (i, line) in lines.iter().enumerate().skip(first) {
        text.push_str(&format!("\n{:>3} {line}", i + 1));
    }
    if !log.is_empty() {
        text.push_str("\nWhat was tried last:");
        for entry in &log[log.len().saturating_sub(LOG_ENTRIES)..] {
            text.push_str(&format!("\n- {entry}"));
        }
    }
    if !messages.is_empty() {
        text.push_str("\nLean says:");
        for Message { severity, pos, data } in messages {
            let data: String = data.chars().take(MESSAGE_CHARS).collect();
            text.push_str(&format!("\n- {severity} at {}:{}: {}", pos.line, pos.column, data.trim_end()));
        }
    }
    text
}

/// Words in lines of at most 88 columns; a longer word has a line of its own.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped() {
        let text = wrapped(&"twelve chars ".repeat(20));
        assert!(text.lines().all(|line| line.len() <= 88) && text.lines().count() == 4, "{text}");
        assert_eq!(wrapped(&"x".repeat(100)).len(), 100);
        assert_eq!(wrapped(" a \n b "), "a b");
    }
}
