//! A small GGUF writer, and a tiny Llama model written with it.

use ragen_model::bpe_train::{BpeOptions, train};
use ragen_model::config::{Family, ModelConfig};
use ragen_model::tokenizer::Tokenizer;
use ragen_model::weights::layout::{param_ranges, param_specs};

use crate::{Stream, tiny_config};

/// A GGUF file in the making.
pub struct Writer {
    pub version: u32,
    entries: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl Writer {
    pub fn new(version: u32) -> Self {
        Self { version, entries: Vec::new(), tensors: Vec::new(), data: Vec::new() }
    }

    pub fn entry(&mut self, key: &str, kind: u32, value: &[u8]) -> &mut Self {
        self.entries.push([&string(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    pub fn u32(&mut self, key: &str, value: u32) -> &mut Self {
        self.entry(key, 4, &value.to_le_bytes())
    }

    pub fn f32(&mut self, key: &str, value: f32) -> &mut Self {
        self.entry(key, 6, &value.to_le_bytes())
    }

    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.entry(key, 8, &string(value))
    }

    pub fn texts<S: AsRef<str>>(&mut self, key: &str, list: &[S]) -> &mut Self {
        let mut value = [&8u32.to_le_bytes()[..], &(list.len() as u64).to_le_bytes()].concat();
        list.iter().for_each(|s| value.extend(string(s.as_ref())));
        self.entry(key, 9, &value)
    }

    pub fn i32s(&mut self, key: &str, list: &[i32]) -> &mut Self {
        let mut value = [&5u32.to_le_bytes()[..], &(list.len() as u64).to_le_bytes()].concat();
        list.iter().for_each(|n| value.extend(n.to_le_bytes()));
        self.entry(key, 9, &value)
    }

    /// Adds an F32 tensor; `shape` is row-major.
    pub fn tensor(&mut self, name: &str, shape: &[usize], values: &[f32]) -> &mut Self {
        let mut info = [&string(name)[..], &(shape.len() as u32).to_le_bytes()].concat();
        shape.iter().rev().for_each(|n| info.extend((*n as u64).to_le_bytes()));
        info.extend(0u32.to_le_bytes());
        info.extend((self.data.len() as u64).to_le_bytes());
        self.tensors.push(info);
        values.iter().for_each(|x| self.data.extend(x.to_le_bytes()));
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.entries.len() as u64).to_le_bytes());
        self.entries.iter().chain(&self.tensors).for_each(|part| out.extend(part));
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(&self.data);
        out
    }
}

/// A tokenizer with a few merges.
pub fn small_tokenizer() -> Tokenizer {
    let texts = ["up down left right", "up up down", "the box is up"];
    train(texts, &BpeOptions { vocab_size: 300, ..BpeOptions::default() }).unwrap()
}

/// Hugging Face name → GGUF name.
fn gguf_name(name: &str) -> String {
    let mut name = name.to_string();
    for (from, to) in [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers.", "blk."),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ] {
        name = name.replace(from, to);
    }
    name
}

/// A whole tiny model: the file's writer, its configuration and its parameters in Hugging Face order.
pub fn tiny_model(family: Family, tokenizer: &Tokenizer) -> (Writer, ModelConfig, Vec<f32>) {
    let mut config = tiny_config(family, tokenizer.vocab_size());
    config.bos_token_id = Some(1);
    let ranges = param_ranges(&param_specs(&config));
    let mut stream = Stream(11);
    let params: Vec<f32> = (0..ranges.last().unwrap().range.end).map(|_| stream.coarse()).collect();

    let arch = family.model_type();
    let mut w = Writer::new(3);
    w.text("general.architecture", arch);
    for (key, value) in [
        ("block_count", config.num_hidden_layers),
        ("context_length", config.max_position_embeddings),
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.intermediate_size),
        ("attention.head_count", config.num_attention_heads),
        ("attention.head_count_kv", config.num_key_value_heads),
        ("rope.dimension_count", config.head_dim),
    ] {
        w.u32(&format!("{arch}.{key}"), value as u32);
    }
    w.f32(&format!("{arch}.rope.freq_base"), config.rope_theta as f32);
    w.f32(&format!("{arch}.attention.layer_norm_rms_epsilon"), config.rms_norm_eps);

    let tokens: Vec<&str> = (0..tokenizer.vocab_size() as u32).map(|id| tokenizer.piece(id).unwrap()).collect();
    let kinds: Vec<i32> = (0..tokens.len())
        .map(|id| {
            if id < 3 {
                3
            } else if id < 8 {
                4
            } else {
                1
            }
        })
        .collect();
    let pair = |token: &str| {
        // Any split into two known tokens serves as a merge here.
        token.char_indices().skip(1).find_map(|(at, _)| {
            let (a, b) = token.split_at(at);
            (tokenizer.id_of(a).is_some() && tokenizer.id_of(b).is_some()).then(|| format!("{a} {b}"))
        })
    };
    let merges: Vec<String> = tokens[264..].iter().filter_map(|t| pair(t)).collect();
    w.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
    w.texts("tokenizer.ggml.tokens", &tokens).i32s("tokenizer.ggml.token_type", &kinds);
    w.texts("tokenizer.ggml.merges", &merges);
    w.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
    w.u32("tokenizer.ggml.padding_token_id", 0);
    w.text("tokenizer.chat_template", tokenizer.chat_template().unwrap());

    for r in &ranges {
        let values = &params[r.range.clone()];
        let interleaved = family == Family::Llama && (r.name.contains("q_proj") || r.name.contains("k_proj"));
        let stored = if interleaved { interleave(values, r.shape[1], config.head_dim) } else { values.to_vec() };
        w.tensor(&gguf_name(&r.name), &r.shape, &stored);
    }
    (w, config, params)
}

/// Rows as Llama conversions store them: view [heads, 2, head_dim / 2, columns], swap the two middle axes.
fn interleave(values: &[f32], columns: usize, head_dim: usize) -> Vec<f32> {
    let half = head_dim / 2;
    let heads = values.len() / columns / head_dim;
    let mut out = Vec::with_capacity(values.len());
    for h in 0..heads {
        for j in 0..half {
            for part in 0..2 {
                let row = h * head_dim + part * half + j;
                out.extend_from_slice(&values[row * columns..(row + 1) * columns]);
            }
        }
    }
    out
}
