//! `agent_proxy`: the turn loop, the prompt, and what an episode is worth.

use serde::{Deserialize, Serialize};

use super::names::named_enum;
use super::problems::Problems;

named_enum! {
    /// How much of the past the policy sees.
    pub enum ContextWindowMode {
        /// The whole dialogue; one training sample an episode.
        Full = "full",
        /// The last turns as a dialogue; one training sample a turn.
        LimitedMultiTurn = "limited_multi_turn",
        /// One user message that may quote earlier turns; one training sample a turn.
        SingleTurn = "single_turn",
    }
}

named_enum! {
    /// What becomes of an episode that outgrows the context.
    pub enum ContextOverflow {
        /// It ends as truncated.
        Truncate = "truncate",
        /// Its oldest whole turns leave the context until prompt and response fit.
        DropOldestTurns = "drop_oldest_turns",
    }
}

named_enum! {
    /// Which returns are normalised together.
    pub enum NormGrouping {
        /// The group: episodes from one initial state.
        State = "state",
        /// All episodes of a tag.
        Inductive = "inductive",
        /// The whole batch.
        Batch = "batch",
    }
}

named_enum! {
    /// How returns are normalised before advantages are estimated.
    pub enum NormMethod {
        /// Not at all.
        Identity = "identity",
        /// Minus the mean.
        Mean = "mean",
        /// Minus the mean, divided by the standard deviation.
        MeanStd = "mean_std",
        /// `mean_std`, then clamped to [−1, 3].
        AsymClip = "asym_clip",
    }
}

named_enum! {
    /// The wording of prompts.
    pub enum PromptStyle {
        /// Instructions in plain words, for models that read.
        Full = "full",
        /// A terse layout without instructions, for models that start from nothing.
        Compact = "compact",
    }
}

/// Normalisation of returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardNormalization {
    /// Which returns are normalised together. Default state.
    pub grouping: NormGrouping,
    /// How. Default identity.
    pub method: NormMethod,
}

impl Default for RewardNormalization {
    fn default() -> Self {
        Self { grouping: NormGrouping::State, method: NormMethod::Identity }
    }
}

/// The turn loop, the prompt, and what an episode is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentProxy {
    /// How much of the past the policy sees, and therefore what a training sample is. Default full.
    pub context_window_mode: ContextWindowMode,
    /// Turns in the window of the two windowed modes, the present one included; −1: all. Default −1.
    pub max_context_window: i64,
    /// What becomes of an episode that no longer fits `actor_rollout_ref.rollout.max_model_len`. Dropping leaves room
    /// for a whole response; the turns after it are training samples of their own. Default truncate.
    pub context_overflow: ContextOverflow,
    /// Most turns of an episode. Default 5.
    pub max_turn: usize,
    /// Separates the actions of a turn. Default ||.
    pub action_sep: String,
    /// Most actions of a turn; further ones are dropped and counted. Default 5.
    pub max_actions_per_turn: usize,
    /// Put each turn's reward on its last token instead of the return on the last token of all. Default false.
    pub use_turn_scores: bool,
    /// Responses begin with reasoning between think tags. Default true.
    pub enable_think: bool,
    /// Normalisation of returns.
    pub reward_normalization: RewardNormalization,
    /// The wording of prompts. Default compact.
    pub prompt_style: PromptStyle,
}

impl Default for AgentProxy {
    fn default() -> Self {
        Self {
            context_window_mode: ContextWindowMode::Full,
            max_context_window: -1,
            context_overflow: ContextOverflow::Truncate,
            max_turn: 5,
            action_sep: "||".into(),
            max_actions_per_turn: 5,
            use_turn_scores: false,
            enable_think: true,
            reward_normalization: RewardNormalization::default(),
            prompt_style: PromptStyle::Compact,
        }
    }
}

impl AgentProxy {
    /// Turns in a window; `usize::MAX` for all.
    pub fn window_turns(&self) -> usize {
        usize::try_from(self.max_context_window).unwrap_or(usize::MAX)
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.at_least_one("agent_proxy.max_turn", self.max_turn);
        problems.at_most("agent_proxy.max_turn", self.max_turn, 10_000);
        problems.at_least_one("agent_proxy.max_actions_per_turn", self.max_actions_per_turn);
        problems.require(!self.action_sep.trim().is_empty(), || {
            "`agent_proxy.action_sep` must hold something else than spaces".into()
        });
        let window = self.max_context_window;
        problems.require(window == -1 || window >= 1, || {
            format!("`agent_proxy.max_context_window` must be -1 (all turns) or at least 1, found {window}")
        });
        problems.require(window == -1 || self.context_window_mode != ContextWindowMode::Full, || {
            format!(
                "`agent_proxy.max_context_window` is {window} but has no effect in `agent_proxy.context_window_mode` \
                 full: choose limited_multi_turn or single_turn, or set it to -1"
            )
        });
        let drops = self.context_overflow == ContextOverflow::DropOldestTurns;
        problems.require(!drops || (self.max_turn > 1 && window != 1), || {
            "`agent_proxy.context_overflow` drop_oldest_turns has no effect where no context shows an earlier turn \
             (`agent_proxy.max_turn` 1 or `agent_proxy.max_context_window` 1): set it to truncate"
                .into()
        });
        problems.require(!self.use_turn_scores || self.reward_normalization.method == NormMethod::Identity, || {
            "`agent_proxy.reward_normalization.method` normalises returns and cannot be used with \
             `agent_proxy.use_turn_scores`: set it to identity"
                .into()
        });
    }
}
