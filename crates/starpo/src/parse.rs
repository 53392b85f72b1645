//! Reading actions out of a response.
//!
//! What is here: the `<think>…</think><answer>…</answer>` grammar, action splitting, action matching.
//! What is not here: anything that changes the response. The text is only read; what is trained are the tokens.
//!
//! The grammar is RAGEN's: the forced opening tag is put in front, the first match anywhere wins, the contents may
//! span lines. Every function here is linear in the length of the text.

/// Opens the reasoning.
pub const THINK_OPEN: &str = "<think>";
/// Closes the reasoning.
pub const THINK_CLOSE: &str = "</think>";
/// Opens the answer.
pub const ANSWER_OPEN: &str = "<answer>";
/// Closes the answer.
pub const ANSWER_CLOSE: &str = "</answer>";

/// Strings removed from the contents of a match, in this order.
const STRIPPED: [&str; 6] = [THINK_OPEN, THINK_CLOSE, ANSWER_OPEN, ANSWER_CLOSE, "<|im_start|>", "<|im_end|>"];

/// How a response is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseOptions {
    /// The response has a reasoning part before its answer.
    pub enable_think: bool,
    /// Separates actions within the answer.
    pub action_sep: String,
    /// Actions beyond this many are cut off, without a penalty.
    pub max_actions_per_turn: usize,
}

/// What a response says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The response follows the grammar.
    pub format_ok: bool,
    /// The reasoning, without tags, trimmed; empty when there is none.
    pub reasoning: String,
    /// The actions as written, trimmed, at most `max_actions_per_turn`.
    pub actions: Vec<String>,
    /// Number of actions cut off.
    pub cut: usize,
}

/// The opening tag that every response is forced to begin with.
pub fn forced_opening(enable_think: bool) -> &'static str {
    if enable_think { THINK_OPEN } else { ANSWER_OPEN }
}

/// Reads a response, given as text decoded without special tokens and without the forced opening tag.
pub fn parse(response: &str, options: &ParseOptions) -> Parsed {
    let matched = if options.enable_think { split_think(response) } else { split_answer(response) };
    let Some((reasoning, answer)) = matched else {
        return Parsed::default();
    };
    let answer = strip_tags(answer);
    let mut actions: Vec<String> = if options.action_sep.is_empty() {
        Some(trim(&answer)).filter(|a| !a.is_empty()).map(str::to_owned).into_iter().collect()
    } else {
        answer.split(options.action_sep.as_str()).map(trim).filter(|a| !a.is_empty()).map(str::to_owned).collect()
    };
    let cut = actions.len().saturating_sub(options.max_actions_per_turn);
    actions.truncate(options.max_actions_per_turn);
    Parsed { format_ok: true, reasoning: trim(&strip_tags(reasoning)).to_owned(), actions, cut }
}

/// Maps the actions as written to the environment's own spelling, ignoring case, and drops the unknown ones. With an
/// empty vocabulary (free text) every action is known.
pub fn match_actions(actions: &[String], vocabulary: &[String]) -> Vec<String> {
    if vocabulary.is_empty() {
        return actions.to_vec();
    }
    actions
        .iter()
        .filter_map(|action| {
            let lower = action.to_lowercase();
            vocabulary.iter().find(|known| known.to_lowercase() == lower).cloned()
        })
        .collect()
}

/// Byte offset of the tag that ends the reasoning, when the response has a reasoning part that is closed: the same
/// tag that [`parse`] takes when the format is right, else the first one.
pub fn reasoning_end(response: &str) -> Option<usize> {
    match split_think(response) {
        Some((reasoning, _)) => Some(reasoning.len()),
        None => response.find(THINK_CLOSE),
    }
}

/// Reasoning and answer. The forced opening tag stands at the very front, so the leftmost match always begins there;
/// it ends its reasoning at the first closing tag that an answer follows directly.
fn split_think(response: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    while let Some(at) = response[from..].find(THINK_CLOSE) {
        let close = from + at;
        let after = close + THINK_CLOSE.len();
        if let Some(answer) = response[after..].trim_start_matches(is_space).strip_prefix(ANSWER_OPEN) {
            // Without a closing tag here there is none after any later candidate either.
            return answer.find(ANSWER_CLOSE).map(|end| (&response[..close], &answer[..end]));
        }
        from = after;
    }
    None
}

fn split_answer(response: &str) -> Option<(&str, &str)> {
    response.find(ANSWER_CLOSE).map(|end| ("", &response[..end]))
}

fn strip_tags(text: &str) -> String {
    STRIPPED.iter().fold(text.to_owned(), |text, tag| if text.contains(tag) { text.replace(tag, "") } else { text })
}

/// White space as Python's `\s` and `strip` see it: Unicode's, and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options(max: usize) -> ParseOptions {
        ParseOptions { enable_think: true, action_sep: "||".into(), max_actions_per_turn: max }
    }

    fn actions(text: &str) -> Vec<String> {
        parse(text, &options(5)).actions
    }

    #[test]
    fn well_formed() {
        let p = parse(" go up \n</think> \n <answer> Up || Right||  || Down </answer> tail", &options(5));
        assert!(p.format_ok);
        assert_eq!(p.reasoning, "go up");
        assert_eq!(p.actions, ["Up", "Right", "Down"]);
        assert_eq!(p.cut, 0);
    }

    #[test]
    fn missing_tags_give_nothing() {
        for text in
            ["Up", "a</think>Up", "a<answer>Up</answer>", "a</think><answer>Up", "a</think> x <answer>Up</answer>", ""]
        {
            let p = parse(text, &options(5));
            assert!(!p.format_ok && p.actions.is_empty(), "{text:?}: {p:?}");
        }
    }

    #[test]
    fn extra_tags_are_stripped() {
        // An API model repeats the forced tag; a confused one nests them.
        assert_eq!(parse("<think>a</think><answer>Up</answer>", &options(5)).reasoning, "a");
        assert_eq!(actions("a</think>b</think><answer><answer>Up<|im_end|></answer>"), ["Up"]);
        assert_eq!(parse("a</think>b</think><answer>Up</answer>", &options(5)).reasoning, "ab");
        // Removal goes tag by tag, as in the reference: a tag that appears by removing a later one stays.
        assert_eq!(actions("</think><answer><th<answer>ink>Up</answer>"), ["<think>Up"]);
    }

    #[test]
    fn first_match_wins() {
        assert_eq!(actions("</think><answer>Up</answer></think><answer>Down</answer>"), ["Up"]);
        assert_eq!(actions("</think><answer>Up</answer> or <answer>Down</answer>"), ["Up"]);
    }

    #[test]
    fn surplus_actions_are_cut_and_counted() {
        let p = parse("</think><answer>a||b||c||d</answer>", &options(2));
        assert_eq!((p.actions, p.cut), (vec!["a".to_owned(), "b".to_owned()], 2));
    }

    #[test]
    fn empty_answer() {
        let p = parse("x</think><answer>  || </answer>", &options(5));
        assert!(p.format_ok && p.actions.is_empty());
    }

    #[test]
    fn without_think() {
        let o = ParseOptions { enable_think: false, ..options(5) };
        assert_eq!(parse("Up||Down</answer>", &o).actions, ["Up", "Down"]);
        assert_eq!(parse("<answer>Up</answer>", &o).actions, ["Up"]);
        assert!(!parse("Up", &o).format_ok);
        assert_eq!(parse("Up</answer>", &o).reasoning, "");
    }

    #[test]
    fn matching_ignores_case_and_drops_unknown() {
        let vocabulary = ["Up".to_owned(), "Down".to_owned()];
        let written = ["uP".to_owned(), "jump".to_owned(), "DOWN".to_owned(), "Up!".to_owned()];
        assert_eq!(match_actions(&written, &vocabulary), ["Up", "Down"]);
        assert_eq!(match_actions(&written, &[]), written);
    }

    #[test]
    fn reasoning_ends_where_the_match_says() {
        assert_eq!(reasoning_end("a</think>b</think><answer>Up</answer>"), Some("a</think>b".len()));
        assert_eq!(reasoning_end("abc</think> nothing"), Some(3));
        assert_eq!(reasoning_end("abc"), None);
    }

    #[test]
    fn adversarial_text_is_read_in_linear_time() {
        // A backtracking matcher needs minutes for these.
        let spaces = " ".repeat(1000);
        for unit in ["</think>", "</think> <answer>", "</think>\n\n\n", "<think>", "<answer></answe", spaces.as_str()] {
            let text = unit.repeat(2_000_000 / unit.len());
            let start = std::time::Instant::now();
            let p = parse(&text, &options(5));
            assert!(p.actions.is_empty());
            assert!(start.elapsed().as_secs_f64() < 2.0, "{unit:?} took {:?}", start.elapsed());
        }
    }

    /// The grammar spelled out naively: every closing tag is tried in turn.
    fn naive(response: &str) -> Option<(String, String)> {
        let text = format!("{THINK_OPEN}{response}");
        for (close, _) in text.match_indices(THINK_CLOSE) {
            let after = &text[close + THINK_CLOSE.len()..];
            for spaces in 0..=after.chars().count() {
                let (gap, rest) = after.split_at(after.char_indices().nth(spaces).map_or(after.len(), |(i, _)| i));
                if !gap.chars().all(is_space) {
                    break;
                }
                if let Some(answer) = rest.strip_prefix(ANSWER_OPEN)
                    && let Some(end) = answer.find(ANSWER_CLOSE)
                {
                    return Some((text[THINK_OPEN.len()..close].to_owned(), answer[..end].to_owned()));
                }
            }
        }
        None
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_reading(parts in proptest::collection::vec(
            prop_oneof![
                Just("<think>"), Just("</think>"), Just("<answer>"), Just("</answer>"), Just(" "), Just("\n"),
                Just("Up"), Just("||"), Just("<|im_end|>"), Just("é"), Just("</thi"), Just("<"), Just("\u{1f}"),
            ], 0..14)) {
            let text = parts.concat();
            let expected = naive(&text);
            let split = split_think(&text).map(|(t, a)| (t.to_owned(), a.to_owned()));
            prop_assert_eq!(&split, &expected);
            let p = parse(&text, &options(3));
            prop_assert_eq!(p.format_ok, expected.is_some());
            prop_assert!(p.actions.len() <= 3);
            prop_assert!(p.actions.iter().all(|a| !a.is_empty() && trim(a) == a && !a.contains("||")));
        }

        #[test]
        fn never_fails_on_any_text(text in "\\PC{0,200}") {
            parse(&text, &options(2));
            parse(&text, &ParseOptions { enable_think: false, ..options(1) });
        }
    }
}
