//! PCG64 (XSL-RR, O'Neill 2014) and NumPy's `Generator` on top of it.

use super::SeedSequence;

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// The bare 64-bit generator, seeded as NumPy seeds it.
#[derive(Clone, Debug)]
pub struct Pcg64 {
    state: u128,
    inc: u128,
}

impl Pcg64 {
    /// `PCG64(SeedSequence(seed))`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = SeedSequence::new(seed).generate_u64(4);
        let wide = |i: usize| u128::from(words[i]) << 64 | u128::from(words[i + 1]);
        let inc = wide(2) << 1 | 1;
        let state = inc.wrapping_add(wide(0)).wrapping_mul(MULTIPLIER).wrapping_add(inc);
        Self { state, inc }
    }

    /// The state and the increment, as NumPy shows them.
    #[must_use]
    pub fn state(&self) -> (u128, u128) {
        (self.state, self.inc)
    }

    /// The next output.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.inc);
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }
}

/// Serves wherever a `rand_core` generator is wanted; 32-bit numbers are the low halves of 64-bit ones.
impl rand_core::TryRng for Pcg64 {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(Pcg64::next_u64(self) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(Pcg64::next_u64(self))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            let word = Pcg64::next_u64(self).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

/// The stream of `numpy.random.default_rng(seed)`; Gymnasium's `np_random` is the same.
#[derive(Clone, Debug)]
pub struct NumpyGenerator {
    bits: Pcg64,
    /// The unused high half of the last output that was drawn for a 32-bit number.
    half: Option<u32>,
}

impl NumpyGenerator {
    /// `default_rng(seed)`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { bits: Pcg64::new(seed), half: None }
    }

    /// `random()`: a double in [0, 1). Leaves the buffered half alone.
    pub fn random(&mut self) -> f64 {
        (self.bits.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// `integers(low, high)`: `high` excluded, Lemire's method (2019). Returns `low`, drawing nothing, when the range
    /// holds one number or none.
    pub fn integers(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        let top = (high.wrapping_sub(low) as u64) - 1;
        let offset = if top == 0 {
            0
        } else if top <= u64::from(u32::MAX) {
            u64::from(self.bounded_u32(top as u32))
        } else {
            self.bounded_u64(top)
        };
        low.wrapping_add(offset as i64)
    }

    /// `choice(len(p), p=p)`: an index drawn with the given weights, which are normalised by their sum; `None` when
    /// there are no weights.
    pub fn choice_p(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().sum();
        let u = self.random();
        let mut cumulative = 0.0;
        let last = weights.len().checked_sub(1)?;
        for (i, weight) in weights.iter().enumerate() {
            cumulative += weight;
            if u < cumulative / total {
                return Some(i);
            }
        }
        Some(last)
    }

    /// Index of the first cumulative probability above the next `random()`, the first index if there is none: the
    /// categorical draw of Gymnasium's toy-text environments.
    pub fn categorical(&mut self, probabilities: &[f64]) -> usize {
        let u = self.random();
        let mut cumulative = 0.0;
        for (i, p) in probabilities.iter().enumerate() {
            cumulative += p;
            if cumulative > u {
                return i;
            }
        }
        0
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(high) = self.half.take() {
            return high;
        }
        let wide = self.bits.next_u64();
        self.half = Some((wide >> 32) as u32);
        wide as u32
    }

    fn bounded_u32(&mut self, top: u32) -> u32 {
        if top == u32::MAX {
            return self.next_u32();
        }
        let n = top + 1;
        let threshold = (u32::MAX - top) % n;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(n);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    fn bounded_u64(&mut self, top: u64) -> u64 {
        if top == u64::MAX {
            return self.bits.next_u64();
        }
        let n = top + 1;
        let threshold = (u64::MAX - top) % n;
        loop {
            let product = u128::from(self.bits.next_u64()) * u128::from(n);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }
}
