//! Random streams that reproduce Python's and NumPy's draw for draw, so that an instance is the same here and in
//! the systems whose published results we compare with.
//!
//! What is here: [`PythonRandom`] (Python's `random`), [`NumpyLegacy`] (NumPy's `RandomState`), [`NumpyGenerator`]
//! (NumPy's `default_rng`, also Gymnasium's `np_random`) and [`splitmix64`] for seeds derived from seeds.
//! What is not here: the streams that sample tokens or actions; any `rand_core` generator serves for those.

mod legacy;
mod mt19937;
mod pcg64;
mod python;
mod seed_sequence;

pub use legacy::NumpyLegacy;
pub use mt19937::Mt19937;
pub use pcg64::{NumpyGenerator, Pcg64};
pub use python::PythonRandom;
pub use seed_sequence::SeedSequence;

/// The SplitMix64 step from `seed`: one well-mixed number per seed, and a bijection (Steele, Lea and Flood 2014).
#[must_use]
pub fn splitmix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform index below `n` from any generator, without bias (rejection on the next power of two); 0 when `n` is 0.
pub fn index_below(rng: &mut dyn rand_core::Rng, n: usize) -> usize {
    if n <= 1 {
        return 0;
    }
    let top = (n - 1) as u64;
    let mask = u64::MAX >> top.leading_zeros();
    loop {
        let draw = rng.next_u64() & mask;
        if draw <= top {
            return draw as usize;
        }
    }
}

/// The 32-bit words of a seed, least significant first, without leading zeros; `[0]` for 0.
fn words_of(seed: u64) -> ([u32; 2], usize) {
    let words = [seed as u32, (seed >> 32) as u32];
    (words, if words[1] == 0 { 1 } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn splitmix_matches_the_published_first_output() {
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn index_below_is_uniform_and_in_range() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut counts = [0usize; 5];
        for _ in 0..10_000 {
            counts[index_below(&mut rng, 5)] += 1;
        }
        assert!(counts.iter().all(|&c| (1_850..=2_150).contains(&c)), "{counts:?}");
        assert_eq!(index_below(&mut rng, 0), 0);
        assert_eq!(index_below(&mut rng, 1), 0);
    }
}
