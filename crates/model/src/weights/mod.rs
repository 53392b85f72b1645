//! Weights on disk: Hugging Face folders and GGUF files in, Hugging Face folders out.
//!
//! What is here: [`load`], which turns a path into a configuration, one flat buffer of `f32` parameters in the order of
//! [`layout::param_specs`], a tokenizer and a chat template; and the readers and writers behind it.
//! What is not here: the forward pass, optimiser state, downloads.
//!
//! Files are read with positioned reads into a small buffer and converted on the way, so a model needs its `f32` size in
//! memory and not more, and a file that shrinks while it is read is an error and not a signal.

pub mod gguf;
pub mod gguf_model;
pub mod layout;
pub mod quant;
pub mod safetensors;
pub mod save;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::config::{ConfigError, ModelConfig};
use crate::tokenizer::{Tokenizer, TokenizerError};
use layout::{ParamRange, param_ranges, param_specs};
use quant::DType;

/// A model read from disk.
#[derive(Debug)]
pub struct LoadedModel {
    /// Sizes and switches.
    pub config: ModelConfig,
    /// All parameters, one after the other, in the order of [`layout::param_specs`].
    pub params: Vec<f32>,
    /// Name, place and shape of each parameter in `params`.
    pub ranges: Vec<ParamRange>,
    /// The tokenizer that belongs to the model.
    pub tokenizer: Tokenizer,
    /// Jinja source of the chat template, if the model has one.
    pub chat_template: Option<String>,
    /// Contents of `generation_config.json`, if there is one.
    pub generation_config: Option<serde_json::Value>,
    /// Tensors in the files that the model has no place for. Each was also reported as a warning.
    pub ignored_tensors: Vec<String>,
}

impl LoadedModel {
    /// Every token that ends a sequence by the configuration, the generation configuration or the tokenizer.
    pub fn eos_ids(&self) -> Vec<u32> {
        let generation = self.generation_config.as_ref().map(|g| ids_of(g.get("eos_token_id"))).unwrap_or_default();
        let mut ids = self.config.eos_token_ids.clone();
        for id in generation.into_iter().chain(self.tokenizer.eos_ids()) {
            if !ids.contains(&id) && (id as usize) < self.config.vocab_size {
                ids.push(id);
            }
        }
        ids
    }
}

/// Parameters read from disk, without a tokenizer.
#[derive(Debug)]
pub struct LoadedParams {
    /// All parameters, in the order of [`layout::param_specs`].
    pub params: Vec<f32>,
    /// Name, place and shape of each parameter.
    pub ranges: Vec<ParamRange>,
    /// Tensors in the files that the model has no place for.
    pub ignored_tensors: Vec<String>,
}

/// An error's text, with the path in front unless it names it already.
fn naming(path: &Path, error: &dyn std::error::Error) -> String {
    let (path, text) = (path.display().to_string(), error.to_string());
    if text.contains(&path) { text } else { format!("{path}: {text}") }
}

/// Why weights could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The path is neither a model folder nor a GGUF file.
    #[error("{}: {why}", path.display())]
    NotAModel {
        /// The path.
        path: PathBuf,
        /// What was looked for.
        why: String,
    },
    /// The file breaks its format.
    #[error("{}: malformed {format} file: {what}", path.display())]
    Malformed {
        /// File.
        path: PathBuf,
        /// `safetensors`, `GGUF`, …
        format: &'static str,
        /// What was expected and what was found.
        what: String,
    },
    /// The file is valid but asks for something that is not implemented.
    #[error("{}: {what} is not supported; {supported}", path.display())]
    Unsupported {
        /// File.
        path: PathBuf,
        /// What the file has.
        what: String,
        /// What would work.
        supported: String,
    },
    /// A parameter is not in the files.
    #[error("{}: tensor `{key}` of shape {shape:?} is missing", path.display())]
    Missing {
        /// File or folder.
        path: PathBuf,
        /// Name looked for.
        key: String,
        /// Shape it should have.
        shape: Vec<usize>,
    },
    /// A parameter has another shape than the configuration says.
    #[error("{}: tensor `{key}`: expected shape {expected:?}, found {found:?}", path.display())]
    Shape {
        /// File.
        path: PathBuf,
        /// Name.
        key: String,
        /// Shape by the configuration.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A parameter is stored in a type that is not read.
    #[error("{}: tensor `{key}` has type {found}; supported are {supported}", path.display())]
    Type {
        /// File.
        path: PathBuf,
        /// Name.
        key: String,
        /// Type in the file.
        found: String,
        /// Types that are read.
        supported: &'static str,
    },
    /// A parameter is no number.
    #[error(
        "{}: tensor `{key}`: expected finite values, found {count} that are NaN or infinite; the training that wrote it \
         went astray or the file is damaged",
        path.display()
    )]
    NotFinite {
        /// File.
        path: PathBuf,
        /// Name.
        key: String,
        /// How many.
        count: usize,
    },
    /// The configuration is wrong.
    #[error("{}: {source}", path.display())]
    Config {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// The tokenizer is missing or wrong.
    #[error("{}", naming(path, source))]
    Tokenizer {
        /// File or folder.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenizerError,
    },
}

impl WeightsError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn malformed(path: &Path, format: &'static str, what: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_path_buf(), format, what: what.into() }
    }
}

/// Loads a model from a Hugging Face folder or a `.gguf` file.
///
/// # Errors
/// [`WeightsError`], naming the file and, where it applies, the key with what was expected and found.
pub fn load(path: &Path) -> Result<LoadedModel, WeightsError> {
    let meta = std::fs::metadata(path).map_err(WeightsError::io(path))?;
    if meta.is_dir() {
        load_folder(path)
    } else if gguf::has_magic(path)? {
        gguf_model::load(path)
    } else {
        Err(WeightsError::NotAModel {
            path: path.to_path_buf(),
            why: "expected a folder with config.json and model.safetensors, or a GGUF file".into(),
        })
    }
}

/// Loads a Hugging Face folder: `config.json`, `model.safetensors` (or shards with their index), `tokenizer.json`, and,
/// where present, the chat template and `generation_config.json`.
///
/// # Errors
/// As [`load`].
pub fn load_folder(dir: &Path) -> Result<LoadedModel, WeightsError> {
    let mut config = load_config(dir)?;
    let tokenizer =
        Tokenizer::from_dir(dir).map_err(|source| WeightsError::Tokenizer { path: dir.to_path_buf(), source })?;
    check_vocabulary(dir, &config, &tokenizer)?;
    let generation_path = dir.join("generation_config.json");
    let generation_config = read_optional_json(&generation_path)?;
    check_generation_config(&generation_path, generation_config.as_ref())?;
    if config.eos_token_ids.is_empty() {
        config.eos_token_ids = generation_config
            .as_ref()
            .map(|g| ids_of(g.get("eos_token_id")))
            .unwrap_or_default()
            .into_iter()
            .filter(|id| (*id as usize) < config.vocab_size)
            .collect();
    }
    let LoadedParams { params, ranges, ignored_tensors } = load_params(dir, &config)?;
    Ok(LoadedModel {
        chat_template: tokenizer.chat_template().map(str::to_string),
        config,
        params,
        ranges,
        tokenizer,
        generation_config,
        ignored_tensors,
    })
}

/// Every id of the tokenizer must have a row in the embedding. Spare rows are common and harmless.
pub(crate) fn check_vocabulary(path: &Path, config: &ModelConfig, tokenizer: &Tokenizer) -> Result<(), WeightsError> {
    if tokenizer.vocab_size() <= config.vocab_size {
        return Ok(());
    }
    let what = format!(
        "the tokenizer has ids up to {}, but the model's vocab_size is {}; they do not belong together",
        tokenizer.vocab_size() - 1,
        config.vocab_size
    );
    Err(WeightsError::Tokenizer { path: path.to_path_buf(), source: TokenizerError::invalid("vocabulary", what) })
}

/// Reads `config.json` of a folder.
///
/// # Errors
/// [`WeightsError::Config`].
pub fn load_config(dir: &Path) -> Result<ModelConfig, WeightsError> {
    let path = dir.join("config.json");
    ModelConfig::from_file(&path).map_err(|source| WeightsError::Config { path, source })
}

/// Loads only the parameters of a Hugging Face folder.
///
/// # Errors
/// As [`load`].
pub fn load_params(dir: &Path, config: &ModelConfig) -> Result<LoadedParams, WeightsError> {
    let shards = safetensors::open_folder(dir)?;
    let mut tensors = Vec::new();
    for (file, shard) in shards.iter().enumerate() {
        for t in &shard.tensors {
            tensors.push(SourceTensor {
                file,
                name: t.name.clone(),
                dtype: t.dtype.clone(),
                shape: t.shape.clone(),
                offset: t.offset,
            });
        }
    }
    let paths: Vec<&Path> = shards.iter().map(|s| s.path.as_path()).collect();
    read_params(dir, &paths, &tensors, config)
}

/// A tensor in one of several files, already under its Hugging Face name and with its row-major shape.
pub(crate) struct SourceTensor {
    pub file: usize,
    pub name: String,
    /// The type, or the name of one that is not read.
    pub dtype: Result<DType, String>,
    pub shape: Vec<usize>,
    /// Absolute position of the first byte in the file; the readers have checked that the tensor ends within it.
    pub offset: u64,
}

/// Checks every parameter against the tensors at hand before anything is allocated, then reads them all.
pub(crate) fn read_params(
    origin: &Path,
    paths: &[&Path],
    tensors: &[SourceTensor],
    config: &ModelConfig,
) -> Result<LoadedParams, WeightsError> {
    let specs = param_specs(config);
    let by_name: std::collections::HashMap<&str, &SourceTensor> =
        tensors.iter().map(|t| (t.name.as_str(), t)).collect();
    let file_of = |t: &SourceTensor| paths.get(t.file).copied().unwrap_or(origin);

    let mut plan = Vec::with_capacity(specs.len());
    for spec in &specs {
        let tensor = *by_name.get(spec.name.as_str()).ok_or_else(|| WeightsError::Missing {
            path: origin.to_path_buf(),
            key: spec.name.clone(),
            shape: spec.shape.clone(),
        })?;
        if tensor.shape != spec.shape {
            return Err(WeightsError::Shape {
                path: file_of(tensor).to_path_buf(),
                key: spec.name.clone(),
                expected: spec.shape.clone(),
                found: tensor.shape.clone(),
            });
        }
        let dtype = tensor.dtype.clone().map_err(|found| WeightsError::Type {
            path: file_of(tensor).to_path_buf(),
            key: spec.name.clone(),
            found,
            supported: quant::SUPPORTED,
        })?;
        plan.push((tensor, dtype));
    }
    let known: std::collections::HashSet<&str> = specs.iter().map(|s| s.name.as_str()).collect();
    let mut ignored_tensors: Vec<String> =
        tensors.iter().filter(|t| !known.contains(t.name.as_str())).map(|t| t.name.clone()).collect();
    ignored_tensors.sort();
    for name in &ignored_tensors {
        tracing::warn!(path = %origin.display(), tensor = %name, "tensor is not part of the model and is ignored");
    }

    let ranges = param_ranges(&specs);
    let total = ranges.last().map_or(0, |r| r.range.end);
    let mut params = vec![0.0f32; total];
    let mut files: Vec<Option<File>> = paths.iter().map(|_| None).collect();
    for ((tensor, dtype), range) in plan.into_iter().zip(&ranges) {
        let path = file_of(tensor);
        let slot = files.get_mut(tensor.file).ok_or_else(|| WeightsError::NotAModel {
            path: origin.to_path_buf(),
            why: "tensor refers to no file".into(),
        })?;
        let file = match slot {
            Some(file) => file,
            None => slot.insert(File::open(path).map_err(WeightsError::io(path))?),
        };
        let out = &mut params[range.range.clone()];
        read_tensor(file, tensor.offset, dtype, out).map_err(WeightsError::io(path))?;
        let count = out.iter().filter(|value| !value.is_finite()).count();
        if count > 0 {
            return Err(WeightsError::NotFinite { path: path.to_path_buf(), key: tensor.name.clone(), count });
        }
    }
    Ok(LoadedParams { params, ranges, ignored_tensors })
}

/// Reads one tensor whose place has been checked against the file's size.
pub(crate) fn read_one(
    path: &Path,
    name: &str,
    dtype: &Result<DType, String>,
    shape: &[usize],
    offset: u64,
) -> Result<Vec<f32>, WeightsError> {
    let dtype = dtype.clone().map_err(|found| WeightsError::Type {
        path: path.to_path_buf(),
        key: name.to_string(),
        found,
        supported: quant::SUPPORTED,
    })?;
    let mut out = vec![0.0f32; shape.iter().product()];
    let mut file = File::open(path).map_err(WeightsError::io(path))?;
    read_tensor(&mut file, offset, dtype, &mut out).map_err(WeightsError::io(path))?;
    Ok(out)
}

/// Reads `out.len()` values of the given type that start at `offset`.
fn read_tensor(file: &mut File, offset: u64, dtype: DType, out: &mut [f32]) -> std::io::Result<()> {
    /// Values read at once, and values converted by one thread at once; multiples of every block size.
    const READ: usize = 1 << 20;
    const CONVERT: usize = 1 << 14;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0u8; dtype.bytes_of(READ.min(out.len()))];
    for chunk in out.chunks_mut(READ) {
        let bytes = &mut bytes[..dtype.bytes_of(chunk.len())];
        file.read_exact(bytes)?;
        bytes
            .par_chunks(dtype.bytes_of(CONVERT))
            .zip(chunk.par_chunks_mut(CONVERT))
            .for_each(|(bytes, values)| quant::dequantize(dtype, bytes, values));
    }
    Ok(())
}

/// Parses a JSON file, or gives `None` where there is none.
pub(crate) fn read_optional_json(path: &Path) -> Result<Option<serde_json::Value>, WeightsError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(WeightsError::Io { path: path.to_path_buf(), source }),
    };
    serde_json::from_str(&text).map(Some).map_err(|e| WeightsError::malformed(path, "JSON", e.to_string()))
}

/// Refuses end-of-sequence ids of another type: to ignore them would let sequences run on.
fn check_generation_config(path: &Path, config: Option<&serde_json::Value>) -> Result<(), WeightsError> {
    let Some(config) = config else { return Ok(()) };
    let is_id = |v: &serde_json::Value| v.as_u64().is_some_and(|n| u32::try_from(n).is_ok());
    let sound = match config.get("eos_token_id") {
        None | Some(serde_json::Value::Null) => config.is_object(),
        Some(serde_json::Value::Array(list)) => list.iter().all(is_id),
        Some(id) => is_id(id),
    };
    if sound {
        return Ok(());
    }
    let found = config.get("eos_token_id").unwrap_or(config);
    let what = format!("`eos_token_id`: expected a token id or a list of them, found {found}");
    Err(WeightsError::malformed(path, "JSON", what))
}

fn ids_of(value: Option<&serde_json::Value>) -> Vec<u32> {
    let one = |v: &serde_json::Value| v.as_u64().and_then(|n| u32::try_from(n).ok());
    match value {
        Some(serde_json::Value::Array(list)) => list.iter().filter_map(one).collect(),
        Some(v) => one(v).into_iter().collect(),
        None => Vec::new(),
    }
}
