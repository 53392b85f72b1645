//! Hugging Face folders: round trips, shards, and files that are not what they claim.

use std::path::Path;

use ragen_model::config::Family;
use ragen_model::weights::layout::{param_ranges, param_specs};
use ragen_model::weights::safetensors::read_header;
use ragen_model::weights::save::{NamedTensor, SaveType, save_model, write_safetensors};
use ragen_model::weights::{self, WeightsError, load_config, load_params};

use crate::gguf_writer::small_tokenizer;
use crate::{Stream, fixture, tiny_config};

fn values(n: usize) -> Vec<f32> {
    let mut stream = Stream(3);
    (0..n).map(|_| stream.coarse()).collect()
}

fn parameters(family: Family) -> (ragen_model::config::ModelConfig, Vec<f32>) {
    let config = tiny_config(family, 300);
    let n = param_ranges(&param_specs(&config)).last().unwrap().range.end;
    (config, values(n))
}

#[test]
fn saved_parameters_load_back_bit_for_bit() {
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        for (save_type, tied) in [(SaveType::F32, true), (SaveType::F16, false), (SaveType::Bf16, true)] {
            let mut config = tiny_config(family, 300);
            config.tie_word_embeddings = tied;
            let params = values(param_ranges(&param_specs(&config)).last().unwrap().range.end);
            let dir = tempfile::tempdir().unwrap();
            save_model(dir.path(), &config, &params, None, None, save_type).unwrap();
            assert_eq!(load_config(dir.path()).unwrap(), config);
            let loaded = load_params(dir.path(), &config).unwrap();
            assert!(loaded.params == params, "{family:?} {save_type:?}");
            assert!(loaded.ignored_tensors.is_empty());
            // No temporary files stay behind.
            assert!(
                std::fs::read_dir(dir.path())
                    .unwrap()
                    .all(|f| { !f.unwrap().file_name().to_string_lossy().contains("tmp") })
            );
            // The reference reader agrees about names, shapes and places.
            let bytes = std::fs::read(dir.path().join("model.safetensors")).unwrap();
            let reference = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
            assert_eq!(reference.len(), param_specs(&config).len());
            for spec in param_specs(&config) {
                assert_eq!(reference.tensor(&spec.name).unwrap().shape(), spec.shape);
            }
        }
    }
}

#[test]
fn committed_models_of_the_reference_library_load() {
    for name in ["tiny_llama", "tiny_llama_tied", "tiny_qwen2", "tiny_qwen3"] {
        let dir = fixture(name);
        let config = load_config(&dir).unwrap();
        let loaded = load_params(&dir, &config).unwrap();
        assert!(loaded.ignored_tensors.is_empty(), "{name}: {:?}", loaded.ignored_tensors);
        assert!(loaded.params.iter().all(|x| x.is_finite()));
        assert!(loaded.ranges.iter().all(|r| loaded.params[r.range.clone()].iter().any(|x| *x != 0.0)), "{name}");
    }
}

#[test]
fn extra_tensors_are_listed_and_missing_or_misshapen_ones_refused() {
    let (config, params) = parameters(Family::Llama);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let ranges = param_ranges(&param_specs(&config));
    let mut tensors: Vec<NamedTensor<'_>> = ranges
        .iter()
        .map(|r| NamedTensor { name: &r.name, shape: &r.shape, values: &params[r.range.clone()] })
        .collect();
    let extra = [1.0f32, 2.0];
    tensors.push(NamedTensor { name: "model.layers.0.self_attn.rotary_emb.inv_freq", shape: &[2], values: &extra });
    write_safetensors(&path, &tensors, SaveType::F32, &[]).unwrap();
    let loaded = load_params(dir.path(), &config).unwrap();
    assert_eq!(loaded.ignored_tensors, ["model.layers.0.self_attn.rotary_emb.inv_freq"]);
    assert_eq!(read_header(&path).unwrap().read(tensors[0].name).unwrap(), tensors[0].values);

    let missing: Vec<_> = tensors.iter().filter(|t| t.name != "model.norm.weight").cloned().collect();
    write_safetensors(&path, &missing, SaveType::F32, &[]).unwrap();
    let error = load_params(dir.path(), &config).unwrap_err();
    assert!(matches!(&error, WeightsError::Missing { key, shape, .. } if key == "model.norm.weight" && shape == &[8]));

    let transposed = [12usize, 8];
    let name = "model.layers.1.mlp.down_proj.weight";
    let wrong: Vec<_> = tensors
        .iter()
        .map(|t| if t.name == name { NamedTensor { shape: &transposed, ..t.clone() } } else { t.clone() })
        .collect();
    write_safetensors(&path, &wrong, SaveType::F32, &[]).unwrap();
    let error = load_params(dir.path(), &config).unwrap_err().to_string();
    for part in [name, "[8, 12]", "[12, 8]", "model.safetensors"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(
        write_safetensors(&path, &[NamedTensor { shape: &[3], ..tensors[0].clone() }], SaveType::F32, &[]).is_err()
    );
}

/// Writes a file with the given header text and number of data bytes.
fn raw(path: &Path, header: &str, data: usize) {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(std::iter::repeat_n(0u8, data));
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn malformed_files_are_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    for (header, data, says) in [
        (entry("F32", "[2]", "[0,8]"), 4, "truncated"),
        (entry("F32", "[2]", "[0,8]"), 12, "16 bytes"),
        (entry("F32", "[3]", "[0,8]"), 8, "takes 12 bytes"),
        (entry("F32", "[2]", "[8,0]"), 8, "outside"),
        (entry("F32", "[2]", "[0]"), 8, "two `data_offsets`"),
        (entry("F32", "[-2]", "[0,8]"), 8, "non-negative"),
        (entry("F32", "[4294967296,4294967296]", "[0,8]"), 8, "overflows"),
        ("{\"w\":5}".to_string(), 0, "no `dtype`"),
        ("not json".to_string(), 0, "not a JSON object"),
    ] {
        raw(&path, &header, data);
        let error = read_header(&path).unwrap_err().to_string();
        let says = says.replace("16 bytes", &format!("has {} bytes", 8 + header.len() + 12));
        assert!(error.contains(&says) && error.contains("model.safetensors"), "{error}");
    }
    std::fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
    assert!(read_header(&path).unwrap_err().to_string().contains("claims 18446744073709551615 bytes"));
    std::fs::write(&path, b"abc").unwrap();
    assert!(read_header(&path).unwrap_err().to_string().contains("found 3"));

    // A type that is not read is an error only when the model needs the tensor.
    let (config, _) = parameters(Family::Llama);
    raw(&path, &entry("I64", "[300,8]", "[0,19200]").replace("\"w\"", "\"model.embed_tokens.weight\""), 19200);
    let error = load_params(dir.path(), &config).unwrap_err();
    assert!(matches!(&error, WeightsError::Type { found, .. } if found == "I64"), "{error}");
}

#[test]
fn shards_must_agree_with_their_index() {
    let dir = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(fixture("tiny_qwen3")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    let config = load_config(dir.path()).unwrap();
    load_params(dir.path(), &config).unwrap();
    let index = dir.path().join("model.safetensors.index.json");
    let good = std::fs::read_to_string(&index).unwrap();

    std::fs::write(&index, good.replace("model-00002-of-00002", "../outside")).unwrap();
    assert!(load_params(dir.path(), &config).unwrap_err().to_string().contains("plain file name"));
    std::fs::write(&index, good.replacen("model-00002-of-00002", "model-00001-of-00002", 1)).unwrap();
    assert!(load_params(dir.path(), &config).unwrap_err().to_string().contains("should be in"));
    std::fs::write(&index, good.replacen("model.norm.weight", "model.other.weight", 1)).unwrap();
    assert!(load_params(dir.path(), &config).unwrap_err().to_string().contains("none of the shards"));
    std::fs::write(&index, "{}").unwrap();
    assert!(load_params(dir.path(), &config).unwrap_err().to_string().contains("weight_map"));
    std::fs::remove_file(&index).unwrap();
    assert!(load_params(dir.path(), &config).unwrap_err().to_string().contains("index.json"));
    assert!(matches!(weights::load(&dir.path().join("nowhere")), Err(WeightsError::Io { .. })));
    assert!(matches!(weights::load(&dir.path().join("config.json")), Err(WeightsError::NotAModel { .. })));
}

#[test]
fn a_whole_folder_loads_back_with_its_tokenizer() {
    let tokenizer = small_tokenizer();
    let config = tiny_config(Family::Qwen3, tokenizer.vocab_size() + 5);
    let params = values(param_ranges(&param_specs(&config)).last().unwrap().range.end);
    let dir = tempfile::tempdir().unwrap();
    let generation = serde_json::json!({"eos_token_id": [2, 0], "temperature": 0.6});
    save_model(dir.path(), &config, &params, Some(&tokenizer), Some(&generation), SaveType::F32).unwrap();
    let model = weights::load(dir.path()).unwrap();
    assert!(model.config == config && model.params == params);
    assert_eq!(model.generation_config, Some(generation));
    assert_eq!(model.eos_ids(), [2, 0]);
    assert_eq!(model.chat_template.as_deref(), tokenizer.chat_template());
    assert_eq!(model.tokenizer.encode("up√", false).unwrap(), tokenizer.encode("up√", false).unwrap());

    // A tokenizer with more ids than the embedding has rows would read outside of it.
    let small = tiny_config(Family::Qwen3, tokenizer.vocab_size() - 1);
    let params = values(param_ranges(&param_specs(&small)).last().unwrap().range.end);
    save_model(dir.path(), &small, &params, Some(&tokenizer), None, SaveType::F32).unwrap();
    let error = weights::load(dir.path()).unwrap_err().to_string();
    assert!(error.contains(&format!("vocab_size is {}", small.vocab_size)), "{error}");
}

#[test]
fn mutated_headers_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let tensors = [
        NamedTensor { name: "a", shape: &[2, 3], values: &[0.5; 6] },
        NamedTensor { name: "b", shape: &[4], values: &[1.5; 4] },
    ];
    write_safetensors(&path, &tensors, SaveType::F32, &[("format", "pt")]).unwrap();
    let good = std::fs::read(&path).unwrap();
    let mut stream = Stream(9);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..2000 {
        let mut bytes = good.clone();
        let at = stream.below(bytes.len() - 40);
        match stream.below(4) {
            0 => bytes[at] = stream.next() as u8,
            1 => bytes[at] = b'0' + stream.below(10) as u8,
            2 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, *b"99999999999999999999")),
        }
        std::fs::write(&path, &bytes).unwrap();
        match read_header(&path) {
            Ok(header) => {
                accepted += 1;
                for t in &header.tensors {
                    let _ = header.read(&t.name);
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 500 && accepted > 50, "{refused} refused, {accepted} accepted");
}
