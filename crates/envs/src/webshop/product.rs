//! A product as it is sold, made from a record of the public files.

use serde::Deserialize;
use serde_json::Value;

use crate::rng::PythonRandom;

/// The price of a product that names none.
const DEFAULT_PRICE: f64 = 100.0;
/// Longest identifier; longer ones are no products.
const LONGEST_ASIN: usize = 10;
/// The one attribute of a product without any.
pub const NO_ATTRIBUTE: &str = "DUMMY_ATTR";

/// A product record of `items_shuffle*.json`, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RawProduct {
    /// Identifier.
    pub asin: String,
    /// Title.
    pub name: Option<String>,
    /// Description.
    pub full_description: Option<String>,
    /// Bullet points: a list, or one as a string.
    pub small_description: Value,
    /// `$a`, `$a - $b`, empty or null.
    pub pricing: Value,
    /// Levels joined by ` › `.
    pub product_category: Option<String>,
    /// One of five departments.
    pub category: Option<String>,
    /// The search that found the product.
    pub query: Option<String>,
    /// Option name to a list of `{value}`; or the empty string.
    pub customization_options: Value,
}

/// What the attributes file says about a product.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AttributeRecord {
    /// All attributes.
    pub attributes: Option<Vec<String>>,
    /// Text of the synthetic goals.
    pub instruction: Option<String>,
    /// Attributes the synthetic goals ask for.
    pub instruction_attributes: Option<Vec<String>>,
}

/// An instruction that a person wrote.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HumanInstruction {
    /// Identifier of its product.
    pub asin: String,
    /// The text.
    pub instruction: String,
    /// Attributes asked for.
    pub instruction_attributes: Vec<String>,
    /// Option values asked for.
    pub instruction_options: Vec<String>,
}

/// A product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// Identifier, as shown and clicked.
    pub asin: String,
    /// Title.
    pub title: String,
    /// Description; may be empty.
    pub description: String,
    /// Bullet points.
    pub bullets: Vec<String>,
    /// The price as shown.
    pub price_tag: String,
    /// What is paid, in dollars.
    pub price: f64,
    /// Option names with their values, in the order shown; all in lower case.
    pub options: Vec<(String, Vec<String>)>,
    /// Department.
    pub category: String,
    /// The search that found the product, in lower case.
    pub query: String,
    /// Levels joined by ` › `.
    pub product_category: String,
    /// Attributes, never empty unless the file says so.
    pub attributes: Vec<String>,
    /// Text of the synthetic goals, for a product that has them.
    pub instruction: Option<String>,
    /// Attributes the synthetic goals ask for.
    pub instruction_attributes: Vec<String>,
    /// Instructions that people wrote.
    pub human: Vec<HumanInstruction>,
    /// Nouns of the title; `None`: by the word rule.
    pub nouns: Option<Vec<String>>,
}

impl Product {
    /// The product of a record, priced from `draws` where the record gives a range. `None`: the record is no product.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn from_raw(raw: RawProduct, draws: &mut PythonRandom) -> Result<Option<Self>, String> {
        if raw.asin == "nan" || raw.asin.chars().count() > LONGEST_ASIN {
            return Ok(None);
        }
        let prices = parse_prices(&raw.pricing)?;
        let (price_tag, price) = match prices[..] {
            [] => (tag(DEFAULT_PRICE), DEFAULT_PRICE),
            [one] => (tag(one), one),
            [low, high, ..] => (format!("{} to {}", tag(low), tag(high)), draws.uniform(low, high)),
        };
        let bullets = match raw.small_description {
            Value::Array(list) => list.into_iter().map(text_of).collect(),
            Value::Null => Vec::new(),
            one => vec![text_of(one)],
        };
        Ok(Some(Self {
            asin: raw.asin,
            title: raw.name.unwrap_or_default(),
            description: raw.full_description.unwrap_or_default(),
            bullets,
            price_tag,
            price,
            options: parse_options(raw.customization_options)?,
            category: raw.category.unwrap_or_default(),
            query: raw.query.unwrap_or_default().to_lowercase().trim().to_owned(),
            product_category: raw.product_category.unwrap_or_default(),
            attributes: vec![NO_ATTRIBUTE.to_owned()],
            ..Self::default()
        }))
    }

    /// Adds what the attributes file says.
    pub fn describe(&mut self, record: AttributeRecord) {
        if let Some(attributes) = record.attributes {
            self.attributes = attributes;
        }
        self.instruction = record.instruction;
        self.instruction_attributes = record.instruction_attributes.unwrap_or_default();
    }

    /// The text that is searched: title, description, first bullet point and options, in lower case.
    #[must_use]
    pub fn contents(&self) -> String {
        let options: Vec<String> =
            self.options.iter().map(|(name, values)| format!("{name}: {}", values.join(", "))).collect();
        let bullet = self.bullets.first().map_or("", String::as_str);
        [&self.title, self.description.as_str(), bullet, &options.join(", and ")].join(" ").to_lowercase()
    }
}

/// A price as shown: the shortest digits that read back the same, at least one behind the point.
#[must_use]
pub fn tag(price: f64) -> String {
    format!("${price:?}")
}

/// The numbers of a price text.
fn parse_prices(pricing: &Value) -> Result<Vec<f64>, String> {
    let text = match pricing {
        Value::Null => return Ok(Vec::new()),
        Value::String(text) => text,
        other => return Err(format!("`pricing`: expected a text such as \"$10.71 - $18.34\", found {other}")),
    };
    text.split('$')
        .skip(1)
        .take(2)
        .map(|piece| {
            let digits: String = piece.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
            digits.parse().map_err(|_| format!("`pricing`: expected amounts in dollars, found {text:?}"))
        })
        .collect()
}

fn parse_options(options: Value) -> Result<Vec<(String, Vec<String>)>, String> {
    let map = match options {
        Value::Object(map) => map,
        Value::Null => return Ok(Vec::new()),
        Value::String(text) if text.is_empty() => return Ok(Vec::new()),
        other => return Err(format!("`customization_options`: expected a mapping or \"\", found {other}")),
    };
    let mut result: Vec<(String, Vec<String>)> = Vec::with_capacity(map.len());
    for (name, contents) in map {
        let contents = match contents {
            Value::Null => continue,
            Value::Array(contents) => contents,
            other => return Err(format!("option `{name}`: expected a list of values or null, found {other}")),
        };
        let name = name.to_lowercase();
        let values: Result<Vec<String>, String> = contents
            .iter()
            .map(|content| match content.get("value") {
                Some(Value::String(value)) => Ok(value.trim().replace('/', " | ").to_lowercase()),
                _ => Err(format!("option `{name}`: expected entries with a text `value`, found {content}")),
            })
            .collect();
        match result.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = values?,
            None => result.push((name, values?)),
        }
    }
    Ok(result)
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn product(record: Value) -> Result<Option<Product>, String> {
        Product::from_raw(serde_json::from_value(record).expect("a record"), &mut PythonRandom::new(0))
    }

    #[test]
    fn prices() {
        for (pricing, tag, price) in [
            (json!(""), "$100.0", 100.0),
            (json!(null), "$100.0", 100.0),
            (json!("free"), "$100.0", 100.0),
            (json!("$10.99"), "$10.99", 10.99),
            (json!("$1,234.50"), "$1234.5", 1234.5),
            (json!("$15"), "$15.0", 15.0),
        ] {
            let product = product(json!({ "asin": "A", "pricing": pricing })).expect("valid").expect("a product");
            assert_eq!((product.price_tag.as_str(), product.price), (tag, price));
        }
        let ranged = product(json!({ "asin": "A", "pricing": "$10.71 - $18.34 - $99" })).unwrap().unwrap();
        assert_eq!(ranged.price_tag, "$10.71 to $18.34");
        // Python: random.Random(0).uniform(10.71, 18.34).
        assert!((ranged.price - (10.71 + 7.63 * 0.844_421_851_525_048_1)).abs() < 1e-9, "{}", ranged.price);
        for wrong in [json!("$1.2.3"), json!("$"), json!(5)] {
            assert!(product(json!({ "asin": "A", "pricing": wrong })).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_and_other_fields() {
        let made = product(json!({
            "asin": "B01", "name": "Mug", "query": " Mugs ", "small_description": "one",
            "customization_options": { "Size": [{ "value": " S/M " }], "Color": null, "size": [{ "value": "L" }] },
        }))
        .unwrap()
        .unwrap();
        assert_eq!(made.options, [("size".to_owned(), vec!["l".to_owned()])]);
        assert_eq!((made.query.as_str(), made.bullets.as_slice()), ("mugs", ["one".to_owned()].as_slice()));
        assert_eq!(made.attributes, [NO_ATTRIBUTE]);
        assert_eq!(made.contents(), "mug  one size: l");
        assert_eq!(product(json!({ "asin": "nan" })), Ok(None));
        assert_eq!(product(json!({ "asin": "12345678901" })), Ok(None));
        let wrong = product(json!({ "asin": "A", "customization_options": { "size": [{ "price": 3 }] } }));
        assert!(wrong.unwrap_err().contains("option `size`"));
    }
}
