//! NumPy's legacy `RandomState`, as far as environments use it.

use super::Mt19937;

/// The stream of `numpy.random.RandomState(seed)`, equal to the module functions after `numpy.random.seed(seed)`.
#[derive(Clone, Debug)]
pub struct NumpyLegacy {
    mt: Mt19937,
}

impl NumpyLegacy {
    /// `RandomState(seed)`.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self { mt: Mt19937::from_word(seed) }
    }

    /// `randint(n)`: uniform below `n` by rejection under a bit mask; draws nothing when `n` is 1 (or 0).
    pub fn randint(&mut self, n: u64) -> u64 {
        let top = n.saturating_sub(1);
        if top == 0 {
            return 0;
        }
        let mask = u64::MAX >> top.leading_zeros();
        loop {
            let draw = if top <= u64::from(u32::MAX) {
                u64::from(self.mt.next_u32()) & mask
            } else {
                let high = u64::from(self.mt.next_u32());
                (high << 32 | u64::from(self.mt.next_u32())) & mask
            };
            if draw <= top {
                return draw;
            }
        }
    }

    /// `random()`: a double in [0, 1).
    pub fn random(&mut self) -> f64 {
        self.mt.next_f64()
    }

    /// `shuffle(items)`, in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.randint(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }

    /// `permutation(n)`.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut items: Vec<usize> = (0..n).collect();
        self.shuffle(&mut items);
        items
    }
}
