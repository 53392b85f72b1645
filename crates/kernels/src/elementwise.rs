//! Sums of buffers and biases.

use rayon::prelude::*;

use crate::simd::multiversion;

/// Below this many elements a fork-join costs more than it saves.
const PARALLEL_FROM: usize = 1 << 17;
/// Elements per task.
const CHUNK: usize = 1 << 15;
/// Rows whose column sums are added in one go; fixed, so that the sum does not depend on the threads.
const ROW_BLOCK: usize = 64;

multiversion! {
    fn add_serial(dst: &mut [f32], src: &[f32]) {
        for (d, s) in dst.iter_mut().zip(src) {
            *d += *s;
        }
    }
}

/// `dst += src`, element by element.
pub fn add_assign(dst: &mut [f32], src: &[f32]) {
    assert_eq!(dst.len(), src.len(), "add_assign: lengths differ");
    if dst.len() < PARALLEL_FROM {
        return add_serial(dst, src);
    }
    dst.par_chunks_mut(CHUNK).zip(src.par_chunks(CHUNK)).for_each(|(d, s)| add_serial(d, s));
}

/// Adds `bias` (`[dim]`) to every row of `y` (`[rows, dim]`).
pub fn add_bias(dim: usize, y: &mut [f32], bias: &[f32]) {
    assert_eq!(bias.len(), dim, "add_bias: bias length");
    assert_eq!(y.len() % dim, 0, "add_bias: whole rows");
    for row in y.chunks_exact_mut(dim) {
        add_serial(row, bias);
    }
}

/// Gradient of [`add_bias`]: adds the column sums of `dy` (`[rows, dim]`) to `dbias` (`[dim]`).
///
/// Rows are summed in blocks of a fixed size whose sums are added in order.
pub fn add_bias_backward(dim: usize, dy: &[f32], dbias: &mut [f32]) {
    assert_eq!(dbias.len(), dim, "add_bias_backward: bias length");
    assert_eq!(dy.len() % dim, 0, "add_bias_backward: whole rows");
    let blocks: Vec<Vec<f32>> = dy
        .par_chunks(ROW_BLOCK * dim)
        .map(|block| {
            let mut sum = vec![0.0; dim];
            for row in block.chunks_exact(dim) {
                add_serial(&mut sum, row);
            }
            sum
        })
        .collect();
    for block in &blocks {
        add_serial(dbias, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bias_and_its_gradient() {
        let mut y = vec![1.0; 6];
        add_bias(3, &mut y, &[1.0, 2.0, 3.0]);
        assert_eq!(y, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
        let mut db = vec![10.0, 0.0, 0.0];
        add_bias_backward(3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut db);
        assert_eq!(db, [15.0, 7.0, 9.0]);
    }

    #[test]
    fn parallel_and_serial_sums_are_equal() {
        let src: Vec<f32> = (0..300_000).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut a = vec![0.5; src.len()];
        let mut b = a.clone();
        add_assign(&mut a, &src);
        add_serial(&mut b, &src);
        assert_eq!(a, b);
    }
}
