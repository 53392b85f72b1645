//! Episodes made by hand, for tests of what is computed from them.

use super::*;

/// A turn of a hand-made episode.
pub struct Played {
    /// Identifies the state before the turn.
    pub state: &'static str,
    /// Sampled tokens.
    pub tokens: usize,
    /// Reward.
    pub reward: f64,
}

/// A turn in `state` that samples `tokens` tokens and earns `reward`.
pub fn turn(state: &'static str, tokens: usize, reward: f64) -> Played {
    Played { state, tokens, reward }
}

/// An episode of these turns; each is prompted by two given tokens, and sampled tokens have the log-probability −0.5.
pub fn episode(group: usize, member: usize, turns: &[Played]) -> Episode {
    let mut tokens = Vec::new();
    let mut sampled = Vec::new();
    let mut made = Vec::new();
    for turn in turns {
        let start = tokens.len();
        tokens.extend([1, 2]);
        tokens.extend((0..turn.tokens).map(|t| 10 + t as u32));
        sampled.extend([false, false]);
        sampled.resize(tokens.len(), true);
        made.push(Turn {
            prompt: start..start + 2,
            response: start + 2..tokens.len(),
            state: turn.state.to_owned(),
            state_key: turn.state.to_owned(),
            stopped: true,
            format_ok: true,
            reward: turn.reward,
            ..Turn::default()
        });
    }
    let n = sampled.iter().filter(|s| **s).count();
    Episode {
        tag: "Test".into(),
        env_type: "test".into(),
        env_id: group * 10 + member,
        group,
        member,
        seed: group as u64,
        system: None,
        trained: sampled.clone(),
        tokens,
        sampled,
        sample_starts: Vec::new(),
        log_probs: vec![-0.5; n],
        sampling_log_probs: vec![-0.5; n],
        turns: made,
        outcome: Outcome::TurnLimit,
        metrics: BTreeMap::new(),
    }
}
