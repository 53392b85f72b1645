//! `ragen eval`: how good a model is at a task, beside random actions and the oracle.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use ragen_starpo::agent::{AgentError, context_options, group_plan};
use ragen_starpo::chat_dialogue::ChatDialogue;
use ragen_starpo::config::Config;
use ragen_starpo::episode::Episode;
use ragen_starpo::evaluate::{BaselineOptions, Baselines, EvalReport, Score, Validation, evaluate};
use ragen_starpo::instances::validation_groups;
use ragen_starpo::trainer::{EVAL_STREAM, limits, rollout_options};
use serde_json::{Value, json};

use crate::arguments::{Positional, print_warnings, set_threads};
use crate::failure::{Failure, Outcome};
use crate::model::{self, Found};
use crate::output::{self, Table, interval, percent};

/// Evaluate a model on fixed validation instances.
///
/// By default 256 instances at temperature 0.5 (es_manager.val.* and actor_rollout_ref.rollout.val_kwargs.*). Success
/// rates come with 95 % intervals and stand beside those of uniformly random actions and of the oracle on the same
/// instances. A model of a run is evaluated as its run would do it.
#[derive(Args)]
#[command(after_help = "Examples:\n  ragen eval runs/sokoban\n  ragen eval \
models/smollm2-135m-instruct-q4_1.gguf sokoban_smollm2 es_manager.val.env_groups=64\n  ragen eval runs/sokoban \
'es_manager.val.env_configs.tags=[LargerSokoban]' --episodes large.jsonl")]
pub struct Eval {
    /// The model (tiny, a Hugging Face folder, a GGUF file, a run folder or a checkpoint; default: the task's
    /// model_path), the task (default: the run's configuration, else sokoban), then overrides section.key=value.
    #[arg(value_name = "MODEL|TASK|KEY=VALUE")]
    arguments: Vec<String>,
    /// Write the episodes to this new file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    episodes: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Which model and which configuration the arguments mean. Reads no weights.
fn resolve(arguments: &Positional) -> Outcome<(String, Config)> {
    let is_task =
        |name: &str| !Path::new(name).exists() && Config::tasks().any(|task| task == name) || name.ends_with(".yaml");
    let (model, task) = match (arguments.name(0), arguments.name(1)) {
        (Some(only), None) if is_task(only) => (None, Some(only)),
        both => both,
    };
    let config = match (model, task) {
        (Some(model), None) => config_for(model, &arguments.overrides)?,
        _ => Config::load(task, &arguments.overrides)?,
    };
    Ok((model.map_or_else(|| config.model_path.clone(), String::from), config))
}

/// The configuration to play a model with: that of its run, else the base; with overrides.
pub fn config_for(model: &str, overrides: &[String]) -> Outcome<Config> {
    match model::run_config(model)? {
        Some(config) => Ok(config.with_overrides(overrides)?),
        None => Ok(Config::load(None, overrides)?),
    }
}

/// Refuses a context that is longer than the model's.
pub fn check_context(config: &Config, found: &Found) -> Outcome {
    let (wanted, max) = (config.actor_rollout_ref.rollout.max_model_len, found.source.config.max_position_embeddings);
    if wanted > max {
        return Err(AgentError::Context { wanted, max, path: found.origin.clone() }.into());
    }
    Ok(())
}

impl Eval {
    /// Runs the command.
    pub fn run(self, threads: Option<usize>) -> Outcome {
        let arguments = Positional::split(&self.arguments, 2, "a model and a task")?;
        let (path, config) = resolve(&arguments)?;
        set_threads(threads, Some(&config))?;
        print_warnings(&config);
        let mut found = model::load(&path, config.seed)?;
        check_context(&config, &found)?;
        let val = &config.es_manager.val;
        let plan = group_plan(&config, val, "es_manager.val")?;
        let groups = validation_groups(&plan, val.seed);
        let mut episodes_file = match &self.episodes {
            Some(path) => Some(create(path)?),
            None => None,
        };
        let options = BaselineOptions {
            max_turn: config.agent_proxy.max_turn,
            max_actions_per_turn: config.agent_proxy.max_actions_per_turn,
            repeats: 4,
            seed: config.seed,
        };
        let trained = group_plan(&config, &config.es_manager.train, "es_manager.train")?;
        let trained: Vec<&str> = trained.iter().map(|(tag, _)| tag.tag.as_str()).collect();
        let validation = Validation::new(groups, &trained, &options);
        let dialogue = ChatDialogue::of_tokenizer(found.source.tokenizer.clone())?;
        let mut policy = model::policy(&mut found.source, limits(&config));
        let options = rollout_options(&config, true, EVAL_STREAM);
        let context = context_options(&config);
        let (report, episodes) = evaluate(&mut policy, &dialogue, &context, &validation, &options)?;
        if let Some((path, file)) = &mut episodes_file {
            write_episodes(path, file, &episodes)?;
        }
        if self.json {
            output::json(&as_value(&found, &config, &report));
            return Ok(());
        }
        print(&found, &config, &report, &validation);
        Ok(())
    }
}

fn create(path: &Path) -> Outcome<(PathBuf, std::io::BufWriter<std::fs::File>)> {
    // What is there and no file, such as /dev/stdout, cannot be lost.
    let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(!special).create_new(!special);
    let file = options.open(path).map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; name another file, or move this one away",
            _ => "",
        };
        Failure::input(format!("cannot write --episodes {}: {error}{advice}", path.display()))
    })?;
    Ok((path.to_path_buf(), std::io::BufWriter::new(file)))
}

fn write_episodes(path: &Path, file: &mut impl Write, episodes: &[Episode]) -> Outcome {
    let mut write = || -> std::io::Result<()> {
        for episode in episodes {
            serde_json::to_writer(&mut *file, episode)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    };
    write().map_err(|error| Failure::run(format!("cannot write --episodes {}: {error}", path.display())))
}

fn as_value(found: &Found, config: &Config, report: &EvalReport) -> Value {
    let mut out = serde_json::to_value(report).unwrap_or_default();
    out["model"] = json!(found.origin);
    out["temperature"] = json!(rollout_options(config, true, 0).temperature);
    out
}

fn print(found: &Found, config: &Config, report: &EvalReport, validation: &Validation) {
    let options = rollout_options(config, true, 0);
    output::line(format_args!("{}, temperature {}", found.origin, options.temperature));
    let mut table =
        Table::new(&["", "success", "95 % interval", "episodes", "random", "oracle", "best possible", "mean return"]);
    let mut row = |name: &str, score: &Score, baselines: &Baselines| {
        let share = |score: Option<Score>| score.map_or_else(|| "–".to_owned(), |s| percent(s.success));
        table.row([
            name.to_owned(),
            percent(score.success),
            interval(score.ci95),
            score.n.to_string(),
            share(baselines.random),
            share(baselines.oracle),
            baselines.optimum.map_or_else(|| "–".to_owned(), percent),
            format!("{:.3}", score.mean_return),
        ]);
    };
    for (tag, of_tag) in &report.by_tag {
        let name = if validation.scored.contains(tag) { tag.clone() } else { format!("{tag} (not trained on)") };
        row(&name, &of_tag.score, &of_tag.baselines);
    }
    if validation.scored.len() > 1 {
        row("together", &report.score, &report.baselines);
    }
    table.print();
    let outcomes: Vec<String> = report.outcomes.iter().map(|(name, n)| format!("{name} {n}")).collect();
    output::line(format_args!("outcomes: {}", outcomes.join(", ")));
    if options.group_size > 1 {
        output::line(format_args!(
            "the intervals take the {} episodes of an instance as independent",
            options.group_size
        ));
    }
}
