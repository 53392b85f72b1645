//! Where each parameter lies in the flat buffer.
//!
//! All parameters live in one `Vec<f32>`, so that the optimiser, the gradient norm, hashing and checkpoints are loops
//! over one slice. Gradients and moments use the same layout.

use std::ops::Range;

use ragen_kernels::attention::Heads;

use crate::config::ModelConfig;
use crate::weights::layout::param_specs;

/// Name of the value head's weight `[1, hidden]`, as token-classification heads call it.
pub const VALUE_HEAD: &str = "score.weight";

/// One named parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Hugging Face name.
    pub name: String,
    /// Shape, row-major.
    pub shape: Vec<usize>,
    /// Place in the flat buffer.
    pub range: Range<usize>,
}

/// A projection of an attention layer with an optional bias.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    pub weight: Range<usize>,
    pub bias: Option<Range<usize>>,
}

/// The parameters of one decoder layer.
#[derive(Clone, Debug)]
pub(crate) struct LayerParams {
    pub input_norm: Range<usize>,
    pub q: Projection,
    pub k: Projection,
    pub v: Projection,
    pub o: Range<usize>,
    pub q_norm: Option<Range<usize>>,
    pub k_norm: Option<Range<usize>>,
    pub post_norm: Range<usize>,
    pub gate: Range<usize>,
    pub up: Range<usize>,
    pub down: Range<usize>,
}

/// The layout of a whole model.
#[derive(Clone, Debug)]
pub struct Layout {
    parameters: Vec<Parameter>,
    len: usize,
    pub(crate) embed: Range<usize>,
    pub(crate) layers: Vec<LayerParams>,
    pub(crate) norm: Range<usize>,
    /// The output projection; the embedding itself when tied.
    pub(crate) head: Range<usize>,
    pub(crate) value: Option<Range<usize>>,
}

impl Layout {
    /// The layout of `config`'s parameters in the order of [`param_specs`], and of a value head when asked for.
    pub fn new(config: &ModelConfig, value_head: bool) -> Self {
        let mut parameters = Vec::new();
        let mut at = 0;
        let mut push = |name: String, shape: Vec<usize>| {
            let len: usize = shape.iter().product();
            parameters.push(Parameter { name, shape, range: at..at + len });
            at += len;
        };
        for spec in param_specs(config) {
            push(spec.name, spec.shape);
        }
        if value_head {
            push(VALUE_HEAD.to_owned(), vec![1, config.hidden_size]);
        }
        let len = at;
        let find = |name: &str| parameters.iter().find(|p| p.name == name).map(|p| p.range.clone());
        let need = |name: String| find(&name).unwrap_or_else(|| panic!("param_specs lacks {name}"));
        let layers = (0..config.num_hidden_layers)
            .map(|l| {
                let name = |part: &str| format!("model.layers.{l}.{part}");
                let projection = |part: &str| Projection {
                    weight: need(name(&format!("self_attn.{part}_proj.weight"))),
                    bias: find(&name(&format!("self_attn.{part}_proj.bias"))),
                };
                LayerParams {
                    input_norm: need(name("input_layernorm.weight")),
                    q: projection("q"),
                    k: projection("k"),
                    v: projection("v"),
                    o: need(name("self_attn.o_proj.weight")),
                    q_norm: find(&name("self_attn.q_norm.weight")),
                    k_norm: find(&name("self_attn.k_norm.weight")),
                    post_norm: need(name("post_attention_layernorm.weight")),
                    gate: need(name("mlp.gate_proj.weight")),
                    up: need(name("mlp.up_proj.weight")),
                    down: need(name("mlp.down_proj.weight")),
                }
            })
            .collect();
        let embed = need("model.embed_tokens.weight".to_owned());
        let head = find("lm_head.weight").unwrap_or_else(|| embed.clone());
        let (norm, value) = (need("model.norm.weight".to_owned()), find(VALUE_HEAD));
        Self { len, embed, layers, norm, head, value, parameters }
    }

    /// Every parameter, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Number of parameters in all.
    pub fn len(&self) -> usize {
        self.len
    }

    /// There are no parameters.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The attention heads of a configuration.
pub(crate) fn heads(config: &ModelConfig) -> Heads {
    Heads { query: config.num_attention_heads, kv: config.num_key_value_heads, dim: config.head_dim }
}
