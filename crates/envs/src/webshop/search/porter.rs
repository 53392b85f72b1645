//! The stemmer of Porter, "An algorithm for suffix stripping" (1980), with the two departures that Porter's own
//! programs and Lucene's filter share: `bli` for `abli`, and `logi`.
//!
//! What is here: measures and conditions, the order of steps. The lists of suffixes are in [`super::porter_rules`].

use super::porter_rules::{STEP2, STEP3, STEP4};

/// The stem of a word in lower case. Words of one or two characters stay as they are.
#[must_use]
pub fn stem(word: &str) -> String {
    let mut w: Vec<char> = word.chars().collect();
    if w.len() <= 2 {
        return word.to_owned();
    }
    step1ab(&mut w);
    step1c(&mut w);
    replace_first(&mut w, STEP2);
    replace_first(&mut w, STEP3);
    step4(&mut w);
    step5(&mut w);
    w.into_iter().collect()
}

/// Whether the character at `i` is a consonant; `y` is one at the beginning and after a vowel.
fn is_consonant(w: &[char], i: usize) -> bool {
    match w[i] {
        'a' | 'e' | 'i' | 'o' | 'u' => false,
        // The length of a run of `y` decides, so that this stays linear for a word of nothing else.
        'y' => {
            let run = w[..i].iter().rev().take_while(|c| **c == 'y').count();
            let first_is_consonant = i == run || "aeiou".contains(w[i - run - 1]);
            first_is_consonant == run.is_multiple_of(2)
        }
        _ => true,
    }
}

/// The number of vowel-consonant sequences in `w`: m in [C](VC)^m[V].
fn measure(w: &[char]) -> usize {
    let mut m = 0;
    let mut after_vowel = false;
    for i in 0..w.len() {
        let consonant = is_consonant(w, i);
        if consonant && after_vowel {
            m += 1;
        }
        after_vowel = !consonant;
    }
    m
}

fn has_vowel(w: &[char]) -> bool {
    (0..w.len()).any(|i| !is_consonant(w, i))
}

/// `w` ends in the same consonant twice.
fn ends_in_double(w: &[char]) -> bool {
    let n = w.len();
    n >= 2 && w[n - 1] == w[n - 2] && is_consonant(w, n - 1)
}

/// `w` ends in consonant, vowel, consonant, the last of which is not w, x or y.
fn ends_in_cvc(w: &[char]) -> bool {
    let n = w.len();
    n >= 3
        && is_consonant(w, n - 1)
        && !is_consonant(w, n - 2)
        && is_consonant(w, n - 3)
        && !matches!(w[n - 1], 'w' | 'x' | 'y')
}

/// What precedes the suffix, if `w` ends in it.
fn before(w: &[char], suffix: &str) -> Option<usize> {
    let n = suffix.len();
    let at = w.len().checked_sub(n)?;
    w[at..].iter().copied().eq(suffix.chars()).then_some(at)
}

fn set_end(w: &mut Vec<char>, at: usize, end: &str) {
    w.truncate(at);
    w.extend(end.chars());
}

/// Plurals, -ed and -ing.
fn step1ab(w: &mut Vec<char>) {
    if w.last() == Some(&'s') {
        if let Some(at) = before(w, "sses") {
            w.truncate(at + 2);
        } else if let Some(at) = before(w, "ies") {
            w.truncate(at + 1);
        } else if w[w.len() - 2] != 's' {
            w.pop();
        }
    }
    if let Some(at) = before(w, "eed") {
        if measure(&w[..at]) > 0 {
            w.pop();
        }
        return;
    }
    let Some(at) = before(w, "ed").or_else(|| before(w, "ing")).filter(|&at| has_vowel(&w[..at])) else { return };
    w.truncate(at);
    if ["at", "bl", "iz"].iter().any(|end| before(w, end).is_some()) {
        w.push('e');
    } else if ends_in_double(w) {
        if !matches!(w.last(), Some('l' | 's' | 'z')) {
            w.pop();
        }
    } else if measure(w) == 1 && ends_in_cvc(w) {
        w.push('e');
    }
}

/// A final y after a vowel anywhere before it becomes i.
fn step1c(w: &mut [char]) {
    let n = w.len();
    if n > 0 && w[n - 1] == 'y' && has_vowel(&w[..n - 1]) {
        w[n - 1] = 'i';
    }
}

/// Replaces the first suffix of the list that matches, if what precedes it has a positive measure.
fn replace_first(w: &mut Vec<char>, rules: &[(&str, &str)]) {
    for (suffix, end) in rules {
        if let Some(at) = before(w, suffix) {
            if measure(&w[..at]) > 0 {
                set_end(w, at, end);
            }
            return;
        }
    }
}

/// Takes off the first suffix that matches, if what precedes it has a measure above 1.
fn step4(w: &mut Vec<char>) {
    for suffix in STEP4 {
        let Some(at) = before(w, suffix) else { continue };
        // -ion goes after s and t only.
        if *suffix == "ion" && !(at > 0 && matches!(w[at - 1], 's' | 't')) {
            continue;
        }
        if measure(&w[..at]) > 1 {
            w.truncate(at);
        }
        return;
    }
}

/// A final e, and one of two final l.
fn step5(w: &mut Vec<char>) {
    let n = w.len();
    if n > 0 && w[n - 1] == 'e' {
        let m = measure(&w[..n - 1]);
        if m > 1 || m == 1 && !ends_in_cvc(&w[..n - 1]) {
            w.pop();
        }
    }
    if w.last() == Some(&'l') && ends_in_double(w) && measure(w) > 1 {
        w.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_examples() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("radically", "radic"),
            ("triplicate", "triplic"),
            ("hopefulness", "hope"),
            ("adjustable", "adjust"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("controlling", "control"),
            ("roll", "roll"),
            ("is", "is"),
            ("", ""),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn long_words_take_no_longer_than_they_should() {
        let start = std::time::Instant::now();
        assert_eq!(stem(&"y".repeat(255)).len(), 255);
        assert!(start.elapsed().as_secs_f64() < 1.0);
    }
}
