//! Draws one token from one row of logits.

use ragen_kernels::math::exp_slice;
use ragen_kernels::vocab::stats_from_logits;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// How tokens are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Softmax temperature; 0 is greedy decoding.
    pub temperature: f32,
    /// Keep the `top_k` most likely tokens; `None` keeps all.
    pub top_k: Option<usize>,
    /// Keep the smallest set of most likely tokens whose probability reaches `top_p`; 1 keeps all.
    pub top_p: f32,
    /// Tokens that end a response. The token that ended it is part of the response.
    pub stop: Vec<u32>,
}

impl Sampling {
    /// The factor on the logits: 1/T, and 1 for greedy decoding.
    pub fn inv_temperature(&self) -> f32 {
        if self.temperature > 0.0 { 1.0 / self.temperature } else { 1.0 }
    }
}

/// A drawn token and its probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The token.
    pub token: u32,
    /// log p over the whole vocabulary at the temperature: the bits that scoring with the same weights gives.
    pub log_prob: f32,
    /// log p under the distribution that was sampled from, after top-k and top-p; 0 for greedy decoding.
    pub sampling_log_prob: f32,
}

/// Tokens whose probabilities are summed before the draw looks into them.
const CHUNK: usize = 512;

/// Draws from `logits`, which are overwritten by `logits · inv_temperature`. `scratch` is reused from call to call.
///
/// One number of `rng` is used per draw, none for greedy decoding.
pub fn draw(logits: &mut [f32], sampling: &Sampling, rng: &mut ChaCha8Rng, scratch: &mut Vec<f32>) -> Drawn {
    let inv_temperature = sampling.inv_temperature();
    for z in logits.iter_mut() {
        *z *= inv_temperature;
    }
    if sampling.temperature <= 0.0 {
        let token = argmax(logits);
        return Drawn { token, log_prob: stats_from_logits(logits, token).0, sampling_log_prob: 0.0 };
    }
    // 53 random bits, as double-precision uniforms are made everywhere.
    let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let max = logits[argmax(logits) as usize];
    scratch.clear();
    scratch.extend(logits.iter().map(|z| z - max));
    exp_slice(scratch);
    let vocab = logits.len();
    if sampling.top_k.is_none_or(|k| k >= vocab) && sampling.top_p >= 1.0 {
        let token = pick(scratch, uniform);
        let log_prob = stats_from_logits(logits, token).0;
        return Drawn { token, log_prob, sampling_log_prob: log_prob };
    }
    let kept = keep(scratch, sampling);
    let mass: f64 = kept.iter().map(|&t| f64::from(scratch[t as usize])).sum();
    let mut left = uniform * mass;
    let mut token = kept[kept.len() - 1];
    for &t in &kept {
        left -= f64::from(scratch[t as usize]);
        if left < 0.0 {
            token = t;
            break;
        }
    }
    let sampling_log_prob = libm::log(f64::from(scratch[token as usize]) / mass) as f32;
    Drawn { token, log_prob: stats_from_logits(logits, token).0, sampling_log_prob }
}

/// The first of the largest logits.
fn argmax(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (i, z) in logits.iter().enumerate() {
        if *z > logits[best] {
            best = i;
        }
    }
    best as u32
}

/// The token at which the cumulative weight passes `uniform` of the total.
fn pick(weights: &[f32], uniform: f64) -> u32 {
    let chunk_sum = |chunk: &[f32]| chunk.iter().map(|w| f64::from(*w)).sum::<f64>();
    let total: f64 = weights.chunks(CHUNK).map(chunk_sum).sum();
    let mut left = uniform * total;
    for (c, chunk) in weights.chunks(CHUNK).enumerate() {
        let sum = chunk_sum(chunk);
        if left >= sum {
            left -= sum;
            continue;
        }
        for (i, w) in chunk.iter().enumerate() {
            left -= f64::from(*w);
            if left < 0.0 {
                return (c * CHUNK + i) as u32;
            }
        }
    }
    // Rounding may leave a trace of weight at the very end.
    weights.iter().rposition(|w| *w > 0.0).unwrap_or(0) as u32
}

/// The tokens that top-k and top-p leave, most likely first, ties by token.
fn keep(weights: &[f32], sampling: &Sampling) -> Vec<u32> {
    let mut order: Vec<u32> = (0..weights.len() as u32).collect();
    let by_weight = |a: &u32, b: &u32| weights[*b as usize].total_cmp(&weights[*a as usize]).then(a.cmp(b));
    if let Some(k) = sampling.top_k.filter(|k| *k < order.len()) {
        let k = k.max(1);
        order.select_nth_unstable_by(k - 1, by_weight);
        order.truncate(k);
    }
    order.sort_unstable_by(by_weight);
    if sampling.top_p < 1.0 {
        let total: f64 = order.iter().map(|&t| f64::from(weights[t as usize])).sum();
        let mut sum = 0.0;
        let enough = order.iter().position(|&t| {
            sum += f64::from(weights[t as usize]);
            sum >= f64::from(sampling.top_p) * total
        });
        order.truncate(enough.map_or(order.len(), |i| i + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn frequencies(sampling: &Sampling, logits: &[f32]) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = vec![0.0; logits.len()];
        let mut scratch = Vec::new();
        for _ in 0..20_000 {
            let drawn = draw(&mut logits.to_vec(), sampling, &mut rng, &mut scratch);
            counts[drawn.token as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    fn plain() -> Sampling {
        Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![] }
    }

    #[test]
    fn frequencies_follow_the_softmax() {
        let logits: Vec<f32> = [0.5f32, 0.3, 0.2].iter().map(|p| p.ln()).collect();
        for (a, b) in frequencies(&plain(), &logits).iter().zip([0.5, 0.3, 0.2]) {
            assert!((a - b).abs() < 0.015, "{a} {b}");
        }
        let cold = Sampling { temperature: 0.5, ..plain() };
        for (a, b) in frequencies(&cold, &logits).iter().zip([0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38]) {
            assert!((a - b).abs() < 0.015, "{a} {b}");
        }
    }

    #[test]
    fn cuts_keep_the_most_likely_and_report_what_was_sampled_from() {
        let logits: Vec<f32> = [0.5f32, 0.3, 0.2].iter().map(|p| p.ln()).collect();
        for sampling in [Sampling { top_k: Some(2), ..plain() }, Sampling { top_p: 0.7, ..plain() }] {
            let f = frequencies(&sampling, &logits);
            assert!((f[0] - 0.625).abs() < 0.015 && f[2] == 0.0, "{f:?}");
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let drawn = draw(&mut logits.clone(), &sampling, &mut rng, &mut Vec::new());
            let p = [0.625f32, 0.375][drawn.token as usize];
            assert!((drawn.sampling_log_prob - p.ln()).abs() < 1e-6);
            assert!((drawn.log_prob - logits[drawn.token as usize]).abs() < 1e-6);
        }
        let only = Sampling { top_p: 0.01, ..plain() };
        assert_eq!(frequencies(&only, &logits)[0], frequencies(&Sampling { top_k: Some(1), ..plain() }, &logits)[0]);
    }

    #[test]
    fn greedy_takes_the_first_maximum() {
        let greedy = Sampling { temperature: 0.0, ..plain() };
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let drawn = draw(&mut [1.0, 3.0, 3.0, -1.0], &greedy, &mut rng, &mut Vec::new());
        assert_eq!((drawn.token, drawn.sampling_log_prob), (1, 0.0));
    }

    #[test]
    fn a_token_of_no_weight_is_never_drawn() {
        let mut weights = vec![0.0f32; 1300];
        weights[700] = 1.0;
        for u in [0.0, 0.5, 1.0 - 1e-16] {
            assert_eq!(pick(&weights, u), 700);
        }
    }
}
