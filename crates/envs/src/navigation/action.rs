//! What the agent may do: a list such as `Actions: [Rotate(90), JumpTo(lamp), Observe()]`.

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Quarter turns clockwise, 1 to 3.
    Rotate(usize),
    /// To an object in view.
    JumpTo(String),
    /// Look around.
    Observe,
    /// Answer and end.
    Term(String),
}

/// Reads a list of movements that ends with `Observe()` or `Term(answer)`.
///
/// # Errors
/// What was expected and what was found.
pub(super) fn parse(text: &str) -> Result<Vec<Action>, String> {
    let text = text.trim();
    let list = match text.get(..8) {
        Some(head) if head.eq_ignore_ascii_case("actions:") => text[8..].trim(),
        _ => text,
    };
    let list = list.strip_prefix('[').map_or(Some(list), |inner| inner.strip_suffix(']'));
    let mut rest = list.ok_or("the list is not closed by `]`")?.trim();
    let mut actions = Vec::new();
    while !rest.is_empty() {
        if let Some(Action::Observe | Action::Term(_)) = actions.last() {
            return Err("Observe() and Term(answer) have to come last".to_owned());
        }
        let (name, after) = rest.split_once('(').ok_or_else(|| format!("no action in `{}`", shorten(rest)))?;
        let (argument, after) =
            closed(after).ok_or_else(|| format!("`{}` is not closed by `)`", shorten(name.trim())))?;
        actions.push(action(name.trim(), argument.trim())?);
        rest = after.trim();
        if let Some(more) = rest.strip_prefix(',') {
            rest = more.trim();
            if rest.is_empty() {
                return Err("something has to follow the last comma".to_owned());
            }
        } else if !rest.is_empty() {
            return Err("actions are separated by commas".to_owned());
        }
    }
    match actions.last() {
        Some(Action::Observe | Action::Term(_)) => Ok(actions),
        _ => Err("the last action has to be Observe() or Term(answer)".to_owned()),
    }
}

/// What stands before the parenthesis that closes this one, and what after it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[..i], &text[i + 1..]));
        }
    }
    None
}

fn action(name: &str, argument: &str) -> Result<Action, String> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if is("Rotate") {
        let degrees = argument.trim_end_matches('°').parse::<i64>().ok();
        return match degrees.map(|degrees| (degrees.rem_euclid(360), degrees.abs() <= 360)) {
            Some((degrees @ (90 | 180 | 270), true)) => Ok(Action::Rotate((degrees / 90) as usize)),
            _ => Err(format!("expected Rotate(90), Rotate(180) or Rotate(270), found `{}`", shorten(argument))),
        };
    }
    if is("JumpTo") && !argument.is_empty() {
        return Ok(Action::JumpTo(argument.to_owned()));
    }
    if is("Observe") && argument.is_empty() {
        return Ok(Action::Observe);
    }
    if is("Term") && !argument.is_empty() {
        return Ok(Action::Term(argument.to_owned()));
    }
    Err(format!(
        "expected Rotate(degrees), JumpTo(object), Observe() or Term(answer), found `{}({})`",
        shorten(name),
        shorten(argument)
    ))
}

/// The beginning of what the agent wrote, for messages.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse("Actions: [Observe()]"), Ok(vec![Action::Observe]));
        assert_eq!(
            parse(" actions:[rotate(-90) , JumpTo( lamp ),OBSERVE()]"),
            Ok(vec![Action::Rotate(3), Action::JumpTo("lamp".into()), Action::Observe])
        );
        assert_eq!(parse("Term((2, -3))"), Ok(vec![Action::Term("(2, -3)".into())]));
        assert_eq!(parse("Term(A)"), Ok(vec![Action::Term("A".into())]));
        for (text, expected) in [
            ("", "the last action"),
            ("Actions: []", "the last action"),
            ("Rotate(90)", "the last action"),
            ("Observe(), Rotate(90)", "have to come last"),
            ("Term(A), Term(B)", "have to come last"),
            ("Rotate(45), Observe()", "expected Rotate(90)"),
            ("Rotate(0), Observe()", "expected Rotate(90)"),
            ("Rotate(9999999999999999999999), Observe()", "expected Rotate(90)"),
            ("Observe(", "not closed"),
            ("[Observe()", "not closed by `]`"),
            ("Observe(),", "the last comma"),
            ("Rotate(90) Observe()", "separated by commas"),
            ("Term()", "found `Term()`"),
            ("Fly(up)", "found `Fly(up)`"),
            ("north", "no action in `north`"),
            ("éèàùçéèàù", "no action"),
        ] {
            let error = parse(text).expect_err("refused");
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(parse(&"(".repeat(100_000)).expect_err("refused").len() < 200);
    }
}
