//! Decoder-only language models in Hugging Face's formats: load, generate, score, train, save.
//!
//! What is here: configuration, weights (safetensors, GGUF), tokenizer, chat template, the transformer's forward and
//! backward, batched generation with a key-value cache.
//! What is not here: environments, rewards, reinforcement learning.

mod backward;
pub mod batch;
pub mod bpe_train;
mod burst;
pub mod chat;
pub mod config;
mod decode;
pub mod generate;
pub mod init;
pub mod memory;
pub mod params;
pub mod sampler;
pub mod tokenizer;
mod tokenizer_gguf;
pub mod trainable;
pub mod transformer;
pub mod turn_pieces;
pub mod weights;
