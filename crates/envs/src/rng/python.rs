//! Python's `random.Random`, as far as environments use it.

use super::{Mt19937, words_of};

/// The stream of `random.Random(seed)`.
#[derive(Clone, Debug)]
pub struct PythonRandom {
    mt: Mt19937,
}

impl PythonRandom {
    /// `random.Random(seed)` for a non-negative integer.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (words, len) = words_of(seed);
        Self { mt: Mt19937::from_words(&words[..len]) }
    }

    /// `random()`: a double in [0, 1).
    pub fn random(&mut self) -> f64 {
        self.mt.next_f64()
    }

    /// `getrandbits(k)` for `k` up to 64 (larger values count as 64); 0 bits draw nothing.
    pub fn getrandbits(&mut self, k: u32) -> u64 {
        match k {
            0 => 0,
            1..=32 => u64::from(self.mt.next_u32() >> (32 - k)),
            _ => {
                let low = u64::from(self.mt.next_u32());
                let high = u64::from(self.mt.next_u32() >> (64 - k.min(64)));
                high << 32 | low
            }
        }
    }

    /// A uniform integer below `n`, by rejection as Python does it; 0 when `n` is 0.
    pub fn randbelow(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let bits = u64::BITS - n.leading_zeros();
        loop {
            let draw = self.getrandbits(bits);
            if draw < n {
                return draw;
            }
        }
    }

    /// `randint(low, high)`: both ends included. The ends are swapped when they come in the wrong order.
    pub fn randint(&mut self, low: i64, high: i64) -> i64 {
        let (low, high) = (low.min(high), low.max(high));
        let width = high.wrapping_sub(low) as u64;
        low.wrapping_add(self.randbelow(width.saturating_add(1)) as i64)
    }

    /// `choice(items)`; `None` when there are none.
    pub fn choice<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() {
            return None;
        }
        items.get(self.randbelow(items.len() as u64) as usize)
    }

    /// `shuffle(items)`, in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.randbelow(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }

    /// `sample(range(n), k)`: `k` distinct indices below `n`; at most `n` of them.
    pub fn sample(&mut self, n: usize, k: usize) -> Vec<usize> {
        let k = k.min(n);
        let mut result = Vec::with_capacity(k);
        if n <= pool_limit(k) {
            let mut pool: Vec<usize> = (0..n).collect();
            for i in 0..k {
                let j = self.randbelow((n - i) as u64) as usize;
                result.push(pool[j]);
                pool[j] = pool[n - i - 1];
            }
        } else {
            let mut taken = std::collections::HashSet::with_capacity(k);
            while result.len() < k {
                let j = self.randbelow(n as u64) as usize;
                if taken.insert(j) {
                    result.push(j);
                }
            }
        }
        result
    }

    /// `uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }
}

/// Population size up to which Python samples from a copied list: 21, plus the smallest power of four that is at
/// least `3 k` when `k` exceeds 5.
fn pool_limit(k: usize) -> usize {
    let mut limit = 21usize;
    if k > 5 {
        let wanted = k.saturating_mul(3);
        let mut power = 1usize;
        while power < wanted {
            power = power.saturating_mul(4);
        }
        limit = limit.saturating_add(power);
    }
    limit
}
