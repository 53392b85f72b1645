//! The pieces of a conversation as token ids.
//!
//! What is here: what the context needs from a tokenizer and a chat template, as a trait. What is not here: the real
//! ones ([`crate::chat_dialogue`]), what is said ([`crate::context`]).

#[cfg(test)]
#[path = "scripted.rs"]
pub(crate) mod scripted;

/// A text that the tokenizer or the template cannot turn into tokens, or tokens that cannot be turned into text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DialogueError(pub String);

/// Turns the parts of a conversation into tokens. A conversation only ever appends: what [`Dialogue::next_user`] gives
/// goes behind everything that is there.
pub trait Dialogue {
    /// The beginning: an optional system text, the first user text, and the assistant header. Control tokens come from
    /// the template only, whatever the texts contain.
    ///
    /// # Errors
    /// [`DialogueError`] when the texts cannot be encoded.
    fn opening(&self, system: Option<&str>, first_user: &str) -> Result<Vec<u32>, DialogueError>;

    /// What follows a response: the next user text and the assistant header. When the response was not `closed` by the
    /// end-of-turn token, that token comes first.
    ///
    /// # Errors
    /// [`DialogueError`] when the text cannot be encoded.
    fn next_user(&self, user: &str, closed: bool) -> Result<Vec<u32>, DialogueError>;

    /// Encodes text; nothing in it becomes a control token. The answer format's tags may have tokens of their own.
    ///
    /// # Errors
    /// [`DialogueError`] when the text cannot be encoded.
    fn encode(&self, text: &str) -> Result<Vec<u32>, DialogueError>;

    /// Encodes one of the answer format's own tags, which may have a token of its own.
    ///
    /// # Errors
    /// [`DialogueError`] when the tag cannot be encoded.
    fn encode_tag(&self, tag: &str) -> Result<Vec<u32>, DialogueError> {
        self.encode(tag)
    }

    /// Decodes without control tokens.
    ///
    /// # Errors
    /// [`DialogueError`] when a token is unknown.
    fn decode(&self, tokens: &[u32]) -> Result<String, DialogueError>;

    /// The token that ends a turn.
    fn end_of_turn(&self) -> u32;
}
