//! The pages of the shop as text, in the modes `text` and `text_rich`, and what can be clicked on them.

use super::session::{PageKind, Session, SubPage};
use super::shop::Shop;

/// Heading of the instruction.
const INSTRUCTION: &str = "Instruction:";
/// Labels of buttons.
const SEARCH: &str = "Search";
pub(super) const BACK_TO_SEARCH: &str = "Back to Search";
pub(super) const NEXT: &str = "Next >";
pub(super) const PREV: &str = "< Prev";
pub(super) const BUY_NOW: &str = "Buy Now";

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Just text.
    Text,
    Button,
    /// A value of an option.
    Label,
    /// A product on a page of results.
    Link,
}

/// A page: its pieces of text, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    nodes: Vec<(Kind, String)>,
}

impl Page {
    /// The page that a session shows.
    pub(super) fn of(shop: &Shop, session: &Session) -> Self {
        let mut page = Self::default();
        match session.page() {
            PageKind::Index => {
                page.text("WebShop");
                page.text("Instruction: ");
                page.text(&session.goal().instruction_text);
                page.button(SEARCH);
            }
            PageKind::Results => page.results(shop, session),
            PageKind::Item => page.item(shop, session),
            PageKind::Sub(sub) => page.sub(shop, session, sub),
            PageKind::Done => page.done(shop, session),
        }
        page
    }

    fn text(&mut self, text: &str) {
        self.nodes.push((Kind::Text, text.to_owned()));
    }

    fn button(&mut self, label: &str) {
        self.nodes.push((Kind::Button, label.to_owned()));
    }

    /// The instruction and the way back.
    fn head(&mut self, session: &Session) {
        self.text(INSTRUCTION);
        self.text(&session.goal().instruction_text);
        self.button(BACK_TO_SEARCH);
    }

    fn results(&mut self, shop: &Shop, session: &Session) {
        self.head(session);
        let number = session.page_number();
        self.text(&format!("Page {number} (Total results: {})", session.total_results()));
        if number > 1 {
            self.button(PREV);
        }
        self.button(NEXT);
        for product in session.shown(shop) {
            self.nodes.push((Kind::Link, product.asin.clone()));
            self.text(&product.title);
            self.text(&product.price_tag);
        }
    }

    fn item(&mut self, shop: &Shop, session: &Session) {
        self.head(session);
        self.button(PREV);
        let Some(product) = session.product(shop) else { return };
        for (name, values) in &product.options {
            self.text(name);
            self.nodes.extend(values.iter().map(|value| (Kind::Label, value.clone())));
        }
        self.text(&product.title);
        self.text(&format!("Price: {}", product.price_tag));
        self.text("Rating: N.A.");
        for sub in SubPage::ALL {
            if sub != SubPage::Attributes || shop.show_attrs() {
                self.button(sub.label());
            }
        }
        self.button(BUY_NOW);
    }

    fn sub(&mut self, shop: &Shop, session: &Session, sub: SubPage) {
        self.head(session);
        self.button(PREV);
        let Some(product) = session.product(shop) else { return };
        match sub {
            SubPage::Description => self.text(&product.description),
            // The template has a blank before each bullet point and each attribute.
            SubPage::Features => product.bullets.iter().for_each(|bullet| self.text(&format!(" {bullet}"))),
            // There are no reviews.
            SubPage::Reviews => {}
            SubPage::Attributes => {
                product.attributes.iter().for_each(|attribute| self.text(&format!(" {attribute}")));
                for fact in [&product.category, &product.query, &product.product_category] {
                    self.text(&format!(" {fact}"));
                }
            }
        }
    }

    /// The end. Its wording is ours; the facts and their labels are those of the original.
    fn done(&mut self, shop: &Shop, session: &Session) {
        self.text("Thank you for your purchase!");
        for label in ["Purchased", "asin"] {
            self.text(label);
        }
        self.text(session.product(shop).map_or("", |product| product.asin.as_str()));
        self.text("options");
        self.text(&safe_in_html(&options_json(session.options())));
        for label in ["Reward", "Your score (min 0.0, max 1.0)"] {
            self.text(label);
        }
        self.text(&format!("{:?}", session.reward().map_or(0.0, |reward| reward.total)));
    }

    /// What can be clicked: buttons, then products, then values, each once; buttons and products in lower case.
    pub(super) fn clickables(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for wanted in [Kind::Button, Kind::Link, Kind::Label] {
            for (kind, text) in self.nodes.iter().filter(|(kind, text)| *kind == wanted && !text.is_empty()) {
                let name = if *kind == Kind::Label { text.clone() } else { text.to_lowercase() };
                if seen.insert(name.clone()) {
                    all.push(name);
                }
            }
        }
        all
    }

    /// The mode `text`: the pieces without blanks around them, joined with ` [SEP] `.
    pub(super) fn to_text(&self) -> String {
        let pieces: Vec<&str> = self.visible().map(|(_, text)| text.trim_matches(is_space)).collect();
        pieces.join(" [SEP] ")
    }

    /// The mode `text_rich`: a line a piece, buttons and values marked, those clicked told in front.
    pub(super) fn to_rich_text(&self, shop: &Shop, session: &Session) -> String {
        let chosen = options_json(session.options());
        let on_item = matches!(session.page(), PageKind::Item);
        let mut clicked = Vec::new();
        let mut text = String::new();
        for (kind, piece) in self.visible() {
            let line = match kind {
                Kind::Text => piece.to_owned(),
                Kind::Button => format!("[button] {piece} [button_]"),
                Kind::Label if on_item && chosen.contains(&format!("\"{piece}\"")) => {
                    clicked.push(piece);
                    format!("  [clicked button] {piece} [clicked button_]")
                }
                Kind::Label => format!("  [button] {piece} [button_]"),
                Kind::Link if session.visited(shop, piece) => format!("\n[clicked button] {piece} [clicked button_]"),
                Kind::Link => format!("\n[button] {piece} [button_]"),
            };
            text.push_str(&line);
            text.push('\n');
        }
        // The last one stands first.
        let clicked: String = clicked.into_iter().rev().map(|piece| format!("You have clicked {piece}.\n")).collect();
        clicked + &text
    }

    /// The pieces that show: white space alone is one blank, and nothing if it breaks a line.
    fn visible(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.nodes.iter().filter(|(_, text)| !text.is_empty()).filter_map(|(kind, text)| {
            if !text.bytes().all(|byte| matches!(byte, b' ' | b'\n' | b'\t' | 0x0C | b'\r')) {
                Some((*kind, text.as_str()))
            } else if text.contains('\n') {
                None
            } else {
                Some((*kind, " "))
            }
        })
    }
}

impl SubPage {
    /// All of them, in the order of their buttons.
    pub const ALL: [Self; 4] = [Self::Description, Self::Features, Self::Reviews, Self::Attributes];

    /// The button that leads there.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Description => "Description",
            Self::Features => "Features",
            Self::Reviews => "Reviews",
            Self::Attributes => "Attributes",
        }
    }
}

/// Chosen options as Python's `json.dumps` writes them.
fn options_json(options: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        options.iter().map(|(name, value)| format!("{}: {}", json_string(name), json_string(value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in serde_json::Value::from(text).to_string().chars() {
        if c.is_ascii() && c != '\u{7F}' {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// JSON as the original's template filter writes it: what means something in HTML is escaped.
fn safe_in_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '&' | '<' | '>' | '\'' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// White space as Python's `strip` sees it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_as_python_writes_them() {
        let options = [("size".to_owned(), "42\"w x 5\u{2032}".to_owned()), ("color".to_owned(), "💖".to_owned())];
        assert_eq!(options_json(&options), r#"{"size": "42\"w x 5\u2032", "color": "\ud83d\udc96"}"#);
        assert_eq!(options_json(&[]), "{}");
    }

    #[test]
    fn white_space() {
        let mut page = Page::default();
        for text in ["", " ", " \n ", " a ", "\u{a0}"] {
            page.text(text);
        }
        assert_eq!(page.to_text(), " [SEP] a [SEP] ");
    }
}
