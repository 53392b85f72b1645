//! The bits of every operation depend on neither the batch, the number of threads nor the instruction set.

use ragen_kernels::adamw::AdamW;
use ragen_kernels::simd::{Isa, force_isa};
use ragen_kernels::{embedding, gemm, math, norm, reduce, rope, swiglu, vocab};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Roughly normal, with a few large outliers.
fn values(rng: &mut ChaCha8Rng, n: usize, scale: f32) -> Vec<f32> {
    (0..n)
        .map(|i| {
            let sum: f64 = (0..4).map(|_| f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5).sum();
            let outlier = if i % 997 == 5 { 20.0 } else { 1.0 };
            (sum * outlier) as f32 * scale
        })
        .collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn threads<R: Send>(count: usize, run: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
    pool.unwrap().install(run)
}

/// Rows, width and vocabulary of the fused projection: more than one tile, several chunks, no multiple of anything.
const ROWS: usize = 300;
const DIM: usize = 37;
const VOCAB: usize = 4_999;

/// The inputs of the fused projection.
struct Projection {
    hidden: Vec<f32>,
    weight: Vec<f32>,
    targets: Vec<u32>,
}

fn projection() -> Projection {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    Projection {
        hidden: values(&mut rng, ROWS * DIM, 2.0),
        weight: values(&mut rng, VOCAB * DIM, 1.0),
        targets: (0..ROWS).map(|_| rng.next_u32() % VOCAB as u32).collect(),
    }
}

/// Log-probabilities, entropies and log-sum-exps of some of the rows.
fn project(input: &Projection, rows: std::ops::Range<usize>) -> [Vec<f32>; 3] {
    let n = rows.len();
    let [mut log_prob, mut entropy, mut lse] = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
    vocab::forward(
        n,
        DIM,
        VOCAB,
        &input.hidden[rows.start * DIM..rows.end * DIM],
        &input.weight,
        &input.targets[rows],
        1.25,
        &mut log_prob,
        &mut entropy,
        &mut lse,
    );
    [log_prob, entropy, lse]
}

/// The results of every operation on inputs large enough to be shared among threads.
fn everything() -> Vec<Vec<u32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut all = Vec::new();

    let (rows, dim) = (1_001, 83);
    let (x, weight) = (values(&mut rng, rows * dim, 1.0), values(&mut rng, dim, 1.0));
    let dy = values(&mut rng, rows * dim, 1.0);
    let (mut y, mut rstd) = (vec![0.0; rows * dim], vec![0.0; rows]);
    norm::rms_norm(rows, dim, &x, &weight, 1e-5, &mut y, &mut rstd);
    let (mut dx, mut dweight) = (vec![0.5; rows * dim], vec![0.25; dim]);
    norm::rms_norm_backward(rows, dim, &x, &weight, &rstd, &dy, &mut dx, &mut dweight);
    let mut in_place = x.clone();
    norm::rms_norm_in_place(rows, dim, &mut in_place, &weight, 1e-5);
    assert_eq!(bits(&in_place), bits(&y));
    all.extend([bits(&y), bits(&rstd), bits(&dx), bits(&dweight)]);

    let (tokens, heads, head_dim) = (700, 3, 34);
    let table = rope::RopeTable::new(head_dim, 1e4, 2_048);
    let positions: Vec<u32> = (0..tokens).map(|_| rng.next_u32() % 2_048).collect();
    let mut turned = values(&mut rng, tokens * heads * head_dim, 1.0);
    rope::apply(tokens, heads, head_dim, &mut turned, &positions, &table);
    all.push(bits(&turned));
    rope::apply_backward(tokens, heads, head_dim, &mut turned, &positions, &table);
    all.push(bits(&turned));

    let n = 70_003;
    let (gate, up) = (values(&mut rng, n, 4.0), values(&mut rng, n, 1.0));
    let dout = values(&mut rng, n, 1.0);
    let (mut out, mut dgate, mut dup) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    swiglu::swiglu(n, &gate, &up, &mut out);
    swiglu::swiglu_backward(n, &gate, &up, &dout, &mut dgate, &mut dup);
    all.extend([bits(&out), bits(&dgate), bits(&dup)]);

    let tokens: Vec<u32> = (0..400).map(|_| rng.next_u32() % 50).collect();
    let mut dtable = vec![0.0; 50 * 83];
    embedding::embed_backward(83, &tokens, &x[..400 * 83], &mut dtable);
    all.push(bits(&dtable));

    let mut exps = values(&mut rng, n, 30.0);
    math::exp_slice(&mut exps);
    all.push(bits(&exps));
    let mut logs: Vec<f32> = values(&mut rng, n, 30.0).iter().map(|x| x.abs()).collect();
    math::ln_slice(&mut logs);
    all.push(bits(&logs));

    let optimizer = AdamW { lr: 1e-3, ..AdamW::default() };
    let (mut params, mut m, mut v) = (values(&mut rng, n, 1.0), vec![0.0; n], vec![0.0; n]);
    for step in 1..=3 {
        optimizer.update(&mut params, &dout, &mut m, &mut v, step, 0.3);
    }
    all.extend([bits(&params), bits(&m), bits(&v)]);
    let total = reduce::sum_of_squares(&dout).to_bits();
    all.push(vec![total as u32, (total >> 32) as u32]);

    let input = projection();
    let [log_prob, entropy, lse] = project(&input, 0..ROWS);
    let (mut dhidden, mut dweight) = (vec![0.5; ROWS * DIM], vec![0.25; VOCAB * DIM]);
    vocab::backward(
        ROWS,
        DIM,
        VOCAB,
        &input.hidden,
        &input.weight,
        &input.targets,
        1.25,
        &entropy,
        &lse,
        &values(&mut rng, ROWS, 1.0),
        &values(&mut rng, ROWS, 1.0),
        &mut dhidden,
        &mut dweight,
    );
    all.extend([&log_prob, &entropy, &lse, &dhidden, &dweight].map(|x| bits(x)));
    all
}

/// One function for both, since the instruction set is a setting of the whole process.
#[test]
fn threads_and_instruction_sets_give_the_same_bits() {
    let expected = threads(1, everything);
    for count in [2, 3] {
        assert!(threads(count, everything) == expected, "{count} threads");
    }
    for isa in [Isa::Portable, Isa::Avx2] {
        let used = force_isa(isa);
        assert!(threads(2, everything) == expected, "{used:?}");
    }
    force_isa(Isa::Avx512);
}

#[test]
fn a_row_alone_equals_the_row_in_a_batch() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let (rows, dim) = (1_001, 83);
    let (x, weight) = (values(&mut rng, rows * dim, 1.0), values(&mut rng, dim, 1.0));
    let (mut y, mut rstd) = (vec![0.0; rows * dim], vec![0.0; rows]);
    norm::rms_norm(rows, dim, &x, &weight, 1e-5, &mut y, &mut rstd);
    for row in [0, 1, 63, 64, 500, 1_000] {
        let at = row * dim..(row + 1) * dim;
        let (mut alone, mut rstd_alone) = (vec![0.0; dim], [0.0]);
        norm::rms_norm(1, dim, &x[at.clone()], &weight, 1e-5, &mut alone, &mut rstd_alone);
        assert_eq!(bits(&alone), bits(&y[at]), "row {row}");
        assert_eq!(rstd_alone[0].to_bits(), rstd[row].to_bits());
    }

    let input = projection();
    let all = project(&input, 0..ROWS);
    for rows in [0..1, 17..18, 255..258, 299..300, 30..300] {
        let some = project(&input, rows.clone());
        for (some, all) in some.iter().zip(&all) {
            assert_eq!(bits(some), bits(&all[rows.clone()]), "rows {rows:?}");
        }
    }
}

#[test]
fn statistics_of_materialised_logits_equal_the_fused_projection() {
    let input = projection();
    let [log_prob, entropy, lse] = project(&input, 0..ROWS);
    let packed = gemm::PackedWeight::pack(&input.weight, VOCAB, DIM);
    for row in [0, 1, 100, 256, 299] {
        let mut logits = vec![0.0; VOCAB];
        gemm::linear_packed(1, &input.hidden[row * DIM..][..DIM], &packed, &mut logits, false);
        for z in &mut logits {
            *z *= 1.25;
        }
        let found = vocab::stats_from_logits(&logits, input.targets[row]);
        assert_eq!(
            [found.0, found.1, found.2].map(f32::to_bits),
            [log_prob[row], entropy[row], lse[row]].map(f32::to_bits),
            "row {row}"
        );
    }
}
