//! The decoder-only transformer: one forward and one backward for the Llama, Qwen2 and Qwen3 families.
//!
//! What is here: hidden states of a packed [`Batch`], log-probabilities, entropies and values of its scored tokens, and
//! the gradients of a loss on them.
//! What is not here: generation (see [`crate::generate`]), optimisation, files.

use ragen_kernels::attention::{attention, attention_backward};
use ragen_kernels::elementwise::{add_assign, add_bias, add_bias_backward};
use ragen_kernels::embedding::{embed, embed_backward};
use ragen_kernels::gemm::{linear, linear_grad_input, linear_grad_weight};
use ragen_kernels::norm::{rms_norm, rms_norm_backward};
use ragen_kernels::rope::{self, RopeTable};
use ragen_kernels::swiglu::{swiglu, swiglu_backward};
use ragen_kernels::vocab;

use crate::batch::Batch;
use crate::config::ModelConfig;
use crate::params::{LayerParams, Layout, Projection, heads};

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
    config: ModelConfig,
    layout: Layout,
    rope: RopeTable,
}

/// Activations of one layer that its backward reads.
#[derive(Default)]
struct LayerActs {
    /// Projections before the per-head norm; used with `qk_norm` only.
    q_raw: Vec<f32>,
    k_raw: Vec<f32>,
    q_rstd: Vec<f32>,
    k_rstd: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    out: Vec<f32>,
    lse: Vec<f32>,
    mid: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    rstd: Vec<f32>,
    post_rstd: Vec<f32>,
}

/// Buffers of a training pass, reused from batch to batch.
#[derive(Default)]
pub struct Workspace {
    /// Input of each layer and, last, the final hidden states.
    states: Vec<Vec<f32>>,
    acts: Vec<LayerActs>,
    normed: Vec<f32>,
    act: Vec<f32>,
    d_act: Vec<f32>,
    d_gate: Vec<f32>,
    d_up: Vec<f32>,
    d_normed: Vec<f32>,
    d_out: Vec<f32>,
    d_q: Vec<f32>,
    d_k: Vec<f32>,
    d_v: Vec<f32>,
    /// Rows that predict scored tokens, before and after the final norm.
    picked: Vec<f32>,
    picked_normed: Vec<f32>,
    picked_rstd: Vec<f32>,
    lse: Vec<f32>,
}

fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
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
        let shared = 2 * c.hidden_size + 4 * c.intermediate_size + 2 * h + 2 * kv + 3 * c.hidden_size;
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
        for l in 0..layers {
            let (before, after) = work.states.split_at_mut(l + 1);
            let acts = &mut work.acts[if keep == Keep::Everything { l } else { 0 }];
            let next = sized(&mut after[0], rows * dim);
            self.layer_forward(params, l, batch, &before[l][..rows * dim], next, acts, &mut work.normed, &mut work.act);
        }
        self.head_forward(params, batch, inv_temperature, work)
    }

    fn head_forward(&self, params: &[f32], batch: &Batch, inv_temperature: f32, work: &mut Workspace) -> Scores {
        let (dim, n) = (self.config.hidden_size, batch.targets.len());
        let last = &work.states[self.config.num_hidden_layers];
        let picked = sized(&mut work.picked, n * dim);
        for (to, &row) in picked.chunks_exact_mut(dim).zip(&batch.output_rows) {
            to.copy_from_slice(&last[row as usize * dim..][..dim]);
        }
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

    /// Adds to `grads` the gradients of a loss whose derivatives with respect to `scores` are `d`.
    ///
    /// `work` and `keep` are those of the [`Transformer::forward`] of the same batch with the same weights.
    pub fn backward(
        &self,
        params: &[f32],
        batch: &Batch,
        inv_temperature: f32,
        keep: Keep,
        scores: &Scores,
        d: &ScoreGrads,
        work: &mut Workspace,
        grads: &mut [f32],
    ) {
        assert_eq!(grads.len(), self.layout.len(), "one gradient per parameter");
        let (rows, dim, layers) = (batch.len(), self.config.hidden_size, self.config.num_hidden_layers);
        let mut dx = vec![0.0; rows * dim];
        self.head_backward(params, batch, inv_temperature, scores, d, work, grads, &mut dx);
        let mut states = std::mem::take(&mut work.states);
        let mut acts = std::mem::take(&mut work.acts);
        for l in (0..layers).rev() {
            let (before, after) = states.split_at_mut(l + 1);
            let x = &before[l][..rows * dim];
            let acts = &mut acts[if keep == Keep::Everything { l } else { 0 }];
            if keep == Keep::LayerInputs && l + 1 < layers {
                let next = sized(&mut after[0], rows * dim);
                self.layer_forward(params, l, batch, x, next, acts, &mut work.normed, &mut work.act);
            }
            self.layer_backward(params, l, batch, x, acts, &mut dx, grads, work);
        }
        work.states = states;
        work.acts = acts;
        if let Some(pad) = self.config.pad_token_id {
            // As in transformers, the padding token's embedding learns nothing from being read: for models that pad with
            // their end-of-turn token this shows in real conversations.
            for (row, _) in batch.tokens.iter().enumerate().filter(|(_, token)| **token == pad) {
                dx[row * dim..(row + 1) * dim].fill(0.0);
            }
        }
        embed_backward(dim, &batch.tokens, &dx, &mut grads[self.layout.embed.clone()]);
    }

    fn head_backward(
        &self,
        params: &[f32],
        batch: &Batch,
        inv_temperature: f32,
        scores: &Scores,
        d: &ScoreGrads,
        work: &mut Workspace,
        grads: &mut [f32],
        dx: &mut [f32],
    ) {
        let (dim, n) = (self.config.hidden_size, batch.targets.len());
        let zeros = vec![0.0; n];
        let or_zeros = |v: &'_ Vec<f32>| if v.is_empty() { zeros.clone() } else { v.clone() };
        let normed = &work.picked_normed[..n * dim];
        let mut d_normed = vec![0.0; n * dim];
        if let Some(value) = &self.layout.value {
            let d_value = or_zeros(&d.value);
            linear_grad_input(n, 1, dim, &d_value, &params[value.clone()], &mut d_normed, true);
            linear_grad_weight(n, 1, dim, &d_value, normed, &mut grads[value.clone()]);
        } else {
            let (dl, de) = (or_zeros(&d.log_prob), or_zeros(&d.entropy));
            vocab::backward(
                n,
                dim,
                self.config.vocab_size,
                normed,
                &params[self.layout.head.clone()],
                &batch.targets,
                inv_temperature,
                &scores.entropy,
                &work.lse[..n],
                &dl,
                &de,
                &mut d_normed,
                &mut grads[self.layout.head.clone()],
            );
        }
        let mut d_picked = vec![0.0; n * dim];
        let (norm, rstd) = (self.layout.norm.clone(), &work.picked_rstd[..n]);
        let picked = &work.picked[..n * dim];
        rms_norm_backward(n, dim, picked, &params[norm.clone()], rstd, &d_normed, &mut d_picked, &mut grads[norm]);
        for (from, &row) in d_picked.chunks_exact(dim).zip(&batch.output_rows) {
            for (to, from) in dx[row as usize * dim..][..dim].iter_mut().zip(from) {
                *to += from;
            }
        }
    }

    fn layer_forward(
        &self,
        params: &[f32],
        l: usize,
        batch: &Batch,
        x: &[f32],
        next: &mut [f32],
        acts: &mut LayerActs,
        normed: &mut Vec<f32>,
        act: &mut Vec<f32>,
    ) {
        let c = &self.config;
        let p = &self.layout.layers[l];
        let (rows, dim, eps) = (batch.len(), c.hidden_size, c.rms_norm_eps);
        let normed = sized(normed, rows * dim);
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
        let mid = sized(&mut acts.mid, rows * dim);
        // The projection is summed on its own: started from a residual of large values, every one of its small terms
        // would be rounded at their size.
        linear(rows, dim, nq * c.head_dim, out, &params[p.o.clone()], mid, false);
        add_assign(mid, x);
        rms_norm(rows, dim, mid, &params[p.post_norm.clone()], eps, normed, sized(&mut acts.post_rstd, rows));
        let ff = c.intermediate_size;
        let (gate, up) = (sized(&mut acts.gate, rows * ff), sized(&mut acts.up, rows * ff));
        linear(rows, ff, dim, normed, &params[p.gate.clone()], gate, false);
        linear(rows, ff, dim, normed, &params[p.up.clone()], up, false);
        let act = sized(act, rows * ff);
        swiglu(rows * ff, gate, up, act);
        linear(rows, dim, ff, act, &params[p.down.clone()], next, false);
        add_assign(next, mid);
    }

    fn project(&self, params: &[f32], p: &Projection, heads: usize, x: &[f32], rows: usize, y: &mut [f32]) {
        let n = heads * self.config.head_dim;
        linear(rows, n, self.config.hidden_size, x, &params[p.weight.clone()], y, false);
        if let Some(bias) = &p.bias {
            add_bias(n, y, &params[bias.clone()]);
        }
    }

    /// `dx` comes in as the gradient of the layer's output and goes out as that of its input.
    fn layer_backward(
        &self,
        params: &[f32],
        l: usize,
        batch: &Batch,
        x: &[f32],
        acts: &mut LayerActs,
        dx: &mut [f32],
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let p = &self.layout.layers[l];
        self.feed_forward_backward(params, p, batch.len(), acts, dx, grads, work);
        self.attention_backward(params, p, batch, x, acts, dx, grads, work);
    }

    fn feed_forward_backward(
        &self,
        params: &[f32],
        p: &LayerParams,
        rows: usize,
        acts: &LayerActs,
        dx: &mut [f32],
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let (dim, ff) = (self.config.hidden_size, self.config.intermediate_size);
        let (gate, up) = (&acts.gate[..rows * ff], &acts.up[..rows * ff]);
        let act = sized(&mut work.act, rows * ff);
        swiglu(rows * ff, gate, up, act);
        linear_grad_weight(rows, dim, ff, dx, act, &mut grads[p.down.clone()]);
        let d_act = sized(&mut work.d_act, rows * ff);
        linear_grad_input(rows, dim, ff, dx, &params[p.down.clone()], d_act, false);
        let (d_gate, d_up) = (sized(&mut work.d_gate, rows * ff), sized(&mut work.d_up, rows * ff));
        swiglu_backward(rows * ff, gate, up, d_act, d_gate, d_up);
        let mid = &acts.mid[..rows * dim];
        let (normed, d_normed) = (sized(&mut work.normed, rows * dim), sized(&mut work.d_normed, rows * dim));
        let norm = &params[p.post_norm.clone()];
        // The normalised input is cheaper to compute again than to keep.
        rms_norm(rows, dim, mid, norm, self.config.rms_norm_eps, normed, sized(&mut work.picked_rstd, rows));
        linear_grad_weight(rows, ff, dim, d_gate, normed, &mut grads[p.gate.clone()]);
        linear_grad_weight(rows, ff, dim, d_up, normed, &mut grads[p.up.clone()]);
        linear_grad_input(rows, ff, dim, d_gate, &params[p.gate.clone()], d_normed, false);
        linear_grad_input(rows, ff, dim, d_up, &params[p.up.clone()], d_normed, true);
        let rstd = &acts.post_rstd[..rows];
        rms_norm_backward(rows, dim, mid, norm, rstd, d_normed, dx, &mut grads[p.post_norm.clone()]);
    }

    fn attention_backward(
        &self,
        params: &[f32],
        p: &LayerParams,
        batch: &Batch,
        x: &[f32],
        acts: &LayerActs,
        dx: &mut [f32],
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let c = &self.config;
        let (rows, dim, eps) = (batch.len(), c.hidden_size, c.rms_norm_eps);
        let (wq, wk) = (c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim);
        let out = &acts.out[..rows * wq];
        linear_grad_weight(rows, dim, wq, dx, out, &mut grads[p.o.clone()]);
        let d_out = sized(&mut work.d_out, rows * wq);
        linear_grad_input(rows, dim, wq, dx, &params[p.o.clone()], d_out, false);
        let d_q = sized(&mut work.d_q, rows * wq);
        let (d_k, d_v) = (sized(&mut work.d_k, rows * wk), sized(&mut work.d_v, rows * wk));
        let (q, k, v) = (&acts.q[..rows * wq], &acts.k[..rows * wk], &acts.v[..rows * wk]);
        let lse = &acts.lse[..rows * c.num_attention_heads];
        attention_backward(heads(c), &batch.segments, q, k, v, out, lse, d_out, d_q, d_k, d_v);
        for (norm, heads, d, raw, rstd) in [
            (&p.q_norm, c.num_attention_heads, &mut *d_q, &acts.q_raw, &acts.q_rstd),
            (&p.k_norm, c.num_key_value_heads, &mut *d_k, &acts.k_raw, &acts.k_rstd),
        ] {
            rope::apply_backward(rows, heads, c.head_dim, d, &batch.positions, &self.rope);
            if let Some(norm) = norm {
                let d_normed = d.to_vec();
                d.fill(0.0);
                let (raw, rstd) = (&raw[..d.len()], &rstd[..rows * heads]);
                let weight = &params[norm.clone()];
                rms_norm_backward(rows * heads, c.head_dim, raw, weight, rstd, &d_normed, d, &mut grads[norm.clone()]);
            }
        }
        let (normed, d_normed) = (sized(&mut work.normed, rows * dim), sized(&mut work.d_normed, rows * dim));
        let norm = &params[p.input_norm.clone()];
        rms_norm(rows, dim, x, norm, eps, normed, sized(&mut work.picked_rstd, rows));
        let projections: [(&Projection, &[f32], usize); 3] = [(&p.q, d_q, wq), (&p.k, d_k, wk), (&p.v, d_v, wk)];
        for (i, (projection, d, width)) in projections.into_iter().enumerate() {
            linear_grad_weight(rows, width, dim, d, normed, &mut grads[projection.weight.clone()]);
            linear_grad_input(rows, width, dim, d, &params[projection.weight.clone()], d_normed, i > 0);
            if let Some(bias) = &projection.bias {
                add_bias_backward(width, d, &mut grads[bias.clone()]);
            }
        }
        let rstd = &acts.rstd[..rows];
        rms_norm_backward(rows, dim, x, norm, rstd, d_normed, dx, &mut grads[p.input_norm.clone()]);
    }
}
