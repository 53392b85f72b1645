//! Writing weights: safetensors files and whole Hugging Face folders.
//!
//! What is here: a streaming writer (values are converted a little at a time), and [`save_model`].
//! What is not here: optimiser state and training progress.
//!
//! Every file is written to a temporary name, flushed to the disk and renamed: a kill leaves the old file or the new.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use half::{bf16, f16};
use serde_json::{Map, Value, json};

use super::WeightsError;
use super::layout::{param_ranges, param_specs};
use crate::config::ModelConfig;
use crate::tokenizer::{Tokenizer, write_atomic};

/// Type of the values in a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SaveType {
    /// Single precision: exact.
    #[default]
    F32,
    /// Half precision, rounded to nearest even.
    F16,
    /// bfloat16, rounded to nearest even.
    Bf16,
}

impl SaveType {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
        }
    }

    fn torch_name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
        }
    }

    fn bytes(self) -> usize {
        if self == Self::F32 { 4 } else { 2 }
    }
}

/// A named tensor to write.
#[derive(Clone, Debug)]
pub struct NamedTensor<'a> {
    /// Name in the file.
    pub name: &'a str,
    /// Row-major shape.
    pub shape: &'a [usize],
    /// Values; as many as the shape says.
    pub values: &'a [f32],
}

/// Writes a safetensors file.
///
/// # Errors
/// [`WeightsError::Malformed`] when a shape and its values disagree, [`WeightsError::Io`] when writing fails; the file
/// at `path`, if there was one, is then untouched.
pub fn write_safetensors(
    path: &Path,
    tensors: &[NamedTensor<'_>],
    save_type: SaveType,
    metadata: &[(&str, &str)],
) -> Result<(), WeightsError> {
    let mut header = Map::new();
    let mut meta = Map::new();
    for (k, v) in metadata {
        meta.insert((*k).to_string(), json!(v));
    }
    header.insert("__metadata__".into(), Value::Object(meta));
    let mut offset = 0usize;
    for t in tensors {
        let values: usize = t.shape.iter().product();
        if values != t.values.len() {
            return Err(WeightsError::malformed(
                path,
                "safetensors",
                format!("tensor `{}`: shape {:?} needs {values} values, got {}", t.name, t.shape, t.values.len()),
            ));
        }
        let end = offset + values * save_type.bytes();
        header.insert(
            t.name.to_string(),
            json!({"dtype": save_type.name(), "shape": t.shape, "data_offsets": [offset, end]}),
        );
        offset = end;
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    // Padded with spaces so that the data starts at a multiple of eight bytes, as other readers expect.
    text.resize(text.len().next_multiple_of(8), b' ');

    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
        out.write_all(&(text.len() as u64).to_le_bytes())?;
        out.write_all(&text)?;
        let mut bytes = Vec::new();
        for t in tensors {
            for chunk in t.values.chunks(1 << 16) {
                bytes.clear();
                match save_type {
                    SaveType::F32 => bytes.extend(chunk.iter().flat_map(|x| x.to_le_bytes())),
                    SaveType::F16 => bytes.extend(chunk.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes())),
                    SaveType::Bf16 => bytes.extend(chunk.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes())),
                }
                out.write_all(&bytes)?;
            }
        }
        out.into_inner().map_err(|e| e.into_error())?.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|source| {
        // What is left of a failed attempt only takes space; the error that matters is the first one.
        let _ = std::fs::remove_file(&temporary);
        WeightsError::Io { path: path.to_path_buf(), source }
    })
}

/// Writes a model as a Hugging Face folder: `config.json`, `model.safetensors`, the tokenizer's files and
/// `generation_config.json`.
///
/// # Shapes
/// `params`: all parameters in the order of [`param_specs`].
///
/// # Errors
/// [`WeightsError`] when `params` does not fit the configuration or writing fails.
pub fn save_model(
    dir: &Path,
    config: &ModelConfig,
    params: &[f32],
    tokenizer: Option<&Tokenizer>,
    generation_config: Option<&Value>,
    save_type: SaveType,
) -> Result<(), WeightsError> {
    std::fs::create_dir_all(dir).map_err(WeightsError::io(dir))?;
    let specs = param_specs(config);
    let ranges = param_ranges(&specs);
    let total = ranges.last().map_or(0, |r| r.range.end);
    let weights = dir.join("model.safetensors");
    if params.len() != total {
        return Err(WeightsError::malformed(
            &weights,
            "safetensors",
            format!("the configuration has {total} parameters, got {}", params.len()),
        ));
    }
    let tensors: Vec<NamedTensor<'_>> = ranges
        .iter()
        .map(|r| NamedTensor { name: &r.name, shape: &r.shape, values: &params[r.range.clone()] })
        .collect();
    write_safetensors(&weights, &tensors, save_type, &[("format", "pt")])?;

    let mut config_json = config.to_json();
    if let Some(map) = config_json.as_object_mut() {
        map.insert("torch_dtype".into(), json!(save_type.torch_name()));
    }
    let mut files = vec![("config.json", config_json)];
    let generation = generation_config.cloned().unwrap_or_else(|| {
        let mut map = Map::new();
        if let Some(id) = config.bos_token_id {
            map.insert("bos_token_id".into(), json!(id));
        }
        match config.eos_token_ids[..] {
            [] => {}
            [id] => drop(map.insert("eos_token_id".into(), json!(id))),
            _ => drop(map.insert("eos_token_id".into(), json!(config.eos_token_ids))),
        }
        if let Some(id) = config.pad_token_id {
            map.insert("pad_token_id".into(), json!(id));
        }
        Value::Object(map)
    });
    files.push(("generation_config.json", generation));
    for (name, value) in files {
        let path = dir.join(name);
        write_atomic(&path, format!("{value:#}\n").as_bytes()).map_err(WeightsError::io(&path))?;
    }
    if let Some(tokenizer) = tokenizer {
        tokenizer.save(dir).map_err(|source| WeightsError::Tokenizer { path: dir.to_path_buf(), source })?;
    }
    Ok(())
}
