//! What a GGUF file of a Llama, Qwen2 or Qwen3 model says, in Hugging Face terms.
//!
//! What is here: metadata → configuration, tensor names → Hugging Face names, and the row order of Llama's query and
//! key projections.
//! What is not here: the container (see [`super::gguf`]), the tokenizer's keys (see `tokenizer_gguf`).

use std::path::Path;

use super::gguf::GgufHeader;
use super::layout::ParamRange;
use super::{LoadedModel, LoadedParams, SourceTensor, WeightsError, check_vocabulary, read_params};
use crate::config::{Family, ModelConfig};
use crate::tokenizer::Tokenizer;

/// Loads a GGUF file.
///
/// # Errors
/// As [`super::load`].
pub fn load(path: &Path) -> Result<LoadedModel, WeightsError> {
    let header = GgufHeader::open(path)?;
    let config = config(&header)?;
    let tokenizer =
        Tokenizer::from_gguf(&header).map_err(|source| WeightsError::Tokenizer { path: path.to_path_buf(), source })?;
    check_vocabulary(path, &config, &tokenizer)?;
    let mut tensors = Vec::with_capacity(header.tensors.len());
    for t in &header.tensors {
        refuse_tensor(&header, &t.name)?;
        tensors.push(SourceTensor {
            file: 0,
            name: hugging_face_name(&t.name).unwrap_or_else(|| t.name.clone()),
            dtype: t.dtype.clone(),
            shape: t.shape.clone(),
            offset: t.offset,
        });
    }
    let LoadedParams { mut params, ranges, ignored_tensors } = read_params(path, &[path], &tensors, &config)?;
    if config.family == Family::Llama {
        undo_interleaving(&mut params, &ranges, config.head_dim);
    }
    Ok(LoadedModel {
        chat_template: tokenizer.chat_template().map(str::to_string),
        config,
        params,
        ranges,
        tokenizer,
        generation_config: None,
        ignored_tensors,
    })
}

/// The configuration of a GGUF file.
///
/// # Errors
/// [`WeightsError::Unsupported`] for other architectures and scaled rotary embeddings, [`WeightsError::Malformed`] for
/// missing keys, [`WeightsError::Config`] for impossible values.
pub fn config(header: &GgufHeader) -> Result<ModelConfig, WeightsError> {
    let path = header.path.as_path();
    let bad = |what: String| WeightsError::malformed(path, "GGUF", what);
    let arch = header
        .string("general.architecture")
        .ok_or_else(|| bad("expected a string under `general.architecture`".into()))?;
    let family = Family::from_model_type(arch).ok_or_else(|| WeightsError::Unsupported {
        path: path.to_path_buf(),
        what: format!("architecture `{arch}`"),
        supported: "llama, qwen2 and qwen3 are read".into(),
    })?;
    let numbers = [
        "expert_count",
        "attention.sliding_window",
        "attention.key_length",
        "attention.value_length",
        "attention.head_count_kv",
        "rope.dimension_count",
    ];
    // What may be absent must still be right where it is present.
    for key in numbers.map(|key| format!("{arch}.{key}")).iter().map(String::as_str).chain([
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.padding_token_id",
    ]) {
        if header.metadata.contains_key(key) && header.unsigned(key).is_none() {
            return Err(bad(format!("expected a non-negative integer under `{key}`")));
        }
    }
    for key in [format!("{arch}.rope.freq_base"), format!("{arch}.attention.layer_norm_rms_epsilon")] {
        if header.metadata.contains_key(&key) && header.float(&key).is_none() {
            return Err(bad(format!("expected a float under `{key}`")));
        }
    }
    let optional = |key: &str| -> Option<usize> {
        header.unsigned(&format!("{arch}.{key}")).and_then(|n| usize::try_from(n).ok())
    };
    let required =
        |key: &str| optional(key).ok_or_else(|| bad(format!("expected a non-negative integer under `{arch}.{key}`")));
    let unsupported = |what: String, supported: &str| WeightsError::Unsupported {
        path: path.to_path_buf(),
        what,
        supported: supported.into(),
    };

    if let Some(kind) = header.string(&format!("{arch}.rope.scaling.type"))
        && kind != "none"
    {
        return Err(unsupported(format!("rope scaling `{kind}`"), "only the unscaled rotary embedding is implemented"));
    }
    if optional("expert_count").is_some_and(|n| n > 0) {
        return Err(unsupported("a mixture of experts".into(), "only dense models are implemented"));
    }
    if optional("attention.sliding_window").is_some_and(|n| n > 0) {
        return Err(unsupported("sliding-window attention".into(), "only full attention is implemented"));
    }
    let hidden_size = required("embedding_length")?;
    let num_attention_heads = required("attention.head_count")?;
    let head_dim = match optional("attention.key_length") {
        Some(n) => n,
        None => hidden_size
            .checked_div(num_attention_heads)
            .ok_or_else(|| bad(format!("`{arch}.attention.head_count` is 0")))?,
    };
    for key in ["attention.value_length", "rope.dimension_count"] {
        if let Some(n) = optional(key)
            && n != head_dim
        {
            return Err(unsupported(
                format!("`{arch}.{key}` = {n} with heads of {head_dim}"),
                "only models where the two are equal are implemented",
            ));
        }
    }
    let embedding = header.tensors.iter().find(|t| t.name == "token_embd.weight");
    let vocab_size =
        embedding.and_then(|t| t.shape.first().copied()).ok_or_else(|| bad("no tensor `token_embd.weight`".into()))?;
    let id = |key: &str| header.unsigned(key).and_then(|n| u32::try_from(n).ok());
    let mut eos_token_ids: Vec<u32> = id("tokenizer.ggml.eos_token_id").into_iter().collect();
    if let Some(eot) = id("tokenizer.ggml.eot_token_id")
        && !eos_token_ids.contains(&eot)
    {
        eos_token_ids.push(eot);
    }
    let config = ModelConfig {
        family,
        vocab_size,
        hidden_size,
        intermediate_size: required("feed_forward_length")?,
        num_hidden_layers: required("block_count")?,
        num_attention_heads,
        num_key_value_heads: optional("attention.head_count_kv").unwrap_or(num_attention_heads),
        head_dim,
        rms_norm_eps: header
            .float(&format!("{arch}.attention.layer_norm_rms_epsilon"))
            .ok_or_else(|| bad(format!("expected a float under `{arch}.attention.layer_norm_rms_epsilon`")))?
            as f32,
        rope_theta: header.float(&format!("{arch}.rope.freq_base")).unwrap_or(10_000.0),
        max_position_embeddings: required("context_length")?,
        tie_word_embeddings: !header.tensors.iter().any(|t| t.name == "output.weight"),
        qkv_bias: family == Family::Qwen2,
        qk_norm: family == Family::Qwen3,
        bos_token_id: id("tokenizer.ggml.bos_token_id"),
        eos_token_ids,
        pad_token_id: id("tokenizer.ggml.padding_token_id"),
    };
    config.validate().map_err(|source| WeightsError::Config { path: path.to_path_buf(), source })?;
    Ok(config)
}

/// Tensors that change the arithmetic in a way that the configuration cannot express must not be skipped over.
fn refuse_tensor(header: &GgufHeader, name: &str) -> Result<(), WeightsError> {
    let unsupported = |what: &str| {
        Err(WeightsError::Unsupported {
            path: header.path.clone(),
            what: format!("tensor `{name}` ({what})"),
            supported: "use a model without it".into(),
        })
    };
    let qwen2 = header.string("general.architecture") == Some("qwen2");
    if name.starts_with("rope_freqs") || name.starts_with("rope_factors") {
        unsupported("scaled rotary frequencies")
    } else if name.ends_with(".bias") && !(qwen2 && name.contains(".attn_") && !name.contains("output")) {
        unsupported("a bias this architecture does not have here")
    } else {
        Ok(())
    }
}

/// The Hugging Face name of a GGUF tensor; `None` for names that have no counterpart.
pub fn hugging_face_name(name: &str) -> Option<String> {
    match name {
        "token_embd.weight" => return Some("model.embed_tokens.weight".into()),
        "output_norm.weight" => return Some("model.norm.weight".into()),
        "output.weight" => return Some("lm_head.weight".into()),
        _ => {}
    }
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let layer: usize = layer.parse().ok()?;
    let (part, kind) = rest.rsplit_once('.')?;
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}.{kind}"))
}

/// Llama-architecture files keep query and key rows in the order of the interleaved rotary embedding: channel pairs
/// (j, j + head_dim/2) of the half-split form lie side by side. Puts them back.
fn undo_interleaving(params: &mut [f32], ranges: &[ParamRange], head_dim: usize) {
    let half = head_dim / 2;
    for r in ranges {
        if !(r.name.ends_with("self_attn.q_proj.weight") || r.name.ends_with("self_attn.k_proj.weight")) {
            continue;
        }
        let [_, columns] = r.shape[..] else { continue };
        for head in params[r.range.clone()].chunks_exact_mut(head_dim * columns) {
            let stored = head.to_vec();
            for (row, out) in head.chunks_exact_mut(columns).enumerate() {
                let from = if row < half { 2 * row } else { 2 * (row - half) + 1 };
                out.copy_from_slice(&stored[from * columns..(from + 1) * columns]);
            }
        }
    }
}
