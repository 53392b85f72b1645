//! Every backward pass against central differences of a plain `f64` statement of its forward pass.

use ragen_kernels::{embedding, norm, rope, swiglu, vocab};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Uniform in `[-scale, scale]`.
fn values(rng: &mut ChaCha8Rng, n: usize, scale: f32) -> Vec<f32> {
    (0..n).map(|_| (rng.next_u32() as f64 / f64::from(u32::MAX) * 2.0 - 1.0) as f32 * scale).collect()
}

fn indices(rng: &mut ChaCha8Rng, n: usize, below: usize) -> Vec<u32> {
    (0..n).map(|_| rng.next_u32() % u32::try_from(below).unwrap()).collect()
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// The gradient of `objective` at `x` by central differences.
fn central_differences(x: &[f32], objective: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut x = wide(x);
    (0..x.len())
        .map(|i| {
            let step = 1e-5 * x[i].abs().max(1.0);
            let at = x[i];
            x[i] = at + step;
            let above = objective(&x);
            x[i] = at - step;
            let below = objective(&x);
            x[i] = at;
            (above - below) / (2.0 * step)
        })
        .collect()
}

/// Fails unless `found` is `before` plus `expected`, relative to the largest element of `expected`.
fn assert_added(what: &str, found: &[f32], before: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-2, |most: f64, x| most.max(x.abs()));
    for (i, ((&found, &before), &expected)) in found.iter().zip(before).zip(expected).enumerate() {
        let difference = (f64::from(found) - f64::from(before) - expected).abs();
        assert!(
            difference <= 2e-5 * scale + 1e-6 * f64::from(before).abs(),
            "{what}[{i}]: found {found} from {before}, expected {expected} more; scale {scale}"
        );
    }
}

fn dot(a: &[f64], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum()
}

fn rms_norm(rows: usize, dim: usize, x: &[f64], weight: &[f64], eps: f64) -> Vec<f64> {
    let mut y = Vec::new();
    for x in x.chunks_exact(dim).take(rows) {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / dim as f64;
        y.extend(x.iter().zip(weight).map(|(x, w)| x / (mean + eps).sqrt() * w));
    }
    y
}

#[test]
fn rms_norm_gradients() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let eps = 1e-5;
    for (rows, dim) in [(1, 1), (1, 16), (3, 7), (2, 33), (70, 5), (130, 2), (0, 8)] {
        let x = values(&mut rng, rows * dim, 2.0);
        let weight = values(&mut rng, dim, 1.5);
        let dy = values(&mut rng, rows * dim, 1.0);
        let (mut y, mut rstd) = (vec![0.0; rows * dim], vec![0.0; rows]);
        norm::rms_norm(rows, dim, &x, &weight, eps, &mut y, &mut rstd);
        let eps = f64::from(eps);
        let expected = rms_norm(rows, dim, &wide(&x), &wide(&weight), eps);
        assert_added("y", &y, &vec![0.0; rows * dim], &expected);

        let (dx_before, dw_before) = (values(&mut rng, rows * dim, 1.0), values(&mut rng, dim, 1.0));
        let (mut dx, mut dweight) = (dx_before.clone(), dw_before.clone());
        norm::rms_norm_backward(rows, dim, &x, &weight, &rstd, &dy, &mut dx, &mut dweight);
        let expected = central_differences(&x, |x| dot(&rms_norm(rows, dim, x, &wide(&weight), eps), &dy));
        assert_added("dx", &dx, &dx_before, &expected);
        let expected = central_differences(&weight, |w| dot(&rms_norm(rows, dim, &wide(&x), w, eps), &dy));
        assert_added("dweight", &dweight, &dw_before, &expected);
    }
}

fn rotate(heads: usize, head_dim: usize, x: &[f64], positions: &[u32], theta: f64) -> Vec<f64> {
    let half = head_dim / 2;
    let mut y = x.to_vec();
    for (token, &position) in positions.iter().enumerate() {
        for head in 0..heads {
            let at = (token * heads + head) * head_dim;
            for i in 0..half {
                let angle = f64::from(position) * theta.powf(-2.0 * i as f64 / head_dim as f64);
                let (a, b) = (x[at + i], x[at + half + i]);
                y[at + i] = a * angle.cos() - b * angle.sin();
                y[at + half + i] = b * angle.cos() + a * angle.sin();
            }
        }
    }
    y
}

#[test]
fn rotary_embedding_gradients() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (tokens, heads, head_dim, theta) in [(1, 1, 2, 1e4), (3, 2, 6, 1e4), (4, 3, 32, 1e6), (0, 2, 4, 1e4)] {
        let table = rope::RopeTable::new(head_dim, theta, 500);
        let positions = indices(&mut rng, tokens, 500);
        let x = values(&mut rng, tokens * heads * head_dim, 1.0);
        let dy = values(&mut rng, x.len(), 1.0);
        let mut y = x.clone();
        rope::apply(tokens, heads, head_dim, &mut y, &positions, &table);
        let expected = rotate(heads, head_dim, &wide(&x), &positions, theta);
        assert_added("y", &y, &vec![0.0; x.len()], &expected);
        let mut dx = dy.clone();
        rope::apply_backward(tokens, heads, head_dim, &mut dx, &positions, &table);
        let expected = central_differences(&x, |x| dot(&rotate(heads, head_dim, x, &positions, theta), &dy));
        assert_added("dx", &dx, &vec![0.0; x.len()], &expected);
    }
}

#[test]
fn swiglu_gradients() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let silu = |x: f64| x / (1.0 + (-x).exp());
    for n in [0, 1, 15, 16, 100] {
        let (gate, up) = (values(&mut rng, n, 8.0), values(&mut rng, n, 2.0));
        let dout = values(&mut rng, n, 1.0);
        let forward =
            |gate: &[f64], up: &[f64]| -> Vec<f64> { gate.iter().zip(up).map(|(&gate, up)| silu(gate) * up).collect() };
        let mut out = vec![f32::NAN; n];
        swiglu::swiglu(n, &gate, &up, &mut out);
        let zeros = vec![0.0; n];
        assert_added("out", &out, &zeros, &forward(&wide(&gate), &wide(&up)));
        let (mut dgate, mut dup) = (vec![f32::NAN; n], vec![f32::NAN; n]);
        swiglu::swiglu_backward(n, &gate, &up, &dout, &mut dgate, &mut dup);
        let expected = central_differences(&gate, |gate| dot(&forward(gate, &wide(&up)), &dout));
        assert_added("dgate", &dgate, &zeros, &expected);
        let expected = central_differences(&up, |up| dot(&forward(&wide(&gate), up), &dout));
        assert_added("dup", &dup, &zeros, &expected);
    }
}

#[test]
fn embedding_gradients() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (vocab, dim) = (7, 3);
    let table = values(&mut rng, vocab * dim, 1.0);
    let tokens = [3, 0, 3, 6, 3];
    let dout = values(&mut rng, tokens.len() * dim, 1.0);
    let forward = |table: &[f64]| -> Vec<f64> {
        let rows = tokens.iter().map(|&token| &table[token as usize * dim..][..dim]);
        rows.flatten().copied().collect()
    };
    let mut out = vec![f32::NAN; tokens.len() * dim];
    embedding::embed(dim, &tokens, &table, &mut out);
    assert_eq!(wide(&out), forward(&wide(&table)));
    let before = values(&mut rng, vocab * dim, 1.0);
    let mut dtable = before.clone();
    embedding::embed_backward(dim, &tokens, &dout, &mut dtable);
    let expected = central_differences(&table, |table| dot(&forward(table), &dout));
    assert_added("dtable", &dtable, &before, &expected);
}

/// Log-probability, entropy and log-sum-exp of each row, as the definitions state them.
fn vocabulary(
    dim: usize,
    hidden: &[f64],
    weight: &[f64],
    targets: &[u32],
    inv_temperature: f64,
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut log_prob, mut entropy, mut lse) = (Vec::new(), Vec::new(), Vec::new());
    for (h, &target) in hidden.chunks_exact(dim).zip(targets) {
        let z: Vec<f64> = weight
            .chunks_exact(dim)
            .map(|w| inv_temperature * h.iter().zip(w).map(|(h, w)| h * w).sum::<f64>())
            .collect();
        let max = z.iter().copied().fold(f64::MIN, f64::max);
        let total = max + z.iter().map(|z| (z - max).exp()).sum::<f64>().ln();
        log_prob.push(z[target as usize] - total);
        entropy.push(-z.iter().map(|z| (z - total).exp() * (z - total)).sum::<f64>());
        lse.push(total);
    }
    (log_prob, entropy, lse)
}

struct VocabularyCase {
    rows: usize,
    dim: usize,
    vocab: usize,
    inv_temperature: f32,
    /// Half-width of the uniform distributions of hidden vectors and weights.
    scale: f32,
    /// Factors of the derivatives with respect to log-probabilities and entropies.
    loss: (f32, f32),
}

#[test]
fn vocabulary_projection_gradients() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let case = |rows, dim, vocab, inv_temperature, scale, loss| VocabularyCase {
        rows,
        dim,
        vocab,
        inv_temperature,
        scale,
        loss,
    };
    let cases = [
        case(1, 4, 1, 1.0, 1.0, (1.0, 1.0)),
        case(1, 8, 10, 1.0, 1.0, (1.0, 0.0)),
        case(3, 5, 17, 2.0, 1.0, (0.0, 1.0)),
        case(5, 7, 33, 0.5, 1.5, (1.0, -0.5)),
        case(2, 3, 600, 2.0, 1.0, (1.0, 1.0)),
        case(4, 2, 512, 1.0, 0.0, (1.0, 1.0)),
        case(0, 3, 20, 1.0, 1.0, (1.0, 1.0)),
        case(3, 1, 2_100, 1.0, 1.0, (0.7, 0.3)),
        case(300, 2, 5, 1.3, 1.0, (0.7, 0.3)),
    ];
    for VocabularyCase { rows, dim, vocab, inv_temperature, scale, loss } in cases {
        let hidden = values(&mut rng, rows * dim, scale);
        let weight = values(&mut rng, vocab * dim, scale);
        let targets = indices(&mut rng, rows, vocab);
        let d_log_prob: Vec<f32> = values(&mut rng, rows, loss.0);
        let d_entropy: Vec<f32> = values(&mut rng, rows, loss.1);
        let (mut log_prob, mut entropy, mut lse) = (vec![0.0; rows], vec![0.0; rows], vec![0.0; rows]);
        vocab::forward(
            rows,
            dim,
            vocab,
            &hidden,
            &weight,
            &targets,
            inv_temperature,
            &mut log_prob,
            &mut entropy,
            &mut lse,
        );
        let zeros = vec![0.0; rows];
        let beta = f64::from(inv_temperature);
        let expected = vocabulary(dim, &wide(&hidden), &wide(&weight), &targets, beta);
        assert_added("log_prob", &log_prob, &zeros, &expected.0);
        assert_added("entropy", &entropy, &zeros, &expected.1);
        assert_added("lse", &lse, &zeros, &expected.2);

        let before = (values(&mut rng, hidden.len(), 1.0), values(&mut rng, weight.len(), 1.0));
        let (mut dhidden, mut dweight) = before.clone();
        vocab::backward(
            rows,
            dim,
            vocab,
            &hidden,
            &weight,
            &targets,
            inv_temperature,
            &entropy,
            &lse,
            &d_log_prob,
            &d_entropy,
            &mut dhidden,
            &mut dweight,
        );
        let objective = |hidden: &[f64], weight: &[f64]| {
            let (log_prob, entropy, _) = vocabulary(dim, hidden, weight, &targets, beta);
            dot(&log_prob, &d_log_prob) + dot(&entropy, &d_entropy)
        };
        let (hidden_wide, weight_wide) = (wide(&hidden), wide(&weight));
        let expected = central_differences(&hidden, |hidden| objective(hidden, &weight_wide));
        assert_added("dhidden", &dhidden, &before.0, &expected);
        let expected = central_differences(&weight, |weight| objective(&hidden_wide, weight));
        assert_added("dweight", &dweight, &before.1, &expected);
    }
}
