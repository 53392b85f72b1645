//! What the agent is shown: RAGEN's prompt, verl-agent's, and pages in as few words as possible.

use super::page::{BACK_TO_SEARCH, NEXT, PREV};
use super::session::{PageKind, Session, SubPage};
use super::shop::Shop;

/// RAGEN's nine pieces of advice, in words of our own.
const HINTS: [&str; 9] = [
    "You have 10 actions to buy something; it need not fit the description in every detail.",
    "Leave sizes, colours and the like out of the search.",
    "Search twice at most.",
    "Do not be choosy: a product that is close enough, bought in time, is better than none.",
    "Rather open a product of the present page than turn to the next one.",
    "Use click[next >] twice at most.",
    "Use click[< prev] only if you are sure that an earlier page has what you want.",
    "With fewer than 3 actions left open the first product you see and buy it.",
    "Where the options offer what is asked for, choose size, then colour, one at a time, and then click[buy now]; with \
     1 action left buy at once. Do not open the description.",
];

/// Characters beyond which verl-agent leaves the history out of its prompt.
const LONGEST_PROMPT: usize = 13_000;

/// The actions of a page in RAGEN's form. On a page that offers nothing but ways out, turning further is not offered.
pub(super) fn action_list(has_search_bar: bool, clickables: &[String]) -> Vec<String> {
    let mut actions: Vec<String> = Vec::with_capacity(clickables.len());
    if has_search_bar {
        actions.push("search[<content>]".to_owned());
    }
    actions.extend(clickables.iter().filter(|name| *name != "search").map(|name| format!("click[{name}]")));
    let ways_out = [BACK_TO_SEARCH, PREV, NEXT].map(|label| format!("click[{}]", label.to_lowercase()));
    if actions == ways_out {
        actions.pop();
    }
    actions
}

/// RAGEN's prompt.
pub(super) fn ragen(observation: &str, hints: bool, actions: &[String]) -> String {
    let hints = if hints { HINTS.join("\n") } else { String::new() };
    format!("{observation}.{hints}\n You must choose from these actions:{}.", actions.join(", "))
}

/// One step that verl-agent's prompt looks back on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PastStep {
    /// What was shown.
    pub(super) observation: String,
    /// What was done.
    pub(super) action: String,
}

/// verl-agent's form of a page: the pieces behind the task, in quotes; the page as it is where the task is not on it.
pub(super) fn verl_observation(page: &str, task: &str) -> String {
    let pieces: Vec<&str> = page.split(" [SEP] ").collect();
    match pieces.iter().position(|piece| *piece == task) {
        Some(at) => pieces[at + 1..].iter().map(|piece| format!("'{piece}'")).collect::<Vec<_>>().join(" [SEP] "),
        None => page.to_owned(),
    }
}

/// verl-agent's prompt, without the words on the answer's form, which are the agent's business.
pub(super) fn verl_agent(
    task: &str,
    past: &[PastStep],
    history_length: usize,
    observation: &str,
    has_search_bar: bool,
    clickables: &[String],
) -> String {
    let mut actions: Vec<String> = Vec::with_capacity(clickables.len() + 1);
    if has_search_bar {
        actions.push("'search[<your query>]',".to_owned());
    }
    actions.extend(clickables.iter().map(|name| format!("'click[{name}]',")));
    let step = past.len();
    let now = format!(
        "You are now at step {} and see: {observation}.\nThe actions admitted here are:\n[\n{}\n].",
        step + 1,
        actions.join("\n")
    );
    let head = format!("You shop online. Your task: {task}.");
    let recent = &past[step - history_length.min(step)..];
    if !recent.is_empty() {
        let first = step - recent.len() + 1;
        let recent: Vec<String> = (first..)
            .zip(recent)
            .map(|(k, past)| format!("[Observation {k}: '{}', Action {k}: '{}']", past.observation, past.action))
            .collect();
        let whole = format!(
            "{head} You have taken {step} steps. The last {} of them:\n{}\n{now}",
            recent.len(),
            recent.join("\n")
        );
        if whole.chars().count() <= LONGEST_PROMPT {
            return whole;
        }
    }
    format!("{head}\n{now}")
}

/// What verl-agent takes for the action in an answer: in lower case, what stands between the first `<action>` and the
/// first `</action>`, else the last 20 characters. The flag: the answer has the form asked for, reasoning included, and
/// holds no Chinese characters.
#[must_use]
pub fn verl_projection(answer: &str) -> (String, bool) {
    const OPEN: &str = "<action>";
    let lower = answer.to_lowercase();
    let found = lower.find(OPEN).zip(lower.find("</action>")).and_then(|(open, close)| {
        let action = lower.get(open + OPEN.len()..close)?;
        Some(action.trim().to_owned())
    });
    let form = answer.contains("<think>") && answer.contains("</think>");
    let chinese = answer.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c));
    match found {
        Some(action) => (action, form && !chinese),
        None => {
            let from = lower.char_indices().rev().nth(19).map_or(0, |(at, _)| at);
            (lower[from..].to_owned(), false)
        }
    }
}

/// The goal in as few words as possible: what, which options, how dear at most.
pub(super) fn compact_goal(session: &Session) -> String {
    let goal = session.goal();
    let base = goal.base_instruction.strip_prefix("Find me ").unwrap_or(&goal.base_instruction);
    let mut parts = vec![base.to_owned()];
    parts.extend(goal.options.values().into_iter().map(str::to_owned));
    if goal.price_upper < super::goal::NO_CAP {
        parts.push(format!("<{}", goal.price_upper));
    }
    parts.join("; ")
}

/// A price without the zero that whole dollars end in.
pub(super) fn short_price(tag: &str) -> &str {
    tag.strip_suffix(".0").unwrap_or(tag)
}

/// A page in as few words as possible. What can be clicked stands in brackets, as in the action; chosen values between
/// stars.
pub(super) fn compact(shop: &Shop, session: &Session) -> String {
    let mut lines = vec![compact_goal(session)];
    let product = session.product(shop);
    match (session.page(), product) {
        (PageKind::Index, _) => lines.push("search".to_owned()),
        (PageKind::Results, _) => {
            if session.page_number() > 1 {
                lines.push(format!("page {}", session.page_number()));
            }
            lines.extend(session.shown(shop).map(|product| {
                format!("{} {} [{}]", product.title, short_price(&product.price_tag), product.asin.to_lowercase())
            }));
        }
        (PageKind::Item, Some(product)) => {
            lines.push(format!("{} {}", product.title, short_price(&product.price_tag)));
            for (name, values) in &product.options {
                let chosen = session.options().iter().find(|(n, _)| n == name).map(|(_, value)| value);
                let values: Vec<String> = values
                    .iter()
                    .map(|value| if Some(value) == chosen { format!("*{value}*") } else { format!("[{value}]") })
                    .collect();
                lines.push(format!("{name} {}", values.join(" ")));
            }
        }
        (PageKind::Sub(SubPage::Description), Some(product)) => lines.push(product.description.clone()),
        (PageKind::Sub(SubPage::Features), Some(product)) => lines.extend(product.bullets.iter().cloned()),
        (PageKind::Sub(SubPage::Attributes), Some(product)) => lines.extend(product.attributes.iter().cloned()),
        (PageKind::Sub(SubPage::Reviews), _) => lines.push("no reviews".to_owned()),
        (PageKind::Done, _) => lines.push(format!("score {:.2}", session.reward().map_or(0.0, |reward| reward.total))),
        (PageKind::Item | PageKind::Sub(_), None) => {}
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn offered_actions() {
        assert_eq!(action_list(true, &words(&["search"])), ["search[<content>]"]);
        let ways = ["back to search", "< prev", "next >"];
        assert_eq!(action_list(false, &words(&ways)), ["click[back to search]", "click[< prev]"]);
        let more = ["back to search", "< prev", "next >", "b01"];
        assert_eq!(action_list(false, &words(&more)).len(), 4);
        assert_eq!(action_list(false, &words(&["back to search", "next >"])).len(), 2);
    }

    #[test]
    fn ragens_layout() {
        let prompt = ragen("Instruction: a cup", true, &words(&["click[a]", "click[b]"]));
        let (observation, rest) = prompt.split_once('.').expect("a full stop");
        assert_eq!(observation, "Instruction: a cup");
        let lines: Vec<&str> = rest.split('\n').collect();
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[9], " You must choose from these actions:click[a], click[b].");
        assert_eq!(ragen("x", false, &[]), "x.\n You must choose from these actions:.");
    }

    #[test]
    fn verl_agents_projection() {
        let good = "<think>Hm</think><action>Click[Buy Now]</action>";
        assert_eq!(verl_projection(good), ("click[buy now]".to_owned(), true));
        assert!(!verl_projection("<action>search[a]</action>").1);
        assert!(!verl_projection("<think>好</think><action>a</action>").1);
        assert_eq!(verl_projection("0123456789ABCDEFGHIJKLMN"), ("456789abcdefghijklmn".to_owned(), false));
        assert_eq!(verl_projection("</action> <action>"), ("</action> <action>".to_owned(), false));
        assert_eq!(verl_projection(""), (String::new(), false));
    }

    #[test]
    fn verl_agents_prompt() {
        let page = "WebShop [SEP] Instruction: [SEP] a cup [SEP] Search";
        assert_eq!(verl_observation(page, "a cup"), "'Search'");
        assert_eq!(verl_observation("Thank you", "a cup"), "Thank you");
        let past: Vec<PastStep> =
            (1..=3).map(|k| PastStep { observation: format!("o{k}"), action: format!("a{k}") }).collect();
        let prompt = verl_agent("a cup", &past, 2, "'x'", true, &words(&["search"]));
        for part in
            ["task: a cup", "[Observation 2: 'o2', Action 2: 'a2']", "[Observation 3: ", "step 4", "'click[search]',"]
        {
            assert!(prompt.contains(part), "{part}: {prompt}");
        }
        assert!(prompt.contains("'search[<your query>]',") && !prompt.contains("Observation 1"));
        let long = [PastStep { observation: "x".repeat(13_000), action: String::new() }];
        assert!(!verl_agent("a cup", &long, 2, "'x'", false, &[]).contains("Observation"));
    }
}
