//! Random weights for a model that starts from scratch.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::config::ModelConfig;
use crate::params::VALUE_HEAD;
use crate::transformer::Transformer;

/// Standard deviation of the embedding: with a final norm, logits of the tied output start well below one.
const EMBEDDING_STD: f64 = 0.04;

/// Weights from `seed`, the same on every machine.
///
/// Matrices are normal with deviation 1/√(inputs), those that write into the residual stream divided by √(2 · layers)
/// (Radford et al. 2019), norms are 1, biases and a value head 0.
pub fn random_params(config: &ModelConfig, seed: u64) -> Vec<f32> {
    let model = Transformer::new(config.clone(), false);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut params = vec![0.0; model.layout().len()];
    let residual = 1.0 / libm::sqrt(2.0 * config.num_hidden_layers as f64);
    for p in model.layout().parameters() {
        let values = &mut params[p.range.clone()];
        if p.name.ends_with("norm.weight") {
            values.fill(1.0);
        } else if p.shape.len() == 2 && p.name != VALUE_HEAD {
            let std = if p.name.contains("embed_tokens") {
                EMBEDDING_STD
            } else {
                let scale = if p.name.ends_with("o_proj.weight") || p.name.ends_with("down_proj.weight") {
                    residual
                } else {
                    1.0
                };
                scale / libm::sqrt(p.shape[1] as f64)
            };
            for v in values {
                *v = (std * normal(&mut rng)) as f32;
            }
        }
    }
    params
}

/// One standard normal number (Box and Muller 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (a, b) = (uniform(), uniform());
    libm::sqrt(-2.0 * libm::log(a)) * libm::cos(std::f64::consts::TAU * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let x: Vec<f64> = (0..50_000).map(|_| normal(&mut rng)).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64;
        assert!(mean.abs() < 0.02 && (var - 1.0).abs() < 0.03, "{mean} {var}");
    }
}
