//! Corrections for a sampler that is not the policy being trained: truncated importance weights (Yao et al., 2025),
//! rejection, and statistics of how far apart the two are.
//!
//! d = log π_train − log π_sampler, clamped to ±20 before any exponential. When both run the same arithmetic d is 0,
//! every weight 1 and nothing is rejected.

use super::{LOG_RATIO_CLAMP, LossError, check_range};
use crate::tokens::{Rows, check_finite, check_len, mean, mean_std};

/// Level of the importance weights (`rollout_is`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IsLevel {
    /// exp(d) per token.
    #[default]
    Token,
    /// exp(Σ_t d) for all tokens of the row: unbiased before the cap, of high variance.
    Sequence,
}

/// Settings of [`is_weights`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsOptions {
    /// Token or sequence.
    pub level: IsLevel,
    /// Weights are capped at this from above (`rollout_is_threshold`).
    pub threshold: f64,
    /// Divide by the mean weight (`rollout_is_batch_normalize`): over tokens, or over non-empty rows.
    pub batch_normalize: bool,
}

impl Default for IsOptions {
    fn default() -> Self {
        Self { level: IsLevel::Token, threshold: 2.0, batch_normalize: false }
    }
}

fn check(rows: &Rows, log_ratio: &[f64]) -> Result<(), LossError> {
    check_len("log_ratio", "sampled token", rows.tokens(), log_ratio.len())?;
    check_finite("log_ratio", log_ratio)?;
    Ok(())
}

/// Truncated importance weights min(exp d, C), without a lower cap.
///
/// # Shapes
/// `log_ratio` and the result: one per token.
///
/// # Errors
/// Lengths, numbers that are not finite, a threshold that is not positive.
pub fn is_weights(rows: &Rows, log_ratio: &[f64], options: &IsOptions) -> Result<Vec<f64>, LossError> {
    check(rows, log_ratio)?;
    check_range("rollout_is_threshold", options.threshold, options.threshold > 0.0, "above 0")?;
    let weight = |d: f64| d.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP).exp().min(options.threshold);
    let (mut out, scale) = match options.level {
        IsLevel::Token => {
            let out: Vec<f64> = log_ratio.iter().map(|d| weight(*d)).collect();
            let scale = mean(&out);
            (out, scale)
        }
        IsLevel::Sequence => {
            let per_row: Vec<f64> = rows.sums(log_ratio)?.into_iter().map(weight).collect();
            let filled: Vec<f64> =
                per_row.iter().zip(rows.lengths()).filter(|(_, n)| *n > 0).map(|(w, _)| *w).collect();
            (rows.spread(&per_row)?, mean(&filled))
        }
    };
    if options.batch_normalize && scale > 0.0 {
        out.iter_mut().for_each(|w| *w /= scale);
    }
    Ok(out)
}

/// What the importance weights look like before the cap (`rollout_is_*`).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct IsMetrics {
    /// Mean over tokens.
    pub mean: f64,
    /// Largest, over tokens or rows by the level.
    pub max: f64,
    /// Smallest.
    pub min: f64,
    /// Population standard deviation over tokens, of weights held to [1/C, C].
    pub std: f64,
    /// (mean w)²/mean w² over tokens, of weights held to [1/C, C]: the share of the sample that is left.
    pub eff_sample_size: f64,
    /// Share above C, over tokens or rows by the level.
    pub fraction_high: f64,
    /// Share below 1/C.
    pub fraction_low: f64,
    /// Mean over rows of the row's mean weight (0 for an empty row).
    pub seq_mean: f64,
    /// Its unbiased standard deviation over rows; 0 for one row.
    pub seq_std: f64,
    /// Its largest value.
    pub seq_max: f64,
    /// Its smallest value.
    pub seq_min: f64,
    /// Its largest distance from 1.
    pub seq_max_deviation: f64,
}

/// Statistics of the weights [`is_weights`] caps; all 0 for a batch without tokens.
///
/// # Errors
/// As [`is_weights`].
pub fn is_metrics(rows: &Rows, log_ratio: &[f64], options: &IsOptions) -> Result<IsMetrics, LossError> {
    check(rows, log_ratio)?;
    let cap = options.threshold;
    check_range("rollout_is_threshold", cap, cap > 0.0, "above 0")?;
    if log_ratio.is_empty() {
        return Ok(IsMetrics::default());
    }
    let ratio = |d: &f64| d.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP).exp();
    let units: Vec<f64> = match options.level {
        IsLevel::Token => log_ratio.iter().map(ratio).collect(),
        IsLevel::Sequence => rows.sums(log_ratio)?.iter().map(ratio).collect(),
    };
    let tokens = match options.level {
        IsLevel::Token => units.clone(),
        IsLevel::Sequence => rows.spread(&units)?,
    };
    let (low, high) = (cap.min(1.0 / cap), cap.max(1.0 / cap));
    let held: Vec<f64> = tokens.iter().map(|w| w.clamp(low, high)).collect();
    let squares: Vec<f64> = held.iter().map(|w| w * w).collect();
    let (held_mean, square_mean) = (mean(&held), mean(&squares));
    let share = |hit: &dyn Fn(f64) -> bool| units.iter().filter(|w| hit(**w)).count() as f64 / units.len() as f64;
    let per_row = rows.means(&tokens)?;
    let largest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let deviations: Vec<f64> = per_row.iter().map(|w| (w - 1.0).abs()).collect();
    Ok(IsMetrics {
        mean: mean(&tokens),
        max: largest(&units),
        min: smallest(&units),
        std: (square_mean - held_mean * held_mean).max(0.0).sqrt(),
        eff_sample_size: held_mean * held_mean / square_mean,
        fraction_high: share(&|w| w > cap),
        fraction_low: share(&|w| w < 1.0 / cap),
        seq_mean: mean(&per_row),
        seq_std: if per_row.len() > 1 { mean_std(&per_row).1 } else { 0.0 },
        seq_max: largest(&per_row),
        seq_min: smallest(&per_row),
        seq_max_deviation: largest(&deviations),
    })
}

/// The statistic a rejection rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionStatistic {
    /// −d, kept between two bounds.
    K1,
    /// d²/2, kept up to a bound.
    K2,
    /// e^d − 1 − d, kept up to a bound.
    K3,
}

/// What a rejection rule accepts or rejects as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionUnit {
    /// Each token by its own statistic.
    Token,
    /// The row by the sum over its tokens.
    SeqSum,
    /// The row by the mean over its tokens (the geometric mean of ratios, for k1).
    SeqMean,
    /// The row by its largest token.
    SeqMax,
}

/// One rejection rule (`rollout_rs` with `rollout_rs_threshold`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RejectionRule {
    /// Token or row.
    pub unit: RejectionUnit,
    /// Of what.
    pub statistic: RejectionStatistic,
    /// Lowest value kept.
    pub lower: f64,
    /// Highest value kept.
    pub upper: f64,
}

impl RejectionRule {
    /// Reads a rule such as `token_k1` with `0.8_1.25` or `seq_mean_k3` with `0.03`. The bounds of k1 are ratios; a
    /// single bound u means 1/u to u.
    ///
    /// # Errors
    /// [`LossError::Unknown`] for a name or a threshold that can not be read.
    pub fn parse(name: &str, threshold: &str) -> Result<Self, LossError> {
        let unknown = |key, expected, found: &str| LossError::Unknown { key, expected, found: found.to_owned() };
        let bad_name = || unknown("rollout_rs", "{token|seq_sum|seq_mean|seq_max}_{k1|k2|k3}", name);
        let (unit, statistic) = name.rsplit_once('_').ok_or_else(bad_name)?;
        let unit = match unit {
            "token" => RejectionUnit::Token,
            "seq_sum" => RejectionUnit::SeqSum,
            "seq_mean" => RejectionUnit::SeqMean,
            "seq_max" => RejectionUnit::SeqMax,
            _ => return Err(bad_name()),
        };
        let statistic = match statistic {
            "k1" => RejectionStatistic::K1,
            "k2" => RejectionStatistic::K2,
            "k3" => RejectionStatistic::K3,
            _ => return Err(bad_name()),
        };
        let bad = || unknown("rollout_rs_threshold", "a positive number, or lower_upper for k1", threshold);
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0).ok_or_else(bad);
        let (lower, upper) = match (statistic, threshold.split_once('_')) {
            (RejectionStatistic::K1, Some((lower, upper))) => (number(lower)?.ln(), number(upper)?.ln()),
            (RejectionStatistic::K1, None) => {
                let upper = number(threshold)?.ln();
                (-upper, upper)
            }
            (_, Some(_)) => return Err(bad()),
            (_, None) => (f64::NEG_INFINITY, number(threshold)?),
        };
        Ok(Self { unit, statistic, lower, upper })
    }

    fn keeps(&self, value: f64) -> bool {
        value >= self.lower && value <= self.upper
    }
}

/// Which tokens all rules keep. Multiply the weights of the others by 0.
///
/// # Shapes
/// `log_ratio` and the result: one per token.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn rejection_mask(rows: &Rows, log_ratio: &[f64], rules: &[RejectionRule]) -> Result<Vec<bool>, LossError> {
    check(rows, log_ratio)?;
    let mut out = vec![true; rows.tokens()];
    for rule in rules {
        let statistic = |t: usize| {
            let d = log_ratio[t].clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP);
            match rule.statistic {
                RejectionStatistic::K1 => -d,
                RejectionStatistic::K2 => 0.5 * d * d,
                RejectionStatistic::K3 => d.exp() - 1.0 - d,
            }
        };
        for range in rows.ranges() {
            let sum: f64 = range.clone().map(statistic).sum();
            let whole = match rule.unit {
                RejectionUnit::Token => None,
                RejectionUnit::SeqSum => Some(sum),
                RejectionUnit::SeqMean => Some(sum / (range.len() as f64 + 1e-8)),
                RejectionUnit::SeqMax => Some(range.clone().map(statistic).fold(f64::NEG_INFINITY, f64::max)),
            };
            for t in range {
                out[t] &= rule.keeps(whole.unwrap_or_else(|| statistic(t)));
            }
        }
    }
    Ok(out)
}

/// How far the sampler is from the trained policy.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct OffPolicyMetrics {
    /// Mean over rows of exp(−mean log π_train).
    pub training_ppl: f64,
    /// Mean over rows of −mean log π_train.
    pub training_log_ppl: f64,
    /// Mean over rows of exp(−mean log π_sampler).
    pub rollout_ppl: f64,
    /// Mean over rows of −mean log π_sampler.
    pub rollout_log_ppl: f64,
    /// Mean over tokens of log π_sampler − log π_train.
    pub kl: f64,
    /// Mean over tokens of e^d − d − 1.
    pub k3_kl: f64,
    /// Mean over rows of the difference of log-perplexities, training − sampler.
    pub log_ppl_diff: f64,
    /// Mean of its magnitude.
    pub log_ppl_abs_diff: f64,
    /// Its maximum.
    pub log_ppl_diff_max: f64,
    /// Its minimum.
    pub log_ppl_diff_min: f64,
    /// Mean over rows of the ratio of perplexities.
    pub ppl_ratio: f64,
    /// Mean over tokens of ρ² − 1.
    pub chi2_token: f64,
    /// Mean over rows of (Π ρ)² − 1.
    pub chi2_seq: f64,
}

/// Statistics of the two log-probabilities of the same tokens. Empty rows count as rows without any difference.
///
/// # Errors
/// Lengths and numbers that are not finite.
pub fn off_policy_metrics(
    rows: &Rows,
    log_prob: &[f64],
    sampler_log_prob: &[f64],
) -> Result<OffPolicyMetrics, LossError> {
    check_len("log_prob", "sampled token", rows.tokens(), log_prob.len())?;
    check_len("sampler_log_prob", "sampled token", rows.tokens(), sampler_log_prob.len())?;
    check_finite("log_prob", log_prob)?;
    check_finite("sampler_log_prob", sampler_log_prob)?;
    if rows.is_empty() {
        return Ok(OffPolicyMetrics::default());
    }
    let training: Vec<f64> = rows.means(log_prob)?.iter().map(|lp| -lp).collect();
    let rollout: Vec<f64> = rows.means(sampler_log_prob)?.iter().map(|lp| -lp).collect();
    let diff: Vec<f64> = training.iter().zip(&rollout).map(|(a, b)| a - b).collect();
    let d: Vec<f64> = log_prob.iter().zip(sampler_log_prob).map(|(a, b)| a - b).collect();
    let average = |values: &[f64], f: &dyn Fn(f64) -> f64| mean(&values.iter().map(|x| f(*x)).collect::<Vec<_>>());
    let clamped = |x: f64| x.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP);
    Ok(OffPolicyMetrics {
        training_ppl: average(&training, &f64::exp),
        training_log_ppl: mean(&training),
        rollout_ppl: average(&rollout, &f64::exp),
        rollout_log_ppl: mean(&rollout),
        kl: -mean(&d),
        k3_kl: average(&d, &|x| x.exp() - x - 1.0),
        log_ppl_diff: mean(&diff),
        log_ppl_abs_diff: average(&diff, &f64::abs),
        log_ppl_diff_max: diff.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        log_ppl_diff_min: diff.iter().copied().fold(f64::INFINITY, f64::min),
        ppl_ratio: average(&diff, &f64::exp),
        chi2_token: if d.is_empty() { 0.0 } else { average(&d, &|x| (2.0 * clamped(x)).exp()) - 1.0 },
        chi2_seq: average(&rows.sums(&d)?, &|x| (2.0 * clamped(x)).exp()) - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_arithmetic_changes_nothing() {
        let rows = Rows::from_lengths([2, 0, 1]);
        for level in [IsLevel::Token, IsLevel::Sequence] {
            let options = IsOptions { level, batch_normalize: true, ..IsOptions::default() };
            assert_eq!(is_weights(&rows, &[0.0; 3], &options).unwrap(), vec![1.0; 3]);
        }
        let rule = RejectionRule::parse("seq_max_k3", "0.01").unwrap();
        assert_eq!(rejection_mask(&rows, &[0.0; 3], &[rule]).unwrap(), vec![true; 3]);
        let metrics = off_policy_metrics(&rows, &[-1.0; 3], &[-1.0; 3]).unwrap();
        assert_eq!((metrics.kl, metrics.chi2_token, metrics.chi2_seq, metrics.ppl_ratio), (0.0, 0.0, 0.0, 1.0));
        assert_eq!(off_policy_metrics(&Rows::from_lengths([]), &[], &[]).unwrap(), OffPolicyMetrics::default());
    }

    #[test]
    fn weights_are_capped_from_above_only() {
        let rows = Rows::from_lengths([2]);
        let got = is_weights(&rows, &[3.0, -3.0], &IsOptions::default()).unwrap();
        assert_eq!(got[0], 2.0);
        assert!((got[1] - (-3.0f64).exp()).abs() < 1e-15);
        let metrics = is_metrics(&rows, &[3.0, -3.0], &IsOptions::default()).unwrap();
        assert_eq!((metrics.fraction_high, metrics.fraction_low, metrics.max), (0.5, 0.5, 3.0f64.exp()));
        // Held to [1/2, 2]: mean 1.25, mean square 2.125.
        assert!((metrics.eff_sample_size - 1.5625 / 2.125).abs() < 1e-12);
        assert_eq!(is_metrics(&Rows::from_lengths([0]), &[], &IsOptions::default()).unwrap(), IsMetrics::default());
    }

    #[test]
    fn rules_are_read() {
        let rule = RejectionRule::parse("token_k1", "1.25").unwrap();
        assert_eq!((rule.unit, rule.statistic), (RejectionUnit::Token, RejectionStatistic::K1));
        assert!((rule.lower + rule.upper).abs() < 1e-15);
        for (name, threshold) in
            [("token", "1"), ("tokens_k1", "1"), ("token_k4", "1"), ("token_k2", "0.1_0.2"), ("token_k1", "x")]
        {
            assert!(RejectionRule::parse(name, threshold).is_err(), "{name} {threshold}");
        }
    }
}
