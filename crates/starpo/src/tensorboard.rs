//! TensorBoard event files: scalars, written by hand. An event file is a sequence of TFRecords, each a protobuf message
//! `Event` between two checksums; both encodings are small enough to need no library. Only what scalars need is here.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::metrics::Metrics;

/// The first event of a file says which version of the format follows.
const FILE_VERSION: &[u8] = b"brain.Event:2";

/// Bytes of a record before its data: length and checksum of the length.
const HEADER: usize = 12;

/// Writes the scalars of a run into one event file.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: File,
}

/// Why an event file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the TensorBoard event file {}: {error}", .path.display())]
pub struct EventError {
    /// The file, or its folder.
    pub path: PathBuf,
    /// Why.
    pub error: std::io::Error,
}

impl EventWriter {
    /// Starts a new event file in `dir`, which is made if it does not exist.
    ///
    /// # Errors
    /// [`EventError`] when the folder or the file cannot be written.
    pub fn create(dir: &Path) -> Result<Self, EventError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error| EventError { path, error }
        };
        std::fs::create_dir_all(dir).map_err(at(dir))?;
        let path = dir.join(format!("events.out.tfevents.{}.ragen", wall_time() as u64));
        let mut file = File::create(&path).map_err(at(&path))?;
        let version = event(0, Field::bytes(3, FILE_VERSION));
        file.write_all(&record(&version)).map_err(at(&path))?;
        Ok(Self { path, file })
    }

    /// Goes on with the event file in `dir`, keeping its events up to `last_step` only: what came after the checkpoint
    /// that a run resumes from is about to be written again. Without an event file it starts one.
    ///
    /// # Errors
    /// [`EventError`] when the folder or the file cannot be read or written.
    pub fn resume(dir: &Path, last_step: u64) -> Result<Self, EventError> {
        let Some(path) = latest_event_file(dir) else { return Self::create(dir) };
        let at = |error| EventError { path: path.clone(), error };
        let bytes = std::fs::read(&path).map_err(at)?;
        let mut kept = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        // The walk ends at the first record that is cut off or fails its checksum: a kill may leave one at the end.
        while let Some(data) = next_record(&mut rest) {
            if step_of(data).is_some_and(|step| step <= last_step) {
                kept.extend_from_slice(&record(data));
            }
        }
        if kept.is_empty() {
            kept = record(&event(0, Field::bytes(3, FILE_VERSION)));
        }
        let temporary = dir.join(".resumed.tmp");
        std::fs::write(&temporary, &kept).and_then(|()| std::fs::rename(&temporary, &path)).map_err(at)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(at)?;
        Ok(Self { path, file })
    }

    /// Writes all numbers of an iteration as scalars, in one event that is on its way to the disk when this returns.
    /// TensorBoard stores 32-bit floats; a number that is not finite is written as it is.
    ///
    /// # Errors
    /// [`EventError`] when the file cannot be written, for example on a full disk.
    pub fn write(&mut self, step: u64, metrics: &Metrics) -> Result<(), EventError> {
        let mut summary = Vec::new();
        for (tag, value) in metrics.iter() {
            let mut scalar = Field::bytes(1, tag.as_bytes());
            scalar.extend(Field::fixed32(2, (value as f32).to_le_bytes()));
            summary.extend(Field::bytes(1, &scalar));
        }
        let message = record(&event(step, Field::bytes(5, &summary)));
        self.file
            .write_all(&message)
            .and_then(|()| self.file.flush())
            .map_err(|error| EventError { path: self.path.clone(), error })
    }

    /// The event file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs_f64()).unwrap_or_default()
}

fn latest_event_file(dir: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(dir).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    files.filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().contains("tfevents"))).max()
}

/// An `Event`: wall time (field 1), step (field 2), and one more field that is already encoded.
fn event(step: u64, content: Vec<u8>) -> Vec<u8> {
    let mut out = Field::fixed64(1, wall_time().to_le_bytes());
    out.extend(Field::varint(2, step));
    out.extend(content);
    out
}

/// Encodes single fields of a protobuf message: a key `number << 3 | wire type`, then the value.
struct Field;

impl Field {
    fn varint(number: u64, value: u64) -> Vec<u8> {
        let mut out = varint(number << 3);
        out.extend(varint(value));
        out
    }

    fn fixed64(number: u64, value: [u8; 8]) -> Vec<u8> {
        let mut out = varint(number << 3 | 1);
        out.extend(value);
        out
    }

    fn bytes(number: u64, value: &[u8]) -> Vec<u8> {
        let mut out = varint(number << 3 | 2);
        out.extend(varint(value.len() as u64));
        out.extend(value);
        out
    }

    fn fixed32(number: u64, value: [u8; 4]) -> Vec<u8> {
        let mut out = varint(number << 3 | 5);
        out.extend(value);
        out
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The step of an encoded `Event`; protobuf leaves a step of zero out.
fn step_of(mut message: &[u8]) -> Option<u64> {
    while !message.is_empty() {
        let key = read_varint(&mut message)?;
        let skip = match key & 7 {
            0 => {
                let value = read_varint(&mut message)?;
                if key >> 3 == 2 {
                    return Some(value);
                }
                0
            }
            1 => 8,
            2 => usize::try_from(read_varint(&mut message)?).ok()?,
            5 => 4,
            _ => return None,
        };
        message = message.get(skip..)?;
    }
    Some(0)
}

/// A TFRecord: length, masked checksum of the length, data, masked checksum of the data; all little-endian.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + HEADER + 4);
    out.extend(length);
    out.extend(masked_crc32c(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked_crc32c(data).to_le_bytes());
    out
}

/// Takes the next whole record off the front; `None` at the end or where it is broken.
fn next_record<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (length_crc, rest) = rest.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*length_crc) != masked_crc32c(length) {
        return None;
    }
    let (data, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let (data_crc, rest) = rest.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*data_crc) != masked_crc32c(data) {
        return None;
    }
    *bytes = rest;
    Some(data)
}

/// TFRecord's mask keeps a checksum over data that itself holds checksums from being trivial.
fn masked_crc32c(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli polynomial, reflected), a byte at a time.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests;
