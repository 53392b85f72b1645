//! Tests of wording, layout and float formatting.

use super::*;
use crate::dialogue::scripted::{ByteDialogue, END};

const DIALOGUE: ByteDialogue = ByteDialogue { tags_as_tokens: true };

fn prompt() -> EnvPrompt {
    EnvPrompt {
        instruction: "Push the box.".into(),
        actions: vec!["Up".into(), "Down".into()],
        legend: vec![("#".into(), "wall".into()), ("P".into(), "player".into())],
        max_actions_per_traj: 10,
        max_tokens: 100,
    }
}

fn turn(turn: usize, previous: Option<PreviousTurn>) -> TurnState<'static> {
    TurnState { turn, state: "#P_", actions_left: 9, previous }
}

#[test]
fn the_compact_layout_is_state_and_actions_left() {
    let options = ContextOptions { layout: Layout::Compact, ..ContextOptions::default() };
    let context = Context::new(&DIALOGUE, options).unwrap();
    assert_eq!(context.system_text(&prompt()), None);
    assert_eq!(context.user_text(&prompt(), &turn(1, None)), "#P_\n9 left");
    let previous = PreviousTurn { reward: Some(-0.1), no_valid_action: false };
    assert_eq!(context.user_text(&prompt(), &turn(2, Some(previous))), "-0.1\n#P_\n9 left");
    let previous = PreviousTurn { reward: Some(-0.1 - 0.1 - 0.1), no_valid_action: false };
    assert_eq!(context.user_text(&prompt(), &turn(2, Some(previous))), "-0.3\n#P_\n9 left");
    let previous = PreviousTurn { reward: Some(0.0), no_valid_action: true };
    assert_eq!(context.user_text(&prompt(), &turn(2, Some(previous))), "0.0\ninvalid\n#P_\n9 left");
}

#[test]
fn the_full_layout_says_everything() {
    let context = Context::new(&DIALOGUE, ContextOptions::default()).unwrap();
    let system = context.system_text(&prompt()).unwrap();
    for part in ["Push the box.", "#: wall, P: player", "Up, Down", "at most 10 actions", "\"||\""] {
        assert!(system.contains(part), "{part:?} is not in {system:?}");
    }
    let previous = PreviousTurn { reward: Some(-0.30000000000000004), no_valid_action: false };
    let user = context.user_text(&prompt(), &turn(3, Some(previous)));
    for part in ["Reward:\n-0.30000000000000004\n", "\nTurn 3:\nState:\n#P_\n", "left: 9", "<think>", "100 tokens"] {
        assert!(user.contains(part), "{part:?} is not in {user:?}");
    }
    assert!(!context.user_text(&prompt(), &turn(1, None)).contains("Reward"));
    let no_think = ContextOptions { enable_think: false, ..ContextOptions::default() };
    let context = Context::new(&DIALOGUE, no_think).unwrap();
    assert!(!context.user_text(&prompt(), &turn(1, None)).contains("think"));
}

#[test]
fn the_legend_is_the_environment_s_own_unless_compatible() {
    let tag = crate::dialogue::scripted::line(crate::dialogue::scripted::Trouble::None, "");
    let env = crate::guarded_env::GuardedEnv::make(&*tag.make).unwrap();
    assert_eq!(tag.prompt(env.spec(), true).legend, env.spec().legend);
    assert_eq!(tag.prompt(env.spec(), false).legend, tag.default_legend);
}

#[test]
fn a_system_prompt_can_be_replaced_or_left_out() {
    let with = |text: &str, layout| {
        let options = ContextOptions { system_prompt: Some(text.into()), layout, ..ContextOptions::default() };
        Context::new(&DIALOGUE, options).unwrap().system_text(&prompt())
    };
    assert_eq!(with("", Layout::Compact), None);
    assert_eq!(with("Play.", Layout::Compact).as_deref(), Some("Play."));
    assert!(with("", Layout::Full).unwrap().starts_with("Push the box."));
}

#[test]
fn a_written_response_is_read_back() {
    for tags_as_tokens in [true, false] {
        for layout in [Layout::Full, Layout::Compact] {
            for enable_think in [true, false] {
                let dialogue = ByteDialogue { tags_as_tokens };
                let options = ContextOptions { layout, enable_think, ..ContextOptions::default() };
                let context = Context::new(&dialogue, options).unwrap();
                let actions = ["Up".to_owned(), "Down".to_owned()];
                let tokens = context.write_response("because", &actions).unwrap();
                assert_eq!(tokens.last(), Some(&END));
                let parsed =
                    crate::parse::parse(&dialogue.decode(&tokens).unwrap(), &context.options().parse_options());
                assert!(parsed.format_ok);
                assert_eq!(parsed.actions, actions);
                assert_eq!(parsed.reasoning, if enable_think { "because" } else { "" });
            }
        }
    }
}

/// A dialogue whose tags are control tokens: they vanish when decoded.
struct VanishingTags;

impl Dialogue for VanishingTags {
    fn opening(&self, s: Option<&str>, u: &str) -> Result<Vec<u32>, DialogueError> {
        DIALOGUE.opening(s, u)
    }
    fn next_user(&self, u: &str, closed: bool) -> Result<Vec<u32>, DialogueError> {
        DIALOGUE.next_user(u, closed)
    }
    fn encode(&self, text: &str) -> Result<Vec<u32>, DialogueError> {
        if text.starts_with('<') { Ok(vec![END]) } else { DIALOGUE.encode(text) }
    }
    fn decode(&self, tokens: &[u32]) -> Result<String, DialogueError> {
        DIALOGUE.decode(tokens)
    }
    fn end_of_turn(&self) -> u32 {
        END
    }
}

#[test]
fn tags_that_vanish_are_refused_at_the_start() {
    let error = Context::new(&VanishingTags, ContextOptions::default()).err().unwrap();
    assert!(matches!(error, ContextError::Tag { tag: "<think>", .. }), "{error}");
    let none = ContextOptions { max_actions_per_turn: 0, ..ContextOptions::default() };
    assert!(matches!(Context::new(&DIALOGUE, none), Err(ContextError::Option(_))));
}

#[test]
fn floats_look_as_in_python() {
    for (x, text) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-0.1, "-0.1"),
        (-0.1 - 0.1 - 0.1, "-0.30000000000000004"),
        (10.9, "10.9"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (0.0001, "0.0001"),
        (0.00012345, "0.00012345"),
        (0.00001, "1e-05"),
        (-1.25e-7, "-1.25e-07"),
        (5e-324, "5e-324"),
        (123456789.125, "123456789.125"),
        (f64::NAN, "nan"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(python_float(x), text);
    }
}
