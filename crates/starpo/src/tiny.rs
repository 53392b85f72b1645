//! The tiny model that needs no download: a Qwen2-shaped transformer of about one million parameters, made from
//! scratch, and its tokenizer, trained on the environments' own text and shipped with the crate.
//!
//! Board symbols, digits and capitals are tokens of their own, so that a grid reads cell by cell; words merge.

use ragen_envs::{DemoStyle, Split, registry};
use ragen_model::bpe_train::{BpeOptions, CHATML_TEMPLATE, train};
use ragen_model::config::{Family, ModelConfig};
use ragen_model::tokenizer::{Tokenizer, TokenizerError, TokenizerMeta};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// What `model_path` says to get this model.
pub const NAME: &str = "tiny";

/// Tokens in the vocabulary.
const VOCAB: usize = 512;
/// Instances per kind of environment whose text the tokenizer is trained on.
const INSTANCES: u64 = 200;
/// First seed of these instances, far from those of training and validation.
const FIRST_SEED: u64 = 5_000_000;

/// The shipped tokenizer.
///
/// # Errors
/// [`TokenizerError`] when the shipped files are damaged.
pub fn tokenizer() -> Result<Tokenizer, TokenizerError> {
    let origin = "the built-in tokenizer";
    let json = serde_json::from_str(include_str!("../assets/tiny/tokenizer.json"))
        .map_err(|e| TokenizerError::Invalid { origin: origin.to_owned(), what: e.to_string() })?;
    let meta = TokenizerMeta {
        chat_template: Some(CHATML_TEMPLATE.to_owned()),
        eos: Some("<|im_end|>".to_owned()),
        pad: Some("<|endoftext|>".to_owned()),
        ..TokenizerMeta::default()
    };
    Tokenizer::from_json(json, meta, origin)
}

/// Trains the tokenizer anew, as it was trained for shipping.
///
/// # Errors
/// [`TokenizerError`] when training fails.
pub fn train_tokenizer() -> Result<Tokenizer, TokenizerError> {
    train(corpus(), &BpeOptions { vocab_size: VOCAB, ..BpeOptions::default() })
}

/// Sizes of the model.
pub fn model_config(tokenizer: &Tokenizer) -> ModelConfig {
    ModelConfig {
        family: Family::Qwen2,
        vocab_size: tokenizer.vocab_size().max(VOCAB),
        hidden_size: 128,
        intermediate_size: 384,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        max_position_embeddings: 2048,
        tie_word_embeddings: true,
        qkv_bias: true,
        qk_norm: false,
        bos_token_id: None,
        eos_token_ids: tokenizer.id_of("<|im_end|>").into_iter().collect(),
        pad_token_id: tokenizer.id_of("<|endoftext|>"),
    }
}

/// Environments whose text the tokenizer is trained on. Others are spelled with the same tokens: a change here would
/// change the shipped tokenizer, and with it every run of the tiny model.
const KINDS: [&str; 3] = ["bandit", "frozen_lake", "sokoban"];

/// Texts of these environments: rules, states and reasoning.
fn corpus() -> Vec<String> {
    let mut texts = Vec::new();
    for template in registry::templates().into_iter().filter(|template| KINDS.contains(&template.env_type)) {
        let Ok(mut env) = registry::make(template.env_type, &template.env_config) else { continue };
        texts.push(env.spec().instruction.clone());
        texts.push(env.spec().actions.join(" || "));
        let mut rng = ChaCha8Rng::seed_from_u64(FIRST_SEED);
        for seed in FIRST_SEED..FIRST_SEED + INSTANCES {
            let Ok(state) = env.reset(seed, Split::Train) else { continue };
            texts.push(format!("{state}\n{} left", seed % 11));
            if let Some(turn) = env.demonstrate(template.max_actions_per_traj, 5, DemoStyle::Brief, &mut rng) {
                texts.push(turn.reasoning);
                texts.push(turn.actions.join(" || "));
            }
        }
    }
    for text in ["system", "user", "assistant", "invalid", " left"] {
        texts.extend(std::iter::repeat_n(text.to_owned(), 1000));
    }
    texts
}
