//! NumPy's `SeedSequence`: turns a seed into as many well-mixed words as a generator wants (after O'Neill's
//! `seed_seq` design).

use super::words_of;

const POOL: usize = 4;

/// The entropy pool of `numpy.random.SeedSequence(seed)`.
#[derive(Clone, Debug)]
pub struct SeedSequence {
    pool: [u32; POOL],
}

impl SeedSequence {
    /// `SeedSequence(seed)`. A 64-bit seed has at most two words, fewer than the pool, so no surplus word needs
    /// mixing in.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (words, len) = words_of(seed);
        let mut constant = 0x43b0_d7e5u32;
        let mut hash = |value: u32| {
            let mut v = value ^ constant;
            constant = constant.wrapping_mul(0x931e_8875);
            v = v.wrapping_mul(constant);
            v ^ (v >> 16)
        };
        let mut pool = [0u32; POOL];
        for (i, slot) in pool.iter_mut().enumerate() {
            *slot = hash(if i < len { words[i] } else { 0 });
        }
        for src in 0..POOL {
            for dst in 0..POOL {
                if src != dst {
                    pool[dst] = mix(pool[dst], hash(pool[src]));
                }
            }
        }
        Self { pool }
    }

    /// `generate_state(n, uint64)`.
    #[must_use]
    pub fn generate_u64(&self, n: usize) -> Vec<u64> {
        let mut constant = 0x8b51_f9ddu32;
        let mut word = |i: usize| {
            let mut v = self.pool[i % POOL] ^ constant;
            constant = constant.wrapping_mul(0x58f3_8ded);
            v = v.wrapping_mul(constant);
            u64::from(v ^ (v >> 16))
        };
        (0..n)
            .map(|i| {
                let low = word(2 * i);
                low | word(2 * i + 1) << 32
            })
            .collect()
    }
}

fn mix(x: u32, y: u32) -> u32 {
    let r = x.wrapping_mul(0xca01_f9dd).wrapping_sub(y.wrapping_mul(0x4973_f715));
    r ^ (r >> 16)
}
