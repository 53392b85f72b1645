//! Block formats: against the reference package bit for bit, and against their definitions.

use ragen_model::weights::gguf::{GgufArray, GgufHeader, GgufValue};
use ragen_model::weights::quant::{DType, dequantize};

use crate::fixture;

#[test]
fn equal_to_the_reference_package_bit_for_bit() {
    let file = GgufHeader::open(&fixture("gguf/quants.gguf")).unwrap();
    let kinds = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"];
    for kind in kinds {
        let found = file.read(kind).unwrap();
        let expected = file.read(&format!("{kind}.f32")).unwrap();
        assert_eq!(found.len(), expected.len());
        assert!(expected.iter().any(|x| *x != 0.0));
        for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(a.to_bits(), b.to_bits(), "{kind}[{i}]: {a} and {b}");
        }
    }
}

#[test]
fn metadata_of_every_type_is_read() {
    let file = GgufHeader::open(&fixture("gguf/quants.gguf")).unwrap();
    let get = |key: &str| file.metadata[key].clone();
    assert_eq!(get("t.u8"), GgufValue::Unsigned(200));
    assert_eq!(get("t.i8"), GgufValue::Signed(-100));
    assert_eq!(get("t.u16"), GgufValue::Unsigned(60_000));
    assert_eq!(get("t.i16"), GgufValue::Signed(-30_000));
    assert_eq!(get("t.u32"), GgufValue::Unsigned(4_000_000_000));
    assert_eq!(get("t.i32"), GgufValue::Signed(-2_000_000_000));
    assert_eq!(get("t.f32"), GgufValue::Float(f64::from(0.1f32)));
    assert_eq!(get("t.bool"), GgufValue::Bool(true));
    assert_eq!(get("t.string"), GgufValue::String("Ünï √".into()));
    assert_eq!(get("t.u64"), GgufValue::Unsigned(1 << 63));
    assert_eq!(get("t.i64"), GgufValue::Signed(-(1 << 62)));
    assert_eq!(get("t.f64"), GgufValue::Float(0.1));
    assert_eq!(get("t.strings"), GgufValue::Array(GgufArray::String(vec!["a".into(), "".into(), "√".into()])));
    assert_eq!(get("t.ints"), GgufValue::Array(GgufArray::Signed(vec![-1, 0, 7])));
    assert_eq!(get("t.floats"), GgufValue::Array(GgufArray::Float(vec![0.5, -1.25])));
    assert_eq!(get("t.bools"), GgufValue::Array(GgufArray::Bool(vec![true, false])));
}

/// A half-precision 0.5.
const HALF: [u8; 2] = [0x00, 0x38];

#[test]
fn small_blocks_by_their_definition() {
    // Byte i holds value i in the low half and value i + 16 in the high half.
    let nibbles: Vec<u8> = (0..16u8).map(|i| i | ((15 - i) << 4)).collect();
    let value = |i: usize| if i < 16 { i as f32 } else { (31 - i) as f32 };
    let mut out = [0.0; 32];

    dequantize(DType::Q4_0, &[&HALF[..], &nibbles].concat(), &mut out);
    assert!((0..32).all(|i| out[i] == 0.5 * (value(i) - 8.0)));
    dequantize(DType::Q4_1, &[&HALF[..], &HALF, &nibbles].concat(), &mut out);
    assert!((0..32).all(|i| out[i] == 0.5 * value(i) + 0.5));
    // Fifth bits of the values 0, 3 and 31.
    let high = (1u32 | 1 << 3 | 1 << 31).to_le_bytes();
    let fifth = |i: usize| if [0, 3, 31].contains(&i) { 16.0 } else { 0.0 };
    dequantize(DType::Q5_0, &[&HALF[..], &high, &nibbles].concat(), &mut out);
    assert!((0..32).all(|i| out[i] == 0.5 * (value(i) + fifth(i) - 16.0)));
    dequantize(DType::Q5_1, &[&HALF[..], &HALF, &high, &nibbles].concat(), &mut out);
    assert!((0..32).all(|i| out[i] == 0.5 * (value(i) + fifth(i)) + 0.5));
    let bytes: Vec<u8> = (0..32).map(|i| (i as i8 - 16) as u8).collect();
    dequantize(DType::Q8_0, &[&HALF[..], &bytes].concat(), &mut out);
    assert!((0..32).all(|i| out[i] == 0.5 * (i as f32 - 16.0)));
}

#[test]
fn large_blocks_by_their_definition() {
    let mut out = [0.0; 256];
    // Q4_K: the scale and the minimum of group j are 6 bits each: j + 1 and 2j + 1.
    let (scale, min) = (|j: usize| j as u8 + 1, |j: usize| 2 * j as u8 + 1);
    let mut packed = [0u8; 12];
    for j in 0..4 {
        packed[j] = scale(j) | ((scale(j + 4) >> 4) << 6);
        packed[j + 4] = min(j) | ((min(j + 4) >> 4) << 6);
        packed[j + 8] = (scale(j + 4) & 15) | ((min(j + 4) & 15) << 4);
    }
    // Value i is i mod 16; groups 2k and 2k + 1 share the bytes 32k..32k + 32.
    let nibbles: Vec<u8> = (0..128)
        .map(|b| {
            let q = (b % 16) as u8;
            q | (q << 4)
        })
        .collect();
    dequantize(DType::Q4K, &[&HALF[..], &HALF, &packed, &nibbles].concat(), &mut out);
    for (i, x) in out.iter().enumerate() {
        let j = i / 32;
        assert_eq!(*x, 0.5 * f32::from(scale(j)) * (i % 16) as f32 - 0.5 * f32::from(min(j)), "Q4_K[{i}]");
    }
    // Q6_K: low nibbles 3, high bits 2: 35 - 32 = 3, times the scale of the group of 16.
    let scales: Vec<u8> = (0..16).map(|g| (g as i8 - 8) as u8).collect();
    dequantize(DType::Q6K, &[&[0x33u8; 128][..], &[0xaa; 64], &scales, &HALF].concat(), &mut out);
    for (i, x) in out.iter().enumerate() {
        assert_eq!(*x, 0.5 * (i as f32 / 16.0).floor().mul_add(1.0, -8.0) * 3.0, "Q6_K[{i}]");
    }
}
