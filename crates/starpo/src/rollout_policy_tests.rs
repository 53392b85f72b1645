//! Rollouts with a real transformer: the recorded log-probabilities are those that scoring gives, to the bit.

use ragen_envs::{Split, registry};
use ragen_model::bpe_train::{BpeOptions, train};
use ragen_model::config::{Family, ModelConfig};
use ragen_model::trainable::{Limits, Trainable};
use ragen_model::transformer::Transformer;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::*;
use crate::chat_dialogue::ChatDialogue;
use crate::context::{ContextOverflow, ContextWindow, Layout};
use crate::dialogue::scripted::{Trouble, line};
use crate::local_policy::LocalPolicy;
use crate::policy::Sequence;

fn dialogue() -> ChatDialogue {
    let template = registry::template("SimpleSokoban").unwrap();
    let mut env = registry::make(template.env_type, &template.env_config).unwrap();
    let texts: Vec<String> = (0..20).map(|seed| env.reset(seed, Split::Train).unwrap()).collect();
    let options = BpeOptions { vocab_size: 300, ..BpeOptions::default() };
    ChatDialogue::of_tokenizer(train(&texts, &options).unwrap()).unwrap()
}

fn policy(dialogue: &ChatDialogue) -> LocalPolicy {
    let config = ModelConfig {
        family: Family::Qwen2,
        vocab_size: dialogue.tokenizer().vocab_size(),
        hidden_size: 32,
        intermediate_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 16,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        max_position_embeddings: 512,
        tie_word_embeddings: true,
        qkv_bias: true,
        qk_norm: false,
        bos_token_id: None,
        eos_token_ids: vec![dialogue.end_of_turn()],
        pad_token_id: None,
    };
    let model = Transformer::new(config, false);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let params = (0..model.layout().len()).map(|_| (rng.next_u32() as f32 / u32::MAX as f32 - 0.5) * 0.4).collect();
    LocalPolicy::new(Trainable::new(model, params, Limits::default()))
}

#[test]
fn recorded_log_probabilities_are_the_scored_ones() {
    let dialogue = dialogue();
    let mut policy = policy(&dialogue);
    let context = ContextOptions { layout: Layout::Compact, ..ContextOptions::default() };
    let groups: Vec<Group> =
        (0..3).map(|seed| Group { tag: line(Trouble::None, ""), seed: 2 * seed, split: Split::Train }).collect();
    for (temperature, top_k, top_p) in [(1.0, None, 1.0), (0.7, Some(40), 0.9)] {
        let options = RolloutOptions {
            group_size: 4,
            max_turn: 4,
            response_length: 24,
            temperature,
            top_k,
            top_p,
            max_batch: 5,
            seed: 3,
            ..RolloutOptions::default()
        };
        let episodes = collect(&mut policy, &dialogue, &context, &groups, &options).unwrap();
        let sequences: Vec<Sequence> = episodes.iter().flat_map(Episode::to_sequences).collect();
        let recorded: Vec<u32> = episodes.iter().flat_map(|e| &e.log_probs).map(|p| p.to_bits()).collect();
        let scored = policy.score(&sequences, temperature).unwrap().log_prob;
        assert!(recorded.len() > 12 * 24, "{}", recorded.len());
        assert_eq!(recorded, scored.iter().map(|p| p.to_bits()).collect::<Vec<_>>());
        // The members of a group speak differently; the size of the batch changes nothing.
        assert_ne!(episodes[0].tokens, episodes[1].tokens);
        for max_batch in [1, 12] {
            let options = RolloutOptions { max_batch, ..options.clone() };
            assert!(collect(&mut policy, &dialogue, &context, &groups, &options).unwrap() == episodes, "{max_batch}");
        }
        // Both ways of ending a response occur.
        let turns = || episodes.iter().flat_map(|e| &e.turns);
        assert!(turns().any(|t| t.stopped) || temperature < 1.0);
        assert!(turns().any(|t| !t.stopped));
    }
}

#[test]
fn a_full_context_ends_episodes_of_a_real_model() {
    let dialogue = dialogue();
    let mut policy = policy(&dialogue);
    let context = ContextOptions { layout: Layout::Compact, ..ContextOptions::default() };
    let group = Group { tag: line(Trouble::None, ""), seed: 0, split: Split::Train };
    let options = RolloutOptions { group_size: 3, max_turn: 50, response_length: 100, ..RolloutOptions::default() };
    let episodes = collect(&mut policy, &dialogue, &context, &[group], &options).unwrap();
    for e in &episodes {
        assert_eq!(e.outcome, Outcome::ContextLimit);
        assert!(e.tokens.len() <= 512 && e.tokens.len() > 300, "{}", e.tokens.len());
    }
}

#[test]
fn recorded_log_probabilities_are_the_scored_ones_in_every_context_mode() {
    let dialogue = dialogue();
    let mut policy = policy(&dialogue);
    let groups: Vec<Group> =
        (0..2).map(|seed| Group { tag: line(Trouble::None, ""), seed: 2 * seed, split: Split::Train }).collect();
    let (all, two) = (usize::MAX, 2);
    for (window, limit) in [
        (ContextWindow::Dialogue { turns: two }, usize::MAX),
        (ContextWindow::Dialogue { turns: all }, 150),
        (ContextWindow::Memory { turns: two }, usize::MAX),
        (ContextWindow::Memory { turns: all }, 150),
        (ContextWindow::Full, 150),
    ] {
        let overflow = ContextOverflow::DropOldestTurns;
        let context = ContextOptions { layout: Layout::Compact, window, overflow, ..ContextOptions::default() };
        let options = RolloutOptions {
            group_size: 3,
            max_turn: 5,
            response_length: 24,
            max_model_len: limit,
            max_batch: 4,
            seed: 3,
            ..RolloutOptions::default()
        };
        let episodes = collect(&mut policy, &dialogue, &context, &groups, &options).unwrap();
        let sequences: Vec<Sequence> = episodes.iter().flat_map(Episode::to_sequences).collect();
        let recorded: Vec<u32> = episodes.iter().flat_map(|e| &e.log_probs).map(|p| p.to_bits()).collect();
        let scored = policy.score(&sequences, 1.0).unwrap().log_prob;
        assert_eq!(recorded, scored.iter().map(|p| p.to_bits()).collect::<Vec<_>>(), "{window:?}");
        assert!(sequences.len() > episodes.len(), "{window:?}: {} samples", sequences.len());
        assert!(sequences.iter().all(|s| s.tokens.len() <= limit));
        assert!(episodes.iter().all(|e| e.turns.len() == 5), "{window:?}: nothing is truncated");
        assert_eq!(episodes.iter().any(|e| e.turns.iter().any(|t| t.dropped_turns > 0)), limit < usize::MAX);
        for max_batch in [1, 12] {
            let options = RolloutOptions { max_batch, ..options.clone() };
            assert!(collect(&mut policy, &dialogue, &context, &groups, &options).unwrap() == episodes, "{max_batch}");
        }
    }
}
