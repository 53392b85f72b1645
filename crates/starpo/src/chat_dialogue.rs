//! A [`Dialogue`] of a model's own tokenizer and chat template.

use std::collections::BTreeSet;

use ragen_model::chat::{ChatError, ChatTemplate};
use ragen_model::tokenizer::Tokenizer;
use ragen_model::turn_pieces::{RenderingMode, TurnPieces};

use crate::dialogue::{Dialogue, DialogueError};

/// A tokenizer and the pieces of a chat template.
pub struct ChatDialogue {
    tokenizer: Tokenizer,
    pieces: TurnPieces,
    control: BTreeSet<u32>,
}

impl ChatDialogue {
    /// Reads the pieces of a template. A template that rewrites its own history is used without the rewriting, and
    /// a warning says so.
    ///
    /// # Errors
    /// [`ChatError`] when the template cannot be used for conversations that only append.
    pub fn new(tokenizer: Tokenizer, template: &ChatTemplate) -> Result<Self, ChatError> {
        let pieces = TurnPieces::derive(template, &tokenizer)?;
        if let RenderingMode::AppendOnlyFallback { reason } = &pieces.mode {
            tracing::warn!("conversations differ from the chat template's own rendering: {reason}");
        }
        let control = tokenizer.control_ids().collect();
        Ok(Self { tokenizer, pieces, control })
    }

    /// With the template that came with the tokenizer.
    ///
    /// # Errors
    /// [`ChatError`], also when it came with none.
    pub fn of_tokenizer(tokenizer: Tokenizer) -> Result<Self, ChatError> {
        let template = ChatTemplate::of_tokenizer(&tokenizer)?;
        Self::new(tokenizer, &template)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The pieces of the template.
    pub fn pieces(&self) -> &TurnPieces {
        &self.pieces
    }
}

fn failed(error: impl std::fmt::Display) -> DialogueError {
    DialogueError(error.to_string())
}

impl Dialogue for ChatDialogue {
    fn opening(&self, system: Option<&str>, first_user: &str) -> Result<Vec<u32>, DialogueError> {
        self.pieces.opening(system, first_user, &self.tokenizer).map_err(failed)
    }

    fn next_user(&self, user: &str, closed: bool) -> Result<Vec<u32>, DialogueError> {
        self.pieces.next_user(user, &self.tokenizer, closed).map_err(failed)
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, DialogueError> {
        self.tokenizer.encode(text, false).map_err(failed)
    }

    fn decode(&self, tokens: &[u32]) -> Result<String, DialogueError> {
        let content: Vec<u32> = tokens.iter().copied().filter(|t| !self.control.contains(t)).collect();
        self.tokenizer.decode(&content, false).map_err(failed)
    }

    fn end_of_turn(&self) -> u32 {
        self.pieces.end_of_turn
    }
}

#[cfg(test)]
#[path = "chat_dialogue_tests.rs"]
mod tests;
