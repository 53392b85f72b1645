//! The environment `external`, as the trainer sees it.

use std::cell::RefCell;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::message::{Advice, Rendered, Started, Stepped};
use super::pool::Pool;
use super::session::{Session, Trouble};
use super::worker::understand;
use super::{ENV_TYPE, ExternalConfig};
use crate::{EnvError, EnvSpec, Environment, Info, Split, Step};

/// An environment in another process.
pub struct External {
    name: String,
    spec: EnvSpec,
    can_hold_out: bool,
    /// Shared by calls that only look, such as the oracle's.
    session: RefCell<Session>,
    state: Option<State>,
}

struct State {
    observation: String,
    key: String,
    /// Names that actions are matched against in this episode.
    actions: Vec<String>,
    available: Option<Vec<String>>,
    over: bool,
}

/// Ends the processes of all environments that are not playing. Those that play end with their episodes.
pub fn shut_down() {
    Pool::shut_down_all();
}

impl External {
    /// An environment on the processes of these settings; the first one starts a process.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range, or the program cannot be started or does not speak the
    /// protocol.
    pub fn new(config: &ExternalConfig) -> Result<Self, EnvError> {
        config.check()?;
        let pool = Pool::of(config)?;
        let hello = &pool.hello;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: hello.instruction.clone(),
            actions: hello.actions.clone(),
            legend: hello.legend.clone(),
        };
        let (name, can_hold_out) = (hello.name.clone(), hello.can_hold_out);
        Ok(Self { name, spec, can_hold_out, session: RefCell::new(Session::new(pool)), state: None })
    }

    /// An environment from JSON settings; see [`ExternalConfig`] for the keys.
    ///
    /// # Errors
    /// As [`External::new`], and for unknown keys and wrong types.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(&ExternalConfig::from_json(config)?)
    }

    /// Reads a reply; one that cannot be used ends the episode.
    fn read<T: DeserializeOwned>(&self, reply: Value) -> Result<T, Trouble> {
        understand(reply).map_err(|message| self.session.borrow_mut().lose(&message))
    }

    /// The observation in a reply, or the rendered state where there is none.
    fn observation(&self, given: Option<String>) -> Result<String, Trouble> {
        match given {
            Some(observation) => Ok(observation),
            None => {
                let reply = self.session.borrow_mut().render()?;
                self.read::<Rendered>(reply).map(|rendered| rendered.observation)
            }
        }
    }

    fn start(&mut self, seed: u64, split: Split) -> Result<String, Trouble> {
        let reply = self.session.borrow_mut().reset(seed, split.into())?;
        let started: Started = self.read(reply)?;
        let observation = self.observation(started.observation)?;
        self.state = Some(State {
            key: started.state_key.unwrap_or_else(|| observation.clone()),
            observation: observation.clone(),
            actions: started.actions.unwrap_or_else(|| self.spec.actions.clone()),
            available: started.available_actions,
            over: false,
        });
        Ok(observation)
    }

    fn take(&mut self, action: &str) -> Result<Step, Trouble> {
        let reply = self.session.borrow_mut().step(action)?;
        let stepped: Stepped = self.read(reply)?;
        let observation = self.observation(stepped.observation)?;
        let key = stepped.state_key.unwrap_or_else(|| observation.clone());
        let reward = stepped.reward.0;
        let (mut moved, terminated) = (false, stepped.terminated);
        let truncated = stepped.truncated && !terminated;
        if let Some(state) = self.state.as_mut() {
            moved = state.key != key;
            state.observation.clone_from(&observation);
            state.key = key;
            state.available = stepped.available_actions;
            state.over = terminated || truncated;
        }
        let info = Info {
            success: stepped.success.unwrap_or(terminated && reward > 0.0),
            action_is_valid: stepped.action_is_valid,
            action_is_effective: stepped.action_is_effective.unwrap_or(moved),
            extra: stepped.extra,
        };
        Ok(Step { observation, reward, terminated, truncated, info })
    }

    fn advice(&self, actions_left: usize) -> Option<Advice> {
        let going = self.state.as_ref().is_some_and(|state| !state.over);
        if !going || !self.session.borrow().offers("oracle") {
            return None;
        }
        // A failure here ends the episode at its next step, where it is recorded.
        let reply = self.session.borrow_mut().oracle(actions_left).ok()?;
        self.read(reply).ok()
    }
}

impl Environment for External {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        self.state = None;
        self.start(seed, split).map_err(|trouble| match trouble {
            Trouble::Refused(message) => EnvError::Instance { env_type: self.name.clone(), seed, message },
            Trouble::Lost(message) => EnvError::Play { env_type: self.name.clone(), message },
        })
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(state) = &self.state else {
            return Err(EnvError::not_started(&self.name));
        };
        if state.over {
            return Err(EnvError::ended(&self.name));
        }
        let named = state.actions.iter().find(|name| name.to_lowercase() == action.trim().to_lowercase());
        let action = match named {
            Some(name) => name.clone(),
            None if state.actions.is_empty() => action.to_owned(),
            None => return Ok(Step::not_understood(state.observation.clone())),
        };
        self.take(&action).map_err(|trouble| {
            let (Trouble::Refused(message) | Trouble::Lost(message)) = trouble;
            EnvError::Play { env_type: self.name.clone(), message }
        })
    }

    fn render(&self) -> String {
        self.state.as_ref().map_or_else(String::new, |state| state.observation.clone())
    }

    fn state_key(&self) -> String {
        self.state.as_ref().map_or_else(String::new, |state| state.key.clone())
    }

    fn can_hold_out(&self) -> bool {
        self.can_hold_out
    }

    fn action_lookup(&self) -> Vec<String> {
        self.state.as_ref().map_or_else(|| self.spec.actions.clone(), |state| state.actions.clone())
    }

    fn available_actions(&self) -> Vec<String> {
        match &self.state {
            Some(State { available: Some(available), .. }) => available.clone(),
            _ => self.action_lookup(),
        }
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        if actions_left == 0 {
            return Vec::new();
        }
        let mut actions = self.advice(actions_left).map_or_else(Vec::new, |advice| advice.actions);
        actions.truncate(actions_left);
        actions
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        self.advice(actions_left)?.optimum
    }
}
