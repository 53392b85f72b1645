//! Conversations of many turns through one crowded generator, against each of them alone with room to spare.

use proptest::prelude::*;
use ragen_kernels::attention::Heads;
use ragen_kernels::kv_cache::{KvCache, PAGE};
use ragen_model::config::{Family, ModelConfig};
use ragen_model::generate::{Completion, Request};
use ragen_model::init::random_params;
use ragen_model::sampler::Sampling;
use ragen_model::trainable::{Limits, Trainable};
use ragen_model::transformer::Transformer;

fn config() -> ModelConfig {
    ModelConfig {
        family: Family::Qwen2,
        vocab_size: 40,
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 8,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        max_position_embeddings: 400,
        tie_word_embeddings: true,
        qkv_bias: true,
        qk_norm: false,
        bos_token_id: None,
        eos_token_ids: vec![1],
        pad_token_id: None,
    }
}

fn trainable(pages: usize) -> Trainable {
    let config = config();
    let cache_bytes = pages * KvCache::page_bytes(config.num_hidden_layers, Heads { query: 4, kv: 2, dim: 8 });
    let params = random_params(&config, 3);
    Trainable::new(Transformer::new(config, false), params, Limits { cache_bytes, ..Limits::default() })
}

/// Turns of one conversation: given tokens and the response's limit.
type Talk = Vec<(Vec<u32>, usize)>;

/// All responses of all talks. A talk's next turn begins when its response has ended.
fn play(talks: &[Talk], pages: usize, max_batch: usize) -> Vec<Vec<Completion>> {
    let mut model = trainable(pages);
    let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![1, 2, 3] };
    let mut generator = model.generator(sampling, max_batch);
    let request = |id: usize, turn: usize| {
        let (given, max_new_tokens) = talks[id][turn].clone();
        Request { id: id as u64, given, seed: (1000 * id + turn) as u64, max_new_tokens }
    };
    let mut responses = vec![Vec::new(); talks.len()];
    for id in 0..talks.len() {
        generator.submit(request(id, 0)).unwrap();
    }
    while generator.active() > 0 {
        for completion in generator.step().unwrap() {
            let id = completion.id as usize;
            responses[id].push(completion);
            if responses[id].len() < talks[id].len() {
                generator.submit(request(id, responses[id].len())).unwrap();
            } else {
                generator.close(id as u64);
            }
        }
    }
    responses
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn crowds_and_short_memory_change_nothing(
        talks in prop::collection::vec(
            prop::collection::vec((prop::collection::vec(4u32..40, 1..6), 1usize..24), 1..6),
            1..24,
        ),
        opening in prop::collection::vec(4u32..40, 1..70),
        shared in any::<bool>(),
        spare in 0usize..20,
        max_batch in 1usize..16,
    ) {
        let mut talks = talks;
        for (i, talk) in talks.iter_mut().enumerate() {
            let first = &mut talk[0].0;
            *first = [&opening[..], if shared && i % 2 == 0 { &[] } else { &first[..] }].concat();
        }
        let longest = talks.iter().map(|t| t.iter().map(|(g, n)| g.len() + n).sum::<usize>()).max().unwrap_or(1);
        // The least that can hold the longest conversation and the copy of a shared prompt's last page.
        let crowded = play(&talks, longest.div_ceil(PAGE) + 1 + spare, max_batch);
        for (i, talk) in talks.iter().enumerate() {
            // Alone, each under the id that its random streams are made from.
            let mut alone = vec![vec![(vec![5], 1)]; i];
            alone.push(talk.clone());
            let expected = play(&alone, 64 * (i + 1), 1).pop().unwrap();
            prop_assert_eq!(&crowded[i], &expected, "talk {}", i);
        }
    }
}
