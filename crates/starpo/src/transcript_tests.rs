//! Tests of what contexts show and where samples begin.

use super::*;
use crate::context::{ContextOptions, Layout};
use crate::dialogue::Dialogue;
use crate::dialogue::scripted::{ByteDialogue, END};

const DIALOGUE: ByteDialogue = ByteDialogue { tags_as_tokens: true };
const ROOMY: Room = Room { context: usize::MAX, response: 0 };

fn env() -> EnvPrompt {
    EnvPrompt { instruction: "Walk.".into(), max_actions_per_traj: 9, max_tokens: 50, ..EnvPrompt::default() }
}

fn answer(turn: usize) -> Vec<u32> {
    [DIALOGUE.encode(&format!("t{turn}</think><answer>Left</answer>")).unwrap(), vec![END]].concat()
}

/// Plays `turns` turns in states `s1`, `s2`, …, whose rewards are 1, 2, …; returns what each turn's context says, with
/// the turns as opened, and the transcript.
fn play(options: ContextOptions, room: Room, turns: usize) -> (Vec<String>, Vec<OpenTurn>, Transcript) {
    let context = Context::new(&DIALOGUE, options).unwrap();
    let mut transcript = Transcript::new(room);
    let (mut texts, mut opened) = (Vec::new(), Vec::new());
    for turn in 1..=turns {
        let previous = (turn > 1).then(|| PreviousTurn { reward: Some((turn - 1) as f64), no_valid_action: turn == 3 });
        let state = format!("s{turn}");
        opened.push(transcript.open(&context, &env(), &state, 10 - turn, previous).unwrap());
        texts.push(DIALOGUE.decode(transcript.conversation().tokens()).unwrap());
        transcript.respond(&context, &answer(turn));
    }
    (texts, opened, transcript)
}

fn compact(window: ContextWindow, overflow: ContextOverflow) -> ContextOptions {
    ContextOptions { layout: Layout::Compact, window, overflow, ..ContextOptions::default() }
}

fn said(turn: usize) -> String {
    format!("<think>t{turn}</think><answer>Left</answer>")
}

#[test]
fn the_full_history_is_one_sample() {
    let (texts, opened, transcript) = play(compact(ContextWindow::Full, ContextOverflow::Truncate), ROOMY, 3);
    let third = format!(
        "user\ns1\n9 left\nassistant\n{}\nuser\n1.0\ns2\n8 left\nassistant\n{}\nuser\n2.0\ninvalid\ns3\n7 left\n\
         assistant\n<think>",
        said(1),
        said(2)
    );
    assert_eq!(texts[2], third);
    assert_eq!(opened[1].prompt.end + answer(2).len(), opened[2].prompt.start);
    let (tokens, sampled, starts) = transcript.finish();
    assert_eq!((tokens.len(), starts), (sampled.len(), vec![0]));
    assert_eq!(sampled.iter().filter(|s| **s).count(), 3 * answer(1).len());
}

#[test]
fn a_window_shows_the_last_turns_and_trains_the_last_response() {
    let window = ContextWindow::Dialogue { turns: 2 };
    let (texts, opened, transcript) = play(compact(window, ContextOverflow::Truncate), ROOMY, 3);
    // The reward of the first turn is not shown where the turn is not.
    let third = format!("user\ns2\n8 left\nassistant\n{}\nuser\n2.0\ninvalid\ns3\n7 left\nassistant\n<think>", said(2));
    assert_eq!(texts[2], third);
    assert_eq!(opened[2].user, "2.0\ninvalid\ns3\n7 left");
    let sequences = transcript.into_sequences(usize::MAX);
    assert_eq!(sequences.len(), 3);
    for (turn, sequence) in sequences.iter().enumerate() {
        let n = answer(turn + 1).len();
        let (given, response) = sequence.tokens.split_at(sequence.tokens.len() - n);
        assert_eq!((response, DIALOGUE.decode(given).unwrap()), (&answer(turn + 1)[..], texts[turn].clone()));
        let start = given.len();
        assert!(!sequence.sampled[..start].contains(&true) && !sequence.sampled[start..].contains(&false));
    }
    // With all turns the context is that of the full history.
    let all = play(compact(ContextWindow::Dialogue { turns: usize::MAX }, ContextOverflow::Truncate), ROOMY, 4);
    assert_eq!(all.0, play(compact(ContextWindow::Full, ContextOverflow::Truncate), ROOMY, 4).0);
    assert_eq!(all.2.into_sequences(usize::MAX).len(), 4);
}

#[test]
fn a_memory_quotes_the_last_turns_in_one_message() {
    let window = ContextWindow::Memory { turns: 2 };
    let (texts, _, transcript) = play(compact(window, ContextOverflow::Truncate), ROOMY, 3);
    assert_eq!(texts[0], "user\ns1\n9 left\nassistant\n<think>");
    assert_eq!(texts[2], format!("user\ns2\n{}\n2.0\ninvalid\ns3\n7 left\nassistant\n<think>", said(2)));
    assert_eq!(transcript.into_sequences(usize::MAX).len(), 3);
    let full = ContextOptions { window, ..ContextOptions::default() };
    let (texts, opened, _) = play(full, ROOMY, 3);
    assert!(opened[0].user.starts_with("\nTurn 1:\nState:\ns1\n"), "{}", opened[0].user);
    let third = format!(
        "2 turns are behind you; shown: the last 1.\n\nTurn 2:\nState:\ns2\nResponse:\n{}\nReward:\n2.0\n---\n\nTurn \
         3:\nState:\ns3\nYour last answer held no valid action.",
        said(2)
    );
    assert!(opened[2].user.starts_with(&third), "{}", opened[2].user);
    assert_eq!(texts[2].matches("user\n").count(), 1);
    // A window of one turn remembers nothing.
    let alone = play(compact(ContextWindow::Memory { turns: 1 }, ContextOverflow::Truncate), ROOMY, 3).0;
    assert_eq!(alone[2], "user\ninvalid\ns3\n7 left\nassistant\n<think>");
    assert_eq!(alone, play(compact(ContextWindow::Dialogue { turns: 1 }, ContextOverflow::Truncate), ROOMY, 3).0);
}

#[test]
fn the_oldest_turns_leave_a_full_context() {
    let drop = |window| compact(window, ContextOverflow::DropOldestTurns);
    let (long, opened, _) = play(drop(ContextWindow::Full), ROOMY, 5);
    assert!(opened.iter().all(|o| o.dropped == 0));
    let context = Context::new(&DIALOGUE, drop(ContextWindow::Full)).unwrap();
    // Room for three turns and a response.
    let third = context.dialogue().encode(&long[2]).unwrap().len() + 30;
    let room = Room { context: third + 40, response: 40 };
    let (texts, opened, transcript) = play(drop(ContextWindow::Full), room, 5);
    assert_eq!(texts[..3], long[..3]);
    assert_eq!(opened.iter().map(|o| o.dropped).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
    assert!(texts[3].starts_with("user\ninvalid\ns2\n") || texts[3].starts_with("user\ns2\n8 left\n"), "{}", texts[3]);
    assert!(texts[3].contains("user\n3.0\ns4\n"), "{}", texts[3]);
    assert!(texts[4].starts_with("user\ninvalid\ns3\n7 left\n"), "{}", texts[4]);
    let sequences = transcript.into_sequences(usize::MAX);
    assert_eq!(
        sequences.iter().map(Sequence::sampled_len).collect::<Vec<_>>(),
        [3 * answer(1).len(), answer(4).len(), answer(5).len()]
    );
    // A memory gives up quotations the same way; where nothing is left to give up, the caller decides.
    let (texts, opened, _) =
        play(drop(ContextWindow::Memory { turns: usize::MAX }), Room { context: 1, response: 0 }, 3);
    assert_eq!(opened.iter().map(|o| o.dropped).collect::<Vec<_>>(), [0, 1, 1]);
    assert_eq!(texts[2], "user\ninvalid\ns3\n7 left\nassistant\n<think>");
}

#[test]
fn what_is_not_sampled_or_not_answered_is_not_trained() {
    let context =
        Context::new(&DIALOGUE, compact(ContextWindow::Memory { turns: 2 }, ContextOverflow::Truncate)).unwrap();
    let mut transcript = Transcript::new(ROOMY);
    assert!(transcript.is_empty());
    transcript.open(&context, &env(), "a", 3, None).unwrap();
    transcript.respond_given(&context, &answer(1));
    let previous = Some(PreviousTurn { reward: Some(0.5), no_valid_action: false });
    transcript.open(&context, &env(), "b", 2, previous).unwrap();
    let response = transcript.respond(&context, &answer(2));
    transcript.open(&context, &env(), "c", 1, previous).unwrap();
    let unanswered = transcript.clone();
    assert_eq!(unanswered.into_sequences(usize::MAX).len(), 1);
    assert!(transcript.clone().into_sequences(response.start).is_empty());
    let (tokens, _, starts) = transcript.finish();
    assert_eq!((tokens.len(), starts.len()), (response.end, 2));
}
