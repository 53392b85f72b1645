//! Event files are read back by a decoder that shares no code with the writer.

use super::*;

/// CRC-32C bit by bit, from the definition.
fn slow_crc32c(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let low = crc & 1;
            crc >>= 1;
            if low == 1 {
                crc ^= 0x82f6_3b78;
            }
        }
    }
    !crc
}

fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// Fields of a message as (number, wire type, bytes of the value); varints as eight little-endian bytes.
fn fields(bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut out = Vec::new();
    let mut at = 0;
    let varint = |at: &mut usize| {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = bytes[*at];
            *at += 1;
            value += u64::from(byte % 128) << shift;
            shift += 7;
            if byte < 128 {
                return value;
            }
        }
    };
    while at < bytes.len() {
        let key = varint(&mut at);
        let value = match key % 8 {
            0 => varint(&mut at).to_le_bytes().to_vec(),
            wire => {
                let length = match wire {
                    1 => 8,
                    2 => varint(&mut at) as usize,
                    5 => 4,
                    other => panic!("wire type {other}"),
                };
                at += length;
                bytes[at - length..at].to_vec()
            }
        };
        out.push((key / 8, key % 8, value));
    }
    out
}

struct Decoded {
    step: u64,
    version: Option<String>,
    scalars: Vec<(String, f32)>,
}

fn decode(path: &Path) -> Vec<Decoded> {
    let bytes = std::fs::read(path).unwrap();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let length_crc = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
        assert_eq!(unmask(length_crc), slow_crc32c(&bytes[at..at + 8]));
        let data = &bytes[at + 12..at + 12 + length];
        let data_crc = u32::from_le_bytes(bytes[at + 12 + length..at + 16 + length].try_into().unwrap());
        assert_eq!(unmask(data_crc), slow_crc32c(data));
        at += 16 + length;
        let mut event = Decoded { step: 0, version: None, scalars: Vec::new() };
        for (number, wire, value) in fields(data) {
            match (number, wire) {
                (1, 1) => assert!(f64::from_le_bytes(value.try_into().unwrap()) > 1.6e9, "seconds since 1970"),
                (2, 0) => event.step = u64::from_le_bytes(value.try_into().unwrap()),
                (3, 2) => event.version = Some(String::from_utf8(value).unwrap()),
                (5, 2) => {
                    for (_, _, scalar) in fields(&value) {
                        let parts = fields(&scalar);
                        let tag = String::from_utf8(parts[0].2.clone()).unwrap();
                        assert_eq!((parts[0].0, parts[1].0, parts[1].1), (1, 2, 5));
                        event.scalars.push((tag, f32::from_le_bytes(parts[1].2.clone().try_into().unwrap())));
                    }
                }
                other => panic!("unexpected field {other:?}"),
            }
        }
        out.push(event);
    }
    out
}

fn metrics(value: f64) -> Metrics {
    [("train/success".to_string(), value), ("actor/grad_norm".to_string(), 2.0 * value)].into_iter().collect()
}

#[test]
fn checksums_match_published_vectors() {
    // RFC 3720, appendix B.4, and the check value of the CRC catalogue.
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    let rising: Vec<u8> = (0..32).collect();
    assert_eq!(crc32c(&rising), 0x46dd_794e);
    assert_eq!(unmask(masked_crc32c(b"123456789")), 0xe306_9283);
}

#[test]
fn an_independent_decoder_reads_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(&dir.path().join("tb")).unwrap();
    writer.write(1, &metrics(0.25)).unwrap();
    writer.write(300, &metrics(f64::NAN)).unwrap();
    let events = decode(writer.path());
    assert_eq!(events.len(), 3);
    assert_eq!(events[0].version.as_deref(), Some("brain.Event:2"));
    assert_eq!(events[1].step, 1);
    assert_eq!(events[1].scalars, [("actor/grad_norm".to_string(), 0.5), ("train/success".to_string(), 0.25)]);
    assert_eq!(events[2].step, 300);
    assert!(events[2].scalars[0].1.is_nan());
}

#[test]
fn resuming_drops_later_steps_and_a_torn_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(dir.path()).unwrap();
    for step in 1..=4 {
        writer.write(step, &metrics(step as f64)).unwrap();
    }
    let path = writer.path().to_path_buf();
    drop(writer);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let mut writer = EventWriter::resume(dir.path(), 2).unwrap();
    writer.write(3, &metrics(30.0)).unwrap();
    let events = decode(&path);
    assert_eq!(events.iter().map(|e| e.step).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(events[0].version.is_some());
    assert_eq!(events[3].scalars[1].1, 30.0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "one file a run");
}

#[test]
fn resuming_without_a_file_starts_one() {
    let dir = tempfile::tempdir().unwrap();
    let writer = EventWriter::resume(&dir.path().join("none"), 5).unwrap();
    assert!(decode(writer.path())[0].version.is_some());
    std::fs::write(writer.path(), b"not an event file").unwrap();
    let writer = EventWriter::resume(&dir.path().join("none"), 5).unwrap();
    assert_eq!(decode(writer.path()).len(), 1);
}

#[test]
fn an_unwritable_folder_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = EventWriter::create(&file.join("tb")).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}
