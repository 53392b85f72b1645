//! `compat`: switches that bring back behaviour of the reference implementation which is a fault or a quirk. All are
//! off; they exist to reproduce its numbers.

use serde::{Deserialize, Serialize};

/// Switches that bring back quirks of the reference implementation. All default to false.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Compat {
    /// Train template tokens that the policy did not sample as well: the assistant header, the forced opening tag and
    /// what follows the end of a turn. Off: exactly the sampled tokens.
    pub train_template_tokens: bool,
    /// Filter groups by returns that are already normalised. Off: by raw returns.
    pub filter_normalised_returns: bool,
    /// `token-mean` averages within each micro-batch and then over micro-batches, so that the micro-batch size changes
    /// the result. Off: over the mini-batch.
    pub per_micro_batch_token_mean: bool,
    /// The legend in the prompt ignores the environment's own configuration. Off: it shows the symbols in use.
    pub legend_ignores_env_config: bool,
}
