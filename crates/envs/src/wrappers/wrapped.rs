//! What a wrapper can change, and the environment that results.

use rand_core::Rng;

use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Split, Step};

/// A change to an environment. Every method has a default that changes nothing.
pub trait Wrapper: Send {
    /// An episode has begun; `env` is what is wrapped, in its first state.
    fn begin(&mut self, env: &dyn Environment) {
        let _ = env;
    }

    /// `env` has taken `action`, which brought `step`. The observation in it is not rewritten yet.
    fn step(&mut self, env: &dyn Environment, action: &str, step: &mut Step) {
        let _ = (env, action, step);
    }

    /// An observation, as the agent is to see it.
    fn observe(&self, observation: String) -> String {
        observation
    }

    /// The description, as the agent is to read it. Called once, when the wrapper is put on.
    fn describe(&self, spec: &mut EnvSpec) {
        let _ = spec;
    }

    /// How many of `actions_left` can still be taken.
    fn actions_left(&self, actions_left: usize) -> usize {
        actions_left
    }
}

impl<W: Wrapper + ?Sized> Wrapper for Box<W> {
    fn begin(&mut self, env: &dyn Environment) {
        (**self).begin(env);
    }

    fn step(&mut self, env: &dyn Environment, action: &str, step: &mut Step) {
        (**self).step(env, action, step);
    }

    fn observe(&self, observation: String) -> String {
        (**self).observe(observation)
    }

    fn describe(&self, spec: &mut EnvSpec) {
        (**self).describe(spec);
    }

    fn actions_left(&self, actions_left: usize) -> usize {
        (**self).actions_left(actions_left)
    }
}

/// An environment with a wrapper on.
pub struct Wrapped<W> {
    inner: Box<dyn Environment>,
    wrapper: W,
    spec: EnvSpec,
    /// The wrapper ended an episode that the environment would go on with.
    over: bool,
}

impl<W: Wrapper> Wrapped<W> {
    /// Puts `wrapper` on `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn Environment>, wrapper: W) -> Self {
        let mut spec = inner.spec().clone();
        wrapper.describe(&mut spec);
        Self { inner, wrapper, spec, over: false }
    }
}

impl<W: Wrapper> Environment for Wrapped<W> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let observation = self.inner.reset(seed, split)?;
        self.over = false;
        self.wrapper.begin(&*self.inner);
        Ok(self.wrapper.observe(observation))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        if self.over {
            return Err(EnvError::ended(&self.spec.env_type));
        }
        let mut step = self.inner.step(action)?;
        self.wrapper.step(&*self.inner, action, &mut step);
        step.observation = self.wrapper.observe(step.observation);
        self.over = step.terminated || step.truncated;
        Ok(step)
    }

    fn render(&self) -> String {
        self.wrapper.observe(self.inner.render())
    }

    fn state_key(&self) -> String {
        self.inner.state_key()
    }

    fn can_hold_out(&self) -> bool {
        self.inner.can_hold_out()
    }

    fn action_lookup(&self) -> Vec<String> {
        self.inner.action_lookup()
    }

    fn available_actions(&self) -> Vec<String> {
        self.inner.available_actions()
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.inner.oracle(self.left(actions_left))
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        self.inner.optimum(self.left(actions_left))
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        self.inner.demonstrate(self.left(actions_left), max_actions, style, rng)
    }

    fn demonstrate_novice(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        self.inner.demonstrate_novice(self.left(actions_left), max_actions, style, rng)
    }
}

impl<W: Wrapper> Wrapped<W> {
    fn left(&self, actions_left: usize) -> usize {
        if self.over { 0 } else { self.wrapper.actions_left(actions_left) }
    }
}
