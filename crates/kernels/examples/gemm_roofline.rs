//! Speed of the matrix products by rows, beside the machine's ceilings measured in the same run.
//!
//! The roofline of a product is min(peak of fused multiply-adds, read bandwidth × operations per byte), where the bytes
//! are those of the weight, the input and the output, each once. Weights of the SmolLM2-135M shapes cycle through all
//! layers, so they come from memory; those of the tiny model stay in the caches, so its roofline is the peak alone.
//! Rounds over all functions alternate with measurements of the ceilings; medians of the rounds are printed.
//!
//! `cargo run --release --example gemm_roofline [threads] [rounds] [part of a shape's name]`

use ragen_kernels::gemm::{
    PackedWeight, linear, linear_grad_input, linear_grad_weight, linear_packed, linear_packed_serial,
    peak::{fma_peak_gflops, read_bandwidth_gbs},
};
use std::hint::black_box;
use std::time::Instant;

struct Shape {
    name: &'static str,
    n: usize,
    k: usize,
    layers: usize,
    rows: &'static [usize],
    in_cache: bool,
}

const SHAPES: [Shape; 8] = [
    shape("query, output 576x576", 576, 576, 80, false),
    shape("key, value 192x576", 192, 576, 240, false),
    shape("gate, up 1536x576", 1536, 576, 30, false),
    shape("down 576x1536", 576, 1536, 30, false),
    Shape { rows: &[1, 16, 64, 128], ..shape("vocabulary 49152x576", 49152, 576, 1, false) },
    shape("tiny 128x128", 128, 128, 4, true),
    shape("tiny 512x128", 512, 128, 4, true),
    shape("tiny 128x512", 128, 512, 4, true),
];

const fn shape(name: &'static str, n: usize, k: usize, layers: usize, in_cache: bool) -> Shape {
    Shape { name, n, k, layers, rows: &[1, 4, 16, 64, 128, 1024], in_cache }
}

const FUNCTIONS: [&str; 5] = ["linear_packed", "packed_serial", "linear", "grad_input", "grad_weight"];

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn filled(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7) % 13) as f32 * 0.01 - 0.06).collect()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().and_then(|a| a.parse().ok()).unwrap_or(default);
    let (threads, rounds) = (number(2usize), number(5usize));
    let wanted = arguments.next().unwrap_or_default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => pool.install(|| run(threads, rounds, &wanted)),
        Err(error) => eprintln!("no thread pool of {threads} threads: {error}"),
    }
}

fn run(threads: usize, rounds: usize, wanted: &str) {
    println!("{threads} threads, medians of {rounds} rounds; GFLOP/s (% of the roofline of the same rounds)");
    for shape in SHAPES.iter().filter(|s| s.name.contains(wanted)) {
        let (n, k) = (shape.n, shape.k);
        let weights: Vec<Vec<f32>> = (0..shape.layers).map(|_| filled(n * k)).collect();
        let packed: Vec<PackedWeight> = weights.iter().map(|w| PackedWeight::pack(w, n, k)).collect();
        let mut gradient = vec![vec![0.0; n * k]; shape.layers];
        println!("\n{} (n x k), {} layers", shape.name, shape.layers);
        println!("{:>6} {:>18} {}", "rows", "peak, GB/s", FUNCTIONS.map(|f| format!("{f:>16}")).join(" "));
        for &m in shape.rows {
            let (x, dy) = (filled(m * k), filled(m * n));
            let (mut y, mut dx) = (vec![0.0; m * n], vec![0.0; m * k]);
            let flops = 2.0 * (m * n * k) as f64;
            // About 20 ms a measurement, whole passes over the layers.
            let passes = ((20e-3 * 1e11) / (flops * shape.layers as f64)).ceil().clamp(1.0, 2e4) as usize;
            let (mut peaks, mut bandwidths) = (Vec::new(), Vec::new());
            let mut speeds: [Vec<f64>; FUNCTIONS.len()] = Default::default();
            let mut shares: [Vec<f64>; FUNCTIONS.len()] = Default::default();
            for round in 0..=rounds {
                let before = (fma_peak_gflops(threads), read_bandwidth_gbs(threads));
                let mut round_speeds = [0.0; FUNCTIONS.len()];
                for (f, speed) in round_speeds.iter_mut().enumerate() {
                    let start = Instant::now();
                    for _ in 0..passes {
                        for layer in 0..shape.layers {
                            match f {
                                0 => linear_packed(m, &x, &packed[layer], &mut y, false),
                                1 => linear_packed_serial(m, &x, &packed[layer], &mut y, false),
                                2 => linear(m, n, k, &x, &weights[layer], &mut y, false),
                                3 => linear_grad_input(m, n, k, &dy, &weights[layer], &mut dx, false),
                                _ => linear_grad_weight(m, n, k, &dy, &x, &mut gradient[layer]),
                            }
                            black_box((&y, &dx));
                        }
                    }
                    let calls = (passes * shape.layers) as f64;
                    *speed = flops * calls / start.elapsed().as_secs_f64() / 1e9;
                }
                if round == 0 {
                    continue; // Warm-up: pages, threads, clocks.
                }
                let after = (fma_peak_gflops(threads), read_bandwidth_gbs(threads));
                let peak = (before.0 + after.0) / 2.0;
                let bandwidth = (before.1 + after.1) / 2.0;
                peaks.push(peak);
                bandwidths.push(bandwidth);
                for (f, &speed) in round_speeds.iter().enumerate() {
                    // The serial function has its share of the threads' peak.
                    let share = if f == 1 { 1.0 / threads as f64 } else { 1.0 };
                    let reads = if f == 4 { 2 * n * k } else { n * k };
                    let bytes = (4 * (reads + m * k + m * n)) as f64;
                    let memory = if shape.in_cache { f64::INFINITY } else { bandwidth * flops / bytes };
                    speeds[f].push(speed);
                    shares[f].push(100.0 * speed / (peak * share).min(memory));
                }
            }
            let cells: Vec<String> = (0..FUNCTIONS.len())
                .map(|f| format!("{:>10.1} ({:>3.0})", median(&mut speeds[f]), median(&mut shares[f])))
                .collect();
            println!("{m:>6} {:>10.0}, {:>6.1} {}", median(&mut peaks), median(&mut bandwidths), cells.join(" "));
        }
    }
}
