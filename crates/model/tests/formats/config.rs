//! `config.json`: what is read, what is refused, what is written.

use ragen_model::config::{ConfigError, Family, ModelConfig};
use serde_json::{Value, json};

use crate::tiny_config;

fn llama() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 576,
        "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "rms_norm_eps": 1e-5, "rope_theta": 100000, "rope_scaling": null, "vocab_size": 49152,
        "max_position_embeddings": 8192, "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2,
        "attention_bias": false, "pretraining_tp": 1,
    })
}

fn with(key: &str, value: Value) -> Result<ModelConfig, ConfigError> {
    let mut config = llama();
    config[key] = value;
    ModelConfig::from_json(&config.to_string())
}

#[test]
fn reads_the_fields_and_their_defaults() {
    let c = ModelConfig::from_json(&llama().to_string()).unwrap();
    assert_eq!((c.family, c.head_dim, c.rope_theta), (Family::Llama, 64, 100_000.0));
    assert_eq!((c.q_dim(), c.kv_dim(), c.qkv_bias, c.qk_norm), (576, 192, false, false));
    assert_eq!((c.bos_token_id, &c.eos_token_ids[..], c.pad_token_id), (Some(1), &[2u32][..], None));

    let c = with("eos_token_id", json!([2, 5])).unwrap();
    assert_eq!(c.eos_token_ids, [2, 5]);
    // Newer files keep the base inside `rope_parameters`, which wins.
    let c = with("rope_parameters", json!({"rope_type": "default", "rope_theta": 500.0})).unwrap();
    assert_eq!(c.rope_theta, 500.0);
    let c = with("pad_token_id", json!(-1)).unwrap();
    assert_eq!(c.pad_token_id, None);

    let mut qwen3 = llama();
    qwen3["architectures"] = json!(["Qwen3ForCausalLM"]);
    qwen3["sliding_window"] = json!(4096);
    qwen3["use_sliding_window"] = json!(false);
    let c = ModelConfig::from_json(&qwen3.to_string()).unwrap();
    assert_eq!((c.family, c.head_dim, c.qk_norm), (Family::Qwen3, 128, true));
}

#[test]
fn refuses_what_is_not_computed_and_names_the_key() {
    for (key, value) in [
        ("hidden_act", json!("gelu")),
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("sliding_window", json!(4096)),
        ("use_sliding_window", json!(true)),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 8.0})),
        ("rope_scaling", json!({"type": "linear", "factor": 2.0})),
        ("rope_parameters", json!({"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0})),
        ("pretraining_tp", json!(2)),
        ("partial_rotary_factor", json!(0.5)),
        ("quantization_config", json!({"bits": 4})),
        ("layer_types", json!(["full_attention", "sliding_attention"])),
        ("architectures", json!(["MistralForCausalLM"])),
    ] {
        let error = with(key, value).unwrap_err();
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{key}: {error}");
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn refuses_impossible_sizes_and_says_why() {
    for (key, value, says) in [
        ("num_key_value_heads", json!(2), "divide num_attention_heads 9"),
        ("num_hidden_layers", json!(0), "between 1"),
        ("hidden_size", json!(9u64 << 40), "between 1"),
        ("hidden_size", json!(577), "hidden_size 577"),
        ("head_dim", json!(63), "even"),
        ("rms_norm_eps", json!(0.0), "positive"),
        ("eos_token_id", json!(49152), "below vocab_size"),
        ("vocab_size", json!("many"), "expected a non-negative integer, found \"many\""),
        ("vocab_size", json!(null), "found nothing"),
        ("hidden_size", json!(-5), "found -5"),
    ] {
        let error = with(key, value).unwrap_err().to_string();
        assert!(error.contains(says), "{key}: {error}");
    }
    assert!(ModelConfig::from_json("{").is_err());
    assert!(ModelConfig::from_json("[]").is_err());
    assert!(ModelConfig::from_json("{}").unwrap_err().to_string().contains("architectures"));
}

#[test]
fn written_configurations_read_back_equal() {
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        for eos in [vec![], vec![2], vec![2, 3]] {
            let config = ModelConfig { eos_token_ids: eos, ..tiny_config(family, 300) };
            assert_eq!(ModelConfig::from_json(&config.to_json().to_string()).unwrap(), config);
        }
    }
}
