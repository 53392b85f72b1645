//! What the shopper is asked to buy: goals, their price caps, their order.
//!
//! A goal is kept as two numbers and written out when it is asked for: the full catalogue has millions.

use std::collections::HashMap;

use super::product::Product;
use crate::rng::PythonRandom;

/// The cap of a goal without one.
pub const NO_CAP: f64 = 1_000_000.0;
/// Seed of the order of goals.
const SHUFFLE_SEED: u64 = 233;
/// Most goals there may be.
const MOST_GOALS: usize = 100_000_000;

/// Options a goal asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum GoalOptions {
    /// Names with values: synthetic goals.
    Pairs(Vec<(String, String)>),
    /// Values only: goals that people wrote.
    Values(Vec<String>),
}

impl GoalOptions {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values asked for.
    #[must_use]
    pub fn values(&self) -> Vec<&str> {
        match self {
            Self::Pairs(pairs) => pairs.iter().map(|(_, value)| value.as_str()).collect(),
            Self::Values(values) => values.iter().map(String::as_str).collect(),
        }
    }
}

/// A goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Number of the product it was made from.
    pub product: usize,
    /// The whole text that the shopper is given.
    pub instruction_text: String,
    /// The same without options and price.
    pub base_instruction: String,
    /// Attributes asked for.
    pub attributes: Vec<String>,
    /// Options asked for.
    pub options: GoalOptions,
    /// Highest price, in dollars.
    pub price_upper: f64,
}

/// A goal in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    product: u32,
    /// The combination of options, or the instruction of a person.
    which: u32,
}

/// All goals, in the order in which they are numbered.
#[derive(Clone, Debug, Default)]
pub struct Goals {
    entries: Vec<Entry>,
    /// Caps of synthetic goals, by product; of goals that people wrote, by entry before the shuffle.
    caps: HashMap<(u32, u32), f64>,
    human: bool,
}

impl Goals {
    /// The goals of these products in the original's order: shuffled with its fixed seed. Caps are drawn from `draws`.
    ///
    /// # Errors
    /// When a product has more combinations of options than can be counted.
    pub fn new(products: &[Product], human: bool, draws: &mut PythonRandom) -> Result<(Self, PythonRandom), String> {
        let mut goals = Self { human, ..Self::default() };
        for (number, product) in products.iter().enumerate() {
            let id = u32::try_from(number).map_err(|_| "more than 4 billion products".to_owned())?;
            if human {
                for (which, instruction) in (0..).zip(&product.human) {
                    if !instruction.instruction_attributes.is_empty() {
                        goals.caps.insert((id, which), price_cap(product.price, draws));
                        goals.entries.push(Entry { product: id, which });
                    }
                }
            } else if product.instruction.is_some() {
                let cap = price_cap(product.price, draws);
                let combinations =
                    product.options.iter().try_fold(1usize, |n, (_, values)| n.checked_mul(values.len()));
                let total = combinations.and_then(|n| n.checked_add(goals.entries.len()));
                if total.is_none_or(|total| total > MOST_GOALS) {
                    return Err(format!(
                        "product {} has too many combinations of options: expected at most {MOST_GOALS} goals in all",
                        product.asin
                    ));
                }
                goals.caps.insert((id, 0), cap);
                goals.entries.extend((0..combinations.unwrap_or(0) as u32).map(|which| Entry { product: id, which }));
            }
        }
        let mut order = PythonRandom::new(SHUFFLE_SEED);
        order.shuffle(&mut goals.entries);
        Ok((goals, order))
    }

    /// Number of goals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The goal of this number; `None` beyond the last.
    #[must_use]
    pub fn get(&self, products: &[Product], number: usize) -> Option<Goal> {
        self.entries.get(number).and_then(|entry| self.write_out(products, *entry))
    }

    /// Keeps the goals that `keep` wants, in their order.
    pub fn retain(&mut self, products: &[Product], mut keep: impl FnMut(&Goal) -> bool) {
        let entries = std::mem::take(&mut self.entries);
        self.entries =
            entries.into_iter().filter(|entry| self.write_out(products, *entry).is_some_and(|g| keep(&g))).collect();
    }

    /// Keeps `limit` goals, drawn by weight from `draws` (the stream behind the shuffle), as the original's
    /// `limit_goals` does; all of them when there are no more. The original's draw is one beside its weight, which is
    /// kept: the goal before the drawn one lends it its weight.
    ///
    /// # Errors
    /// When fewer goals can be drawn at all.
    pub fn limit(&mut self, products: &[Product], limit: usize, draws: &mut PythonRandom) -> Result<(), String> {
        if limit >= self.len() {
            return Ok(());
        }
        let weights = self.weights(products);
        let last = weights.len() - 1;
        let reachable = (1..=last).filter(|&i| weights[i - 1] > 0.0 || i == last && weights[last] > 0.0).count();
        if limit > reachable {
            return Err(format!(
                "`limit_goals`: expected at most {reachable}, the goals that can be drawn, found {limit}"
            ));
        }
        let mut cumulative = vec![0.0];
        for weight in &weights {
            cumulative.push(cumulative[cumulative.len() - 1] + weight);
        }
        let total = cumulative[cumulative.len() - 1];
        let mut taken = vec![false; self.len()];
        let mut kept = Vec::with_capacity(limit);
        while kept.len() < limit {
            let position = draws.uniform(0.0, total);
            let index = cumulative.partition_point(|sum| *sum <= position).min(last);
            if !std::mem::replace(&mut taken[index], true) {
                kept.push(self.entries[index]);
            }
        }
        self.entries = kept;
        Ok(())
    }

    /// Weight of each goal: the mean over its attributes of one over the number of goals that ask for the attribute; 1
    /// for goals that people wrote.
    #[must_use]
    pub fn weights(&self, products: &[Product]) -> Vec<f64> {
        if self.human {
            return vec![1.0; self.len()];
        }
        let attributes = |entry: &Entry| &products[entry.product as usize].instruction_attributes;
        let mut counts: HashMap<&str, f64> = HashMap::new();
        for attribute in self.entries.iter().flat_map(attributes) {
            *counts.entry(attribute).or_default() += 1.0;
        }
        self.entries
            .iter()
            .map(|entry| {
                let list = attributes(entry);
                list.iter().map(|attribute| 1.0 / counts[attribute.as_str()]).sum::<f64>() / list.len().max(1) as f64
            })
            .collect()
    }

    fn write_out(&self, products: &[Product], entry: Entry) -> Option<Goal> {
        let number = entry.product as usize;
        let product = products.get(number)?;
        let cap_key = (entry.product, if self.human { entry.which } else { 0 });
        let price_upper = self.caps.get(&cap_key).copied().unwrap_or(NO_CAP);
        let price_text = if price_upper < NO_CAP {
            format!(", and price lower than {price_upper:.2} dollars")
        } else {
            String::new()
        };
        if self.human {
            let instruction = product.human.get(entry.which as usize)?;
            let base = instruction.instruction.trim_matches('.').to_owned();
            return Some(Goal {
                product: number,
                instruction_text: format!("{base}{price_text}"),
                base_instruction: base,
                attributes: instruction.instruction_attributes.clone(),
                options: GoalOptions::Values(instruction.instruction_options.clone()),
                price_upper,
            });
        }
        let base = product.instruction.clone()?;
        let pairs = combination(&product.options, entry.which as usize);
        let options: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let options = if options.is_empty() { String::new() } else { format!(" with {}", options.join(", and ")) };
        Some(Goal {
            product: number,
            instruction_text: format!("{base}{options}{price_text}"),
            base_instruction: base,
            attributes: product.instruction_attributes.clone(),
            options: GoalOptions::Pairs(pairs),
            price_upper,
        })
    }
}

/// The combination of this number: names in order, the last one varying fastest.
fn combination(options: &[(String, Vec<String>)], mut number: usize) -> Vec<(String, String)> {
    let mut sorted: Vec<&(String, Vec<String>)> = options.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut pairs = Vec::with_capacity(sorted.len());
    for (name, values) in sorted.into_iter().rev() {
        if values.is_empty() {
            continue;
        }
        pairs.push((name.clone(), values[number % values.len()].clone()));
        number /= values.len();
    }
    pairs.reverse();
    pairs
}

/// The larger of two different ones among the first four multiples of ten (up to 990) above the price, or none.
fn price_cap(price: f64, draws: &mut PythonRandom) -> f64 {
    let candidates: Vec<f64> = (1..100).map(|i| 10.0 * f64::from(i)).filter(|p| *p > price).take(4).collect();
    if candidates.len() < 2 {
        return NO_CAP;
    }
    draws.sample(candidates.len(), 2).into_iter().map(|i| candidates[i]).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webshop::product::HumanInstruction;

    fn product(asin: &str, price: f64, options: &[(&str, &[&str])], attributes: &[&str]) -> Product {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Product {
            asin: asin.to_owned(),
            price,
            options: options.iter().map(|(name, values)| ((*name).to_owned(), words(values))).collect(),
            instruction: Some(format!("Find me {asin}")),
            instruction_attributes: words(attributes),
            ..Product::default()
        }
    }

    fn texts(goals: &Goals, products: &[Product]) -> Vec<String> {
        let mut texts: Vec<String> =
            (0..goals.len()).map(|i| goals.get(products, i).expect("a goal").instruction_text).collect();
        texts.sort();
        texts
    }

    #[test]
    fn synthetic_goals_are_the_combinations() {
        let products = [
            product("cup", 985.0, &[("size", &["s", "l"]), ("color", &["red", "tan"])], &["a b"]),
            product("hat", 2000.0, &[], &["a b", "c d"]),
            Product::default(),
        ];
        let (goals, _) = Goals::new(&products, false, &mut PythonRandom::new(0)).expect("countable");
        // Above 985 only 990 is left: no cap.
        let expected = [
            "Find me cup with color: red, and size: l",
            "Find me cup with color: red, and size: s",
            "Find me cup with color: tan, and size: l",
            "Find me cup with color: tan, and size: s",
            "Find me hat",
        ];
        assert_eq!(texts(&goals, &products), expected);
        let mut weights = goals.weights(&products);
        weights.sort_by(f64::total_cmp);
        assert_eq!(weights, [0.2, 0.2, 0.2, 0.2, (0.2 + 1.0) / 2.0]);
        assert!(goals.get(&products, 5).is_none());
    }

    #[test]
    fn caps_are_the_second_to_fourth_multiple_of_ten() {
        let mut draws = PythonRandom::new(3);
        let mut counts = [0i64; 4];
        for _ in 0..6000 {
            let cap = price_cap(20.0, &mut draws);
            counts[(cap / 10.0) as usize - 3] += 1;
        }
        assert_eq!(counts[0], 0);
        for (count, expected) in counts[1..].iter().zip([1000i64, 2000, 3000]) {
            assert!((count - expected).abs() < 150, "{counts:?}");
        }
        assert_eq!(price_cap(975.0, &mut draws), 990.0);
        assert_eq!((price_cap(980.0, &mut draws), price_cap(f64::NAN, &mut draws)), (NO_CAP, NO_CAP));
    }

    #[test]
    fn goals_of_people() {
        let mut cup = product("cup", 12.0, &[], &[]);
        let say = |text: &str, attributes: &[&str]| HumanInstruction {
            instruction: text.to_owned(),
            instruction_attributes: attributes.iter().map(|a| (*a).to_owned()).collect(),
            instruction_options: vec!["red".to_owned()],
            ..HumanInstruction::default()
        };
        cup.human = vec![say("no attributes", &[]), say("a cup, please..", &["dishwasher safe"])];
        let products = [cup];
        let (goals, _) = Goals::new(&products, true, &mut PythonRandom::new(1)).expect("countable");
        assert_eq!(goals.len(), 1);
        let goal = goals.get(&products, 0).expect("a goal");
        assert!(goal.instruction_text.starts_with("a cup, please, and price lower than "), "{goal:?}");
        assert_eq!(goal.options, GoalOptions::Values(vec!["red".to_owned()]));
        assert_eq!(goals.weights(&products), [1.0]);
    }

    #[test]
    fn limits_and_filters() {
        let values: Vec<String> = (0..50).map(|i| i.to_string()).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let products = [product("cup", 5.0, &[("size", &values)], &["a b"]), product("hat", 5.0, &[], &[])];
        let (all, draws) = Goals::new(&products, false, &mut PythonRandom::new(0)).expect("countable");
        let mut some = all.clone();
        some.limit(&products, 20, &mut draws.clone()).expect("enough");
        assert_eq!(some.len(), 20);
        let mut different: Vec<(u32, u32)> = some.entries.iter().map(|e| (e.product, e.which)).collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 20);
        // The first goal is never drawn, so 51 minus it, minus the one behind the goal without weight.
        assert!(all.clone().limit(&products, 50, &mut draws.clone()).unwrap_err().contains("at most 49"));
        let mut unlimited = all.clone();
        unlimited.limit(&products, 51, &mut draws.clone()).expect("all");
        assert_eq!(unlimited.entries, all.entries);
        let mut hats = all;
        hats.retain(&products, |goal| goal.product == 1);
        assert_eq!(hats.len(), 1);
    }
}
