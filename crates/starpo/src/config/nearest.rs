//! Which known name was probably meant: spelling distance over names and dotted paths. Not a search engine: it answers
//! only when the resemblance is strong enough to be worth printing.

/// Resemblance below which a name is not offered.
const ENOUGH: f64 = 0.6;

/// The known name that resembles `found` most, if any resembles it enough.
pub fn nearest<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for name in known {
        let score = strsim::normalized_damerau_levenshtein(&found, &name.to_lowercase());
        if score >= ENOUGH && best.is_none_or(|(b, _)| score > b) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The known dotted path that was probably meant by `found`: first a misspelt last key in the right section, then the
/// right key in the wrong section (the section that shares most with the given one), then a misspelt whole path.
pub fn nearest_path<'a>(found: &str, known: &'a [String]) -> Option<&'a str> {
    let (section, key) = split(found);
    let siblings = known.iter().filter(|path| split(path).0 == section);
    if let Some(name) = nearest(key, siblings.map(|path| split(path).1)) {
        return known.iter().map(String::as_str).find(|path| split(path) == (section, name));
    }
    let elsewhere = known.iter().map(String::as_str).filter(|path| split(path).1 == key);
    let by_section = elsewhere.max_by(|a, b| similarity(found, a).total_cmp(&similarity(found, b)));
    by_section.or_else(|| nearest(found, known.iter().map(String::as_str)))
}

fn similarity(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b)
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<String> {
        ["seed", "trainer.save_freq", "trainer.test_freq", "es_manager.train.group_size", "es_manager.val.group_size"]
            .map(String::from)
            .to_vec()
    }

    #[test]
    fn misspelt_key_in_the_right_section() {
        assert_eq!(nearest_path("trainer.save_frequ", &known()), Some("trainer.save_freq"));
        assert_eq!(nearest_path("sed", &known()), Some("seed"));
    }

    #[test]
    fn right_key_in_the_wrong_section() {
        assert_eq!(nearest_path("es_manager.vall.group_size", &known()), Some("es_manager.val.group_size"));
        assert_eq!(nearest_path("save_freq", &known()), Some("trainer.save_freq"));
    }

    #[test]
    fn nothing_is_offered_for_nonsense() {
        assert_eq!(nearest_path("zzzzzz.qqqqqq", &known()), None);
        assert_eq!(nearest("bandit", ["sokoban"].into_iter()), None);
    }
}
