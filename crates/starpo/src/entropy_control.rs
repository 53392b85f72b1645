//! What entropy control remembers between updates: the adaptive coefficient and the running mean entropy of each turn.

use serde::{Deserialize, Serialize};

use crate::config::Actor;
use crate::loss::AdaptiveEntropy;

/// The state of entropy control. Part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntropyControl {
    /// The adaptive weight in waiting; `None` before the first update.
    pub alpha: Option<f64>,
    /// Mean token entropy of the last update.
    pub measured: Option<f64>,
    /// Mean entropy of each turn over past updates, and how many these were.
    pub turns: Vec<(f64, u64)>,
}

impl EntropyControl {
    fn adaptive(&self, actor: &Actor) -> AdaptiveEntropy {
        let setting = &actor.adaptive_entropy;
        AdaptiveEntropy {
            alpha: self.alpha.unwrap_or(setting.min),
            min: setting.min,
            max: setting.max,
            delta: setting.delta,
            target: setting.target,
            measured: self.measured,
        }
    }

    /// Weight of the bonus in the next update.
    pub fn coeff(&self, actor: &Actor) -> f64 {
        if actor.adaptive_entropy.enable { self.adaptive(actor).coeff() } else { actor.entropy_coeff }
    }

    /// The running means, for the band.
    pub fn reference(&self) -> Vec<Option<f64>> {
        self.turns.iter().map(|(mean, n)| (*n > 0).then_some(*mean)).collect()
    }

    /// Tells what an update measured: sum of entropies and number of tokens, per turn.
    pub fn update(&mut self, actor: &Actor, turns: &[(f64, f64)]) {
        let (sum, n) = turns.iter().fold((0.0, 0.0), |(s, n), (sum, count)| (s + sum, n + count));
        if n > 0.0 {
            let mut adaptive = self.adaptive(actor);
            adaptive.update(sum / n);
            (self.alpha, self.measured) = (Some(adaptive.alpha), adaptive.measured);
        }
        if self.turns.len() < turns.len() {
            self.turns.resize(turns.len(), (0.0, 0));
        }
        for ((mean, updates), (sum, n)) in self.turns.iter_mut().zip(turns) {
            if *n > 0.0 && sum.is_finite() {
                *updates += 1;
                *mean += (sum / n - *mean) / *updates as f64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_follows_the_target() {
        let mut actor = Actor::default();
        let mut state = EntropyControl::default();
        actor.entropy_coeff = 0.25;
        assert_eq!(state.coeff(&actor), 0.25, "off, it is the configured weight");
        actor.adaptive_entropy.enable = true;
        (actor.adaptive_entropy.target, actor.adaptive_entropy.delta) = (0.5, 0.001);
        assert_eq!(state.coeff(&actor), 0.0, "nothing is measured yet");
        state.update(&actor, &[(0.8, 2.0), (0.1, 1.0)]);
        assert_eq!(state.coeff(&actor), 0.001);
        // Written and read again it goes on where it stood.
        state = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        state.update(&actor, &[(0.2, 2.0)]);
        assert_eq!(state.coeff(&actor), 0.002);
        state.update(&actor, &[(3.0, 2.0)]);
        assert_eq!((state.coeff(&actor), state.alpha), (0.0, Some(0.001)));
    }

    #[test]
    fn means_run_over_updates_turn_by_turn() {
        let (actor, mut state) = (Actor::default(), EntropyControl::default());
        assert!(state.reference().is_empty());
        state.update(&actor, &[(1.0, 2.0)]);
        state.update(&actor, &[(3.0, 2.0), (4.0, 1.0), (0.0, 0.0)]);
        assert_eq!(state.reference(), [Some(1.0), Some(4.0), None]);
        state.update(&actor, &[]);
        assert_eq!(state.reference(), [Some(1.0), Some(4.0), None]);
    }
}
