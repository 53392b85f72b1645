//! What the agent is told, as messages and as tokens.
//!
//! What is here: the wording and layout of system text and user blocks, and [`Conversation`], the token list that only
//! ever appends. What is not here: the chat template ([`Dialogue`]), environments, parsing.
//!
//! The `full` layout has the structure of RAGEN v2 (rules in the system text; per turn the state, the actions left and
//! the answer format; the reward of a turn before the next one). The `compact` layout says the same with as few tokens
//! as possible, for models that learn the task rather than read it.

use std::ops::Range;

use crate::dialogue::{Dialogue, DialogueError};
use crate::parse::{ANSWER_CLOSE, ANSWER_OPEN, ParseOptions, THINK_CLOSE, THINK_OPEN, forced_opening};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// RAGEN's: rules, state, actions left, answer format, rewards.
    #[default]
    Full,
    /// State, actions left, and from turn 2 on the last reward, to three decimals.
    Compact,
}

/// How much of the past a turn's context shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ContextWindow {
    /// The whole dialogue; one training sample an episode.
    #[default]
    Full,
    /// The last turns as a dialogue; one training sample a turn.
    Dialogue {
        /// Turns shown, the present one included; at least 1.
        turns: usize,
    },
    /// One user message that quotes the last turns; one training sample a turn.
    Memory {
        /// Turns shown, the present one included; at least 1.
        turns: usize,
    },
}

impl ContextWindow {
    /// The first of `played` earlier turns that the next turn's context shows, counted from 0.
    pub fn first_shown(self, played: usize) -> usize {
        match self {
            Self::Full => 0,
            Self::Dialogue { turns } | Self::Memory { turns } => (played + 1).saturating_sub(turns.max(1)).min(played),
        }
    }
}

/// What becomes of an episode that outgrows the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ContextOverflow {
    /// It ends as truncated.
    #[default]
    Truncate,
    /// Its oldest whole turns are left out until prompt and response fit.
    DropOldestTurns,
}

/// What the context is built from.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextOptions {
    /// How much is said.
    pub layout: Layout,
    /// How much of the past is shown.
    pub window: ContextWindow,
    /// What becomes of an episode that outgrows the context.
    pub overflow: ContextOverflow,
    /// Responses reason before they answer; the forced opening is `<think>`, else `<answer>`.
    pub enable_think: bool,
    /// Separates the actions of a turn.
    pub action_sep: String,
    /// Most actions a turn executes.
    pub max_actions_per_turn: usize,
    /// Replaces the opening sentence of the system text; the empty string leaves it out. `None`: the layout's own.
    pub system_prompt: Option<String>,
    /// Take the legend from the environment's own configuration. `false` shows the legend of the default
    /// configuration, as the reference implementation does.
    pub legend_from_env_config: bool,
}

impl Default for ContextOptions {
    fn default() -> Self {
        Self {
            layout: Layout::Full,
            window: ContextWindow::Full,
            overflow: ContextOverflow::Truncate,
            enable_think: true,
            action_sep: "||".into(),
            max_actions_per_turn: 2,
            system_prompt: None,
            legend_from_env_config: true,
        }
    }
}

impl ContextOptions {
    /// The same facts as the parser needs them.
    pub fn parse_options(&self) -> ParseOptions {
        ParseOptions {
            enable_think: self.enable_think,
            action_sep: self.action_sep.clone(),
            max_actions_per_turn: self.max_actions_per_turn,
        }
    }
}

/// What the agent is told about an environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnvPrompt {
    /// Rules and goal.
    pub instruction: String,
    /// Action names; empty when actions are free text.
    pub actions: Vec<String>,
    /// Symbols and their meaning.
    pub legend: Vec<(String, String)>,
    /// Most actions in an episode.
    pub max_actions_per_traj: usize,
    /// Longest response in tokens.
    pub max_tokens: usize,
}

/// The situation at the start of a turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnState<'a> {
    /// Turn number, from 1.
    pub turn: usize,
    /// The state as the environment renders it.
    pub state: &'a str,
    /// Actions left in the episode.
    pub actions_left: usize,
    /// What the previous turn brought; `None` at turn 1.
    pub previous: Option<PreviousTurn>,
}

/// An earlier turn as a memory quotes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuotedTurn<'a> {
    /// The state it began with.
    pub state: &'a str,
    /// The response as sampled.
    pub response: &'a [u32],
    /// Its reward, without penalties.
    pub reward: f64,
}

/// What the previous turn brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreviousTurn {
    /// Its reward, without penalties; `None` where the context does not show that turn, nor therefore its reward.
    pub reward: Option<f64>,
    /// It had no valid action.
    pub no_valid_action: bool,
}

/// What makes a tokenizer, template and format unusable together.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A tag of the answer format does not survive encoding and decoding.
    #[error(
        "the tag `{tag}` comes back from the tokenizer as `{found}`; the answer format needs tags that are ordinary \
         text or added tokens that are not special"
    )]
    Tag {
        /// The tag.
        tag: &'static str,
        /// What decoding its tokens gave.
        found: String,
    },
    /// The template's opening holds no tokens.
    #[error("the chat template gives no tokens for an opening; a sequence needs at least one given token")]
    EmptyOpening,
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// The tokenizer or the template failed.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
}

/// Builds conversations.
pub struct Context<'d> {
    dialogue: &'d dyn Dialogue,
    options: ContextOptions,
    /// The forced opening tag as tokens.
    opening_tag: Vec<u32>,
    /// The token that starts a turn in the template, when there is one.
    turn_start: Option<u32>,
}

impl<'d> Context<'d> {
    /// Checks that tokenizer, template and format fit together.
    ///
    /// # Errors
    /// [`ContextError`], before any compute is spent.
    pub fn new(dialogue: &'d dyn Dialogue, options: ContextOptions) -> Result<Self, ContextError> {
        if options.max_actions_per_turn == 0 {
            return Err(ContextError::Option("max_actions_per_turn is 0; a turn needs at least 1 action".into()));
        }
        for tag in [THINK_OPEN, THINK_CLOSE, ANSWER_OPEN, ANSWER_CLOSE] {
            let found = dialogue.decode(&dialogue.encode_tag(tag)?)?;
            if found.trim() != tag {
                return Err(ContextError::Tag { tag, found });
            }
        }
        let opening_tag = dialogue.encode_tag(forced_opening(options.enable_think))?;
        if dialogue.opening(None, "")?.is_empty() {
            return Err(ContextError::EmptyOpening);
        }
        // What follows a finished response up to the first control token is the template's, and that token starts the
        // next turn. Control tokens are those that decode to nothing.
        let mut turn_start = None;
        for token in dialogue.next_user("", true)? {
            if dialogue.decode(&[token])?.is_empty() {
                turn_start = Some(token);
                break;
            }
        }
        Ok(Self { dialogue, options, opening_tag, turn_start })
    }

    /// The options.
    pub fn options(&self) -> &ContextOptions {
        &self.options
    }

    /// The tokenizer and template.
    pub fn dialogue(&self) -> &'d dyn Dialogue {
        self.dialogue
    }

    /// The system text; `None` for none.
    pub fn system_text(&self, env: &EnvPrompt) -> Option<String> {
        let sentence = match (&self.options.system_prompt, self.options.layout) {
            (Some(text), _) => text.clone(),
            (None, Layout::Full) => "You are an agent that acts in an environment to reach its goal.".into(),
            (None, Layout::Compact) => String::new(),
        };
        let text = match self.options.layout {
            Layout::Full => join_lines([sentence, self.environment_prefix(env)]),
            Layout::Compact => sentence,
        };
        (!text.is_empty()).then_some(text)
    }

    /// Rules, legend and actions of an environment.
    fn environment_prefix(&self, env: &EnvPrompt) -> String {
        let mut lines = vec![env.instruction.clone()];
        if !env.legend.is_empty() {
            let legend: Vec<String> =
                env.legend.iter().map(|(symbol, meaning)| format!("{symbol}: {meaning}")).collect();
            lines.push(format!("Symbols in the state:\n{}", legend.join(", ")));
        }
        if !env.actions.is_empty() {
            lines.push(format!(
                "Actions you can take:\n{}\nAn episode allows at most {} actions. Separate several actions with \"{}\".",
                env.actions.join(", "),
                env.max_actions_per_traj,
                self.options.action_sep
            ));
        }
        join_lines(lines)
    }

    /// The user text of a turn.
    pub fn user_text(&self, env: &EnvPrompt, turn: &TurnState<'_>) -> String {
        match self.options.layout {
            Layout::Full => self.full_user_text(env, turn),
            Layout::Compact => {
                let mut text = String::new();
                if let Some(previous) = turn.previous {
                    if let Some(reward) = previous.reward {
                        text.push_str(&short_float(reward));
                        text.push('\n');
                    }
                    if previous.no_valid_action {
                        text.push_str("invalid\n");
                    }
                }
                text.push_str(&format!("{}\n{} left", turn.state, turn.actions_left));
                text
            }
        }
    }

    fn full_user_text(&self, env: &EnvPrompt, turn: &TurnState<'_>) -> String {
        let mut text = String::new();
        if let Some(reward) = turn.previous.and_then(|p| p.reward) {
            text.push_str(&format!("Reward:\n{}\n", python_float(reward)));
        }
        text.push_str(&format!("\nTurn {}:\nState:\n{}\n", turn.turn, turn.state));
        if turn.previous.is_some_and(|p| p.no_valid_action) {
            text.push_str("Your last answer held no valid action. Keep to the format and to the allowed actions.\n");
        }
        let format = if self.options.enable_think {
            "<think>your thoughts</think><answer>your answer</answer>"
        } else {
            "<answer>your answer</answer>"
        };
        text.push_str(&format!(
            "Actions left: {}. Reply in exactly this format and add nothing else: {format} Use at most {} tokens.\n",
            turn.actions_left, env.max_tokens
        ));
        text
    }

    /// The user text of a turn that quotes earlier ones: a memory in words, for contexts without a dialogue. `quoted`
    /// are the turns just before the present one, in order; their responses are read as text, as the policy wrote them.
    ///
    /// # Errors
    /// [`DialogueError`] when a response cannot be decoded.
    pub fn memory_text(
        &self,
        env: &EnvPrompt,
        quoted: &[QuotedTurn<'_>],
        turn: &TurnState<'_>,
    ) -> Result<String, DialogueError> {
        let mut text = String::new();
        let full = self.options.layout == Layout::Full;
        if full && !quoted.is_empty() {
            text.push_str(&format!("{} turns are behind you; shown: the last {}.\n", turn.turn - 1, quoted.len()));
        }
        let opening = forced_opening(self.options.enable_think);
        for (i, past) in quoted.iter().enumerate() {
            let response = self.dialogue.decode(past.response)?;
            let response = response.trim_end();
            if full {
                let reward = python_float(past.reward);
                let number = turn.turn - quoted.len() + i;
                text.push_str(&format!(
                    "\nTurn {number}:\nState:\n{}\nResponse:\n{opening}{response}\nReward:\n{reward}\n---\n",
                    past.state
                ));
            } else {
                let reward = short_float(past.reward);
                text.push_str(&format!("{}\n{opening}{response}\n{reward}\n", past.state));
            }
        }
        // The rewards shown stand with their turns.
        let previous = turn.previous.map(|p| PreviousTurn { reward: None, ..p });
        text.push_str(&self.user_text(env, &TurnState { previous, ..*turn }));
        Ok(text)
    }

    /// Starts a conversation: everything up to where the first response begins.
    ///
    /// # Errors
    /// [`DialogueError`] when a text cannot be encoded.
    pub fn begin(&self, env: &EnvPrompt, turn: &TurnState<'_>) -> Result<Conversation, DialogueError> {
        self.begin_with(env, &self.user_text(env, turn))
    }

    /// Starts a conversation with this user text.
    ///
    /// # Errors
    /// [`DialogueError`] when a text cannot be encoded.
    pub fn begin_with(&self, env: &EnvPrompt, user: &str) -> Result<Conversation, DialogueError> {
        let system = self.system_text(env);
        let mut conversation = Conversation { closed: true, ..Conversation::default() };
        conversation.give(&self.dialogue.opening(system.as_deref(), user)?);
        conversation.give(&self.opening_tag);
        Ok(conversation)
    }

    /// Appends the next user text, up to where the next response begins. Returns the range of what was appended.
    ///
    /// # Errors
    /// [`DialogueError`] when the text cannot be encoded.
    pub fn next_turn(
        &self,
        conversation: &mut Conversation,
        env: &EnvPrompt,
        turn: &TurnState<'_>,
    ) -> Result<Range<usize>, DialogueError> {
        let start = conversation.tokens.len();
        let user = self.user_text(env, turn);
        conversation.give(&self.dialogue.next_user(&user, conversation.closed)?);
        conversation.give(&self.opening_tag);
        Ok(start..conversation.tokens.len())
    }

    /// Appends a sampled response. Returns its range.
    pub fn respond(&self, conversation: &mut Conversation, response: &[u32]) -> Range<usize> {
        conversation.append_response(response, true, self.dialogue.end_of_turn())
    }

    /// Appends a response that nobody sampled (an earlier, imperfect turn of a demonstration). Returns its range.
    pub fn respond_given(&self, conversation: &mut Conversation, response: &[u32]) -> Range<usize> {
        conversation.append_response(response, false, self.dialogue.end_of_turn())
    }

    /// A response in the agent's own format, after the forced opening tag, ended by the end-of-turn token.
    ///
    /// # Errors
    /// [`DialogueError`] when the text cannot be encoded.
    pub fn write_response(&self, reasoning: &str, actions: &[String]) -> Result<Vec<u32>, DialogueError> {
        let answer = actions.join(&format!(" {} ", self.options.action_sep));
        let text = if self.options.enable_think {
            format!("{reasoning}{THINK_CLOSE}{ANSWER_OPEN}{answer}{ANSWER_CLOSE}")
        } else {
            format!("{answer}{ANSWER_CLOSE}")
        };
        let mut tokens = self.dialogue.encode(&text)?;
        tokens.push(self.dialogue.end_of_turn());
        Ok(tokens)
    }

    /// Which tokens the reference implementation trains: from after the turn-start token of every assistant turn up
    /// to and including the next turn-start token, that is, template tokens too. For comparisons only.
    pub fn template_mask(&self, tokens: &[u32], responses: &[Range<usize>]) -> Vec<bool> {
        let mut mask = vec![false; tokens.len()];
        let mut previous_end = 0;
        for (i, response) in responses.iter().enumerate() {
            let next = responses.get(i + 1).map_or(tokens.len(), |r| r.start);
            let is_start = |t: &u32| Some(*t) == self.turn_start;
            let header = tokens[previous_end..response.start].iter().rposition(is_start).map_or(0, |p| p + 1);
            let tail = tokens[response.end..next].iter().position(is_start).map_or(0, |p| p + 1);
            for flag in &mut mask[previous_end + header..response.end + tail] {
                *flag = true;
            }
            previous_end = response.end;
        }
        // The first token has nothing before it to be predicted from.
        if let Some(first) = mask.first_mut() {
            *first = false;
        }
        mask
    }
}

/// Tokens of a conversation. Append only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    tokens: Vec<u32>,
    sampled: Vec<bool>,
    /// The last response ended with the end-of-turn token.
    closed: bool,
    /// How many tokens a generation session already has.
    submitted: usize,
}

impl Conversation {
    /// All tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Per token, whether it was sampled.
    pub fn sampled(&self) -> &[bool] {
        &self.sampled
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens a session does not have yet, which from now on count as submitted.
    pub fn take_unsubmitted(&mut self) -> Vec<u32> {
        let given = self.tokens[self.submitted..].to_vec();
        self.submitted = self.tokens.len();
        given
    }

    /// No session holds any of the tokens.
    pub(crate) fn forget_submitted(&mut self) {
        self.submitted = 0;
    }

    /// Whether a generation session has none of the tokens: it needs a sequence of its own.
    pub fn is_new(&self) -> bool {
        self.submitted == 0
    }

    fn give(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
        self.sampled.resize(self.tokens.len(), false);
    }

    fn append_response(&mut self, tokens: &[u32], sampled: bool, end_of_turn: u32) -> Range<usize> {
        let start = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        self.sampled.resize(self.tokens.len(), sampled);
        self.closed = tokens.last() == Some(&end_of_turn);
        // A session that sampled these tokens holds them already.
        self.submitted = self.tokens.len();
        start..self.tokens.len()
    }
}

/// A float in few tokens: three decimals at most. A sum of rewards like -0.30000000000000004 would take nineteen.
fn short_float(x: f64) -> String {
    let rounded = (x * 1e3).round() / 1e3;
    python_float(if rounded.is_finite() { rounded } else { x })
}

/// A float as Python's `repr` writes it: the shortest digits that read back the same, an exponent below 1e-4 and from
/// 1e16 on.
pub fn python_float(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let magnitude = x.abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        return format!("{x:?}");
    }
    let scientific = format!("{x:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => scientific,
    }
}

fn join_lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
