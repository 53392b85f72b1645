//! A server and the connections to it, which episodes share.
//!
//! A connection plays one episode at a time, and a server takes only so many. Episodes beyond that take turns: the one
//! that has waited longest gives up its connection, and is played again, with the same seed and the same actions, when
//! it is its turn. The same repetition brings an episode over a lost connection. It has to give the same observations; a
//! server that takes no seed needs as many connections as there are episodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::connection::{Connection, Failure};
use super::{ENV_TYPE, OpenEnvConfig};
use crate::EnvError;
use crate::config::refuse;

/// The servers of this program, by their settings as JSON.
static REMOTES: Mutex<BTreeMap<String, Arc<Remote>>> = Mutex::new(BTreeMap::new());

/// A server.
pub(super) struct Remote {
    pub config: OpenEnvConfig,
    /// Answers of `/metadata` and `/schema`.
    pub metadata: Value,
    pub schema: Value,
    authority: String,
    path: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seats: Vec<Seat>,
    /// Connections that the server takes, once it has refused one.
    capacity: Option<usize>,
    clock: u64,
    next_episode: u64,
    failures: usize,
    given_up: Option<String>,
}

struct Seat {
    connection: Connection,
    /// The episode that is known to the server on it.
    episode: Option<u64>,
    used: u64,
}

/// An episode as it would be played again: the message of the reset, the actions, and the last answer.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub number: u64,
    pub reset: Value,
    pub actions: Vec<Value>,
    pub last: Value,
}

/// What is asked for.
pub(super) enum Ask {
    /// Begins the episode.
    Reset,
    /// Takes an action.
    Step(Value),
}

impl Remote {
    /// The server of these settings; it is asked what it offers when it is first needed.
    ///
    /// # Errors
    /// [`EnvError::Config`] when it cannot be reached or does not describe itself.
    pub fn of(config: &OpenEnvConfig) -> Result<Arc<Self>, EnvError> {
        let key = serde_json::to_string(config).unwrap_or_default();
        let mut remotes = lock(&REMOTES);
        if let Some(remote) = remotes.get(&key) {
            return Ok(Arc::clone(remote));
        }
        let (authority, path) = config.authority()?;
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(config.limit())).build().new_agent();
        let get = |endpoint: &str| -> Result<Value, EnvError> {
            let url = format!("http://{authority}{path}{endpoint}");
            let failed =
                |why: String| refuse(ENV_TYPE, format!("cannot get {url}: {why}; is an OpenEnv server running there?"));
            let mut response = agent.get(&url).call().map_err(|error| failed(error.to_string()))?;
            let body = response.body_mut().with_config().limit(1 << 22);
            let text = body.read_to_string().map_err(|error| failed(error.to_string()))?;
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
        };
        let health = get("/health")?;
        if health["status"] != "healthy" {
            return Err(refuse(ENV_TYPE, format!("the server at {} says of its health: {health}", config.url)));
        }
        let (metadata, schema) = (get("/metadata")?, get("/schema")?);
        let remote = Self { config: config.clone(), metadata, schema, authority, path, state: Mutex::default() };
        let remote = Arc::new(remote);
        remotes.insert(key, Arc::clone(&remote));
        Ok(remote)
    }

    /// A number for an episode.
    pub fn number(&self) -> u64 {
        let mut state = lock(&self.state);
        state.next_episode += 1;
        state.next_episode
    }

    /// Asks on behalf of an episode; on a connection that does not know the episode it is played again first.
    ///
    /// # Errors
    /// [`Failure::Refused`] by the environment; [`Failure::Broken`] when it is lost.
    pub fn ask(&self, history: &History, ask: &Ask) -> Result<Value, Failure> {
        let mut state = lock(&self.state);
        if let Some(why) = &state.given_up {
            return Err(Failure::Broken(why.clone()));
        }
        let first = self.attempt(&mut state, history, ask);
        match first {
            // The connection may have been broken before.
            Err(Failure::Broken(_)) => self.attempt(&mut state, history, ask),
            other => other,
        }
    }

    fn attempt(&self, state: &mut State, history: &History, ask: &Ask) -> Result<Value, Failure> {
        let i = self.seat(state, history, ask)?;
        let result = self.on_seat(state, i, history, ask);
        match &result {
            Ok(_) => {
                let clock = state.clock;
                if let Some(seat) = state.seats.get_mut(i) {
                    (seat.episode, seat.used) = (Some(history.number), clock);
                }
                state.clock += 1;
                result
            }
            Err(Failure::Refused(..)) => result,
            Err(Failure::Broken(_)) => {
                state.seats.swap_remove(i);
                result
            }
            Err(Failure::Full) => {
                state.seats.swap_remove(i);
                if state.seats.is_empty() {
                    return Err(Failure::Broken("the server takes no session: others have them all".to_owned()));
                }
                state.capacity = Some(state.seats.len());
                self.attempt(state, history, ask)
            }
        }
    }

    /// The place of the episode's connection, a free one, a new one, or that of the episode that has waited longest.
    fn seat(&self, state: &mut State, history: &History, ask: &Ask) -> Result<usize, Failure> {
        let own = state.seats.iter().position(|seat| seat.episode == Some(history.number));
        if let Some(i) = own {
            return Ok(i);
        }
        let free = state.seats.iter().position(|seat| seat.episode.is_none());
        let i = match free {
            Some(i) => i,
            None => {
                let most = [state.capacity, Some(self.config.connections).filter(|most| *most > 0)];
                let most = most.into_iter().flatten().min().unwrap_or(usize::MAX);
                if state.seats.len() < most {
                    let (limit, bytes) = (self.config.limit(), self.config.max_message_bytes);
                    let connection = Connection::open(&self.authority, &self.path, limit, bytes)?;
                    state.seats.push(Seat { connection, episode: None, used: 0 });
                    state.seats.len() - 1
                } else {
                    let longest = state.seats.iter().enumerate().min_by_key(|(_, seat)| seat.used);
                    longest.map_or(0, |(i, _)| i)
                }
            }
        };
        if let Some(seat) = state.seats.get_mut(i) {
            seat.episode = None;
        }
        let repeat = matches!(ask, Ask::Step(_));
        match if repeat { self.play_again(state, i, history) } else { Ok(()) } {
            Ok(()) => Ok(i),
            Err(Failure::Full) => {
                state.seats.swap_remove(i);
                if state.seats.is_empty() {
                    return Err(Failure::Broken("the server takes no session: others have them all".to_owned()));
                }
                state.capacity = Some(state.seats.len());
                self.seat(state, history, ask)
            }
            Err(failure) => {
                state.seats.swap_remove(i);
                Err(failure)
            }
        }
    }

    fn play_again(&self, state: &mut State, i: usize, history: &History) -> Result<(), Failure> {
        let mut last = self.on_seat(state, i, history, &Ask::Reset)?;
        for action in &history.actions {
            last = self.on_seat(state, i, history, &Ask::Step(action.clone()))?;
        }
        if last == history.last {
            return Ok(());
        }
        Err(Failure::Refused(
            "NOT_REPRODUCIBLE".to_owned(),
            "the episode had to be played again, and the same seed and actions gave another one: the server has to \
             take seeds, or at least as many sessions as there are episodes (its max_concurrent_envs)"
                .to_owned(),
        ))
    }

    fn on_seat(&self, state: &mut State, i: usize, history: &History, ask: &Ask) -> Result<Value, Failure> {
        let message = match ask {
            Ask::Reset => json!({ "type": "reset", "data": history.reset }),
            Ask::Step(action) => json!({ "type": "step", "data": action }),
        };
        match state.seats.get_mut(i) {
            Some(seat) => seat.connection.exchange(&message, "observation"),
            None => Err(Failure::Broken("has no connection".to_owned())),
        }
    }

    /// An episode is over; its connection is free for the next one.
    pub fn leave(&self, number: u64) {
        let mut state = lock(&self.state);
        for seat in &mut state.seats {
            if seat.episode == Some(number) {
                seat.episode = None;
            }
        }
    }

    /// An episode was lost.
    pub fn failed(&self, message: &str) {
        let mut state = lock(&self.state);
        state.failures += 1;
        if state.failures >= self.config.max_failures && state.given_up.is_none() {
            let n = state.failures;
            state.given_up =
                Some(format!("given up: {n} episodes in a row failed (setting `max_failures`); the last: {message}"));
        }
    }

    /// An episode was played.
    pub fn succeeded(&self) {
        lock(&self.state).failures = 0;
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *lock(&self.state));
        state.seats.into_iter().for_each(|seat| seat.connection.close());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
