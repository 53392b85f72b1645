//! Memory by formula: what a run's models take, and how the rest of a limit is divided.
//!
//! What is here: bytes of weights, gradients, moments, packed weights, activations and the key-value cache. What is not
//! here: measuring what a process takes, which also holds its code, tokenizers, episodes and the allocator's reserves.

use ragen_kernels::kv_cache::{KvCache, PAGE};

use crate::params::heads;
use crate::trainable::{Checkpointing, Limits};
use crate::transformer::{Keep, Transformer};

/// What one model of a run is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Trained, and sampled from: weights, gradients, two moments, and the weights packed for decoding.
    Policy,
    /// Trained, never sampled from: weights, gradients, two moments.
    Critic,
    /// Only scored: weights. Frozen parameters have neither gradients nor moments.
    Reference,
}

impl Role {
    /// Bytes that a model of `parameters` parameters takes in this role, apart from activations and cache.
    pub fn bytes(self, parameters: usize) -> usize {
        let copies = match self {
            Self::Policy => 5,
            Self::Critic => 4,
            Self::Reference => 1,
        };
        parameters.saturating_mul(copies * size_of::<f32>())
    }
}

/// The models do not fit.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "{limit:.2} GiB are too little: the models' weights, gradients and moments take {models:.2} GiB, a micro-batch of \
     {tokens} tokens with recomputation {activations:.2} GiB and the shortest key-value cache {cache:.2} GiB; expected \
     a limit of at least {wanted:.2} GiB, fewer tokens in a micro-batch, or a shorter context"
)]
pub struct TooLittle {
    /// The limit in GiB.
    pub limit: f64,
    /// What would do, in GiB.
    pub wanted: f64,
    /// Weights, gradients, moments, packed weights, in GiB.
    pub models: f64,
    /// Activations of one micro-batch with recomputation, in GiB.
    pub activations: f64,
    /// A cache for one sequence, in GiB.
    pub cache: f64,
    /// Tokens of the micro-batch.
    pub tokens: usize,
}

/// What a run asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Most tokens in a micro-batch.
    pub micro_batch_tokens: usize,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Sequences that decode together.
    pub sequences: usize,
    /// Whether activations are kept.
    pub checkpointing: Checkpointing,
}

/// Divides `bytes` among the models of `roles`, all of `model`'s shape, their activations, and one key-value cache.
///
/// The cache gets what all sequences could fill, but leaves the activations of one micro-batch half of what the models
/// leave, and never less than recomputation needs. Models take turns, so there is one set of activations a model, of
/// which one is in use; each keeps its memory, so each has its share.
///
/// # Errors
/// [`TooLittle`] with the least limit that would do.
pub fn divide(model: &Transformer, roles: &[Role], demand: &Demand, bytes: usize) -> Result<Limits, TooLittle> {
    let parameters = model.layout().len();
    let models: usize = roles.iter().map(|role| role.bytes(parameters)).sum();
    let config = model.config();
    let page = KvCache::page_bytes(config.num_hidden_layers, heads(config));
    // One page more than the sequence, as a fork copies its last page.
    let shortest = (demand.context.div_ceil(PAGE) + 1) * page;
    let tokens = demand.micro_batch_tokens.max(demand.context);
    let least_kept = if demand.checkpointing == Checkpointing::Never { Keep::Everything } else { Keep::LayerInputs };
    let of_batch = |keep| tokens.saturating_mul(model.activation_bytes_per_row(keep)).saturating_mul(roles.len());
    let least = of_batch(least_kept);
    let wanted = models.saturating_add(least).saturating_add(shortest);
    if wanted > bytes {
        let gib = |bytes: usize| bytes as f64 / (1u64 << 30) as f64;
        return Err(TooLittle {
            limit: gib(bytes),
            wanted: gib(wanted),
            models: gib(models),
            activations: gib(least),
            cache: gib(shortest),
            tokens,
        });
    }
    let rest = bytes - models;
    let full = demand.sequences.max(1).saturating_mul(shortest);
    let for_activations = of_batch(Keep::Everything).min(rest / 2).max(least);
    let cache_bytes = full.min(rest - for_activations).max(shortest);
    Ok(Limits {
        micro_batch_tokens: demand.micro_batch_tokens,
        checkpointing: demand.checkpointing,
        activation_bytes: (rest - cache_bytes) / roles.len().max(1),
        cache_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Family, ModelConfig};

    fn model() -> Transformer {
        let config = ModelConfig {
            family: Family::Llama,
            vocab_size: 100,
            hidden_size: 64,
            intermediate_size: 128,
            num_hidden_layers: 3,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 16,
            rms_norm_eps: 1e-5,
            rope_theta: 10_000.0,
            max_position_embeddings: 256,
            tie_word_embeddings: true,
            qkv_bias: false,
            qk_norm: false,
            bos_token_id: None,
            eos_token_ids: vec![2],
            pad_token_id: None,
        };
        Transformer::new(config, false)
    }

    fn demand(checkpointing: Checkpointing) -> Demand {
        Demand { micro_batch_tokens: 1000, context: 256, sequences: 16, checkpointing }
    }

    #[test]
    fn everything_together_stays_within_the_limit() {
        let model = model();
        for roles in [&[Role::Policy][..], &[Role::Policy, Role::Critic, Role::Reference]] {
            let fixed: usize = roles.iter().map(|r| r.bytes(model.layout().len())).sum();
            let error = divide(&model, roles, &demand(Checkpointing::Auto), 1000).unwrap_err();
            let least = (error.wanted * (1u64 << 30) as f64).round() as usize;
            assert!(divide(&model, roles, &demand(Checkpointing::Auto), least - 1).is_err());
            for bytes in [least, 2 * least, 100 * least] {
                let limits = divide(&model, roles, &demand(Checkpointing::Auto), bytes).unwrap();
                assert!(fixed + roles.len() * limits.activation_bytes + limits.cache_bytes <= bytes);
                let recomputed = 1000 * model.activation_bytes_per_row(Keep::LayerInputs);
                assert!(limits.activation_bytes >= recomputed, "{bytes}: {limits:?}");
            }
            let ample = divide(&model, roles, &demand(Checkpointing::Auto), 100 * least).unwrap();
            assert!(ample.activation_bytes >= 1000 * model.activation_bytes_per_row(Keep::Everything));
            let page = KvCache::page_bytes(3, heads(model.config()));
            assert_eq!(ample.cache_bytes, 16 * 9 * page, "room for all sequences and no more");
        }
    }

    #[test]
    fn keeping_everything_needs_more() {
        let model = model();
        let wanted = |c| divide(&model, &[Role::Policy], &demand(c), 0).unwrap_err().wanted;
        assert!(wanted(Checkpointing::Never) > wanted(Checkpointing::Always));
        let message = divide(&model, &[Role::Policy], &demand(Checkpointing::Auto), 0).unwrap_err().to_string();
        assert!(message.contains("at least") && message.contains("1000 tokens"), "{message}");
    }
}
