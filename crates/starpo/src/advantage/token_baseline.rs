//! The optimal token baseline (Li et al., "Optimal Token Baseline", 2025): a baseline per token position, weighted by
//! an estimate of the squared norm of the score function accumulated up to that position.

use super::{AdvantageError, SingletonGroup, ValueAdvantage, check_rows, rewards_to_go, split};
use crate::tokens::{Rows, check_len};

/// Settings of [`optimal_token_baseline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TokenBaselineOptions {
    /// Give no baseline to the longest row of a group beyond the length of the second longest.
    pub handle_zero_tail: bool,
    /// What a group of one gets: [`SingletonGroup::RawReturn`] leaves its reward to go alone.
    pub singleton: SingletonGroup,
}

/// What [`optimal_token_baseline`] reads, one number per sampled token unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct TokenBaselineInputs<'a> {
    /// Rewards.
    pub rewards: &'a [f64],
    /// log π of the sampled token.
    pub log_prob: &'a [f64],
    /// Σ_v π(v)² of the distribution the token was drawn from.
    pub sum_pi_squared: &'a [f64],
    /// Importance weights; their square enters the baseline's weights.
    pub is_weight: Option<&'a [f64]>,
    /// Absolute position of each token in its row, increasing within the row, given tokens counted. With it positions
    /// are compared absolutely; without it (the multi-turn form) the n-th sampled tokens of the rows are compared.
    pub positions: Option<&'a [usize]>,
    /// Group label per row.
    pub groups: &'a [usize],
}

/// A_t = G_t − b_t with b_t = Σ_i G_{i,t} W_{i,t} / (Σ_i W_{i,t} + 1e-8) over the group, W_t = Σ_{j ≤ t} w_j and
/// w = 1 − 2π + Σπ². Rows without a sampled token at the position do not take part.
///
/// # Shapes
/// Result: one per token; `returns` are the undiscounted rewards to go.
///
/// # Errors
/// A length, a number that is not finite, or a group of one under [`SingletonGroup::Error`].
pub fn optimal_token_baseline(
    rows: &Rows,
    inputs: TokenBaselineInputs<'_>,
    options: TokenBaselineOptions,
) -> Result<ValueAdvantage, AdvantageError> {
    check_rows(&vec![0.0; rows.len()], inputs.groups)?;
    rows.check_tokens("log_prob", inputs.log_prob)?;
    rows.check_tokens("sum_pi_squared", inputs.sum_pi_squared)?;
    if let Some(weights) = inputs.is_weight {
        rows.check_tokens("is_weight", weights)?;
    }
    if let Some(positions) = inputs.positions {
        check_len("positions", "sampled token", rows.tokens(), positions.len())?;
    }
    let returns = rewards_to_go(rows, inputs.rewards, 1.0)?;
    let mut cumulative = vec![0.0; rows.tokens()];
    for range in rows.ranges() {
        let mut sum = 0.0;
        for t in range {
            let weight = inputs.is_weight.map_or(1.0, |w| w[t] * w[t]);
            sum += (1.0 - 2.0 * inputs.log_prob[t].exp() + inputs.sum_pi_squared[t]) * weight;
            cumulative[t] = sum;
        }
    }
    let position = |t: usize, start: usize| inputs.positions.map_or(t - start, |p| p[t]);
    let mut advantages = returns.clone();
    for group in split(inputs.groups) {
        if let [row] = group.rows[..] {
            match options.singleton {
                SingletonGroup::Error => return Err(AdvantageError::SingletonGroup { group: group.label, row }),
                SingletonGroup::Zero => advantages[rows.range(row)].fill(0.0),
                SingletonGroup::RawReturn => {}
            }
            continue;
        }
        let (longest, bound) = second_longest(rows, &group.rows);
        for row in &group.rows {
            let range = rows.range(*row);
            for t in range.clone() {
                let here = position(t, range.start);
                if options.handle_zero_tail && longest == Some(*row) && here >= bound {
                    continue;
                }
                let (mut numerator, mut denominator) = (0.0, 0.0);
                for other in &group.rows {
                    let other = rows.range(*other);
                    let at = match inputs.positions {
                        Some(positions) => other.start + positions[other.clone()].partition_point(|p| *p < here),
                        None => (other.start + here).min(other.end),
                    };
                    if at < other.end && position(at, other.start) == here {
                        numerator += returns[at] * cumulative[at];
                        denominator += cumulative[at];
                    }
                }
                advantages[t] = returns[t] - numerator / (denominator + 1e-8);
            }
        }
    }
    Ok(ValueAdvantage { advantages, returns })
}

/// The single longest row, if there is one, and the length of the second longest.
fn second_longest(rows: &Rows, members: &[usize]) -> (Option<usize>, usize) {
    let mut longest = (0, None);
    let mut second = 0;
    for row in members {
        let length = rows.row_len(*row);
        if length > longest.0 || longest.1.is_none() {
            second = longest.0;
            longest = (length, Some(*row));
        } else {
            second = second.max(length);
        }
    }
    (longest.1.filter(|_| longest.0 > second), second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rewards: &[f64], lengths: [usize; 2], options: TokenBaselineOptions) -> Vec<f64> {
        let rows = Rows::from_lengths(lengths);
        let n = rows.tokens();
        let inputs = TokenBaselineInputs {
            rewards,
            log_prob: &vec![0.5f64.ln(); n],
            sum_pi_squared: &vec![0.5; n],
            is_weight: None,
            positions: None,
            groups: &[0, 0],
        };
        optimal_token_baseline(&rows, inputs, options).unwrap().advantages
    }

    #[test]
    fn equal_weights_give_the_mean_per_position() {
        let got = run(&[1.0, 2.0, 0.0, 4.0], [2, 2], TokenBaselineOptions::default());
        for (g, w) in got.iter().zip([-0.5, -1.0, 0.5, 1.0]) {
            assert!((g - w).abs() < 1e-7, "{got:?}");
        }
    }

    #[test]
    fn the_tail_of_the_longest_row_may_go_without() {
        let options = TokenBaselineOptions { handle_zero_tail: true, ..TokenBaselineOptions::default() };
        let got = run(&[1.0, 2.0, 3.0], [1, 2], options);
        assert!((got[2] - 3.0).abs() < 1e-12);
        let without = run(&[1.0, 2.0, 3.0], [1, 2], TokenBaselineOptions::default());
        assert!(without[2].abs() < 1e-7, "alone at its position, it is its own baseline");
    }
}
