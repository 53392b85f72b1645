//! The order and shapes of a model's parameters, under their Hugging Face names.
//!
//! What is here: the one list that loading, saving and the optimiser's state agree on.
//! What is not here: values.

use crate::config::ModelConfig;

/// One parameter tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    /// Hugging Face name, for example `model.layers.0.self_attn.q_proj.weight`.
    pub name: String,
    /// Row-major shape; linear layers are `[out, in]`.
    pub shape: Vec<usize>,
}

impl ParamSpec {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the tensor has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// All parameters of a model in their fixed order: embedding; per layer input norm, query, key, value (each weight
/// followed by its bias), output, query and key norms, post-attention norm, gate, up, down; final norm; output
/// projection when it is not tied to the embedding.
///
/// # Shapes
/// `hidden` = `hidden_size`, `q` = heads × head_dim, `kv` = key-value heads × head_dim, `ff` = `intermediate_size`.
pub fn param_specs(config: &ModelConfig) -> Vec<ParamSpec> {
    let mut specs = Vec::new();
    let mut push = |name: String, shape: &[usize]| specs.push(ParamSpec { name, shape: shape.to_vec() });
    let (hidden, ff) = (config.hidden_size, config.intermediate_size);
    let (q, kv) = (config.q_dim(), config.kv_dim());

    push("model.embed_tokens.weight".into(), &[config.vocab_size, hidden]);
    for i in 0..config.num_hidden_layers {
        let layer = format!("model.layers.{i}");
        push(format!("{layer}.input_layernorm.weight"), &[hidden]);
        for (name, rows) in [("q_proj", q), ("k_proj", kv), ("v_proj", kv)] {
            push(format!("{layer}.self_attn.{name}.weight"), &[rows, hidden]);
            if config.qkv_bias {
                push(format!("{layer}.self_attn.{name}.bias"), &[rows]);
            }
        }
        push(format!("{layer}.self_attn.o_proj.weight"), &[hidden, q]);
        if config.qk_norm {
            push(format!("{layer}.self_attn.q_norm.weight"), &[config.head_dim]);
            push(format!("{layer}.self_attn.k_norm.weight"), &[config.head_dim]);
        }
        push(format!("{layer}.post_attention_layernorm.weight"), &[hidden]);
        push(format!("{layer}.mlp.gate_proj.weight"), &[ff, hidden]);
        push(format!("{layer}.mlp.up_proj.weight"), &[ff, hidden]);
        push(format!("{layer}.mlp.down_proj.weight"), &[hidden, ff]);
    }
    push("model.norm.weight".into(), &[hidden]);
    if !config.tie_word_embeddings {
        push("lm_head.weight".into(), &[config.vocab_size, hidden]);
    }
    specs
}

/// Where a parameter lies in the flat buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamRange {
    /// Hugging Face name.
    pub name: String,
    /// Half-open range of values.
    pub range: std::ops::Range<usize>,
    /// Row-major shape.
    pub shape: Vec<usize>,
}

/// Lays the parameters one after the other, without gaps. The end of the last range is the number of parameters.
pub fn param_ranges(specs: &[ParamSpec]) -> Vec<ParamRange> {
    let mut start = 0;
    specs
        .iter()
        .map(|spec| {
            let range = start..start + spec.len();
            start = range.end;
            ParamRange { name: spec.name.clone(), range, shape: spec.shape.clone() }
        })
        .collect()
}
