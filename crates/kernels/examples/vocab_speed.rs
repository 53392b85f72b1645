//! Speed of the fused vocabulary projection beside plain matrix products of the same arithmetic, in one run.
//!
//! `cargo run --release -p ragen-kernels --example vocab_speed -- [vocab] [dim] [rows ...]`

use std::time::Instant;

use ragen_kernels::{gemm, vocab};

/// Repeatable values around zero.
fn values(n: usize, scale: f32) -> Vec<f32> {
    let mut state = 1u32;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) * scale
        })
        .collect()
}

/// The shortest of a few runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let vocab = numbers.first().copied().unwrap_or(49_152);
    let dim = numbers.get(1).copied().unwrap_or(576);
    let all_rows = numbers.get(2..).filter(|rows| !rows.is_empty()).unwrap_or(&[64, 256, 1024]);
    let weight = values(vocab * dim, 0.1);
    let mut dweight = vec![0.0; vocab * dim];
    println!("vocab {vocab}, dim {dim}; GFLOP/s, best of 5, and the products alone");
    for &rows in all_rows {
        let hidden = values(rows * dim, 2.0);
        let targets: Vec<u32> = (0..rows).map(|row| (row * 977 % vocab) as u32).collect();
        let mut dhidden = vec![0.0; rows * dim];
        let (mut log_prob, mut entropy, mut lse) = (vec![0.0; rows], vec![0.0; rows], vec![0.0; rows]);
        let product = 2.0 * rows as f64 * dim as f64 * vocab as f64 / 1e9;

        // The products alone, in blocks small enough that writing logits to memory costs little.
        let block = (1 << 19) / rows.clamp(1, 1 << 10);
        let mut logits = vec![0.0; rows * block];
        let blocks = || (0..vocab).step_by(block).map(|from| (from, block.min(vocab - from)));
        let plain = best(|| {
            for (from, n) in blocks() {
                let w = &weight[from * dim..][..n * dim];
                gemm::linear(rows, n, dim, &hidden, w, &mut logits[..rows * n], false);
            }
        });
        let fused = best(|| {
            vocab::forward(rows, dim, vocab, &hidden, &weight, &targets, 0.8, &mut log_prob, &mut entropy, &mut lse);
        });
        let plain_three = best(|| {
            for (from, n) in blocks() {
                let w = &weight[from * dim..][..n * dim];
                let z = &mut logits[..rows * n];
                gemm::linear(rows, n, dim, &hidden, w, z, false);
                gemm::linear_grad_input(rows, n, dim, z, w, &mut dhidden, true);
                gemm::linear_grad_weight(rows, n, dim, z, &hidden, &mut dweight[from * dim..][..n * dim]);
            }
        });
        dweight.fill(0.0);
        dhidden.fill(0.0);
        let ones = vec![1.0 / rows as f32; rows];
        let fused_backward = best(|| {
            vocab::backward(
                rows,
                dim,
                vocab,
                &hidden,
                &weight,
                &targets,
                0.8,
                &entropy,
                &lse,
                &ones,
                &ones,
                &mut dhidden,
                &mut dweight,
            );
        });
        println!(
            "rows {rows:5}: forward {:6.1} (products {:6.1}, ratio {:.2}), backward {:6.1} (products {:6.1}, ratio {:.2})",
            product / fused,
            product / plain,
            plain / fused,
            3.0 * product / fused_backward,
            3.0 * product / plain_three,
            plain_three / fused_backward,
        );
    }
}
