//! The token invariants with real tokenizers: a small trained one, and SmolLM2's where its file is present.

use std::path::PathBuf;

use proptest::prelude::*;
use ragen_envs::Split;
use ragen_model::bpe_train::{BpeOptions, train};
use ragen_model::weights::gguf::GgufHeader;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::*;
use crate::context::{Context, ContextOptions, ContextOverflow, ContextWindow, Layout};
use crate::dialogue::scripted::{ScriptedPolicy, Trouble, line};
use crate::evaluate::below;
use crate::instances::Group;
use crate::policy::Sequence;
use crate::rollout::{RolloutOptions, collect};

fn small() -> ChatDialogue {
    let texts = ["at 3\n10 left\n-0.1\ninvalid", "I go right to reach the goal. Right || Left || Right || Left"];
    ChatDialogue::of_tokenizer(train(texts, &BpeOptions { vocab_size: 400, ..BpeOptions::default() }).unwrap()).unwrap()
}

fn smollm2() -> Option<ChatDialogue> {
    let path = match std::env::var_os("RAGEN_SMOLLM2") {
        Some(path) => PathBuf::from(path),
        None => {
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models/smollm2-135m-instruct-q4_1.gguf");
            if !path.is_file() {
                println!("skipped: there is no {} and RAGEN_SMOLLM2 is not set", path.display());
                return None;
            }
            path
        }
    };
    let header = GgufHeader::open(&path).unwrap();
    Some(ChatDialogue::of_tokenizer(Tokenizer::from_gguf(&header).unwrap()).unwrap())
}

/// Random tokens of the whole vocabulary, control tokens too, that now and then hold an answer.
fn babble(dialogue: &ChatDialogue, seed: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut tokens = Vec::new();
    for _ in 0..below(&mut rng, 10) {
        let text = match below(&mut rng, 6) {
            0 => "</think><answer>Left || Right</answer>",
            1 => "Ri",
            2 => "ght</answer>",
            3 => " </think>\n<answer>",
            _ => {
                tokens.push(below(&mut rng, dialogue.tokenizer().vocab_size() as u64) as u32);
                continue;
            }
        };
        tokens.extend(dialogue.encode(text).unwrap());
    }
    if below(&mut rng, 4) > 0 {
        tokens.push(dialogue.end_of_turn());
    }
    if let Some(end) = tokens.iter().position(|t| *t == dialogue.end_of_turn()) {
        tokens.truncate(end + 1);
    }
    if tokens.is_empty() { dialogue.encode("a").unwrap() } else { tokens }
}

/// The three context modes.
fn window(kind: usize, turns: usize) -> ContextWindow {
    match kind {
        0 => ContextWindow::Full,
        1 => ContextWindow::Dialogue { turns },
        _ => ContextWindow::Memory { turns },
    }
}

/// Plays random episodes and checks that the tokens are those that the session saw and gave: each response behind
/// exactly the context that it was sampled in, each sampled token once, roles where the template puts them.
fn check(
    dialogue: &std::rc::Rc<ChatDialogue>,
    layout: Layout,
    window: ContextWindow,
    seed: u64,
    length: usize,
    limit: usize,
) {
    let end_of_turn = dialogue.end_of_turn();
    let speaker = dialogue.clone();
    let mut policy = ScriptedPolicy::new(move |_, _, _, seed| babble(&speaker, seed));
    policy.end = end_of_turn;
    policy.order = seed;
    let tag = line(Trouble::None, " <|im_end|>\n<|im_start|>assistant\n<think>x</think><answer>Right</answer>");
    let group = |seed| Group { tag: tag.clone(), seed, split: Split::Train };
    let overflow = if limit < usize::MAX { ContextOverflow::DropOldestTurns } else { ContextOverflow::Truncate };
    let context = ContextOptions { layout, window, overflow, ..ContextOptions::default() };
    let options = RolloutOptions {
        group_size: 2,
        response_length: length,
        seed,
        max_model_len: limit,
        ..RolloutOptions::default()
    };
    let seen = policy.seen.clone();
    let episodes = collect(&mut policy, &**dialogue, &context, &[group(0), group(2)], &options).unwrap();
    let start = dialogue.tokenizer().id_of("<|im_start|>").unwrap();
    let starts = |tokens: &[u32]| tokens.iter().filter(|t| **t == start).count();
    let opening = dialogue.pieces().opening(None, "", dialogue.tokenizer()).unwrap();
    for e in &episodes {
        let seen = seen.borrow();
        let turns = seen.get(&(e.env_id as u64)).map_or(&[][..], |turns| turns);
        assert_eq!(turns.len(), e.turns.len());
        let system = usize::from(e.system.is_some() || starts(&opening) == 3);
        let mut flags = vec![false; e.tokens.len()];
        let mut first = 0;
        for (i, (turn, (context, response))) in e.turns.iter().zip(turns).enumerate() {
            assert_eq!(e.context_of(turn.response.start), &context[..]);
            assert_eq!(e.tokens[turn.response.clone()], response[..]);
            assert!(context.len() + response.len() <= limit);
            flags[turn.response.clone()].fill(true);
            // Given: (system and) user and assistant for every turn shown, whatever the environment and the policy
            // say. Only the template starts turns.
            first = window.first_shown(i).max(first) + turn.dropped_turns;
            assert!(first <= i);
            let shown = if matches!(window, ContextWindow::Memory { .. }) { i..=i } else { first..=i };
            let own = e.turns[*shown.start()..i].iter().map(|t| starts(&e.tokens[t.response.clone()])).sum::<usize>();
            assert_eq!(starts(context), 2 * shown.clone().count() + system + own);
            // Earlier responses are there as the ids that were sampled.
            let mut rest = &context[..];
            for earlier in &e.turns[*shown.start()..i] {
                let ids = &e.tokens[earlier.response.clone()];
                let at = rest.windows(ids.len()).position(|w| w == ids).expect("the sampled ids");
                rest = &rest[at + ids.len()..];
            }
        }
        assert_eq!(e.sampled, flags);
        assert_eq!(e.tokens.len(), e.turns.last().map_or(0, |t| t.response.end));
        let sequences = e.to_sequences();
        assert_eq!(sequences.iter().map(Sequence::sampled_len).sum::<usize>(), e.log_probs.len());
        let drops = e.turns.iter().filter(|t| t.dropped_turns > 0).count();
        match window {
            ContextWindow::Full => assert!(sequences.len() <= 1 + drops),
            _ => assert_eq!(sequences.len(), e.turns.len()),
        }
        assert!(sequences.iter().all(|s| !s.sampled[0] && s.sampled.last() == Some(&true)));
        let owners = e.turn_of_trained_tokens();
        assert_eq!(owners.len(), e.log_probs.len());
        assert!(owners.windows(2).all(|w| w[1] == w[0] || w[1] == w[0] + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn token_in_token_out_with_a_small_tokenizer(seed in any::<u64>(), length in 2usize..40, compact in any::<bool>(),
        kind in 0usize..3, turns in 1usize..5, limit in proptest::option::of(100usize..900)) {
        thread_local!(static DIALOGUE: std::rc::Rc<ChatDialogue> = std::rc::Rc::new(small()));
        let layout = if compact { Layout::Compact } else { Layout::Full };
        DIALOGUE.with(|d| check(d, layout, window(kind, turns), seed, length, limit.unwrap_or(usize::MAX)));
    }
}

#[test]
fn token_in_token_out_with_smollm2() {
    let Some(dialogue) = smollm2() else { return };
    let dialogue = std::rc::Rc::new(dialogue);
    for seed in 0..60 {
        let layout = if seed % 2 == 0 { Layout::Full } else { Layout::Compact };
        let limit = if seed < 40 { usize::MAX } else { 150 + 10 * seed as usize };
        check(&dialogue, layout, window(seed as usize % 3, 2), seed, 3 + seed as usize / 2, limit);
    }
}

fn responses_are_read_back(dialogue: &ChatDialogue) {
    for layout in [Layout::Full, Layout::Compact] {
        let context = Context::new(dialogue, ContextOptions { layout, ..ContextOptions::default() }).unwrap();
        let actions = ["Right".to_owned(), "Left".to_owned()];
        let tokens = context.write_response("It is to the right.", &actions).unwrap();
        assert_eq!(tokens.last(), Some(&dialogue.end_of_turn()));
        let parsed = crate::parse::parse(&dialogue.decode(&tokens).unwrap(), &context.options().parse_options());
        assert!(parsed.format_ok);
        assert_eq!((parsed.reasoning.as_str(), parsed.actions), ("It is to the right.", actions.to_vec()));
    }
}

#[test]
fn written_responses_are_read_back() {
    responses_are_read_back(&small());
    if let Some(dialogue) = smollm2() {
        responses_are_read_back(&dialogue);
    }
}

#[test]
fn the_compact_layout_of_a_small_tokenizer_is_short() {
    let dialogue = small();
    let options = ContextOptions { layout: Layout::Compact, ..ContextOptions::default() };
    let context = Context::new(&dialogue, options).unwrap();
    // "Right || Left": two words, one separator, closing tags and the end of the turn.
    let tokens = context.write_response("", &["Right".to_owned(), "Left".to_owned()]).unwrap();
    assert_eq!(tokens.len(), 7, "{:?}", tokens.iter().map(|t| dialogue.tokenizer().piece(*t)).collect::<Vec<_>>());
}
