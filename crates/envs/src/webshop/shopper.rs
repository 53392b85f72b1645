//! The oracle: a shopper that knows which product is meant and buys it the shortest way it can see; and the words of
//! its demonstrations.

use rand_core::Rng;

use super::goal::GoalOptions;
use super::prompt::{compact_goal, short_price};
use super::session::{PageKind, Session};
use super::shop::Shop;
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// Why the next action is taken.
#[derive(Clone, Debug, PartialEq)]
enum Reason {
    /// Look for this.
    Search(String),
    /// What is meant is on a later page.
    TurnPage,
    /// What is meant is here.
    Open(usize),
    /// Choose this value of this option.
    Choose(String, String),
    /// Nothing is left to choose.
    Buy,
    /// This is not what is meant.
    Leave,
}

/// A way to the purchase: every action with its reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    steps: Vec<(String, Reason)>,
}

impl Plan {
    /// The shortest plan from here; empty after the purchase and when the product cannot be found.
    pub(super) fn of(shop: &Shop, session: &Session) -> Self {
        let target = session.goal().product;
        let mut plan = Self::default();
        match session.page() {
            PageKind::Done => {}
            PageKind::Index => plan.search(shop, session),
            PageKind::Item if session.product_number() == Some(target) => plan.buy(shop, session),
            PageKind::Sub(_) if session.product_number() == Some(target) => {
                plan.push("click[< prev]", Reason::Leave);
                plan.buy(shop, session);
            }
            PageKind::Results => plan.choose_result(shop, session),
            PageKind::Item | PageKind::Sub(_) => {
                // Back to the results, if what is meant is among them, else to a new search.
                let mut back = Self::default();
                back.push("click[< prev]", Reason::Leave);
                let mut at = session.clone();
                if matches!(session.page(), PageKind::Sub(_)) {
                    back.push("click[< prev]", Reason::Leave);
                    at.step(shop, &super::Action::parse("click[< prev]"));
                }
                at.step(shop, &super::Action::parse("click[< prev]"));
                back.choose_result(shop, &at);
                plan = Self::afresh(shop, session);
                // A tie goes to the way back: the search was made already.
                if !back.steps.is_empty() && (plan.steps.is_empty() || back.steps.len() <= plan.steps.len()) {
                    plan = back;
                }
            }
        }
        plan
    }

    /// A search for what the instruction says, options and price left out.
    pub(super) fn natural_search(shop: &Shop, session: &Session) -> Option<String> {
        queries(shop, session).into_iter().next().map(|query| format!("search[{query}]"))
    }

    /// The actions.
    pub(super) fn actions(&self) -> Vec<String> {
        self.steps.iter().map(|(action, _)| action.clone()).collect()
    }

    /// Number of actions.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn push(&mut self, action: &str, reason: Reason) {
        self.steps.push((action.to_owned(), reason));
    }

    /// Back to the first page and from there.
    fn afresh(shop: &Shop, session: &Session) -> Self {
        let mut plan = Self::default();
        plan.push("click[back to search]", Reason::Leave);
        let before = plan.len();
        plan.search(shop, session);
        if plan.len() == before { Self::default() } else { plan }
    }

    /// From a page of results.
    fn choose_result(&mut self, shop: &Shop, session: &Session) {
        let target = session.goal().product;
        let size = shop.results_per_page();
        let here = session.page_number();
        let found = session.results().iter().position(|&number| number == target).map(|rank| rank / size + 1);
        let fresh = Self::afresh(shop, session);
        let tail = 2 + session.goal().options.len();
        match found {
            Some(page) if fresh.is_empty() || page.abs_diff(here) + tail <= fresh.len() => {
                for _ in here..page {
                    self.push("click[next >]", Reason::TurnPage);
                }
                for _ in page..here {
                    self.push("click[< prev]", Reason::TurnPage);
                }
                self.open(shop, session);
            }
            _ => self.steps.extend(fresh.steps),
        }
    }

    /// From the first page.
    fn search(&mut self, shop: &Shop, session: &Session) {
        let target = session.goal().product;
        let size = shop.results_per_page();
        // What the instruction says comes first; only if that does not find it on the first page, what it does not say.
        let mut best: Option<(usize, String)> = None;
        for query in queries(shop, session) {
            let rank = shop.search(&query).iter().position(|&number| number == target);
            let Some(page) = rank.map(|rank| rank / size) else { continue };
            if best.as_ref().is_none_or(|(known, _)| page < *known) {
                best = Some((page, query));
            }
            if page == 0 {
                break;
            }
        }
        let Some((page, query)) = best else { return };
        self.push(&format!("search[{query}]"), Reason::Search(query));
        for _ in 0..page {
            self.push("click[next >]", Reason::TurnPage);
        }
        self.open(shop, session);
    }

    fn open(&mut self, shop: &Shop, session: &Session) {
        let target = session.goal().product;
        let Some(product) = shop.products().get(target) else { return };
        self.push(&format!("click[{}]", product.asin.to_lowercase()), Reason::Open(target));
        self.choose(shop, session, &[]);
    }

    fn buy(&mut self, shop: &Shop, session: &Session) {
        self.choose(shop, session, session.options());
    }

    /// Chooses what the goal asks for and is not chosen yet, and buys.
    fn choose(&mut self, shop: &Shop, session: &Session, chosen: &[(String, String)]) {
        let goal = session.goal();
        let Some(product) = shop.products().get(goal.product) else { return };
        // In the order of the page.
        for (name, values) in &product.options {
            let wanted = match &goal.options {
                GoalOptions::Pairs(pairs) => pairs.iter().find(|(n, _)| n == name).map(|(_, value)| value),
                GoalOptions::Values(wanted) => values.iter().find(|value| wanted.contains(value)),
            };
            let Some(value) = wanted.filter(|value| values.contains(value)) else { continue };
            if !chosen.iter().any(|(_, v)| v == value) {
                self.push(&format!("click[{value}]"), Reason::Choose(name.clone(), value.clone()));
            }
        }
        self.push("click[buy now]", Reason::Buy);
    }

    /// The first `max_actions` actions with words for them; `None` when that is nothing.
    pub(super) fn demonstrate(
        &self,
        shop: &Shop,
        session: &Session,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let actions: Vec<String> = self.steps.iter().take(max_actions).map(|(action, _)| action.clone()).collect();
        let (_, reason) = self.steps.first().filter(|_| !actions.is_empty())?;
        let reasoning = match style {
            DemoStyle::Brief => brief(reason, shop, session),
            DemoStyle::Verbose => verbose(reason, shop, session, rng),
        };
        Some(Demonstration { reasoning, actions })
    }
}

/// What may be searched for, the most natural first.
fn queries(shop: &Shop, session: &Session) -> Vec<String> {
    let goal = session.goal();
    let Some(product) = shop.products().get(goal.product) else { return Vec::new() };
    let base = goal.base_instruction.strip_prefix("Find me ").unwrap_or(&goal.base_instruction);
    let mut all = vec![base.to_lowercase(), format!("{} {}", base, goal.options.values().join(" "))];
    all.push(product.title.clone());
    all.push(product.contents().chars().take(300).collect());
    // Brackets and line breaks would end the action.
    all.iter()
        .map(|query| {
            let plain: String =
                query.chars().map(|c| if matches!(c, '[' | ']') || c.is_control() { ' ' } else { c }).collect();
            plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
        })
        .filter(|query| !query.is_empty())
        .collect()
}

/// The words follow from the situation, never from chance: a small model learns them fast.
fn brief(reason: &Reason, shop: &Shop, session: &Session) -> String {
    match reason {
        Reason::Search(_) => "find".to_owned(),
        Reason::TurnPage => "not here".to_owned(),
        Reason::Open(number) => match shop.products().get(*number) {
            Some(product) => {
                let cap = compact_goal(session);
                let cap = cap.rsplit_once("; ").map_or("", |(_, last)| last).strip_prefix('<');
                let cap = cap.map(|cap| format!("<{cap} ")).unwrap_or_default();
                let price = short_price(&product.price_tag);
                format!("{cap}{} {price} [{}]", shorten(&product.title), product.asin.to_lowercase())
            }
            None => "this".to_owned(),
        },
        Reason::Choose(name, value) => format!("{name} {value}"),
        Reason::Buy => "all set".to_owned(),
        Reason::Leave => "wrong".to_owned(),
    }
}

fn verbose(reason: &Reason, shop: &Shop, session: &Session, rng: &mut dyn Rng) -> String {
    let goal = session.goal();
    let choice = index_below(rng, 2);
    match (reason, choice) {
        (Reason::Search(query), 0) => format!("I start by searching for what is asked for: {query}."),
        (Reason::Search(query), _) => format!("The shop's search should find it; I look for {query}."),
        (Reason::TurnPage, 0) => "Nothing on this page fits, so I turn the page.".to_owned(),
        (Reason::TurnPage, _) => "What I am looking for is not on this page of results.".to_owned(),
        (Reason::Open(number), _) => {
            let Some(product) = shop.products().get(*number) else { return "I open this product.".to_owned() };
            let title = shorten(&product.title);
            let price = &product.price_tag;
            match (goal.price_upper < super::goal::NO_CAP, choice) {
                (true, 0) => {
                    format!("\"{title}\" fits, and at {price} it stays below {:.0} dollars.", goal.price_upper)
                }
                (true, _) => format!("{} is \"{title}\" for {price}, within the budget. I open it.", product.asin),
                (false, 0) => format!("\"{title}\" fits the description; I open it."),
                (false, _) => format!("{} is \"{title}\", which is what I was asked for.", product.asin),
            }
        }
        (Reason::Choose(name, value), 0) => format!("The instruction asks for {name} {value}, which I choose now."),
        (Reason::Choose(name, value), _) => format!("This is the right product. For {name} I take {value}."),
        (Reason::Buy, 0) => "Everything that was asked for is chosen, so I buy it.".to_owned(),
        (Reason::Buy, _) => "Nothing is left to choose. I buy it now.".to_owned(),
        (Reason::Leave, 0) => "This page does not help; I go back.".to_owned(),
        (Reason::Leave, _) => "I am in the wrong place and go back.".to_owned(),
    }
}

/// The first words of a title.
fn shorten(title: &str) -> String {
    title.split_whitespace().take(8).collect::<Vec<_>>().join(" ")
}
