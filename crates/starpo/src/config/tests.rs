use std::fs;

use serde_json::Value;

use super::load::ConfigError;
use super::*;

fn overrides(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

fn load(texts: &[&str]) -> Result<Config, ConfigError> {
    Config::load(None, &overrides(texts))
}

fn error(texts: &[&str]) -> String {
    load(texts).unwrap_err().to_string()
}

/// Every leaf of a mapping as dotted path and value.
fn leaves(value: &Value, path: String, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(keys) if !keys.is_empty() => {
            for (key, value) in keys {
                leaves(value, if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, out);
            }
        }
        leaf => out.push((path, leaf.clone())),
    }
}

#[test]
fn base_yaml_names_every_key_with_its_default() {
    let text = include_str!("../../../../configs/base.yaml");
    let (mut written, mut known) = (Vec::new(), Vec::new());
    leaves(&serde_saphyr::from_str(text).unwrap(), String::new(), &mut written);
    leaves(&serde_json::to_value(Config::default()).unwrap(), String::new(), &mut known);
    let names = |leaves: &[(String, Value)]| leaves.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&written), names(&known));
    assert_eq!(load(&[]).unwrap(), Config::default());
}

#[test]
fn every_built_in_task_is_valid() {
    for task in Config::tasks() {
        let config = Config::load(Some(task), &[]).unwrap_or_else(|error| panic!("{task}: {error}"));
        if task != "base" {
            assert_eq!(config.trainer.experiment_name, task);
        }
    }
    let bandit = Config::load(Some("bandit"), &[]).unwrap();
    assert_eq!(bandit.agent_proxy.max_turn, 1);
    assert_eq!(bandit.es_manager.val.groups_per_tag("v").unwrap(), [("Bandit", 256), ("BanditTest", 256)]);
}

#[test]
fn overrides_are_yaml_and_the_last_one_wins() {
    let config = load(&[
        "seed=7",
        "actor_rollout_ref.actor.optim.lr=1e-6",
        "actor_rollout_ref.actor.optim.lr=3e-4",
        "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",
        "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
        "es_manager.train.env_configs.tags=[Bandit, FrozenLake]",
        "es_manager.train.env_configs.n_groups=[20, 12]",
        "agent_proxy.enable_think=False",
        "agent_proxy.action_sep=||",
        "trainer.experiment_name=42",
        "trainer.logger=[]",
        "algorithm.kl_ctrl.type=adaptive",
        "custom_envs.Mine={env_type: sokoban, env_config: {dim_room: [8, 8]}}",
        "custom_envs.Mine.env_config.num_boxes=2",
        "custom_envs.Mine.max_actions_per_traj=20",
    ])
    .unwrap();
    assert_eq!(config.seed, 7);
    assert_eq!(config.actor_rollout_ref.actor.optim.lr, 3e-4);
    assert_eq!(config.actor_rollout_ref.actor.optim.eps, 1e-8, "its neighbours stay");
    assert_eq!(config.actor_rollout_ref.actor.loss_agg_mode, LossAggMode::SeqMeanTokenMean);
    assert_eq!(config.actor_rollout_ref.actor.kl_loss_type, KlType::K3);
    assert_eq!(config.es_manager.train.groups_per_tag("t").unwrap(), [("Bandit", 20), ("FrozenLake", 12)]);
    assert!(!config.agent_proxy.enable_think);
    assert_eq!(config.agent_proxy.action_sep, "||");
    assert_eq!(config.trainer.experiment_name, "42");
    assert!(config.trainer.logger.is_empty());
    assert_eq!(config.algorithm.kl_ctrl.kind, KlCtrlType::Adaptive);
    let mine = &config.custom_envs["Mine"];
    assert_eq!(mine.max_actions_per_traj, Some(20));
    let env_config = Value::Object(mine.env_config.clone().unwrap());
    assert_eq!(env_config, serde_json::json!({"dim_room": [8, 8], "num_boxes": 2}));
}

#[test]
fn unknown_keys_are_refused_with_path_origin_and_nearest_key() {
    assert_eq!(
        error(&["trainer.save_frequ=3"]),
        "unknown key `trainer.save_frequ` in the override `trainer.save_frequ=3`; did you mean `trainer.save_freq`?"
    );
    assert!(error(&["group_size=3"]).contains("did you mean `es_manager."));
    assert!(error(&["seed.train=3"]).contains("set `es_manager.train.seed`"), "{}", error(&["seed.train=3"]));
    assert!(error(&["lora.rank=64"]).contains("adapters are not supported"));
    assert!(error(&["custom_envs.X.max_token=3"]).contains("did you mean `custom_envs.X.max_tokens`?"));
    assert!(error(&["zzzzzz=1"]).starts_with("unknown key `zzzzzz` in the override"));
    let deep = error(&["actor_rollout_ref.actor.optim.betas.first=1"]);
    assert!(deep.contains("`actor_rollout_ref.actor.optim.betas.first`"), "{deep}");
}

#[test]
fn wrong_types_are_refused_with_path_expected_and_found() {
    let origin = "in the override";
    for (text, told) in [
        ("seed=x", "expected a whole number of at least 0, found the text \"x\""),
        ("seed=-1", "expected a whole number of at least 0, found the number `-1`"),
        ("trainer.save_freq=1.5", "expected a whole number, found the number `1.5`"),
        ("agent_proxy.enable_think=3", "expected true or false, found the number `3`"),
        ("actor_rollout_ref.actor.optim.lr=high", "expected a number, found the text \"high\""),
        ("actor_rollout_ref.actor.optim.betas=[0.9]", "expected a list of two numbers"),
        ("es_manager.train=3", "expected a section with keys such as env_groups, group_size"),
        ("trainer.logger=[wandb]", "expected one of console, tensorboard, found the text \"wandb\""),
        (
            "actor_rollout_ref.actor.policy_loss.loss_mode=gsop",
            "expected one of vanilla, gspo, sapo, cispo, geo_mean, gpg, clip_cov, kl_cov (did you mean `gspo`?)",
        ),
    ] {
        let message = error(&[text]);
        assert!(message.contains(told) && message.contains(origin), "{text}: {message}");
        assert!(message.starts_with(&format!("`{}", text.split('=').next().unwrap())), "{message}");
    }
    let indexed = error(&["actor_rollout_ref.actor.optim.betas=[0.9, x]"]);
    assert!(indexed.starts_with("`actor_rollout_ref.actor.optim.betas[1]` in the override"), "{indexed}");
}

#[test]
fn malformed_overrides_are_refused() {
    assert!(error(&["seed"]).contains("found no `=`"));
    assert!(error(&["trainer..save_freq=1"]).contains("single dots"));
    assert!(error(&["=1"]).contains("single dots"));
    assert_eq!(error(&["seed=[1"]), "the override `seed=[1`: line 1, column 1: unclosed bracket '['");
}

#[test]
fn files_inherit_override_and_name_themselves_in_errors() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    write("mine.yaml", "defaults: [frozen_lake]\ntrainer:\n  test_freq: 3\n");
    let task = write("task.yaml", "defaults: [mine, _self_]\ntrainer: {save_freq: 4}\ncritic:\n");
    let config = Config::load(Some(&task), &overrides(&["seed=5"])).unwrap();
    assert_eq!(config.es_manager.train.env_configs.tags, ["FrozenLake"]);
    assert_eq!((config.trainer.test_freq, config.trainer.save_freq, config.seed), (3, 4, 5));

    let fail = |path: &str| Config::load(Some(path), &[]).unwrap_err();
    let unknown = fail(&write("unknown.yaml", "agent_proxy:\n  max_turns: 3\n")).to_string();
    assert!(unknown.contains("unknown.yaml") && unknown.contains("did you mean `agent_proxy.max_turn`?"), "{unknown}");
    let typed = fail(&write("typed.yaml", "trainer:\n  threads: many\n")).to_string();
    assert!(typed.starts_with("`trainer.threads` in ") && typed.contains("typed.yaml"), "{typed}");
    match fail(&write("broken.yaml", "trainer:\n  save_freq: [1\nseed: 2\n")) {
        ConfigError::Syntax { origin, position: Some((line, column)), .. } => {
            assert!(origin.ends_with("broken.yaml"));
            assert!((2..=4).contains(&line) && column >= 1, "line {line}, column {column}");
        }
        other => panic!("{other}"),
    }
    let twice = fail(&write("twice.yaml", "seed: 1\nseed: 2\n")).to_string();
    assert!(twice.contains("line 2"), "a key given twice is an error: {twice}");
    let list = fail(&write("list.yaml", "- 1\n")).to_string();
    assert!(list.contains("(the whole file)"), "{list}");
    let circle = fail(&write("circle.yaml", "defaults: [circle]\n")).to_string();
    assert!(circle.contains("goes in a circle"), "{circle}");
    let lost = fail(&write("lost.yaml", "defaults: [nowhere]\n")).to_string();
    assert!(lost.contains("`nowhere` is neither"), "{lost}");
    let text = fail(&write("text.yaml", "defaults: base\n")).to_string();
    assert!(text.contains("expected a list of task names"), "{text}");
    assert!(Config::load(Some(&write("empty.yaml", "")), &[]).is_ok());
}

#[test]
fn unknown_tasks_are_refused_with_the_nearest() {
    let message = Config::load(Some("frozenlake"), &[]).unwrap_err().to_string();
    assert!(message.contains("did you mean `frozen_lake`?"), "{message}");
    let message = Config::load(Some("no/such/sokobann.yaml"), &[]).unwrap_err().to_string();
    assert!(message.contains("no/such/sokobann.yaml") && message.contains("`sokoban`"), "{message}");
}

#[test]
fn values_that_make_no_sense_are_refused_together() {
    let message = error(&[
        "es_manager.train.group_size=1",
        "actor_rollout_ref.rollout.temperature=0",
        "actor_rollout_ref.rollout.max_model_len=50",
        "es_manager.val.env_configs.n_groups=[3]",
        "actor_rollout_ref.actor.clip_ratio_low=1.5",
        "actor_rollout_ref.actor.ppo_mini_batch_size=0",
        "algorithm.bi_level_gae=true",
        "algorithm.gamma=1.1",
        "trainer.experiment_name=a/b",
        "trainer.save_freq=0",
    ]);
    for told in [
        "a group of one has no baseline",
        "`actor_rollout_ref.rollout.temperature` must be greater than 0",
        "`actor_rollout_ref.rollout.max_model_len` (50)",
        "`es_manager.val.env_configs.n_groups` sums to 3, but `es_manager.val.env_groups` is 256",
        "`actor_rollout_ref.actor.clip_ratio_low`",
        "`actor_rollout_ref.actor.ppo_mini_batch_size` must be at least 1",
        "`algorithm.bi_level_gae` needs",
        "`algorithm.gamma` must lie between 0 and 1",
        "without slashes",
        "`trainer.save_freq` must be -1 (never) or at least 1",
    ] {
        assert!(message.contains(told), "missing {told:?} in: {message}");
    }
    assert!(!message.contains('\n'), "one paragraph");
}

#[test]
fn single_complaints() {
    for (texts, told) in [
        (vec!["actor_rollout_ref.actor.kl_loss_coef=0.1"], "it would have no effect"),
        (vec!["algorithm.kl_ctrl.kl_coef=0.1"], "it would have no effect"),
        (vec!["es_manager.train.env_configs.tags=[A, B, C]"], "cannot be divided equally among 3 tags"),
        (vec!["es_manager.train.env_configs.tags=[]"], "at least one environment"),
        (vec!["es_manager.train.env_configs.n_groups=[1, 31]"], "2 entries for 1 tags"),
        (vec!["es_manager.format_penalty=0.1"], "at most 0"),
        (vec!["trainer.critic_warmup=3"], "has no critic"),
        (vec!["agent_proxy.max_context_window=3"], "no effect"),
        (
            vec!["agent_proxy.context_window_mode=single_turn", "agent_proxy.max_context_window=0"],
            "at least 1, found 0",
        ),
        (vec!["agent_proxy.context_overflow=drop_oldest_turns", "agent_proxy.max_turn=1"], "set it to truncate"),
        (
            vec![
                "agent_proxy.context_overflow=drop_oldest_turns",
                "agent_proxy.context_window_mode=limited_multi_turn",
                "agent_proxy.max_context_window=1",
            ],
            "set it to truncate",
        ),
        (
            vec!["agent_proxy.context_window_mode=single_turn", "enable_response_mask=false"],
            "a sample ends with its only response",
        ),
        (vec!["actor_rollout_ref.rollout.val_kwargs.temperature=0"], "do_sample"),
        (vec!["actor_rollout_ref.rollout.top_k=0"], "-1 (all tokens)"),
        (vec!["actor_rollout_ref.rollout.top_p=0"], "greater than 0"),
        (vec!["actor_rollout_ref.rollout.rollout_filter_value=8"], "is a share"),
        (
            vec![
                "actor_rollout_ref.rollout.rollout_filter_strategy=top_k_abs",
                "actor_rollout_ref.rollout.rollout_filter_value=99",
            ],
            "keeps 99 groups of 32",
        ),
        (vec!["custom_envs.X.max_actions_per_traj=0"], "`custom_envs.X.max_actions_per_traj` must be at least 1"),
        (vec!["warm_start.target_success=2"], "between 0 and 1"),
        (vec!["algorithm.norm_adv_by_std_in_grpo=false"], "is Dr.GRPO"),
        (vec!["algorithm.norm_adv_by_std_in_grpo=false", "algorithm.adv_estimator=rloo"], "divides by no standard"),
        (vec!["algorithm.adv_estimator=gigpo", "agent_proxy.max_turn=1"], "tells the turns of an episode apart"),
        (vec!["algorithm.adv_estimator=turn_level", "agent_proxy.max_turn=1"], "use grpo"),
        (vec!["algorithm.adv_estimator=gigpo", "algorithm.gamma=0.9"], "its discount is `algorithm.high_level_gamma`"),
        (vec!["algorithm.lam=0.9"], "only gae reads it"),
        (vec!["agent_proxy.use_turn_scores=true"], "reads none"),
        (
            vec!["algorithm.adv_estimator=gigpo", "actor_rollout_ref.actor.policy_loss.loss_mode=geo_mean"],
            "one advantage for a whole sequence",
        ),
        (vec!["algorithm.adv_estimator=gae", "algorithm.soft_advantage_reweight=true"], "compares within groups"),
        (vec!["algorithm.adv_estimator=rloo", "algorithm.adv_std_scope=batch"], "needs `algorithm.adv_estimator` grpo"),
        (vec!["algorithm.adv_estimator=gae", "algorithm.grpo_advantage_length_weight=true"], "found gae"),
        (vec!["algorithm.overlong_buffer.enable=true"], "both must be greater than 0"),
        (vec!["algorithm.overlong_buffer.len=999"], "must not exceed"),
        (vec!["compat.filter_normalised_returns=true"], "no effect"),
        (
            vec!["compat.filter_normalised_returns=true", "agent_proxy.reward_normalization.method=mean_std"],
            "cannot tell groups apart",
        ),
        (vec!["reasoning_reward.length=0.1"], "needs a band"),
        (vec!["reasoning_reward.agreement=0.1", "agent_proxy.enable_think=false"], "pays for reasoning"),
        (vec!["guard.ladder=[lr, lr]"], "names an intervention twice"),
        (vec!["guard.mode=act", "guard.ladder=[]"], "name what may be done"),
        (vec!["guard.signals.grad_norm_factor=1"], "must be greater than 1"),
        (vec!["guard.lr_factor=0"], "greater than 0 and at most 1"),
        (vec!["trainer.gradient_analysis_every=0"], "at least 1"),
        (vec!["collapse_detection.max_share=0"], "greater than 0"),
        (vec!["actor_rollout_ref.actor.entropy_band.kappa_r=0.9"], "so that the mean is in the band"),
    ] {
        let message = error(&texts);
        assert!(message.contains(told), "{texts:?}: {message}");
    }
}

#[test]
fn legal_but_doubtful_values_are_warned_about() {
    assert!(load(&[]).unwrap().warnings().is_empty());
    let doubtful = load(&[
        "actor_rollout_ref.rollout.top_p=0.9",
        "actor_rollout_ref.actor.use_kl_loss=true",
        "actor_rollout_ref.actor.kl_loss_type=kl",
        "algorithm.zero_task_advantage=true",
    ])
    .unwrap();
    assert_eq!(doubtful.warnings().len(), 3);
    assert!(doubtful.needs_reference());
}

#[test]
fn a_loaded_configuration_takes_further_overrides() {
    let config = load(&["seed=3", "custom_envs.X={env_type: sokoban, env_config: {num_boxes: 2}}"]).unwrap();
    assert_eq!(config.with_overrides(&[]).unwrap(), config);
    let more = config.with_overrides(&overrides(&["trainer.total_training_steps=9"])).unwrap();
    assert_eq!((more.seed, more.trainer.total_training_steps), (3, 9));
    assert_eq!(more.custom_envs, config.custom_envs);
    assert!(config.with_overrides(&overrides(&["trainer.threds=1"])).is_err());
    assert!(config.with_overrides(&overrides(&["trainer.save_freq=0"])).is_err());
}

#[test]
fn a_group_of_one_is_fine_with_a_critic_and_no_spread_to_filter_by() {
    load(&[
        "es_manager.train.group_size=1",
        "algorithm.adv_estimator=gae",
        "actor_rollout_ref.rollout.rollout_filter_value=1.0",
        "actor_rollout_ref.rollout.rollout_filter_include_zero=true",
    ])
    .unwrap();
}

#[test]
fn the_resolved_configuration_comes_back_from_yaml() {
    for task in Config::tasks() {
        let config = Config::load(Some(task), &[]).unwrap();
        assert_eq!(Config::from_yaml(&config.to_yaml().unwrap(), "text").unwrap(), config);
    }
    let odd = load(&[
        "actor_rollout_ref.actor.optim.lr=1.2345678901234567e-7",
        "seed=18446744073709551615",
        "custom_envs.Odd={env_type: 'yes', env_instruction: \"a: b\\n - ü # 'x'\\ttab \\\"\", env_config: {a: null, b: [1.5, {c: '07'}]}}",
        "trainer.experiment_name=null_",
        "agent_proxy.action_sep=;",
    ])
    .unwrap();
    assert_eq!(Config::from_yaml(&odd.to_yaml().unwrap(), "text").unwrap(), odd);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_numbers_and_texts_come_back(
        lr in 1e-12f64..1.0, seed: u64, name in "[^/\\\\\\x00\\r]{1,12}", sep in "[!-~]{1,3}", text in "\\PC{0,40}"
    ) {
        let mut config = Config { seed, ..Config::default() };
        config.actor_rollout_ref.actor.optim.lr = lr;
        config.trainer.experiment_name = format!("x{name}");
        config.agent_proxy.action_sep = sep;
        let env = CustomEnv { env_instruction: Some(text.clone()), ..CustomEnv::default() };
        config.custom_envs.insert(format!("t{text}").replace('.', ""), env);
        let yaml = config.to_yaml().unwrap();
        proptest::prop_assert_eq!(Config::from_yaml(&yaml, "text").unwrap(), config);
    }

    #[test]
    fn no_text_makes_the_loader_panic(text in "\\PC{0,60}") {
        let _ = Config::from_yaml(&text, "text");
        let _ = Config::load(None, &[text.clone(), format!("seed={text}"), format!("{text}=1")]);
    }
}
