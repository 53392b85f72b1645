//! Finding the answer in a worked solution, and comparing an answer with it.

/// What stands before the answer in MetaMathQA's responses.
pub(super) const METAMATH_MARK: &str = "The answer is: ";
/// What stands before the answer in GSM8K's solutions.
pub(super) const GSM8K_MARK: &str = "####";

/// Solution and answer of a MetaMathQA response: the answer is everything after the *first* mark, trimmed. `None`
/// without a mark.
#[must_use]
pub fn metamath_answer(response: &str) -> Option<(&str, &str)> {
    let (solution, answer) = response.split_once(METAMATH_MARK)?;
    // Rows made from GSM8K carry its mark as well.
    let solution = solution.rsplit_once(GSM8K_MARK).map_or(solution, |(before, _)| before);
    Some((solution.trim(), answer.trim()))
}

/// Solution and answer of a GSM8K row: the answer stands after the last mark. `None` without a mark.
#[must_use]
pub fn gsm8k_answer(worked: &str) -> Option<(&str, &str)> {
    let (solution, answer) = worked.rsplit_once(GSM8K_MARK)?;
    Some((solution.trim(), answer.trim()))
}

/// Whether an answer is the expected one: equal but for case and white space, and, where the expected answer is a
/// number with separators of thousands, but for these.
#[must_use]
pub fn matches(answer: &str, expected: &str) -> bool {
    let (answer, expected) = (normalise(answer), normalise(expected));
    if answer.is_empty() {
        return false;
    }
    answer == expected || has_thousands(&expected) && answer.replace(',', "") == expected.replace(',', "")
}

fn normalise(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| !c.is_whitespace() && !('\u{1c}'..='\u{1f}').contains(c)).collect()
}

/// A number such as 1,234,567 or -12,500.50.
fn has_thousands(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    (1..=3).contains(&first.len())
        && digits(first)
        && whole.contains(',')
        && groups.all(|group| group.len() == 3 && digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found() {
        assert_eq!(metamath_answer("x = 2. The answer is: 2"), Some(("x = 2.", "2")));
        assert_eq!(metamath_answer("24\n#### 24\nThe answer is: 24 "), Some(("24", "24")));
        assert_eq!(metamath_answer("The answer is 2"), None);
        assert_eq!(gsm8k_answer("1+1=2\n#### 2"), Some(("1+1=2", "2")));
        assert_eq!(gsm8k_answer("2"), None);
    }

    #[test]
    fn separators_of_thousands_may_be_left_out() {
        for (answer, expected, same) in [
            ("1234", "1,234", true),
            ("1,234", "1,234", true),
            ("-1234567.5", "-1,234,567.5", true),
            ("1234", "1,23", false),
            ("12", "1,2", false),
            ("(1,234)", "(1234)", false),
            ("1,234", "1234", false),
            ("", "", false),
        ] {
            assert_eq!(matches(answer, expected), same, "{answer:?} for {expected:?}");
        }
    }
}
