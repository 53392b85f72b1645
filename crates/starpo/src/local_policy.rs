//! The policy that lives in this process: a transformer on the CPU kernels.

use std::path::Path;

use ragen_model::generate::{GenerateError, Generator};
use ragen_model::trainable::Trainable;
use ragen_model::weights::WeightsError;

use crate::policy::{
    LossFn, OptimizerStep, Policy, PolicyError, Request, Response, Sampling, Sequence, Session, StepReport, TokenScores,
};

/// File of weights and optimiser state within a checkpoint.
const STATE: &str = "state.safetensors";

/// A [`Trainable`] behind the [`Policy`] seam.
pub struct LocalPolicy {
    model: Trainable,
}

impl LocalPolicy {
    /// Puts a model behind the seam.
    pub fn new(model: Trainable) -> Self {
        Self { model }
    }

    /// The model itself.
    pub fn model(&self) -> &Trainable {
        &self.model
    }

    /// The model itself, to change.
    pub fn model_mut(&mut self) -> &mut Trainable {
        &mut self.model
    }

    fn check(&self, batch: &[Sequence]) -> Result<(), PolicyError> {
        let (max, vocab) = (self.max_context(), self.model.model().config().vocab_size);
        for sequence in batch {
            let len = sequence.tokens.len();
            if len > max {
                return Err(PolicyError::ContextOverflow { len, max });
            }
            if sequence.sampled.len() != len {
                let flags = sequence.sampled.len();
                return Err(PolicyError::Request(format!("a sequence of {len} tokens has {flags} flags")));
            }
            if let Some(token) = sequence.tokens.iter().find(|t| **t as usize >= vocab) {
                let what = format!("token {token} is outside the model's vocabulary of {vocab}");
                return Err(PolicyError::Request(what));
            }
        }
        Ok(())
    }
}

fn inverse(temperature: f32) -> f32 {
    if temperature > 0.0 { 1.0 / temperature } else { 1.0 }
}

impl From<GenerateError> for PolicyError {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::ContextOverflow { len, max } => Self::ContextOverflow { len, max },
            other => Self::Request(other.to_string()),
        }
    }
}

impl From<WeightsError> for PolicyError {
    fn from(error: WeightsError) -> Self {
        Self::Storage(error.to_string())
    }
}

struct LocalSession<'a>(Generator<'a>);

impl Session for LocalSession<'_> {
    fn submit(&mut self, request: Request) -> Result<(), PolicyError> {
        Ok(self.0.submit(request)?)
    }

    fn step(&mut self) -> Result<Vec<Response>, PolicyError> {
        Ok(self.0.step()?)
    }

    fn close(&mut self, id: u64) {
        self.0.close(id);
    }

    fn active(&self) -> usize {
        self.0.active()
    }
}

impl Policy for LocalPolicy {
    fn session(&mut self, sampling: &Sampling, max_batch: usize) -> Result<Box<dyn Session + '_>, PolicyError> {
        Ok(Box::new(LocalSession(self.model.generator(sampling.clone(), max_batch))))
    }

    fn score(&mut self, batch: &[Sequence], temperature: f32) -> Result<TokenScores, PolicyError> {
        self.check(batch)?;
        Ok(self.model.score(batch, inverse(temperature)))
    }

    fn accumulate(&mut self, batch: &[Sequence], temperature: f32, loss: &mut LossFn<'_>) -> Result<(), PolicyError> {
        self.check(batch)?;
        self.model.accumulate(batch, inverse(temperature), loss);
        Ok(())
    }

    fn gradient_norm(&self) -> f64 {
        self.model.gradient_norm()
    }

    fn clear_gradients(&mut self) {
        self.model.clear_gradients();
    }

    fn step(&mut self, step: OptimizerStep) -> Result<StepReport, PolicyError> {
        let report = self.model.step(step);
        if !self.model.is_finite() {
            return Err(PolicyError::Diverged { lr: step.adamw.lr, grad_norm: report.grad_norm });
        }
        Ok(report)
    }

    fn save(&self, dir: &Path) -> Result<(), PolicyError> {
        Ok(self.model.save_state(&dir.join(STATE))?)
    }

    fn load(&mut self, dir: &Path) -> Result<(), PolicyError> {
        Ok(self.model.load_state(&dir.join(STATE))?)
    }

    fn weights_sha256(&self) -> String {
        self.model.weights_sha256()
    }

    fn max_context(&self) -> usize {
        self.model.model().max_context()
    }
}
