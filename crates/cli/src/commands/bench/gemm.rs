//! Matrix products beside the machine's ceiling.

use std::time::Instant;

use clap::Args;
use ragen_kernels::gemm::peak::fma_peak_gflops;
use ragen_kernels::gemm::{PackedWeight, linear, linear_packed};
use serde_json::json;

use super::median;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Table, percent};

/// Matrix products `y = x·Wᵀ` with weights that change from product to product, as the layers of a model do.
#[derive(Args)]
pub struct Gemm {
    /// Rows of x: 1 is decoding one sequence, 1024 is training.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256,1024")]
    rows: Vec<usize>,
    /// Outputs of W.
    #[arg(long, value_name = "N", default_value_t = 1536)]
    outputs: usize,
    /// Inputs of W.
    #[arg(long, value_name = "K", default_value_t = 576)]
    inputs: usize,
    /// Different weights to cycle through.
    #[arg(long, value_name = "N", default_value_t = 30)]
    layers: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Floats that one side of the benchmark may hold.
const MOST_FLOATS: usize = 1 << 28;

impl Gemm {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (n, k) = (self.outputs, self.inputs);
        let most_rows = self.rows.iter().copied().max().unwrap_or(0);
        let floats = |a: usize, b: usize| a.checked_mul(b).filter(|floats| (1..=MOST_FLOATS).contains(floats));
        let weights = floats(n, k).and_then(|size| floats(size, self.layers));
        if weights.is_none() || floats(most_rows, k.max(n)).is_none() || self.rows.contains(&0) {
            return Err(Failure::input(
                "--rows, --outputs, --inputs and --layers have to be at least 1, and no matrix (nor all weights \
                 together) larger than 268 million values",
            ));
        }
        let w: Vec<Vec<f32>> =
            (0..self.layers).map(|l| (0..n * k).map(|i| ((i * 7 + l) % 13) as f32 * 0.01 - 0.06).collect()).collect();
        let packed: Vec<PackedWeight> = w.iter().map(|w| PackedWeight::pack(w, n, k)).collect();
        let mut results = Vec::new();
        for &m in &self.rows {
            let x: Vec<f32> = (0..m * k).map(|i| (i % 11) as f32 * 0.1).collect();
            let mut y = vec![0.0; m * n];
            let flop = 2.0 * m as f64 * n as f64 * k as f64 * self.layers as f64;
            let mut measure = |product: &mut dyn FnMut(usize, &mut [f32])| {
                let mut speeds = Vec::new();
                for _ in 0..5 {
                    let start = Instant::now();
                    for layer in 0..self.layers {
                        product(layer, &mut y);
                    }
                    speeds.push(flop / start.elapsed().as_nanos().max(1) as f64);
                }
                median(&speeds)
            };
            let with_packed = measure(&mut |layer, y| linear_packed(m, &x, &packed[layer], y, false));
            let plain = measure(&mut |layer, y| linear(m, n, k, &x, &w[layer], y, false));
            // Taken in the same breath, as neighbours come and go.
            results.push((m, with_packed, plain, fma_peak_gflops(rayon::current_num_threads())));
        }
        if self.json {
            let list = results.iter().map(|(m, packed, plain, peak)| {
                json!({ "rows": m, "outputs": n, "inputs": k, "packed_gflops": packed, "plain_gflops": plain,
                        "fma_peak_gflops": peak })
            });
            output::json(&list.collect());
            return Ok(());
        }
        let mut table = Table::new(&["rows", "packed GFLOP/s", "of peak", "plain GFLOP/s", "of peak", "peak GFLOP/s"]);
        for (m, packed, plain, peak) in results {
            table.row([
                m.to_string(),
                format!("{packed:.0}"),
                percent(packed / peak),
                format!("{plain:.0}"),
                percent(plain / peak),
                format!("{peak:.0}"),
            ]);
        }
        table.print();
        Ok(())
    }
}
