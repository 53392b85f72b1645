//! The ragged batch: rows (sequences) of sampled tokens, flattened, with offsets; and the statistics over it.
//!
//! Only tokens the policy sampled exist in this layout. There are no masks and no padding: whatever was given to the
//! policy (prompts, observations, templates) is simply absent, so it can neither be trained nor dilute a mean.

use std::ops::Range;

/// Added to variances and to counts by the whitening of veRL; kept so that results agree to the last digits.
pub const WHITEN_EPS: f64 = 1e-8;

/// A batch whose parts do not fit together, or that holds numbers no estimator can use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    /// A slice has the wrong length.
    #[error("`{what}` needs {expected} values (one per {unit}) and has {found}")]
    Length {
        /// The argument.
        what: &'static str,
        /// What one value stands for.
        unit: &'static str,
        /// Values needed.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A NaN or an infinity.
    #[error("`{what}`[{index}] is {value}; every value must be finite: end the episode with an error outcome first")]
    NonFinite {
        /// The argument.
        what: &'static str,
        /// Position in the argument.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// Offsets that do not describe rows.
    #[error("row offsets start at 0 and never decrease, but offset {index} is {found} where at least {least} was due")]
    Offsets {
        /// Position of the offending offset.
        index: usize,
        /// The offset found.
        found: usize,
        /// The smallest offset allowed there.
        least: usize,
    },
    /// Whitening has no meaning for fewer than two tokens.
    #[error("whitening needs at least 2 sampled tokens and found {found}; collect more episodes or do not whiten")]
    TooFewToWhiten {
        /// Tokens found.
        found: usize,
    },
}

/// Fails unless `found` is `expected`.
pub fn check_len(what: &'static str, unit: &'static str, expected: usize, found: usize) -> Result<(), BatchError> {
    if expected == found { Ok(()) } else { Err(BatchError::Length { what, unit, expected, found }) }
}

/// Fails on the first NaN or infinity.
pub fn check_finite(what: &'static str, values: &[f64]) -> Result<(), BatchError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(index) => Err(BatchError::NonFinite { what, index, value: values[index] }),
    }
}

/// Row boundaries within a flat list of sampled tokens.
///
/// Row `i` owns the flat tokens `offsets[i]..offsets[i + 1]`; a row may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    offsets: Vec<usize>,
}

impl Default for Rows {
    /// No rows.
    fn default() -> Self {
        Self { offsets: vec![0] }
    }
}

impl Rows {
    /// Rows of the given numbers of sampled tokens.
    pub fn from_lengths(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut offsets = vec![0];
        let mut end = 0usize;
        for length in lengths {
            end = end.saturating_add(length);
            offsets.push(end);
        }
        Self { offsets }
    }

    /// Rows from offsets (length rows + 1, starting at 0, not decreasing).
    ///
    /// # Errors
    /// [`BatchError::Offsets`] when they are not of that form.
    pub fn from_offsets(offsets: Vec<usize>) -> Result<Self, BatchError> {
        if offsets.first() != Some(&0) {
            let found = offsets.first().copied().unwrap_or(usize::MAX);
            return Err(BatchError::Offsets { index: 0, found, least: 0 });
        }
        for (index, pair) in offsets.windows(2).enumerate() {
            if pair[1] < pair[0] {
                return Err(BatchError::Offsets { index: index + 1, found: pair[1], least: pair[0] });
            }
        }
        Ok(Self { offsets })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of tokens of all rows.
    pub fn tokens(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The flat token range of row `row`; empty for a row that does not exist.
    pub fn range(&self, row: usize) -> Range<usize> {
        match (self.offsets.get(row), self.offsets.get(row + 1)) {
            (Some(&start), Some(&end)) => start..end,
            _ => 0..0,
        }
    }

    /// Number of tokens of row `row`.
    pub fn row_len(&self, row: usize) -> usize {
        self.range(row).len()
    }

    /// The flat token ranges, row after row.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator + '_ {
        self.offsets.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// The numbers of tokens, row after row.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// The row boundaries: length rows + 1, starting at 0.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Gives every token the number of its row.
    ///
    /// # Errors
    /// [`BatchError::Length`] unless there is one number per row.
    pub fn spread(&self, per_row: &[f64]) -> Result<Vec<f64>, BatchError> {
        check_len("per_row", "row", self.len(), per_row.len())?;
        let mut out = Vec::with_capacity(self.tokens());
        for (range, value) in self.ranges().zip(per_row) {
            out.extend(std::iter::repeat_n(*value, range.len()));
        }
        Ok(out)
    }

    /// Sums the tokens of each row.
    ///
    /// # Errors
    /// [`BatchError::Length`] unless there is one number per token.
    pub fn sums(&self, per_token: &[f64]) -> Result<Vec<f64>, BatchError> {
        check_len("per_token", "token", self.tokens(), per_token.len())?;
        Ok(self.ranges().map(|range| per_token[range].iter().sum()).collect())
    }

    /// Averages the tokens of each row; 0 for an empty row.
    ///
    /// # Errors
    /// [`BatchError::Length`] unless there is one number per token.
    pub fn means(&self, per_token: &[f64]) -> Result<Vec<f64>, BatchError> {
        check_len("per_token", "token", self.tokens(), per_token.len())?;
        Ok(self.ranges().map(|range| mean(&per_token[range])).collect())
    }

    pub(crate) fn check_tokens(&self, what: &'static str, values: &[f64]) -> Result<(), BatchError> {
        check_len(what, "sampled token", self.tokens(), values.len())?;
        check_finite(what, values)
    }
}

/// The larger of two numbers; NaN if either is one, so that a fault is never hidden by a maximum.
pub fn max_or_nan(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// Arithmetic mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Mean and standard deviation with the n − 1 denominator; the deviation of fewer than two values is NaN.
///
/// Equal values give exactly 0, whatever rounding does to their mean: a group without spread must not look as if it
/// had some.
pub fn mean_std(values: &[f64]) -> (f64, f64) {
    let Some(&first) = values.first() else { return (0.0, f64::NAN) };
    if values.len() < 2 {
        return (first, f64::NAN);
    }
    if values.iter().all(|v| *v == first) {
        return (first, 0.0);
    }
    let mu = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mu) * (v - mu)).sum();
    (mu, (squares / (values.len() - 1) as f64).sqrt())
}

/// The statistics whitening uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhitenStats {
    /// Mean, with [`WHITEN_EPS`] in the denominator.
    pub mean: f64,
    /// Variance with the n denominator.
    pub biased_var: f64,
    /// Variance with the n − 1 denominator.
    pub unbiased_var: f64,
}

/// Mean and variances over all tokens, as whitening uses them.
///
/// # Errors
/// [`BatchError::TooFewToWhiten`] for fewer than two values.
pub fn whiten_stats(values: &[f64]) -> Result<WhitenStats, BatchError> {
    if values.len() < 2 {
        return Err(BatchError::TooFewToWhiten { found: values.len() });
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / (n + WHITEN_EPS);
    let biased_var = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n + WHITEN_EPS);
    Ok(WhitenStats { mean, biased_var, unbiased_var: biased_var * n / (n - 1.0) })
}

/// Whitens over all tokens: (x − μ) / √(v + 1e-8) with the unbiased variance.
///
/// # Errors
/// [`BatchError::TooFewToWhiten`] for fewer than two values, [`BatchError::NonFinite`] for a NaN or an infinity.
pub fn whiten(values: &[f64]) -> Result<Vec<f64>, BatchError> {
    check_finite("values", values)?;
    let stats = whiten_stats(values)?;
    let scale = 1.0 / (stats.unbiased_var + WHITEN_EPS).sqrt();
    Ok(values.iter().map(|v| (v - stats.mean) * scale).collect())
}

/// Whitens the spread and leaves the mean where it was.
///
/// # Errors
/// As [`whiten`].
pub fn whiten_keep_mean(values: &[f64]) -> Result<Vec<f64>, BatchError> {
    let mean = whiten_stats(values)?.mean;
    Ok(whiten(values)?.into_iter().map(|v| v + mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_their_tokens() {
        let rows = Rows::from_lengths([2, 0, 3]);
        assert_eq!((rows.len(), rows.tokens()), (3, 5));
        assert_eq!(rows.ranges().collect::<Vec<_>>(), vec![0..2, 2..2, 2..5]);
        assert_eq!(rows.range(7), 0..0);
        assert_eq!(rows.spread(&[1.0, 2.0, 3.0]).unwrap(), vec![1.0, 1.0, 3.0, 3.0, 3.0]);
        assert_eq!(rows.sums(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), vec![3.0, 0.0, 12.0]);
        assert_eq!(rows.means(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), vec![1.5, 0.0, 4.0]);
        assert!(matches!(rows.spread(&[1.0]), Err(BatchError::Length { expected: 3, found: 1, .. })));
        assert!(Rows::from_lengths([]).is_empty());
    }

    #[test]
    fn offsets_are_checked() {
        assert_eq!(Rows::from_offsets(vec![0, 2, 5]).unwrap(), Rows::from_lengths([2, 3]));
        assert!(matches!(Rows::from_offsets(vec![]), Err(BatchError::Offsets { index: 0, .. })));
        assert!(matches!(Rows::from_offsets(vec![1, 2]), Err(BatchError::Offsets { index: 0, found: 1, .. })));
        assert_eq!(Rows::from_offsets(vec![0, 4, 3]), Err(BatchError::Offsets { index: 2, found: 3, least: 4 }));
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        // 0.1 added ten times is not 1.0, so a naive mean would leave a spread of 1e-17.
        let (mu, sigma) = mean_std(&[0.1; 10]);
        assert_eq!((mu, sigma), (0.1, 0.0));
        assert!(mean_std(&[3.0]).1.is_nan());
        assert!(mean_std(&[]).1.is_nan());
        assert!((mean_std(&[1.0, 0.0, 0.0, 0.0]).1 - 0.5).abs() < 1e-15);
    }

    #[test]
    fn a_maximum_does_not_hide_what_is_no_number() {
        assert_eq!([1.0, 3.0, 2.0].into_iter().fold(0.0, max_or_nan), 3.0);
        assert!([1.0, f64::NAN, 2.0].into_iter().fold(0.0, max_or_nan).is_nan());
        assert!([f64::NAN].into_iter().fold(0.0, max_or_nan).is_nan());
    }

    #[test]
    fn whitening_centres_and_scales() {
        let out = whiten(&[1.0, 2.0, 3.0]).unwrap();
        for (got, want) in out.iter().zip([-1.0, 0.0, 1.0]) {
            assert!((got - want).abs() < 2e-8, "{got} {want}");
        }
        assert!((mean(&whiten_keep_mean(&[1.0, 2.0, 3.0]).unwrap()) - 2.0).abs() < 1e-7);
        assert_eq!(whiten(&[1.0]), Err(BatchError::TooFewToWhiten { found: 1 }));
        assert_eq!(whiten(&[]), Err(BatchError::TooFewToWhiten { found: 0 }));
        assert!(matches!(whiten(&[1.0, f64::NAN]), Err(BatchError::NonFinite { index: 1, .. })));
        assert!(whiten(&[0.0, 0.0]).unwrap().iter().all(|v| *v == 0.0));
    }
}
