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
    assert_eq!(
        out,
        tokens.len() * dim,
        "the embedded rows must have tokens * dim elements"
    );
    assert_eq!(
        table % dim.max(1),
        0,
        "the table must have whole rows of dim"
    );
    let vocab = table / dim.max(1);
    if let Some(&highest) = tokens.iter().max() {
        assert!(
            (highest as usize) < vocab,
            "token {highest} is not in a table of {vocab} rows"
        );
    }
}
