//! What an episode's policy has read and said, turn by turn: the conversation that goes on, and the tokens to train.
//!
//! What is here: which earlier turns a turn's context shows ([`ContextWindow`], [`ContextOverflow`]), and the division
//! of an episode into training samples. What is not here: wording ([`crate::context`]), playing ([`crate::rollout`]).
//!
//! A sample is one sequence in which everything that is trained was sampled in exactly the context that stands before
//! it. As long as the dialogue only appends, an episode is one sample. A context that leaves something out begins a new
//! one: earlier responses in it are given tokens (the sampled ids, never text encoded again), because they are trained
//! where they were sampled. Samples lie one behind the other in one list, so that every sampled token is in it once.

use std::ops::Range;

use crate::context::{
    Context, ContextOverflow, ContextWindow, Conversation, EnvPrompt, PreviousTurn, QuotedTurn, TurnState,
};
use crate::dialogue::DialogueError;
use crate::policy::Sequence;

/// How long contexts may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Longest context in tokens, the response included.
    pub context: usize,
    /// Tokens that are kept free for a response before turns are dropped.
    pub response: usize,
}

/// A turn that waits for its response.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTurn {
    /// Its given tokens since the previous response; all those before the response where a sample begins.
    pub prompt: Range<usize>,
    /// Its user text.
    pub user: String,
    /// Earlier turns that its context, unlike that of the turn before, leaves out for want of room.
    pub dropped: usize,
}

/// A turn that is over.
#[derive(Clone, Debug)]
struct Past {
    state: String,
    actions_left: usize,
    response: Vec<u32>,
    /// What came of it; known when the next turn opens.
    brought: Option<PreviousTurn>,
}

/// The tokens of an episode in the making.
#[derive(Clone, Debug)]
pub struct Transcript {
    room: Room,
    /// What the policy sees now.
    conversation: Conversation,
    /// The first turn that the conversation shows, from 0.
    first: usize,
    past: Vec<Past>,
    /// State and actions left of the open turn.
    open: (String, usize),
    tokens: Vec<u32>,
    sampled: Vec<bool>,
    sample_starts: Vec<usize>,
    /// Where the last response ends.
    end: usize,
}

impl Transcript {
    /// Nothing has been said.
    pub fn new(room: Room) -> Self {
        Self {
            room,
            conversation: Conversation::default(),
            first: 0,
            past: Vec::new(),
            open: (String::new(), 0),
            tokens: Vec::new(),
            sampled: Vec::new(),
            sample_starts: Vec::new(),
            end: 0,
        }
    }

    /// Number of tokens of all samples.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether nothing has been said.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Number of tokens that the policy sees now.
    pub fn context_len(&self) -> usize {
        self.conversation.len()
    }

    /// The present context, for a generation session.
    pub fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    /// Opens the next turn: everything up to where its response begins.
    ///
    /// # Errors
    /// [`DialogueError`] when a text cannot be encoded.
    pub fn open(
        &mut self,
        context: &Context<'_>,
        env: &EnvPrompt,
        state: &str,
        actions_left: usize,
        previous: Option<PreviousTurn>,
    ) -> Result<OpenTurn, DialogueError> {
        if let Some(last) = self.past.last_mut() {
            last.brought = previous;
        }
        self.open = (state.to_owned(), actions_left);
        let (window, played) = (context.options().window, self.past.len());
        // What has been left out once stays out: the rest has only grown.
        let wanted = window.first_shown(played).max(self.first);
        let before = self.conversation.len();
        let grows = played > 0 && wanted == self.first && !matches!(window, ContextWindow::Memory { .. });
        let mut user = if grows {
            let mut conversation = std::mem::take(&mut self.conversation);
            let turn = self.turn(played, wanted);
            context.next_turn(&mut conversation, env, &turn)?;
            let user = context.user_text(env, &turn);
            self.conversation = conversation;
            user
        } else {
            self.rebuild(context, env, wanted)?
        };
        let mut first = wanted;
        if context.options().overflow == ContextOverflow::DropOldestTurns {
            while first < played && self.conversation.len().saturating_add(self.room.response) > self.room.context {
                first += 1;
                user = self.rebuild(context, env, first)?;
            }
        }
        self.first = first;
        let start = self.tokens.len();
        let appends = grows && first == wanted && window == ContextWindow::Full;
        if !appends {
            self.sample_starts.push(start);
        }
        let new = if appends { before } else { 0 };
        self.tokens.extend_from_slice(&self.conversation.tokens()[new..]);
        self.sampled.resize(self.tokens.len(), false);
        Ok(OpenTurn { prompt: start..self.tokens.len(), user, dropped: first - wanted })
    }

    /// Turn `t` as a context that begins with turn `first` shows it.
    fn turn(&self, t: usize, first: usize) -> TurnState<'_> {
        let (state, actions_left) = match self.past.get(t) {
            Some(past) => (past.state.as_str(), past.actions_left),
            None => (self.open.0.as_str(), self.open.1),
        };
        let brought = t.checked_sub(1).and_then(|before| self.past.get(before)).and_then(|past| past.brought);
        let reward = |p: PreviousTurn| p.reward.filter(|_| t > first);
        TurnState {
            turn: t + 1,
            state,
            actions_left,
            previous: brought.map(|p| PreviousTurn { reward: reward(p), ..p }),
        }
    }

    /// Builds the context of the open turn anew, from turn `first` on. Returns the turn's user text.
    fn rebuild(&mut self, context: &Context<'_>, env: &EnvPrompt, first: usize) -> Result<String, DialogueError> {
        let played = self.past.len();
        if let ContextWindow::Memory { .. } = context.options().window {
            let quoted: Vec<QuotedTurn<'_>> = self.past[first..]
                .iter()
                .map(|past| QuotedTurn {
                    state: &past.state,
                    response: &past.response,
                    reward: past.brought.and_then(|p| p.reward).unwrap_or(0.0),
                })
                .collect();
            let user = context.memory_text(env, &quoted, &self.turn(played, first))?;
            self.conversation = context.begin_with(env, &user)?;
            return Ok(user);
        }
        let mut conversation = context.begin(env, &self.turn(first, first))?;
        for (t, past) in self.past.iter().enumerate().skip(first) {
            context.respond_given(&mut conversation, &past.response);
            context.next_turn(&mut conversation, env, &self.turn(t + 1, first))?;
        }
        // No session has any of it.
        conversation.forget_submitted();
        self.conversation = conversation;
        Ok(context.user_text(env, &self.turn(played, first)))
    }

    /// Ends the open turn with a sampled response. Returns its range.
    pub fn respond(&mut self, context: &Context<'_>, response: &[u32]) -> Range<usize> {
        context.respond(&mut self.conversation, response);
        self.close(response, true)
    }

    /// Ends the open turn with a response that nobody sampled. Returns its range.
    pub fn respond_given(&mut self, context: &Context<'_>, response: &[u32]) -> Range<usize> {
        context.respond_given(&mut self.conversation, response);
        self.close(response, false)
    }

    fn close(&mut self, response: &[u32], sampled: bool) -> Range<usize> {
        let start = self.tokens.len();
        self.tokens.extend_from_slice(response);
        self.end = self.tokens.len();
        self.sampled.resize(self.end, sampled);
        let (state, actions_left) = std::mem::take(&mut self.open);
        self.past.push(Past { state, actions_left, response: response.to_vec(), brought: None });
        start..self.end
    }

    /// All tokens up to the end of the last response (a prompt that was never answered teaches nothing), whether each
    /// was sampled, and where the samples begin.
    pub fn finish(mut self) -> (Vec<u32>, Vec<bool>, Vec<usize>) {
        self.tokens.truncate(self.end);
        self.sampled.truncate(self.end);
        self.sample_starts.retain(|start| *start < self.end);
        (self.tokens, self.sampled, self.sample_starts)
    }

    /// The samples of the first `len` tokens in which something was sampled, each up to the last token that was.
    pub fn into_sequences(mut self, len: usize) -> Vec<Sequence> {
        self.end = self.end.min(len);
        let (tokens, sampled, starts) = self.finish();
        let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
        let samples = starts.iter().zip(ends).filter_map(|(start, end)| {
            let last = sampled[*start..end].iter().rposition(|s| *s)?;
            let range = *start..*start + last + 1;
            Some(Sequence { tokens: tokens[range.clone()].to_vec(), sampled: sampled[range].to_vec() })
        });
        samples.collect()
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
