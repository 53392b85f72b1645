//! Model configuration: the facts of a Hugging Face `config.json` that a decoder-only model here depends on.
//!
//! What is here: one struct for the three supported families, read from `config.json`, validated, and written back so
//! that `transformers` loads the result.
//! What is not here: GGUF metadata (`weights::gguf`), generation settings, training settings.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
    #[error("cannot read {}: {source}", path.display())]
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
    /// Reads and validates a Hugging Face `config.json`.
    ///
    /// # Errors
    /// [`ConfigError`] when the file is unreadable, incomplete, inconsistent or of an unsupported kind.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
        Self::from_json(&text)
    }

    /// Reads and validates the text of a Hugging Face `config.json`.
    ///
    /// # Errors
    /// As [`ModelConfig::from_file`].
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let value: Value = serde_json::from_str(text)?;
        let Value::Object(map) = value else {
            return Err(ConfigError::Key {
                key: "<root>".into(),
                expected: "a JSON object".into(),
                found: kind_of(&value),
            });
        };
        let keys = Keys(&map);
        let family = family_of(&keys)?;
        refuse_unsupported(&keys, family)?;

        let hidden_size = keys.required_usize("hidden_size")?;
        let num_attention_heads = keys.required_usize("num_attention_heads")?;
        let head_dim = match keys.usize("head_dim")? {
            Some(d) => d,
            // The library's default for Qwen3 is a constant, for the others the quotient.
            None if family == Family::Qwen3 => 128,
            None if num_attention_heads > 0 && hidden_size % num_attention_heads == 0 => {
                hidden_size / num_attention_heads
            }
            None => {
                return Err(ConfigError::Invalid {
                    key: "num_attention_heads",
                    found: num_attention_heads.to_string(),
                    expected: format!("must divide hidden_size {hidden_size} when head_dim is not given"),
                });
            }
        };
        let config = Self {
            family,
            vocab_size: keys.required_usize("vocab_size")?,
            hidden_size,
            intermediate_size: keys.required_usize("intermediate_size")?,
            num_hidden_layers: keys.required_usize("num_hidden_layers")?,
            num_attention_heads,
            num_key_value_heads: keys.usize("num_key_value_heads")?.unwrap_or(num_attention_heads),
            head_dim,
            rms_norm_eps: keys.f64("rms_norm_eps")?.unwrap_or(1e-6) as f32,
            rope_theta: rope_theta(&keys)?,
            max_position_embeddings: keys.usize("max_position_embeddings")?.unwrap_or(match family {
                Family::Llama => 2048,
                _ => 32768,
            }),
            tie_word_embeddings: keys.bool("tie_word_embeddings")?.unwrap_or(false),
            qkv_bias: family == Family::Qwen2,
            qk_norm: family == Family::Qwen3,
            bos_token_id: keys.ids("bos_token_id")?.first().copied(),
            eos_token_ids: keys.ids("eos_token_id")?,
            pad_token_id: keys.ids("pad_token_id")?.first().copied(),
        };
        config.validate()?;
        Ok(config)
    }

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

    /// The `config.json` that `transformers` reads back to the same model, weights in float32.
    pub fn to_json(&self) -> Value {
        let ids = |ids: &[u32]| match ids {
            [] => Value::Null,
            [one] => json!(one),
            many => json!(many),
        };
        // f32 → shortest decimal → f64, so that 1e-5 is written as 1e-5 and not as its binary expansion.
        let eps = self.rms_norm_eps.to_string().parse::<f64>().unwrap_or(f64::from(self.rms_norm_eps));
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| {
            map.insert(key.to_string(), value);
        };
        put("architectures", json!([self.family.architecture()]));
        put("model_type", json!(self.family.model_type()));
        put("vocab_size", json!(self.vocab_size));
        put("hidden_size", json!(self.hidden_size));
        put("intermediate_size", json!(self.intermediate_size));
        put("num_hidden_layers", json!(self.num_hidden_layers));
        put("num_attention_heads", json!(self.num_attention_heads));
        put("num_key_value_heads", json!(self.num_key_value_heads));
        put("head_dim", json!(self.head_dim));
        put("hidden_act", json!("silu"));
        put("rms_norm_eps", json!(eps));
        // Both spellings: older releases read the first, newer ones the second.
        put("rope_theta", json!(self.rope_theta));
        put("rope_parameters", json!({"rope_type": "default", "rope_theta": self.rope_theta}));
        put("max_position_embeddings", json!(self.max_position_embeddings));
        put("tie_word_embeddings", json!(self.tie_word_embeddings));
        match self.family {
            Family::Llama => {
                put("attention_bias", json!(false));
                put("mlp_bias", json!(false));
            }
            Family::Qwen3 => {
                put("attention_bias", json!(false));
                put("use_sliding_window", json!(false));
            }
            Family::Qwen2 => put("use_sliding_window", json!(false)),
        }
        put("attention_dropout", json!(0.0));
        put("initializer_range", json!(0.02));
        put("use_cache", json!(true));
        put("bos_token_id", self.bos_token_id.map_or(Value::Null, |id| json!(id)));
        put("eos_token_id", ids(&self.eos_token_ids));
        put("pad_token_id", self.pad_token_id.map_or(Value::Null, |id| json!(id)));
        put("torch_dtype", json!("float32"));
        Value::Object(map)
    }
}

fn invalid(key: &'static str, found: impl ToString, expected: String) -> ConfigError {
    ConfigError::Invalid { key, found: found.to_string(), expected }
}

fn family_of(keys: &Keys<'_>) -> Result<Family, ConfigError> {
    let supported = "LlamaForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM are supported";
    if let Some(Value::Array(list)) = keys.get("architectures") {
        let name = list.first().and_then(Value::as_str).unwrap_or("");
        return Family::from_architecture(name).ok_or_else(|| ConfigError::Unsupported {
            key: "architectures".into(),
            found: Value::Array(list.clone()).to_string(),
            why: supported.into(),
        });
    }
    match keys.get("model_type") {
        Some(Value::String(name)) => Family::from_model_type(name).ok_or_else(|| ConfigError::Unsupported {
            key: "model_type".into(),
            found: name.clone(),
            why: supported.into(),
        }),
        other => Err(ConfigError::Key {
            key: "architectures".into(),
            expected: "a list with one class name, or `model_type`".into(),
            found: other.map_or("neither".into(), kind_of),
        }),
    }
}

/// Refuses every switch that would change the arithmetic and is not implemented.
fn refuse_unsupported(keys: &Keys<'_>, family: Family) -> Result<(), ConfigError> {
    let refuse = |key: &str, found: &Value, why: &str| {
        Err(ConfigError::Unsupported { key: key.into(), found: found.to_string(), why: why.into() })
    };
    if let Some(v) = keys.get("hidden_act")
        && v.as_str() != Some("silu")
    {
        return refuse("hidden_act", v, "only `silu` is implemented");
    }
    for key in ["attention_bias", "mlp_bias"] {
        if let Some(v) = keys.get(key)
            && v != &Value::Bool(false)
        {
            return refuse(key, v, "only models without these biases are implemented");
        }
    }
    if keys.bool("use_sliding_window")? == Some(true) {
        return refuse("use_sliding_window", &Value::Bool(true), "only full attention is implemented");
    }
    // Qwen files carry a window size that is unused unless the switch above is on.
    if family == Family::Llama
        && let Some(v) = keys.get("sliding_window")
    {
        return refuse("sliding_window", v, "only full attention is implemented");
    }
    if let Some(Value::Array(kinds)) = keys.get("layer_types")
        && let Some(other) = kinds.iter().find(|k| k.as_str() != Some("full_attention"))
    {
        return refuse("layer_types", other, "only `full_attention` is implemented");
    }
    if let Some(v) = keys.get("pretraining_tp")
        && v.as_u64() != Some(1)
    {
        return refuse("pretraining_tp", v, "only 1 is implemented");
    }
    if let Some(v) = keys.get("partial_rotary_factor")
        && v.as_f64() != Some(1.0)
    {
        return refuse("partial_rotary_factor", v, "only 1 is implemented");
    }
    if keys.get("quantization_config").is_some() {
        return refuse("quantization_config", &Value::String("…".into()), "use float weights or a GGUF file");
    }
    if keys.bool("rope_interleaved")? == Some(true) {
        return refuse("rope_interleaved", &Value::Bool(true), "only the half-split rotary embedding is implemented");
    }
    for key in ["rope_scaling", "rope_parameters"] {
        if let Some(value) = keys.get(key) {
            let Value::Object(map) = value else {
                return Err(ConfigError::Key {
                    key: key.into(),
                    expected: "an object or null".into(),
                    found: kind_of(value),
                });
            };
            let kind = map.get("rope_type").or_else(|| map.get("type"));
            let default = match kind {
                None => !map.contains_key("factor"),
                Some(k) => k.as_str() == Some("default"),
            };
            if !default {
                return refuse(key, value, "only the unscaled rotary embedding (rope_type `default`) is implemented");
            }
            if let Some(v) = map.get("partial_rotary_factor")
                && v.as_f64() != Some(1.0)
            {
                return refuse(key, value, "only partial_rotary_factor 1 is implemented");
            }
        }
    }
    Ok(())
}

fn rope_theta(keys: &Keys<'_>) -> Result<f64, ConfigError> {
    if let Some(Value::Object(map)) = keys.get("rope_parameters")
        && let Some(theta) = Keys(map).f64("rope_theta")?
    {
        return Ok(theta);
    }
    Ok(keys.f64("rope_theta")?.unwrap_or(10_000.0))
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        other => other.to_string(),
    }
}

/// Typed access to a JSON object. A `null` counts as absent.
struct Keys<'a>(&'a Map<String, Value>);

impl Keys<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|v| !v.is_null())
    }

    fn wrong(&self, key: &str, expected: &str) -> ConfigError {
        ConfigError::Key {
            key: key.into(),
            expected: expected.into(),
            found: self.get(key).map_or("nothing".into(), kind_of),
        }
    }

    fn usize(&self, key: &str) -> Result<Option<usize>, ConfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(v) => match v.as_u64().and_then(|n| usize::try_from(n).ok()) {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(key, "a non-negative integer")),
            },
        }
    }

    fn required_usize(&self, key: &str) -> Result<usize, ConfigError> {
        self.usize(key)?.ok_or_else(|| self.wrong(key, "a positive integer"))
    }

    fn f64(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(v) => v.as_f64().map(Some).ok_or_else(|| self.wrong(key, "a number")),
        }
    }

    fn bool(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(v) => v.as_bool().map(Some).ok_or_else(|| self.wrong(key, "true or false")),
        }
    }

    /// A token id, a list of them, or nothing. Negative ids (an old way of saying "none") count as nothing.
    fn ids(&self, key: &str) -> Result<Vec<u32>, ConfigError> {
        let one = |v: &Value| -> Result<Option<u32>, ConfigError> {
            if v.as_i64().is_some_and(|n| n < 0) {
                return Ok(None);
            }
            match v.as_u64().and_then(|n| u32::try_from(n).ok()) {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(key, "a token id or a list of token ids")),
            }
        };
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                Ok(list.iter().map(one).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            }
            Some(v) => Ok(one(v)?.into_iter().collect()),
        }
    }
}
