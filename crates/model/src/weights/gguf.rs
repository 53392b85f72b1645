//! The GGUF container, versions 2 and 3: typed metadata, tensor descriptions, aligned data.
//!
//! What is here: parsing, with every count and length checked against the bytes that are left before anything is
//! allocated for it.
//! What is not here: what the keys mean (see [`super::gguf_model`]), the values of tensors (see [`super::quant`]).

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::WeightsError;
use super::quant::DType;

const FORMAT: &str = "GGUF";
const MAGIC: [u8; 4] = *b"GGUF";
/// Most dimensions a tensor may have.
const MAX_DIMS: u32 = 4;
/// Deepest accepted nesting of arrays.
const MAX_NESTING: u32 = 4;

/// A metadata value. Integers of all widths are widened.
#[derive(Clone, Debug, PartialEq)]
pub enum GgufValue {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A string.
    String(String),
    /// An array.
    Array(GgufArray),
}

/// An array of metadata values, all of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum GgufArray {
    /// Unsigned integers.
    Unsigned(Vec<u64>),
    /// Signed integers.
    Signed(Vec<i64>),
    /// Floats.
    Float(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Strings.
    String(Vec<String>),
    /// Arrays.
    Array(Vec<GgufArray>),
}

/// One tensor's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    /// Name in the file.
    pub name: String,
    /// The type, or the number of one that is not read.
    pub dtype: Result<DType, String>,
    /// Row-major shape: the file's dimensions, which start with the contiguous one, reversed.
    pub shape: Vec<usize>,
    /// Absolute position of the first byte.
    pub offset: u64,
}

/// Everything of a GGUF file but the values.
#[derive(Clone, Debug)]
pub struct GgufHeader {
    /// The file.
    pub path: PathBuf,
    /// Format version, 2 or 3.
    pub version: u32,
    /// Metadata.
    pub metadata: HashMap<String, GgufValue>,
    /// Tensors, in the file's order.
    pub tensors: Vec<GgufTensor>,
}

/// Whether a file starts with the GGUF magic.
///
/// # Errors
/// [`WeightsError::Io`] when it cannot be read.
pub fn has_magic(path: &Path) -> Result<bool, WeightsError> {
    let mut file = File::open(path).map_err(WeightsError::io(path))?;
    let mut magic = [0u8; 4];
    match file.read_exact(&mut magic) {
        Ok(()) => Ok(magic == MAGIC),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(source) => Err(WeightsError::Io { path: path.to_path_buf(), source }),
    }
}

impl GgufHeader {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// [`WeightsError::Malformed`] or [`WeightsError::Unsupported`].
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        let file = File::open(path).map_err(WeightsError::io(path))?;
        let size = file.metadata().map_err(WeightsError::io(path))?.len();
        Self::parse(BufReader::with_capacity(1 << 16, file), size, path)
    }

    /// Parses a header from `reader`, which holds `size` bytes in all; `path` is for messages.
    ///
    /// # Errors
    /// As [`GgufHeader::open`].
    pub fn parse(reader: impl Read, size: u64, path: &Path) -> Result<Self, WeightsError> {
        let mut r = Cursor { reader, position: 0, size, path };
        let magic: [u8; 4] = r.bytes()?;
        if magic != MAGIC {
            return Err(r.bad(format!("expected the magic bytes `GGUF`, found {magic:02x?}")));
        }
        let version = r.u32()?;
        if version.swap_bytes() == 2 || version.swap_bytes() == 3 {
            return Err(r.unsupported("big-endian GGUF".into(), "convert it to little-endian"));
        }
        if !(2..=3).contains(&version) {
            return Err(r.unsupported(format!("GGUF version {version}"), "versions 2 and 3 are read"));
        }
        // Smallest tensor description: empty name, no dimensions, type, offset. Smallest entry: empty key, type, a byte.
        let tensor_count = r.count("tensors", 8 + 4 + 4 + 8)?;
        let entry_count = r.count("metadata entries", 8 + 4 + 1)?;

        let mut metadata = HashMap::new();
        for _ in 0..entry_count {
            let key = r.string("metadata key")?;
            let kind = r.u32()?;
            let value = r.value(kind, &key)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(r.bad(format!("metadata key `{key}` appears twice")));
            }
        }
        let mut tensors: Vec<GgufTensor> = Vec::new();
        for _ in 0..tensor_count {
            tensors.push(r.tensor()?);
        }

        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(GgufValue::Unsigned(n)) if n.is_power_of_two() && *n <= 1 << 20 => *n,
            Some(other) => {
                return Err(r.bad(format!("general.alignment: expected a power of two up to 2^20, found {other:?}")));
            }
        };
        let data_start = r.position.next_multiple_of(alignment);
        let mut names = std::collections::HashSet::new();
        for t in &mut tensors {
            let bad = |what: String| WeightsError::malformed(path, FORMAT, format!("tensor `{}`: {what}", t.name));
            if !names.insert(t.name.clone()) {
                return Err(bad("appears twice".into()));
            }
            if t.offset % alignment != 0 {
                return Err(bad(format!("offset {} is not a multiple of the alignment {alignment}", t.offset)));
            }
            let start = data_start.checked_add(t.offset).ok_or_else(|| bad("offset overflows".into()))?;
            if let Ok(dtype) = t.dtype {
                let values: usize = t.shape.iter().product();
                let bytes = dtype.bytes_of(values) as u64;
                if start.checked_add(bytes).is_none_or(|end| end > size) {
                    return Err(bad(format!(
                        "needs {bytes} bytes from byte {start}, but the file has {size} (truncated?)"
                    )));
                }
            }
            t.offset = start;
        }
        Ok(Self { path: path.to_path_buf(), version, metadata, tensors })
    }

    /// Reads one tensor as `f32`, in the file's order of rows.
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

    /// A string entry.
    pub fn string(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key) {
            Some(GgufValue::String(s)) => Some(s),
            _ => None,
        }
    }

    /// A non-negative integer entry, whatever its width.
    pub fn unsigned(&self, key: &str) -> Option<u64> {
        match self.metadata.get(key) {
            Some(GgufValue::Unsigned(n)) => Some(*n),
            Some(GgufValue::Signed(n)) => u64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// A float entry.
    pub fn float(&self, key: &str) -> Option<f64> {
        match self.metadata.get(key) {
            Some(GgufValue::Float(x)) => Some(*x),
            _ => None,
        }
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Option<&[String]> {
        match self.metadata.get(key) {
            Some(GgufValue::Array(GgufArray::String(list))) => Some(list),
            _ => None,
        }
    }
}

struct Cursor<'a, R> {
    reader: R,
    position: u64,
    size: u64,
    path: &'a Path,
}

impl<R: Read> Cursor<'_, R> {
    fn bad(&self, what: String) -> WeightsError {
        WeightsError::malformed(self.path, FORMAT, format!("{what} (at byte {})", self.position))
    }

    fn unsupported(&self, what: String, supported: &str) -> WeightsError {
        WeightsError::Unsupported { path: self.path.to_path_buf(), what, supported: supported.into() }
    }

    fn left(&self) -> u64 {
        self.size.saturating_sub(self.position)
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<(), WeightsError> {
        let n = out.len() as u64;
        if n > self.left() {
            return Err(self.bad(format!("expected {n} more bytes, found {}", self.left())));
        }
        self.reader.read_exact(out).map_err(WeightsError::io(self.path))?;
        self.position += n;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], WeightsError> {
        let mut out = [0u8; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, WeightsError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, WeightsError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    /// A count of things that take at least `least` bytes each.
    fn count(&mut self, what: &str, least: u64) -> Result<u64, WeightsError> {
        let n = self.u64()?;
        if n.checked_mul(least).is_none_or(|bytes| bytes > self.left()) {
            return Err(self.bad(format!("claims {n} {what}, but only {} bytes are left", self.left())));
        }
        Ok(n)
    }

    fn string(&mut self, what: &str) -> Result<String, WeightsError> {
        let n = self.count(&format!("bytes of {what}"), 1)?;
        let mut bytes = vec![0u8; n as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.bad(format!("{what} is not UTF-8")))
    }

    fn value(&mut self, kind: u32, key: &str) -> Result<GgufValue, WeightsError> {
        Ok(match kind {
            0 => GgufValue::Unsigned(u64::from(u8::from_le_bytes(self.bytes()?))),
            1 => GgufValue::Signed(i64::from(i8::from_le_bytes(self.bytes()?))),
            2 => GgufValue::Unsigned(u64::from(u16::from_le_bytes(self.bytes()?))),
            3 => GgufValue::Signed(i64::from(i16::from_le_bytes(self.bytes()?))),
            4 => GgufValue::Unsigned(u64::from(self.u32()?)),
            5 => GgufValue::Signed(i64::from(i32::from_le_bytes(self.bytes()?))),
            6 => GgufValue::Float(f64::from(f32::from_le_bytes(self.bytes()?))),
            7 => GgufValue::Bool(self.bool(key)?),
            8 => GgufValue::String(self.string(&format!("value of `{key}`"))?),
            9 => GgufValue::Array(self.array(key, 1)?),
            10 => GgufValue::Unsigned(self.u64()?),
            11 => GgufValue::Signed(i64::from_le_bytes(self.bytes()?)),
            12 => GgufValue::Float(f64::from_le_bytes(self.bytes()?)),
            other => return Err(self.bad(format!("`{key}` has value type {other}; types are 0 to 12"))),
        })
    }

    fn bool(&mut self, key: &str) -> Result<bool, WeightsError> {
        match self.bytes::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(self.bad(format!("`{key}`: expected 0 or 1 for a bool, found {other}"))),
        }
    }

    fn array(&mut self, key: &str, depth: u32) -> Result<GgufArray, WeightsError> {
        let kind = self.u32()?;
        let least = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            9 => 12,
            other => return Err(self.bad(format!("array `{key}` has element type {other}; types are 0 to 12"))),
        };
        let n = self.count(&format!("elements of `{key}`"), least)?;
        // Collected one by one: memory grows with bytes that were really read.
        Ok(match kind {
            0 | 2 | 4 | 10 => GgufArray::Unsigned(
                (0..n).map(|_| self.element(kind, key, |v| as_unsigned(&v))).collect::<Result<_, _>>()?,
            ),
            1 | 3 | 5 | 11 => {
                GgufArray::Signed((0..n).map(|_| self.element(kind, key, |v| as_signed(&v))).collect::<Result<_, _>>()?)
            }
            6 | 12 => {
                GgufArray::Float((0..n).map(|_| self.element(kind, key, |v| as_float(&v))).collect::<Result<_, _>>()?)
            }
            7 => GgufArray::Bool((0..n).map(|_| self.bool(key)).collect::<Result<_, _>>()?),
            8 => {
                let what = format!("element of `{key}`");
                GgufArray::String((0..n).map(|_| self.string(&what)).collect::<Result<_, _>>()?)
            }
            _ if depth < MAX_NESTING => {
                GgufArray::Array((0..n).map(|_| self.array(key, depth + 1)).collect::<Result<_, _>>()?)
            }
            _ => return Err(self.bad(format!("arrays of `{key}` are nested deeper than {MAX_NESTING}"))),
        })
    }

    fn element<T>(&mut self, kind: u32, key: &str, get: impl Fn(GgufValue) -> Option<T>) -> Result<T, WeightsError> {
        let value = self.value(kind, key)?;
        get(value).ok_or_else(|| self.bad(format!("`{key}`: element of another type")))
    }

    fn tensor(&mut self) -> Result<GgufTensor, WeightsError> {
        let name = self.string("tensor name")?;
        let dims = self.u32()?;
        if dims > MAX_DIMS {
            return Err(self.bad(format!("tensor `{name}` claims {dims} dimensions; at most {MAX_DIMS} are allowed")));
        }
        let mut shape = Vec::new();
        let mut values = 1u64;
        for _ in 0..dims {
            let n = self.u64()?;
            values = values
                .checked_mul(n)
                .filter(|v| *v < 1 << 48)
                .ok_or_else(|| self.bad(format!("tensor `{name}`: dimension {n} is absurd")))?;
            shape.push(usize::try_from(n).map_err(|_| self.bad(format!("tensor `{name}`: dimension overflows")))?);
        }
        let kind = self.u32()?;
        let dtype = DType::from_ggml(kind).ok_or_else(|| format!("GGML type {kind}"));
        if let (Ok(dtype), Some(row)) = (&dtype, shape.first())
            && row % dtype.block_len() != 0
        {
            return Err(self.bad(format!(
                "tensor `{name}`: rows of {row} values do not divide into blocks of {}",
                dtype.block_len()
            )));
        }
        shape.reverse();
        let offset = self.u64()?;
        Ok(GgufTensor { name, dtype, shape, offset })
    }
}

fn as_unsigned(v: &GgufValue) -> Option<u64> {
    if let GgufValue::Unsigned(n) = v { Some(*n) } else { None }
}

fn as_signed(v: &GgufValue) -> Option<i64> {
    if let GgufValue::Signed(n) = v { Some(*n) } else { None }
}

fn as_float(v: &GgufValue) -> Option<f64> {
    if let GgufValue::Float(x) = v { Some(*x) } else { None }
}
