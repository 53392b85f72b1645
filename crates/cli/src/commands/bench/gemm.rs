//! Matrix products beside the machine's roofline.

use std::time::Instant;

use clap::Args;
use ragen_kernels::gemm::peak::{fma_peak_gflops, read_bandwidth_gbs};
use ragen_kernels::gemm::{PackedWeight, linear, linear_packed};
use serde_json::json;

use super::median;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Table, percent};

/// Matrix products `y = x·Wᵀ` with weights that change from product to product, as the layers of a model do.
///
/// The roofline of a product is the smaller of the peak of fused multiply-adds and the bandwidth of reads times the
/// product's operations a byte (weight, input and output once each). Both are measured before and after every round, as
/// neighbours come and go, the best of five repetitions as for each product; medians of the rounds are printed. Without
/// --outputs and --inputs the shapes are those of SmolLM2-135M.
#[derive(Args)]
pub struct Gemm {
    /// Rows of x: 1 is decoding one sequence, 1024 is training.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,128,1024")]
    rows: Vec<usize>,
    /// Outputs of W.
    #[arg(long, value_name = "N", requires = "inputs")]
    outputs: Option<usize>,
    /// Inputs of W.
    #[arg(long, value_name = "K", requires = "outputs")]
    inputs: Option<usize>,
    /// Different weights to cycle through; without it, as many as take 100 MB.
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Rounds, of which the median counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Floats that one side of the benchmark may hold.
const MOST_FLOATS: usize = 1 << 28;
/// Floats of all weights together, beyond what a core's caches hold.
const FLOATS_OF_LAYERS: usize = 25 << 20;
/// Passes over all weights in a round.
const REPETITIONS: usize = 5;
/// Outputs and inputs of SmolLM2-135M's projections: query and output, key and value, gate and up, down.
const SHAPES: [(usize, usize); 4] = [(576, 576), (192, 576), (1536, 576), (576, 1536)];

/// Medians over the rounds of one shape and number of rows.
struct Measured {
    outputs: usize,
    inputs: usize,
    rows: usize,
    packed: f64,
    packed_share: f64,
    plain: f64,
    plain_share: f64,
    peak: f64,
    bandwidth: f64,
}

impl Gemm {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let shapes = match (self.outputs, self.inputs) {
            (Some(n), Some(k)) => vec![(n, k)],
            _ => SHAPES.to_vec(),
        };
        let most_rows = self.rows.iter().copied().max().unwrap_or(0);
        let floats = |a: usize, b: usize| a.checked_mul(b).filter(|floats| (1..=MOST_FLOATS).contains(floats));
        let mut results = Vec::new();
        for (n, k) in shapes {
            let layers = self.layers.unwrap_or(FLOATS_OF_LAYERS / floats(n, k).unwrap_or(MOST_FLOATS)).max(1);
            let weights = floats(n, k).and_then(|size| floats(size, layers)).filter(|_| self.layers != Some(0));
            if weights.is_none() || floats(most_rows, k.max(n)).is_none() || self.rows.contains(&0) {
                return Err(Failure::input(
                    "--rows, --outputs, --inputs and --layers have to be at least 1, and no matrix (nor all weights \
                     together) larger than 268 million values",
                ));
            }
            let w: Vec<Vec<f32>> =
                (0..layers).map(|l| (0..n * k).map(|i| ((i * 7 + l) % 13) as f32 * 0.01 - 0.06).collect()).collect();
            let packed: Vec<PackedWeight> = w.iter().map(|w| PackedWeight::pack(w, n, k)).collect();
            results.extend(self.rows.iter().map(|&rows| self.measure(rows, (n, k), &w, &packed)));
        }
        if self.json {
            let list = results.iter().map(|m| {
                json!({ "rows": m.rows, "outputs": m.outputs, "inputs": m.inputs, "packed_gflops": m.packed,
                        "packed_of_roofline": m.packed_share, "plain_gflops": m.plain,
                        "plain_of_roofline": m.plain_share, "fma_peak_gflops": m.peak,
                        "read_bandwidth_gbs": m.bandwidth })
            });
            output::json(&list.collect());
            return Ok(());
        }
        let mut table = Table::new(&[
            "outputs × inputs",
            "rows",
            "packed GFLOP/s",
            "of roofline",
            "plain GFLOP/s",
            "of roofline",
            "peak GFLOP/s",
            "reads GB/s",
        ]);
        for m in results {
            table.row([
                format!("{} × {}", m.outputs, m.inputs),
                m.rows.to_string(),
                format!("{:.0}", m.packed),
                percent(m.packed_share),
                format!("{:.0}", m.plain),
                percent(m.plain_share),
                format!("{:.0}", m.peak),
                format!("{:.1}", m.bandwidth),
            ]);
        }
        table.print();
        Ok(())
    }

    fn measure(&self, m: usize, (n, k): (usize, usize), w: &[Vec<f32>], packed: &[PackedWeight]) -> Measured {
        let threads = rayon::current_num_threads();
        let x: Vec<f32> = (0..m * k).map(|i| (i % 11) as f32 * 0.1).collect();
        let mut y = vec![0.0; m * n];
        let flop = 2.0 * m as f64 * n as f64 * k as f64;
        let bytes = 4.0 * (n * k + m * k + m * n) as f64;
        // As for the ceilings the best of a few repetitions counts, product by product while the weights cycle, so that
        // an interruption spoils one repetition of one product.
        let mut time = |product: &mut dyn FnMut(usize, &mut [f32])| {
            let mut best = vec![u128::MAX; w.len()];
            for _ in 0..REPETITIONS {
                for (layer, best) in best.iter_mut().enumerate() {
                    let start = Instant::now();
                    product(layer, &mut y);
                    *best = start.elapsed().as_nanos().min(*best);
                }
            }
            flop * w.len() as f64 / best.iter().sum::<u128>().max(1) as f64
        };
        let mut rounds: [Vec<f64>; 6] = Default::default();
        for round in 0..=self.rounds.max(1) {
            let before = (fma_peak_gflops(threads), read_bandwidth_gbs(threads));
            let with_packed = time(&mut |layer, y| linear_packed(m, &x, &packed[layer], y, false));
            let plain = time(&mut |layer, y| linear(m, n, k, &x, &w[layer], y, false));
            let after = (fma_peak_gflops(threads), read_bandwidth_gbs(threads));
            if round == 0 {
                continue; // Warm-up: pages, threads, clocks.
            }
            let (peak, bandwidth) = ((before.0 + after.0) / 2.0, (before.1 + after.1) / 2.0);
            let roofline = peak.min(bandwidth * flop / bytes);
            let values = [with_packed, with_packed / roofline, plain, plain / roofline, peak, bandwidth];
            rounds.iter_mut().zip(values).for_each(|(all, value)| all.push(value));
        }
        let [packed, packed_share, plain, plain_share, peak, bandwidth] = rounds.map(|values| median(&values));
        Measured { outputs: n, inputs: k, rows: m, packed, packed_share, plain, plain_share, peak, bandwidth }
    }
}
