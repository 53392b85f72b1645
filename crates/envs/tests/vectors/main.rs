//! Conformance with the reference implementations' recorded outputs. Skips, and says so, without `RAGEN_FIXTURES`.

mod alfworld;
mod boxoban;
mod code_tests;
mod countdown;
mod fixtures;
mod frozen_lake;
mod game2048;
mod lean;
mod math_qa;
mod rng;
mod rubik;
mod search_qa;
mod sokoban;
mod sudoku;
mod webshop;
mod webshop_pages;
