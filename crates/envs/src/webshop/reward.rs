//! What a purchase is worth: the graded reward of WebShop (Yao et al. 2022, section 3).
//!
//! reward = type · (attributes found + options matched + price kept) / (attributes + options + 1)

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::colour::{COLOURS, normalize_color};
use super::fuzzy::token_set_ratio;
use super::goal::{Goal, GoalOptions};
use super::nouns::title_nouns;
use super::product::Product;

/// Scores above this count as equal.
const ALIKE: u32 = 85;
/// Title score of a goal without nouns.
const NO_NOUNS_SCORE: f64 = 0.2;

/// The parts of a reward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reward {
    /// The whole, 0 to 1.
    pub total: f64,
    /// How much the product is of the kind asked for: 1, 0.5, 0.1 or 0.
    pub r_type: f64,
    /// Fraction of the attributes found.
    pub r_att: f64,
    /// Share of the attributes in the denominator.
    pub w_att: f64,
    /// Fraction of the options matched; `None` for a goal without options.
    pub r_option: Option<f64>,
    /// Share of the options in the denominator.
    pub w_option: Option<f64>,
    /// The price is within the cap.
    pub r_price: bool,
    /// Share of the price in the denominator.
    pub w_price: f64,
    /// Both products answer the same search.
    pub query_match: bool,
    /// Both share two levels of category.
    pub category_match: bool,
    /// Fraction of the goal's title nouns in the other title.
    pub title_score: f64,
}

/// The reward for buying `bought` at `price` with these option values, when `wanted` is the product the goal was made
/// from.
#[must_use]
pub fn reward(bought: &Product, wanted: &Product, goal: &Goal, price: f64, chosen: &[&str]) -> Reward {
    let (r_type, query_match, category_match, title_score) = kind(bought, wanted);
    let attributes = attribute_hits(bought, &goal.attributes);
    let options = option_hits(chosen, &goal.options);
    let r_price = price <= goal.price_upper;
    let (n_attributes, n_options) = (goal.attributes.len(), goal.options.len());
    let parts = (n_attributes + n_options + 1) as f64;
    let hits = attributes + options + usize::from(r_price);
    let part = |hits: usize, of: usize| if of == 0 { 0.0 } else { hits as f64 / of as f64 };
    Reward {
        total: hits as f64 / parts * r_type,
        r_type,
        r_att: part(attributes, n_attributes),
        w_att: n_attributes as f64 / parts,
        r_option: (n_options > 0).then(|| part(options, n_options)),
        w_option: (n_options > 0).then_some(n_options as f64 / parts),
        r_price,
        w_price: 1.0 / parts,
        query_match,
        category_match,
        title_score,
    }
}

/// The type score with what it is made of.
fn kind(bought: &Product, wanted: &Product) -> (f64, bool, bool, f64) {
    let query_match = bought.query == wanted.query;
    let levels = |product: &'_ Product| -> BTreeSet<String> {
        product.product_category.split('›').map(|level| level.trim().to_owned()).collect()
    };
    let category_match = levels(bought).intersection(&levels(wanted)).count() >= 2;
    let (have, want) = (nouns(bought), nouns(wanted));
    let title_score = if want.is_empty() {
        NO_NOUNS_SCORE
    } else {
        let have: BTreeSet<&String> = have.iter().collect();
        let common = want.iter().collect::<BTreeSet<_>>().intersection(&have).count();
        // Over the list with its repetitions, as in the original.
        common as f64 / want.len() as f64
    };
    // The later rules override the earlier ones, also where the searches are the same.
    let r_type = if title_score == 0.0 {
        0.0
    } else if title_score < 0.1 {
        0.1
    } else if !(query_match || category_match || title_score > 0.2) {
        0.5
    } else {
        1.0
    };
    (r_type, query_match, category_match, title_score)
}

fn nouns(product: &Product) -> Cow<'_, [String]> {
    match &product.nouns {
        Some(nouns) => Cow::Borrowed(nouns),
        None => Cow::Owned(title_nouns(&product.title)),
    }
}

/// How many of the goal's attributes the product has, by its list or in its text.
fn attribute_hits(bought: &Product, wanted: &[String]) -> usize {
    let mut texts: Option<[String; 3]> = None;
    wanted
        .iter()
        .filter(|attribute| {
            bought.attributes.iter().any(|own| token_set_ratio(own, attribute) > ALIKE)
                || texts
                    .get_or_insert_with(|| {
                        [
                            bought.title.to_lowercase(),
                            bought.bullets.join(" ").to_lowercase(),
                            bought.description.to_lowercase(),
                        ]
                    })
                    .iter()
                    .any(|text| text.contains(attribute.as_str()))
        })
        .count()
}

/// How many of the goal's options are among the chosen values.
fn option_hits(chosen: &[&str], wanted: &GoalOptions) -> usize {
    let chosen: Vec<&str> = chosen.iter().map(|value| normalize_color(value)).collect();
    let hit = |wanted: &str| chosen.iter().any(|value| token_set_ratio(value, wanted) > ALIKE);
    match wanted {
        GoalOptions::Values(values) => values.iter().filter(|value| hit(normalize_color(value))).count(),
        // The original compares with the pair of name and value: a colour has to equal one of the two, not to occur in
        // it.
        GoalOptions::Pairs(pairs) => pairs
            .iter()
            .filter(|(name, value)| match COLOURS.iter().find(|colour| *colour == name || *colour == value) {
                Some(colour) => hit(colour),
                None => hit(&format!("{name} {value}")),
            })
            .count(),
    }
}

/// Whether choosing a value counts as the option that a synthetic goal asks for. It does not where a colour word hides
/// in another word: `standard` is taken for `tan`.
#[must_use]
pub(super) fn counts_as_chosen(name: &str, value: &str) -> bool {
    option_hits(&[value], &GoalOptions::Pairs(vec![(name.to_owned(), value.to_owned())])) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(title: &str, query: &str, category: &str, attributes: &[&str]) -> Product {
        Product {
            title: title.to_owned(),
            query: query.to_owned(),
            product_category: category.to_owned(),
            attributes: attributes.iter().map(|a| (*a).to_owned()).collect(),
            description: "Hand washed".to_owned(),
            ..Product::default()
        }
    }

    fn goal(attributes: &[&str], options: &[(&str, &str)], price_upper: f64) -> Goal {
        Goal {
            product: 0,
            instruction_text: String::new(),
            base_instruction: String::new(),
            attributes: attributes.iter().map(|a| (*a).to_owned()).collect(),
            options: GoalOptions::Pairs(options.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()),
            price_upper,
        }
    }

    #[test]
    fn parts_by_hand() {
        let cap = product("Wool Cap", "caps", "Clothing › Caps", &["soft wool", "machine wash"]);
        let goal = goal(&["machine wash", "hand wash"], &[("size", "large"), ("color", "black | white")], 20.0);
        let all = reward(&cap, &cap, &goal, 20.0, &["large", "black | white"]);
        assert_eq!((all.total, all.r_type, all.r_att, all.r_option, all.r_price), (1.0, 1.0, 1.0, Some(1.0), true));
        // "hand wash" occurs in the description. Nothing chosen, too dear: 2 of 5.
        let bare = reward(&cap, &cap, &goal, 20.01, &[]);
        assert_eq!((bare.total, bare.r_option, bare.r_price, bare.w_option), (0.4, Some(0.0), false, Some(0.4)));
        // A value that holds the colour word is that colour, and matches the pair that has the word.
        assert_eq!(reward(&cap, &cap, &goal, 5.0, &["jet black"]).r_option, Some(0.5));
        let none = super::tests::goal(&[], &[], 5.0);
        let got = reward(&cap, &cap, &none, 5.0, &[]);
        assert_eq!((got.total, got.r_att, got.r_option, got.w_att), (1.0, 0.0, None, 0.0));
    }

    #[test]
    fn kinds() {
        let cap = product("red wool cap", "caps", "Clothing › Caps", &[]);
        let score = |other: Product| {
            let (r_type, query, category, title) = kind(&other, &cap);
            (r_type, query, category, (title * 100.0).round() / 100.0)
        };
        assert_eq!(score(product("blue felt cap", "caps", "", &[])), (1.0, true, false, 0.33));
        assert_eq!(score(product("cap", "hats", "", &[])), (1.0, false, false, 0.33));
        assert_eq!(score(product("lamp", "caps", "Clothing › Caps › Wool", &[])), (0.0, true, true, 0.0));
        let long = product("one cap among very many words that follow on and on a b c d e f g", "long", "", &[]);
        let (r_type, ..) = kind(&cap, &long);
        assert_eq!(r_type, 0.1);
        let five = product("cap b c d e", "five", "", &[]);
        assert_eq!(kind(&cap, &five).0, 0.5);
        // A goal without nouns scores 0.2, which is not above 0.2.
        let numbers = product("12 34", "numbers", "", &[]);
        assert_eq!(kind(&cap, &numbers).0, 0.5);
    }
}
