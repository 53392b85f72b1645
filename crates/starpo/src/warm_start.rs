//! The warm start: supervised steps on demonstrated episodes, written in the agent's own format.
//!
//! What is here: one supervised step. What is not here: how demonstrations are made ([`crate::warm_start_data`]), when
//! the phase ends ([`crate::trainer`]).

use crate::config::{Config, WarmStartStyle};
use crate::context::ContextOptions;
use crate::dialogue::Dialogue;
use crate::instances::{EnvTag, InstanceKeys, SeedCounter};
use crate::policy::{Policy, PolicyError, TokenGrads};
use crate::update::optimizer_step;
use crate::warm_start_data::{WarmStartDataError, WarmStartDataOptions, demonstrations};
use ragen_envs::DemoStyle;

/// What can go wrong in a warm-start step.
#[derive(Debug, thiserror::Error)]
pub enum WarmStartError {
    /// Demonstrations cannot be made.
    #[error(transparent)]
    Data(#[from] WarmStartDataError),
    /// Behind the seam.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// Numbers of one warm-start step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmStartReport {
    /// Mean negative log-likelihood per demonstrated token, in nats.
    pub loss: f64,
    /// Gradient norm before clipping.
    pub grad_norm: f64,
    /// Tokens trained on.
    pub tokens: usize,
}

/// How demonstrations are made, by the configuration.
fn data_options(config: &Config) -> WarmStartDataOptions {
    let setting = &config.warm_start;
    WarmStartDataOptions {
        max_turn: config.agent_proxy.max_turn,
        max_model_len: config.actor_rollout_ref.rollout.max_model_len,
        response_length: config.actor_rollout_ref.rollout.response_length,
        style: match setting.style {
            WarmStartStyle::Brief => DemoStyle::Brief,
            WarmStartStyle::Verbose => DemoStyle::Verbose,
        },
        demonstrator: setting.demonstrator,
        oracle_share: setting.oracle_share,
        seed: config.seed,
        ..WarmStartDataOptions::default()
    }
}

/// Makes one demonstration of each tag and throws it away: what cannot be demonstrated is noticed before anything is
/// computed. Nothing of the run depends on it.
///
/// # Errors
/// [`WarmStartError::Data`].
pub fn try_demonstrations(
    dialogue: &dyn Dialogue,
    context: &ContextOptions,
    tags: &[&EnvTag],
    seeds: &SeedCounter,
    validation: &InstanceKeys,
    config: &Config,
) -> Result<(), WarmStartError> {
    let mut seeds = seeds.clone();
    for tag in tags {
        demonstrations(dialogue, context, tag, 1, &mut seeds, validation, &data_options(config))?;
    }
    Ok(())
}

/// One supervised step on `warm_start.batch_size` fresh demonstrations, divided evenly among the tags.
///
/// # Errors
/// [`WarmStartError`].
pub fn warm_start_step(
    policy: &mut dyn Policy,
    dialogue: &dyn Dialogue,
    context: &ContextOptions,
    tags: &[&EnvTag],
    seeds: &mut SeedCounter,
    validation: &InstanceKeys,
    config: &Config,
    step: u64,
) -> Result<WarmStartReport, WarmStartError> {
    let setting = &config.warm_start;
    let options = data_options(config);
    let mut sequences = Vec::new();
    for (i, tag) in tags.iter().enumerate() {
        // The remainder goes to the first tags.
        let count = setting.batch_size / tags.len() + usize::from(i < setting.batch_size % tags.len());
        sequences.extend(demonstrations(dialogue, context, tag, count, seeds, validation, &options)?.sequences);
    }
    let tokens: usize = sequences.iter().map(|s| s.sampled_len()).sum();
    let weight = 1.0 / tokens.max(1) as f32;
    let mut loss = 0.0;
    policy.accumulate(&sequences, 1.0, &mut |_, scores| {
        loss -= scores.log_prob.iter().map(|l| f64::from(*l)).sum::<f64>();
        TokenGrads { log_prob: vec![-weight; scores.log_prob.len()], ..TokenGrads::default() }
    })?;
    let lr = setting.optim().lr_at(step, setting.max_steps);
    let report = policy.step(optimizer_step(&setting.optim(), lr, setting.grad_clip))?;
    Ok(WarmStartReport { loss: loss * f64::from(weight), grad_norm: report.grad_norm, tokens })
}
