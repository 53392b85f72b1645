//! Reading and writing `config.json`.
//!
//! What is here: the keys of the supported families, defaults as in the reference library, and the refusal of every
//! switch that would change the arithmetic and is not implemented.
//! What is not here: the rules that sizes obey (see [`ModelConfig::validate`]).

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{ConfigError, Family, ModelConfig};

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
