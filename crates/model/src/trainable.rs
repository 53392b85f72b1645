//! A model with its weights, gradients and optimiser: score, accumulate, step, save, load.
//!
//! Batches of sequences are cut into micro-batches by a token budget; the cut never changes a score, and gradients are
//! added in the order of the batch.

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub use ragen_kernels::adamw::AdamW;
use ragen_kernels::kv_cache::KvCache;
use ragen_kernels::reduce::{clip_factor, sum_of_squares};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::batch::{Batch, common_prefix};
use crate::generate::{Generator, PackedModel};
use crate::params::heads;
use crate::sampler::Sampling;
use crate::transformer::{Keep, ScoreGrads, Scores, Transformer, Workspace};
use crate::weights::WeightsError;
use crate::weights::safetensors::read_header;
use crate::weights::save::{NamedTensor, SaveType, write_safetensors};

/// One sequence to score or to train on.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sequence {
    /// All tokens, given and sampled.
    pub tokens: Vec<u32>,
    /// Per token: it was sampled by the policy (scored, trained) or given. The first token is never sampled.
    pub sampled: Vec<bool>,
}

impl Sequence {
    /// Number of sampled tokens.
    pub fn sampled_len(&self) -> usize {
        self.sampled.iter().skip(1).filter(|s| **s).count()
    }
}

/// Whether activations are kept or recomputed layer by layer in the backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpointing {
    /// Recompute only when the activations of a micro-batch would exceed the memory limit.
    #[default]
    Auto,
    /// Always recompute.
    Always,
    /// Never recompute.
    Never,
}

/// How much memory and how many tokens at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Most tokens in a micro-batch; a longer sequence is a micro-batch of its own.
    pub micro_batch_tokens: usize,
    /// See [`Checkpointing`].
    pub checkpointing: Checkpointing,
    /// Bytes of activations that [`Checkpointing::Auto`] allows before it recomputes.
    pub activation_bytes: usize,
    /// Bytes of the key-value cache. A sequence that it cannot hold is an error of generation.
    pub cache_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            micro_batch_tokens: 4096,
            checkpointing: Checkpointing::Auto,
            activation_bytes: 1 << 30,
            cache_bytes: 2 << 30,
        }
    }
}

/// Settings of one optimiser step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerStep {
    /// AdamW's settings with this step's learning rate.
    pub adamw: AdamW,
    /// Clip the global gradient norm to this; ≤ 0 leaves it alone.
    pub grad_clip: f64,
}

/// Numbers of one optimiser step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Global gradient norm before clipping.
    pub grad_norm: f64,
    /// Whether the step was applied (false: the norm was not finite).
    pub applied: bool,
}

struct Moments {
    m: Vec<f32>,
    v: Vec<f32>,
    step: u64,
}

/// A trainable model.
pub struct Trainable {
    model: Transformer,
    params: Vec<f32>,
    grads: Vec<f32>,
    moments: Option<Moments>,
    packed: Option<PackedModel>,
    cache: Option<KvCache>,
    work: Workspace,
    limits: Limits,
}

impl Trainable {
    /// A model with these weights.
    ///
    /// # Panics
    /// When `params` is not as long as the model's layout.
    pub fn new(model: Transformer, params: Vec<f32>, limits: Limits) -> Self {
        assert_eq!(params.len(), model.layout().len(), "one value per parameter");
        Self {
            model,
            params,
            grads: Vec::new(),
            moments: None,
            packed: None,
            cache: None,
            work: Workspace::default(),
            limits,
        }
    }

    /// The model's shape.
    pub fn model(&self) -> &Transformer {
        &self.model
    }

    /// The weights.
    pub fn params(&self) -> &[f32] {
        &self.params
    }

    /// Replaces the weights and keeps the optimiser's state.
    ///
    /// # Panics
    /// When the length differs.
    pub fn set_params(&mut self, params: &[f32]) {
        self.params.copy_from_slice(params);
        self.packed = None;
    }

    /// Forgets the optimiser's moments and step count.
    pub fn reset_optimizer(&mut self) {
        self.moments = None;
    }

    /// A generator with the present weights that decodes at most `max_batch` sequences together.
    pub fn generator(&mut self, sampling: Sampling, max_batch: usize) -> Generator<'_> {
        let config = self.model.config();
        let page = KvCache::page_bytes(config.num_hidden_layers, heads(config));
        let pages = (self.limits.cache_bytes / page).max(1);
        let cache = self.cache.get_or_insert_with(|| KvCache::new(config.num_hidden_layers, heads(config), pages));
        let packed = self.packed.get_or_insert_with(|| PackedModel::new(&self.model, &self.params));
        Generator::new(&self.model, &self.params, packed, cache, sampling, max_batch)
    }

    /// Gives back what only generation needs: the packed weights and the cache.
    pub fn release_generation_memory(&mut self) {
        self.packed = None;
        self.cache = None;
    }

    /// Indices of the sequences of each micro-batch. With `shared`, a prefix that neighbours have in common counts once,
    /// as it is computed once: many short texts after one long prompt are then one micro-batch and not many, each with the
    /// prompt again. Where micro-batches are cut changes no score, but the order in which gradients are added.
    fn micro_batches(&self, batch: &[Sequence], shared: bool) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = Vec::new();
        let mut tokens = usize::MAX;
        for (i, sequence) in batch.iter().enumerate() {
            let common = match out.last() {
                Some(_) if shared => common_prefix(&batch[i - 1].tokens, &sequence.tokens),
                _ => 0,
            };
            if tokens.saturating_add(sequence.tokens.len() - common) > self.limits.micro_batch_tokens {
                out.push(vec![i]);
                tokens = sequence.tokens.len();
            } else if let Some(last) = out.last_mut() {
                last.push(i);
                tokens += sequence.tokens.len() - common;
            }
        }
        out
    }

    fn pack(batch: &[Sequence], indices: &[usize]) -> Batch {
        let parts: Vec<(&[u32], &[bool])> =
            indices.iter().map(|&i| (&batch[i].tokens[..], &batch[i].sampled[..])).collect();
        Batch::pack(&parts, true)
    }

    fn keep(&self, rows: usize) -> Keep {
        let bytes = rows.saturating_mul(self.model.activation_bytes_per_row(Keep::Everything));
        match self.limits.checkpointing {
            Checkpointing::Never => Keep::Everything,
            Checkpointing::Auto if bytes <= self.limits.activation_bytes => Keep::Everything,
            _ => Keep::LayerInputs,
        }
    }

    /// Scores the sampled tokens of `batch` at temperature `1 / inv_temperature`.
    pub fn score(&mut self, batch: &[Sequence], inv_temperature: f32) -> Scores {
        let mut all = Scores::default();
        for indices in self.micro_batches(batch, true) {
            let packed = Self::pack(batch, &indices);
            let scores = self.model.forward(&self.params, &packed, inv_temperature, Keep::LayerInputs, &mut self.work);
            all.log_prob.extend(scores.log_prob);
            all.entropy.extend(scores.entropy);
            all.value.extend(scores.value);
        }
        all
    }

    /// Forward, `loss`, backward: adds the gradients to the accumulated ones. `loss` gets the indices of a
    /// micro-batch's sequences and the scores of their sampled tokens in order.
    pub fn accumulate(
        &mut self,
        batch: &[Sequence],
        inv_temperature: f32,
        loss: &mut dyn FnMut(&[usize], &Scores) -> ScoreGrads,
    ) {
        self.grads.resize(self.params.len(), 0.0);
        for indices in self.micro_batches(batch, false) {
            let packed = Self::pack(batch, &indices);
            let keep = self.keep(packed.len());
            let (params, work) = (&self.params, &mut self.work);
            let scores = self.model.forward(params, &packed, inv_temperature, keep, work);
            let d = loss(&indices, &scores);
            if packed.targets.is_empty() {
                continue;
            }
            self.model.backward(params, &packed, inv_temperature, keep, &scores, &d, work, &mut self.grads);
        }
    }

    /// Global norm of the accumulated gradients.
    pub fn gradient_norm(&self) -> f64 {
        sum_of_squares(&self.grads).sqrt()
    }

    /// Forgets the accumulated gradients.
    pub fn clear_gradients(&mut self) {
        self.grads.fill(0.0);
    }

    /// Clips, applies AdamW, clears the gradients. A non-finite norm skips the update.
    pub fn step(&mut self, step: OptimizerStep) -> StepReport {
        self.grads.resize(self.params.len(), 0.0);
        let grad_norm = self.gradient_norm();
        let applied = grad_norm.is_finite();
        if applied {
            let scale = if step.grad_clip > 0.0 { clip_factor(grad_norm, step.grad_clip) } else { 1.0 };
            let n = self.params.len();
            let moments = self.moments.get_or_insert_with(|| Moments { m: vec![0.0; n], v: vec![0.0; n], step: 0 });
            moments.step += 1;
            let Moments { m, v, step: count } = moments;
            step.adamw.update(&mut self.params, &self.grads, m, v, *count, scale);
            self.packed = None;
        }
        self.grads.fill(0.0);
        StepReport { grad_norm, applied }
    }

    /// Whether every weight is a finite number.
    pub fn is_finite(&self) -> bool {
        // A value times zero is zero unless it is infinite or no number, and a sum keeps what is not zero.
        let sound = |chunk: &[f32]| chunk.iter().map(|p| p * 0.0).sum::<f32>() == 0.0;
        self.params.par_chunks(1 << 16).all(sound)
    }

    /// SHA-256 over the little-endian bytes of all weights, in hexadecimal.
    pub fn weights_sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for chunk in self.params.chunks(1 << 16) {
            let bytes: Vec<u8> = chunk.iter().flat_map(|p| p.to_le_bytes()).collect();
            hasher.update(&bytes);
        }
        hasher.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Writes weights, moments and step count into one exact safetensors file.
    ///
    /// # Errors
    /// When writing fails; an older file of that name stays as it was.
    pub fn save_state(&self, path: &Path) -> Result<(), WeightsError> {
        let parameters = self.model.layout().parameters();
        let mut named: Vec<(String, &[usize], &[f32])> = Vec::new();
        let mut step = 0;
        for p in parameters {
            named.push((p.name.clone(), &p.shape, &self.params[p.range.clone()]));
        }
        if let Some(moments) = &self.moments {
            step = moments.step;
            for (prefix, values) in [("adam.m.", &moments.m), ("adam.v.", &moments.v)] {
                for p in parameters {
                    named.push((format!("{prefix}{}", p.name), &p.shape, &values[p.range.clone()]));
                }
            }
        }
        let tensors: Vec<NamedTensor<'_>> =
            named.iter().map(|(name, shape, values)| NamedTensor { name, shape, values }).collect();
        write_safetensors(path, &tensors, SaveType::F32, &[("adam.step", &step.to_string())])
    }

    /// Reads what [`Trainable::save_state`] wrote.
    ///
    /// # Errors
    /// When the file is missing, damaged, or of another model. Nothing changes then.
    pub fn load_state(&mut self, path: &Path) -> Result<(), WeightsError> {
        let header = read_header(path)?;
        let shapes: HashMap<&str, &Vec<usize>> = header.tensors.iter().map(|t| (t.name.as_str(), &t.shape)).collect();
        let read_all = |prefix: &str| -> Result<Vec<f32>, WeightsError> {
            let mut all = Vec::with_capacity(self.params.len());
            for p in self.model.layout().parameters() {
                let key = format!("{prefix}{}", p.name);
                match shapes.get(key.as_str()) {
                    None => {
                        let (path, shape) = (path.to_path_buf(), p.shape.clone());
                        return Err(WeightsError::Missing { path, key, shape });
                    }
                    Some(found) if **found != p.shape => {
                        let (expected, found) = (p.shape.clone(), (*found).clone());
                        return Err(WeightsError::Shape { path: path.to_path_buf(), key, expected, found });
                    }
                    Some(_) => all.extend(header.read(&key)?),
                }
            }
            Ok(all)
        };
        let step: u64 = header.metadata.get("adam.step").and_then(|s| s.parse().ok()).unwrap_or(0);
        // A tensor that this model has no place for is a sign of another model, even if all of its own are there.
        let known: HashSet<&str> = self.model.layout().parameters().iter().map(|p| p.name.as_str()).collect();
        let moment = |key: &str| key.strip_prefix("adam.m.").or_else(|| key.strip_prefix("adam.v.")).map(str::to_owned);
        let foreign = header.tensors.iter().map(|t| t.name.as_str()).find(|key| match moment(key) {
            Some(name) => step == 0 || !known.contains(name.as_str()),
            None => !known.contains(*key),
        });
        if let Some(key) = foreign {
            let what = format!("tensor `{key}` has no place in this model: the state is another model's");
            return Err(WeightsError::Malformed { path: path.to_path_buf(), format: "state", what });
        }
        let params = read_all("")?;
        let moments =
            if step > 0 { Some(Moments { m: read_all("adam.m.")?, v: read_all("adam.v.")?, step }) } else { None };
        self.params = params;
        self.moments = moments;
        self.packed = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Family, ModelConfig};
    use crate::init::random_params;

    #[test]
    fn scoring_cuts_by_shared_rows_and_the_cut_changes_no_bit() {
        let config = ModelConfig {
            family: Family::Llama,
            vocab_size: 100,
            hidden_size: 8,
            intermediate_size: 12,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 4,
            rms_norm_eps: 1e-5,
            rope_theta: 10_000.0,
            max_position_embeddings: 64,
            tie_word_embeddings: true,
            qkv_bias: false,
            qk_norm: false,
            bos_token_id: None,
            eos_token_ids: vec![2],
            pad_token_id: None,
        };
        let params = random_params(&config, 1);
        let prompt: Vec<u32> = (0..40).collect();
        let with = |tail: u32| Sequence {
            tokens: prompt.iter().copied().chain([tail, tail + 1]).collect(),
            sampled: (0..42).map(|i| i >= 40).collect(),
        };
        let batch: Vec<Sequence> = (50..58).map(with).collect();
        let scores = |tokens: usize| {
            let limits = Limits { micro_batch_tokens: tokens, ..Limits::default() };
            let mut model = Trainable::new(Transformer::new(config.clone(), false), params.clone(), limits);
            let cut = |shared| model.micro_batches(&batch, shared).iter().map(Vec::len).collect::<Vec<_>>();
            let cuts = (cut(true), cut(false));
            (cuts, model.score(&batch, 1.0).log_prob)
        };
        let (cuts, together) = scores(56);
        assert_eq!(cuts, (vec![8], vec![1; 8]));
        let (cuts, apart) = scores(44);
        assert_eq!(cuts, (vec![2; 4], vec![1; 8]));
        assert_eq!(together, apart);
    }
}
