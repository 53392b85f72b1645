//! How alike two short texts are: `token_set_ratio` as thefuzz 0.22 on rapidfuzz computes it.

use std::collections::BTreeSet;

/// The score of two texts, 0 to 100: their sets of words compared, so that order, repetition and, for a subset, further
/// words do not count. 0 when one of them has no words.
#[must_use]
pub fn token_set_ratio(a: &str, b: &str) -> u32 {
    let (a, b) = (preprocess(a), preprocess(b));
    let (a, b): (BTreeSet<&str>, BTreeSet<&str>) = (words(&a), words(&b));
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    let common = joined(a.intersection(&b));
    let (only_a, only_b) = (joined(a.difference(&b)), joined(b.difference(&a)));
    if !common.is_empty() && (only_a.is_empty() || only_b.is_empty()) {
        return 100;
    }
    let (s, da, db) = (common.len(), only_a.len(), only_b.len());
    let gap = usize::from(s > 0);
    let (la, lb) = (s + gap + da, s + gap + db);
    let distance = da + db - 2 * common_subsequence(&only_a, &only_b);
    let mut best = 1.0 - distance as f64 / (la + lb) as f64;
    if s > 0 {
        best = best.max(1.0 - (1 + da) as f64 / (s + la) as f64).max(1.0 - (1 + db) as f64 / (s + lb) as f64);
    }
    (100.0 * best).round_ties_even() as u32
}

/// Without Latin-1's upper half, everything but letters and digits as blanks, in lower case.
fn preprocess(text: &str) -> String {
    text.chars()
        .filter(|c| !('\u{80}'..='\u{FF}').contains(c))
        .flat_map(|c| if c.is_alphanumeric() { c } else { ' ' }.to_lowercase())
        .collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

/// The words in order, with single blanks between them.
fn joined<'a>(words: impl Iterator<Item = &'a &'a str>) -> Vec<char> {
    let mut text = Vec::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.extend(word.chars());
    }
    text
}

/// Length of the longest common subsequence.
fn common_subsequence(a: &[char], b: &[char]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(token_set_ratio("black", "('color', 'black | white')"), 100);
        assert_eq!(token_set_ratio("Red  dress", "dress RED"), 100);
        assert_eq!(token_set_ratio("", "red"), 0);
        assert_eq!(token_set_ratio("★", "red"), 0);
        // Common "red", then "cup" and "cap": lengths 7 and 7, distance 2, 1 - 2/14.
        assert_eq!(token_set_ratio("red cup", "red cap"), 86);
        assert_eq!(token_set_ratio("abc", "xyz"), 0);
        // Underscores part words; é is dropped.
        assert_eq!(token_set_ratio("soft_wool", "wool soft caf\u{e9}"), 100);
    }
}
