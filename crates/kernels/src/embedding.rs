//! Token embedding: rows of a table, and the gradient that goes back to them.

/// Copies the table's row of every token to `out`.
///
/// # Shapes
/// `tokens`: `[tokens]`; `table`: `[vocab, dim]`; `out`: `[tokens, dim]`.
///
/// # Panics
/// If `out` has not exactly the elements of its shape, `table` is not whole rows, or a token is not in the table.
pub fn embed(dim: usize, tokens: &[u32], table: &[f32], out: &mut [f32]) {
    check(dim, tokens, table.len(), out.len());
    for (row, &token) in out.chunks_exact_mut(dim.max(1)).zip(tokens) {
        row.copy_from_slice(&table[token as usize * dim..][..dim]);
    }
}

/// Adds every row of `dout` to the row of its token in `dtable`, in the order of the tokens.
///
/// # Shapes
/// `tokens`: `[tokens]`; `dout`: `[tokens, dim]`; `dtable`: `[vocab, dim]`.
///
/// # Panics
/// As [`embed`].
pub fn embed_backward(dim: usize, tokens: &[u32], dout: &[f32], dtable: &mut [f32]) {
    check(dim, tokens, dtable.len(), dout.len());
    // One pass over memory on one thread: the order of the sums is that of the tokens, and repeated tokens cannot race.
    for (row, &token) in dout.chunks_exact(dim.max(1)).zip(tokens) {
        let total = &mut dtable[token as usize * dim..][..dim];
        for (total, value) in total.iter_mut().zip(row) {
            *total += value;
        }
    }
}

fn check(dim: usize, tokens: &[u32], table: usize, out: usize) {
    assert_eq!(out, tokens.len() * dim, "the embedded rows must have tokens * dim elements");
    assert_eq!(table % dim.max(1), 0, "the table must have whole rows of dim");
    let vocab = table / dim.max(1);
    if let Some(&highest) = tokens.iter().max() {
        assert!((highest as usize) < vocab, "token {highest} is not in a table of {vocab} rows");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_and_gradients_added() {
        let table = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5];
        let mut out = [0.0; 6];
        embed(2, &[2, 0, 2], &table, &mut out);
        assert_eq!(out, [2.0, 2.5, 0.0, 0.5, 2.0, 2.5]);
        let mut dtable = [1.0; 6];
        embed_backward(2, &[2, 0, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut dtable);
        assert_eq!(dtable, [4.0, 5.0, 1.0, 1.0, 7.0, 9.0]);
        embed(2, &[], &table, &mut []);
        embed_backward(2, &[], &[], &mut dtable);
    }

    #[test]
    #[should_panic(expected = "token 3 is not in a table of 3 rows")]
    fn unknown_tokens_are_refused() {
        embed(2, &[0, 3], &[0.0; 6], &mut [0.0; 4]);
    }

    #[test]
    #[should_panic(expected = "the embedded rows must have tokens * dim elements")]
    fn wrong_lengths_are_refused() {
        embed_backward(2, &[0], &[0.0; 4], &mut [0.0; 6]);
    }
}
