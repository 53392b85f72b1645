//! One episode: what was said, what was done, what it brought. Made once by the collector and from then on only read.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::policy::Sequence;

/// How an episode ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "message")]
pub enum Outcome {
    /// The environment ended and the goal was reached. The only success.
    Solved,
    /// The environment ended without the goal.
    Failed,
    /// The environment's own step limit.
    StepLimit,
    /// All actions of the episode were used.
    ActionBudget,
    /// All turns were used.
    TurnLimit,
    /// The conversation no longer fits the context.
    ContextLimit,
    /// The environment returned an error.
    EnvError(String),
    /// The environment panicked.
    EnvPanic(String),
    /// The environment paid a reward that is no finite number.
    NonFiniteReward,
}

impl Outcome {
    /// Short name, for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Solved => "solved",
            Self::Failed => "failed",
            Self::StepLimit => "step_limit",
            Self::ActionBudget => "action_budget",
            Self::TurnLimit => "turn_limit",
            Self::ContextLimit => "context_limit",
            Self::EnvError(_) => "env_error",
            Self::EnvPanic(_) => "env_panic",
            Self::NonFiniteReward => "non_finite_reward",
        }
    }

    /// Whether the goal was reached.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Solved)
    }

    /// Whether the environment broke, so that the return says nothing about the policy.
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::EnvError(_) | Self::EnvPanic(_) | Self::NonFiniteReward)
    }

    /// Whether a limit ended the episode rather than the environment.
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::StepLimit | Self::ActionBudget | Self::TurnLimit | Self::ContextLimit)
    }
}

/// What the environment said about a turn; of several actions the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnInfo {
    /// The goal is reached.
    pub success: bool,
    /// The environment understood the action.
    pub action_is_valid: bool,
    /// The action changed the state.
    pub action_is_effective: bool,
    /// Further numbers by name.
    #[serde(with = "nullable_map")]
    pub extra: BTreeMap<String, f64>,
}

/// One turn: the agent is shown a state, answers, and its actions are executed. Ranges index the episode's tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Given tokens since the previous response.
    pub prompt: Range<usize>,
    /// Sampled tokens, with the end-of-turn token when it was sampled.
    pub response: Range<usize>,
    /// Sampled tokens strictly between the reasoning's tags; `None` when there is no closed reasoning. A token that
    /// holds both reasoning and the beginning of the closing tag is left out.
    pub reasoning: Option<Range<usize>>,
    /// The user text of the turn.
    pub user: String,
    /// The state as shown.
    pub state: String,
    /// Identifies the state before the turn.
    pub state_key: String,
    /// Actions left before the turn.
    pub actions_left: usize,
    /// The response as text, without control tokens and without the forced opening tag.
    pub text: String,
    /// The end-of-turn token was sampled; `false`: the response was cut by a limit.
    pub stopped: bool,
    /// The response follows the format.
    pub format_ok: bool,
    /// The reasoning is not empty.
    pub has_reasoning: bool,
    /// Claims of the reasoning that the environment could check, and how many of them were true; `None` when it cannot
    /// tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<(usize, usize)>,
    /// Actions as written, after cutting.
    pub parsed: Vec<String>,
    /// Actions cut off as beyond the limit of a turn.
    pub cut: usize,
    /// Those of the parsed actions that the environment knows, in its own spelling.
    pub valid: Vec<String>,
    /// How many of the valid actions were executed.
    pub executed: usize,
    /// Sum of the rewards of the executed actions.
    pub reward: f64,
    /// Format penalty, 0 or negative. Not shown to the agent.
    pub penalty: f64,
    /// Earlier turns that, unlike in the turn before, were left out of the context for want of room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_turns: usize,
    /// What the environment said; `None` when nothing was executed.
    pub info: Option<TurnInfo>,
}

/// One episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Name of the environment's template.
    pub tag: String,
    /// Registry name of the environment.
    pub env_type: String,
    /// Position within the batch: group × group size + member.
    pub env_id: usize,
    /// Group within the batch; its members share instance and environment stream.
    pub group: usize,
    /// Member within the group.
    pub member: usize,
    /// Seed of the instance.
    pub seed: u64,
    /// The system text, if any.
    pub system: Option<String>,
    /// The whole conversation; where it consists of several samples, one behind the other. Ranges of turns are ranges
    /// of this list.
    pub tokens: Vec<u32>,
    /// Per token: sampled by the policy, or given.
    pub sampled: Vec<bool>,
    /// Per token: trained. Equals `sampled` unless template tokens are trained for compatibility.
    pub trained: Vec<bool>,
    /// Where the training samples begin (see [`crate::transcript`]). A sample holds everything that its responses were
    /// sampled after. Empty: the whole is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample_starts: Vec<usize>,
    /// Per sampled token: its log-probability under the whole temperature-scaled distribution.
    #[serde(with = "nullable")]
    pub log_probs: Vec<f32>,
    /// Per sampled token: its log-probability after top-k and top-p.
    #[serde(with = "nullable")]
    pub sampling_log_probs: Vec<f32>,
    /// The turns in order.
    pub turns: Vec<Turn>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its own metrics under RAGEN's names, without the tag.
    pub metrics: BTreeMap<String, f64>,
}

impl Episode {
    /// The raw return: all rewards and all penalties. Always finite.
    pub fn total_return(&self) -> f64 {
        self.turns.iter().map(|t| t.reward + t.penalty).sum()
    }

    /// All rewards, without penalties.
    pub fn reward(&self) -> f64 {
        self.turns.iter().map(|t| t.reward).sum()
    }

    /// Number of executed actions.
    pub fn num_actions(&self) -> usize {
        self.turns.iter().map(|t| t.executed).sum()
    }

    /// Number of sampled tokens.
    pub fn response_length(&self) -> usize {
        self.sampled.iter().filter(|s| **s).count()
    }

    /// The token ranges of its samples, in order; at least one.
    pub fn samples(&self) -> Vec<Range<usize>> {
        let later = self.sample_starts.iter().copied().filter(|start| *start > 0);
        let starts: Vec<usize> = std::iter::once(0).chain(later).collect();
        let ends = starts.iter().skip(1).copied().chain([self.tokens.len()]);
        starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
    }

    /// Everything in front of the token at `position` that it was sampled after.
    pub fn context_of(&self, position: usize) -> &[u32] {
        let start = self.sample_starts.iter().rev().find(|start| **start <= position).copied().unwrap_or(0);
        self.tokens.get(start..position).unwrap_or_default()
    }

    /// As training sequences, one for each sample that has a token to train. Where template tokens are trained for
    /// compatibility, the recorded log-probabilities do not cover them: score the sequences anew.
    pub fn to_sequences(&self) -> Vec<Sequence> {
        let samples = self.samples().into_iter().filter(|range| self.trained[range.clone()].contains(&true));
        samples
            .map(|range| Sequence {
                tokens: self.tokens[range.clone()].to_vec(),
                sampled: self.trained[range].to_vec(),
            })
            .collect()
    }

    /// Number of tokens that [`Episode::to_sequences`] trains.
    pub fn trained_len(&self) -> usize {
        self.trained.iter().filter(|trained| **trained).count()
    }

    /// For each token that [`Episode::to_sequences`] trains, the turn it belongs to. A template token belongs to the
    /// turn whose response it surrounds.
    pub fn turn_of_trained_tokens(&self) -> Vec<usize> {
        let mut owners = Vec::new();
        for (t, turn) in self.turns.iter().enumerate() {
            // Template tokens right behind a response belong to it; those in front of the next one, to that one.
            let mut behind = t > 0;
            for trained in self.trained.iter().take(turn.prompt.end).skip(turn.prompt.start) {
                behind &= *trained;
                if *trained {
                    owners.push(if behind { t - 1 } else { t });
                }
            }
            let response = self.trained.iter().take(turn.response.end).skip(turn.response.start);
            owners.extend(response.filter(|trained| **trained).map(|_| t));
        }
        owners
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Numbers that may be non-finite, which JSON can only write as null.
mod nullable {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|v| v.is_finite().then_some(*v)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
        let values = Vec::<Option<f32>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|v| v.unwrap_or(f32::NAN)).collect())
    }
}

/// As [`nullable`], by name.
mod nullable_map {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(values: &BTreeMap<String, f64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(key, v)| (key, v.is_finite().then_some(*v))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
        let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|(key, v)| (key, v.unwrap_or(f64::NAN))).collect())
    }
}

#[cfg(test)]
#[path = "episode_fixtures.rs"]
pub(crate) mod fixtures;
