//! Comparing answers by the rules of each data set.

use super::Dataset;

/// The letters of multiple choice.
pub(super) const LETTERS: [&str; 4] = ["A", "B", "C", "D"];

/// Whether an answer is the expected one; `None` when nothing in it can be compared.
#[must_use]
pub fn judge(dataset: Dataset, answer: &str, expected: &str, compat: bool) -> Option<bool> {
    if answer.trim().is_empty() {
        return None;
    }
    match dataset {
        Dataset::Metamathqa => Some(bare(answer) == bare(expected) && !bare(answer).is_empty()),
        Dataset::Gsm8k => Some(match (first_number(answer), first_number(expected)) {
            (Some(a), Some(b)) => a == b,
            _ => answer.trim().eq_ignore_ascii_case(expected.trim()),
        }),
        Dataset::Mmlu => choice(answer, compat).map(|letter| letter.to_string() == expected),
    }
}

/// The choice that an answer names: a capital A to D that stands alone, or an answer of one letter in either case.
/// With `compat` the first capital A to D, wherever it stands.
#[must_use]
pub fn choice(answer: &str, compat: bool) -> Option<char> {
    let is_choice = |c: &char| ('A'..='D').contains(c);
    if compat {
        return answer.chars().find(is_choice);
    }
    // Combining marks stay with their letter: an accented A is no choice.
    let between = |c: char| c.is_whitespace() || c.is_ascii_punctuation();
    let mut words = answer.split(between).filter(|word| !word.is_empty());
    let (first, second) = (words.next()?, words.next());
    if second.is_none() {
        return single(first).map(|c| c.to_ascii_uppercase()).filter(is_choice);
    }
    // "A" is also a word: alone at the beginning of a sentence it is not taken for a choice when another stands later.
    let mut found = answer.split(between).filter_map(single).filter(is_choice);
    let first = found.next()?;
    let article = first == 'A' && answer.trim_start().starts_with("A ");
    Some(if article { found.next().unwrap_or(first) } else { first })
}

fn single(word: &str) -> Option<char> {
    let mut chars = word.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Some(c),
        _ => None,
    }
}

/// Letters and digits only, in lower case.
fn bare(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| !c.is_whitespace() && !c.is_ascii_punctuation()).collect()
}

/// The first number in a text: an optional minus sign, digits with separators of thousands, a decimal part.
fn first_number(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let start = bytes.iter().position(u8::is_ascii_digit)?;
    let negative = start > 0 && bytes[start - 1] == b'-';
    let mut digits = String::new();
    let mut point = false;
    for (i, &b) in bytes.iter().enumerate().skip(start) {
        let digit_follows = bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
        match b {
            b'0'..=b'9' => digits.push(char::from(b)),
            b',' if digit_follows && !point => {}
            b'.' if digit_follows && !point => {
                point = true;
                digits.push('.');
            }
            _ => break,
        }
    }
    let value: f64 = digits.parse().ok()?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        for (answer, expected, right) in [
            ("18", "18", true),
            ("$18.00 a day", "18", true),
            ("1,234", "1234", true),
            ("-3", "3", false),
            ("about -3.50.", "-3.5", true),
            ("eighteen", "18", false),
            ("12 of 18", "18", false),
            ("none", "None", true),
            ("1.2.3", "1.2", true),
        ] {
            assert_eq!(judge(Dataset::Gsm8k, answer, expected, false), Some(right), "{answer:?} for {expected:?}");
        }
        assert_eq!(judge(Dataset::Gsm8k, " ", "", false), None);
        assert_eq!(first_number(&"9".repeat(100_000)), Some(f64::INFINITY));
    }

    #[test]
    fn punctuation_and_space_do_not_matter_in_metamath() {
        for (answer, expected, right) in
            [("\\frac{1}{2}", "\\FRAC{1} {2}", true), ("x=2.", "x = 2", true), ("3", "2", false), ("...", "!", false)]
        {
            assert_eq!(judge(Dataset::Metamathqa, answer, expected, false), Some(right), "{answer:?} {expected:?}");
        }
    }

    #[test]
    fn choices_are_letters_that_stand_alone() {
        for (answer, now, compat) in [
            ("B", Some('B'), Some('B')),
            ("b", Some('B'), None),
            ("(c)", Some('C'), None),
            ("The Answer is B.", Some('B'), Some('A')),
            ("A better one is D", Some('D'), Some('A')),
            ("A because it fits", Some('A'), Some('A')),
            ("Because", None, Some('B')),
            ("E", None, None),
            ("?", None, None),
            ("a\u{301}", None, None),
        ] {
            assert_eq!((choice(answer, false), choice(answer, true)), (now, compat), "{answer:?}");
        }
    }
}
