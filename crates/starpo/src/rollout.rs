//! The turn loop: groups of environments, one generation session, finished episodes.
//!
//! What is here: submitting prompts, executing answers, budgets, penalties, outcomes. What is not here: which
//! instances are played ([`crate::instances`]), wording ([`crate::context`]), reading ([`crate::parse`]).
//!
//! Whoever's response is finished acts at once and asks for the next one, so the decoding batch stays full. What an
//! episode becomes depends on its own tokens and its own random stream only, never on who finishes first.

use crate::context::{Context, ContextOptions, EnvPrompt, PreviousTurn};
use crate::dialogue::{Dialogue, DialogueError};
use crate::episode::{Episode, Outcome, Turn, TurnInfo};
use crate::guarded_env::{Fault, GuardedEnv};
use crate::instances::Group;
use crate::parse::{match_actions, parse, reasoning_end};
use crate::policy::{Policy, PolicyError, Request, Response, Sampling};
use crate::rollout_metrics::episode_metrics;
use crate::transcript::{OpenTurn, Room, Transcript};

/// How episodes are played.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutOptions {
    /// Episodes per group.
    pub group_size: usize,
    /// Most turns in an episode.
    pub max_turn: usize,
    /// Most tokens in a response.
    pub response_length: usize,
    /// Longest conversation in tokens; the policy's own limit holds as well.
    pub max_model_len: usize,
    /// Added once per turn that has an unknown action or no valid one; 0 or negative.
    pub format_penalty: f64,
    /// Softmax temperature; 0 is greedy.
    pub temperature: f32,
    /// See [`Sampling::top_k`].
    pub top_k: Option<usize>,
    /// See [`Sampling::top_p`].
    pub top_p: f32,
    /// Sequences that decode together.
    pub max_batch: usize,
    /// Master seed of the run.
    pub seed: u64,
    /// Iteration; with the master seed it selects the random streams.
    pub iteration: u64,
    /// Compatibility: also train the template tokens that the reference implementation trains.
    pub train_template_tokens: bool,
    /// Train every token from the first response on, whoever wrote it (`enable_response_mask: false`).
    pub train_given_tokens: bool,
}

impl Default for RolloutOptions {
    fn default() -> Self {
        Self {
            group_size: 16,
            max_turn: 5,
            response_length: 400,
            max_model_len: usize::MAX,
            format_penalty: -0.1,
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            max_batch: 64,
            seed: 0,
            iteration: 0,
            train_template_tokens: false,
            train_given_tokens: false,
        }
    }
}

/// What stops a rollout as a whole. A failing environment does not.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The policy failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Tokenizer, template and format do not fit together.
    #[error(transparent)]
    Context(#[from] crate::context::ContextError),
    /// The tokenizer or the template failed.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
    /// A session broke its contract.
    #[error("the generation session broke its contract: {0}")]
    Session(String),
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
}

/// Plays all members of all groups and returns their episodes, ordered by group and member.
///
/// # Errors
/// [`RolloutError`] for faults of the policy or of the options. Faults of an environment end its own episode only.
pub fn collect(
    policy: &mut dyn Policy,
    dialogue: &dyn Dialogue,
    context: &ContextOptions,
    groups: &[Group],
    options: &RolloutOptions,
) -> Result<Vec<Episode>, RolloutError> {
    check(options)?;
    let context = Context::new(dialogue, context.clone())?;
    let max_context = policy.max_context().min(options.max_model_len);
    let room = Room { context: max_context, response: options.response_length };
    let sampling = Sampling {
        temperature: options.temperature,
        top_k: options.top_k,
        top_p: options.top_p,
        stop: vec![dialogue.end_of_turn()],
    };
    let mut players: Vec<Player> = Vec::with_capacity(groups.len() * options.group_size);
    for (g, group) in groups.iter().enumerate() {
        for member in 0..options.group_size {
            players.push(Player::start(&context, group, g, member, room, options)?);
        }
    }
    let mut session = policy.session(&sampling, options.max_batch)?;
    let mut waiting = vec![false; players.len()];
    let mut pending = 0;
    for (id, player) in players.iter_mut().enumerate() {
        if submit(&mut *session, player, id, max_context, options)? {
            waiting[id] = true;
            pending += 1;
        }
    }
    while pending > 0 {
        let responses = session.step()?;
        if responses.is_empty() && session.active() == 0 {
            return Err(RolloutError::Session(format!("{pending} responses are due and nothing is being decoded")));
        }
        for response in responses {
            let id = usize::try_from(response.id).unwrap_or(usize::MAX);
            if !waiting.get(id).copied().unwrap_or(false) {
                return Err(RolloutError::Session(format!("a response for {id} came that nobody waits for")));
            }
            let player = &mut players[id];
            player.answer(&context, response, options)?;
            if !submit(&mut *session, player, id, max_context, options)? {
                waiting[id] = false;
                pending -= 1;
                session.close(id as u64);
            }
        }
    }
    drop(session);
    Ok(players.into_iter().map(|p| p.finish(&context, options)).collect())
}

fn check(options: &RolloutOptions) -> Result<(), RolloutError> {
    let wrong = |what: &str| Err(RolloutError::Option(what.to_owned()));
    if options.group_size == 0 || options.max_batch == 0 || options.max_turn == 0 || options.response_length == 0 {
        return wrong("group_size, max_batch, max_turn and response_length have to be at least 1");
    }
    if !(options.format_penalty.is_finite() && options.format_penalty <= 0.0) {
        return wrong("format_penalty has to be 0 or a negative number");
    }
    if !(options.temperature.is_finite() && options.temperature >= 0.0) {
        return wrong("temperature has to be 0 or a positive number");
    }
    Ok(())
}

/// Asks for the player's next response. False when the episode is over.
fn submit(
    session: &mut dyn crate::policy::Session,
    player: &mut Player,
    id: usize,
    max_context: usize,
    options: &RolloutOptions,
) -> Result<bool, RolloutError> {
    if player.outcome.is_some() {
        return Ok(false);
    }
    let room = max_context.saturating_sub(player.transcript.context_len());
    if room == 0 {
        player.outcome = Some(Outcome::ContextLimit);
        return Ok(false);
    }
    if player.transcript.conversation().is_new() {
        // A context that leaves something out is a new sequence.
        session.close(id as u64);
    }
    let request = Request {
        id: id as u64,
        given: player.transcript.conversation().take_unsubmitted(),
        seed: sampling_seed(options.seed, options.iteration, id as u64, player.turns.len() as u64),
        max_new_tokens: room.min(options.response_length),
    };
    match session.submit(request) {
        Ok(()) => Ok(true),
        Err(PolicyError::ContextOverflow { .. }) => {
            player.outcome = Some(Outcome::ContextLimit);
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Seed of the random stream that one response is drawn from: SplitMix64's finaliser over the four numbers in turn,
/// `h ← mix((h ⊕ xᵢ) + 0x9E3779B97F4A7C15)`, from h = 0.
pub fn sampling_seed(seed: u64, iteration: u64, env_id: u64, turn: u64) -> u64 {
    [seed, iteration, env_id, turn].into_iter().fold(0, |h, x| {
        let mut z = (h ^ x).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// An episode in the making.
struct Player {
    group: Group,
    group_id: usize,
    member: usize,
    env: Option<GuardedEnv>,
    prompt: EnvPrompt,
    transcript: Transcript,
    log_probs: Vec<f32>,
    sampling_log_probs: Vec<f32>,
    turns: Vec<Turn>,
    /// The turn that waits for its response.
    open: Turn,
    num_actions: usize,
    outcome: Option<Outcome>,
}

impl Player {
    fn start(
        context: &Context<'_>,
        group: &Group,
        group_id: usize,
        member: usize,
        room: Room,
        options: &RolloutOptions,
    ) -> Result<Self, DialogueError> {
        let mut player = Self {
            group: group.clone(),
            group_id,
            member,
            env: None,
            prompt: EnvPrompt::default(),
            transcript: Transcript::new(room),
            log_probs: Vec::new(),
            sampling_log_probs: Vec::new(),
            turns: Vec::with_capacity(options.max_turn),
            open: Turn::default(),
            num_actions: 0,
            outcome: (group.tag.max_actions_per_traj == 0).then_some(Outcome::ActionBudget),
        };
        match reset(group) {
            Ok((env, state, state_key)) => {
                player.prompt = group.tag.prompt(env.spec(), context.options().legend_from_env_config);
                player.env = Some(env);
                let actions_left = group.tag.max_actions_per_traj;
                let opened = player.transcript.open(context, &player.prompt, &state, actions_left, None)?;
                player.open = open_turn(opened, state, state_key, actions_left);
            }
            Err(fault) => player.outcome = Some(fault.into()),
        }
        Ok(player)
    }

    /// Takes a response: records it, executes its actions, prepares the next turn.
    fn answer(
        &mut self,
        context: &Context<'_>,
        response: Response,
        options: &RolloutOptions,
    ) -> Result<(), RolloutError> {
        let n = response.tokens.len();
        if response.log_probs.len() != n || response.sampling_log_probs.len() != n {
            return Err(RolloutError::Session(format!(
                "a response of {n} tokens has {} log-probabilities and {} sampling log-probabilities",
                response.log_probs.len(),
                response.sampling_log_probs.len()
            )));
        }
        let mut turn = std::mem::take(&mut self.open);
        turn.response = self.transcript.respond(context, &response.tokens);
        self.log_probs.extend_from_slice(&response.log_probs);
        self.sampling_log_probs.extend_from_slice(&response.sampling_log_probs);
        let stopped = response.stopped;
        turn.stopped = stopped;
        let reasoning = read_response(context, &response.tokens, &mut turn)?;
        let played = self.play(&mut turn, &reasoning, options);
        self.num_actions += turn.executed;
        let previous = PreviousTurn { reward: Some(turn.reward), no_valid_action: turn.valid.is_empty() };
        self.turns.push(turn);
        let over = match played {
            Ok(over) => over,
            Err(outcome) => Some(outcome),
        };
        let max_actions = self.group.tag.max_actions_per_traj;
        self.outcome = over.or({
            if self.num_actions >= max_actions {
                Some(Outcome::ActionBudget)
            } else if !stopped && n < options.response_length {
                // Only a full context cuts a response before its own limit.
                Some(Outcome::ContextLimit)
            } else if self.turns.len() >= options.max_turn {
                Some(Outcome::TurnLimit)
            } else {
                None
            }
        });
        if self.outcome.is_none() {
            self.prepare_next(context, previous)?;
        }
        Ok(())
    }

    /// Executes the valid actions of a turn. Returns the outcome when the environment has ended or broken.
    fn play(&mut self, turn: &mut Turn, reasoning: &str, options: &RolloutOptions) -> Result<Option<Outcome>, Outcome> {
        let Some(env) = self.env.as_mut() else {
            return Err(Outcome::EnvError("there is no environment".into()));
        };
        turn.valid = match_actions(&turn.parsed, &env.spec().actions);
        if turn.valid.is_empty() || turn.valid.len() != turn.parsed.len() {
            turn.penalty = options.format_penalty;
        }
        if !reasoning.is_empty() {
            let found = env.check_reasoning(reasoning, &turn.valid).map_err(Outcome::from)?;
            turn.agreement = found.map(|a| (a.claims, a.right));
        }
        let left = self.group.tag.max_actions_per_traj.saturating_sub(self.num_actions);
        for action in turn.valid.iter().take(left) {
            let step = env.step(action).map_err(Outcome::from)?;
            turn.executed += 1;
            // A sum of finite rewards may still overflow.
            let reward = turn.reward + step.reward;
            if !reward.is_finite() {
                return Err(Outcome::NonFiniteReward);
            }
            turn.reward = reward;
            let success = step.info.success;
            let info = turn.info.get_or_insert_with(TurnInfo::default);
            info.success = success;
            info.action_is_valid = step.info.action_is_valid;
            info.action_is_effective = step.info.action_is_effective;
            info.extra.extend(step.info.extra);
            if step.terminated || step.truncated {
                return Ok(Some(match (success, step.terminated) {
                    (true, _) => Outcome::Solved,
                    (false, true) => Outcome::Failed,
                    (false, false) => Outcome::StepLimit,
                }));
            }
        }
        Ok(None)
    }

    /// Shows the state after a turn. A fault of the environment ends the episode.
    fn prepare_next(&mut self, context: &Context<'_>, previous: PreviousTurn) -> Result<(), DialogueError> {
        let shown = match self.env.as_mut() {
            Some(env) => env.render().and_then(|state| Ok((state, env.state_key()?))),
            None => Err(Fault::Error("there is no environment".into())),
        };
        let (state, state_key) = match shown {
            Ok(shown) => shown,
            Err(fault) => {
                self.outcome = Some(fault.into());
                return Ok(());
            }
        };
        let actions_left = self.group.tag.max_actions_per_traj.saturating_sub(self.num_actions);
        let opened = self.transcript.open(context, &self.prompt, &state, actions_left, Some(previous))?;
        self.open = open_turn(opened, state, state_key, actions_left);
        Ok(())
    }

    fn finish(self, context: &Context<'_>, options: &RolloutOptions) -> Episode {
        let system = self.env.as_ref().and_then(|_| context.system_text(&self.prompt));
        let (tokens, sampled, mut sample_starts) = self.transcript.finish();
        if sample_starts.len() == 1 {
            sample_starts.clear();
        }
        let mut episode = Episode {
            tag: self.group.tag.tag,
            env_type: self.group.tag.env_type,
            env_id: self.group_id * options.group_size + self.member,
            group: self.group_id,
            member: self.member,
            seed: self.group.seed,
            system,
            trained: sampled.clone(),
            tokens,
            sampled,
            sample_starts,
            log_probs: self.log_probs,
            sampling_log_probs: self.sampling_log_probs,
            turns: self.turns,
            outcome: self.outcome.unwrap_or(Outcome::TurnLimit),
            metrics: Default::default(),
        };
        if options.train_given_tokens || options.train_template_tokens {
            episode.trained = wider_mask(context, &episode, options);
        }
        episode.metrics = episode_metrics(&episode);
        episode
    }
}

/// What is trained, sample by sample, where it is more than what was sampled.
fn wider_mask(context: &Context<'_>, episode: &Episode, options: &RolloutOptions) -> Vec<bool> {
    let mut mask = Vec::with_capacity(episode.tokens.len());
    for sample in episode.samples() {
        let own = episode.turns.iter().map(|t| &t.response).filter(|r| sample.contains(&r.start));
        let responses: Vec<_> = own.map(|r| r.start - sample.start..r.end - sample.start).collect();
        if options.train_given_tokens {
            let first = responses.first().map_or(sample.len(), |r| r.start);
            mask.extend((0..sample.len()).map(|t| t >= first));
        } else {
            mask.extend(context.template_mask(&episode.tokens[sample], &responses));
        }
    }
    mask
}

fn open_turn(opened: OpenTurn, state: String, state_key: String, actions_left: usize) -> Turn {
    let OpenTurn { prompt, user, dropped: dropped_turns } = opened;
    Turn { prompt, user, state, state_key, actions_left, dropped_turns, ..Turn::default() }
}

/// Makes a member's environment and starts its episode: the environment, its first state, the state's key.
fn reset(group: &Group) -> Result<(GuardedEnv, String, String), Fault> {
    let mut env = GuardedEnv::make(&*group.tag.make)?;
    let state = env.reset(group.seed, group.split)?;
    let state_key = env.state_key()?;
    Ok((env, state, state_key))
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Error(message) => Self::EnvError(message),
            Fault::Panic(message) => Self::EnvPanic(message),
        }
    }
}

/// Reads a response into its turn: text, actions, and which tokens are its reasoning. Returns the reasoning.
fn read_response(context: &Context<'_>, tokens: &[u32], turn: &mut Turn) -> Result<String, DialogueError> {
    let dialogue = context.dialogue();
    turn.text = dialogue.decode(tokens)?;
    let parsed = parse(&turn.text, &context.options().parse_options());
    turn.format_ok = parsed.format_ok;
    turn.has_reasoning = !parsed.reasoning.is_empty();
    turn.parsed = parsed.actions;
    turn.cut = parsed.cut;
    turn.reasoning = None;
    if context.options().enable_think
        && let Some(end) = reasoning_end(&turn.text)
    {
        // The number of leading tokens whose text ends at or before the closing tag. The text only grows with the
        // tokens, so it is found by halving.
        let (mut low, mut high) = (0, tokens.len());
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if dialogue.decode(&tokens[..middle])?.len() <= end {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        turn.reasoning = Some(turn.response.start..turn.response.start + low);
    }
    Ok(parsed.reasoning)
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rollout_env_tests.rs"]
mod env_tests;

#[cfg(test)]
#[path = "rollout_policy_tests.rs"]
mod policy_tests;
