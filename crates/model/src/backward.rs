//! The transformer's backward pass.
//!
//! What is here: from the derivatives with respect to scores to the gradients of all parameters, layer by layer from the
//! last. What is not here: the forward pass, whose activations this one reads (see [`crate::transformer`]).

use ragen_kernels::attention::attention_backward;
use ragen_kernels::elementwise::add_bias_backward;
use ragen_kernels::embedding::{embed, embed_backward};
use ragen_kernels::gemm::{linear_grad_input, linear_grad_weight};
use ragen_kernels::norm::{rms_norm, rms_norm_backward};
use ragen_kernels::rope;
use ragen_kernels::swiglu::{swiglu, swiglu_backward};
use ragen_kernels::vocab;

use crate::batch::Batch;
use crate::params::{LayerParams, Projection, heads};
use crate::transformer::{Keep, LayerActs, ScoreGrads, Scores, Transformer, Workspace, sized};

impl Transformer {
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
        let mut dx = vec![0.0; batch.output_rows.len() * dim];
        self.head_backward(params, batch, inv_temperature, scores, d, work, grads, &mut dx);
        let mut states = std::mem::take(&mut work.states);
        let mut acts = std::mem::take(&mut work.acts);
        for l in (0..layers).rev() {
            let (before, after) = states.split_at_mut(l + 1);
            let x = &before[l][..rows * dim];
            let acts = &mut acts[if keep == Keep::Everything { l } else { 0 }];
            if keep == Keep::LayerInputs && l + 1 < layers {
                self.layer_forward(params, l, batch, x, &mut after[0], acts, work);
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
        embed_backward(dim, &batch.outputs, &d_picked, dx);
    }

    /// `dx` comes in as the gradient of the layer's output, of the rows that are read, and goes out as that of all rows
    /// of its input.
    fn layer_backward(
        &self,
        params: &[f32],
        l: usize,
        batch: &Batch,
        x: &[f32],
        acts: &mut LayerActs,
        dx: &mut Vec<f32>,
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let p = &self.layout.layers[l];
        let picked = if self.reads_all_rows(l, batch) { None } else { Some(&batch.output_rows[..]) };
        self.feed_forward_backward(params, p, batch.len(), picked, acts, dx, grads, work);
        self.attention_backward(params, p, batch, picked, x, acts, dx, grads, work);
    }

    fn feed_forward_backward(
        &self,
        params: &[f32],
        p: &LayerParams,
        all: usize,
        picked: Option<&[u32]>,
        acts: &LayerActs,
        dx: &mut Vec<f32>,
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let (dim, ff) = (self.config.hidden_size, self.config.intermediate_size);
        let rows = picked.map_or(all, <[u32]>::len);
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
        let (rstd, d_norm) = (&acts.post_rstd[..rows], &mut grads[p.post_norm.clone()]);
        match picked {
            None => rms_norm_backward(rows, dim, mid, norm, rstd, d_normed, dx, d_norm),
            Some(picked) => {
                // Over all rows, most of them zeros: the blocks in which the weight's gradient is summed are then
                // those of the whole batch.
                *dx = spread(dim, picked, dx, all);
                let (mid, rstd) = (spread(dim, picked, mid, all), spread(1, picked, rstd, all));
                rms_norm_backward(all, dim, &mid, norm, &rstd, &spread(dim, picked, d_normed, all), dx, d_norm);
            }
        }
    }

    fn attention_backward(
        &self,
        params: &[f32],
        p: &LayerParams,
        batch: &Batch,
        picked: Option<&[u32]>,
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
        let d_out = sized(&mut work.d_out, rows * wq);
        if let Some(picked) = picked {
            let n = picked.len();
            let (out_rows, d_rows) = (sized(&mut work.out_rows, n * wq), sized(&mut work.d_rows, n * dim));
            embed(wq, picked, out, out_rows);
            embed(dim, picked, dx, d_rows);
            linear_grad_weight(n, dim, wq, d_rows, out_rows, &mut grads[p.o.clone()]);
            linear_grad_input(n, dim, wq, d_rows, &params[p.o.clone()], out_rows, false);
            d_out.fill(0.0);
            embed_backward(wq, picked, out_rows, d_out);
        } else {
            linear_grad_weight(rows, dim, wq, dx, out, &mut grads[p.o.clone()]);
            linear_grad_input(rows, dim, wq, dx, &params[p.o.clone()], d_out, false);
        }
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

/// The rows `picked` of a matrix of `all` rows that is zero elsewhere.
fn spread(width: usize, picked: &[u32], rows: &[f32], all: usize) -> Vec<f32> {
    let mut out = vec![0.0; all * width];
    for (row, &at) in rows.chunks_exact(width).zip(picked) {
        out[at as usize * width..][..width].copy_from_slice(row);
    }
    out
}
