//! The environment `openenv`, as the trainer sees it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::connection::Failure;
use super::observation::{self, Seen};
use super::remote::{Ask, History, Remote};
use super::{ActionForm, ENV_TYPE, OpenEnvConfig};
use crate::config::refuse;
use crate::{EnvError, EnvSpec, Environment, Info, Split, Step};

/// An environment on an OpenEnv server.
pub struct OpenEnv {
    remote: Arc<Remote>,
    name: String,
    form: ActionForm,
    spec: EnvSpec,
    history: History,
    state: Option<State>,
    lost: Option<String>,
}

struct State {
    seen: Seen,
    over: bool,
}

impl OpenEnv {
    /// An environment on the server of these settings.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range, the server cannot be reached, or its schema and the
    /// settings do not fit together.
    pub fn new(config: &OpenEnvConfig) -> Result<Self, EnvError> {
        config.check()?;
        let remote = Remote::of(config)?;
        let form = ActionForm::of(&remote.schema["action"], config).map_err(|message| refuse(ENV_TYPE, message))?;
        let about = remote.metadata["description"].as_str().unwrap_or_default();
        let about = config.instruction.as_deref().unwrap_or(about);
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: format!("{about} {}", form.explain()).trim().to_owned(),
            actions: form.names(),
            legend: Vec::new(),
        };
        let name = remote.metadata["name"].as_str().unwrap_or(ENV_TYPE).to_owned();
        let history = History { number: remote.number(), ..History::default() };
        Ok(Self { remote, name, form, spec, history, state: None, lost: None })
    }

    /// An environment from JSON settings; see [`OpenEnvConfig`] for the keys.
    ///
    /// # Errors
    /// As [`OpenEnv::new`], and for unknown keys and wrong types.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(&OpenEnvConfig::from_json(config)?)
    }

    fn ask(&mut self, ask: &Ask) -> Result<Value, Failure> {
        if let Some(message) = &self.lost {
            return Err(Failure::Broken(message.clone()));
        }
        let answer = self.remote.ask(&self.history, ask);
        match &answer {
            Err(Failure::Broken(message)) => self.lose(message.clone()),
            Err(Failure::Full) => self.lose("the server is full".to_owned()),
            Err(Failure::Refused(..)) | Ok(_) => {}
        }
        answer
    }

    /// Ends the episode for good.
    fn lose(&mut self, message: String) {
        if self.lost.is_none() {
            self.remote.failed(&message);
            self.remote.leave(self.history.number);
            self.lost = Some(message);
        }
    }

    fn read(&mut self, data: &Value) -> Result<Seen, String> {
        let seen = observation::read(data, &self.remote.config);
        if let Err(message) = &seen {
            self.lose(message.clone());
        }
        seen
    }

    fn conclude(&self) {
        if self.lost.is_none() && !self.history.actions.is_empty() {
            self.remote.succeeded();
        }
    }

    fn play(&self, message: String) -> EnvError {
        EnvError::Play { env_type: self.name.clone(), message }
    }
}

impl Environment for OpenEnv {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        self.conclude();
        self.state = None;
        let mut reset = Value::Object(self.remote.config.reset.clone());
        reset["seed"] = json!(seed);
        reset["split"] = json!(if split == Split::Train { "train" } else { "val" });
        self.history = History { number: self.history.number, reset, ..History::default() };
        let data = self.ask(&Ask::Reset).map_err(|failure| match failure {
            Failure::Refused(_, message) => EnvError::Instance { env_type: self.name.clone(), seed, message },
            Failure::Broken(message) => self.play(message),
            Failure::Full => self.play("the server is full".to_owned()),
        })?;
        self.history.last = data.clone();
        let seen = self.read(&data).map_err(|message| self.play(message))?;
        let text = seen.text.clone();
        self.state = Some(State { over: seen.done, seen });
        Ok(text)
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(state) = &self.state else {
            return Err(EnvError::not_started(&self.name));
        };
        if state.over {
            return Err(EnvError::ended(&self.name));
        }
        let before = (state.seen.text.clone(), state.seen.state_key.clone());
        let Some(object) = self.form.read(action) else {
            return Ok(Step::not_understood(before.0));
        };
        let data = match self.ask(&Ask::Step(object.clone())) {
            Ok(data) => data,
            // Finer rules than the schema's form is read for here.
            Err(Failure::Refused(code, _)) if code == "VALIDATION_ERROR" => return Ok(Step::not_understood(before.0)),
            Err(Failure::Refused(_, message) | Failure::Broken(message)) => return Err(self.play(message)),
            Err(Failure::Full) => return Err(self.play("the server is full".to_owned())),
        };
        self.history.actions.push(object);
        self.history.last = data.clone();
        let seen = self.read(&data).map_err(|message| self.play(message))?;
        let truncated = seen.done && seen.truncated;
        let step = Step {
            observation: seen.text.clone(),
            reward: seen.reward,
            terminated: seen.done && !truncated,
            truncated,
            info: Info {
                success: seen.success,
                action_is_valid: seen.action_is_valid.unwrap_or(true),
                action_is_effective: seen
                    .action_is_effective
                    .unwrap_or(before != (seen.text.clone(), seen.state_key.clone())),
                ..Info::default()
            },
        };
        self.state = Some(State { over: seen.done, seen });
        Ok(step)
    }

    fn render(&self) -> String {
        self.state.as_ref().map_or_else(String::new, |state| state.seen.text.clone())
    }

    fn state_key(&self) -> String {
        let key = self.state.as_ref().and_then(|state| state.seen.state_key.clone());
        key.unwrap_or_else(|| self.render())
    }

    fn available_actions(&self) -> Vec<String> {
        let available = self.state.as_ref().and_then(|state| state.seen.available.clone());
        available.unwrap_or_else(|| self.spec.actions.clone())
    }
}

impl Drop for OpenEnv {
    fn drop(&mut self) {
        self.conclude();
        self.remote.leave(self.history.number);
    }
}
