//! Multi-turn conversations that only ever append tokens.
//!
//! What is here: [`TurnPieces`], the literal texts that stand around the contents of a conversation, found by rendering
//! a chat template with marker contents, and checked by rendering whole conversations; and the token ids of an opening
//! and of each further user turn.
//! What is not here: rendering itself (`chat`), sampling.
//!
//! A template is free to rewrite what it rendered before: to drop earlier reasoning, to trim whitespace. Training
//! cannot: the tokens of a turn stay as they were sampled. Where a template rewrites, its pieces are used without the
//! rewriting, and [`RenderingMode::AppendOnlyFallback`] says why.

use crate::chat::{ChatError, ChatTemplate, Message, TemplateVariables};
use crate::tokenizer::Tokenizer;

/// Whether conversations look exactly as the template renders them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderingMode {
    /// The appended conversation equals the template's rendering in every probe.
    Template,
    /// The appended conversation differs from the template's rendering in later turns (or in whitespace).
    AppendOnlyFallback {
        /// What the template does that appending cannot.
        reason: String,
    },
}

/// How a conversation opens before the first user content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrefix {
    /// Text before the system content.
    pub before: String,
    /// Text between the system content and the first user content.
    pub after: String,
}

/// The literal pieces of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPieces {
    /// Around a given system message, or why the template takes none.
    pub with_system: Result<SystemPrefix, String>,
    /// Before the first user content when no system message is given (may hold the template's default one), or why the
    /// template does not open that way.
    pub without_system: Result<String, String>,
    /// From the end of a user content to where the assistant's message begins.
    pub generation_header: String,
    /// From the end of an assistant message to the next user content, without the end-of-turn token it starts with.
    pub between: String,
    /// Text of the end-of-turn token.
    pub end_of_turn_text: String,
    /// The token that closes an assistant message.
    pub end_of_turn: u32,
    /// How the pieces relate to the template.
    pub mode: RenderingMode,
}

/// Marker contents. Letters and digits only, so that no template trims or escapes them.
const SYSTEM: &str = "Zq7SystemMarkerZq7";
const USER: [&str; 3] = ["Zq7UserMarkerOneZq7", "Zq7UserMarkerTwoZq7", "Zq7UserMarkerThreeZq7"];
const ASSISTANT: [&str; 2] = ["Zq7AssistantMarkerOneZq7", "Zq7AssistantMarkerTwoZq7"];

impl TurnPieces {
    /// Finds the pieces of a template.
    ///
    /// # Errors
    /// [`ChatError::NotAppendOnly`] when neither the template nor its token family gives pieces to append.
    pub fn derive(template: &ChatTemplate, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        match derive(template, tokenizer) {
            Ok(mut pieces) => {
                if let Err(reason) = verify(template, &pieces) {
                    pieces.mode = RenderingMode::AppendOnlyFallback { reason };
                }
                Ok(pieces)
            }
            Err(reason) => by_family(template, tokenizer, &reason).ok_or_else(|| ChatError::NotAppendOnly {
                reason: format!("{reason}, and it uses neither ChatML's nor Llama 3's tokens"),
                remedy: "replace the model's chat template, for example by a ChatML one".into(),
            }),
        }
    }

    /// Tokens of a conversation up to where the assistant's first message begins.
    ///
    /// # Errors
    /// [`ChatError::Opening`] when the template has no such opening.
    pub fn opening(&self, system: Option<&str>, user: &str, tokenizer: &Tokenizer) -> Result<Vec<u32>, ChatError> {
        let mut parts = self.opening_parts(system, user)?;
        parts.push(Part::Literal(&self.generation_header));
        encode_parts(&parts, tokenizer)
    }

    /// Tokens to append after an assistant message: the rest of its closing, the user's content, and the header of the
    /// assistant's next message. `closed` says that the end-of-turn token was sampled; otherwise it is given first.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`].
    pub fn next_user(&self, user: &str, tokenizer: &Tokenizer, closed: bool) -> Result<Vec<u32>, ChatError> {
        let mut ids = Vec::new();
        if !closed {
            ids.push(self.end_of_turn);
        }
        let parts = [Part::Literal(&self.between), Part::Content(user), Part::Literal(&self.generation_header)];
        ids.extend(encode_parts(&parts, tokenizer)?);
        Ok(ids)
    }

    /// Tokens of an assistant message as the policy would sample it: its text, then the end-of-turn token.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`].
    pub fn response(&self, text: &str, tokenizer: &Tokenizer) -> Result<Vec<u32>, ChatError> {
        let mut ids = tokenizer.encode(text, false)?;
        ids.push(self.end_of_turn);
        Ok(ids)
    }

    /// The text of a conversation in these pieces: `users` has as many entries as `assistants`, or one more (then the
    /// text ends with the generation header).
    ///
    /// # Errors
    /// [`ChatError::Opening`].
    pub fn text(&self, system: Option<&str>, users: &[&str], assistants: &[&str]) -> Result<String, ChatError> {
        let mut out = String::new();
        for (turn, user) in users.iter().enumerate() {
            if turn == 0 {
                for part in self.opening_parts(system, user)? {
                    out.push_str(part.text());
                }
            } else {
                out.push_str(&self.end_of_turn_text);
                out.push_str(&self.between);
                out.push_str(user);
            }
            out.push_str(&self.generation_header);
            if let Some(assistant) = assistants.get(turn) {
                out.push_str(assistant);
            }
        }
        Ok(out)
    }

    fn opening_parts<'a>(&'a self, system: Option<&'a str>, user: &'a str) -> Result<Vec<Part<'a>>, ChatError> {
        match system {
            Some(system) => {
                let prefix = self
                    .with_system
                    .as_ref()
                    .map_err(|reason| ChatError::Opening { which: "with a system message", reason: reason.clone() })?;
                Ok(vec![
                    Part::Literal(&prefix.before),
                    Part::Content(system),
                    Part::Literal(&prefix.after),
                    Part::Content(user),
                ])
            }
            None => {
                let prefix = self.without_system.as_ref().map_err(|reason| ChatError::Opening {
                    which: "without a system message",
                    reason: reason.clone(),
                })?;
                Ok(vec![Part::Literal(prefix), Part::Content(user)])
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Part<'a> {
    /// From the template: control tokens count.
    Literal(&'a str),
    /// From outside: control tokens are text.
    Content(&'a str),
}

impl<'a> Part<'a> {
    fn text(self) -> &'a str {
        match self {
            Part::Literal(text) | Part::Content(text) => text,
        }
    }
}

/// Encodes literal and content parts: control tokens come only from literals, and the text between two of them is
/// encoded in one piece across the border of literal and content, as it is when a rendered conversation is encoded.
fn encode_parts(parts: &[Part<'_>], tokenizer: &Tokenizer) -> Result<Vec<u32>, ChatError> {
    let mut ids = Vec::new();
    let mut run = String::new();
    for part in parts {
        match *part {
            Part::Content(text) => run.push_str(text),
            Part::Literal(text) => {
                let mut rest = text;
                while let Some((start, end, id)) = tokenizer.find_control(rest) {
                    run.push_str(&rest[..start]);
                    if !run.is_empty() {
                        ids.extend(tokenizer.encode(&run, false)?);
                        run.clear();
                    }
                    ids.push(id);
                    rest = &rest[end..];
                }
                run.push_str(rest);
            }
        }
    }
    if !run.is_empty() {
        ids.extend(tokenizer.encode(&run, false)?);
    }
    Ok(ids)
}

fn render(template: &ChatTemplate, messages: &[Message], prompt: bool) -> Result<String, String> {
    template.render(messages, prompt, &TemplateVariables::new()).map_err(|e| e.to_string())
}

/// Splits a rendering at markers that must occur once each, in order: as many pieces as markers, plus one.
fn split_at_markers<'a>(text: &'a str, markers: &[&str]) -> Result<Vec<&'a str>, String> {
    let mut rest = text;
    let mut pieces = Vec::with_capacity(markers.len() + 1);
    for marker in markers {
        if text.matches(marker).count() != 1 {
            return Err("the template drops, repeats or changes a message".into());
        }
        let (before, after) =
            rest.split_once(marker).ok_or_else(|| "the template reorders the messages".to_string())?;
        pieces.push(before);
        rest = after;
    }
    pieces.push(rest);
    Ok(pieces)
}

fn derive(template: &ChatTemplate, tokenizer: &Tokenizer) -> Result<TurnPieces, String> {
    let mut header = None;
    let with_system = render(template, &[Message::system(SYSTEM), Message::user(USER[0])], true).and_then(|text| {
        let pieces = split_at_markers(&text, &[SYSTEM, USER[0]])?;
        header = Some(pieces[2].to_string());
        Ok(SystemPrefix { before: pieces[0].to_string(), after: pieces[1].to_string() })
    });
    let without_system = render(template, &[Message::user(USER[0])], true).and_then(|text| {
        let pieces = split_at_markers(&text, &[USER[0]])?;
        header.get_or_insert_with(|| pieces[1].to_string());
        Ok(pieces[0].to_string())
    });
    let generation_header = match (header, &with_system, &without_system) {
        (Some(header), ..) => header,
        (None, Err(a), _) => return Err(format!("no opening can be rendered ({a})")),
        (None, Ok(_), _) => return Err("no opening can be rendered".into()),
    };
    if generation_header.is_empty() {
        return Err("nothing stands between the user's and the assistant's text".into());
    }
    let mut conversation = vec![Message::user(USER[0]), Message::assistant(ASSISTANT[0]), Message::user(USER[1])];
    if without_system.is_err() {
        conversation.insert(0, Message::system(SYSTEM));
    }
    let text = render(template, &conversation, true)?;
    let pieces = split_at_markers(&text, &[USER[0], ASSISTANT[0], USER[1]])?;
    let closing = pieces[2];
    let (end_of_turn_text, end_of_turn) = match tokenizer.find_control(closing) {
        Some((0, end, id)) => (closing[..end].to_string(), id),
        _ => return Err("no control token closes an assistant message".into()),
    };
    Ok(TurnPieces {
        with_system,
        without_system,
        generation_header,
        between: closing[end_of_turn_text.len()..].to_string(),
        end_of_turn_text,
        end_of_turn,
        mode: RenderingMode::Template,
    })
}

/// Renders whole conversations and compares them with the appended pieces, turn by turn.
fn verify(template: &ChatTemplate, pieces: &TurnPieces) -> Result<(), String> {
    const THINK: &str = "<think>The box is above.\nI push it.</think><answer>Up || Up</answer>";
    const SPACED_USER: &str = "  \nTurn 2:\nState:\n##_P\n ";
    let probes: [(&str, [&str; 3], [&str; 2]); 3] = [
        ("does not repeat its own pieces from turn to turn", USER, ASSISTANT),
        ("rewrites earlier assistant messages that contain <think>", USER, [THINK, "<think>\n</think>\n\nDown"]),
        (
            "trims or changes whitespace around messages",
            ["\nfirst ", SPACED_USER, "third\n\n"],
            [" leading and trailing ", "\n\nline\n"],
        ),
    ];
    for (reason, users, assistants) in &probes {
        let mut systems = Vec::new();
        if pieces.with_system.is_ok() {
            systems.push(Some(if reason.starts_with("trims") { " system\n" } else { SYSTEM }));
        }
        if pieces.without_system.is_ok() {
            systems.push(None);
        }
        for system in systems {
            for turns in 1..=users.len() {
                let mut messages: Vec<Message> = system.map(Message::system).into_iter().collect();
                for (turn, user) in users[..turns].iter().enumerate() {
                    messages.push(Message::user(*user));
                    if turn + 1 < turns {
                        messages.push(Message::assistant(assistants[turn]));
                    }
                }
                let rendered = render(template, &messages, true)?;
                let appended =
                    pieces.text(system, &users[..turns], &assistants[..turns - 1]).map_err(|e| e.to_string())?;
                if rendered != appended {
                    return Err(format!("the template {reason} ({})", first_difference(&rendered, &appended)));
                }
            }
        }
    }
    Ok(())
}

fn first_difference(rendered: &str, appended: &str) -> String {
    let same: usize =
        rendered.chars().zip(appended.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let window = |text: &str| -> String { text[same..].chars().take(24).collect() };
    format!("it gives {:?} where appending gives {:?}", window(rendered), window(appended))
}

/// Standard pieces for templates that use a known family of control tokens but from which no pieces can be read.
fn by_family(template: &ChatTemplate, tokenizer: &Tokenizer, reason: &str) -> Option<TurnPieces> {
    let mode = RenderingMode::AppendOnlyFallback { reason: reason.to_string() };
    let uses = |token: &str| template.source().contains(token) && tokenizer.id_of(token).is_some();
    if uses("<|im_start|>") && uses("<|im_end|>") {
        return Some(TurnPieces {
            with_system: Ok(SystemPrefix {
                before: "<|im_start|>system\n".into(),
                after: "<|im_end|>\n<|im_start|>user\n".into(),
            }),
            without_system: Ok("<|im_start|>user\n".into()),
            generation_header: "<|im_end|>\n<|im_start|>assistant\n".into(),
            between: "\n<|im_start|>user\n".into(),
            end_of_turn_text: "<|im_end|>".into(),
            end_of_turn: tokenizer.id_of("<|im_end|>")?,
            mode,
        });
    }
    if uses("<|start_header_id|>") && uses("<|end_header_id|>") && uses("<|eot_id|>") {
        let bos = template.bos_token().unwrap_or_default();
        let header = |role: &str| format!("<|start_header_id|>{role}<|end_header_id|>\n\n");
        return Some(TurnPieces {
            with_system: Ok(SystemPrefix {
                before: format!("{bos}{}", header("system")),
                after: format!("<|eot_id|>{}", header("user")),
            }),
            without_system: Ok(format!("{bos}{}", header("user"))),
            generation_header: format!("<|eot_id|>{}", header("assistant")),
            between: header("user"),
            end_of_turn_text: "<|eot_id|>".into(),
            end_of_turn: tokenizer.id_of("<|eot_id|>")?,
            mode,
        });
    }
    None
}
