//! `ragen warm-start`: the supervised phase alone.

use std::path::PathBuf;

use clap::Args;
use ragen_starpo::config::Config;

use super::run_folder;
use super::train;
use crate::arguments::Positional;
use crate::failure::{Failure, Outcome};

/// Teach a model to read the state and to answer in the format, from demonstrations, without reinforcement learning.
///
/// The model is written to RUN-DIR/model as a Hugging Face folder, ready to be the model_path of a training run
/// with warm_start.enabled=false.
#[derive(Args)]
#[command(after_help = "Example:\n  ragen warm-start frozen_lake warm_start.target_success=0.3 --run-dir runs/warm")]
pub struct WarmStart {
    /// A built-in task or a YAML file, then overrides section.key=value.
    #[arg(value_name = "TASK|CONFIG.yaml|KEY=VALUE")]
    arguments: Vec<String>,
    /// Folder of the run. Default: trainer.local_log_dir/trainer.experiment_name-warm-start.
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Print the outcome as one JSON document; progress still goes to standard error.
    #[arg(long)]
    json: bool,
}

impl WarmStart {
    /// Runs the command.
    pub fn run(self, threads: Option<usize>) -> Outcome {
        let positional = Positional::split(&self.arguments, 1, "a task or a configuration file")?;
        let mut config = Config::load(positional.name(0), &positional.overrides)?;
        if !config.warm_start.enabled {
            return Err(Failure::input(
                "`warm_start.enabled` is false, so there is nothing to do: set it to true, or use `ragen train`",
            ));
        }
        config.trainer.total_training_steps = 0;
        config.trainer.experiment_name += "-warm-start";
        let place = run_folder::choose(&config, self.run_dir.as_deref(), false)?;
        train::run(config, place, &train::Options { threads, stop_after: None, json: self.json })
    }
}
