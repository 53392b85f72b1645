//! The pieces of a conversation as token ids.
//!
//! What is here: what the context needs from a tokenizer and a chat template, as a trait, and its implementation for
//! the real ones. What is not here: what is said.

/// Turns the parts of a conversation into tokens. A conversation only ever appends: what [`Dialogue::next_user`] gives
/// goes behind everything that is there.
pub trait Dialogue {
    /// The beginning: an optional system text, the first user text, and the assistant header. Control tokens come from
    /// the template only, whatever the texts contain.
    fn opening(&self, system: Option<&str>, first_user: &str) -> Vec<u32>;
    /// What follows a response: the next user text and the assistant header. When the response was not `closed` by the
    /// end-of-turn token, that token comes first.
    fn next_user(&self, user: &str, closed: bool) -> Vec<u32>;
    /// Encodes plain text; nothing in it becomes a control token.
    fn encode(&self, text: &str) -> Vec<u32>;
    /// Encodes one of the format's own tags, which may have a token of its own.
    fn encode_tag(&self, tag: &str) -> Vec<u32>;
    /// Decodes without control tokens.
    fn decode(&self, tokens: &[u32]) -> String;
    /// The token that ends a turn.
    fn end_of_turn(&self) -> u32;
}
