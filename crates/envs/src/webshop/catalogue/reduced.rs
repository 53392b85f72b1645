//! The reduced set: what a model of a million parameters can read. A product is two words, a price and one or two
//! options; its identifier is a letter and a digit.
//!
//! Every pair of words is sold twice, at different prices, with the same options, so that a search for the two words
//! finds both and the cap decides between them.

use crate::rng::{PythonRandom, splitmix64};
use crate::webshop::product::{Product, tag};

const TRAITS: [&str; 10] = ["red", "old", "tall", "soft", "flat", "low", "high", "slim", "big", "new"];
const NOUNS: [&str; 13] =
    ["hat", "cup", "pan", "fan", "pot", "mat", "pad", "bed", "map", "card", "lamp", "ring", "boot"];
const COLOURS: [&str; 6] = ["blue", "green", "pink", "white", "gold", "teal"];
const SIZES: [&str; 4] = ["small", "medium", "large", "huge"];

/// Most products there can be: two of every pair of words.
pub const MOST_REDUCED: usize = 2 * TRAITS.len() * NOUNS.len();

/// `n` products of the reduced set (`None`: all), at most [`MOST_REDUCED`].
#[must_use]
pub fn reduced(seed: u64, n: Option<usize>) -> Vec<Product> {
    let mut draws = PythonRandom::new(splitmix64(seed));
    let mut asins: Vec<String> = ('A'..='Z').flat_map(|l| (0..10).map(move |d| format!("{l}{d}"))).collect();
    draws.shuffle(&mut asins);
    let mut pairs: Vec<(&str, &str)> = NOUNS.iter().flat_map(|&noun| TRAITS.iter().map(move |&t| (t, noun))).collect();
    draws.shuffle(&mut pairs);
    let mut products = Vec::with_capacity(MOST_REDUCED);
    for (kind, noun) in pairs {
        let options = options(&mut draws);
        // One cheap, one dear, in either order.
        let mut prices = [3 + draws.randbelow(35), 45 + draws.randbelow(50)];
        draws.shuffle(&mut prices);
        for price in prices {
            let phrase = format!("{kind} {noun}");
            let price = price as f64;
            products.push(Product {
                asin: asins.pop().unwrap_or_default(),
                title: phrase.clone(),
                price_tag: tag(price),
                price,
                options: options.clone(),
                category: "garden".to_owned(),
                query: noun.to_owned(),
                product_category: format!("Home › {noun}"),
                attributes: vec![phrase.clone()],
                instruction: Some(format!("Find me {phrase}")),
                instruction_attributes: vec![phrase],
                nouns: Some(vec![noun.to_owned()]),
                ..Product::default()
            });
        }
    }
    draws.shuffle(&mut products);
    products.truncate(n.unwrap_or(MOST_REDUCED));
    products
}

/// Colours, sizes or both.
fn options(draws: &mut PythonRandom) -> Vec<(String, Vec<String>)> {
    let way = draws.randbelow(10);
    let mut some = |name: &str, all: &[&str], count: usize| {
        let mut chosen = draws.sample(all.len(), count);
        chosen.sort_unstable();
        (name.to_owned(), chosen.into_iter().map(|i| all[i].to_owned()).collect::<Vec<_>>())
    };
    let mut options = Vec::new();
    if way < 7 {
        options.push(some("color", &COLOURS, 4));
    }
    if way >= 4 {
        options.push(some("size", &SIZES, 3));
    }
    options
}
