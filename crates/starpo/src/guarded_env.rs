//! An environment that can fail without taking anyone along.
//!
//! Every call into an environment goes through [`GuardedEnv`]: an error or a panic comes back as a [`Fault`], after
//! which the environment is not called again. Panics are caught only where the binary unwinds (the default).

use std::panic::{AssertUnwindSafe, catch_unwind};

use ragen_envs::{Agreement, DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Split, Step};
use rand_core::Rng;

/// Why an environment could not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It returned an error.
    #[error("{0}")]
    Error(String),
    /// It panicked.
    #[error("the environment panicked: {0}")]
    Panic(String),
}

/// Makes an environment.
pub type MakeEnv = dyn Fn() -> Result<Box<dyn Environment>, EnvError> + Send + Sync;

/// An environment behind a guard.
pub struct GuardedEnv {
    /// `None` after a fault or before the environment is made.
    inner: Option<Box<dyn Environment>>,
    spec: EnvSpec,
    can_hold_out: bool,
}

impl GuardedEnv {
    /// Makes the environment.
    ///
    /// # Errors
    /// [`Fault`] when it cannot be made.
    pub fn make(make: &MakeEnv) -> Result<Self, Fault> {
        let made = catch(|| {
            let env = make()?;
            let (spec, can_hold_out) = (env.spec().clone(), env.can_hold_out());
            Ok((env, spec, can_hold_out))
        })?;
        Ok(Self { inner: Some(made.0), spec: made.1, can_hold_out: made.2 })
    }

    /// See [`Environment::can_hold_out`].
    pub fn can_hold_out(&self) -> bool {
        self.can_hold_out
    }

    /// See [`Environment::spec`]; after a reset its actions are those of [`Environment::action_lookup`].
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// See [`Environment::reset`]; returns the state as rendered afterwards, which is what the agent sees.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn reset(&mut self, seed: u64, split: Split) -> Result<String, Fault> {
        let (state, actions) = self.call(|env| {
            env.reset(seed, split)?;
            Ok((env.render(), env.action_lookup()))
        })?;
        self.spec.actions = actions;
        Ok(state)
    }

    /// See [`Environment::step`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn step(&mut self, action: &str) -> Result<Step, Fault> {
        self.call(|env| env.step(action))
    }

    /// See [`Environment::render`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn render(&mut self) -> Result<String, Fault> {
        self.call(|env| Ok(env.render()))
    }

    /// See [`Environment::state_key`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn state_key(&mut self) -> Result<String, Fault> {
        self.call(|env| Ok(env.state_key()))
    }

    /// See [`Environment::available_actions`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn available_actions(&mut self) -> Result<Vec<String>, Fault> {
        self.call(|env| Ok(env.available_actions()))
    }

    /// See [`Environment::sample_action`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn sample_action(&mut self, rng: &mut dyn Rng) -> Result<Option<String>, Fault> {
        self.call(|env| Ok(env.sample_action(rng)))
    }

    /// See [`Environment::oracle`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn oracle(&mut self, actions_left: usize) -> Result<Vec<String>, Fault> {
        self.call(|env| Ok(env.oracle(actions_left)))
    }

    /// See [`Environment::optimum`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn optimum(&mut self, actions_left: usize) -> Result<Option<f64>, Fault> {
        self.call(|env| Ok(env.optimum(actions_left)))
    }

    /// See [`Environment::check_reasoning`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn check_reasoning(&mut self, reasoning: &str, actions: &[String]) -> Result<Option<Agreement>, Fault> {
        self.call(|env| Ok(env.check_reasoning(reasoning, actions)))
    }

    /// See [`Environment::demonstrate`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn demonstrate(
        &mut self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Result<Option<Demonstration>, Fault> {
        self.call(|env| Ok(env.demonstrate(actions_left, max_actions, style, rng)))
    }

    /// See [`Environment::demonstrate_novice`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn demonstrate_novice(
        &mut self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Result<Option<Demonstration>, Fault> {
        self.call(|env| Ok(env.demonstrate_novice(actions_left, max_actions, style, rng)))
    }

    fn call<T>(&mut self, f: impl FnOnce(&mut Box<dyn Environment>) -> Result<T, EnvError>) -> Result<T, Fault> {
        let Some(env) = self.inner.as_mut() else {
            return Err(Fault::Error("the environment failed before and is not called again".into()));
        };
        let result = catch(|| f(env));
        if result.is_err() {
            self.discard();
        }
        result
    }

    /// Drops the environment; its destructor may panic too.
    fn discard(&mut self) {
        let inner = self.inner.take();
        let _ = catch_unwind(AssertUnwindSafe(move || drop(inner)));
    }
}

impl Drop for GuardedEnv {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Runs `f`; errors and panics become faults.
fn catch<T>(f: impl FnOnce() -> Result<T, EnvError>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Fault::Error(error.to_string())),
        Err(payload) => Err(Fault::Panic(
            payload
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".into()),
        )),
    }
}
