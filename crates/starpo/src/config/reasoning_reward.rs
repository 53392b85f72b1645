//! `reasoning_reward`: optional terms of the reward for how an agent reasons.

use serde::{Deserialize, Serialize};

use super::problems::Problems;

/// Terms that credit sees beside the environment's rewards. Each is a mean over the turns of an episode, so that many
/// turns earn no more than few; each is a metric of its own. Filter, diagnostics and scores never see them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReasoningReward {
    /// Reward for reasoning all of whose claims about the state, and about the move that follows, are true, as far as
    /// the environment can check them; in proportion below that, nothing without claims. Default 0.
    pub agreement: f64,
    /// Penalty for reasoning that is as far outside the band as the band's nearer edge is from 0, in proportion below
    /// that and not more above. Default 0.
    pub length: f64,
    /// Lower edge of the band, tokens a turn. Default 0.
    pub length_min: usize,
    /// Upper edge of the band, tokens a turn. Default 0, so it has to be given with `length`.
    pub length_max: usize,
    /// Penalty for reasoning that repeats itself: times the share of its four-token sequences that have occurred in the
    /// episode's reasoning before. Default 0.
    pub repetition: f64,
}

impl ReasoningReward {
    /// Whether any term is on.
    pub fn is_on(&self) -> bool {
        self.agreement > 0.0 || self.length > 0.0 || self.repetition > 0.0
    }

    pub(crate) fn check(&self, enable_think: bool, problems: &mut Problems) {
        problems.non_negative("reasoning_reward.agreement", self.agreement);
        problems.non_negative("reasoning_reward.length", self.length);
        problems.non_negative("reasoning_reward.repetition", self.repetition);
        problems.require(self.length == 0.0 || (self.length_max > 0 && self.length_min <= self.length_max), || {
            format!(
                "`reasoning_reward.length` needs a band: `length_max` of at least 1 and of at least `length_min`, found \
                 {} and {}",
                self.length_max, self.length_min
            )
        });
        problems.require(enable_think || !self.is_on(), || {
            "`reasoning_reward` pays for reasoning, but `agent_proxy.enable_think` is false: set its terms to 0".into()
        });
    }
}
