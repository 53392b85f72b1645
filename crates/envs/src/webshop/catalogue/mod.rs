//! Products that need no download: a seeded generator in the statistical shape of the public thousand, and a reduced
//! set of a few short words for tiny models. Names, brands and sentences are made up.
//!
//! Every product's goals can be met: an option value is only used if choosing it counts as what the goal asks for.

mod builder;
mod kinds;
mod kinds_more;
mod reduced;
mod styles;
mod table;
mod words;

use super::product::Product;
use crate::rng::splitmix64;

pub use reduced::{MOST_REDUCED, reduced};

/// Products of the built-in catalogue unless told otherwise.
pub const BUILTIN: usize = 1000;

/// `n` products of the built-in catalogue. The first ones do not depend on how many follow.
#[must_use]
pub fn builtin(seed: u64, n: usize) -> Vec<Product> {
    let mut builder = builder::Builder::new(splitmix64(seed));
    (0..n).map(|_| builder.product()).collect()
}
