//! Conformance with the reference implementations' recorded outputs. Skips, and says so, without `RAGEN_FIXTURES`.

mod alfworld;
mod code_tests;
mod fixtures;
mod frozen_lake;
mod lean;
mod math_qa;
mod rng;
mod search_qa;
mod sokoban;
