//! Reading the public files: JSON, JSON Lines, either of them compressed with gzip, record by record, so that memory
//! holds the products and never the file.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::product::{AttributeRecord, HumanInstruction};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {what}")]
pub struct LoadError {
    /// The file.
    pub origin: String,
    /// What was expected, what was found, where.
    pub what: String,
}

impl LoadError {
    /// An error in this file.
    pub fn new(origin: &Path, what: impl fmt::Display) -> Self {
        Self { origin: origin.display().to_string(), what: what.to_string() }
    }
}

/// Opens a file; compressed ones are known by their first bytes.
///
/// # Errors
/// [`LoadError`] when it cannot be opened or read.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, LoadError> {
    let file = File::open(path).map_err(|error| LoadError::new(path, format!("cannot be opened: {error}")))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let head = reader.fill_buf().map_err(|error| LoadError::new(path, format!("cannot be read: {error}")))?;
    Ok(if head.starts_with(&[0x1F, 0x8B]) {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader)))
    } else {
        Box::new(reader)
    })
}

/// Calls `each` with every record of a JSON array or of JSON Lines, until it says `false` or refuses.
///
/// # Errors
/// [`LoadError`] with line and column for broken JSON and for records that `each` refuses.
pub fn records<T: DeserializeOwned>(
    reader: impl BufRead,
    origin: &Path,
    mut each: impl FnMut(T) -> Result<bool, String>,
) -> Result<(), LoadError> {
    let (first, reader) = first_byte(reader, origin)?;
    match first {
        None => Ok(()),
        Some(b'[') => {
            let mut deserializer = serde_json::Deserializer::from_reader(reader);
            let mut ended = Ended::AtTheEnd;
            let visitor = ArrayVisitor { each: &mut each, ended: &mut ended, record: PhantomData };
            let read = (&mut deserializer).deserialize_seq(visitor).and_then(|()| deserializer.end());
            match (ended, read) {
                (Ended::Early, _) | (Ended::AtTheEnd, Ok(())) => Ok(()),
                (Ended::Refused(number, what), _) => Err(LoadError::new(origin, format!("record {number}: {what}"))),
                (Ended::AtTheEnd, Err(error)) => Err(LoadError::new(origin, error)),
            }
        }
        Some(_) => {
            for (number, record) in serde_json::Deserializer::from_reader(reader).into_iter::<T>().enumerate() {
                let record = record.map_err(|error| LoadError::new(origin, error))?;
                let go_on =
                    each(record).map_err(|what| LoadError::new(origin, format!("record {}: {what}", number + 1)))?;
                if !go_on {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// The records of an attributes file (`items_ins_v2*.json`), by identifier. Either one mapping of identifiers to
/// records, or a line per record, which then names its `asin`.
///
/// # Errors
/// [`LoadError`] with line and column.
pub fn attributes(reader: impl BufRead, origin: &Path) -> Result<HashMap<String, AttributeRecord>, LoadError> {
    let mut result = HashMap::new();
    for document in serde_json::Deserializer::from_reader(reader).into_iter::<AttributeDocument>() {
        result.extend(document.map_err(|error| LoadError::new(origin, error))?.0);
    }
    Ok(result)
}

/// The instructions of people (`items_human_ins.json`), by identifier. Either one mapping of identifiers to lists, or
/// a line per instruction.
///
/// # Errors
/// [`LoadError`] with line and column.
pub fn human(reader: impl BufRead, origin: &Path) -> Result<HashMap<String, Vec<HumanInstruction>>, LoadError> {
    let mut result: HashMap<String, Vec<HumanInstruction>> = HashMap::new();
    for document in serde_json::Deserializer::from_reader(reader).into_iter::<Value>() {
        let document = document.map_err(|error| LoadError::new(origin, error))?;
        if document.get("asin").is_some_and(Value::is_string) {
            let one: HumanInstruction =
                serde_json::from_value(document).map_err(|error| LoadError::new(origin, error))?;
            result.entry(one.asin.clone()).or_default().push(one);
        } else {
            let map: HashMap<String, Vec<HumanInstruction>> =
                serde_json::from_value(document).map_err(|error| LoadError::new(origin, error))?;
            result.extend(map);
        }
    }
    Ok(result)
}

/// A mapping of identifiers to `T`, or an object that holds such a mapping under `key`.
///
/// # Errors
/// [`LoadError`] with line and column.
pub fn mapping<T: DeserializeOwned>(
    reader: impl Read,
    origin: &Path,
    key: &str,
) -> Result<HashMap<String, T>, LoadError> {
    let mut document: Value =
        serde_json::from_reader(BufReader::new(reader)).map_err(|error| LoadError::new(origin, error))?;
    if let Some(inner) = document.get_mut(key).filter(|inner| inner.is_object()) {
        document = inner.take();
    }
    serde_json::from_value(document).map_err(|error| {
        LoadError::new(origin, format!("expected a mapping of product identifiers, or one under `{key}`: {error}"))
    })
}

/// The first byte that is no white space, which stays to be read.
fn first_byte(mut reader: impl BufRead, origin: &Path) -> Result<(Option<u8>, impl BufRead), LoadError> {
    loop {
        let buffer = reader.fill_buf().map_err(|error| LoadError::new(origin, format!("cannot be read: {error}")))?;
        if buffer.is_empty() {
            return Ok((None, reader));
        }
        match buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
            Some(at) => {
                let first = buffer[at];
                reader.consume(at);
                return Ok((Some(first), reader));
            }
            None => {
                let all = buffer.len();
                reader.consume(all);
            }
        }
    }
}

/// How the reading of an array ended.
enum Ended {
    AtTheEnd,
    Early,
    Refused(usize, String),
}

struct ArrayVisitor<'a, T, F> {
    each: &'a mut F,
    ended: &'a mut Ended,
    record: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<bool, String>> Visitor<'de> for ArrayVisitor<'_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(record) = sequence.next_element()? {
            number += 1;
            match (self.each)(record) {
                Ok(true) => {}
                Ok(false) => {
                    *self.ended = Ended::Early;
                    return Ok(());
                }
                Err(what) => {
                    *self.ended = Ended::Refused(number, what);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A mapping of identifiers to records, or one record with its identifier.
struct AttributeDocument(Vec<(String, AttributeRecord)>);

impl<'de> Deserialize<'de> for AttributeDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AttributeVisitor).map(Self)
    }
}

struct AttributeVisitor;

impl<'de> Visitor<'de> for AttributeVisitor {
    type Value = Vec<(String, AttributeRecord)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping of product identifiers to attributes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        let (mut asin, mut single) = (None, AttributeRecord::default());
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "asin" => asin = Some(map.next_value()?),
                "attributes" => single.attributes = map.next_value()?,
                "instruction" => single.instruction = map.next_value()?,
                "instruction_attributes" => single.instruction_attributes = map.next_value()?,
                _ if asin.is_some() => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => found.push((key, map.next_value()?)),
            }
        }
        found.extend(asin.map(|asin| (asin, single)));
        Ok(found)
    }
}
