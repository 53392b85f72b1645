//! What ends a command before its time, and its exit status.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use ragen_starpo::agent::AgentError;
use ragen_starpo::config::ConfigError;
use ragen_starpo::policy::PolicyError;
use ragen_starpo::rollout::RolloutError;
use ragen_starpo::run_dir::RunDirError;
use ragen_starpo::trainer::TrainError;

/// What a command comes to.
pub type Outcome<T = ()> = Result<T, Failure>;

/// A failure with whose fault it is, and what to tell: what was expected, what was found, where, what to do.
#[derive(Debug)]
pub enum Failure {
    /// What the user gave cannot be used; exit status 2.
    Input(String),
    /// Something went wrong while running; exit status 1.
    Run(String),
}

impl Failure {
    /// Wrong input.
    pub fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    /// Gone wrong while running.
    pub fn run(error: impl Display) -> Self {
        Self::Run(error.to_string())
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Run(_) => 1,
        }
    }

    /// The message as one paragraph.
    pub fn paragraph(&self) -> String {
        let (Self::Input(text) | Self::Run(text)) = self;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::input(error)
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        Self::input(error)
    }
}

impl From<ragen_model::weights::WeightsError> for Failure {
    fn from(error: ragen_model::weights::WeightsError) -> Self {
        Self::input(error)
    }
}

impl From<ragen_envs::EnvError> for Failure {
    fn from(error: ragen_envs::EnvError) -> Self {
        Self::input(error)
    }
}

impl From<ragen_model::chat::ChatError> for Failure {
    fn from(error: ragen_model::chat::ChatError) -> Self {
        Self::input(error)
    }
}

impl From<ragen_model::tokenizer::TokenizerError> for Failure {
    fn from(error: ragen_model::tokenizer::TokenizerError) -> Self {
        Self::input(error)
    }
}

impl From<ragen_starpo::dialogue::DialogueError> for Failure {
    fn from(error: ragen_starpo::dialogue::DialogueError) -> Self {
        Self::input(error)
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Self {
        Self::input(error)
    }
}

impl From<RunDirError> for Failure {
    fn from(error: RunDirError) -> Self {
        match error {
            RunDirError::Io { .. } | RunDirError::Checkpoint { .. } => Self::run(error),
            _ => Self::input(error),
        }
    }
}

impl From<RolloutError> for Failure {
    fn from(error: RolloutError) -> Self {
        match error {
            RolloutError::Context(_) | RolloutError::Option(_) => Self::input(error),
            _ => Self::run(error),
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::RunDir(error) => error.into(),
            TrainError::Rollout(error) => error.into(),
            _ if error.is_input() => Self::input(error),
            _ => Self::run(error),
        }
    }
}

/// What the last panic said.
pub struct Panics(Arc<Mutex<Option<String>>>);

/// Keeps panics silent and remembers the last one. Those of environments are caught and counted where they are called;
/// what nobody catches is a fault of ours and ends the command.
pub fn catch_panics() -> Panics {
    let last = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&last);
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{message} (at {place})"));
    }));
    Panics(last)
}

impl Panics {
    /// One paragraph about the last panic.
    pub fn describe(&self) -> String {
        let message = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        format!(
            "a fault in ragen itself, not in its input: {}; what was written to disk before is complete, and a run can \
             be resumed from its latest checkpoint with `ragen train --resume --run-dir DIR`; please report this message",
            message.as_deref().unwrap_or("no message")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_nobody_catches_becomes_one_paragraph() {
        let before = std::panic::take_hook();
        let panics = catch_panics();
        let caught = std::panic::catch_unwind(|| std::panic::panic_any("boom\nboom"));
        std::panic::set_hook(before);
        assert!(caught.is_err());
        let failure = Failure::run(panics.describe());
        let text = failure.paragraph();
        assert!(text.contains("boom boom (at ") && text.contains("failure.rs") && text.contains("--resume"), "{text}");
        assert_eq!(failure.status(), 1);
    }

    #[test]
    fn a_message_is_one_paragraph() {
        let failure = Failure::run(std::io::Error::other("disk on\n  fire"));
        assert_eq!((failure.paragraph(), failure.status()), ("disk on fire".to_owned(), 1));
        assert_eq!(Failure::input("x").status(), 2);
    }
}
