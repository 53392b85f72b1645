//! Adam with decoupled weight decay (Loshchilov and Hutter 2019), with the arithmetic of PyTorch's `AdamW`.
//!
//! What is here: one update of one flat parameter buffer, element by element, in one pass over memory.
//! What is not here: parameter groups, schedules, clipping (see [`crate::reduce`]).

use rayon::prelude::*;

use crate::simd::multiversion;

/// Elements above which the work is spread over threads, and elements of one piece.
const PARALLEL_FROM: usize = 1 << 16;
const PIECE: usize = 1 << 14;

/// Settings of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment, in `[0, 1)`.
    pub beta1: f64,
    /// Decay of the second moment, in `[0, 1)`.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Decoupled weight decay, multiplied by the learning rate.
    pub weight_decay: f64,
}

impl Default for AdamW {
    /// PyTorch's defaults.
    fn default() -> Self {
        Self { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 1e-2 }
    }
}

/// What one step needs of the settings, rounded once.
#[derive(Clone, Copy)]
struct Factors {
    decay: f32,
    one_minus_beta1: f32,
    beta2: f32,
    one_minus_beta2: f32,
    step_size: f32,
    sqrt_correction2: f32,
    eps: f32,
    grad_scale: f32,
}

impl AdamW {
    /// Updates `params` and the moments `m`, `v` from `grads`, each gradient multiplied by `grad_scale` first (for
    /// clipping). `step` counts from 1.
    ///
    /// ```text
    /// params ← params · (1 − lr · weight_decay)
    /// m ← m + (1 − beta1) · (g − m)
    /// v ← beta2 · v + (1 − beta2) · g²
    /// params ← params − lr / (1 − beta1^step) · m / (√v / √(1 − beta2^step) + eps)
    /// ```
    ///
    /// # Shapes
    /// All slices `[n]`.
    ///
    /// # Panics
    /// If the slices differ in length or `step` is 0.
    pub fn update(&self, params: &mut [f32], grads: &[f32], m: &mut [f32], v: &mut [f32], step: u64, grad_scale: f32) {
        let n = params.len();
        assert_eq!(grads.len(), n, "grads must be as long as params");
        assert_eq!(m.len(), n, "m must be as long as params");
        assert_eq!(v.len(), n, "v must be as long as params");
        assert!(step > 0, "steps count from 1");
        let correction1 = 1.0 - libm::pow(self.beta1, step as f64);
        let correction2 = 1.0 - libm::pow(self.beta2, step as f64);
        let factors = Factors {
            decay: (1.0 - self.lr * self.weight_decay) as f32,
            one_minus_beta1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            one_minus_beta2: (1.0 - self.beta2) as f32,
            step_size: (self.lr / correction1) as f32,
            sqrt_correction2: libm::sqrt(correction2) as f32,
            eps: self.eps as f32,
            grad_scale,
        };
        if n < PARALLEL_FROM {
            update_piece(params, grads, m, v, factors);
            return;
        }
        (params.par_chunks_mut(PIECE), grads.par_chunks(PIECE), m.par_chunks_mut(PIECE), v.par_chunks_mut(PIECE))
            .into_par_iter()
            .for_each(|(params, grads, m, v)| update_piece(params, grads, m, v, factors));
    }
}

multiversion! {
    fn update_piece(params: &mut [f32], grads: &[f32], m: &mut [f32], v: &mut [f32], f: Factors) {
        for ((p, &g), (m, v)) in params.iter_mut().zip(grads).zip(m.iter_mut().zip(v.iter_mut())) {
            let g = g * f.grad_scale;
            *m = (g - *m).mul_add(f.one_minus_beta1, *m);
            *v = (g * g).mul_add(f.one_minus_beta2, *v * f.beta2);
            let denominator = v.sqrt() / f.sqrt_correction2 + f.eps;
            *p = (*p * f.decay) - f.step_size * (*m / denominator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PyTorch's single-tensor update in `f64`.
    fn reference(o: &AdamW, p: &mut [f64], g: &[f64], m: &mut [f64], v: &mut [f64], step: u64, grad_scale: f64) {
        let correction1 = 1.0 - o.beta1.powi(step as i32);
        let correction2 = 1.0 - o.beta2.powi(step as i32);
        for i in 0..p.len() {
            let g = g[i] * grad_scale;
            p[i] *= 1.0 - o.lr * o.weight_decay;
            m[i] = o.beta1 * m[i] + (1.0 - o.beta1) * g;
            v[i] = o.beta2 * v[i] + (1.0 - o.beta2) * g * g;
            let denominator = (v[i] / correction2).sqrt() + o.eps;
            p[i] -= o.lr * (m[i] / correction1) / denominator;
        }
    }

    #[test]
    fn follows_the_formula_over_many_steps() {
        let optimizers = [
            AdamW::default(),
            AdamW { lr: 0.05, beta1: 0.8, beta2: 0.95, eps: 1e-3, weight_decay: 0.3 },
            AdamW { weight_decay: 0.0, ..AdamW::default() },
        ];
        for optimizer in optimizers {
            let n = 37;
            let mut p: Vec<f32> = (0..n).map(|i| (i as f32 - 18.0) * 0.1).collect();
            let (mut m, mut v) = (vec![0.0; n], vec![0.0; n]);
            let mut exact: Vec<f64> = p.iter().map(|&p| f64::from(p)).collect();
            let (mut exact_m, mut exact_v) = (vec![0.0; n], vec![0.0; n]);
            for step in 1..=30 {
                let g: Vec<f32> = (0..n).map(|i| ((i * 7 + step as usize * 13) % 11) as f32 - 5.0).collect();
                let wide: Vec<f64> = g.iter().map(|&g| f64::from(g)).collect();
                optimizer.update(&mut p, &g, &mut m, &mut v, step, 0.25);
                reference(&optimizer, &mut exact, &wide, &mut exact_m, &mut exact_v, step, 0.25);
            }
            for i in 0..n {
                assert!((f64::from(p[i]) - exact[i]).abs() < 1e-5, "{i}: {} {}", p[i], exact[i]);
                assert!((f64::from(m[i]) - exact_m[i]).abs() < 1e-5);
                assert!((f64::from(v[i]) - exact_v[i]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn first_step_moves_by_the_learning_rate() {
        let optimizer = AdamW { weight_decay: 0.0, ..AdamW::default() };
        let (mut p, mut m, mut v) = ([1.0, 1.0, 1.0], [0.0; 3], [0.0; 3]);
        optimizer.update(&mut p, &[1e-2, -3e4, 0.0], &mut m, &mut v, 1, 1.0);
        assert!((p[0] - 0.999).abs() < 1e-6 && (p[1] - 1.001).abs() < 1e-6);
        assert_eq!(p[2], 1.0);
    }

    #[test]
    fn weight_decay_acts_without_gradients() {
        let optimizer = AdamW { lr: 0.1, weight_decay: 0.5, ..AdamW::default() };
        let (mut p, mut m, mut v) = ([2.0], [0.0], [0.0]);
        optimizer.update(&mut p, &[0.0], &mut m, &mut v, 1, 1.0);
        assert!((p[0] - 1.9).abs() < 1e-6);
    }

    #[test]
    fn nothing_to_update() {
        AdamW::default().update(&mut [], &[], &mut [], &mut [], 1, 1.0);
    }

    #[test]
    #[should_panic(expected = "steps count from 1")]
    fn step_zero_is_refused() {
        AdamW::default().update(&mut [0.0], &[0.0], &mut [0.0], &mut [0.0], 0, 1.0);
    }
}
