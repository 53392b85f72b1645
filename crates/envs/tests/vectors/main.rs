//! Conformance with the reference implementations' recorded outputs. Skips, and says so, without `RAGEN_FIXTURES`.

mod boxoban;
mod countdown;
mod fixtures;
mod frozen_lake;
mod game2048;
mod rng;
mod rubik;
mod sokoban;
mod sudoku;
