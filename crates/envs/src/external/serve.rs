//! The other side of the protocol: any environment in Rust, offered on a pair of streams.
//!
//! An environment of one's own in another crate is a program of a few lines: a `main` that calls [`serve_stdio`].

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use super::message::{
    Advice, Call, Hello, PROTOCOL, Refusal, Rendered, Reply, Request, Reward, Started, Stepped, VERSION,
};
use crate::config::nearest;
use crate::{EnvError, Environment};

/// Serves on standard input and output until the input ends. Nothing else may be printed there; messages belong on
/// standard error.
///
/// # Errors
/// Those of the streams.
pub fn serve_stdio(make: impl Fn(&Value) -> Result<Box<dyn Environment>, EnvError>) -> std::io::Result<()> {
    serve(make, std::io::stdin().lock(), std::io::stdout().lock())
}

/// Serves until `input` ends. `make` gets the settings of the handshake.
///
/// # Errors
/// Those of the streams, and a line that is no request.
pub fn serve(
    make: impl Fn(&Value) -> Result<Box<dyn Environment>, EnvError>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    let mut host = Host { make, config: Value::Null, episodes: BTreeMap::new(), greeted: false };
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Request { id, call } = serde_json::from_str(&line)
            .map_err(|error| std::io::Error::other(format!("expected a request of `{PROTOCOL}`: {error}")))?;
        let answer = catch_unwind(AssertUnwindSafe(|| host.answer(call)))
            .unwrap_or_else(|_| Err("the environment panicked".to_owned()));
        let reply = match answer {
            Ok(result) => Reply { id, result: Some(result), error: None },
            Err(message) => Reply { id, result: None, error: Some(Refusal { message }) },
        };
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        output.write_all(&text)?;
        output.flush()?;
    }
}

struct Host<M> {
    make: M,
    config: Value,
    episodes: BTreeMap<u64, Box<dyn Environment>>,
    greeted: bool,
}

impl<M: Fn(&Value) -> Result<Box<dyn Environment>, EnvError>> Host<M> {
    fn answer(&mut self, call: Call) -> Result<Value, String> {
        let result = match call {
            Call::Hello { protocol, versions, config } => self.hello(&protocol, &versions, config)?,
            _ if !self.greeted => return Err("expected `hello` first".to_owned()),
            Call::Reset { episode, seed, split } => {
                let mut env = match self.episodes.remove(&episode) {
                    Some(env) => env,
                    None => (self.make)(&self.config).map_err(in_words)?,
                };
                let observation = env.reset(seed, split.into()).map_err(in_words)?;
                let started = Started {
                    observation: Some(observation),
                    state_key: Some(env.state_key()),
                    actions: Some(env.action_lookup()),
                    available_actions: Some(env.available_actions()),
                };
                self.episodes.insert(episode, env);
                json!(started)
            }
            Call::Step { episode, action } => {
                let env = self.of(episode)?;
                let step = env.step(&action).map_err(in_words)?;
                json!(Stepped {
                    observation: Some(step.observation),
                    reward: Reward(step.reward),
                    terminated: step.terminated,
                    truncated: step.truncated,
                    success: Some(step.info.success),
                    action_is_valid: step.info.action_is_valid,
                    action_is_effective: Some(step.info.action_is_effective),
                    // JSON has no other numbers; the rest would be lost in a metric anyway.
                    extra: step.info.extra.into_iter().filter(|(_, value)| value.is_finite()).collect(),
                    state_key: Some(env.state_key()),
                    available_actions: Some(env.available_actions()),
                })
            }
            Call::Render { episode } => json!(Rendered { observation: self.of(episode)?.render() }),
            Call::Oracle { episode, actions_left } => {
                let env = self.of(episode)?;
                json!(Advice { actions: env.oracle(actions_left), optimum: env.optimum(actions_left) })
            }
            Call::Close { episode } => {
                self.episodes.remove(&episode);
                json!({})
            }
        };
        Ok(result)
    }

    fn hello(&mut self, protocol: &str, versions: &[u32], config: Value) -> Result<Value, String> {
        if protocol != PROTOCOL || !versions.contains(&VERSION) {
            let hint = nearest(protocol, std::iter::once(PROTOCOL)).unwrap_or(PROTOCOL);
            return Err(format!("this is `{hint}` version {VERSION}; asked for `{protocol}`, {versions:?}"));
        }
        let config = if config.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { config };
        let env = (self.make)(&config).map_err(in_words)?;
        let spec = env.spec();
        self.config = config;
        self.greeted = true;
        Ok(json!(Hello {
            protocol: PROTOCOL.to_owned(),
            version: VERSION,
            name: spec.env_type.clone(),
            instruction: spec.instruction.clone(),
            actions: spec.actions.clone(),
            legend: spec.legend.clone(),
            can_hold_out: env.can_hold_out(),
            features: vec!["oracle".to_owned()],
        }))
    }

    fn of(&mut self, episode: u64) -> Result<&mut Box<dyn Environment>, String> {
        self.episodes.get_mut(&episode).ok_or_else(|| format!("episode {episode} was not reset"))
    }
}

fn in_words(error: EnvError) -> String {
    error.to_string()
}
