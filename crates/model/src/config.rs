//! Model configuration: the facts of a Hugging Face `config.json` that a decoder-only model here depends on.
//!
//! What is here: one struct for the three supported families and its validation; its reading and writing are in `json`.
//! What is not here: GGUF metadata (`weights::gguf`), generation settings, training settings.

mod json;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A supported architecture. All three are pre-norm decoders with rotary embedding, grouped-query attention and SwiGLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// `LlamaForCausalLM`: no biases, no query/key normalisation.
    Llama,
    /// `Qwen2ForCausalLM`: biases on the query, key and value projections.
    Qwen2,
    /// `Qwen3ForCausalLM`: RMS normalisation of each query and key head.
    Qwen3,
}

impl Family {
    /// The class name that Hugging Face files carry under `architectures`.
    pub fn architecture(self) -> &'static str {
        match self {
            Family::Llama => "LlamaForCausalLM",
            Family::Qwen2 => "Qwen2ForCausalLM",
            Family::Qwen3 => "Qwen3ForCausalLM",
        }
    }

    /// The name that Hugging Face files carry under `model_type` (and GGUF files under `general.architecture`).
    pub fn model_type(self) -> &'static str {
        match self {
            Family::Llama => "llama",
            Family::Qwen2 => "qwen2",
            Family::Qwen3 => "qwen3",
        }
    }

    /// The family with the given `model_type`.
    pub fn from_model_type(name: &str) -> Option<Self> {
        [Family::Llama, Family::Qwen2, Family::Qwen3].into_iter().find(|f| f.model_type() == name)
    }

    fn from_architecture(name: &str) -> Option<Self> {
        [Family::Llama, Family::Qwen2, Family::Qwen3].into_iter().find(|f| f.architecture() == name)
    }
}

/// Sizes and switches of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Architecture.
    pub family: Family,
    /// Rows of the embedding matrix. May exceed the number of tokens the tokenizer knows.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the gated feed-forward layer.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key and value heads; divides the number of query heads.
    pub num_key_value_heads: usize,
    /// Width of one attention head; even. Not always `hidden_size / num_attention_heads`.
    pub head_dim: usize,
    /// ε of every RMS normalisation.
    pub rms_norm_eps: f32,
    /// Base of the rotary embedding's frequencies.
    pub rope_theta: f64,
    /// Longest sequence the model was made for, in tokens.
    pub max_position_embeddings: usize,
    /// Whether the output projection is the embedding matrix.
    pub tie_word_embeddings: bool,
    /// Whether the query, key and value projections have biases.
    pub qkv_bias: bool,
    /// Whether each query and key head is RMS-normalised before the rotary embedding.
    pub qk_norm: bool,
    /// Beginning-of-sequence token, if any.
    pub bos_token_id: Option<u32>,
    /// End-of-sequence tokens; may be empty.
    pub eos_token_ids: Vec<u32>,
    /// Padding token, if any.
    pub pad_token_id: Option<u32>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("the configuration cannot be read: {source}")]
    Read {
        /// File.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The text is not JSON.
    #[error("model config is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A key has the wrong type or is missing.
    #[error("model config key `{key}`: expected {expected}, found {found}")]
    Key {
        /// JSON key.
        key: String,
        /// What would be right.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The file asks for something this implementation does not compute.
    #[error("model config key `{key}` = {found} is not supported: {why}")]
    Unsupported {
        /// JSON key.
        key: String,
        /// Its value.
        found: String,
        /// What is supported instead.
        why: String,
    },
    /// A value is outside its range.
    #[error("model config `{key}` = {found}: {expected}")]
    Invalid {
        /// Field.
        key: &'static str,
        /// Its value.
        found: String,
        /// The rule it breaks.
        expected: String,
    },
}

/// Largest accepted dimension: bounds every product of two dimensions far below overflow.
const MAX_DIM: usize = 1 << 24;
/// Largest accepted number of layers.
const MAX_LAYERS: usize = 4096;

impl ModelConfig {
    /// Checks that the sizes are positive, bounded and fit together.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] naming the field, its value and the rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let dims = [
            ("vocab_size", self.vocab_size, MAX_DIM),
            ("hidden_size", self.hidden_size, MAX_DIM),
            ("intermediate_size", self.intermediate_size, MAX_DIM),
            ("num_hidden_layers", self.num_hidden_layers, MAX_LAYERS),
            ("num_attention_heads", self.num_attention_heads, 65536),
            ("num_key_value_heads", self.num_key_value_heads, 65536),
            ("head_dim", self.head_dim, 65536),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 30),
        ];
        for (key, found, max) in dims {
            if found == 0 || found > max {
                return Err(invalid(key, found, format!("must be between 1 and {max}")));
            }
        }
        if !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            return Err(invalid(
                "num_key_value_heads",
                self.num_key_value_heads,
                format!("must divide num_attention_heads {}", self.num_attention_heads),
            ));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(invalid(
                "head_dim",
                self.head_dim,
                "must be even: the rotary embedding turns pairs of channels".into(),
            ));
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps > 0.0) {
            return Err(invalid("rms_norm_eps", self.rms_norm_eps, "must be positive and finite".into()));
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 0.0) {
            return Err(invalid("rope_theta", self.rope_theta, "must be positive and finite".into()));
        }
        for (key, id) in self
            .eos_token_ids
            .iter()
            .map(|id| ("eos_token_id", *id))
            .chain(self.bos_token_id.map(|id| ("bos_token_id", id)))
        {
            if id as usize >= self.vocab_size {
                return Err(invalid(key, id, format!("must be below vocab_size {}", self.vocab_size)));
            }
        }
        if self.qkv_bias != (self.family == Family::Qwen2) || self.qk_norm != (self.family == Family::Qwen3) {
            return Err(invalid(
                "qkv_bias / qk_norm",
                format!("{} / {}", self.qkv_bias, self.qk_norm),
                format!(
                    "{} has {} projection biases and {} query/key normalisation",
                    self.family.architecture(),
                    if self.family == Family::Qwen2 { "" } else { "no" },
                    if self.family == Family::Qwen3 { "" } else { "no" }
                ),
            ));
        }
        Ok(())
    }

    /// Width of all query heads together: rows of `q_proj`, columns of `o_proj`.
    pub fn q_dim(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all key (or value) heads together: rows of `k_proj` and `v_proj`.
    pub fn kv_dim(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }
}

fn invalid(key: &'static str, found: impl ToString, expected: String) -> ConfigError {
    ConfigError::Invalid { key, found: found.to_string(), expected }
}
