//! One episode on a shared process, and what becomes of it when the process is gone.
//!
//! A process plays many episodes. When it breaks, every one of them is played again, with the same seed and the same
//! actions, in another process at its next call, and goes on from there: an environment gives the same episode for the
//! same seed and actions. Which episode broke the process is not always plain (it may answer one and exit before it is
//! asked about the next), so an episode whose call failed is tried once more in a fresh process that it has to itself.
//! If that breaks as well, the episode is to blame and ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::message::{Call, WireSplit};
use super::pool::Pool;
use super::worker::{CallError, Worker};

/// Why a call brought nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The environment refused: its own error.
    Refused(String),
    /// The episode is over, with the reason.
    Lost(String),
}

/// What has to be played again.
struct History {
    reset: Call,
    actions: Vec<String>,
    /// The last answer, which the repetition has to give again.
    last: Value,
}

/// One episode's place on a process.
pub(super) struct Session {
    pool: Arc<Pool>,
    episode: u64,
    /// The process, while the episode is known to it.
    seat: Option<Arc<Worker>>,
    history: Option<History>,
    /// Why the episode is lost.
    lost: Option<String>,
}

enum Attempt {
    /// Another episode may have broken the process.
    Unclear(String),
    Final(Trouble),
}

impl Session {
    pub fn new(pool: Arc<Pool>) -> Self {
        let episode = pool.number();
        Self { pool, episode, seat: None, history: None, lost: None }
    }

    /// Starts an episode.
    pub fn reset(&mut self, seed: u64, split: WireSplit) -> Result<Value, Trouble> {
        self.conclude();
        let call = Call::Reset { episode: self.episode, seed, split };
        // What was played before is not to be repeated.
        self.history = None;
        let answer = self.call(&call, self.pool.config.reset_limit())?;
        self.history = Some(History { reset: call, actions: Vec::new(), last: answer.clone() });
        Ok(answer)
    }

    /// Takes an action.
    pub fn step(&mut self, action: &str) -> Result<Value, Trouble> {
        let call = Call::Step { episode: self.episode, action: action.to_owned() };
        let answer = self.call(&call, self.pool.config.step_limit())?;
        if let Some(history) = self.history.as_mut() {
            history.actions.push(action.to_owned());
            history.last = answer.clone();
        }
        Ok(answer)
    }

    /// Asks for the state as text.
    pub fn render(&mut self) -> Result<Value, Trouble> {
        self.call(&Call::Render { episode: self.episode }, self.pool.config.step_limit())
    }

    /// Asks for the best player's advice.
    pub fn oracle(&mut self, actions_left: usize) -> Result<Value, Trouble> {
        self.call(&Call::Oracle { episode: self.episode, actions_left }, self.pool.config.step_limit())
    }

    /// Whether the process said that it can do this.
    pub fn offers(&self, feature: &str) -> bool {
        self.pool.hello.features.iter().any(|known| known == feature)
    }

    /// Ends the episode for a reason found in its replies.
    pub fn lose(&mut self, message: &str) -> Trouble {
        if self.lost.is_none() {
            self.lost = Some(message.to_owned());
            self.pool.failed(message);
        }
        self.leave();
        Trouble::Lost(message.to_owned())
    }

    fn call(&mut self, call: &Call, limit: Duration) -> Result<Value, Trouble> {
        if let Some(message) = &self.lost {
            return Err(Trouble::Lost(message.clone()));
        }
        let attempt = match self.attempt(call, limit, false) {
            Err(Attempt::Unclear(first)) => {
                tracing::warn!("{first}; the episode is played again in another process");
                self.attempt(call, limit, true)
            }
            other => other,
        };
        match attempt {
            Ok(value) => Ok(value),
            Err(Attempt::Final(Trouble::Refused(message))) => Err(Trouble::Refused(message)),
            Err(Attempt::Final(Trouble::Lost(message)) | Attempt::Unclear(message)) => Err(self.lose(&message)),
        }
    }

    fn attempt(&mut self, call: &Call, limit: Duration, alone: bool) -> Result<Value, Attempt> {
        if alone || self.seat.as_ref().is_some_and(|worker| !worker.is_alive()) {
            self.leave();
        }
        if self.seat.is_none() {
            let worker = self.pool.acquire(alone).map_err(|message| Attempt::Final(Trouble::Lost(message)))?;
            self.seat = Some(worker);
            self.play_again()?;
        }
        self.ask(call, limit)
    }

    fn ask(&self, call: &Call, limit: Duration) -> Result<Value, Attempt> {
        let Some(worker) = &self.seat else {
            return Err(Attempt::Unclear("has no process".to_owned()));
        };
        worker.call(call, limit).map_err(|error| match error {
            CallError::Refused(message) => Attempt::Final(Trouble::Refused(message)),
            CallError::Broken(broken) => {
                Attempt::Unclear(format!("the process `{}` {broken}", self.pool.config.command_line()))
            }
        })
    }

    /// Brings a process that does not know the episode to where it stands.
    fn play_again(&self) -> Result<(), Attempt> {
        let Some(history) = &self.history else {
            return Ok(());
        };
        let config = &self.pool.config;
        let mut last = self.ask(&history.reset, config.reset_limit())?;
        for action in &history.actions {
            let step = Call::Step { episode: self.episode, action: action.clone() };
            last = self.ask(&step, config.step_limit())?;
        }
        if last == history.last {
            return Ok(());
        }
        Err(Attempt::Final(Trouble::Lost(
            "its process was restarted, and the same seed and actions gave another episode: the environment is not \
             reproducible"
                .to_owned(),
        )))
    }

    /// Gives the seat back; the process forgets the episode.
    fn leave(&mut self) {
        if let Some(worker) = self.seat.take() {
            if worker.is_alive() && self.history.is_some() {
                // Whether it still answers is of no concern to this episode.
                let _ = worker.call(&Call::Close { episode: self.episode }, self.pool.config.step_limit());
            }
            self.pool.release(&worker);
        }
    }

    /// Notes that an episode was played without a failing process.
    fn conclude(&self) {
        let played = self.history.as_ref().is_some_and(|history| !history.actions.is_empty());
        if played && self.lost.is_none() {
            self.pool.succeeded();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.conclude();
        self.leave();
    }
}
