//! GGUF files: whole models, and files that are not what they claim.

use std::path::Path;

use ragen_model::config::Family;
use ragen_model::tokenizer::Tokenizer;
use ragen_model::weights::gguf::GgufHeader;
use ragen_model::weights::gguf_model;
use ragen_model::weights::{self, WeightsError};

use crate::Stream;
use crate::gguf_writer::{Writer, small_tokenizer, string, tiny_model};

fn parse(bytes: &[u8]) -> Result<GgufHeader, WeightsError> {
    GgufHeader::parse(bytes, bytes.len() as u64, Path::new("model.gguf"))
}

fn load(bytes: &[u8]) -> Result<weights::LoadedModel, WeightsError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    weights::load(&path)
}

#[test]
fn whole_models_of_every_family_load_in_hugging_face_order() {
    let tokenizer = small_tokenizer();
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        for version in [2, 3] {
            let (mut writer, config, params) = tiny_model(family, &tokenizer);
            writer.version = version;
            let model = load(&writer.bytes()).unwrap();
            assert_eq!(model.config, config);
            assert!(model.params == params, "{family:?}");
            assert!(model.ignored_tensors.is_empty());
            assert_eq!(model.chat_template.as_deref(), tokenizer.chat_template());
            let t = &model.tokenizer;
            assert_eq!(
                (t.vocab_size(), t.eos_token(), t.pad_token()),
                (tokenizer.vocab_size(), Some("<|im_end|>"), Some("<|endoftext|>"))
            );
            assert_eq!(t.encode("<|im_start|>", true).unwrap(), [1]);
            assert!(t.is_special(1) && !t.is_special(3));
            assert_eq!(t.encode(" up <think>", true).unwrap(), tokenizer.encode(" up <think>", true).unwrap());
        }
    }
}

#[test]
fn unsupported_models_are_refused() {
    let tokenizer = small_tokenizer();
    type Change = fn(&mut Writer);
    let changes: [(Change, &str); 4] = [
        (
            |w| {
                w.text("llama.rope.scaling.type", "yarn");
            },
            "rope scaling `yarn`",
        ),
        (
            |w| {
                w.u32("llama.expert_count", 8);
            },
            "mixture of experts",
        ),
        (
            |w| {
                w.tensor("rope_freqs.weight", &[2], &[1.0, 2.0]);
            },
            "rope_freqs",
        ),
        (
            |w| {
                w.tensor("blk.0.attn_q.bias", &[8], &[0.0; 8]);
            },
            "attn_q.bias",
        ),
    ];
    for (change, says) in changes {
        let (mut writer, ..) = tiny_model(Family::Llama, &tokenizer);
        change(&mut writer);
        let error = load(&writer.bytes()).unwrap_err();
        assert!(matches!(error, WeightsError::Unsupported { .. }) && error.to_string().contains(says), "{error}");
    }
    let (mut writer, ..) = tiny_model(Family::Llama, &tokenizer);
    writer.tensor("blk.0.other.weight", &[2], &[1.0, 2.0]);
    assert_eq!(load(&writer.bytes()).unwrap().ignored_tensors, ["blk.0.other.weight"]);
    for key in ["tokenizer.ggml.eot_token_id", "llama.attention.sliding_window", "llama.attention.key_length"] {
        let (mut writer, ..) = tiny_model(Family::Llama, &tokenizer);
        writer.text(key, "4");
        let error = load(&writer.bytes()).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("expected a non-negative integer"), "{error}");
    }
    let mut mamba = Writer::new(3);
    mamba.text("general.architecture", "mamba");
    assert!(load(&mamba.bytes()).unwrap_err().to_string().contains("architecture `mamba`"));
}

#[test]
fn malformed_headers_fail_fast() {
    let mut good = Writer::new(3);
    good.text("a", "b").tensor("w", &[2, 4], &[0.5; 8]);
    let bytes = good.bytes();
    assert_eq!(parse(&bytes).unwrap().tensors[0].shape, [2, 4]);

    let mut wrong = bytes.clone();
    wrong[0] = b'X';
    assert!(parse(&wrong).unwrap_err().to_string().contains("magic"));
    for (version, says) in [(1u32, "version 1"), (4, "version 4"), (3u32.swap_bytes(), "big-endian")] {
        wrong = bytes.clone();
        wrong[4..8].copy_from_slice(&version.to_le_bytes());
        assert!(parse(&wrong).unwrap_err().to_string().contains(says));
    }
    for (at, says) in [(8, "tensors"), (16, "metadata entries"), (24, "bytes of metadata key")] {
        for absurd in [u64::MAX, 1 << 40, 1 << 62] {
            wrong = bytes.clone();
            wrong[at..at + 8].copy_from_slice(&absurd.to_le_bytes());
            let error = parse(&wrong).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(&absurd.to_string()), "{error}");
        }
    }
    for length in 0..bytes.len() {
        assert!(parse(&bytes[..length]).is_err(), "cut at {length}");
    }
    // Arrays: absurd counts, absurd nesting, unknown types.
    let array = |kind: u32, n: u64| [&kind.to_le_bytes()[..], &n.to_le_bytes()].concat();
    let mut nested = Vec::new();
    (0..100).for_each(|_| nested.extend(array(9, 1)));
    for (value, says) in [
        (array(8, 1 << 50), "elements of `k`"),
        (array(4, u64::MAX), "elements of `k`"),
        (array(13, 1), "element type 13"),
        (nested, "nested"),
        ([&array(7, 1)[..], &[2]].concat(), "0 or 1"),
    ] {
        let mut w = Writer::new(3);
        w.entry("k", 9, &value);
        let error = parse(&w.bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let mut w = Writer::new(3);
    w.entry("k", 13, &[]);
    assert!(parse(&w.bytes()).unwrap_err().to_string().contains("value type 13"));
    let mut w = Writer::new(3);
    w.text("k", "1").text("k", "2");
    assert!(parse(&w.bytes()).unwrap_err().to_string().contains("twice"));
    let mut w = Writer::new(3);
    w.u32("general.alignment", 0);
    assert!(parse(&w.bytes()).unwrap_err().to_string().contains("general.alignment"));
    // A tensor with dimensions whose product overflows, and one with too many of them.
    for (dims, says) in [(vec![1u64 << 40, 1 << 40], "absurd"), (vec![1; 5], "5 dimensions")] {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend(1u64.to_le_bytes());
        out.extend(0u64.to_le_bytes());
        out.extend(string("w"));
        out.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|n| out.extend(n.to_le_bytes()));
        out.extend([0; 64]);
        assert!(parse(&out).unwrap_err().to_string().contains(says));
    }
}

/// Peak virtual memory of this process in KiB, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|l| l.starts_with("VmPeak"))?.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn mutated_files_never_panic_and_never_allocate_wildly() {
    let tokenizer = small_tokenizer();
    let (writer, ..) = tiny_model(Family::Llama, &tokenizer);
    let good = writer.bytes();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let before = peak_memory();
    let mut stream = Stream(5);
    let (mut refused, mut accepted) = (0, 0);
    for round in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..=stream.below(3) {
            // Half of the changes hit the first kilobyte, where counts and sizes are.
            let reach = if stream.below(2) == 0 { 1024 } else { bytes.len() };
            let at = stream.below(reach.min(bytes.len()).max(1));
            match stream.below(5) {
                0 => bytes[at] = stream.next() as u8,
                1 => bytes[at] ^= 1 << stream.below(8),
                2 => bytes.truncate(at.max(1)),
                3 => {
                    let extreme = [u64::MAX, 1 << 63, 1 << 40, 1 << 31, 0, 1 << 20][stream.below(6)].to_le_bytes();
                    let end = (at + 8).min(bytes.len());
                    bytes[at..end].copy_from_slice(&extreme[..end - at]);
                }
                _ => drop(bytes.splice(at..at, std::iter::repeat_n(0xff, stream.below(9)))),
            }
        }
        let Ok(header) = parse(&bytes) else {
            refused += 1;
            continue;
        };
        let _ = gguf_model::config(&header);
        if round % 8 == 0 {
            let _ = Tokenizer::from_gguf(&header);
            std::fs::write(&path, &bytes).unwrap();
            if weights::load(&path).is_ok() {
                accepted += 1;
            }
        }
    }
    assert!(refused > 500 && accepted > 5, "{refused} refused, {accepted} loaded");
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        // Other tests run beside this one and may load the real model; a wild allocation would be far beyond this.
        assert!(after - before < 8 << 20, "peak memory rose by {} MiB", (after - before) >> 10);
    }
}

#[test]
fn pre_tokenizers_cut_words_as_their_families_do() {
    let donor = small_tokenizer();
    let bytes: Vec<&str> = (8..264).map(|id| donor.piece(id).unwrap()).collect();
    let words = |pre: &str, text: &str| -> Result<Vec<String>, String> {
        let mut w = Writer::new(3);
        w.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
        w.texts("tokenizer.ggml.tokens", &bytes).texts::<&str>("tokenizer.ggml.merges", &[]);
        let t = Tokenizer::from_gguf(&parse(&w.bytes()).unwrap()).map_err(|e| e.to_string())?;
        let words = t.encode_words(text).unwrap();
        Ok(words.iter().map(|ids| t.decode(ids, false).unwrap()).collect())
    };
    let text = "It's 12345 x\n\n  ##P";
    for (pre, expected) in [
        ("gpt-2", vec!["It", "'s", " 12345", " x", "\n\n ", " ##", "P"]),
        ("smollm", vec!["It", "'s", " ", "1", "2", "3", "4", "5", " x", "\n\n ", " ##", "P"]),
        ("qwen2", vec!["It", "'s", " ", "1", "2", "3", "4", "5", " x", "\n\n", " ", " ##", "P"]),
        ("llama-bpe", vec!["It", "'s", " ", "123", "45", " x", "\n\n", " ", " ##", "P"]),
    ] {
        assert_eq!(words(pre, text).unwrap(), expected, "{pre}");
    }
    // Qwen2 composes accents, the others leave them as they are.
    assert_eq!(words("qwen2", "e\u{301}").unwrap().concat(), "\u{e9}");
    assert_eq!(words("llama-bpe", "e\u{301}").unwrap().concat(), "e\u{301}");
    assert!(words("tekken", "x").unwrap_err().contains("`tekken` is not supported"));
}

#[test]
fn inconsistent_vocabularies_are_refused() {
    let build = |tokens: &[&str], types: &[i32], merges: &[&str]| {
        let mut w = Writer::new(3);
        w.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
        w.texts("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
        w.texts("tokenizer.ggml.merges", merges);
        Tokenizer::from_gguf(&parse(&w.bytes()).unwrap()).map_err(|e| e.to_string())
    };
    assert!(build(&["a", "b", "ab"], &[1, 1, 1], &["a b"]).is_ok());
    assert!(build(&["a", "b", "ab"], &[1, 1], &["a b"]).unwrap_err().contains("3 tokens, but 2 token types"));
    assert!(build(&["a", "a"], &[1, 1], &[]).unwrap_err().contains("`a` appears twice"));
    assert!(build(&["a", "b"], &[1, 1], &["a b"]).unwrap_err().contains("merge `a b`"));
    assert!(build(&[], &[], &[]).unwrap_err().contains("empty"));
    let mut w = Writer::new(3);
    w.text("tokenizer.ggml.model", "llama");
    assert!(Tokenizer::from_gguf(&parse(&w.bytes()).unwrap()).unwrap_err().to_string().contains("found `llama`"));
}
