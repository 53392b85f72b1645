//! Numerics of decoder-only transformers: each operation with an explicit forward and backward over flat `f32`
//! buffers, plus AdamW and norms.
//!
//! What is here: kernels that accumulate every output element in one fixed order, whatever the batch, the shape of the
//! blocks, the instruction set or the number of threads.
//! What is not here: models, tokens, text.
//!
//! Conventions: matrices are row-major; a weight `w` of a linear layer is `[out, in]` as in Hugging Face files, and the
//! layer computes `y = x · wᵀ`. Gradients are *added* to their buffers.

pub mod adamw;
pub mod attention;
pub mod elementwise;
pub mod embedding;
pub mod gemm;
mod kv_attend;
pub mod kv_cache;
pub mod math;
pub mod norm;
pub mod reduce;
pub mod rope;
pub mod shared;
pub mod simd;
pub mod swiglu;
pub mod vocab;
