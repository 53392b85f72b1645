//! The contract between an environment and everything that plays it, in Gymnasium's spirit.

use std::collections::BTreeMap;

use rand_core::Rng;

use crate::claims::Agreement;
use crate::rng::index_below;

/// Which instances an episode is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Instances for training and for the warm start.
    Train,
    /// Instances for evaluation only.
    Val,
}

/// What never changes about an environment: how it is described to the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvSpec {
    /// Registry name, e.g. `sokoban`.
    pub env_type: String,
    /// Rules and goal in plain words, without the answer format.
    pub instruction: String,
    /// The legal action names in their canonical spelling; empty when actions are free text.
    /// Matching ignores case.
    pub actions: Vec<String>,
    /// Meaning of the symbols in the observation, as (symbol, meaning); empty when there is no grid.
    pub legend: Vec<(String, String)>,
}

/// Facts about one step that are not part of the reward.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// The goal is reached in the state after the step.
    pub success: bool,
    /// The environment understood the action.
    pub action_is_valid: bool,
    /// The action changed the state (for grid worlds: the player moved).
    pub action_is_effective: bool,
    /// Further numbers worth averaging in the metrics, by name.
    pub extra: BTreeMap<String, f64>,
}

/// The outcome of one action.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The state after the action, as the agent sees it.
    pub observation: String,
    /// Raw reward of this action.
    pub reward: f64,
    /// The episode has ended in the environment itself (goal reached, fallen into a hole, bought).
    pub terminated: bool,
    /// The environment's own step limit ended the episode.
    pub truncated: bool,
    /// See [`Info`].
    pub info: Info,
}

impl Step {
    /// The answer to an action that the environment does not understand: nothing happened, nothing was paid.
    #[must_use]
    pub fn not_understood(observation: String) -> Self {
        Self { observation, reward: 0.0, terminated: false, truncated: false, info: Info::default() }
    }
}

/// A turn that a competent player would take, for the warm start.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstration {
    /// Reasoning in plain words that refers to the present state; wording varies with the random stream.
    pub reasoning: String,
    /// The actions to take now, at least one.
    pub actions: Vec<String>,
}

/// How wordy the reasoning of a demonstration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DemoStyle {
    /// A dozen tokens or so, for tiny models that have to produce every one of them.
    #[default]
    Brief,
    /// Full sentences, for large pretrained models.
    Verbose,
}

/// Why an environment could not go on. A rollout records it and ends that episode only.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// The environment's configuration makes no sense.
    #[error("environment `{env_type}`: {message}")]
    Config {
        /// Registry name.
        env_type: String,
        /// What was expected, what was found, what to do.
        message: String,
    },
    /// No instance could be made from this seed.
    #[error("environment `{env_type}` cannot make an instance from seed {seed}: {message}")]
    Instance {
        /// Registry name.
        env_type: String,
        /// The seed asked for.
        seed: u64,
        /// Why.
        message: String,
    },
    /// Anything that goes wrong while playing.
    #[error("environment `{env_type}` failed: {message}")]
    Play {
        /// Registry name.
        env_type: String,
        /// Why.
        message: String,
    },
}

impl EnvError {
    /// A step before the first reset.
    #[must_use]
    pub fn not_started(env_type: &str) -> Self {
        EnvError::Play { env_type: env_type.to_owned(), message: "step before reset; call reset first".to_owned() }
    }

    /// A step after the end of the episode.
    #[must_use]
    pub fn ended(env_type: &str) -> Self {
        EnvError::Play {
            env_type: env_type.to_owned(),
            message: "step after the end of the episode; call reset first".to_owned(),
        }
    }
}

/// A text environment. One value plays one episode at a time; `reset` starts the next one.
///
/// The same seed and split give the same instance and, for the same actions, the same observations and rewards.
pub trait Environment: Send {
    /// How the environment is described to the agent.
    fn spec(&self) -> &EnvSpec;

    /// Starts an episode on the instance of `seed` and returns its first observation.
    ///
    /// # Errors
    /// [`EnvError::Instance`] when no instance exists for the seed.
    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError>;

    /// Executes one action (matched without regard to case).
    ///
    /// An action the environment does not understand is not an error: it comes back with
    /// `info.action_is_valid == false` and leaves the state as it was.
    ///
    /// # Errors
    /// [`EnvError::Play`] when called before `reset` or after the episode has ended, or when the environment breaks.
    fn step(&mut self, action: &str) -> Result<Step, EnvError>;

    /// The present state as the agent sees it.
    fn render(&self) -> String;

    /// Identifies the present state: equal keys, equal states. Right after `reset` it identifies the instance, which
    /// is how training instances that also occur in the validation set are found.
    fn state_key(&self) -> String {
        self.render()
    }

    /// Whether an instance that validation plays can be kept out of training. False where there are only a few instances
    /// in all, so that skipping those of validation would leave none.
    fn can_hold_out(&self) -> bool {
        true
    }

    /// The names that actions are matched against in this episode, without regard to case; what matches none of them
    /// is dropped before it reaches the environment. Empty: actions are free text.
    fn action_lookup(&self) -> Vec<String> {
        self.spec().actions.clone()
    }

    /// The actions that make sense now, for environments whose actions change from state to state.
    fn available_actions(&self) -> Vec<String> {
        self.spec().actions.clone()
    }

    /// An action of the uniformly random policy, the floor of every score; `None` when there is nothing to choose from.
    /// Where actions are free text this says what random play means.
    fn sample_action(&self, rng: &mut dyn Rng) -> Option<String> {
        let mut actions = self.available_actions();
        if actions.is_empty() {
            return None;
        }
        let i = index_below(rng, actions.len());
        Some(actions.swap_remove(i))
    }

    /// The next actions of the oracle, the best player there is, given how many actions are left; empty when the
    /// environment has no oracle or nothing helps any more. Only as many actions as can be planned blindly are
    /// returned (one in a stochastic environment).
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let _ = actions_left;
        Vec::new()
    }

    /// The probability that the best player reaches the goal from here with that many actions left; `None` when it is
    /// not known. The oracle reaches it on average.
    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let _ = actions_left;
        None
    }

    /// How much of what `reasoning` claims about the present state, and about the `actions` that follow it, is true;
    /// `None` when the environment cannot tell.
    fn check_reasoning(&self, reasoning: &str, actions: &[String]) -> Option<Agreement> {
        let _ = (reasoning, actions);
        None
    }

    /// A turn of at most `max_actions` actions as the oracle would take it, with its reasoning in words.
    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let _ = (style, rng);
        let mut actions = self.oracle(actions_left);
        actions.truncate(max_actions);
        if actions.is_empty() {
            return None;
        }
        Some(Demonstration { reasoning: format!("The best next action is {}.", actions[0]), actions })
    }

    /// A turn of at most `max_actions` actions as a novice would take it: one who sees the state rightly and knows how
    /// to carry out an intention, but chooses what to intend at random. In the words of
    /// [`Environment::demonstrate`]. `None` when nothing can be done. An environment that has no novice shows its oracle.
    fn demonstrate_novice(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        self.demonstrate(actions_left, max_actions, style, rng)
    }
}
