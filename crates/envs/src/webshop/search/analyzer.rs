//! Text to terms: Unicode words (UAX #29) as Lucene's standard tokenizer finds them, without the English possessive,
//! in lower case, without stop words, stemmed.

use unicode_segmentation::UnicodeSegmentation;

use super::emoji::is_emoji;
use super::porter::stem;

/// Lucene's English stop words, sorted.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];

/// Longest word, in UTF-16 units; what is longer is cut into pieces of this length, as Lucene does.
const LONGEST_WORD: usize = 255;

/// The terms of a text, in order, repetitions included.
#[must_use]
pub fn analyze(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for segment in text.split_word_bounds() {
        if !is_word(segment) {
            continue;
        }
        let mut rest = segment;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(cut(rest));
            rest = after;
            let lower: String = without_possessive(piece).chars().flat_map(char::to_lowercase).collect();
            if STOP_WORDS.binary_search(&lower.as_str()).is_err() {
                terms.push(stem(&lower));
            }
        }
    }
    terms
}

/// Where the first piece of a word ends, in bytes.
fn cut(word: &str) -> usize {
    if word.len() <= LONGEST_WORD {
        return word.len();
    }
    let mut units = 0;
    for (at, c) in word.char_indices() {
        units += c.len_utf16();
        if units > LONGEST_WORD {
            return at;
        }
    }
    word.len()
}

/// What connects the letters of a word and may stand before them.
const CONNECTORS: [char; 6] = ['_', '\u{203F}', '\u{2040}', '\u{2054}', '\u{FF3F}', '\u{202F}'];

/// Whether a segment is a word, a number or an emoji rather than what stands between them. The two halfwidth voicing
/// marks count as letters, but begin no word.
fn is_word(segment: &str) -> bool {
    let first = segment.trim_start_matches(CONNECTORS).chars().next();
    first.is_some_and(|c| (c.is_alphabetic() || is_digit(c)) && !matches!(c, '\u{FF9E}' | '\u{FF9F}'))
        || is_emoji(segment)
}

/// Whether a character is a decimal digit of some script, and not another number such as ½ or ².
fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    if !c.is_numeric() {
        return false;
    }
    // Digits stick to each other in words, other numbers do not.
    let mut pair = [0; 8];
    pair[0] = b'1';
    let len = c.encode_utf8(&mut pair[1..]).len();
    std::str::from_utf8(&pair[..=len]).is_ok_and(|pair| pair.split_word_bounds().count() == 1)
}

fn without_possessive(word: &str) -> &str {
    let Some(stripped) = word.strip_suffix(['s', 'S']) else { return word };
    stripped.strip_suffix(['\'', '\u{2019}', '\u{FF07}']).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_by_hand() {
        assert!(STOP_WORDS.is_sorted());
        assert_eq!(
            analyze("The Women’s black-and-white T-shirts, 3.5 oz"),
            ["women", "black", "white", "t", "shirt", "3.5", "oz"]
        );
        assert_eq!(
            analyze("foo_bar u.s.a don't ²½ ● 💖 ✔️ ★★ _ | /"),
            ["foo_bar", "u.s.a", "don't", "💖", "✔️", "★", "★"]
        );
        assert!(analyze("").is_empty() && analyze("the of and").is_empty());
        assert_eq!(analyze(&"a".repeat(300)).iter().map(String::len).collect::<Vec<_>>(), [255, 45]);
    }
}
