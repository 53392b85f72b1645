//! The tables of kinds, styles and options, taken apart.

use super::{kinds, kinds_more, styles};

/// A kind of thing.
pub(super) struct Kind {
    /// Department.
    pub(super) category: &'static str,
    pub(super) query: &'static str,
    /// Levels of the shop above the last.
    pub(super) path: Vec<&'static str>,
    pub(super) leaves: Vec<&'static str>,
    pub(super) nouns: Vec<&'static str>,
    pub(super) style: usize,
    /// Usual prices.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// What things are like.
pub(super) struct Style {
    name: &'static str,
    /// Attributes by where they stand in an instruction: before the noun, after "with", after "for".
    pub(super) attributes: [Vec<&'static str>; 3],
    pub(super) traits: Vec<&'static str>,
    pub(super) options: Vec<&'static str>,
}

/// All tables.
pub(super) struct Tables {
    /// Kinds by department, with the department's share.
    pub(super) departments: Vec<(u32, Vec<Kind>)>,
    pub(super) styles: Vec<Style>,
    /// Kind of option, name shown, values.
    pub(super) options: Vec<(&'static str, &'static str, Vec<&'static str>)>,
}

fn list(text: &'static str) -> Vec<&'static str> {
    text.split(';').map(str::trim).collect()
}

impl Tables {
    /// Takes the tables apart. A line with a field missing is left out; a test sees to it that there is none.
    pub(super) fn new() -> Self {
        let styles: Vec<Style> = styles::STYLES
            .split("\n\n")
            .filter_map(|block| {
                let [name, before, with, purpose, traits, options] = fields(block)?;
                let attributes = [list(before), list(with), list(purpose)];
                Some(Style { name, attributes, traits: list(traits), options: options.split(',').collect() })
            })
            .collect();
        let departments = [
            (24, "beauty", "Beauty & Personal Care", kinds::BEAUTY),
            (23, "electronics", "Electronics", kinds::ELECTRONICS),
            (22, "garden", "Home & Kitchen", kinds::GARDEN),
            (20, "fashion", "Clothing, Shoes & Jewelry", kinds_more::FASHION),
            (12, "grocery", "Grocery & Gourmet Food", kinds_more::GROCERY),
        ];
        let departments = departments.into_iter().map(|(share, category, root, lines)| {
            (share, lines.lines().filter_map(|line| kind(category, root, line, &styles)).collect())
        });
        let departments = departments.collect();
        let options = styles::OPTIONS.split("\n\n").filter_map(|block| {
            let [kind, name, values] = fields(block)?;
            Some((kind, name, list(values)))
        });
        Self { departments, styles, options: options.collect() }
    }
}

fn kind(category: &'static str, root: &'static str, line: &'static str, styles: &[Style]) -> Option<Kind> {
    let [query, path, leaves, nouns, style, low, high] = fields(line)?;
    Some(Kind {
        category,
        query,
        path: path.split('>').map(|level| if level.is_empty() { root } else { level }).collect(),
        leaves: list(leaves),
        nouns: list(nouns),
        style: styles.iter().position(|known| known.name == style)?,
        low: low.parse().ok()?,
        high: high.parse().ok()?,
    })
}

/// The fields of a line or block, if there are as many as expected.
fn fields<const N: usize>(text: &'static str) -> Option<[&'static str; N]> {
    split_plain(text).try_into().ok()
}

/// Parts the text at every `|`, except those with a blank before them, which belong to a value.
fn split_plain(text: &'static str) -> Vec<&'static str> {
    let mut fields = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices('|').filter(|(at, _)| !text[..*at].ends_with(' ')) {
        fields.push(text[from..at].trim());
        from = at + 1;
    }
    fields.push(text[from..].trim());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_lost_and_every_name_is_known() {
        let tables = Tables::new();
        let (lines, blocks) = (|text: &str| text.lines().count(), |text: &str| text.split("\n\n").count());
        assert_eq!(tables.styles.len(), blocks(styles::STYLES));
        assert_eq!(tables.options.len(), blocks(styles::OPTIONS));
        let kinds: Vec<usize> = tables.departments.iter().map(|(_, kinds)| kinds.len()).collect();
        let expected = [kinds::BEAUTY, kinds::ELECTRONICS, kinds::GARDEN, kinds_more::FASHION, kinds_more::GROCERY];
        assert_eq!(kinds, expected.map(lines));
        let own = ["colour", "shade", "finish"];
        for style in &tables.styles {
            for option in &style.options {
                let known = own.contains(option) || tables.options.iter().any(|(kind, ..)| kind == option);
                assert!(known, "{}: {option}", style.name);
            }
            for attribute in style.attributes.iter().flatten() {
                assert_eq!(attribute.split(' ').count(), 2, "{}: {attribute}", style.name);
            }
        }
        let mut queries: Vec<&str> = tables.departments.iter().flat_map(|(_, k)| k.iter().map(|k| k.query)).collect();
        queries.sort_unstable();
        let all = queries.len();
        queries.dedup();
        assert!(queries.len() == all && all >= 240, "{all}");
        assert!(tables.departments.iter().flat_map(|(_, k)| k).all(|k| 1.0 < k.low && k.low < k.high));
    }
}
