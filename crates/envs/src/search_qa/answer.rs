//! Comparing answers as question-answering benchmarks do (SQuAD's normalisation, exact match and F1), and finding the
//! answer in a text that does not name it properly.

use std::collections::BTreeMap;

/// F1 from which an answer that is not exact pays its F1.
const F1_THRESHOLD: f64 = 0.3;
/// Answers that are right or wrong as a whole.
const WHOLE: [&str; 3] = ["yes", "no", "noanswer"];

/// How an answer compares with the expected ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Equal to an expected answer after normalisation.
    pub exact: bool,
    /// Best F1 of the words.
    pub f1: f64,
}

impl Score {
    /// 1 for an exact answer, its F1 from 0.3 on, else 0.
    #[must_use]
    pub fn reward(self) -> f64 {
        match self {
            Score { exact: true, .. } => 1.0,
            Score { f1, .. } if f1 >= F1_THRESHOLD => f1,
            _ => 0.0,
        }
    }
}

/// Compares an answer with every expected one; the best counts.
#[must_use]
pub fn score(answer: &str, expected: &[String]) -> Score {
    let answer = normalise(answer);
    expected.iter().map(|expected| normalise(expected)).fold(Score::default(), |best, expected| Score {
        exact: best.exact || answer == expected,
        f1: best.f1.max(f1(&answer, &expected)),
    })
}

/// Lower case, without ASCII punctuation, without the articles, with single spaces.
#[must_use]
pub fn normalise(text: &str) -> String {
    let lower: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut kept = String::with_capacity(lower.len());
    let mut word = String::new();
    // A word ends where a letter or digit does not follow, as in regular expressions.
    for c in lower.chars().chain(std::iter::once(' ')) {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        match word.as_str() {
            "a" | "an" | "the" => kept.push(' '),
            _ => kept.push_str(&word),
        }
        word.clear();
        kept.push(c);
    }
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// F1 of the words of two normalised texts.
fn f1(answer: &str, expected: &str) -> f64 {
    if answer != expected && (WHOLE.contains(&answer) || WHOLE.contains(&expected)) {
        return 0.0;
    }
    let (answer, expected): (Vec<&str>, Vec<&str>) = (answer.split(' ').collect(), expected.split(' ').collect());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for &word in &expected {
        *counts.entry(word).or_default() += 1;
    }
    let mut same = 0usize;
    for word in &answer {
        if let Some(left) = counts.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            same += 1;
        }
    }
    if same == 0 {
        return 0.0;
    }
    let (precision, recall) = (same as f64 / answer.len() as f64, same as f64 / expected.len() as f64);
    2.0 * precision * recall / (precision + recall)
}

/// The answer in a text that is neither a search nor a proper answer: what is boxed, emphasised, said to be the answer,
/// or concluded; else the first sentence; else the beginning.
#[must_use]
pub fn extract(text: &str) -> String {
    let text = without_thoughts(text);
    let text = text.trim();
    let found = between(text, "\\boxed{", "}")
        .map(str::to_owned)
        .or_else(|| emphasised(text))
        .or_else(|| after(text, &["answer is"]))
        .or_else(|| after(text, &["therefore", "thus", "so", "hence"]))
        .or_else(|| {
            let mut sentences = text.split(['.', '!', '?', '\n']).map(str::trim);
            sentences.find(|sentence| sentence.chars().count() > 5).map(str::to_owned)
        });
    found.unwrap_or_else(|| text.chars().take(100).collect())
}

fn without_thoughts(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("<think>") {
        let Some((_, after)) = inside.split_once("</think>") else { break };
        out.push_str(before);
        rest = after;
    }
    out + rest
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, inside) = text.split_once(open)?;
    inside.split_once(close).map(|(inside, _)| inside.trim())
}

/// The first text between asterisks of more than two characters.
fn emphasised(text: &str) -> Option<String> {
    let runs: Vec<&str> = text.split('*').collect();
    // A text between asterisks has one on both sides.
    let inner = runs.get(1..runs.len().saturating_sub(1))?;
    let mut open = true;
    for run in inner {
        if run.is_empty() {
            continue;
        }
        if open && run.trim().chars().count() > 2 && !run.contains('\n') {
            return Some(run.trim().to_owned());
        }
        open = !open;
    }
    None
}

/// What follows one of the phrases, to the end of the sentence, when that is more than three characters.
fn after(text: &str, phrases: &[&str]) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<(usize, usize)> = Vec::new();
    for phrase in phrases {
        for (at, _) in lower.match_indices(phrase) {
            let starts = !text[..at].ends_with(char::is_alphanumeric);
            let ends = !text[at + phrase.len()..].starts_with(char::is_alphanumeric);
            if starts && ends {
                found.push((at, at + phrase.len()));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().find_map(|(_, end)| {
        let rest = text[end..].trim_start_matches(|c: char| c.is_whitespace() || c == ':' || c == ',');
        let sentence = rest.split(['.', '\n']).next().unwrap_or_default().trim();
        (sentence.chars().count() > 3).then(|| sentence.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_by_hand() {
        let of = |answer: &str, expected: &[&str]| {
            score(answer, &expected.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of("The Eiffel Tower.", &["eiffel tower"]).reward(), 1.0);
        // One of two words right, and nothing else: precision 1, recall 1/2.
        assert!((of("tower", &["eiffel tower"]).reward() - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(of("yes", &["yes it is"]), Score { exact: false, f1: 0.0 });
        assert_eq!(of("x", &[]), Score::default());
        assert_eq!(of("", &["paris"]).reward(), 0.0);
        assert_eq!(Score { exact: false, f1: 0.299 }.reward(), 0.0);
        assert_eq!(Score { exact: false, f1: 0.3 }.reward(), 0.3);
    }

    #[test]
    fn answers_are_found_in_prose() {
        for (text, found) in [
            ("<think>Rome</think>It is known. The answer is: Paris. Yes.", "Paris"),
            ("\\boxed{ 42 }", "42"),
            ("It is **Marie Curie** who", "Marie Curie"),
            ("also known as so. Thus, Berlin it is.", "Berlin it is"),
            ("Because of it. Nothing else", "Because of it"),
            ("a\nb", "a\nb"),
            ("", ""),
            ("****", "****"),
        ] {
            assert_eq!(extract(text), found, "{text:?}");
        }
        assert_eq!(extract(&"x ".repeat(100)).len(), 199);
        assert_eq!(extract(&"é.".repeat(300)).chars().count(), 100);
    }
}
