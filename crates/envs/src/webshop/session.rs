//! One shopper in the shop: where they are, what they have chosen, and what their next action does.
//!
//! What is here: the original's order of dispatch. What is not here: prompts, rewards of wrappers, the end of an
//! episode (a session goes on after a purchase, as the original's server does).

use std::collections::BTreeSet;

use super::action::Action;
use super::goal::Goal;
use super::page::{self, Page};
use super::product::Product;
use super::reward::Reward;
use super::shop::Shop;

/// Pages about one product beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubPage {
    /// The description.
    Description,
    /// The bullet points.
    Features,
    /// Reviews, of which there are none.
    Reviews,
    /// Attributes and categories; shown with `show_attrs` only.
    Attributes,
}

/// Where the shopper is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageKind {
    /// The page with the search bar.
    #[default]
    Index,
    /// A page of results.
    Results,
    /// A product's page.
    Item,
    /// A page about a product.
    Sub(SubPage),
    /// After the purchase.
    Done,
}

/// What an action did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Graded reward; 0 except for a purchase.
    pub reward: f64,
    /// Something was bought.
    pub done: bool,
    /// The action did something, if only showing the same page again.
    pub executed: bool,
}

/// A shopper's session.
#[derive(Clone, Debug)]
pub struct Session {
    goal: Goal,
    page: PageKind,
    keywords: String,
    /// Ranked products of the last search.
    results: Vec<usize>,
    page_number: usize,
    product: Option<usize>,
    /// Products looked at since the last visit of the first page.
    visited: BTreeSet<usize>,
    options: Vec<(String, String)>,
    reward: Option<Reward>,
}

impl Session {
    /// A shopper with this goal, before the first page.
    #[must_use]
    pub fn new(goal: Goal) -> Self {
        Self {
            goal,
            page: PageKind::Index,
            keywords: String::new(),
            results: Vec::new(),
            page_number: 1,
            product: None,
            visited: BTreeSet::new(),
            options: Vec::new(),
            reward: None,
        }
    }

    /// The goal.
    #[must_use]
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Where the shopper is.
    #[must_use]
    pub fn page(&self) -> PageKind {
        self.page
    }

    /// Number of the present page of results, from 1.
    #[must_use]
    pub fn page_number(&self) -> usize {
        self.page_number
    }

    /// Results of the last search, on all pages together.
    #[must_use]
    pub fn total_results(&self) -> usize {
        self.results.len()
    }

    /// Ranked products of the last search.
    #[must_use]
    pub fn results(&self) -> &[usize] {
        &self.results
    }

    /// What was searched for last.
    #[must_use]
    pub fn keywords(&self) -> &str {
        &self.keywords
    }

    /// Number of the product looked at.
    #[must_use]
    pub fn product_number(&self) -> Option<usize> {
        self.product
    }

    /// The product looked at.
    #[must_use]
    pub fn product<'s>(&self, shop: &'s Shop) -> Option<&'s Product> {
        shop.products().get(self.product?)
    }

    /// Chosen options, names with values, in the order of their first choice.
    #[must_use]
    pub fn options(&self) -> &[(String, String)] {
        &self.options
    }

    /// The reward of the purchase, after one.
    #[must_use]
    pub fn reward(&self) -> Option<&Reward> {
        self.reward.as_ref()
    }

    /// Whether the product of this identifier was looked at.
    #[must_use]
    pub fn visited(&self, shop: &Shop, asin: &str) -> bool {
        self.visited.iter().any(|&number| shop.products().get(number).is_some_and(|product| product.asin == asin))
    }

    /// Numbers of the products on the present page of results.
    #[must_use]
    pub fn shown_numbers(&self, shop: &Shop) -> &[usize] {
        let size = shop.results_per_page();
        let from = (self.page_number - 1).saturating_mul(size).min(self.results.len());
        &self.results[from..from.saturating_add(size).min(self.results.len())]
    }

    /// The products on the present page of results.
    pub fn shown<'s>(&'s self, shop: &'s Shop) -> impl Iterator<Item = &'s Product> {
        self.shown_numbers(shop).iter().filter_map(|&number| shop.products().get(number))
    }

    /// Identifies the state: equal keys, equal states.
    #[must_use]
    pub fn key(&self) -> String {
        format!(
            "{}\n{:?} {:?} {} {:?} {:?} {:?}",
            self.goal.instruction_text,
            self.page,
            self.keywords,
            self.page_number,
            self.product,
            self.visited,
            self.options
        )
    }

    /// Carries out an action; what is no action, or none here, does nothing.
    pub fn step(&mut self, shop: &Shop, action: &Action) -> Outcome {
        let nothing = Outcome { reward: 0.0, done: false, executed: false };
        let Some(argument) = &action.argument else { return nothing };
        match action.name.as_str() {
            // From any page, also after a purchase.
            "search" => self.search(shop, argument),
            "click" if argument != "search" && Page::of(shop, self).clickables().contains(argument) => {
                if let Some(reward) = self.click(shop, argument) {
                    return Outcome { reward, done: true, executed: true };
                }
            }
            _ => return nothing,
        }
        Outcome { reward: 0.0, done: false, executed: true }
    }

    fn search(&mut self, shop: &Shop, keywords: &str) {
        self.results = shop.search(keywords);
        keywords.clone_into(&mut self.keywords);
        self.show_results(1);
    }

    fn show_results(&mut self, number: usize) {
        self.page = PageKind::Results;
        self.page_number = number;
        self.product = None;
        self.options.clear();
    }

    /// Follows something that can be clicked. The reward, if it was a purchase.
    fn click(&mut self, shop: &Shop, name: &str) -> Option<f64> {
        let is = |label: &str| name == label.to_lowercase();
        let sub = SubPage::ALL.into_iter().find(|sub| is(sub.label()));
        if is(page::BUY_NOW) {
            let reward = shop.reward(&self.goal, self.product?, &self.options)?;
            self.reward = Some(reward);
            self.page = PageKind::Done;
            return Some(reward.total);
        } else if is(page::BACK_TO_SEARCH) {
            *self = Self::new(self.goal.clone());
        } else if is(page::NEXT) && self.page == PageKind::Results {
            self.show_results(self.page_number.saturating_add(1));
        } else if is(page::PREV) && self.page == PageKind::Results {
            self.show_results((self.page_number - 1).max(1));
        } else if is(page::PREV) && matches!(self.page, PageKind::Sub(_)) {
            self.page = PageKind::Item;
        } else if is(page::PREV) {
            self.show_results(self.page_number);
        } else if let Some(sub) = sub {
            self.page = PageKind::Sub(sub);
        } else if self.page == PageKind::Results {
            let shown = self.shown_numbers(shop).iter().copied();
            let found =
                shown.into_iter().find(|&i| shop.products().get(i).is_some_and(|p| p.asin.to_lowercase() == name));
            if let Some(number) = found {
                self.product = Some(number);
                self.visited.insert(number);
                self.page = PageKind::Item;
            }
        } else if let Some(option) = self.product(shop).and_then(|product| option_of(product, name)) {
            // Of several options with this value the last one is meant.
            let option = option.to_owned();
            match self.options.iter_mut().find(|(chosen, _)| *chosen == option) {
                Some((_, value)) => name.clone_into(value),
                None => self.options.push((option, name.to_owned())),
            }
        }
        None
    }
}

/// The name of the option that a value belongs to, the last one if there are several.
fn option_of<'p>(product: &'p Product, value: &str) -> Option<&'p str> {
    let found = product.options.iter().rev().find(|(_, values)| values.iter().any(|v| v == value));
    found.map(|(name, _)| name.as_str())
}
