//! Sets a run up: everything it needs is made and checked before its folder is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ragen_model::memory::{Demand, Role, TooLittle, divide};
use ragen_model::tokenizer::Tokenizer;
use ragen_model::trainable::{Checkpointing, Limits, Trainable};
use ragen_model::transformer::Transformer;

use super::watching::Snapshots;
use super::{TrainError, Trainer, WARM_START_OFFSET};
use crate::agent::{AgentError, ModelSource, check_custom_envs, context_options, group_plan};
use crate::chat_dialogue::ChatDialogue;
use crate::config::{ActivationCheckpointing, Config, GuardMode, Logger};
use crate::diagnostics::collapse::CollapseState;
use crate::early_stop::EarlyStop;
use crate::entropy_control::EntropyControl;
use crate::evaluate::{BaselineOptions, Validation};
use crate::guard::Guard;
use crate::instances::{EnvTag, InstanceKeys, SeedCounter, validation_groups};
use crate::local_policy::LocalPolicy;
use crate::progress::Progress;
use crate::rollout::RolloutOptions;
use crate::run_dir::RunDir;
use crate::tensorboard::EventWriter;
use crate::warm_start::try_demonstrations;

impl Trainer {
    /// Sets a run up in a fresh folder. `stop` asks it to end after the present step.
    ///
    /// # Errors
    /// [`TrainError`]; nothing has been computed then.
    pub fn new(config: Config, run_dir: &Path, stop: Arc<AtomicBool>) -> Result<Self, TrainError> {
        let parts = Parts::load(&config)?;
        parts.check_environments(&config)?;
        let run = RunDir::create(run_dir, &config)?;
        Self::assemble(config, parts, run, stop)
    }

    pub(super) fn assemble(
        config: Config,
        parts: Parts,
        run: RunDir,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, TrainError> {
        let progress = Progress {
            warm_start_steps: 0,
            warm_start_done: !config.warm_start.enabled,
            iteration: 0,
            actor_steps: 0,
            critic_steps: 0,
            train_seeds: SeedCounter::new(config.es_manager.train.seed),
            warm_start_seeds: SeedCounter::new(config.es_manager.train.seed.wrapping_add(WARM_START_OFFSET)),
            kl_coef: config.algorithm.kl_ctrl.kl_coef,
            empty_iterations: 0,
            warm_start_eval: None,
            latest_eval: None,
            seconds: 0.0,
            generated: (0, 0.0),
            trained: (0, 0.0),
            mismatch_max: 0.0,
            entropy: EntropyControl::default(),
            collapse: CollapseState::default(),
            early_stop: EarlyStop::default(),
            guard: Guard::default(),
            unseen_validation: None,
            ended_early: None,
        };
        let events = if config.trainer.logger.contains(&Logger::Tensorboard) {
            Some(EventWriter::create(&run.tensorboard_dir())?)
        } else {
            None
        };
        Ok(Self {
            context: context_options(&config),
            tokenizer: parts.tokenizer,
            dialogue: parts.dialogue,
            policy: parts.policy,
            critic: parts.critic,
            reference: parts.reference,
            snapshots: parts.snapshots,
            generation_config: parts.generation_config,
            train_plan: parts.train_plan,
            validation: parts.validation,
            validation_keys: parts.validation_keys,
            progress,
            run,
            events,
            stop,
            started: Instant::now(),
            config,
        })
    }
}

/// What a run needs before its folder is made, so that a mistake leaves nothing behind.
pub(super) struct Parts {
    tokenizer: Tokenizer,
    dialogue: ChatDialogue,
    policy: LocalPolicy,
    critic: Option<LocalPolicy>,
    reference: Option<LocalPolicy>,
    snapshots: Option<Snapshots>,
    generation_config: Option<serde_json::Value>,
    train_plan: Vec<(EnvTag, usize)>,
    validation: Validation,
    validation_keys: InstanceKeys,
}

impl Parts {
    pub(super) fn load(config: &Config) -> Result<Self, TrainError> {
        let es = &config.es_manager;
        let train_plan = group_plan(config, &es.train, "es_manager.train").map_err(AgentError::from)?;
        let val_plan = group_plan(config, &es.val, "es_manager.val").map_err(AgentError::from)?;
        let source = ModelSource::load(&config.model_path, config.seed)?;
        let (wanted, max) = (config.actor_rollout_ref.rollout.max_model_len, source.config.max_position_embeddings);
        if wanted > max {
            return Err(AgentError::Context { wanted, max, path: config.model_path.clone() }.into());
        }
        let dialogue = ChatDialogue::of_tokenizer(source.tokenizer.clone())?;
        let shape = || Transformer::new(source.config.clone(), false);
        let limits = limits_within(config, &shape())?;
        let with_value = |params: &[f32]| {
            let model = Transformer::new(source.config.clone(), true);
            let mut all = params.to_vec();
            all.resize(model.layout().len(), 0.0);
            LocalPolicy::new(Trainable::new(model, all, limits.clone()))
        };
        let critic = config.algorithm.adv_estimator.uses_critic().then(|| with_value(&source.params));
        let reference = config
            .needs_reference()
            .then(|| LocalPolicy::new(Trainable::new(shape(), source.params.clone(), limits.clone())));
        let copy = || LocalPolicy::new(Trainable::new(shape(), source.params.clone(), limits.clone()));
        let snapshots = (config.guard.mode == GuardMode::Act).then(|| Snapshots { healthy: copy(), candidate: copy() });
        let policy = LocalPolicy::new(Trainable::new(shape(), source.params, limits.clone()));
        let validation = validation_groups(&val_plan, es.val.seed);
        let trained: Vec<&str> = train_plan.iter().map(|(tag, _)| tag.tag.as_str()).collect();
        let options = BaselineOptions {
            max_turn: config.agent_proxy.max_turn,
            max_actions_per_turn: config.agent_proxy.max_actions_per_turn,
            repeats: 4,
            seed: config.seed,
        };
        Ok(Self {
            validation_keys: InstanceKeys::of(&validation),
            validation: Validation::new(validation, &trained, &options),
            tokenizer: source.tokenizer,
            generation_config: source.generation_config,
            dialogue,
            policy,
            critic,
            reference,
            snapshots,
            train_plan,
        })
    }
}

impl Parts {
    /// Refuses entries of `custom_envs` that no split plays and that could not be played, and a warm start for which
    /// nothing can be demonstrated.
    fn check_environments(&self, config: &Config) -> Result<(), TrainError> {
        check_custom_envs(config).map_err(AgentError::from)?;
        if config.warm_start.enabled && config.warm_start.max_steps > 0 {
            let tags: Vec<&EnvTag> = self.train_plan.iter().map(|(tag, _)| tag).collect();
            let seeds = SeedCounter::new(config.es_manager.train.seed.wrapping_add(WARM_START_OFFSET));
            let (dialogue, context) = (&self.dialogue, context_options(config));
            try_demonstrations(dialogue, &context, &tags, &seeds, &self.validation_keys, config)?;
        }
        Ok(())
    }
}

/// How a configuration plays: training's way, or validation's. `iteration` selects the random streams; evaluations
/// take [`super::EVAL_STREAM`].
pub fn rollout_options(config: &Config, validation: bool, iteration: u64) -> RolloutOptions {
    let rollout = &config.actor_rollout_ref.rollout;
    let val = &rollout.val_kwargs;
    let split = if validation { &config.es_manager.val } else { &config.es_manager.train };
    let (temperature, top_p, top_k) = match (validation, val.do_sample) {
        (true, true) => (val.temperature, val.top_p, val.top_k),
        (true, false) => (0.0, 1.0, -1),
        (false, _) => (rollout.temperature, rollout.top_p, rollout.top_k),
    };
    RolloutOptions {
        group_size: split.group_size,
        max_turn: config.agent_proxy.max_turn,
        response_length: rollout.response_length,
        max_model_len: rollout.max_model_len,
        format_penalty: config.es_manager.format_penalty,
        temperature: temperature as f32,
        top_k: usize::try_from(top_k).ok().filter(|k| *k > 0),
        top_p: top_p as f32,
        max_batch: rollout.max_num_seqs,
        seed: config.seed,
        iteration,
        train_template_tokens: config.compat.train_template_tokens,
        train_given_tokens: !config.enable_response_mask,
    }
}

/// Memory limits of a configuration that sets no limit of its own.
pub fn limits(config: &Config) -> Limits {
    let actor = &config.actor_rollout_ref.actor;
    Limits {
        micro_batch_tokens: actor.ppo_max_token_len_per_gpu,
        checkpointing: checkpointing(actor.activation_checkpointing),
        ..Limits::default()
    }
}

/// The limits under which all models of a run stay within `memory_limit_gib`, if that is set.
fn limits_within(config: &Config, model: &Transformer) -> Result<Limits, TooLittle> {
    let actor = &config.actor_rollout_ref.actor;
    if actor.memory_limit_gib <= 0.0 {
        return Ok(limits(config));
    }
    let mut roles = vec![Role::Policy];
    if config.algorithm.adv_estimator.uses_critic() {
        roles.push(Role::Critic);
    }
    if config.needs_reference() {
        roles.push(Role::Reference);
    }
    if config.guard.mode == GuardMode::Act {
        // The healthy policy and the candidate are only ever scored with, like a reference.
        roles.extend([Role::Reference, Role::Reference]);
    }
    let rollout = &config.actor_rollout_ref.rollout;
    let demand = Demand {
        micro_batch_tokens: actor.ppo_max_token_len_per_gpu,
        context: rollout.max_model_len,
        sequences: rollout.max_num_seqs,
        checkpointing: checkpointing(actor.activation_checkpointing),
    };
    divide(model, &roles, &demand, (actor.memory_limit_gib * (1u64 << 30) as f64) as usize)
}

fn checkpointing(setting: ActivationCheckpointing) -> Checkpointing {
    match setting {
        ActivationCheckpointing::Auto => Checkpointing::Auto,
        ActivationCheckpointing::Always => Checkpointing::Always,
        ActivationCheckpointing::Never => Checkpointing::Never,
    }
}
