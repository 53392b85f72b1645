//! A weight packed once for many products.

use super::pack::Memory;
use super::tile::PANEL;
use super::transpose;

/// A weight `[n, k]` of a linear layer, packed once and used many times.
#[derive(Clone)]
pub struct PackedWeight {
    n: usize,
    k: usize,
    memory: Memory,
}

impl PackedWeight {
    /// Packs the row-major weight `w[n, k]`.
    ///
    /// # Panics
    /// If `w` has not exactly `n * k` elements.
    pub fn pack(w: &[f32], n: usize, k: usize) -> Self {
        let len = n.div_ceil(PANEL).checked_mul(PANEL).and_then(|n| n.checked_mul(k));
        let memory = Memory::new(len.expect("packed size overflows"));
        let mut packed = Self { n, k, memory };
        packed.repack(w);
        packed
    }

    /// Packs other values of the same shape into the memory already held.
    ///
    /// # Panics
    /// If `w` has not exactly `n * k` elements.
    pub fn repack(&mut self, w: &[f32]) {
        super::check("w", w.len(), self.n, self.k);
        for j in (0..self.n).step_by(PANEL) {
            // SAFETY: rows `j..` of `w` exist, and the memory holds a panel of `k` steps for every `PANEL` rows begun.
            unsafe {
                let from = w.as_ptr().add(j * self.k);
                let to = self.memory.as_mut_ptr().add(j * self.k);
                transpose::panel_of_rows(from, self.k, (self.n - j).min(PANEL), self.k, to);
            }
        }
    }

    /// Output features.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Input features.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.len() * size_of::<f32>()
    }

    pub(super) fn panels(&self) -> *const f32 {
        self.memory.as_ptr()
    }
}

impl std::fmt::Debug for PackedWeight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedWeight").field("n", &self.n).field("k", &self.k).finish_non_exhaustive()
    }
}
