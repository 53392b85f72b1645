//! Diagnostics: what an iteration tells about the health of a policy, on the batch before any filter.
//!
//! [`batch`]: cheap numbers of every iteration. [`collapse`]: whether the reasoning depends on the prompt (RAGEN-2,
//! arXiv 2604.06268), every few iterations. [`gradient`]: where the gradient comes from, on request. The formulas of
//! the information quantities are in [`crate::mi`].

pub mod batch;
pub mod collapse;
pub mod gradient;
mod scoring;
mod thoughts;
