//! Matrix products against a plain triple loop over the same chain of fused multiply-adds: the bits must be equal.

use proptest::prelude::*;
use ragen_kernels::gemm::{
    PackedWeight, gemm_serial, linear, linear_grad_input, linear_grad_weight, linear_packed, linear_packed_serial,
};
use ragen_kernels::simd::{Isa, best_isa, force_isa};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Values of both signs over several binades, so that a change of order shows in the last bits.
fn values(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len)
        .map(|_| {
            let bits = rng.next_u32();
            let unit = (bits >> 8) as f32 / (1 << 24) as f32 - 0.5;
            unit * [0.25, 1.0, 8.0, 64.0][bits as usize & 3]
        })
        .collect()
}

/// `c (+)= a · b` with every stride free: the definition.
fn reference(
    (m, n, k): (usize, usize, usize),
    (a, a_row, a_step): (&[f32], usize, usize),
    (b, b_step, b_column): (&[f32], usize, usize),
    (c, c_row): (&mut [f32], usize),
    accumulate: bool,
) {
    for i in 0..m {
        for j in 0..n {
            let mut chain = if accumulate { c[i * c_row + j] } else { 0.0 };
            for p in 0..k {
                chain = a[i * a_row + p * a_step].mul_add(b[p * b_step + j * b_column], chain);
            }
            c[i * c_row + j] = chain;
        }
    }
}

#[track_caller]
fn assert_bits(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let same = f.to_bits() == e.to_bits() || (f.is_nan() && e.is_nan());
        assert!(same, "{what}: element {i} is {f:e}, expected {e:e}");
    }
}

/// Every function on one shape against the definition.
fn check_shape(m: usize, n: usize, k: usize, accumulate: bool) {
    let what = |name: &str| format!("{name} m={m} n={n} k={k} accumulate={accumulate}");
    let seed = (m * 1_000_003 + n * 1009 + k) as u64;
    let (x, w, dy) = (values(seed, m * k), values(seed + 1, n * k), values(seed + 2, m * n));

    let start = values(seed + 3, m * n);
    let mut expected = start.clone();
    reference((m, n, k), (&x, k, 1), (&w, 1, k), (&mut expected, n), accumulate);
    let mut y = start.clone();
    linear(m, n, k, &x, &w, &mut y, accumulate);
    assert_bits(&y, &expected, &what("linear"));
    let packed = PackedWeight::pack(&w, n, k);
    assert_eq!((packed.n(), packed.k()), (n, k));
    y.copy_from_slice(&start);
    linear_packed(m, &x, &packed, &mut y, accumulate);
    assert_bits(&y, &expected, &what("linear_packed"));
    y.copy_from_slice(&start);
    linear_packed_serial(m, &x, &packed, &mut y, accumulate);
    assert_bits(&y, &expected, &what("linear_packed_serial"));

    let start = values(seed + 4, m * k);
    let mut expected = start.clone();
    reference((m, k, n), (&dy, n, 1), (&w, k, 1), (&mut expected, k), accumulate);
    let mut dx = start;
    linear_grad_input(m, n, k, &dy, &w, &mut dx, accumulate);
    assert_bits(&dx, &expected, &what("linear_grad_input"));

    if accumulate {
        let start = values(seed + 5, n * k);
        let mut expected = start.clone();
        reference((n, k, m), (&dy, 1, n), (&x, k, 1), (&mut expected, k), true);
        let mut dw = start;
        linear_grad_weight(m, n, k, &dy, &x, &mut dw);
        assert_bits(&dw, &expected, &what("linear_grad_weight"));
    }
}

/// `gemm_serial` with gaps between rows, which must stay untouched.
fn check_strided(m: usize, n: usize, k: usize, a_by_column: bool, gap: usize, accumulate: bool) {
    let what = format!("gemm_serial {m} {n} {k} {a_by_column} {gap} {accumulate}");
    let seed = (m * 7919 + n * 104_729 + k * 31 + gap) as u64;
    let a_strides = match (a_by_column, gap) {
        (false, _) => (k + gap, 1),
        (true, 3) => (2, 2 * m + 1),
        (true, _) => (1, m + gap),
    };
    let a = values(seed, (m + 1) * a_strides.0 + (k + 1) * a_strides.1);
    let (b_row, c_row) = (n + gap, n + 2 * gap);
    let b = values(seed + 1, (k * b_row).saturating_sub(gap));
    let start = values(seed + 2, (m * c_row).saturating_sub(2 * gap));
    let mut expected = start.clone();
    let left = (&a[..], a_strides.0, a_strides.1);
    reference((m, n, k), left, (&b, b_row, 1), (&mut expected, c_row), accumulate);
    let mut c = start;
    gemm_serial(m, n, k, &a, a_strides, &b, b_row, &mut c, c_row, accumulate);
    assert_bits(&c, &expected, &what);
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_shapes_equal_the_definition(m in 0usize..40, n in 0usize..100, k in 0usize..70, accumulate: bool) {
        check_shape(m, n, k, accumulate);
    }

    #[test]
    fn strided_products_equal_the_definition(
        m in 0usize..36, n in 0usize..80, k in 0usize..50, by_column: bool, gap in 0usize..5, accumulate: bool,
    ) {
        check_strided(m, n, k, by_column, gap, accumulate);
    }
}

#[test]
fn every_count_of_few_rows_and_tail_columns() {
    for m in 1..=17 {
        check_shape(m, 160, 24, m % 2 == 0);
    }
    for n in 1..=66 {
        check_shape(5, n, 9, n % 2 == 0);
    }
}

#[test]
fn long_inner_indices_are_cut_without_a_trace() {
    // Above one block of the inner index, in each role of the three products.
    check_shape(15, 40, 1601, true);
    check_shape(3, 1601, 33, false);
    check_shape(1601, 33, 34, true);
    check_strided(31, 70, 1601, true, 3, true);
    check_strided(31, 70, 1601, false, 1, false);
}

#[test]
fn threads_and_instruction_sets_change_no_bit() {
    // The instruction set is a setting of the process; tests beside this one see it change and must not care.
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        if force_isa(isa) != isa {
            println!("skipping {isa:?}: this machine does not have it");
            continue;
        }
        for threads in 1..=3 {
            pool(threads).install(|| {
                // Large enough to be forked, with tails everywhere; rows and panels both split.
                check_shape(67, 203, 170, true);
                check_shape(230, 70, 130, false);
            });
        }
        check_shape(1, 700, 600, false);
        check_strided(29, 45, 37, true, 2, true);
        check_strided(29, 45, 37, false, 3, false);
        check_shape(7, 131, 65, true);
    }
    force_isa(best_isa());
}

#[test]
fn rows_alone_equal_rows_in_a_batch() {
    let (m, n, k) = (83, 192, 576);
    let (x, w) = (values(1, m * k), values(2, n * k));
    let packed = PackedWeight::pack(&w, n, k);
    let mut batch = vec![0.0; m * n];
    linear(m, n, k, &x, &w, &mut batch, false);
    for (i, row) in x.chunks(k).enumerate() {
        let mut alone = vec![f32::NAN; n];
        linear_packed(1, row, &packed, &mut alone, false);
        assert_bits(&alone, &batch[i * n..][..n], "one row");
    }
    for rows in [2, 3, 5, 16] {
        let mut some = vec![f32::NAN; rows * n];
        linear_packed_serial(rows, &x[..rows * k], &packed, &mut some, false);
        assert_bits(&some, &batch[..rows * n], "some rows");
    }
}

#[test]
fn repacking_equals_packing() {
    let (n, k) = (45, 33);
    let (old, new) = (values(1, n * k), values(2, n * k));
    let x = values(3, 4 * k);
    let mut packed = PackedWeight::pack(&old, n, k);
    packed.repack(&new);
    let (mut found, mut expected) = (vec![0.0; 4 * n], vec![0.0; 4 * n]);
    linear_packed(4, &x, &packed, &mut found, false);
    linear(4, n, k, &x, &new, &mut expected, false);
    assert_bits(&found, &expected, "repacked");
    assert!(packed.bytes() >= n * k * 4);
}

#[test]
fn nan_and_infinity_stay_in_their_row_and_column() {
    let (m, n, k) = (20, 50, 40);
    let (mut x, mut w) = (values(1, m * k), values(2, n * k));
    x[3 * k + 7] = f32::NAN;
    x[4 * k + 9] = f32::INFINITY;
    w[11 * k + 5] = f32::NEG_INFINITY;
    let mut expected = vec![0.0; m * n];
    reference((m, n, k), (&x, k, 1), (&w, 1, k), (&mut expected, n), false);
    let mut y = vec![f32::NAN; m * n];
    linear(m, n, k, &x, &w, &mut y, false);
    assert_bits(&y, &expected, "linear");
    for i in 0..m {
        for j in 0..n {
            assert_eq!(y[i * n + j].is_nan(), i == 3 || (i, j) == (4, 11) && expected[i * n + j].is_nan());
            assert_eq!(y[i * n + j].is_finite(), i != 3 && i != 4 && j != 11, "row {i}, column {j}");
        }
    }
    // A product of zero depth writes zeros over anything, or leaves it alone.
    let mut y = vec![f32::NAN; 6];
    linear(2, 3, 0, &[], &[], &mut y, true);
    assert!(y.iter().all(|v| v.is_nan()));
    linear(2, 3, 0, &[], &[], &mut y, false);
    assert_bits(&y, &[0.0; 6], "zero depth");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    fn refused(run: impl FnOnce() + std::panic::UnwindSafe) {
        assert!(std::panic::catch_unwind(run).is_err());
    }
    refused(|| linear(2, 3, 4, &[0.0; 8], &[0.0; 12], &mut [0.0; 5], false));
    refused(|| linear(2, 3, 4, &[0.0; 7], &[0.0; 12], &mut [0.0; 6], false));
    refused(|| drop(PackedWeight::pack(&[0.0; 11], 3, 4)));
    refused(|| linear_grad_input(2, 3, 4, &[0.0; 6], &[0.0; 11], &mut [0.0; 8], true));
    refused(|| linear_grad_weight(2, 3, 4, &[0.0; 6], &[0.0; 8], &mut [0.0; 13]));
    refused(|| gemm_serial(2, 2, 2, &[0.0; 4], (2, 1), &[0.0; 4], 2, &mut [0.0; 4], 1, true));
    refused(|| gemm_serial(2, 2, 2, &[0.0; 4], (2, 2), &[0.0; 4], 2, &mut [0.0; 4], 2, true));
    refused(|| gemm_serial(2, 2, 2, &[0.0; 4], (usize::MAX, 1), &[0.0; 4], 2, &mut [0.0; 4], 2, true));
}
