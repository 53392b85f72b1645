//! The ceilings: multiply-adds and memory reads.

use clap::Args;
use ragen_kernels::gemm::peak::{fma_peak_gflops, read_bandwidth_gbs};
use serde_json::json;

use crate::failure::Outcome;
use crate::output::{self, Table};

/// What the machine can do: fused multiply-adds in f32 and memory reads, on one thread and on all.
#[derive(Args)]
pub struct Machine {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Machine {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let all = rayon::current_num_threads();
        let mut counts = vec![1];
        if all > 1 {
            counts.push(all);
        }
        let measured: Vec<(usize, f64, f64)> =
            counts.into_iter().map(|n| (n, fma_peak_gflops(n), read_bandwidth_gbs(n))).collect();
        if self.json {
            let list = measured
                .iter()
                .map(|(n, peak, read)| json!({ "threads": n, "fma_peak_gflops": peak, "read_bandwidth_gbs": read }));
            output::json(&list.collect());
            return Ok(());
        }
        let mut table = Table::new(&["threads", "f32 GFLOP/s", "reads GB/s"]);
        for (n, peak, read) in measured {
            table.row([n.to_string(), format!("{peak:.0}"), format!("{read:.1}")]);
        }
        table.print();
        Ok(())
    }
}
