//! The processes of one kind of environment, shared by all its episodes.
//!
//! What is here: which process an episode plays on, starting new ones, giving up on a kind that only fails. What is not
//! here: what an episode does when its process is gone ([`super::session`]).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::message::Hello;
use super::worker::Worker;
use super::{ENV_TYPE, ExternalConfig};
use crate::EnvError;

/// Starts that may fail in a row.
const MAX_FAILED_STARTS: usize = 3;

/// The pools of this program, by their settings as JSON. A pool outlives its episodes: processes take their time to
/// start.
static POOLS: Mutex<BTreeMap<String, Arc<Pool>>> = Mutex::new(BTreeMap::new());

/// The processes of one kind of environment.
pub(super) struct Pool {
    pub config: ExternalConfig,
    pub hello: Hello,
    state: Mutex<State>,
}

struct State {
    workers: Vec<Arc<Worker>>,
    next_episode: u64,
    /// Episodes in a row that a process failed.
    failures: usize,
    failed_starts: usize,
    /// Why no process is started any more.
    given_up: Option<String>,
}

impl Pool {
    /// The pool of these settings, with at least one process that shook hands when the pool was made.
    ///
    /// # Errors
    /// [`EnvError::Config`] when the program cannot be started or does not speak the protocol.
    pub fn of(config: &ExternalConfig) -> Result<Arc<Self>, EnvError> {
        let key = serde_json::to_string(config).unwrap_or_default();
        let mut pools = lock(&POOLS);
        if let Some(pool) = pools.get(&key) {
            return Ok(Arc::clone(pool));
        }
        let pool = Arc::new(Self::start(config)?);
        pools.insert(key, Arc::clone(&pool));
        Ok(pool)
    }

    /// Ends the idle processes of all pools and forgets the pools.
    pub fn shut_down_all() {
        let pools = std::mem::take(&mut *lock(&POOLS));
        for pool in pools.values() {
            let workers = std::mem::take(&mut lock(&pool.state).workers);
            workers.iter().for_each(|worker| worker.shut_down());
        }
    }

    fn start(config: &ExternalConfig) -> Result<Self, EnvError> {
        let (worker, hello) =
            Worker::start(config).map_err(|message| EnvError::Config { env_type: ENV_TYPE.to_owned(), message })?;
        let state =
            State { workers: vec![Arc::new(worker)], next_episode: 0, failures: 0, failed_starts: 0, given_up: None };
        Ok(Self { config: config.clone(), hello, state: Mutex::new(state) })
    }

    /// A number for an episode.
    pub fn number(&self) -> u64 {
        let mut state = lock(&self.state);
        state.next_episode += 1;
        state.next_episode
    }

    /// A process to play on, for this episode alone and fresh if so wanted.
    ///
    /// # Errors
    /// In words, when none can be had.
    pub fn acquire(&self, alone: bool) -> Result<Arc<Worker>, String> {
        let mut state = lock(&self.state);
        if let Some(why) = &state.given_up {
            return Err(why.clone());
        }
        state.workers.retain(|worker| worker.is_alive());
        let limit = match self.config.episodes_per_process {
            0 => usize::MAX,
            n => n,
        };
        let emptiest = state
            .workers
            .iter()
            .filter(|worker| !alone && !worker.reserved.load(Ordering::Relaxed))
            .map(|worker| (worker.load.load(Ordering::Relaxed), worker))
            .filter(|(load, _)| *load < limit)
            .min_by_key(|(load, _)| *load);
        let chosen = match emptiest {
            Some((load, worker)) if load == 0 || state.workers.len() >= self.config.processes => Arc::clone(worker),
            _ => self.start_another(&mut state)?,
        };
        chosen.load.fetch_add(1, Ordering::Relaxed);
        chosen.reserved.store(alone, Ordering::Relaxed);
        Ok(chosen)
    }

    fn start_another(&self, state: &mut State) -> Result<Arc<Worker>, String> {
        let started = Worker::start(&self.config).and_then(|(worker, hello)| {
            if hello == self.hello {
                return Ok(worker);
            }
            Err(format!("`{}` described itself otherwise than before", self.config.command_line()))
        });
        match started {
            Ok(worker) => {
                state.failed_starts = 0;
                let worker = Arc::new(worker);
                state.workers.push(Arc::clone(&worker));
                Ok(worker)
            }
            Err(message) => {
                state.failed_starts += 1;
                if state.failed_starts >= MAX_FAILED_STARTS {
                    give_up(state, format!("{MAX_FAILED_STARTS} starts in a row failed; the last: {message}"));
                }
                Err(message)
            }
        }
    }

    /// An episode leaves its process; one that is not needed is ended.
    pub fn release(&self, worker: &Arc<Worker>) {
        let mut state = lock(&self.state);
        worker.load.fetch_sub(1, Ordering::Relaxed);
        worker.reserved.store(false, Ordering::Relaxed);
        state.workers.retain(|worker| worker.is_alive());
        if worker.load.load(Ordering::Relaxed) == 0 && state.workers.len() > self.config.processes {
            state.workers.retain(|other| !Arc::ptr_eq(other, worker));
            drop(state);
            worker.shut_down();
        }
    }

    /// An episode was ended by a failing process.
    pub fn failed(&self, message: &str) {
        let mut state = lock(&self.state);
        state.failures += 1;
        if state.failures >= self.config.max_failures {
            let n = state.failures;
            give_up(&mut state, format!("{n} episodes in a row failed (setting `max_failures`); the last: {message}"));
        }
    }

    /// An episode came to its end.
    pub fn succeeded(&self) {
        lock(&self.state).failures = 0;
    }
}

fn give_up(state: &mut State, why: String) {
    if state.given_up.is_none() {
        state.given_up = Some(format!("given up: {why}"));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
