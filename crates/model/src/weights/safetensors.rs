//! The safetensors format: an 8-byte header length, a JSON header, then raw tensors.
//!
//! What is here: reading headers with every offset checked against the file's size, and the index of sharded models.
//! What is not here: which values a model needs (see [`super::load_params`]), writing (see [`super::save`]).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::quant::DType;
use super::{WeightsError, read_optional_json};

/// Longest accepted header, as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;
const FORMAT: &str = "safetensors";

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    /// Name.
    pub name: String,
    /// The type, or the name of one that is not read.
    pub dtype: Result<DType, String>,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Absolute position of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// The header of one file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The file.
    pub path: PathBuf,
    /// Its tensors, in the header's order.
    pub tensors: Vec<TensorEntry>,
    /// The free-form `__metadata__` strings.
    pub metadata: HashMap<String, String>,
}

/// Reads and checks the header of a safetensors file.
///
/// # Errors
/// [`WeightsError::Malformed`] when lengths, offsets or types do not fit the file.
pub fn read_header(path: &Path) -> Result<Header, WeightsError> {
    let bad = |what: String| WeightsError::malformed(path, FORMAT, what);
    let mut file = File::open(path).map_err(WeightsError::io(path))?;
    let size = file.metadata().map_err(WeightsError::io(path))?.len();
    if size < 8 {
        return Err(bad(format!("expected at least 8 bytes, found {size}")));
    }
    let mut length = [0u8; 8];
    file.read_exact(&mut length).map_err(WeightsError::io(path))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length > size - 8 {
        return Err(bad(format!(
            "the header claims {length} bytes, but only {} follow (and at most {MAX_HEADER} are accepted)",
            size - 8
        )));
    }
    let mut text = vec![0u8; length as usize];
    file.read_exact(&mut text).map_err(WeightsError::io(path))?;
    let header: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|e| bad(format!("the header is not a JSON object: {e}")))?;

    let data_start = 8 + length;
    let data_len = size - data_start;
    let mut metadata = HashMap::new();
    let mut tensors = Vec::new();
    for (name, entry) in &header {
        if name == "__metadata__" {
            if let Value::Object(map) = entry {
                metadata.extend(map.iter().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_string()))));
            }
            continue;
        }
        tensors.push(parse_entry(path, name, entry, data_start, data_len)?);
    }
    let end = tensors.iter().map(|t| t.offset + t.bytes).max().unwrap_or(data_start);
    if end != size {
        return Err(bad(format!("tensors end at byte {end}, but the file has {size} bytes")));
    }
    Ok(Header { path: path.to_path_buf(), tensors, metadata })
}

impl Header {
    /// Reads one tensor as `f32`.
    ///
    /// # Errors
    /// [`WeightsError::Missing`], [`WeightsError::Type`], [`WeightsError::Io`].
    pub fn read(&self, name: &str) -> Result<Vec<f32>, WeightsError> {
        let tensor = self.tensors.iter().find(|t| t.name == name);
        let tensor = tensor.ok_or_else(|| WeightsError::Missing {
            path: self.path.clone(),
            key: name.to_string(),
            shape: Vec::new(),
        })?;
        super::read_one(&self.path, name, &tensor.dtype, &tensor.shape, tensor.offset)
    }
}

fn parse_entry(
    path: &Path,
    name: &str,
    entry: &Value,
    data_start: u64,
    data_len: u64,
) -> Result<TensorEntry, WeightsError> {
    let bad = |what: String| WeightsError::malformed(path, FORMAT, format!("tensor `{name}`: {what}"));
    let dtype_name = entry.get("dtype").and_then(Value::as_str).ok_or_else(|| bad("no `dtype` string".into()))?;
    let dtype = DType::from_safetensors(dtype_name).ok_or_else(|| dtype_name.to_string());
    let numbers = |key: &str| -> Result<Vec<u64>, WeightsError> {
        entry
            .get(key)
            .and_then(Value::as_array)
            .and_then(|list| list.iter().map(Value::as_u64).collect::<Option<Vec<_>>>())
            .ok_or_else(|| bad(format!("expected `{key}` to be a list of non-negative integers")))
    };
    let shape = numbers("shape")?;
    let offsets = numbers("data_offsets")?;
    let [start, end] = offsets[..] else {
        return Err(bad(format!("expected two `data_offsets`, found {}", offsets.len())));
    };
    if start > end || end > data_len {
        return Err(bad(format!("bytes {start}..{end} lie outside the file's {data_len} bytes of data (truncated?)")));
    }
    let values = shape
        .iter()
        .try_fold(1u64, |product, n| product.checked_mul(*n))
        .ok_or_else(|| bad(format!("shape {shape:?} overflows")))?;
    if let Ok(dtype) = dtype {
        let expected =
            values.checked_mul(dtype.block_bytes() as u64).ok_or_else(|| bad(format!("shape {shape:?} overflows")))?;
        if expected != end - start {
            return Err(bad(format!(
                "shape {shape:?} of {dtype_name} takes {expected} bytes, but data_offsets span {}",
                end - start
            )));
        }
    }
    let shape = shape
        .into_iter()
        .map(|n| usize::try_from(n).map_err(|_| bad("shape overflows".into())))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(TensorEntry { name: name.to_string(), dtype, shape, offset: data_start + start, bytes: end - start })
}

/// The headers of a folder's weights: of `model.safetensors`, or of the shards in `model.safetensors.index.json`.
///
/// # Errors
/// [`WeightsError`] when neither is there, a shard is missing, or index and shards disagree.
pub fn open_folder(dir: &Path) -> Result<Vec<Header>, WeightsError> {
    let single = dir.join("model.safetensors");
    if single.is_file() {
        return Ok(vec![read_header(&single)?]);
    }
    let index_path = dir.join("model.safetensors.index.json");
    let Some(index) = read_optional_json(&index_path)? else {
        return Err(WeightsError::NotAModel {
            path: dir.to_path_buf(),
            why: "expected model.safetensors or model.safetensors.index.json (PyTorch .bin files are not read)".into(),
        });
    };
    let bad = |what: String| WeightsError::malformed(&index_path, "safetensors index", what);
    let map = index
        .get("weight_map")
        .and_then(Value::as_object)
        .ok_or_else(|| bad("expected an object under `weight_map`".into()))?;
    let mut names = BTreeSet::new();
    for (key, file) in map {
        let file = file.as_str().ok_or_else(|| bad(format!("`{key}`: expected a file name")))?;
        // A plain name: an index must not reach outside its folder.
        if Path::new(file).file_name().and_then(|n| n.to_str()) != Some(file) {
            return Err(bad(format!("`{key}`: `{file}` is not a plain file name")));
        }
        names.insert(file.to_string());
    }
    let shards = names.iter().map(|name| read_header(&dir.join(name))).collect::<Result<Vec<_>, _>>()?;
    let mut seen: HashMap<&str, &Path> = HashMap::new();
    for shard in &shards {
        for t in &shard.tensors {
            if let Some(first) = seen.insert(&t.name, &shard.path) {
                return Err(bad(format!(
                    "tensor `{}` is in both {} and {}",
                    t.name,
                    first.display(),
                    shard.path.display()
                )));
            }
        }
    }
    for (key, file) in map {
        let file = file.as_str().unwrap_or_default();
        let found = seen.get(key.as_str()).and_then(|p| p.file_name()).and_then(|n| n.to_str());
        if found != Some(file) {
            return Err(bad(format!(
                "tensor `{key}` should be in {file}, but is in {}",
                found.unwrap_or("none of the shards")
            )));
        }
    }
    Ok(shards)
}
