//! Demonstrations as training sequences, in exactly the token layout of rollouts.
//!
//! What is here: playing the demonstrator on training instances and writing its turns down as the agent would say them.
//! What is not here: training on them.
//!
//! Three things make the data cover what the agent will see once it plays by itself: some turns take fewer actions than
//! allowed, so that later turns occur; some are played with random actions; a few hold no valid action. The last two
//! are in the conversation but not trained; the turns after them show how to go on from an imperfect state.

use ragen_envs::{DemoStyle, Demonstration, Split};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::config::Demonstrator;
use crate::context::{Context, ContextError, ContextOptions, EnvPrompt, PreviousTurn};
use crate::dialogue::{Dialogue, DialogueError};
use crate::evaluate::below;
use crate::guarded_env::{Fault, GuardedEnv};
use crate::instances::{EnvTag, InstanceKeys, SeedCounter};
use crate::policy::Sequence;
use crate::rollout::sampling_seed;
use crate::transcript::{Room, Transcript};

/// How demonstrations are made.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmStartDataOptions {
    /// Most turns in an episode.
    pub max_turn: usize,
    /// Longest sequence; an episode ends before the turn that would go beyond it.
    pub max_model_len: usize,
    /// Tokens that the agent keeps free for a response where it drops its oldest turns.
    pub response_length: usize,
    /// How wordy the reasoning is.
    pub style: DemoStyle,
    /// Probability that a turn takes fewer actions than it may, their number being uniform from 1.
    pub fewer_actions_prob: f64,
    /// Probability that a turn is played with random actions and not trained.
    pub random_turn_prob: f64,
    /// Probability that a turn holds no valid action and is not trained, so that the mark of such a turn is known.
    pub invalid_turn_prob: f64,
    /// Who plays the turns that are trained.
    pub demonstrator: Demonstrator,
    /// Probability that such a turn is the oracle's all the same.
    pub oracle_share: f64,
    /// Seed of wording and of these choices.
    pub seed: u64,
}

impl Default for WarmStartDataOptions {
    fn default() -> Self {
        Self {
            max_turn: 5,
            max_model_len: usize::MAX,
            response_length: 0,
            style: DemoStyle::Brief,
            fewer_actions_prob: 0.3,
            random_turn_prob: 0.15,
            invalid_turn_prob: 0.03,
            demonstrator: Demonstrator::Oracle,
            oracle_share: 0.0,
            seed: 0,
        }
    }
}

/// Demonstrations, and what became of the instances that gave none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmStartData {
    /// The samples of the episodes, one an episode with the full history; the tokens of demonstrated responses, with
    /// their end-of-turn token, are `sampled`.
    pub sequences: Vec<Sequence>,
    /// Episodes among them that reached the goal.
    pub solved: usize,
    /// Demonstrated turns.
    pub turns: usize,
    /// Turns played with random actions.
    pub random_turns: usize,
    /// Turns without a valid action.
    pub invalid_turns: usize,
    /// Instances without a demonstration (no oracle, unsolvable, or too long already at the start).
    pub without_demonstration: usize,
    /// Instances whose environment failed.
    pub faults: usize,
}

/// What stops the making of demonstrations.
#[derive(Debug, thiserror::Error)]
pub enum WarmStartDataError {
    /// Tokenizer, template and format do not fit together.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The tokenizer or the template failed.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
    /// Too many instances in a row gave nothing.
    #[error(
        "`warm_start`: {tried} training instances of `{tag}` in a row gave no demonstration (last reason: {reason}); where \
         there is no oracle, set warm_start.demonstrator=random (which shows the format alone) or \
         warm_start.enabled=false"
    )]
    NoDemonstrations {
        /// The tag.
        tag: String,
        /// Instances tried.
        tried: usize,
        /// What was wrong with the last one.
        reason: String,
    },
}

/// Instances in a row that may give nothing.
const MAX_FRUITLESS: usize = 200;
/// Keeps these random streams apart from those of sampling.
const DEMO_STREAM: u64 = 0x0064_656D_6F73;

/// Makes `count` demonstrations of `tag` from the next training seeds.
///
/// # Errors
/// [`WarmStartDataError`] when the environment offers none or the tokenizer fails.
pub fn demonstrations(
    dialogue: &dyn Dialogue,
    context: &ContextOptions,
    tag: &EnvTag,
    count: usize,
    seeds: &mut SeedCounter,
    validation: &InstanceKeys,
    options: &WarmStartDataOptions,
) -> Result<WarmStartData, WarmStartDataError> {
    let context = Context::new(dialogue, context.clone())?;
    let mut data = WarmStartData::default();
    let (mut fruitless, mut made) = (0, 0);
    while made < count {
        let seed = seeds.next_seed(tag, validation);
        let rng = ChaCha8Rng::seed_from_u64(sampling_seed(options.seed, DEMO_STREAM, seed, 0));
        let mut demo = Demo { context: &context, tag, options, rng, data: &mut data };
        let reason = match demo.play(seed)? {
            Ok(sequences) if !sequences.is_empty() => {
                data.sequences.extend(sequences);
                made += 1;
                fruitless = 0;
                continue;
            }
            Ok(_) => {
                data.without_demonstration += 1;
                "nothing was demonstrated".to_owned()
            }
            Err(fault) => {
                data.faults += 1;
                fault.to_string()
            }
        };
        fruitless += 1;
        if fruitless >= MAX_FRUITLESS {
            return Err(WarmStartDataError::NoDemonstrations { tag: tag.tag.clone(), tried: fruitless, reason });
        }
    }
    Ok(data)
}

/// Who played a turn.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The oracle; trained.
    Demonstrated,
    /// Chance; given.
    Random,
    /// Nobody: there was no valid action; given.
    Invalid,
}

/// What a turn brought.
struct Played {
    kind: Kind,
    /// Whether the goal was reached, when the environment ended.
    done: Option<bool>,
    reward: f64,
}

/// One demonstration in the making.
struct Demo<'a> {
    context: &'a Context<'a>,
    tag: &'a EnvTag,
    options: &'a WarmStartDataOptions,
    rng: ChaCha8Rng,
    data: &'a mut WarmStartData,
}

impl Demo<'_> {
    /// Plays one instance. No sequences: nothing was demonstrated.
    fn play(&mut self, seed: u64) -> Result<Result<Vec<Sequence>, Fault>, DialogueError> {
        let start = || -> Result<(GuardedEnv, String), Fault> {
            let mut env = GuardedEnv::make(&*self.tag.make)?;
            let state = env.reset(seed, Split::Train)?;
            Ok((env, state))
        };
        let (mut env, state) = match start() {
            Ok(started) => started,
            Err(fault) => return Ok(Err(fault)),
        };
        let prompt = self.tag.prompt(env.spec(), self.context.options().legend_from_env_config);
        let mut left = self.tag.max_actions_per_traj;
        let room = Room { context: self.options.max_model_len, response: self.options.response_length };
        let mut transcript = Transcript::new(room);
        transcript.open(self.context, &prompt, &state, left, None)?;
        // Where the last demonstrated response ends: what follows it is cut off in the end.
        let mut end = 0;
        let mut demonstrated = 0;
        for turn in 1..=self.options.max_turn {
            let Played { kind, done, reward } = match self.turn(&mut env, &mut transcript, turn, &mut left)? {
                Ok(Some(played)) => played,
                Ok(None) => break,
                // What was demonstrated before the fault remains right.
                Err(fault) if end == 0 => return Ok(Err(fault)),
                Err(_) => break,
            };
            if transcript.context_len() > self.options.max_model_len {
                break;
            }
            match kind {
                Kind::Random => self.data.random_turns += 1,
                Kind::Invalid => self.data.invalid_turns += 1,
                Kind::Demonstrated => {
                    end = transcript.len();
                    demonstrated += 1;
                }
            }
            match done {
                Some(success) => {
                    self.data.solved += usize::from(success && kind == Kind::Demonstrated);
                    break;
                }
                None if left == 0 => break,
                None => {}
            }
            let previous = PreviousTurn { reward: Some(reward), no_valid_action: kind == Kind::Invalid };
            if !self.show(&mut env, &mut transcript, &prompt, left, previous)? {
                break;
            }
        }
        self.data.turns += demonstrated;
        Ok(Ok(transcript.into_sequences(end)))
    }

    /// Plays one turn; `None` when the demonstrator knows nothing more.
    fn turn(
        &mut self,
        env: &mut GuardedEnv,
        transcript: &mut Transcript,
        turn: usize,
        left: &mut usize,
    ) -> Result<Result<Option<Played>, Fault>, DialogueError> {
        let most = self.context.options().max_actions_per_turn.min(*left);
        let mut allowed = most;
        if most > 1 && self.chance(self.options.fewer_actions_prob) {
            allowed = 1 + below(&mut self.rng, most as u64 - 1) as usize;
        }
        let (mut demonstrator, share) = (self.options.demonstrator, self.options.oracle_share);
        // No number is drawn where there is nothing to decide: the demonstrations of other settings stay what they were.
        if demonstrator != Demonstrator::Oracle && share > 0.0 && self.chance(share) {
            demonstrator = Demonstrator::Oracle;
        }
        let style = self.options.style;
        let demonstrated = match demonstrator {
            Demonstrator::Oracle => env.demonstrate(*left, allowed, style, &mut self.rng),
            Demonstrator::Novice => env.demonstrate_novice(*left, allowed, style, &mut self.rng),
            Demonstrator::Random => self.random_demonstration(env, allowed),
        };
        let demonstration = match demonstrated {
            Ok(Some(demonstration)) if !demonstration.actions.is_empty() => demonstration,
            Ok(_) => return Ok(Ok(None)),
            Err(fault) => return Ok(Err(fault)),
        };
        if turn < self.options.max_turn && self.chance(self.options.invalid_turn_prob) {
            // Either the answer is empty or there is none.
            let response = if self.chance(0.5) {
                self.context.write_response(&demonstration.reasoning, &[])?
            } else {
                let mut tokens = self.context.dialogue().encode(&demonstration.reasoning)?;
                tokens.push(self.context.dialogue().end_of_turn());
                tokens
            };
            transcript.respond_given(self.context, &response);
            return Ok(Ok(Some(Played { kind: Kind::Invalid, done: None, reward: 0.0 })));
        }
        let mut actions = demonstration.actions;
        actions.truncate(most);
        // A random turn needs a later one in which to recover.
        let mut random = turn < self.options.max_turn && *left > most && self.chance(self.options.random_turn_prob);
        if random {
            match self.random_actions(env, actions.len()) {
                Ok(drawn) if drawn.is_empty() => random = false,
                Ok(drawn) => actions = drawn,
                Err(fault) => return Ok(Err(fault)),
            }
        }
        let response = self.context.write_response(&demonstration.reasoning, &actions)?;
        let kind = if random { Kind::Random } else { Kind::Demonstrated };
        match kind {
            Kind::Demonstrated => transcript.respond(self.context, &response),
            _ => transcript.respond_given(self.context, &response),
        };
        let mut reward = 0.0;
        for action in &actions {
            let step = match env.step(action) {
                Ok(step) => step,
                Err(fault) => return Ok(Err(fault)),
            };
            *left = left.saturating_sub(1);
            reward += step.reward;
            if step.terminated || step.truncated {
                return Ok(Ok(Some(Played { kind, done: Some(step.info.success), reward })));
            }
        }
        Ok(Ok(Some(Played { kind, done: None, reward })))
    }

    /// As many random actions as are allowed, with words that say no more than that.
    fn random_demonstration(&mut self, env: &mut GuardedEnv, allowed: usize) -> Result<Option<Demonstration>, Fault> {
        let actions = self.random_actions(env, allowed)?;
        let reasoning = format!("I try {}.", actions.join(", "));
        Ok((!actions.is_empty()).then_some(Demonstration { reasoning, actions }))
    }

    /// Random actions, `count` of them; none where the environment has nothing to choose from.
    fn random_actions(&mut self, env: &mut GuardedEnv, count: usize) -> Result<Vec<String>, Fault> {
        let all = env.available_actions()?;
        let mut actions = Vec::with_capacity(count);
        for _ in 0..count {
            let action = if all.is_empty() {
                env.sample_action(&mut self.rng)?
            } else {
                all.get(below(&mut self.rng, all.len() as u64) as usize).cloned()
            };
            actions.extend(action);
        }
        Ok(actions)
    }

    /// Shows the next state. False when the environment failed or the sequence is full.
    fn show(
        &mut self,
        env: &mut GuardedEnv,
        transcript: &mut Transcript,
        prompt: &EnvPrompt,
        actions_left: usize,
        previous: PreviousTurn,
    ) -> Result<bool, DialogueError> {
        let Ok(state) = env.render() else { return Ok(false) };
        transcript.open(self.context, prompt, &state, actions_left, Some(previous))?;
        Ok(transcript.context_len() < self.options.max_model_len)
    }

    fn chance(&mut self, probability: f64) -> bool {
        ((self.rng.next_u64() >> 11) as f64) * (1.0 / (1u64 << 53) as f64) < probability
    }
}

#[cfg(test)]
#[path = "warm_start_data_tests.rs"]
mod tests;
