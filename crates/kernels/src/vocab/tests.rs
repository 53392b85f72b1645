//! Edge cases of the distributions, against plain `f64`.

use super::*;

/// Log-probability, entropy and log-sum-exp as the definitions state them.
fn reference(logits: &[f32], target: usize) -> (f64, f64, f64) {
    let z: Vec<f64> = logits.iter().map(|&z| f64::from(z)).collect();
    let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lse = max + z.iter().map(|z| libm::exp(z - max)).sum::<f64>().ln();
    let entropy = z.iter().filter(|z| z.is_finite()).map(|z| -libm::exp(z - lse) * (z - lse)).sum();
    (z[target] - lse, entropy, lse)
}

fn assert_close(logits: &[f32], target: u32) {
    let (log_prob, entropy, lse) = stats_from_logits(logits, target);
    let exact = reference(logits, target as usize);
    let pairs = [(log_prob, exact.0), (entropy, exact.1), (lse, exact.2)];
    for (what, (found, exact)) in ["log_prob", "entropy", "lse"].into_iter().zip(pairs) {
        let tolerance = 2e-6 + 5e-7 * exact.abs();
        assert!((f64::from(found) - exact).abs() <= tolerance, "{what}: {found}, expected {exact}");
    }
}

/// Repeatable values in `[-1, 1]`.
fn noise(n: usize, scale: f32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0)
        .map(|x| x * scale)
        .collect()
}

#[test]
fn distributions_of_every_size_and_spread() {
    for vocab in [1, 2, 15, 16, 17, 511, 512, 513, 1_024, 3_000, 50_000] {
        for scale in [0.0, 1e-3, 1.0, 10.0, 100.0, 1e4] {
            let logits = noise(vocab, scale);
            for target in [0, vocab / 2, vocab - 1] {
                assert_close(&logits, target as u32);
            }
        }
    }
}

#[test]
fn equal_logits_are_the_uniform_distribution() {
    for level in [-1e4, 0.0, 1e4] {
        let (log_prob, entropy, _) = stats_from_logits(&vec![level; 1_000], 3);
        assert!((entropy - 1_000f32.ln()).abs() < 2e-6 && (log_prob + entropy).abs() < 2e-6);
    }
}

#[test]
fn certainty_has_no_entropy() {
    let mut logits = vec![-1e4; 1_500];
    logits[1_200] = 1e4;
    assert_eq!(stats_from_logits(&logits, 1_200), (0.0, 0.0, 1e4));
    assert_eq!(stats_from_logits(&logits, 0).0, -2e4);
    assert_eq!(stats_from_logits(&[7.0], 0), (0.0, 0.0, 7.0));
}

#[test]
fn impossible_tokens_count_nothing() {
    let mut logits = noise(1_300, 3.0);
    // Part of a chunk, and a whole chunk, before anything possible.
    logits[..700].fill(f32::NEG_INFINITY);
    assert_close(&logits, 1_000);
    assert_eq!(stats_from_logits(&logits, 5).0, f32::NEG_INFINITY);
}

#[test]
fn faults_in_the_logits_are_not_hidden() {
    for fault in [f32::NAN, f32::INFINITY] {
        for at in [0, 15, 600, 1_299] {
            let mut logits = noise(1_300, 3.0);
            logits[at] = fault;
            let (log_prob, entropy, _) = stats_from_logits(&logits, 77);
            assert!(log_prob.is_nan() || log_prob == f32::NEG_INFINITY, "{fault} at {at}");
            assert!(entropy.is_nan(), "{fault} at {at}");
        }
    }
}

#[test]
fn gradients_of_extreme_logits_are_finite() {
    let (dim, vocab) = (2, 600);
    let mut weight = noise(vocab * dim, 1.0);
    weight[0] = 1e4;
    weight[2] = -1e4;
    let hidden = [1.0, 1.0, 0.0, 0.0, -1.0, 0.5];
    let targets = [0, 1, 0];
    let [mut log_prob, mut entropy, mut lse] = [[0.0; 3]; 3];
    forward(3, dim, vocab, &hidden, &weight, &targets, 2.0, &mut log_prob, &mut entropy, &mut lse);
    assert_eq!((log_prob[0], entropy[0]), (0.0, 0.0));
    assert!((entropy[1] - (vocab as f32).ln()).abs() < 1e-5);
    assert!((log_prob[2] + 4e4).abs() < 10.0);
    let (mut dhidden, mut dweight) = (vec![0.0; hidden.len()], vec![0.0; weight.len()]);
    backward(
        3,
        dim,
        vocab,
        &hidden,
        &weight,
        &targets,
        2.0,
        &entropy,
        &lse,
        &[1.0; 3],
        &[1.0; 3],
        &mut dhidden,
        &mut dweight,
    );
    assert!(dhidden.iter().chain(&dweight).all(|x| x.is_finite()));
    // A certain and correct token teaches nothing.
    assert!(dhidden[..2].iter().all(|x| x.abs() < 1e-6));
}

#[test]
#[should_panic(expected = "target 3 is not in a vocabulary of 3")]
fn unknown_targets_are_refused() {
    stats_from_logits(&[0.0; 3], 3);
}
