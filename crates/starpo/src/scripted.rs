//! Doubles for tests: a byte-level dialogue, a policy that follows a script, an environment on a line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ragen_envs::{EnvError, EnvSpec, Environment, Info, Split, Step};

use super::{Dialogue, DialogueError};
use crate::evaluate::below;
use crate::instances::EnvTag;
use crate::policy::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

pub const START: u32 = 256;
pub const END: u32 = 257;
const TAGS: [&str; 4] = ["<think>", "</think>", "<answer>", "</answer>"];
const MERGES: [&str; 4] = ["Right", "Left", "||", "</"];

/// Bytes, two control tokens, the four tags as tokens of their own (if wanted), and a few merges, so that one text has
/// several encodings.
pub struct ByteDialogue {
    pub tags_as_tokens: bool,
}

impl ByteDialogue {
    pub fn bytes(text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    pub fn merged(text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut rest = text;
        'next: while !rest.is_empty() {
            for (id, merge) in (270..).zip(MERGES) {
                if let Some(after) = rest.strip_prefix(merge) {
                    tokens.push(id);
                    rest = after;
                    continue 'next;
                }
            }
            let n = rest.chars().next().map_or(1, char::len_utf8);
            tokens.extend(Self::bytes(&rest[..n]));
            rest = &rest[n..];
        }
        tokens
    }

    fn block(role: &str, text: &str) -> Vec<u32> {
        let mut tokens = vec![START];
        tokens.extend(Self::merged(&format!("{role}\n{text}")));
        tokens.push(END);
        tokens.extend(Self::bytes("\n"));
        tokens
    }

    fn header() -> Vec<u32> {
        let mut tokens = vec![START];
        tokens.extend(Self::bytes("assistant\n"));
        tokens
    }
}

impl Dialogue for ByteDialogue {
    fn opening(&self, system: Option<&str>, first_user: &str) -> Result<Vec<u32>, DialogueError> {
        let mut tokens = system.map(|s| Self::block("system", s)).unwrap_or_default();
        tokens.extend(Self::block("user", first_user));
        tokens.extend(Self::header());
        Ok(tokens)
    }
    fn next_user(&self, user: &str, closed: bool) -> Result<Vec<u32>, DialogueError> {
        let mut tokens = if closed { vec![] } else { vec![END] };
        tokens.extend(Self::bytes("\n"));
        tokens.extend(Self::block("user", user));
        tokens.extend(Self::header());
        Ok(tokens)
    }
    fn encode(&self, text: &str) -> Result<Vec<u32>, DialogueError> {
        if !self.tags_as_tokens {
            return Ok(Self::merged(text));
        }
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((at, tag)) = TAGS.iter().enumerate().filter_map(|(i, t)| Some((rest.find(t)?, i))).min() {
            tokens.extend(Self::merged(&rest[..at]));
            tokens.push(258 + tag as u32);
            rest = &rest[at + TAGS[tag].len()..];
        }
        tokens.extend(Self::merged(rest));
        Ok(tokens)
    }
    fn decode(&self, tokens: &[u32]) -> Result<String, DialogueError> {
        let mut bytes = Vec::new();
        for &t in tokens {
            match t {
                0..=255 => bytes.push(t as u8),
                START | END => {}
                258..=261 => bytes.extend(TAGS[t as usize - 258].bytes()),
                270..=273 => bytes.extend(MERGES[t as usize - 270].bytes()),
                _ => return Err(DialogueError(format!("token {t} is unknown"))),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
    fn end_of_turn(&self) -> u32 {
        END
    }
}

/// One turn as the session saw it: everything before the response, and the response.
pub type Seen = BTreeMap<u64, Vec<(Vec<u32>, Vec<u32>)>>;
/// Gives the tokens of a response from the id, the turn (from 0), the tokens before it, and the seed.
pub type Script = dyn Fn(u64, usize, &[u32], u64) -> Vec<u32>;

/// Answers by script. Responses finish in an order drawn from `order`.
pub struct ScriptedPolicy {
    pub script: Box<Script>,
    pub order: u64,
    /// The token that ends a response.
    pub end: u32,
    pub max_context: usize,
    pub seen: Rc<RefCell<Seen>>,
}

impl ScriptedPolicy {
    pub fn new(script: impl Fn(u64, usize, &[u32], u64) -> Vec<u32> + 'static) -> Self {
        Self { script: Box::new(script), order: 0, end: END, max_context: 100_000, seen: Rc::default() }
    }

    /// Every turn says the same text, ended by the end-of-turn token.
    pub fn saying(text: &'static str) -> Self {
        Self::new(move |_, _, _, _| [ByteDialogue::bytes(text), vec![END]].concat())
    }

    pub fn log_prob(token: u32, position: usize) -> f32 {
        -0.1 - ((token as usize * 31 + position) % 7) as f32
    }
}

struct ScriptedSession<'a> {
    policy: &'a mut ScriptedPolicy,
    contexts: BTreeMap<u64, Vec<u32>>,
    queue: Vec<Request>,
    rng: ChaCha8Rng,
}

impl Session for ScriptedSession<'_> {
    fn submit(&mut self, request: Request) -> Result<(), PolicyError> {
        let context = self.contexts.entry(request.id).or_default();
        if context.is_empty() && request.given.is_empty() {
            return Err(PolicyError::Request("a new sequence needs a given token".into()));
        }
        let len = context.len() + request.given.len();
        if len + 1 > self.policy.max_context {
            return Err(PolicyError::ContextOverflow { len, max: self.policy.max_context });
        }
        context.extend(&request.given);
        self.queue.push(request);
        Ok(())
    }
    fn step(&mut self) -> Result<Vec<Response>, PolicyError> {
        let mut done = Vec::new();
        for _ in 0..below(&mut self.rng, 4) {
            if self.queue.is_empty() {
                break;
            }
            let pick = below(&mut self.rng, self.queue.len() as u64) as usize;
            let request = self.queue.swap_remove(pick);
            let context = self.contexts.get_mut(&request.id).expect("submitted");
            let mut seen = self.policy.seen.borrow_mut();
            let turns = seen.entry(request.id).or_default();
            let mut tokens = (self.policy.script)(request.id, turns.len(), context, request.seed);
            if let Some(end) = tokens.iter().position(|t| *t == self.policy.end) {
                tokens.truncate(end + 1);
            }
            tokens.truncate(request.max_new_tokens);
            turns.push((context.clone(), tokens.clone()));
            let log_probs: Vec<f32> =
                tokens.iter().enumerate().map(|(i, t)| ScriptedPolicy::log_prob(*t, context.len() + i)).collect();
            context.extend(&tokens);
            done.push(Response {
                id: request.id,
                stopped: tokens.last() == Some(&self.policy.end),
                tokens,
                sampling_log_probs: log_probs.clone(),
                log_probs,
            });
        }
        Ok(done)
    }
    fn close(&mut self, id: u64) {
        self.contexts.remove(&id);
    }
    fn active(&self) -> usize {
        self.queue.len()
    }
}

impl Policy for ScriptedPolicy {
    fn session(&mut self, _: &Sampling, _: usize) -> Result<Box<dyn Session + '_>, PolicyError> {
        let rng = ChaCha8Rng::seed_from_u64(self.order);
        Ok(Box::new(ScriptedSession { policy: self, contexts: BTreeMap::new(), queue: Vec::new(), rng }))
    }
    fn score(&mut self, _: &[Sequence], _: f32) -> Result<TokenScores, PolicyError> {
        Err(PolicyError::Request("a script has no scores".into()))
    }
    fn accumulate(&mut self, _: &[Sequence], _: f32, _: &mut LossFn<'_>) -> Result<(), PolicyError> {
        Err(PolicyError::Request("a script has no gradients".into()))
    }
    fn gradient_norm(&self) -> f64 {
        0.0
    }
    fn clear_gradients(&mut self) {}
    fn step(&mut self, _: OptimizerStep) -> Result<StepReport, PolicyError> {
        Err(PolicyError::Request("a script does not learn".into()))
    }
    fn save(&self, _: &Path) -> Result<(), PolicyError> {
        Ok(())
    }
    fn load(&mut self, _: &Path) -> Result<(), PolicyError> {
        Ok(())
    }
    fn weights_sha256(&self) -> String {
        String::new()
    }
    fn max_context(&self) -> usize {
        self.max_context
    }
}

/// How a line environment misbehaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Trouble {
    None,
    MakeError,
    ResetError,
    ResetPanic,
    StepError,
    StepPanic,
    RenderPanic,
    Nan,
    Infinite,
}

/// A walk on a line from 3: `Right` leads to the goal at 0, `Left` to the hole at 7. Every move costs 0.1, the goal
/// pays 11. Trouble comes at the second move, on odd seeds only.
pub struct Line {
    spec: EnvSpec,
    trouble: Trouble,
    extra_text: &'static str,
    position: i32,
    moves: usize,
    seed: u64,
    on: bool,
}

impl Line {
    fn fails(&self, trouble: Trouble) -> bool {
        self.trouble == trouble && self.seed % 2 == 1
    }
    fn error(message: &str) -> EnvError {
        EnvError::Play { env_type: "line".into(), message: message.into() }
    }
}

impl Environment for Line {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, seed: u64, _: Split) -> Result<String, EnvError> {
        (self.position, self.moves, self.seed, self.on) = (3, 0, seed, true);
        if self.fails(Trouble::ResetError) {
            return Err(Self::error("no instance"));
        }
        assert!(!self.fails(Trouble::ResetPanic), "reset panics");
        Ok(self.render())
    }
    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        if !self.on {
            return Err(Self::error("the episode is over"));
        }
        self.moves += 1;
        if self.moves == 2 {
            assert!(!self.fails(Trouble::StepPanic), "step panics");
            if self.fails(Trouble::StepError) {
                return Err(Self::error("broken"));
            }
        }
        let delta = match action.to_lowercase().as_str() {
            "right" => -1,
            "left" => 1,
            _ => 0,
        };
        self.position += delta;
        let success = self.position == 0;
        let terminated = success || self.position == 7;
        self.on = !terminated;
        let mut reward = if success { 10.9 } else { -0.1 };
        if self.moves == 2 && self.fails(Trouble::Nan) {
            reward = f64::NAN;
        }
        if self.moves == 2 && self.fails(Trouble::Infinite) {
            reward = f64::INFINITY;
        }
        let info = Info {
            success,
            action_is_valid: delta != 0,
            action_is_effective: delta != 0,
            extra: [("distance".to_owned(), f64::from(self.position))].into(),
        };
        let observation = if terminated { String::new() } else { self.render() };
        Ok(Step { observation, reward, terminated, truncated: false, info })
    }
    fn render(&self) -> String {
        assert!(!(self.fails(Trouble::RenderPanic) && self.moves == 2), "render panics");
        format!("at {}{}", self.position, self.extra_text)
    }
    fn state_key(&self) -> String {
        // Ten different instances.
        format!("{} {}", self.seed % 10, self.position)
    }
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let distance = usize::try_from(self.position).unwrap_or(0);
        if distance > actions_left { Vec::new() } else { vec!["Right".into(); distance] }
    }
}

/// A tag of line environments.
pub fn line(trouble: Trouble, extra_text: &'static str) -> EnvTag {
    let spec = EnvSpec {
        env_type: "line".into(),
        instruction: "Walk to 0.".into(),
        actions: vec!["Left".into(), "Right".into()],
        legend: vec![("at".into(), "your place".into())],
    };
    EnvTag {
        tag: "Line".into(),
        env_type: "line".into(),
        max_actions_per_traj: 10,
        max_tokens: 50,
        instruction: None,
        default_legend: vec![("@".into(), "default".into())],
        make: Arc::new(move || {
            if trouble == Trouble::MakeError {
                return Err(EnvError::Config { env_type: "line".into(), message: "cannot be made".into() });
            }
            let spec = spec.clone();
            Ok(Box::new(Line { spec, trouble, extra_text, position: 3, moves: 0, seed: 0, on: false }))
        }),
    }
}
