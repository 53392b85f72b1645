//! Packs sequences of any lengths into one batch without padding, their shared prefixes once.

use ragen_kernels::attention::Segment;

/// Shorter common prefixes are not worth a segment of their own.
const MIN_SHARED: usize = 16;

/// Tokens of several sequences, packed row after row, and what is to be scored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Token of each row.
    pub tokens: Vec<u32>,
    /// Position of each row in its sequence.
    pub positions: Vec<u32>,
    /// The sequences' parts; see [`ragen_kernels::attention`].
    pub segments: Vec<Segment>,
    /// Rows whose output predicts a scored token, rising and each once: several sequences may go on from one row.
    pub output_rows: Vec<u32>,
    /// For each scored token, the index within `output_rows` of the row that predicts it.
    pub outputs: Vec<u32>,
    /// The scored tokens, sequence after sequence, in order.
    pub targets: Vec<u32>,
}

impl Batch {
    /// Packs sequences; `scored[t]` asks for token `t`'s log-probability given those before it (never for the first).
    ///
    /// Neighbouring sequences that begin alike share the rows of their common prefix when `share` is set.
    pub fn pack<'a>(sequences: &[(&'a [u32], &'a [bool])], share: bool) -> Self {
        let mut batch = Self::default();
        // Row of each token of each sequence.
        let mut rows: Vec<Vec<u32>> = sequences.iter().map(|(t, _)| Vec::with_capacity(t.len())).collect();
        let common: Vec<usize> =
            sequences.windows(2).map(|w| if share { common_prefix(w[0].0, w[1].0) } else { 0 }).collect();
        batch.add(sequences, &common, 0, sequences.len(), 0, None, &mut rows);
        let mut predictors = Vec::new();
        for ((tokens, scored), rows) in sequences.iter().zip(&rows) {
            assert_eq!(tokens.len(), scored.len(), "one flag per token");
            for t in 1..tokens.len() {
                if scored[t] {
                    predictors.push(rows[t - 1]);
                    batch.targets.push(tokens[t]);
                }
            }
        }
        batch.output_rows.clone_from(&predictors);
        batch.output_rows.sort_unstable();
        batch.output_rows.dedup();
        let mut place = vec![0; batch.tokens.len()];
        for (index, &row) in batch.output_rows.iter().enumerate() {
            place[row as usize] = index as u32;
        }
        batch.outputs = predictors.into_iter().map(|row| place[row as usize]).collect();
        batch
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// There are no rows.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Adds what sequences `from..to` have beyond their first `depth` tokens, which `parent` holds.
    fn add(
        &mut self,
        sequences: &[(&[u32], &[bool])],
        common: &[usize],
        from: usize,
        to: usize,
        depth: usize,
        parent: Option<usize>,
        rows: &mut [Vec<u32>],
    ) {
        if from >= to {
            return;
        }
        if to - from == 1 {
            let tokens = sequences[from].0;
            if tokens.len() > depth {
                self.segment(&tokens[depth..], depth, parent, &mut rows[from..to]);
            }
            return;
        }
        let shared = common[from..to - 1].iter().copied().min().unwrap_or(0);
        let (depth, parent) = if shared >= depth + MIN_SHARED {
            let index = self.segment(&sequences[from].0[depth..shared], depth, parent, &mut rows[from..to]);
            (shared, Some(index))
        } else {
            (depth, parent)
        };
        let mut start = from;
        for i in from..to {
            if i + 1 == to || common[i] == shared {
                self.add(sequences, common, start, i + 1, depth, parent, rows);
                start = i + 1;
            }
        }
    }

    fn segment(&mut self, tokens: &[u32], position: usize, parent: Option<usize>, rows: &mut [Vec<u32>]) -> usize {
        let start = self.tokens.len();
        self.segments.push(Segment { start, len: tokens.len(), parent, position });
        self.tokens.extend_from_slice(tokens);
        self.positions.extend((position..position + tokens.len()).map(|p| p as u32));
        for rows in rows {
            rows.extend(start as u32..(start + tokens.len()) as u32);
        }
        self.segments.len() - 1
    }
}

/// Rows that sequences take when each shares with the one before it what both begin with: what scoring them costs.
pub fn shared_rows<'a>(sequences: impl IntoIterator<Item = &'a [u32]>) -> usize {
    let mut before: &[u32] = &[];
    let mut rows = 0;
    for tokens in sequences {
        rows += tokens.len() - common_prefix(before, tokens);
        before = tokens;
    }
    rows
}

/// Number of tokens that two sequences begin with alike.
pub(crate) fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens that row `row` of the batch sees, itself included.
    fn seen(batch: &Batch, row: usize) -> Vec<u32> {
        let mut at = batch.segments.iter().position(|s| (s.start..s.start + s.len).contains(&row));
        let mut out = Vec::new();
        let mut end = row + 1;
        while let Some(i) = at {
            let s = batch.segments[i];
            let mut part = batch.tokens[s.start..end].to_vec();
            part.extend(out);
            out = part;
            at = s.parent;
            end = at.map_or(0, |p| batch.segments[p].start + batch.segments[p].len);
        }
        out
    }

    fn check(sequences: &[Vec<u32>]) -> usize {
        let scored: Vec<Vec<bool>> = sequences.iter().map(|s| s.iter().map(|t| t % 3 != 0).collect()).collect();
        let refs: Vec<(&[u32], &[bool])> = sequences.iter().zip(&scored).map(|(s, f)| (&s[..], &f[..])).collect();
        let batch = Batch::pack(&refs, true);
        let mut expected = Vec::new();
        for (s, f) in sequences.iter().zip(&scored) {
            for t in 1..s.len() {
                if f[t] {
                    expected.push((s[..t].to_vec(), s[t]));
                }
            }
        }
        assert_eq!(batch.targets.len(), expected.len());
        for (i, (context, target)) in expected.iter().enumerate() {
            assert_eq!(batch.targets[i], *target);
            let row = batch.output_rows[batch.outputs[i] as usize];
            assert_eq!(&seen(&batch, row as usize), context);
        }
        assert!(batch.output_rows.is_sorted_by(|a, b| a < b));
        for row in 0..batch.len() {
            assert_eq!(seen(&batch, row).len(), batch.positions[row] as usize + 1);
        }
        batch.len()
    }

    #[test]
    fn prefixes_are_stored_once_and_every_context_is_whole() {
        let prompt: Vec<u32> = (0..40).collect();
        let with = |tail: &[u32]| [&prompt[..], tail].concat();
        let long: Vec<u32> = (100..130).collect();
        assert_eq!(check(&[with(&[50, 51]), with(&[52]), with(&[])]), 43);
        assert_eq!(check(&[with(&long), with(&[&long[..], &[7]].concat()), with(&[9])]), 40 + 30 + 1 + 1);
        assert_eq!(check(&[vec![1, 2, 3], vec![1, 2, 4]]), 6);
        assert_eq!(check(&[with(&[1]), with(&[1])]), 41);
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[vec![], vec![4]]), 1);
    }

    #[test]
    fn shared_rows_are_counted_as_they_are_stored() {
        let prompt: Vec<u32> = (0..40).collect();
        let with = |tail: &[u32]| [&prompt[..], tail].concat();
        for sequences in [
            vec![with(&[50, 51]), with(&[52]), with(&[])],
            vec![with(&[50]), (60..100).collect(), with(&[51])],
            vec![with(&[1]), with(&[1])],
            vec![],
        ] {
            let rows = shared_rows(sequences.iter().map(Vec::as_slice));
            assert_eq!(rows, check(&sequences), "{sequences:?}");
        }
    }
}
