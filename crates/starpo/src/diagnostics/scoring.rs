//! The cross matrix: every text under every prompt.
//!
//! Equal prompts and equal texts are scored once. The others are put in an order in which neighbours begin alike, so
//! that a policy that shares prefixes between neighbours computes a prompt once for all its texts.

use std::collections::BTreeSet;

use super::thoughts::Pairs;
use crate::policy::{Policy, PolicyError, Sequence};

/// Sequences that are scored in one call, to bound memory.
const CALL: usize = 4096;

/// The distinct slices among `all`, sorted, and the place of each in them.
fn distinct<'a>(all: &[&'a [u32]]) -> (Vec<&'a [u32]>, Vec<usize>) {
    let sorted: Vec<&[u32]> = all.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let places = all.iter().map(|one| sorted.binary_search(one).unwrap_or_default()).collect();
    (sorted, places)
}

/// What scoring costs: tokens that go through the model when a prompt is computed once.
pub(super) fn cost(pairs: &Pairs<'_>) -> f64 {
    let (columns, texts) = (distinct(&pairs.columns).0, distinct(&pairs.texts).0);
    let each: usize = texts.iter().map(|t| t.len()).sum();
    columns.iter().map(|c| (c.len() + each) as f64).sum()
}

/// Drops the texts and prompts that do not fit the context together, so that all others can be compared. Returns how
/// many texts went.
pub(super) fn fit(pairs: &mut Pairs<'_>, max_context: usize) -> usize {
    let longest = pairs.texts.iter().map(|t| t.len()).max().unwrap_or(0);
    let fits: Vec<bool> = pairs.columns.iter().map(|c| c.len() + longest <= max_context).collect();
    if fits.iter().all(|f| *f) {
        return 0;
    }
    let place = |column: usize| fits[..column].iter().filter(|f| **f).count();
    let before = pairs.texts.len();
    let stays: Vec<bool> = pairs.own.iter().map(|c| fits[*c]).collect();
    let mut keep = stays.iter();
    pairs.texts.retain(|_| *keep.next().unwrap_or(&false));
    let mut keep = stays.iter();
    pairs.own.retain(|_| *keep.next().unwrap_or(&false));
    pairs.own.iter_mut().for_each(|c| *c = place(*c));
    let mut keep = fits.iter();
    pairs.columns.retain(|_| *keep.next().unwrap_or(&false));
    before - pairs.texts.len()
}

/// The matrix and what tells its columns apart.
pub(super) struct Cross {
    /// Log-probability of each text (row) under each prompt (column), in nats.
    pub log_prob: Vec<Vec<f64>>,
    /// Equal for equal prompts.
    pub signatures: Vec<u64>,
}

/// Scores every text under every prompt with the present weights.
///
/// # Errors
/// What the policy says.
pub(super) fn cross_scores(policy: &mut dyn Policy, pairs: &Pairs<'_>, temperature: f32) -> Result<Cross, PolicyError> {
    let (columns, column_of) = distinct(&pairs.columns);
    let (texts, text_of) = distinct(&pairs.texts);
    let mut scores = vec![vec![0.0; columns.len()]; texts.len()];
    let cells: Vec<(usize, usize)> = (0..columns.len()).flat_map(|c| (0..texts.len()).map(move |t| (c, t))).collect();
    for part in cells.chunks(CALL) {
        let sequences: Vec<Sequence> = part
            .iter()
            .map(|(c, t)| Sequence {
                tokens: [columns[*c], texts[*t]].concat(),
                sampled: (0..columns[*c].len() + texts[*t].len()).map(|i| i >= columns[*c].len()).collect(),
            })
            .collect();
        let log_prob = policy.score(&sequences, temperature)?.log_prob;
        let mut at = 0;
        for (c, t) in part {
            let n = texts[*t].len();
            scores[*t][*c] = log_prob.get(at..at + n).unwrap_or_default().iter().map(|l| f64::from(*l)).sum();
            at += n;
        }
    }
    let row = |t: &usize| column_of.iter().map(|c| scores[*t][*c]).collect();
    Ok(Cross { log_prob: text_of.iter().map(row).collect(), signatures: column_of.iter().map(|c| *c as u64).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::collapse::tests::Oracle;

    fn pairs<'a>(columns: &'a [Vec<u32>], texts: &'a [Vec<u32>], own: &[usize]) -> Pairs<'a> {
        Pairs {
            columns: columns.iter().map(|c| &c[..]).collect(),
            texts: texts.iter().map(|t| &t[..]).collect(),
            own: own.to_vec(),
        }
    }

    #[test]
    fn equal_prompts_and_texts_are_scored_once() {
        let (columns, texts) = ([vec![1, 7], vec![1, 5], vec![1, 7]], [vec![7, 7], vec![5], vec![7, 7]]);
        let pairs = pairs(&columns, &texts, &[0, 1, 2]);
        let mut policy = Oracle::default();
        let cross = cross_scores(&mut policy, &pairs, 1.0).unwrap();
        assert_eq!(policy.scored, 4, "two prompts, two texts");
        // The oracle's tokens cost 1 under a prompt that ends with them, 3 otherwise.
        assert_eq!(cross.log_prob, [vec![-2.0, -6.0, -2.0], vec![-3.0, -1.0, -3.0], vec![-2.0, -6.0, -2.0]]);
        assert_eq!(cross.signatures[0], cross.signatures[2]);
        assert_ne!(cross.signatures[0], cross.signatures[1]);
        assert_eq!(cost(&pairs), 2.0 * (2.0 + 3.0));
    }

    #[test]
    fn what_does_not_fit_is_left_out_with_its_own_texts() {
        let (columns, texts) = ([vec![1; 9], vec![2; 3], vec![3; 2]], [vec![1], vec![2, 2], vec![3]]);
        let mut pairs = pairs(&columns, &texts, &[0, 1, 2]);
        assert_eq!(fit(&mut pairs, 5), 1);
        assert_eq!((pairs.columns.len(), pairs.texts.len(), pairs.own.clone()), (2, 2, vec![0, 1]));
        assert_eq!(fit(&mut pairs, 5), 0);
    }
}
