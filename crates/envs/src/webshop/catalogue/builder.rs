//! Makes products one by one.

use std::collections::HashSet;

use super::styles::{BASE_COLOURS, COLOUR_SHADES, FINISHES, SHADES};
use super::table::{Kind, Style, Tables};
use super::words::{BRAND_ENDS, BRAND_STARTS, EXTRAS, PLACES, QUALITIES, SENTENCES};
use crate::rng::PythonRandom;
use crate::webshop::product::{NO_ATTRIBUTE, Product, tag};
use crate::webshop::reward::counts_as_chosen;
use crate::webshop::title_nouns;

/// Numbers of values of an option, each as likely as the next.
const VALUE_COUNTS: [usize; 20] = [2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7, 8, 9, 10, 13, 18];
/// Words of a title, likewise.
const TITLE_WORDS: [usize; 20] = [8, 8, 9, 10, 12, 13, 14, 15, 17, 18, 18, 19, 20, 22, 23, 24, 25, 27, 29, 33];
/// Probability that the texts do not mention an attribute.
const UNTOLD: f64 = 0.25;
/// Numbers of attributes, with their weights.
const ATTRIBUTE_COUNTS: [(usize, u32); 13] = [
    (0, 185),
    (1, 191),
    (2, 189),
    (3, 134),
    (4, 120),
    (5, 65),
    (6, 36),
    (7, 27),
    (8, 16),
    (9, 10),
    (11, 10),
    (14, 8),
    (18, 9),
];
/// Numbers of attributes in an instruction, with their weights.
const ASKED_COUNTS: [(usize, u32); 7] = [(2, 179), (3, 113), (4, 71), (5, 14), (6, 18), (7, 12), (9, 8)];
/// Numbers of bullet points, with their weights.
const BULLET_COUNTS: [(usize, u32); 8] = [(1, 113), (2, 19), (3, 49), (4, 85), (5, 561), (6, 59), (7, 92), (8, 22)];
const ASIN_CHARS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Makes products.
pub(super) struct Builder {
    tables: Tables,
    draws: PythonRandom,
    asins: HashSet<String>,
}

/// What is decided about a product before its texts are written.
struct Facts {
    brand: String,
    noun: &'static str,
    traits: Vec<&'static str>,
    /// Attributes by where they stand in an instruction.
    attributes: [Vec<String>; 3],
    /// Those of them that the product's texts speak of; the public set leaves about a quarter unsaid.
    told: [Vec<String>; 3],
}

impl Facts {
    fn all_attributes(&self) -> impl Iterator<Item = &String> {
        self.attributes.iter().flatten()
    }
}

impl Builder {
    /// A builder whose products follow from the seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { tables: Tables::new(), draws: PythonRandom::new(seed), asins: HashSet::new() }
    }

    /// The next product.
    pub(super) fn product(&mut self) -> Product {
        let Self { tables, draws, asins } = self;
        let shares: Vec<(usize, u32)> = tables.departments.iter().enumerate().map(|(i, (n, _))| (i, *n)).collect();
        let (_, kinds) = &tables.departments[weighted(draws, &shares)];
        let kind = pick(draws, kinds);
        let style = &tables.styles[kind.style];
        let facts = facts(draws, kind, style);
        let title = title(draws, kind, style, &facts);
        let (price_tag, price) = price(draws, kind);
        let traits: HashSet<String> = style.traits.iter().map(|word| word.to_lowercase()).collect();
        let adjectives: HashSet<String> = QUALITIES.iter().map(|word| word.to_lowercase()).collect();
        let nouns = title_nouns(&title)
            .into_iter()
            .filter(|word| !traits.contains(word) && !adjectives.contains(word))
            .collect();
        let bullets = (0..weighted(draws, &BULLET_COUNTS)).map(|_| text(draws, style, &facts, 20.0, 260.0)).collect();
        let description = if draws.random() < 0.33 { String::new() } else { text(draws, style, &facts, 70.0, 1900.0) };
        let (instruction, instruction_attributes) = instruction(draws, kind, &facts).unzip();
        let mut path = kind.path.clone();
        path.push(word(draws, &kind.leaves));
        let attributes: Vec<String> = facts.all_attributes().cloned().collect();
        Product {
            asin: asin(draws, asins),
            title,
            description,
            bullets,
            price_tag,
            price,
            options: options(draws, tables, kind, style),
            category: kind.category.to_owned(),
            query: kind.query.to_owned(),
            product_category: path.join(" › "),
            attributes: if attributes.is_empty() { vec![NO_ATTRIBUTE.to_owned()] } else { attributes },
            instruction,
            instruction_attributes: instruction_attributes.unwrap_or_default(),
            human: Vec::new(),
            nouns: Some(nouns),
        }
    }
}

fn below(draws: &mut PythonRandom, n: usize) -> usize {
    draws.randbelow(n as u64) as usize
}

fn pick<'a, T>(draws: &mut PythonRandom, items: &'a [T]) -> &'a T {
    &items[below(draws, items.len())]
}

fn word(draws: &mut PythonRandom, words: &[&'static str]) -> &'static str {
    words[below(draws, words.len())]
}

fn weighted(draws: &mut PythonRandom, items: &[(usize, u32)]) -> usize {
    let total: u32 = items.iter().map(|(_, weight)| weight).sum();
    let mut at = draws.randbelow(u64::from(total)) as u32;
    for (item, weight) in items {
        match at.checked_sub(*weight) {
            Some(rest) => at = rest,
            None => return *item,
        }
    }
    0
}

/// An early item more likely than a late one: weights 1, 1/2, 1/3, …
fn early<'a, T>(draws: &mut PythonRandom, items: &'a [T]) -> &'a T {
    let total: f64 = (1..=items.len()).map(|i| 1.0 / i as f64).sum();
    let mut at = draws.random() * total;
    for (i, item) in items.iter().enumerate() {
        at -= 1.0 / (i + 1) as f64;
        if at < 0.0 {
            return item;
        }
    }
    &items[items.len() - 1]
}

fn asin(draws: &mut PythonRandom, taken: &mut HashSet<String>) -> String {
    loop {
        let mut asin = "B0".to_owned();
        asin.extend((0..8).map(|_| char::from(*pick(draws, ASIN_CHARS))));
        if taken.insert(asin.clone()) {
            return asin;
        }
    }
}

fn facts(draws: &mut PythonRandom, kind: &Kind, style: &Style) -> Facts {
    let brand = format!("{}{}", word(draws, &BRAND_STARTS), word(draws, &BRAND_ENDS));
    let noun = word(draws, &kind.nouns);
    let mut traits: Vec<&'static str> = style.traits.clone();
    draws.shuffle(&mut traits);
    let mut attributes: [Vec<String>; 3] = Default::default();
    let count = weighted(draws, &ATTRIBUTE_COUNTS);
    let mut tries = 0;
    while attributes.iter().map(Vec::len).sum::<usize>() < count && tries < 20 * count {
        tries += 1;
        let slot = weighted(draws, &[(0, 50), (1, 33), (2, 17)]);
        let last = noun.rsplit(' ').next().filter(|word| word.chars().all(char::is_alphabetic));
        let single: Vec<&str> = traits.iter().copied().filter(|word| !word.contains(' ')).collect();
        let attribute = match last {
            // The long tail: a trait with the noun.
            Some(last) if slot == 1 && !single.is_empty() && draws.random() < 0.3 => {
                format!("{} {last}", word(draws, &single))
            }
            _ => (*early(draws, &style.attributes[slot])).to_owned(),
        };
        if !attributes.iter().flatten().any(|known| *known == attribute) {
            attributes[slot].push(attribute);
        }
    }
    let told = attributes.clone().map(|mut list| {
        list.retain(|_| draws.random() >= UNTOLD);
        list
    });
    Facts { brand, noun, traits, attributes, told }
}

fn title(draws: &mut PythonRandom, kind: &Kind, style: &Style, facts: &Facts) -> String {
    let target = *pick(draws, &TITLE_WORDS);
    let mut title = facts.brand.clone();
    if let Some(audience) = ["Men's", "Women's"].into_iter().find(|who| kind.query.starts_with(&who.to_lowercase())) {
        title.push_str(&format!(" {audience}"));
    }
    if draws.random() < 0.5 {
        title.push_str(&format!(" {}", word(draws, &QUALITIES)));
    }
    title.push_str(&format!(" {} {}", capital(facts.traits[0]), capital(facts.noun)));
    let mut pieces: Vec<String> = facts.told[0].iter().map(|attribute| format!(", {}", capital(attribute))).collect();
    pieces.extend(facts.told[1].iter().map(|attribute| format!(" with {}", capital(attribute))));
    pieces.extend(facts.told[2].iter().map(|attribute| format!(" for {}", capital(attribute))));
    draws.shuffle(&mut pieces);
    // Where the attributes do not fill the title, more of its kind does.
    pieces.push(format!(" for {} and {}", word(draws, &PLACES), word(draws, &PLACES)));
    pieces.push(format!(", {} {}", capital(facts.traits[1 % facts.traits.len()]), capital(word(draws, &kind.nouns))));
    pieces.push(format!(" {}", word(draws, &EXTRAS)));
    pieces.push(format!(", {}", capital(word(draws, &style.attributes[0]))));
    pieces.push(format!(", {} {}", capital(word(draws, &kind.leaves)), word(draws, &EXTRAS)));
    pieces.push(format!(" with {}", capital(word(draws, &style.attributes[1]))));
    pieces.push(format!(", Ideal for {}, {} and {}", word(draws, &PLACES), word(draws, &PLACES), word(draws, &PLACES)));
    pieces.push(format!(", {} {} {}", facts.brand, word(draws, &QUALITIES), word(draws, &EXTRAS)));
    for piece in pieces {
        if title.split_whitespace().count() >= target {
            break;
        }
        title.push_str(&piece);
    }
    title
}

/// Every word with a capital.
fn capital(words: &str) -> String {
    let capitals = words.split(' ').map(|word| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
    });
    capitals.collect::<Vec<String>>().join(" ")
}

/// Sentences up to a length between these, short ones being more likely.
fn text(draws: &mut PythonRandom, style: &Style, facts: &Facts, low: f64, high: f64) -> String {
    let target = (low * (high / low).powf(draws.random())) as usize;
    let own: Vec<&String> = facts.told.iter().flatten().collect();
    let mut text = String::new();
    while text.len() < target {
        let mut attribute = || match own.len() {
            0 => word(draws, &style.attributes[1]),
            n => own[below(draws, n)].as_str(),
        };
        let (first, second) = (attribute(), attribute());
        let sentence = word(draws, &SENTENCES)
            .replace("{attr}", &first_capital(first))
            .replace("{attr2}", second)
            .replace("{trait}", word(draws, &facts.traits))
            .replace("{noun}", facts.noun)
            .replace("{brand}", &facts.brand);
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&first_capital(&sentence));
    }
    text
}

fn first_capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The price as shown and as paid: usual prices, the lower ones more often; some none, some a range.
fn price(draws: &mut PythonRandom, kind: &Kind) -> (String, f64) {
    let one = |draws: &mut PythonRandom| {
        let dollars = (kind.low * (kind.high / kind.low).powf(draws.random().powf(1.5))).floor();
        dollars + *pick(draws, &[0.99, 0.99, 0.99, 0.95, 0.49, 0.0, 0.5, 0.89])
    };
    let way = draws.random();
    if way < 0.089 {
        (tag(100.0), 100.0)
    } else if way < 0.182 {
        let (a, b) = (one(draws), one(draws));
        let (low, high) = (a.min(b), a.max(b));
        (format!("{} to {}", tag(low), tag(high)), draws.uniform(low, high))
    } else {
        let price = one(draws);
        (tag(price), price)
    }
}

/// The instruction and the attributes it asks for, for some of the products that have at least two.
fn instruction(draws: &mut PythonRandom, kind: &Kind, facts: &Facts) -> Option<(String, Vec<String>)> {
    let all: Vec<(usize, &String)> =
        facts.attributes.iter().enumerate().flat_map(|(slot, list)| list.iter().map(move |a| (slot, a))).collect();
    let (chance, count) = (draws.random(), weighted(draws, &ASKED_COUNTS));
    if all.len() < 2 || chance > 0.67 {
        return None;
    }
    let mut asked = draws.sample(all.len(), count);
    asked.sort_unstable();
    let slot = |wanted: usize| -> Vec<&str> {
        asked.iter().map(|&i| all[i]).filter(|(slot, _)| *slot == wanted).map(|(_, a)| a.as_str()).collect()
    };
    let mut text = "Find me ".to_owned();
    let (before, with, purpose) = (slot(0), slot(1), slot(2));
    if !before.is_empty() {
        text.push_str(&format!("{} ", before.join(", ")));
    }
    text.push_str(kind.query);
    for (word, list) in [("with", with), ("for", purpose)] {
        if !list.is_empty() {
            text.push_str(&format!(" {word} {}", list.join(", ")));
        }
    }
    Some((text, asked.iter().map(|&i| all[i].1.clone()).collect()))
}

/// How likely one, two and three options are, by department.
fn option_chances(kind: &Kind) -> [f64; 3] {
    match kind.category {
        "fashion" => [0.17, 0.55, 0.06],
        "garden" => [0.30, 0.08, 0.0],
        "beauty" => [0.27, 0.03, 0.0],
        "electronics" => [0.20, 0.03, 0.0],
        _ => [0.28, 0.05, 0.0],
    }
}

fn options(draws: &mut PythonRandom, tables: &Tables, kind: &Kind, style: &Style) -> Vec<(String, Vec<String>)> {
    let mut chance = draws.random();
    let mut count = 0;
    for (i, share) in option_chances(kind).into_iter().enumerate() {
        if chance < share {
            count = i + 1;
            break;
        }
        chance -= share;
    }
    let mut wanted: Vec<&str> = style.options.iter().copied().take(count).collect();
    if count == 1 && style.options.len() > 1 && draws.random() < 0.4 {
        wanted = vec![style.options[1]];
    }
    if draws.random() < 0.4 {
        wanted.reverse();
    }
    let rich = kind.category == "fashion";
    let mut taken: HashSet<String> = HashSet::new();
    let mut result: Vec<(String, Vec<String>)> = Vec::new();
    for option in wanted {
        let (name, mut values) = match tables.options.iter().find(|(known, ..)| *known == option) {
            Some((_, name, values)) => (*name, some_of(draws, values, rich)),
            None => ("color", colours(draws, option, rich)),
        };
        // A value has to count as what its goal asks for, and to belong to one option only.
        values.retain(|value| counts_as_chosen(name, value) && taken.insert(value.clone()));
        if !values.is_empty() && !result.iter().any(|(known, _)| known == name) {
            result.push((name.to_owned(), values));
        }
    }
    result
}

/// How many values an option has; things to wear have more.
fn value_count(draws: &mut PythonRandom, rich: bool) -> usize {
    let count = *pick(draws, &VALUE_COUNTS);
    if rich { count.max(*pick(draws, &VALUE_COUNTS)) } else { count }
}

/// Some of the values, the early ones being more likely, in the order of the list.
fn some_of(draws: &mut PythonRandom, values: &[&str], rich: bool) -> Vec<String> {
    let count = value_count(draws, rich).min(values.len());
    let mut chosen: HashSet<usize> = HashSet::new();
    let places: Vec<usize> = (0..values.len()).collect();
    while chosen.len() < count {
        chosen.insert(*early(draws, &places));
    }
    places.into_iter().filter(|i| chosen.contains(i)).map(|i| values[i].to_owned()).collect()
}

fn colours(draws: &mut PythonRandom, option: &str, rich: bool) -> Vec<String> {
    let mut count = value_count(draws, rich);
    let fixed: &[&str] = match option {
        "finish" => &FINISHES,
        "shade" => &SHADES,
        _ => &[],
    };
    if !fixed.is_empty() {
        return some_of(draws, fixed, rich);
    }
    if draws.random() < 0.06 {
        count = 20 + below(draws, 26);
    }
    let mut values: Vec<String> = Vec::new();
    let way = draws.random();
    while values.len() < count {
        let base = *early(draws, &BASE_COLOURS);
        let value = match draws.random() {
            chance if chance < 0.15 => format!("{} {base}", word(draws, &COLOUR_SHADES)),
            chance if chance < 0.25 => format!("{base} | {}", word(draws, &BASE_COLOURS)),
            _ if way < 0.15 => format!("{}-{base}", char::from(b'a' + (values.len() % 26) as u8)),
            _ if values.len() > 12 => format!("{} {}", word(draws, &COLOUR_SHADES), word(draws, &BASE_COLOURS)),
            _ => base.to_owned(),
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
