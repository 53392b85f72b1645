//! Conformance with the reference implementations' recorded outputs. Skips, and says so, without `RAGEN_FIXTURES`.

mod fixtures;
mod frozen_lake;
mod rng;
mod sokoban;
mod webshop;
mod webshop_pages;
