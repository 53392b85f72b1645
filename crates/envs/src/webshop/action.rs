//! The grammar of actions: `name[argument]`.

/// An action as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What stands before the bracket, or everything.
    pub name: String,
    /// What stands in the brackets, in lower case; `None` without brackets around something.
    pub argument: Option<String>,
}

impl Action {
    /// Reads an action as the original's regular expression `(.+)\[(.+)\]` does: anchored at the start only, within the
    /// first line, the last bracket that opens being the one that counts. Linear in the length of the text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let line = text.split('\n').next().unwrap_or_default();
        let brackets = line.rfind(']').and_then(|close| {
            // At least one character stands between the brackets and before them.
            let open = line[..close].char_indices().next_back().and_then(|(last, _)| line[..last].rfind('['))?;
            (open > 0).then_some((open, close))
        });
        match brackets {
            Some((open, close)) => {
                Self { name: line[..open].to_owned(), argument: Some(line[open + 1..close].to_lowercase()) }
            }
            None => Self { name: text.to_owned(), argument: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> (String, Option<String>) {
        let action = Action::parse(text);
        (action.name, action.argument)
    }

    #[test]
    fn by_hand() {
        let some = |name: &str, argument: &str| (name.to_owned(), Some(argument.to_owned()));
        assert_eq!(parse("search[Red Shoes]"), some("search", "red shoes"));
        assert_eq!(parse(" click[Buy Now] please"), some(" click", "buy now"));
        assert_eq!(parse("search[a[b]]"), some("search[a", "b]"));
        assert_eq!(parse("search[]]"), some("search", "]"));
        assert_eq!(parse("search[[]"), some("search", "["));
        assert_eq!(parse("a[b]\nc[d]"), some("a", "b"));
        for text in ["search[]", "search", "[a]", "\nsearch[a]", "", "search[a", "a]b[c", "[]", "x[]"] {
            assert_eq!(parse(text), (text.to_owned(), None), "{text:?}");
        }
    }

    /// The regular expression spelled out: the longest name first, then the longest argument.
    fn naive(text: &str) -> (String, Option<String>) {
        let line: Vec<char> = text.chars().take_while(|c| *c != '\n').collect();
        let opens = (1..line.len()).rev().filter(|&i| line[i] == '[');
        let mut pairs = opens.flat_map(|open| (open + 2..line.len()).rev().map(move |close| (open, close)));
        match pairs.find(|&(_, close)| line[close] == ']') {
            Some((open, close)) => {
                let argument: String = line[open + 1..close].iter().collect();
                (line[..open].iter().collect(), Some(argument.to_lowercase()))
            }
            None => (text.to_owned(), None),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_reading(text in "[\\[\\]aÉ\n ]{0,12}") {
            prop_assert_eq!(parse(&text), naive(&text));
        }
    }
}
