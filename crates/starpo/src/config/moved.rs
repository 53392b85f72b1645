//! Keys of RAGEN and veRL that mean nothing here, and what takes their place: for the message about an unknown key.

/// Section or key of RAGEN or veRL, and what to do instead.
const MOVED: &[(&str, &str)] = &[
    ("seed.train", "set `es_manager.train.seed`; `seed` itself is the master seed, a number"),
    ("seed.val", "set `es_manager.val.seed`; `seed` itself is the master seed, a number"),
    ("system", "devices are not chosen here; `trainer.threads` sets the number of threads"),
    ("micro_batch_size_per_gpu", "micro-batches are cut by `actor_rollout_ref.actor.ppo_max_token_len_per_gpu`"),
    (
        "log_prob_micro_batch_size_per_gpu",
        "micro-batches are cut by `actor_rollout_ref.actor.ppo_max_token_len_per_gpu`",
    ),
    ("ppo_mini_batch_size", "set `actor_rollout_ref.actor.ppo_mini_batch_size` and `critic.ppo_mini_batch_size`"),
    ("grpo_advantage_length_weight", "set `algorithm.grpo_advantage_length_weight`"),
    ("reward_model.overlong_buffer", "set `algorithm.overlong_buffer`"),
    ("lora", "adapters are not supported: all weights are trained"),
    ("actor_rollout_ref.model.path", "set `model_path`"),
    ("actor_rollout_ref.rollout.name", "there is one generation engine, built in"),
    ("actor_rollout_ref.rollout.gpu_memory_utilization", "set `actor_rollout_ref.actor.memory_limit_gib`"),
    (
        "actor_rollout_ref.rollout.prompt_length",
        "prompts may be as long as `actor_rollout_ref.rollout.max_model_len` leaves room",
    ),
    (
        "actor_rollout_ref.rollout.rollout_filter_ratio",
        "set `actor_rollout_ref.rollout.rollout_filter_value`, with `rollout_filter_strategy: top_k` for the old meaning",
    ),
    ("actor_rollout_ref.rollout.n", "set `es_manager.train.group_size`"),
    ("data.train_batch_size", "it is `es_manager.train.env_groups` × `group_size`"),
    ("trainer.n_gpus_per_node", "training runs on the processor; `trainer.threads` sets the number of threads"),
    ("trainer.nnodes", "training runs on one machine"),
    ("trainer.default_local_dir", "set `trainer.local_log_dir`"),
    ("trainer.total_epochs", "set `trainer.total_training_steps`"),
    ("agent_proxy.batch_adjust_mode", "batches need not be divisible: no sample is ever copied or dropped"),
    ("ctx_manager.generation.gen_config", "set the keys of `actor_rollout_ref.rollout`"),
];

/// What to do instead of setting `path`, if it is a known key of RAGEN or veRL.
pub(crate) fn advice(path: &str) -> Option<&'static str> {
    let covers = |key: &str| path == key || path.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
    MOVED.iter().find(|(key, _)| covers(key)).map(|(_, advice)| *advice)
}
