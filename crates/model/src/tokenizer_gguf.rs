//! The tokenizer of a GGUF file, put into `tokenizer.json` form.
//!
//! What is here: byte-level BPE (`tokenizer.ggml.model` = `gpt2`) with the pre-tokenizers of the supported families.
//! What is not here: SentencePiece and WordPiece vocabularies.

use serde_json::{Map, Value, json};

use crate::tokenizer::{Tokenizer, TokenizerError, TokenizerMeta};
use crate::weights::gguf::{GgufArray, GgufHeader, GgufValue};

/// Words, digits one by one, punctuation, line ends, spaces: Qwen2's pattern.
const QWEN2_PATTERN: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same with digits in groups of up to three: Llama 3's pattern.
const LLAMA3_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Token types of GGUF that need a place of their own.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;

impl Tokenizer {
    /// Builds the tokenizer that a GGUF file describes under `tokenizer.ggml.*`, with `tokenizer.chat_template`.
    ///
    /// # Errors
    /// [`TokenizerError::Invalid`] for other kinds than byte-level BPE, unknown pre-tokenizers, or lists that do not
    /// fit together.
    pub fn from_gguf(header: &GgufHeader) -> Result<Self, TokenizerError> {
        let origin = header.path.display().to_string();
        let bad = |what: String| TokenizerError::invalid(&origin, what);
        match header.string("tokenizer.ggml.model") {
            Some("gpt2") => {}
            other => {
                return Err(bad(format!(
                    "`tokenizer.ggml.model`: expected `gpt2` (byte-level BPE), found {}",
                    other.map_or("nothing".into(), |o| format!("`{o}`"))
                )));
            }
        }
        let list = |key: &str| header.strings(key).ok_or_else(|| bad(format!("`{key}`: expected an array of strings")));
        let tokens = list("tokenizer.ggml.tokens")?;
        let merges = list("tokenizer.ggml.merges")?;
        let types: Vec<i64> = match header.metadata.get("tokenizer.ggml.token_type") {
            None => vec![1; tokens.len()],
            Some(GgufValue::Array(GgufArray::Signed(types))) => types.clone(),
            Some(GgufValue::Array(GgufArray::Unsigned(types))) => {
                types.iter().map(|t| i64::try_from(*t).unwrap_or(0)).collect()
            }
            Some(_) => return Err(bad("`tokenizer.ggml.token_type`: expected an array of integers".into())),
        };
        if types.len() != tokens.len() {
            return Err(bad(format!("{} tokens, but {} token types", tokens.len(), types.len())));
        }

        let mut vocab = Map::new();
        let mut added = Vec::new();
        for (id, (token, kind)) in tokens.iter().zip(&types).enumerate() {
            if *kind == UNUSED {
                // Rows that only pad the embedding to a round size.
                continue;
            }
            if vocab.insert(token.clone(), json!(id)).is_some() {
                return Err(bad(format!("token `{token}` appears twice")));
            }
            if *kind == CONTROL || *kind == USER_DEFINED {
                added.push(json!({
                    "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": *kind == CONTROL,
                }));
            }
        }
        for merge in merges {
            let known = merge.split_once(' ').is_some_and(|(a, b)| {
                vocab.contains_key(a) && vocab.contains_key(b) && vocab.contains_key(&format!("{a}{b}"))
            });
            if !known {
                return Err(bad(format!("merge `{merge}` is not made of known tokens")));
            }
        }

        let pre = header.string("tokenizer.ggml.pre").unwrap_or("default");
        let pieces = pre_tokenizer(pre).ok_or_else(|| {
            bad(format!(
                "`tokenizer.ggml.pre` = `{pre}` is not supported; known are smollm, qwen2, llama-bpe, gpt-2, default"
            ))
        })?;
        let token_at = |key: &str| header.unsigned(key).and_then(|id| tokens.get(usize::try_from(id).ok()?)).cloned();
        let meta = TokenizerMeta {
            chat_template: header.string("tokenizer.chat_template").map(str::to_string),
            bos: token_at("tokenizer.ggml.bos_token_id"),
            eos: token_at("tokenizer.ggml.eos_token_id"),
            pad: token_at("tokenizer.ggml.padding_token_id"),
            unk: token_at("tokenizer.ggml.unknown_token_id"),
        };
        let json = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added,
            "normalizer": pieces.normalizer,
            "pre_tokenizer": pieces.pre_tokenizer,
            "post_processor": null,
            "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                "ignore_merges": pieces.ignore_merges,
                "vocab": vocab,
                "merges": merges.iter().filter_map(|m| m.split_once(' ')).map(|(a, b)| json!([a, b])).collect::<Vec<_>>(),
            },
        });
        Self::from_json(json, meta, &origin)
    }
}

struct Pieces {
    normalizer: Value,
    pre_tokenizer: Value,
    ignore_merges: bool,
}

/// What a value of `tokenizer.ggml.pre` stands for.
fn pre_tokenizer(name: &str) -> Option<Pieces> {
    let bytes = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let split = |pattern: &str| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            bytes(false),
        ]})
    };
    Some(match name {
        "smollm" => Pieces {
            normalizer: Value::Null,
            pre_tokenizer: json!({"type": "Sequence", "pretokenizers": [
                {"type": "Digits", "individual_digits": true},
                bytes(true),
            ]}),
            ignore_merges: false,
        },
        "qwen2" => {
            Pieces { normalizer: json!({"type": "NFC"}), pre_tokenizer: split(QWEN2_PATTERN), ignore_merges: false }
        }
        "llama-bpe" | "llama3" | "llama-v3" => {
            Pieces { normalizer: Value::Null, pre_tokenizer: split(LLAMA3_PATTERN), ignore_merges: true }
        }
        "gpt-2" | "gpt2" => Pieces { normalizer: Value::Null, pre_tokenizer: bytes(true), ignore_merges: false },
        "default" => {
            tracing::warn!(
                "the file names no pre-tokenizer; GPT-2's is used, token ids may differ from the original's"
            );
            Pieces { normalizer: Value::Null, pre_tokenizer: bytes(true), ignore_merges: false }
        }
        _ => return None,
    })
}
