//! The real model: SmolLM2-135M-Instruct in GGUF form, against golden values of the reference libraries.

use std::path::PathBuf;
use std::sync::OnceLock;

use ragen_model::chat::{ChatTemplate, Message, TemplateVariables};
use ragen_model::turn_pieces::{RenderingMode, TurnPieces};
use ragen_model::weights::{self, LoadedModel};
use serde_json::Value;

/// The model, or `None` with a printed reason. Loaded once for all tests.
fn model() -> Option<&'static LoadedModel> {
    static MODEL: OnceLock<Option<LoadedModel>> = OnceLock::new();
    MODEL.get_or_init(load).as_ref()
}

fn load() -> Option<LoadedModel> {
    let path = match std::env::var_os("RAGEN_SMOLLM2") {
        Some(path) => PathBuf::from(path),
        None => {
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models/smollm2-135m-instruct-q4_1.gguf");
            if !path.is_file() {
                println!("skipped: no {} (scripts/fetch_smollm2.sh gets it)", path.display());
                return None;
            }
            path
        }
    };
    Some(weights::load(&path).unwrap())
}

/// A golden file, or `None` with a printed reason when no fixtures are configured.
fn golden(name: &str) -> Option<Value> {
    let Some(root) = std::env::var_os("RAGEN_FIXTURES") else {
        println!("skipped: RAGEN_FIXTURES is not set");
        return None;
    };
    let path = PathBuf::from(root).join("golden").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Some(serde_json::from_str(&text).unwrap())
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

#[test]
fn configuration_and_parameters() {
    let Some(model) = model() else { return };
    let c = &model.config;
    assert_eq!(
        (c.vocab_size, c.hidden_size, c.intermediate_size, c.num_hidden_layers, c.head_dim),
        (49152, 576, 1536, 30, 64)
    );
    assert_eq!((c.num_attention_heads, c.num_key_value_heads), (9, 3));
    assert_eq!((c.rope_theta, c.rms_norm_eps), (100_000.0, 1e-5));
    assert!(c.tie_word_embeddings);
    assert_eq!(c.eos_token_ids, [2]);
    assert_eq!(model.params.len(), 134_515_008);
    assert!(model.params.iter().all(|x| x.is_finite()));
    assert!(model.ignored_tensors.is_empty(), "{:?}", model.ignored_tensors);
    assert_eq!(model.tokenizer.vocab_size(), 49152);
}

#[test]
fn token_ids_and_decoded_text() {
    let (Some(cases), Some(model)) = (golden("smollm2_tokenizer.json"), model()) else { return };
    let cases = cases.as_array().unwrap().clone();
    assert!(!cases.is_empty());
    for case in &cases {
        let text = case["text"].as_str().unwrap();
        let expected = ids(&case["ids"]);
        assert_eq!(model.tokenizer.encode(text, true).unwrap(), expected, "{text:?}");
        assert_eq!(model.tokenizer.decode(&expected, false).unwrap(), case["decoded"].as_str().unwrap());
    }
}

#[test]
fn chats_render_and_encode_as_in_the_reference_library() {
    let (Some(golden), Some(model)) = (golden("smollm2_135m.json"), model()) else { return };
    let template = ChatTemplate::of_tokenizer(&model.tokenizer).unwrap();
    let pieces = TurnPieces::derive(&template, &model.tokenizer).unwrap();
    assert_eq!(pieces.mode, RenderingMode::Template);
    let chats = golden["chats"].as_array().unwrap();
    assert!(!chats.is_empty());
    for chat in chats {
        let messages: Vec<Message> = chat["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| Message::new(m["role"].as_str().unwrap(), m["content"].as_str().unwrap()))
            .collect();
        let text = template.render(&messages, true, &TemplateVariables::new()).unwrap();
        assert_eq!(text, chat["text"].as_str().unwrap());
        let expected = ids(&chat["ids"]);
        assert_eq!(model.tokenizer.encode(&text, true).unwrap(), expected);

        // The same conversation, appended turn by turn.
        let system = messages.first().filter(|m| m.role == "system").map(|m| m.content.as_str());
        let mut found = Vec::new();
        for message in messages.iter().filter(|m| m.role != "system") {
            match message.role.as_str() {
                "user" if found.is_empty() => {
                    found = pieces.opening(system, &message.content, &model.tokenizer).unwrap();
                }
                "user" => found.extend(pieces.next_user(&message.content, &model.tokenizer, true).unwrap()),
                _ => found.extend(pieces.response(&message.content, &model.tokenizer).unwrap()),
            }
        }
        assert_eq!(found, expected);
    }
}
