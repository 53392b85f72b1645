//! Group-relative estimators: the baseline of a row is made from the returns of its group.

use super::{AdvantageError, SingletonGroup, check_rows, group_stats, split};
use crate::tokens::{Rows, check_len, mean_std, whiten};

/// Settings of [`grpo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrpoOptions {
    /// Divide by the group's standard deviation (`algorithm.norm_adv_by_std_in_grpo`). False is Dr.GRPO.
    pub norm_adv_by_std_in_grpo: bool,
    /// Added to the standard deviation.
    pub eps: f64,
    /// Floor of the variance before the root; 0 leaves it alone, 1e-6 is veRL's `grpo_vectorized`.
    pub min_variance: f64,
    /// What a group of one gets.
    pub singleton: SingletonGroup,
}

impl Default for GrpoOptions {
    fn default() -> Self {
        Self { norm_adv_by_std_in_grpo: true, eps: 1e-6, min_variance: 0.0, singleton: SingletonGroup::Error }
    }
}

/// Settings of the estimators that know nothing but a group baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BaselineOptions {
    /// What a group of one gets.
    pub singleton: SingletonGroup,
}

/// GRPO (DeepSeekMath, arXiv 2402.03300): A = (R − μ_g)/(σ_g + ε), with the unbiased deviation.
///
/// # Shapes
/// `returns`, `groups` and the result: one value per row.
///
/// # Errors
/// A length, a return that is not finite, or a group of one under [`SingletonGroup::Error`].
pub fn grpo(returns: &[f64], groups: &[usize], options: GrpoOptions) -> Result<Vec<f64>, AdvantageError> {
    check_rows(returns, groups)?;
    let mut out = vec![0.0; returns.len()];
    for group in split(groups) {
        let stats = group_stats(&group, &group.rows, returns, options.singleton)?;
        let scale = if options.norm_adv_by_std_in_grpo {
            (stats.std * stats.std).max(options.min_variance).sqrt() + options.eps
        } else {
            1.0
        };
        for row in group.rows {
            out[row] = (returns[row] - stats.mean) / scale;
        }
    }
    Ok(out)
}

/// Dr.GRPO (arXiv 2503.20783): A = R − μ_g. Pair it with a constant-length aggregation.
///
/// # Errors
/// As [`grpo`].
pub fn dr_grpo(returns: &[f64], groups: &[usize], options: BaselineOptions) -> Result<Vec<f64>, AdvantageError> {
    let singleton = options.singleton;
    grpo(returns, groups, GrpoOptions { norm_adv_by_std_in_grpo: false, singleton, ..GrpoOptions::default() })
}

/// LitePPO (arXiv 2508.08221): A = (R − μ_g)/(σ_batch + ε): group mean, standard deviation of all returns.
///
/// # Errors
/// As [`grpo`]; a batch of fewer than two rows has no deviation and divides by 1.
pub fn grpo_batch_std(returns: &[f64], groups: &[usize], options: GrpoOptions) -> Result<Vec<f64>, AdvantageError> {
    let centred = dr_grpo(returns, groups, BaselineOptions { singleton: options.singleton })?;
    let (_, std) = mean_std(returns);
    let scale = if std.is_finite() { std + options.eps } else { 1.0 };
    Ok(centred.into_iter().map(|a| a / scale).collect())
}

/// Pass@k credit (arXiv 2503.19595): only the best member of a group is credited, with R_max − R_second, divided by
/// σ_g + ε when `norm_adv_by_std_in_grpo` is set. On a tied maximum the difference is 0.
///
/// # Errors
/// As [`grpo`]; a group of one is [`AdvantageError::PassAtKSingleton`] whatever the options say.
pub fn grpo_passk(returns: &[f64], groups: &[usize], options: GrpoOptions) -> Result<Vec<f64>, AdvantageError> {
    check_rows(returns, groups)?;
    let mut out = vec![0.0; returns.len()];
    for group in split(groups) {
        if group.rows.len() < 2 {
            return Err(AdvantageError::PassAtKSingleton { group: group.label });
        }
        let stats = group_stats(&group, &group.rows, returns, options.singleton)?;
        let mut best = group.rows[0];
        let mut second = f64::NEG_INFINITY;
        for row in group.rows.iter().skip(1).copied() {
            if returns[row] > returns[best] {
                second = returns[best];
                best = row;
            } else {
                second = second.max(returns[row]);
            }
        }
        let scale = if options.norm_adv_by_std_in_grpo { stats.std + options.eps } else { 1.0 };
        out[best] = (returns[best] - second) / scale;
    }
    Ok(out)
}

/// RLOO (arXiv 2402.14740): A = R − mean of the other members = n/(n − 1)·(R − μ_g).
///
/// # Errors
/// As [`grpo`].
pub fn rloo(returns: &[f64], groups: &[usize], options: BaselineOptions) -> Result<Vec<f64>, AdvantageError> {
    check_rows(returns, groups)?;
    let mut out = vec![0.0; returns.len()];
    for group in split(groups) {
        let stats = group_stats(&group, &group.rows, returns, options.singleton)?;
        let n = group.rows.len() as f64;
        let factor = if n > 1.0 { n / (n - 1.0) } else { 1.0 };
        for row in group.rows {
            out[row] = factor * (returns[row] - stats.mean);
        }
    }
    Ok(out)
}

/// OPO (arXiv 2505.23585): A = R − Σ n_j R_j / Σ n_j, the length-weighted mean of the group with the own row included.
///
/// # Shapes
/// `lengths`: sampled tokens of each row. A group without any token has the baseline 0.
///
/// # Errors
/// As [`grpo`].
pub fn opo(
    returns: &[f64],
    lengths: &[usize],
    groups: &[usize],
    options: BaselineOptions,
) -> Result<Vec<f64>, AdvantageError> {
    check_rows(returns, groups)?;
    check_len("lengths", "row", returns.len(), lengths.len())?;
    let mut out = vec![0.0; returns.len()];
    for group in split(groups) {
        let baseline = if group.rows.len() == 1 {
            group_stats(&group, &group.rows, returns, options.singleton)?.mean
        } else {
            let weighted: f64 = group.rows.iter().map(|row| lengths[*row] as f64 * returns[*row]).sum();
            let total: f64 = group.rows.iter().map(|row| lengths[*row] as f64).sum();
            if total > 0.0 { weighted / total } else { 0.0 }
        };
        for row in group.rows {
            out[row] = returns[row] - baseline;
        }
    }
    Ok(out)
}

/// How GPG makes up for rows that carry no gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum GpgAlpha {
    /// α = rows / rows in groups whose returns differ: the paper's correction.
    #[default]
    MixedGroups,
    /// α = rows / rows with a raw return other than 0: what veRL computes.
    NonZeroReturns,
    /// α = 1.
    One,
}

/// Settings of [`gpg`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpgOptions {
    /// The divisor F (`f_norm`).
    pub f_norm: f64,
    /// The correction α.
    pub alpha: GpgAlpha,
    /// What a group of one gets.
    pub singleton: SingletonGroup,
}

impl Default for GpgOptions {
    fn default() -> Self {
        Self { f_norm: 1.0, alpha: GpgAlpha::default(), singleton: SingletonGroup::Error }
    }
}

/// GPG (arXiv 2504.02546): A = α(R − μ_g)/F.
///
/// # Errors
/// As [`grpo`]; [`AdvantageError::Setting`] when F is 0 or not finite.
pub fn gpg(returns: &[f64], groups: &[usize], options: GpgOptions) -> Result<Vec<f64>, AdvantageError> {
    if options.f_norm == 0.0 || !options.f_norm.is_finite() {
        return Err(AdvantageError::Setting { key: "f_norm", expected: "finite and not 0", found: options.f_norm });
    }
    let centred = dr_grpo(returns, groups, BaselineOptions { singleton: options.singleton })?;
    let carrying = match options.alpha {
        GpgAlpha::One => returns.len(),
        GpgAlpha::NonZeroReturns => returns.iter().filter(|r| **r != 0.0).count(),
        GpgAlpha::MixedGroups => split(groups)
            .iter()
            .filter(|group| group.rows.iter().any(|row| returns[*row] != returns[group.rows[0]]))
            .map(|group| group.rows.len())
            .sum(),
    };
    let alpha = returns.len() as f64 / carrying.max(1) as f64;
    Ok(centred.into_iter().map(|a| alpha * a / options.f_norm).collect())
}

/// REINFORCE++ with group baseline (arXiv 2501.03262): R − μ_g on every token, whitened over all sampled tokens, so
/// long rows weigh more.
///
/// # Shapes
/// `returns`, `groups`: one per row. Result: one per token of `rows`.
///
/// # Errors
/// As [`grpo`], and fewer than two tokens.
pub fn reinforce_plus_plus_baseline(
    rows: &Rows,
    returns: &[f64],
    groups: &[usize],
    options: BaselineOptions,
) -> Result<Vec<f64>, AdvantageError> {
    let centred = dr_grpo(returns, groups, options)?;
    Ok(whiten(&rows.spread(&centred)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::BatchError;

    const RAW: BaselineOptions = BaselineOptions { singleton: SingletonGroup::RawReturn };
    const ZERO: BaselineOptions = BaselineOptions { singleton: SingletonGroup::Zero };

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() < 1e-5, "{got:?} instead of {want:?}");
        }
    }

    #[test]
    fn grpo_on_one_success_in_four() {
        let returns = [1.0, 0.0, 0.0, 0.0];
        close(&grpo(&returns, &[7; 4], GrpoOptions::default()).unwrap(), &[1.5, -0.5, -0.5, -0.5]);
        close(&dr_grpo(&returns, &[7; 4], RAW).unwrap(), &[0.75, -0.25, -0.25, -0.25]);
        close(&rloo(&returns, &[7; 4], RAW).unwrap(), &[1.0, -1.0 / 3.0, -1.0 / 3.0, -1.0 / 3.0]);
        close(&grpo_passk(&returns, &[7; 4], GrpoOptions::default()).unwrap(), &[2.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn groups_may_be_interleaved() {
        let got = dr_grpo(&[1.0, 10.0, 3.0, 20.0], &[5, 2, 5, 2], RAW).unwrap();
        close(&got, &[-1.0, -5.0, 1.0, 5.0]);
    }

    #[test]
    fn equal_returns_give_exactly_zero() {
        for advantage in grpo(&[0.1; 7], &[0; 7], GrpoOptions::default()).unwrap() {
            assert_eq!(advantage, 0.0);
        }
        close(&grpo_passk(&[2.0, 2.0], &[0, 0], GrpoOptions::default()).unwrap(), &[0.0, 0.0]);
    }

    #[test]
    fn a_group_of_one_is_a_decision() {
        let options = |singleton| GrpoOptions { singleton, ..GrpoOptions::default() };
        let returns = [0.3, 1.0, 0.0];
        let groups = [4, 9, 9];
        assert_eq!(
            grpo(&returns, &groups, options(SingletonGroup::Error)),
            Err(AdvantageError::SingletonGroup { group: 4, row: 0 })
        );
        assert_eq!(grpo(&returns, &groups, options(SingletonGroup::Zero)).unwrap()[0], 0.0);
        close(&grpo(&returns, &groups, options(SingletonGroup::RawReturn)).unwrap()[..1], &[0.3]);
        assert_eq!(rloo(&returns, &groups, RAW).unwrap()[0], 0.3);
        assert_eq!(rloo(&returns, &groups, ZERO).unwrap()[0], 0.0);
        assert_eq!(opo(&returns, &[1, 1, 1], &groups, ZERO).unwrap()[0], 0.0);
        assert_eq!(
            grpo_passk(&returns, &groups, options(SingletonGroup::Zero)),
            Err(AdvantageError::PassAtKSingleton { group: 4 })
        );
    }

    #[test]
    fn empty_and_broken_batches() {
        assert!(grpo(&[], &[], GrpoOptions::default()).unwrap().is_empty());
        assert!(rloo(&[], &[], RAW).unwrap().is_empty());
        assert!(matches!(
            grpo(&[1.0, f64::NAN], &[0, 0], GrpoOptions::default()),
            Err(AdvantageError::Batch(BatchError::NonFinite { index: 1, .. }))
        ));
        assert!(matches!(
            grpo(&[1.0], &[0, 0], GrpoOptions::default()),
            Err(AdvantageError::Batch(BatchError::Length { .. }))
        ));
    }

    #[test]
    fn batch_deviation_divides_every_group() {
        let returns = [0.0, 1.0, 0.0, 3.0];
        let (_, std) = mean_std(&returns);
        let got = grpo_batch_std(&returns, &[0, 0, 1, 1], GrpoOptions::default()).unwrap();
        close(&got, &[-0.5 / std, 0.5 / std, -1.5 / std, 1.5 / std]);
    }

    #[test]
    fn opo_weighs_by_length() {
        // Baseline (1·2 + 3·0)/4 = 0.5.
        close(&opo(&[2.0, 0.0], &[1, 3], &[0, 0], RAW).unwrap(), &[1.5, -0.5]);
        close(&opo(&[2.0, 0.0], &[0, 0], &[0, 0], RAW).unwrap(), &[2.0, 0.0]);
    }

    #[test]
    fn gpg_corrects_for_groups_without_spread() {
        let (returns, groups) = ([1.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]);
        let with = |alpha| gpg(&returns, &groups, GpgOptions { alpha, ..GpgOptions::default() }).unwrap();
        close(&with(GpgAlpha::MixedGroups), &[1.0, -1.0, 0.0, 0.0]);
        close(&with(GpgAlpha::NonZeroReturns), &[4.0 / 6.0, -4.0 / 6.0, 0.0, 0.0]);
        close(&with(GpgAlpha::One), &[0.5, -0.5, 0.0, 0.0]);
        assert!(gpg(&returns, &groups, GpgOptions { f_norm: 0.0, ..GpgOptions::default() }).is_err());
    }

    #[test]
    fn baseline_form_is_whitened_over_tokens() {
        let rows = Rows::from_lengths([1, 3]);
        let got = reinforce_plus_plus_baseline(&rows, &[1.0, 0.0], &[0, 0], RAW).unwrap();
        close(&got, &[1.5, -0.5, -0.5, -0.5]);
        let one = Rows::from_lengths([1]);
        assert!(reinforce_plus_plus_baseline(&one, &[1.0], &[0], RAW).is_err());
    }
}
