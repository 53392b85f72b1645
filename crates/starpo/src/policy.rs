//! The seam between reinforcement learning and numerics.
//!
//! The RL side never sees logits. For every *sampled* token a policy gives a log-probability, the entropy of the
//! distribution it was drawn from and, with a critic, a value; a loss gives back its derivative with respect to each
//! of these numbers.

use std::path::Path;

pub use ragen_model::batch::shared_rows;
pub use ragen_model::generate::{Completion as Response, Request};
pub use ragen_model::sampler::Sampling;
pub use ragen_model::trainable::{OptimizerStep, Sequence, StepReport};
pub use ragen_model::transformer::{ScoreGrads as TokenGrads, Scores as TokenScores};

/// Multi-turn generation: sequences stay in the key-value cache between their turns.
pub trait Session {
    /// Queues a request. Sequences join the running batch as places become free.
    fn submit(&mut self, request: Request) -> Result<(), PolicyError>;
    /// Advances the batch by one token and returns the responses that ended with it; empty while all go on.
    fn step(&mut self) -> Result<Vec<Response>, PolicyError>;
    /// Forgets a sequence and frees its cache.
    fn close(&mut self, id: u64);
    /// Number of requests queued or being decoded.
    fn active(&self) -> usize;
}

/// A loss over a micro-batch: gets the indices of its sequences within the batch and the scores of their sampled
/// tokens, sequence after sequence. Micro-batches are cut for memory only; a loss must not depend on the cut.
pub type LossFn<'a> = dyn FnMut(&[usize], &TokenScores) -> TokenGrads + 'a;

/// Anything that can go wrong behind the seam.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A sequence does not fit the model.
    #[error("a sequence of {len} tokens does not fit the model's context of {max}")]
    ContextOverflow {
        /// Tokens needed.
        len: usize,
        /// Tokens there is room for.
        max: usize,
    },
    /// The request cannot be served.
    #[error("{0}")]
    Request(String),
    /// Reading or writing weights failed.
    #[error("{0}")]
    Storage(String),
    /// An update has left weights that are no numbers.
    #[error(
        "the weights are no longer finite numbers after an optimiser step at learning rate {lr:e} (gradient norm \
         {grad_norm:e}): lower the learning rate, or give it a longer warm-up; checkpoints written before are sound"
    )]
    Diverged {
        /// Learning rate of the step.
        lr: f64,
        /// Global gradient norm before clipping.
        grad_norm: f64,
    },
}

/// A trainable policy. Other engines (a GPU, a remote one) are further implementors.
pub trait Policy {
    /// Starts a generation session with the present weights. `max_batch` sequences decode together.
    fn session(&mut self, sampling: &Sampling, max_batch: usize) -> Result<Box<dyn Session + '_>, PolicyError>;
    /// Scores the sampled tokens of `batch` at `temperature`.
    fn score(&mut self, batch: &[Sequence], temperature: f32) -> Result<TokenScores, PolicyError>;
    /// Forward, `loss`, backward: adds the gradients of `batch` to the accumulated ones.
    fn accumulate(&mut self, batch: &[Sequence], temperature: f32, loss: &mut LossFn<'_>) -> Result<(), PolicyError>;
    /// Global norm of the accumulated gradients.
    fn gradient_norm(&self) -> f64;
    /// Forgets the accumulated gradients.
    fn clear_gradients(&mut self);
    /// Clips, applies AdamW, clears the gradients. A non-finite norm skips the update; weights that an update leaves
    /// without finite values are [`PolicyError::Diverged`], so that no checkpoint is written of them.
    fn step(&mut self, step: OptimizerStep) -> Result<StepReport, PolicyError>;
    /// Writes weights and optimiser state into an existing folder.
    fn save(&self, dir: &Path) -> Result<(), PolicyError>;
    /// Reads what [`Policy::save`] wrote.
    fn load(&mut self, dir: &Path) -> Result<(), PolicyError>;
    /// SHA-256 of the weights, in hexadecimal.
    fn weights_sha256(&self) -> String;
    /// Longest sequence the policy can hold.
    fn max_context(&self) -> usize;
}
