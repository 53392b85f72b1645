//! File formats: configuration, weights, tokenizers, chat templates; round trips, golden values, malformed input.

mod chat;
mod config;
mod gguf;
mod gguf_writer;
mod quant;
mod safetensors;
mod smollm2;
mod state;
mod tokenizer;

use std::path::PathBuf;

use ragen_model::config::{Family, ModelConfig};

/// A file or folder committed beside the tests.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A model small enough to write out by hand.
fn tiny_config(family: Family, vocab_size: usize) -> ModelConfig {
    ModelConfig {
        family,
        vocab_size,
        hidden_size: 8,
        intermediate_size: 12,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 4,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        max_position_embeddings: 64,
        tie_word_embeddings: true,
        qkv_bias: family == Family::Qwen2,
        qk_norm: family == Family::Qwen3,
        bos_token_id: None,
        eos_token_ids: vec![2],
        pad_token_id: Some(0),
    }
}

/// A small deterministic stream of numbers (SplitMix64).
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A float in [-1, 1) with few digits, exact in bfloat16.
    fn coarse(&mut self) -> f32 {
        self.below(256) as f32 / 128.0 - 1.0
    }
}
