//! The seam between reinforcement learning and numerics.
//!
//! The RL side never sees logits. For every *sampled* token a policy gives a log-probability, the entropy of the
//! distribution it was drawn from and, with a critic, a value; a loss gives back its derivative with respect to each
//! of these numbers.

use std::path::Path;

/// How tokens are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Softmax temperature; 0 is greedy decoding.
    pub temperature: f32,
    /// Keep the `top_k` most likely tokens; `None` keeps all.
    pub top_k: Option<usize>,
    /// Keep the smallest set of most likely tokens whose probability reaches `top_p`; 1 keeps all.
    pub top_p: f32,
    /// Tokens that end a response. The token that ended it is part of the response.
    pub stop: Vec<u32>,
}

/// A piece of text to continue.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names the sequence for as long as the session lives. A new id starts a sequence, a known one extends it.
    pub id: u64,
    /// The given tokens to append before generation starts. At least one for a new sequence.
    pub given: Vec<u32>,
    /// Seed of this sequence's own random stream; the tokens drawn depend on nothing else but weights and context.
    pub seed: u64,
    /// Most tokens to draw before the response counts as cut.
    pub max_new_tokens: usize,
}

/// One generated response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The id of the request.
    pub id: u64,
    /// Sampled tokens, including the stop token when there is one.
    pub tokens: Vec<u32>,
    /// Per token, its log-probability under the temperature-scaled distribution over the whole vocabulary: what
    /// scoring with the same weights gives.
    pub log_probs: Vec<f32>,
    /// Per token, its log-probability under the distribution that was sampled from (after top-k and top-p).
    pub sampling_log_probs: Vec<f32>,
    /// Whether a stop token ended the response (false: the token limit or the model's context did).
    pub stopped: bool,
}

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

/// One sequence to score or to train on.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sequence {
    /// All tokens, given and sampled.
    pub tokens: Vec<u32>,
    /// Per token: it was sampled by the policy (scored, trained) or given. The first token is never sampled.
    pub sampled: Vec<bool>,
}

impl Sequence {
    /// Number of sampled tokens.
    pub fn sampled_len(&self) -> usize {
        self.sampled.iter().filter(|s| **s).count()
    }
}

/// One number per sampled token, sequence after sequence, tokens in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenScores {
    /// log p(token | everything before it), at the temperature of sampling.
    pub log_prob: Vec<f32>,
    /// Entropy (nats) of the distribution the token was drawn from.
    pub entropy: Vec<f32>,
    /// Value estimate of the state before the token; empty without a value head.
    pub value: Vec<f32>,
}

/// The loss's derivative with respect to each number of [`TokenScores`]; an empty vector stands for zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenGrads {
    /// ∂loss/∂log_prob.
    pub log_prob: Vec<f32>,
    /// ∂loss/∂entropy.
    pub entropy: Vec<f32>,
    /// ∂loss/∂value.
    pub value: Vec<f32>,
}

/// A loss over a micro-batch: gets the index of its first sampled token within the batch, the indices of its
/// sequences, and its scores.
pub type LossFn<'a> = dyn FnMut(MicroBatch<'_>, &TokenScores) -> TokenGrads + 'a;

/// Which part of the batch a loss is asked about. Micro-batches are cut for memory only: they never change a result.
#[derive(Clone, Copy, Debug)]
pub struct MicroBatch<'a> {
    /// Indices into the batch's sequences, in the order of the scores.
    pub sequences: &'a [usize],
}

/// Numbers of one optimiser step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Global gradient norm before clipping.
    pub grad_norm: f64,
    /// Whether the step was applied (false: the norm was not finite).
    pub applied: bool,
}

/// What the optimiser needs to know for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerStep {
    /// Learning rate.
    pub lr: f32,
    /// AdamW β₁ and β₂.
    pub betas: (f32, f32),
    /// AdamW ε.
    pub eps: f32,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// Clip the global gradient norm to this; ≤ 0 leaves it alone.
    pub grad_clip: f32,
}

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
    /// Clips, applies AdamW, clears the gradients. A non-finite norm skips the update.
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
