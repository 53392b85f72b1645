//! The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), with the two seedings Python and NumPy use.

const N: usize = 624;
const M: usize = 397;

/// The bare 32-bit generator.
#[derive(Clone, Debug)]
pub struct Mt19937 {
    state: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// Seeds from one word (`init_genrand`).
    #[must_use]
    pub fn from_word(seed: u32) -> Self {
        let mut state = [0u32; N];
        state[0] = seed;
        for i in 1..N {
            let previous = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    /// Seeds from a list of words (`init_by_array`); an empty list counts as `[0]`.
    #[must_use]
    pub fn from_words(key: &[u32]) -> Self {
        let key = if key.is_empty() { &[0][..] } else { key };
        let mut state = Self::from_word(19_650_218).state;
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            let previous = state[i - 1];
            state[i] = (state[i] ^ (previous ^ (previous >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j = (j + 1) % key.len();
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        for _ in 0..N - 1 {
            let previous = state[i - 1];
            state[i] = (state[i] ^ (previous ^ (previous >> 30)).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        Self { state, next: N }
    }

    /// The next tempered 32-bit output.
    pub fn next_u32(&mut self) -> u32 {
        if self.next >= N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// A double in [0, 1) with 53 random bits, from two outputs.
    pub fn next_f64(&mut self) -> f64 {
        let high = f64::from(self.next_u32() >> 5);
        let low = f64::from(self.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    fn twist(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_outputs_are_the_published_ones() {
        // The reference programme's own check values for init_by_array({0x123, 0x234, 0x345, 0x456}).
        let mut mt = Mt19937::from_words(&[0x123, 0x234, 0x345, 0x456]);
        assert_eq!([mt.next_u32(), mt.next_u32(), mt.next_u32()], [1_067_595_299, 955_945_823, 477_289_528]);
        // And for the default seed 5489: the 10,000th output, as the C++ standard requires it.
        let mut mt = Mt19937::from_word(5489);
        let last = (0..10_000).fold(0, |_, _| mt.next_u32());
        assert_eq!(last, 4_123_659_995);
    }
}
