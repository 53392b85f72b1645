//! The decoder-only transformer: one forward and one backward for the Llama, Qwen2 and Qwen3 families.
//!
//! What is here: hidden states of a packed [`Batch`], log-probabilities, entropies and values of its scored tokens, and
//! the gradients of a loss on them.
//! What is not here: generation (see [`crate::generate`]), optimisation, files.

use ragen_kernels::attention::attention;
use ragen_kernels::elementwise::{add_assign, add_bias};
use ragen_kernels::embedding::embed;
use ragen_kernels::gemm::linear;
use ragen_kernels::norm::rms_norm;
use ragen_kernels::rope::{self, RopeTable};
use ragen_kernels::swiglu::swiglu;
use ragen_kernels::vocab;

use crate::batch::Batch;
use crate::config::ModelConfig;
use crate::params::{Layout, Projection, heads};

/// What the forward computed for every scored token, in the order of [`Batch::targets`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// log p(token | context) at the batch's temperature.
    pub log_prob: Vec<f32>,
    /// Entropy of that distribution in nats.
    pub entropy: Vec<f32>,
    /// Value estimates; empty without a value head.
    pub value: Vec<f32>,
}

/// Derivatives of a loss with respect to [`Scores`]; an empty vector stands for zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreGrads {
    /// ∂loss/∂log_prob.
    pub log_prob: Vec<f32>,
    /// ∂loss/∂entropy.
    pub entropy: Vec<f32>,
    /// ∂loss/∂value.
    pub value: Vec<f32>,
}

/// Whether the backward pass keeps a layer's activations or computes them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All activations of all layers.
    Everything,
    /// Each layer's input; the rest is recomputed layer by layer.
    LayerInputs,
}

/// A model's shape, without its weights.
pub struct Transformer {
    pub(crate) config: ModelConfig,
    pub(crate) layout: Layout,
    pub(crate) rope: RopeTable,
}

/// Activations of one layer that its backward reads.
#[derive(Default)]
pub(crate) struct LayerActs {
    /// Projections before the per-head norm; used with `qk_norm` only.
    pub(crate) q_raw: Vec<f32>,
    pub(crate) k_raw: Vec<f32>,
    pub(crate) q_rstd: Vec<f32>,
    pub(crate) k_rstd: Vec<f32>,
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
    pub(crate) out: Vec<f32>,
    pub(crate) lse: Vec<f32>,
    pub(crate) mid: Vec<f32>,
    pub(crate) gate: Vec<f32>,
    pub(crate) up: Vec<f32>,
    pub(crate) rstd: Vec<f32>,
    pub(crate) post_rstd: Vec<f32>,
}

/// Buffers of a training pass, reused from batch to batch.
#[derive(Default)]
pub struct Workspace {
    /// Input of each layer and, last, the final hidden states of the rows that predict a scored token.
    pub(crate) states: Vec<Vec<f32>>,
    pub(crate) acts: Vec<LayerActs>,
    pub(crate) normed: Vec<f32>,
    pub(crate) act: Vec<f32>,
    pub(crate) d_act: Vec<f32>,
    pub(crate) d_gate: Vec<f32>,
    pub(crate) d_up: Vec<f32>,
    pub(crate) d_normed: Vec<f32>,
    pub(crate) d_out: Vec<f32>,
    pub(crate) d_q: Vec<f32>,
    pub(crate) d_k: Vec<f32>,
    pub(crate) d_v: Vec<f32>,
    /// Attention's output and the residual stream of the last layer's rows that are read, and a gradient of the same.
    pub(crate) out_rows: Vec<f32>,
    pub(crate) x_rows: Vec<f32>,
    pub(crate) d_rows: Vec<f32>,
    /// Rows that predict scored tokens, before and after the final norm.
    pub(crate) picked: Vec<f32>,
    pub(crate) picked_normed: Vec<f32>,
    pub(crate) picked_rstd: Vec<f32>,
    pub(crate) lse: Vec<f32>,
}

pub(crate) fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

impl Transformer {
    /// The model of `config`, with a scalar value head per token when asked for.
    pub fn new(config: ModelConfig, value_head: bool) -> Self {
        let rope = RopeTable::new(config.head_dim, config.rope_theta, config.max_position_embeddings.min(1 << 16));
        Self { layout: Layout::new(&config, value_head), config, rope }
    }

    /// Its configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Where its parameters lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn rope(&self) -> &RopeTable {
        &self.rope
    }

    /// Longest sequence in tokens.
    pub fn max_context(&self) -> usize {
        self.config.max_position_embeddings.min(self.rope.positions())
    }

    /// Bytes of activations per row that a training pass holds, by formula.
    pub fn activation_bytes_per_row(&self, keep: Keep) -> usize {
        let c = &self.config;
        let (h, kv) = (c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim);
        let raw = if c.qk_norm { h + kv + c.num_attention_heads + c.num_key_value_heads } else { 0 };
        let layer = 2 * h + 2 * kv + c.num_attention_heads + c.hidden_size + 2 * c.intermediate_size + 2 + raw;
        let layers = if keep == Keep::Everything { c.num_hidden_layers } else { 1 };
        // Gradients of one layer's activations, and the rows that are read behind the last attention.
        let shared = 11 * c.hidden_size + 4 * c.intermediate_size + 3 * h + 2 * kv;
        4 * (layers * layer + (c.num_hidden_layers + 1) * c.hidden_size + shared)
    }

    /// Scores the batch's tokens at `inv_temperature` = 1/T, leaving in `work` what [`Transformer::backward`] needs.
    ///
    /// # Panics
    /// When `params` is not as long as the layout, or a token or position is out of range.
    pub fn forward(
        &self,
        params: &[f32],
        batch: &Batch,
        inv_temperature: f32,
        keep: Keep,
        work: &mut Workspace,
    ) -> Scores {
        assert_eq!(params.len(), self.layout.len(), "one value per parameter");
        let (rows, dim) = (batch.len(), self.config.hidden_size);
        let layers = self.config.num_hidden_layers;
        work.states.resize_with(layers + 1, Vec::new);
        work.acts.resize_with(if keep == Keep::Everything { layers } else { 1 }, LayerActs::default);
        embed(dim, &batch.tokens, &params[self.layout.embed.clone()], sized(&mut work.states[0], rows * dim));
        let (mut states, mut acts) = (std::mem::take(&mut work.states), std::mem::take(&mut work.acts));
        for l in 0..layers {
            let (before, after) = states.split_at_mut(l + 1);
            let acts = &mut acts[if keep == Keep::Everything { l } else { 0 }];
            self.layer_forward(params, l, batch, &before[l][..rows * dim], &mut after[0], acts, work);
        }
        (work.states, work.acts) = (states, acts);
        self.head_forward(params, batch, inv_temperature, work)
    }

    fn head_forward(&self, params: &[f32], batch: &Batch, inv_temperature: f32, work: &mut Workspace) -> Scores {
        let (dim, n) = (self.config.hidden_size, batch.targets.len());
        let last = &work.states[self.config.num_hidden_layers];
        let picked = sized(&mut work.picked, n * dim);
        embed(dim, &batch.outputs, &last[..batch.output_rows.len() * dim], picked);
        let normed = sized(&mut work.picked_normed, n * dim);
        let norm = &params[self.layout.norm.clone()];
        rms_norm(n, dim, picked, norm, self.config.rms_norm_eps, normed, sized(&mut work.picked_rstd, n));
        let mut scores = Scores::default();
        if let Some(value) = &self.layout.value {
            // A critic has a value head instead of a vocabulary.
            scores.value = vec![0.0; n];
            linear(n, 1, dim, normed, &params[value.clone()], &mut scores.value, false);
        } else {
            scores.log_prob = vec![0.0; n];
            scores.entropy = vec![0.0; n];
            let head = &params[self.layout.head.clone()];
            let vocab = self.config.vocab_size;
            let lse = sized(&mut work.lse, n);
            let (log_prob, entropy) = (&mut scores.log_prob, &mut scores.entropy);
            vocab::forward(n, dim, vocab, normed, head, &batch.targets, inv_temperature, log_prob, entropy, lse);
        }
        scores
    }

    pub(crate) fn layer_forward(
        &self,
        params: &[f32],
        l: usize,
        batch: &Batch,
        x: &[f32],
        next: &mut Vec<f32>,
        acts: &mut LayerActs,
        work: &mut Workspace,
    ) {
        let c = &self.config;
        let p = &self.layout.layers[l];
        let (rows, dim, eps) = (batch.len(), c.hidden_size, c.rms_norm_eps);
        let normed = sized(&mut work.normed, rows * dim);
        rms_norm(rows, dim, x, &params[p.input_norm.clone()], eps, normed, sized(&mut acts.rstd, rows));
        let (nq, nk) = (c.num_attention_heads, c.num_key_value_heads);
        self.project(params, &p.q, nq, normed, rows, sized(&mut acts.q, rows * nq * c.head_dim));
        self.project(params, &p.k, nk, normed, rows, sized(&mut acts.k, rows * nk * c.head_dim));
        self.project(params, &p.v, nk, normed, rows, sized(&mut acts.v, rows * nk * c.head_dim));
        for (norm, heads, x, raw, rstd) in [
            (&p.q_norm, nq, &mut acts.q, &mut acts.q_raw, &mut acts.q_rstd),
            (&p.k_norm, nk, &mut acts.k, &mut acts.k_raw, &mut acts.k_rstd),
        ] {
            let x = sized(x, rows * heads * c.head_dim);
            if let Some(norm) = norm {
                sized(raw, x.len()).copy_from_slice(x);
                let rstd = sized(rstd, rows * heads);
                rms_norm(rows * heads, c.head_dim, &raw[..x.len()], &params[norm.clone()], eps, x, rstd);
            }
            rope::apply(rows, heads, c.head_dim, x, &batch.positions, &self.rope);
        }
        let q = &acts.q[..rows * nq * c.head_dim];
        let (k, v) = (&acts.k[..rows * nk * c.head_dim], &acts.v[..rows * nk * c.head_dim]);
        let out = sized(&mut acts.out, q.len());
        attention(heads(c), &batch.segments, q, k, v, out, sized(&mut acts.lse, rows * nq));
        let (rows, out, x) = if self.reads_all_rows(l, batch) {
            (rows, &*out, x)
        } else {
            let picked = &batch.output_rows;
            let out_rows = sized(&mut work.out_rows, picked.len() * nq * c.head_dim);
            let x_rows = sized(&mut work.x_rows, picked.len() * dim);
            embed(nq * c.head_dim, picked, out, out_rows);
            embed(dim, picked, x, x_rows);
            (picked.len(), &*out_rows, &*x_rows)
        };
        let mid = sized(&mut acts.mid, rows * dim);
        let normed = &mut normed[..rows * dim];
        // The projection is summed on its own: started from a residual of large values, every one of its small terms
        // would be rounded at their size.
        linear(rows, dim, nq * c.head_dim, out, &params[p.o.clone()], mid, false);
        add_assign(mid, x);
        rms_norm(rows, dim, mid, &params[p.post_norm.clone()], eps, normed, sized(&mut acts.post_rstd, rows));
        let ff = c.intermediate_size;
        let (gate, up) = (sized(&mut acts.gate, rows * ff), sized(&mut acts.up, rows * ff));
        linear(rows, ff, dim, normed, &params[p.gate.clone()], gate, false);
        linear(rows, ff, dim, normed, &params[p.up.clone()], up, false);
        let act = sized(&mut work.act, rows * ff);
        swiglu(rows * ff, gate, up, act);
        let next = sized(next, rows * dim);
        linear(rows, dim, ff, act, &params[p.down.clone()], next, false);
        add_assign(next, mid);
    }

    /// Whether everything of layer `l` is read. Behind the last layer's attention only the rows are that predict a
    /// scored token: projection and feed-forward of the others would be computed for nothing.
    pub(crate) fn reads_all_rows(&self, l: usize, batch: &Batch) -> bool {
        l + 1 < self.config.num_hidden_layers || batch.output_rows.len() == batch.len()
    }

    fn project(&self, params: &[f32], p: &Projection, heads: usize, x: &[f32], rows: usize, y: &mut [f32]) {
        let n = heads * self.config.head_dim;
        linear(rows, n, self.config.hidden_size, x, &params[p.weight.clone()], y, false);
        if let Some(bias) = &p.bias {
            add_bias(n, y, &params[bias.clone()]);
        }
    }
}
