//! Estimators built on the reward to go of each token: REINFORCE++ and ReMax.

use super::{AdvantageError, ValueAdvantage};
use crate::tokens::{Rows, check_finite, check_len, whiten};

/// Discounted rewards to go: G_t = r_t + γG_{t+1} over the sampled tokens of each row.
///
/// # Shapes
/// `rewards` and the result: one per token.
///
/// # Errors
/// A length or a number that is not finite.
pub fn rewards_to_go(rows: &Rows, rewards: &[f64], gamma: f64) -> Result<Vec<f64>, AdvantageError> {
    to_go(rows, rewards, gamma, &[])
}

fn to_go(rows: &Rows, rewards: &[f64], gamma: f64, gaps: &[usize]) -> Result<Vec<f64>, AdvantageError> {
    rows.check_tokens("rewards", rewards)?;
    let mut cut = vec![false; rows.tokens()];
    for gap in gaps {
        if let Some(flag) = cut.get_mut(*gap) {
            *flag = true;
        }
    }
    let mut out = vec![0.0; rows.tokens()];
    for range in rows.ranges() {
        let mut running = 0.0;
        for t in range.rev() {
            if cut[t] {
                running = 0.0;
            }
            running = rewards[t] + gamma * running;
            out[t] = running;
        }
    }
    Ok(out)
}

/// Settings of [`reinforce_plus_plus`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReinforcePlusPlus<'a> {
    /// Discount per sampled token.
    pub gamma: f64,
    /// For agreement with veRL: flat positions of sampled tokens that given tokens follow within their row. The return
    /// is reset there, so that only the last turn sees an outcome reward. Empty: given tokens are skipped, which is
    /// what multi-turn data needs.
    pub reset_after: &'a [usize],
}

impl Default for ReinforcePlusPlus<'_> {
    fn default() -> Self {
        Self { gamma: 1.0, reset_after: &[] }
    }
}

/// REINFORCE++ (arXiv 2501.03262): rewards to go, whitened over all sampled tokens of the batch.
///
/// # Shapes
/// `rewards` and both results: one per token. `returns` are not whitened.
///
/// # Errors
/// A length, a number that is not finite, or fewer than two tokens.
pub fn reinforce_plus_plus(
    rows: &Rows,
    rewards: &[f64],
    options: ReinforcePlusPlus<'_>,
) -> Result<ValueAdvantage, AdvantageError> {
    let returns = to_go(rows, rewards, options.gamma, options.reset_after)?;
    Ok(ValueAdvantage { advantages: whiten(&returns)?, returns })
}

/// ReMax (arXiv 2310.10505): A_t = Σ_{k ≥ t} r_k − b, b the return of the greedy response to the same prompt.
///
/// # Shapes
/// `rewards` and both results: one per token; `baselines`: one per row.
///
/// # Errors
/// A length or a number that is not finite.
pub fn remax(rows: &Rows, rewards: &[f64], baselines: &[f64]) -> Result<ValueAdvantage, AdvantageError> {
    check_len("baselines", "row", rows.len(), baselines.len())?;
    check_finite("baselines", baselines)?;
    let returns = rewards_to_go(rows, rewards, 1.0)?;
    let spread = rows.spread(baselines)?;
    let advantages = returns.iter().zip(spread).map(|(g, b)| g - b).collect();
    Ok(ValueAdvantage { advantages, returns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_by_hand() {
        let rows = Rows::from_lengths([3, 1]);
        let got = rewards_to_go(&rows, &[0.0, 1.0, 4.0, 8.0], 0.5).unwrap();
        assert_eq!(got, vec![1.5, 3.0, 4.0, 8.0]);
    }

    #[test]
    fn a_gap_hides_the_outcome_only_on_request() {
        let rows = Rows::from_lengths([2]);
        let seen = reinforce_plus_plus(&rows, &[0.0, 1.0], ReinforcePlusPlus::default()).unwrap();
        assert_eq!(seen.returns, vec![1.0, 1.0]);
        let options = ReinforcePlusPlus { gamma: 1.0, reset_after: &[0] };
        let hidden = reinforce_plus_plus(&rows, &[0.0, 1.0], options).unwrap();
        assert_eq!(hidden.returns, vec![0.0, 1.0]);
        assert!(hidden.advantages[0] < 0.0 && hidden.advantages[1] > 0.0);
    }

    #[test]
    fn remax_subtracts_the_greedy_return() {
        let rows = Rows::from_lengths([2, 1]);
        let out = remax(&rows, &[1.0, 2.0, 5.0], &[0.5, 1.0]).unwrap();
        assert_eq!(out.advantages, vec![2.5, 1.5, 4.0]);
        assert_eq!(out.returns, vec![3.0, 2.0, 5.0]);
        assert!(remax(&rows, &[1.0, 2.0, 5.0], &[0.5]).is_err());
        assert!(remax(&rows, &[1.0, 2.0, 5.0], &[0.5, f64::INFINITY]).is_err());
    }

    #[test]
    fn one_token_can_not_be_whitened() {
        let rows = Rows::from_lengths([1]);
        assert!(reinforce_plus_plus(&rows, &[1.0], ReinforcePlusPlus::default()).is_err());
    }
}
