//! WebShop's search: building the index of a generated catalogue, and searching it.

use std::time::Instant;

use clap::Args;
use ragen_envs::webshop::search::Index;
use ragen_envs::webshop::{Product, catalogue};
use serde_json::json;

use super::{median, peak_rss_bytes};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Table};

/// WebShop's search on generated catalogues: time to make and to index the products, time a search, memory.
#[derive(Args)]
pub struct Webshop {
    /// Products in the catalogue.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1000,100000")]
    products: Vec<usize>,
    /// Searches: instructions and titles of products, spread over the catalogue.
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What was measured on one catalogue.
struct Measured {
    products: usize,
    generate_s: f64,
    index_s: f64,
    search_ms: f64,
    slowest_ms: f64,
    terms: usize,
    index_bytes: usize,
    peak_rss: Option<u64>,
}

impl Webshop {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        const MOST: usize = 2_000_000;
        if self.queries == 0 || self.products.iter().any(|n| !(1..=MOST).contains(n)) {
            return Err(Failure::input("--products have to be from 1 to 2 million, --queries at least 1"));
        }
        let results: Vec<Measured> = self.products.iter().map(|&n| measure(n, self.queries)).collect();
        if self.json {
            let list = results.iter().map(|m| {
                json!({
                    "products": m.products,
                    "generate_s": m.generate_s,
                    "index_s": m.index_s,
                    "search_median_ms": m.search_ms,
                    "search_max_ms": m.slowest_ms,
                    "terms": m.terms,
                    "index_bytes": m.index_bytes,
                    "peak_rss_bytes": m.peak_rss,
                })
            });
            output::json(&list.collect());
            return Ok(());
        }
        let columns =
            ["products", "generate s", "index s", "search ms", "slowest ms", "terms", "index MiB", "peak RSS MiB"];
        let mut table = Table::new(&columns);
        let mib = |bytes: f64| format!("{:.1}", bytes / (1u32 << 20) as f64);
        for m in results {
            table.row([
                m.products.to_string(),
                format!("{:.2}", m.generate_s),
                format!("{:.2}", m.index_s),
                format!("{:.3}", m.search_ms),
                format!("{:.3}", m.slowest_ms),
                m.terms.to_string(),
                mib(m.index_bytes as f64),
                m.peak_rss.map_or_else(|| "–".into(), |bytes| mib(bytes as f64)),
            ]);
        }
        table.print();
        Ok(())
    }
}

fn measure(n: usize, queries: usize) -> Measured {
    let start = Instant::now();
    let products = catalogue::builtin(0, n);
    let generate_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let index = Index::new(products.iter().map(Product::contents));
    let index_s = start.elapsed().as_secs_f64();
    let name = |doc: usize| products.get(doc).map_or("", |product| product.asin.as_str());
    let mut times = Vec::with_capacity(queries);
    for i in 0..queries {
        let Some(product) = products.get(i * 7919 % n) else { continue };
        let query = product.instruction.as_ref().filter(|_| i % 2 == 0).unwrap_or(&product.title);
        let start = Instant::now();
        std::hint::black_box(index.search(query, 50, name));
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Measured {
        products: n,
        generate_s,
        index_s,
        search_ms: median(&times),
        slowest_ms: times.iter().copied().fold(0.0, f64::max),
        terms: index.vocabulary(),
        index_bytes: index.bytes(),
        peak_rss: peak_rss_bytes(),
    }
}
