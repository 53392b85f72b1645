//! Every loss, cut into micro-batches in every way, against the loss of the whole mini-batch.

use super::*;
use crate::aggregate::{LossAggMode, Normalizer};
use crate::kl::kl_loss;
use crate::tokens::Rows;

const LENGTHS: [usize; 5] = [3, 1, 0, 4, 2];

/// A number in [−1, 1) that depends on its index only.
fn noise(seed: usize, t: usize) -> f64 {
    let x = ((seed * 1_000 + t) as f64 * 12.9898).sin() * 43_758.545_3;
    2.0 * (x - x.floor()) - 1.0
}

struct Batch {
    log_prob: Vec<f64>,
    old: Vec<f64>,
    reference: Vec<f64>,
    advantage: Vec<f64>,
    value: Vec<f64>,
    entropy: Vec<f64>,
    chosen: Vec<bool>,
}

/// Loss and derivatives of the tokens of some rows.
type Part = (f64, Vec<f64>);

fn compute(which: &str, batch: &Batch, first: usize, rows: &Rows, weight: &[f64]) -> Part {
    let range = first..first + rows.tokens();
    let (lp, old) = (&batch.log_prob[range.clone()], &batch.old[range.clone()]);
    let reference = &batch.reference[range.clone()];
    let inputs = PolicyInputs::new(lp, old, &batch.advantage[range.clone()], weight);
    let chosen = &batch.chosen[range.clone()];
    let policy = match which {
        "ppo" => ppo(&inputs, &PpoOptions::default()),
        "gspo" => gspo(rows, &inputs, &GspoOptions { clip_ratio_low: 0.1, clip_ratio_high: 0.1 }),
        "gmpo" => gmpo(rows, &inputs, &GmpoOptions::default()),
        "cispo" => cispo(&inputs, &CispoOptions::capped(1.3)),
        "sapo" => sapo(&inputs, &SapoOptions::default()),
        "policy_gradient" => policy_gradient(&inputs),
        "kl_cov" => kl_cov(&inputs, chosen, 0.5),
        "clip_cov" => clip_cov(&inputs, chosen, &ClipCovOptions::default()),
        "kl" => {
            let term = kl_loss(lp, reference, weight, "k3".parse().unwrap()).unwrap();
            return (term.loss, term.d_log_prob);
        }
        "unbiased_kl" => {
            let term = unbiased_kl(rows, lp, old, reference, weight, RatioLevel::Sequence).unwrap();
            return (term.loss, term.d_log_prob);
        }
        "value" => {
            let value = &batch.value[range.clone()];
            let loss = value_loss(&ValueInputs { value, old_value: lp, returns: reference, weight }, 0.5).unwrap();
            return (loss.loss, loss.d_value);
        }
        "entropy" => {
            let term = entropy_bonus(&batch.entropy[range], weight, 0.01).unwrap();
            return (term.loss, term.d_entropy);
        }
        other => panic!("{other}"),
    }
    .unwrap();
    (policy.loss, policy.d_log_prob)
}

#[test]
fn micro_batches_never_change_a_loss() {
    let n: usize = LENGTHS.iter().sum();
    let series = |seed: usize| (0..n).map(|t| noise(seed, t)).collect::<Vec<f64>>();
    let log_prob: Vec<f64> = series(1).iter().map(|x| x - 1.5).collect();
    let batch = Batch {
        old: log_prob.iter().zip(series(2)).map(|(lp, x)| lp + 0.4 * x).collect(),
        reference: log_prob.iter().zip(series(3)).map(|(lp, x)| lp + 0.4 * x).collect(),
        log_prob,
        advantage: series(4),
        value: series(5),
        entropy: series(6).iter().map(|x| x + 1.0).collect(),
        chosen: (0..n).map(|t| t % 3 == 0).collect(),
    };
    let losses = [
        "ppo",
        "gspo",
        "gmpo",
        "cispo",
        "sapo",
        "policy_gradient",
        "kl_cov",
        "clip_cov",
        "kl",
        "unbiased_kl",
        "value",
        "entropy",
    ];
    let modes = ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"];
    for (which, mode) in losses.iter().flat_map(|which| modes.map(|mode| (*which, mode))) {
        let normalizer = Normalizer::new(LossAggMode::parse(mode, 7.0).unwrap(), LENGTHS);
        let rows = Rows::from_lengths(LENGTHS);
        let (loss, grad) = compute(which, &batch, 0, &rows, &normalizer.weights(&rows));
        assert!(grad.iter().any(|g| *g != 0.0), "{which}: nothing to compare");
        for cuts in 0..1u32 << (LENGTHS.len() - 1) {
            let (mut sum, mut parts) = (0.0, Vec::new());
            let mut start = 0;
            for end in 1..=LENGTHS.len() {
                if end == LENGTHS.len() || cuts & (1 << (end - 1)) != 0 {
                    let micro = Rows::from_lengths(LENGTHS[start..end].iter().copied());
                    let weight = normalizer.weights(&micro);
                    let (part, part_grad) = compute(which, &batch, parts.len(), &micro, &weight);
                    sum += part;
                    parts.extend(part_grad);
                    start = end;
                }
            }
            assert!((sum - loss).abs() < 1e-14, "{which}, {mode}, cuts {cuts:b}: {sum} instead of {loss}");
            assert_eq!(parts, grad, "{which}, {mode}, cuts {cuts:b}");
        }
    }
}
