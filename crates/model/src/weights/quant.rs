//! Storage types of weights and their conversion to `f32`.
//!
//! What is here: plain floats (F32, F16, BF16) and the block formats of GGML, converted with the same operations in the
//! same order as the `gguf` Python package, so that the results agree bit for bit.
//! What is not here: arithmetic on quantised values, quantisation.
//!
//! A block format stores a fixed number of values with shared scales. Layouts are little-endian; `d`, `m` are scales.

use half::{bf16, f16};

/// Names of the types that are read, for messages.
pub const SUPPORTED: &str =
    "F32, F16, BF16, and in GGUF files Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K";

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Upper half of a single.
    Bf16,
    /// 32 values: half `d`, 16 bytes of nibbles; value = d·(q − 8).
    Q4_0,
    /// 32 values: half `d`, half `m`, 16 bytes of nibbles; value = d·q + m.
    Q4_1,
    /// 32 values: half `d`, 32 high bits, nibbles; value = d·(q − 16).
    Q5_0,
    /// 32 values: half `d`, half `m`, 32 high bits, nibbles; value = d·q + m.
    Q5_1,
    /// 32 values: half `d`, 32 signed bytes; value = d·q.
    Q8_0,
    /// 256 values in 16 groups: 16 bytes of 4-bit scales and minima, 2-bit values, half `d`, half `m`.
    Q2K,
    /// 256 values in 16 groups: 32 bytes of high bits, 2-bit values, 6-bit scales, half `d`.
    Q3K,
    /// 256 values in 8 groups: half `d`, half `m`, 6-bit scales and minima, nibbles.
    Q4K,
    /// 256 values in 8 groups: as Q4_K with one more bit a value.
    Q5K,
    /// 256 values in 16 groups: low nibbles, high 2 bits, signed byte scales, half `d`.
    Q6K,
}

impl DType {
    /// The type with this number in a GGUF file.
    pub fn from_ggml(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// The type with this name in a safetensors header.
    pub fn from_safetensors(name: &str) -> Option<Self> {
        Some(match name {
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            _ => return None,
        })
    }

    /// Number of values that are stored together.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Bytes of `values` values; a last partial block counts in full.
    pub fn bytes_of(self, values: usize) -> usize {
        values.div_ceil(self.block_len()) * self.block_bytes()
    }
}

/// Converts stored values to `f32`.
///
/// # Shapes
/// `bytes`: [`DType::bytes_of`]`(out.len())`; `out`: a multiple of the block length. Values beyond what `bytes` holds
/// are left as they are.
pub fn dequantize(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.chunks_exact(dtype.block_bytes()).zip(out.chunks_mut(dtype.block_len()));
    match dtype {
        DType::F32 => {
            for (b, y) in blocks {
                y[0] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
        }
        DType::F16 => {
            for (b, y) in blocks {
                y[0] = half_at(b, 0);
            }
        }
        DType::Bf16 => {
            for (b, y) in blocks {
                y[0] = bf16::from_le_bytes([b[0], b[1]]).to_f32();
            }
        }
        DType::Q4_0 => {
            for (b, y) in blocks {
                let d = half_at(b, 0);
                fill(y, |i| d * (f32::from(nibble(&b[2..], i)) - 8.0));
            }
        }
        DType::Q4_1 => {
            for (b, y) in blocks {
                let (d, m) = (half_at(b, 0), half_at(b, 2));
                fill(y, |i| d * f32::from(nibble(&b[4..], i)) + m);
            }
        }
        DType::Q5_0 => {
            for (b, y) in blocks {
                let d = half_at(b, 0);
                let high = u32::from_le_bytes([b[2], b[3], b[4], b[5]]);
                fill(y, |i| d * (f32::from(nibble(&b[6..], i) | fifth_bit(high, i)) - 16.0));
            }
        }
        DType::Q5_1 => {
            for (b, y) in blocks {
                let (d, m) = (half_at(b, 0), half_at(b, 2));
                let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
                fill(y, |i| d * f32::from(nibble(&b[8..], i) | fifth_bit(high, i)) + m);
            }
        }
        DType::Q8_0 => {
            for (b, y) in blocks {
                let d = half_at(b, 0);
                fill(y, |i| d * f32::from(b[2 + i] as i8));
            }
        }
        DType::Q2K => blocks.for_each(|(b, y)| q2_k(b, y)),
        DType::Q3K => blocks.for_each(|(b, y)| q3_k(b, y)),
        DType::Q4K => blocks.for_each(|(b, y)| q4_k(b, y)),
        DType::Q5K => blocks.for_each(|(b, y)| q5_k(b, y)),
        DType::Q6K => blocks.for_each(|(b, y)| q6_k(b, y)),
    }
}

fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

fn fill(y: &mut [f32], value: impl Fn(usize) -> f32) {
    for (i, y) in y.iter_mut().enumerate() {
        *y = value(i);
    }
}

/// Value `i` of 32 nibbles: the low halves of the 16 bytes come first, then the high halves.
fn nibble(q: &[u8], i: usize) -> u8 {
    if i < 16 { q[i] & 15 } else { q[i - 16] >> 4 }
}

fn fifth_bit(high: u32, i: usize) -> u8 {
    ((((high >> i) & 1) as u8) << 4) & 16
}

/// 16 bytes (4-bit scale, 4-bit minimum), 64 bytes of 2-bit values, half `d`, half `dmin`.
fn q2_k(b: &[u8], y: &mut [f32]) {
    let (d, dmin) = (half_at(b, 80), half_at(b, 82));
    fill(y, |i| {
        let group = i / 16;
        let scale = d * f32::from(b[group] & 15);
        let min = dmin * f32::from(b[group] >> 4);
        scale * f32::from(two_bits(&b[16..80], i)) - min
    });
}

/// Value `i` of 256 two-bit values: each run of 32 bytes holds four layers of 32 values, lowest bits first.
fn two_bits(q: &[u8], i: usize) -> u8 {
    let (half, within) = (i / 128, i % 128);
    (q[half * 32 + within % 32] >> (2 * (within / 32))) & 3
}

/// 32 bytes of inverted third bits, 64 bytes of 2-bit values, 12 bytes of 6-bit scales (offset 32), half `d`.
fn q3_k(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 108);
    let scales = &b[96..108];
    fill(y, |i| {
        let group = i / 16;
        let low = if group < 8 { scales[group] & 15 } else { scales[group - 8] >> 4 };
        let high = (scales[8 + group % 4] >> (2 * (group / 4))) & 3;
        let scale = d * (f32::from(low | (high << 4)) - 32.0);
        let bit = (b[i % 32] >> (i / 32)) & 1;
        let q = i16::from(two_bits(&b[32..96], i)) - if bit == 0 { 4 } else { 0 };
        scale * f32::from(q)
    });
}

/// The 6-bit scale and minimum of group `j` of 8, packed in 12 bytes.
fn scale_min(s: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        ((s[j + 4] & 15) | ((s[j - 4] >> 6) << 4), (s[j + 4] >> 4) | ((s[j] >> 6) << 4))
    }
}

/// Value `i` of 256 nibbles: each run of 32 bytes holds 32 low, then 32 high halves.
fn nibble_k(q: &[u8], i: usize) -> u8 {
    let (run, within) = (i / 64, i % 64);
    let byte = q[run * 32 + within % 32];
    if within < 32 { byte & 15 } else { byte >> 4 }
}

/// half `d`, half `dmin`, 12 bytes of scales and minima, 128 bytes of nibbles.
fn q4_k(b: &[u8], y: &mut [f32]) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    fill(y, |i| {
        let (scale, min) = scale_min(&b[4..16], i / 32);
        d * f32::from(scale) * f32::from(nibble_k(&b[16..144], i)) - dmin * f32::from(min)
    });
}

/// half `d`, half `dmin`, 12 bytes of scales and minima, 32 bytes of fifth bits, 128 bytes of nibbles.
fn q5_k(b: &[u8], y: &mut [f32]) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    fill(y, |i| {
        let (scale, min) = scale_min(&b[4..16], i / 32);
        let bit = (b[16 + i % 32] >> (i / 32)) & 1;
        let q = nibble_k(&b[48..176], i) | (bit << 4);
        d * f32::from(scale) * f32::from(q) - dmin * f32::from(min)
    });
}

/// 128 bytes of low nibbles, 64 bytes of high 2 bits, 16 signed scales, half `d`; values are offset by 32.
fn q6_k(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 208);
    fill(y, |i| {
        let scale = d * f32::from(b[192 + i / 16] as i8);
        let (half, within) = (i / 128, i % 128);
        let byte = b[half * 64 + within % 64];
        let low = if within < 64 { byte & 15 } else { byte >> 4 };
        let high = two_bits(&b[128..192], i);
        scale * f32::from((low | (high << 4)) as i8 - 32)
    });
}
