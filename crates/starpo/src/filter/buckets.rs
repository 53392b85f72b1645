//! Groups sorted into buckets by the spread of their returns, for comparing gradients between buckets.

/// Edges of the fixed buckets: [0, 1), [1, 2), …, [5, ∞).
pub const FIXED_EDGES: [f64; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

/// Buckets of equal counts, lowest spread first (`gradient_analysis_bucket_mode: quantile`).
///
/// There are min(`count`, groups) buckets; what does not divide evenly goes to the last. Returns indices into
/// `group_std`, each bucket in ascending order of index.
pub fn quantile_buckets(group_std: &[f64], count: usize) -> Vec<Vec<usize>> {
    let buckets = count.min(group_std.len());
    if buckets == 0 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..group_std.len()).collect();
    order.sort_by(|a, b| group_std[*a].total_cmp(&group_std[*b]));
    let size = group_std.len() / buckets;
    (0..buckets)
        .map(|k| {
            let end = if k + 1 == buckets { order.len() } else { (k + 1) * size };
            let mut bucket = order[k * size..end].to_vec();
            bucket.sort_unstable();
            bucket
        })
        .collect()
}

/// Buckets with the edges [`FIXED_EDGES`] (`gradient_analysis_bucket_mode: fixed_rv`); buckets may be empty. Groups
/// whose spread is NaN are in none.
pub fn fixed_buckets(group_std: &[f64]) -> Vec<Vec<usize>> {
    let mut buckets = vec![Vec::new(); FIXED_EDGES.len()];
    for (group, std) in group_std.iter().enumerate() {
        if let Some(bucket) = FIXED_EDGES.iter().rposition(|edge| std >= edge).and_then(|k| buckets.get_mut(k)) {
            bucket.push(group);
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_counts_with_the_rest_in_the_last() {
        assert_eq!(quantile_buckets(&[5.0, 1.0, 3.0, 2.0, 4.0], 2), vec![vec![1, 3], vec![0, 2, 4]]);
        assert_eq!(quantile_buckets(&[2.0, 1.0], 6), vec![vec![1], vec![0]]);
        assert!(quantile_buckets(&[], 6).is_empty());
        assert!(quantile_buckets(&[1.0], 0).is_empty());
    }

    #[test]
    fn fixed_edges_are_half_open() {
        let got = fixed_buckets(&[0.0, 0.99, 1.0, 4.5, 5.0, 80.0, f64::NAN]);
        assert_eq!(got, vec![vec![0, 1], vec![2], vec![], vec![], vec![3], vec![4, 5]]);
    }
}
