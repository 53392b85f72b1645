//! Reading and writing models: the tiny one there and back, and files that are damaged.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{arg, ragen};

/// The tiny model as a folder.
fn exported(root: &Path) -> PathBuf {
    let out = root.join("model");
    ragen(&["export", "tiny", &arg(&out)]).done();
    out
}

/// Changes `config.json` of a folder.
fn edit(model: &Path, change: impl FnOnce(&mut Value)) {
    let path = model.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(&path, config.to_string()).unwrap();
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn a_model_scores_the_same_after_export() {
    let root = tempfile::tempdir().unwrap();
    let out = exported(root.path());
    let score = |model: &str| ragen(&["score", model, "--ids", "5,6,7,8,300", "--json"]).json();
    let before = score("tiny");
    assert_eq!(before, score(&arg(&out)));
    assert_eq!(before["ids"], json!([5, 6, 7, 8, 300]));
    let (log_prob, entropy) = (floats(&before["log_prob"]), floats(&before["entropy"]));
    assert_eq!((log_prob.len(), entropy.len()), (4, 4));
    assert!(log_prob.iter().all(|l| *l < 0.0) && entropy.iter().all(|h| *h > 0.0 && *h <= 512f64.ln() + 1e-4));

    let half = root.path().join("half");
    ragen(&["export", "tiny", &arg(&half), "--dtype", "bf16", "--json"]).json();
    let size = |dir: &Path| std::fs::metadata(dir.join("model.safetensors")).unwrap().len();
    assert!(size(&half) * 10 < size(&out) * 6);
    for (a, b) in log_prob.iter().zip(floats(&score(&arg(&half))["log_prob"])) {
        assert!((a - b).abs() < 0.1 && *a != b, "{a} {b}");
    }
    ragen(&["export", "tiny", &arg(&out)]).refused(&["there already", "another OUT"]);
}

#[test]
fn text_is_scored_as_its_tokens() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("text.txt");
    std::fs::write(&file, "Up || Left").unwrap();
    let by_text = ragen(&["score", "tiny", "--text", "Up || Left", "--json"]).json();
    assert_eq!(ragen(&["score", "tiny", "--file", &arg(&file), "--json"]).json(), by_text);
    let ids: Vec<String> = by_text["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(ragen(&["score", "tiny", "--ids", &ids.join(","), "--json"]).json(), by_text);
    let hot = ragen(&["score", "tiny", "--ids", &ids.join(","), "--temperature", "2", "--json"]).json();
    assert!(floats(&hot["entropy"])[0] > floats(&by_text["entropy"])[0]);
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    ragen(&["score", "tiny", "--file", &arg(&file)]).refused(&["text.txt", "UTF-8"]);
}

#[test]
fn generation_is_reproducible_and_recorded_log_probabilities_are_the_scored_ones() {
    let generate = |seed: &str, threads: &str| {
        let arguments = ["generate", "tiny", "--prompt", "Up", "-n", "2", "--max-new-tokens", "6", "--json", "--seed"];
        ragen(&[&arguments[..], &[seed, "--threads", threads]].concat()).json()
    };
    let first = generate("1", "1");
    assert_eq!(first, generate("1", "2"));
    assert_ne!(first["answers"], generate("2", "1")["answers"]);
    assert_ne!(first["answers"][0]["ids"], first["answers"][1]["ids"]);

    let list = |value: &Value| value.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
    let ids = [list(&first["prompt_ids"]), list(&first["answers"][0]["ids"])].concat().join(",");
    let scored = ragen(&["score", "tiny", "--seed", "1", "--ids", &ids, "--json"]).json();
    let recorded = list(&first["answers"][0]["log_probs"]);
    let scored = list(&scored["log_prob"]);
    assert_eq!(recorded, scored[scored.len() - recorded.len()..]);

    // The chat template stands around the prompt unless it is left out.
    let raw = ragen(&["generate", "tiny", "--prompt", "Up", "--raw", "--max-new-tokens", "1", "--json"]).json();
    assert!(raw["prompt_ids"].as_array().unwrap().len() < first["prompt_ids"].as_array().unwrap().len());
}

#[test]
fn truncated_weights() {
    let root = tempfile::tempdir().unwrap();
    let model = exported(root.path());
    let weights = model.join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    for length in [bytes.len() - 1, bytes.len() / 2, 100, 8, 3, 0] {
        std::fs::write(&weights, &bytes[..length]).unwrap();
        ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&["model.safetensors"]);
    }
    std::fs::remove_file(&weights).unwrap();
    ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&["model"]);
}

#[test]
fn weights_that_are_no_numbers() {
    let root = tempfile::tempdir().unwrap();
    let model = exported(root.path());
    let file = model.join("model.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes[end - 8..end - 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    std::fs::write(&file, bytes).unwrap();
    for command in [&["eval"][..], &["score", "--text", "a"]] {
        let ran = ragen(&[&command[..1], &[&*arg(&model)], &command[1..]].concat());
        ran.refused(&["model.safetensors", "tensor `", "found 2 that are NaN or infinite"]);
    }
}

#[test]
fn an_unknown_architecture_and_a_wrong_shape() {
    let root = tempfile::tempdir().unwrap();
    let model = exported(root.path());
    edit(&model, |config| config["intermediate_size"] = json!(400));
    ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&[
        "model.safetensors",
        "expected shape [400, 128]",
        "[384, 128]",
    ]);
    edit(&model, |config| config["intermediate_size"] = json!(384));
    edit(&model, |config| config["num_hidden_layers"] = json!(9));
    ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&["layers.4", "missing"]);
    edit(&model, |config| config["hidden_size"] = json!(-3));
    ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&["config.json", "hidden_size"]);
    edit(&model, |config| {
        config["model_type"] = json!("mamba");
        config["architectures"] = json!(["MambaForCausalLM"]);
    });
    ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&["config.json", "MambaForCausalLM", "Qwen2ForCausalLM"]);
    std::fs::write(model.join("config.json"), "{").unwrap();
    ragen(&["score", &arg(&model), "--ids", "1,2"]).refused(&["config.json"]);
}

#[test]
fn files_beside_the_weights_are_checked_as_well() {
    let root = tempfile::tempdir().unwrap();
    let model = exported(root.path());
    let score = || ragen(&["score", &arg(&model), "--ids", "1,2"]);
    for (eos, found) in [(json!("<|im_end|>"), "<|im_end|>"), (json!([1, -1]), "-1"), (json!(1.5), "1.5")] {
        std::fs::write(model.join("generation_config.json"), json!({ "eos_token_id": eos }).to_string()).unwrap();
        score().refused(&["generation_config.json", "`eos_token_id`", "expected a token id", found]);
    }
    std::fs::remove_file(model.join("generation_config.json")).unwrap();
    score().done();
    for (file, text) in [("tokenizer.json", "{"), ("config.json", "{")] {
        let before = std::fs::read(model.join(file)).unwrap();
        std::fs::write(model.join(file), text).unwrap();
        let ran = score();
        ran.refused(&[file]);
        assert_eq!(ran.stderr.matches(&arg(&model)).count(), 1, "the path once: {}", ran.stderr);
        std::fs::write(model.join(file), before).unwrap();
    }
    std::fs::remove_file(model.join("config.json")).unwrap();
    let ran = score();
    ran.refused(&["config.json"]);
    assert_eq!(ran.stderr.matches(&arg(&model)).count(), 1, "the path once: {}", ran.stderr);
}

#[test]
fn absurd_lengths_in_a_gguf_header() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("model.gguf");
    let header = |tensors: u64, entries: u64, rest: &[u8]| {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes.extend(rest);
        bytes
    };
    let key_of_endless_length = u64::MAX.to_le_bytes();
    // A key `a` whose value is an array (type 9) of strings (type 8) without end.
    let mut endless_array = 1u64.to_le_bytes().to_vec();
    endless_array.push(b'a');
    endless_array.extend(9u32.to_le_bytes());
    endless_array.extend(8u32.to_le_bytes());
    endless_array.extend((u64::MAX / 2).to_le_bytes());
    for bytes in [
        header(u64::MAX, u64::MAX, &[]),
        header(1 << 40, 0, &[0; 64]),
        header(0, 1, &key_of_endless_length),
        header(0, 1, &endless_array),
        b"GGUF\x63\0\0\0".to_vec(),
        b"GGUF".to_vec(),
        b"something else".to_vec(),
    ] {
        std::fs::write(&path, bytes).unwrap();
        ragen(&["generate", &arg(&path), "--prompt", "x"]).refused(&["model.gguf"]);
    }
}

#[test]
fn the_tokenizer_can_be_trained_anew() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("tokenizer");
    let report = ragen(&["tokenizer", "train", "--out", &arg(&out), "--json"]).json();
    assert_eq!(report["vocab_size"], json!(512));
    assert!(out.join("tokenizer.json").is_file() && out.join("tokenizer_config.json").is_file());
}

#[test]
fn training_steps_are_measured() {
    let ran =
        ragen(&["bench", "train-step", "--model", "tiny", "--batch", "2", "--len", "16", "--steps", "2", "--json"]);
    let lines: Vec<Value> = ran.done().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[..2].iter().all(|line| line["tokens_per_s"].as_f64().unwrap() > 0.0));
    assert!(lines[1]["loss"].as_f64().unwrap() < lines[0]["loss"].as_f64().unwrap());
    if cfg!(target_os = "linux") {
        assert!(lines[2]["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    }
}
