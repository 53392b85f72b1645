//! Tiny random models of each family against PyTorch: log-probabilities, entropies, every gradient, ten AdamW steps.

use std::path::{Path, PathBuf};

use ragen_kernels::adamw::AdamW;
use ragen_kernels::reduce::{clip_factor, sum_of_squares};
use ragen_model::batch::Batch;
use ragen_model::config::ModelConfig;
use ragen_model::transformer::{Keep, ScoreGrads, Scores, Transformer, Workspace};
use ragen_model::weights::load_params;
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

struct Case {
    model: Transformer,
    params: Vec<f32>,
    batch: Batch,
    golden: Value,
    c: Vec<f32>,
    e: Vec<f32>,
}

fn case(name: &str, share: bool) -> Case {
    let dir = fixture(name);
    let config = ModelConfig::from_file(&dir.join("config.json")).unwrap();
    let params = load_params(&dir, &config).unwrap().params;
    let golden: Value = serde_json::from_slice(&std::fs::read(dir.join("golden.json")).unwrap()).unwrap();
    let (mut sequences, mut c, mut e) = (Vec::new(), Vec::new(), Vec::new());
    for s in golden["sequences"].as_array().unwrap() {
        let ids: Vec<u32> = numbers(&s["ids"]).iter().map(|v| *v as u32).collect();
        let flags = vec![true; ids.len()];
        sequences.push((ids, flags));
        c.extend(numbers(&s["c"]).iter().map(|v| *v as f32));
        e.extend(numbers(&s["e"]).iter().map(|v| *v as f32));
    }
    let refs: Vec<(&[u32], &[bool])> = sequences.iter().map(|(t, f)| (&t[..], &f[..])).collect();
    let batch = Batch::pack(&refs, share);
    Case { model: Transformer::new(config, false), params, batch, golden, c, e }
}

fn loss(scores: &Scores, c: &[f32], e: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(&scores.log_prob, c) + dot(&scores.entropy, e)
}

fn gradients(case: &Case, params: &[f32], keep: Keep, work: &mut Workspace) -> (Scores, Vec<f32>) {
    let mut grads = vec![0.0; params.len()];
    let scores = case.model.forward(params, &case.batch, 1.0, keep, work);
    let d = ScoreGrads { log_prob: case.c.clone(), entropy: case.e.clone(), value: vec![] };
    case.model.backward(params, &case.batch, 1.0, keep, &scores, &d, work, &mut grads);
    (scores, grads)
}

fn tensors(file: &Path) -> Vec<(String, Vec<f32>)> {
    let bytes = std::fs::read(file).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.iter()
        .map(|(name, view)| {
            let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            (name.to_owned(), values)
        })
        .collect()
}

const MODELS: [&str; 4] = ["tiny_llama", "tiny_llama_tied", "tiny_qwen2", "tiny_qwen3"];

#[test]
fn log_probabilities_and_entropies() {
    for name in MODELS {
        let case = case(name, true);
        for (t, temperature) in [(0, 1.0f32), (1, 0.7)] {
            let mut work = Workspace::default();
            let scores = case.model.forward(&case.params, &case.batch, 1.0 / temperature, Keep::LayerInputs, &mut work);
            let mut at = 0;
            for s in case.golden["sequences"].as_array().unwrap() {
                let expected = &s["scores"][t];
                assert!((expected["temperature"].as_f64().unwrap() - f64::from(temperature)).abs() < 1e-6);
                for (l, h) in numbers(&expected["log_prob"]).iter().zip(numbers(&expected["entropy"])) {
                    let (a, b) = (f64::from(scores.log_prob[at]), f64::from(scores.entropy[at]));
                    assert!((a - l).abs() < 2e-5 && (b - h).abs() < 2e-5, "{name} {at}: {a} {l}, {b} {h}");
                    at += 1;
                }
            }
            assert_eq!(at, scores.log_prob.len());
        }
    }
}

#[test]
fn every_gradient() {
    for name in MODELS {
        let case = case(name, false);
        let (_, grads) = gradients(&case, &case.params, Keep::Everything, &mut Workspace::default());
        let (_, again) = gradients(&case, &case.params, Keep::LayerInputs, &mut Workspace::default());
        assert_eq!(grads, again, "recomputation changes no bit");
        let golden = &case.golden["gradients"][0];
        let norm = golden["norm"].as_f64().unwrap();
        assert!((sum_of_squares(&grads).sqrt() / norm - 1.0).abs() < 1e-5, "{name}");
        let expected = tensors(&fixture(name).join("golden_grads.safetensors"));
        assert_eq!(expected.len(), case.model.layout().parameters().len());
        for (tensor, values) in expected {
            let p = case.model.layout().parameters().iter().find(|p| p.name == tensor).unwrap();
            for (a, b) in grads[p.range.clone()].iter().zip(&values) {
                assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{name} {tensor}: {a} {b}");
            }
        }
        // Shared prefixes give the same scores to the bit and the same gradients up to rounding.
        let shared = self::case(name, true);
        let (_, folded) = gradients(&shared, &shared.params, Keep::Everything, &mut Workspace::default());
        for (a, b) in folded.iter().zip(&grads) {
            assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()));
        }
    }
}

#[test]
fn ten_adamw_steps() {
    for name in MODELS {
        let case = case(name, false);
        let golden = &case.golden["adamw"];
        let n = case.params.len();
        let (mut params, mut m, mut v) = (case.params.clone(), vec![0.0; n], vec![0.0; n]);
        let mut work = Workspace::default();
        let betas = numbers(&golden["betas"]);
        let number = |key: &str| golden[key].as_f64().unwrap();
        let optimizer = AdamW {
            lr: number("lr"),
            beta1: betas[0],
            beta2: betas[1],
            eps: number("eps"),
            weight_decay: number("weight_decay"),
        };
        for step in 0..golden["steps"].as_u64().unwrap() {
            let (scores, grads) = gradients(&case, &params, Keep::Everything, &mut work);
            let (value, norm) = (loss(&scores, &case.c, &case.e), sum_of_squares(&grads).sqrt());
            let (l, g) = (numbers(&golden["loss"])[step as usize], numbers(&golden["gradient_norm"])[step as usize]);
            assert!((value - l).abs() < 2e-3 * (1.0 + l.abs()), "{name} step {step}: loss {value}, expected {l}");
            assert!((norm / g - 1.0).abs() < 2e-3, "{name} step {step}: norm {norm}, expected {g}");
            let scale = clip_factor(norm, number("max_grad_norm"));
            optimizer.update(&mut params, &grads, &mut m, &mut v, step + 1, scale);
        }
        let tolerance = 10.0 * number("largest_difference_to_float64") + 1e-5;
        for (tensor, values) in tensors(&fixture(name).join("golden_after_adamw.safetensors")) {
            let p = case.model.layout().parameters().iter().find(|p| p.name == tensor).unwrap();
            for (a, b) in params[p.range.clone()].iter().zip(&values) {
                assert!(f64::from((a - b).abs()) < tolerance, "{name} {tensor}: {a} {b}, tolerance {tolerance}");
            }
        }
    }
}
