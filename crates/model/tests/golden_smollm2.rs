//! SmolLM2-135M-Instruct from its GGUF file against transformers in float32: log-probabilities, entropies, greedy
//! continuations, gradient norms of every parameter, and generation against scoring to the bit.
//!
//! Runs when the model's file is there (`RAGEN_SMOLLM2`, or `models/` where `scripts/fetch_smollm2.sh` puts it) and
//! `RAGEN_FIXTURES` is set; otherwise it says why it does not.

use std::path::{Path, PathBuf};

use ragen_kernels::reduce::sum_of_squares;
use ragen_model::batch::Batch;
use ragen_model::generate::Request;
use ragen_model::sampler::Sampling;
use ragen_model::trainable::{Limits, Sequence, Trainable};
use ragen_model::transformer::{Keep, ScoreGrads, Transformer, Workspace};
use ragen_model::weights;
use serde_json::Value;

fn model_file() -> PathBuf {
    std::env::var_os("RAGEN_SMOLLM2").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/smollm2-135m-instruct-q4_1.gguf"),
        PathBuf::from,
    )
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    numbers(value).into_iter().map(|v| v as u32).collect()
}

#[test]
fn the_real_model_agrees_with_transformers() {
    let file = model_file();
    if !file.exists() {
        return println!("skipped: {} is not there; scripts/fetch_smollm2.sh fetches it", file.display());
    }
    let Some(fixtures) = std::env::var_os("RAGEN_FIXTURES") else {
        return println!("skipped: RAGEN_FIXTURES is not set");
    };
    let path = PathBuf::from(fixtures).join("golden/smollm2_135m.json");
    let golden: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let loaded = weights::load(&file).unwrap();
    let model = Transformer::new(loaded.config.clone(), false);
    let chats = golden["chats"].as_array().unwrap();

    let sequences: Vec<(Vec<u32>, Vec<bool>)> = chats
        .iter()
        .map(|chat| {
            let ids = ids(&chat["ids"]);
            let flags = vec![true; ids.len()];
            (ids, flags)
        })
        .collect();
    let parts: Vec<(&[u32], &[bool])> = sequences.iter().map(|(t, f)| (&t[..], &f[..])).collect();
    let batch = Batch::pack(&parts, true);
    let scores = model.forward(&loaded.params, &batch, 1.0, Keep::LayerInputs, &mut Workspace::default());
    let mut at = 0;
    for chat in chats {
        let expected = numbers(&chat["logprob_of_next"]);
        for (l, h) in expected.iter().zip(numbers(&chat["entropy"])) {
            let (a, b) = (f64::from(scores.log_prob[at]), f64::from(scores.entropy[at]));
            assert!((a - l).abs() < 2e-3 && (b - h).abs() < 2e-3, "token {at}: {a} for {l}, {b} for {h}");
            at += 1;
        }
    }
    assert_eq!(at, scores.log_prob.len());

    // The gradient of the mean next-token loss of one chat.
    let golden_gradients = &golden["gradients"];
    let chat = golden_gradients["chat"].as_u64().unwrap() as usize;
    let batch = Batch::pack(&[parts[chat]], false);
    let (mut work, mut grads) = (Workspace::default(), vec![0.0; loaded.params.len()]);
    let scores = model.forward(&loaded.params, &batch, 1.0, Keep::LayerInputs, &mut work);
    let n = batch.targets.len() as f32;
    let loss = -scores.log_prob.iter().map(|l| f64::from(*l)).sum::<f64>() / f64::from(n);
    assert!((loss - golden_gradients["loss"].as_f64().unwrap()).abs() < 1e-3, "loss {loss}");
    let d = ScoreGrads { log_prob: vec![-1.0 / n; batch.targets.len()], ..ScoreGrads::default() };
    model.backward(&loaded.params, &batch, 1.0, Keep::LayerInputs, &scores, &d, &mut work, &mut grads);
    let close = |name: &str, found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: norm {found}, expected {expected}");
    };
    close("all", sum_of_squares(&grads).sqrt(), golden_gradients["total_norm"].as_f64().unwrap());
    let norms = golden_gradients["grad_norms"].as_object().unwrap();
    assert_eq!(norms.len(), model.layout().parameters().len());
    for p in model.layout().parameters() {
        close(&p.name, sum_of_squares(&grads[p.range.clone()]).sqrt(), norms[&p.name].as_f64().unwrap());
    }
    drop((grads, work));

    // Greedy continuations, all chats in one batch; then the recorded log-probabilities are those of scoring.
    let stop = vec![loaded.tokenizer.id_of("<|im_end|>").unwrap()];
    let limits = Limits { cache_bytes: 256 << 20, ..Limits::default() };
    let mut trainable = Trainable::new(model, loaded.params, limits);
    let sampling = Sampling { temperature: 0.0, top_k: None, top_p: 1.0, stop };
    let mut generator = trainable.generator(sampling, chats.len());
    for (id, (tokens, _)) in sequences.iter().enumerate() {
        let request = Request { id: id as u64, given: tokens.clone(), seed: 0, max_new_tokens: 32 };
        generator.submit(request).unwrap();
    }
    let mut done = Vec::new();
    while done.len() < chats.len() {
        done.extend(generator.step().unwrap());
    }
    drop(generator);
    done.sort_by_key(|c| c.id);
    let mut scored = Vec::new();
    for (completion, chat) in done.iter().zip(chats) {
        assert_eq!(completion.tokens, ids(&chat["greedy_ids"]), "{}", chat["greedy_text"]);
        let prompt = &sequences[completion.id as usize].0;
        let tokens = [&prompt[..], &completion.tokens[..]].concat();
        let sampled = (0..tokens.len()).map(|t| t >= prompt.len()).collect();
        scored.push(Sequence { tokens, sampled });
    }
    let again = trainable.score(&scored, 1.0);
    let recorded: Vec<f32> = done.iter().flat_map(|c| c.log_probs.clone()).collect();
    assert_eq!(again.log_prob, recorded, "sampling and scoring share every bit");
}
