//! New tokens through the model over the key-value cache: the forward pass of generation.
//!
//! What is here: weights packed for decoding, the rows' way through all layers, logits of the rows that are drawn from.
//! What is not here: which tokens are fed when, and drawing (see [`crate::generate`]).

use ragen_kernels::elementwise::{add_assign, add_bias};
use ragen_kernels::embedding::embed;
use ragen_kernels::gemm::PackedWeight;
use ragen_kernels::norm::rms_norm_in_place;
use ragen_kernels::rope;
use ragen_kernels::swiglu::swiglu;

use crate::params::{LayerParams, Layout, heads};
use crate::transformer::{Transformer, sized};

struct PackedLayer {
    q: PackedWeight,
    k: PackedWeight,
    v: PackedWeight,
    o: PackedWeight,
    gate: PackedWeight,
    up: PackedWeight,
    down: PackedWeight,
}

/// All weights of a model in the layout that decoding reads. Made once per update of the weights.
pub struct PackedModel {
    layers: Vec<PackedLayer>,
    head: PackedWeight,
}

impl PackedModel {
    /// Packs the weights.
    pub fn new(model: &Transformer, params: &[f32]) -> Self {
        let c = model.config();
        let (wq, wk) = (c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim);
        let (dim, ff) = (c.hidden_size, c.intermediate_size);
        let pack = |range: &std::ops::Range<usize>, n, k| PackedWeight::pack(&params[range.clone()], n, k);
        let layers = model.layout().layers.iter().map(|p| PackedLayer {
            q: pack(&p.q.weight, wq, dim),
            k: pack(&p.k.weight, wk, dim),
            v: pack(&p.v.weight, wk, dim),
            o: pack(&p.o, dim, wq),
            gate: pack(&p.gate, ff, dim),
            up: pack(&p.up, ff, dim),
            down: pack(&p.down, dim, ff),
        });
        Self { layers: layers.collect(), head: pack(&model.layout().head, c.vocab_size, dim) }
    }
}

/// Tokens to feed, and the rows whose logits are wanted.
#[derive(Default)]
pub(crate) struct Feed {
    /// Token of each row.
    pub tokens: Vec<u32>,
    /// Its position.
    pub positions: Vec<u32>,
    /// Rows whose logits are wanted, in rising order.
    pub last: Vec<usize>,
}

impl Feed {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.last.clear();
    }
}

/// Activations of one forward pass, reused from step to step.
#[derive(Default)]
pub(crate) struct Buffers {
    x: Vec<f32>,
    normed: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    out: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    act: Vec<f32>,
    /// `[feed.last.len(), vocab]` after a forward pass.
    pub logits: Vec<f32>,
}

/// A product with a packed weight: over all threads or on the calling one, to the same bits.
pub(crate) type LinearFn = fn(usize, &[f32], &PackedWeight, &mut [f32], bool);

/// Feeds tokens and leaves the logits `[feed.last.len(), vocab]` in the buffers. `attend` attends the queries of one
/// layer to what is cached and to the new keys and values.
pub(crate) fn forward(
    model: &Transformer,
    params: &[f32],
    packed: &PackedModel,
    linear: LinearFn,
    mut attend: impl FnMut(usize, &[f32], &[f32], &[f32], &mut [f32]),
    feed: &Feed,
    buffers: &mut Buffers,
) {
    let c = model.config();
    let layout: &Layout = model.layout();
    let (rows, dim, eps) = (feed.tokens.len(), c.hidden_size, c.rms_norm_eps);
    let hd = heads(c);
    let (wq, wk) = (hd.query * hd.dim, hd.kv * hd.dim);
    let x = sized(&mut buffers.x, rows * dim);
    embed(dim, &feed.tokens, &params[layout.embed.clone()], x);
    let (q, out) = (sized(&mut buffers.q, rows * wq), sized(&mut buffers.out, rows * wq));
    let (k, v) = (sized(&mut buffers.k, rows * wk), sized(&mut buffers.v, rows * wk));
    for (l, (p, w)) in layout.layers.iter().zip(&packed.layers).enumerate() {
        let normed = sized(&mut buffers.normed, rows * dim);
        normed.copy_from_slice(x);
        rms_norm_in_place(rows, dim, normed, &params[p.input_norm.clone()], eps);
        for (projection, weight, y, width) in
            [(&p.q, &w.q, &mut *q, wq), (&p.k, &w.k, &mut *k, wk), (&p.v, &w.v, &mut *v, wk)]
        {
            linear(rows, normed, weight, y, false);
            if let Some(bias) = &projection.bias {
                add_bias(width, y, &params[bias.clone()]);
            }
        }
        for (norm, y, n) in [(&p.q_norm, &mut *q, hd.query), (&p.k_norm, &mut *k, hd.kv)] {
            if let Some(norm) = norm {
                rms_norm_in_place(rows * n, hd.dim, y, &params[norm.clone()], eps);
            }
            rope::apply(rows, n, hd.dim, y, &feed.positions, model.rope());
        }
        attend(l, q, k, v, out);
        let mut left = rows;
        if l + 1 == layout.layers.len() && feed.last.len() < rows {
            // From here on the last layer's rows are read only where a token is drawn.
            pick_rows(dim, x, &feed.last);
            pick_rows(wq, out, &feed.last);
            left = feed.last.len();
        }
        let (x, normed) = (&mut x[..left * dim], &mut normed[..left * dim]);
        linear(left, &out[..left * wq], &w.o, normed, false);
        add_assign(x, normed);
        feed_forward(
            model,
            params,
            p,
            w,
            linear,
            left,
            x,
            normed,
            (&mut buffers.gate, &mut buffers.up, &mut buffers.act),
        );
    }
    let n = feed.last.len();
    let x = &mut x[..n * dim];
    rms_norm_in_place(n, dim, x, &params[layout.norm.clone()], eps);
    linear(n, x, &packed.head, sized(&mut buffers.logits, n * c.vocab_size), false);
}

/// `x += down(swiglu(gate(norm(x)), up(norm(x))))`.
fn feed_forward(
    model: &Transformer,
    params: &[f32],
    p: &LayerParams,
    w: &PackedLayer,
    linear: LinearFn,
    rows: usize,
    x: &mut [f32],
    normed: &mut [f32],
    (gate, up, act): (&mut Vec<f32>, &mut Vec<f32>, &mut Vec<f32>),
) {
    let c = model.config();
    let (dim, ff) = (c.hidden_size, c.intermediate_size);
    let (gate, up, act) = (sized(gate, rows * ff), sized(up, rows * ff), sized(act, rows * ff));
    normed.copy_from_slice(x);
    rms_norm_in_place(rows, dim, normed, &params[p.post_norm.clone()], c.rms_norm_eps);
    linear(rows, normed, &w.gate, gate, false);
    linear(rows, normed, &w.up, up, false);
    swiglu(rows * ff, gate, up, act);
    linear(rows, act, &w.down, normed, false);
    add_assign(x, normed);
}

/// Moves the rows `picked`, which rise, to the front.
fn pick_rows(width: usize, x: &mut [f32], picked: &[usize]) {
    for (to, &from) in picked.iter().enumerate() {
        x.copy_within(from * width..(from + 1) * width, to * width);
    }
}
