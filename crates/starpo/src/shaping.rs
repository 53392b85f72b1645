//! Shaping: what is added to the rewards of turns before credit is assigned. The raw rewards stay as they are, so that
//! filter, diagnostics and scores do not see it; every term is a metric of its own.

use crate::advantage::{AdvantageError, OverlongPenalty};
use crate::config::Config;
use crate::episode::Episode;
use crate::metrics::Metrics;

/// What is added to each turn of each episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shaping {
    /// Sum of all terms, per episode and turn; empty when no term is on.
    pub per_turn: Vec<Vec<f64>>,
    /// The mean of each term over episodes, under `shaping/<term>`.
    pub metrics: Metrics,
}

/// The terms of a configuration for these episodes.
///
/// # Errors
/// [`AdvantageError::Setting`] for settings out of range, which a checked configuration does not hold.
pub fn shape(config: &Config, episodes: &[&Episode]) -> Result<Shaping, AdvantageError> {
    let mut shaping = Shaping::default();
    let overlong = &config.algorithm.overlong_buffer;
    if overlong.enable {
        let rule = OverlongPenalty {
            max_response_length: config.actor_rollout_ref.rollout.response_length as f64,
            buffer: overlong.len as f64,
            penalty_factor: overlong.penalty_factor,
        };
        let term = episodes
            .iter()
            .map(|e| e.turns.iter().map(|t| rule.reward(t.response.len())).collect::<Result<Vec<f64>, _>>())
            .collect::<Result<Vec<_>, _>>()?;
        shaping.add("overlong", term);
    }
    Ok(shaping)
}

impl Shaping {
    fn add(&mut self, name: &str, term: Vec<Vec<f64>>) {
        let total: f64 = term.iter().flatten().sum();
        self.metrics.set(format!("shaping/{name}"), total / term.len().max(1) as f64);
        if self.per_turn.is_empty() {
            self.per_turn = term;
            return;
        }
        for (sum, more) in self.per_turn.iter_mut().flatten().zip(term.into_iter().flatten()) {
            *sum += more;
        }
    }
}
