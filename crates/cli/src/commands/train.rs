//! `ragen train`: a run from the beginning or from where it stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use ragen_starpo::config::Config;
use ragen_starpo::evaluate::{Score, wilson95};
use ragen_starpo::run_dir::{RunDir, RunDirError};
use ragen_starpo::trainer::{Event, RunEnd, Summary, TrainError, Trainer};
use serde_json::json;

use super::progress::RunProgress;
use super::run_folder::{self, Place};
use crate::arguments::{Positional, print_warnings, set_threads};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Table, duration, interval, percent};

/// Train an agent: warm start from demonstrations, then reinforcement learning on its own episodes.
///
/// Shows the return, success rate, entropy and gradient norm of every iteration, and at the end the success rate on
/// fixed validation instances before and after, beside random actions and the oracle. Everything is written to the run
/// folder: config.yaml, metrics.jsonl, rollouts/, tensorboard/, checkpoints/, model/, summary.json.
///
/// Ctrl-C finishes the present step, writes a checkpoint and says how to go on; a second one kills at once (status 130).
/// A resumed run ends at the same weights, to the bit, as one that was never stopped.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  ragen train                                    6x6 Sokoban, tiny model, no download\n  \
ragen train bandit seed=1 trainer.total_training_steps=20\n  ragen train my.yaml --run-dir runs/mine\n  \
ragen train --resume --run-dir runs/mine trainer.total_training_steps=400"
)]
pub struct Train {
    /// A built-in task (bandit, frozen_lake, sokoban, …) or a YAML file, then overrides section.key=value.
    #[arg(value_name = "TASK|CONFIG.yaml|KEY=VALUE")]
    arguments: Vec<String>,
    /// Folder of the run. Default: trainer.local_log_dir/trainer.experiment_name, with -2, -3, … appended when
    /// there is a run already.
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Go on with the run in the run folder (by default the latest of that name) from its latest checkpoint, with the
    /// configuration it was started with and these overrides on top.
    #[arg(long)]
    resume: bool,
    /// Stop in good order after iteration N, as Ctrl-C would; 0: after the warm start.
    #[arg(long, value_name = "N")]
    stop_after: Option<u64>,
    /// Print the outcome as one JSON document; progress still goes to standard error.
    #[arg(long)]
    json: bool,
}

impl Train {
    /// Runs the command.
    pub fn run(self, threads: Option<usize>) -> Outcome {
        let positional = Positional::split(&self.arguments, 1, "a task or a configuration file")?;
        // A run to go on with has its own configuration, to which the overrides may fit although they do not fit here.
        let config = Config::load_unvalidated(positional.name(0), &positional.overrides)?;
        let place = run_folder::choose(&config, self.run_dir.as_deref(), self.resume)?;
        let config = match &place {
            Place::Resume(path) => {
                let resumed = RunDir::view(path)?.read_config()?.with_overrides(&positional.overrides)?;
                if let Some(name) = positional.name(0) {
                    compare_with_named(name, &config, &resumed, path)?;
                }
                resumed
            }
            Place::Fresh { .. } => {
                config.validate()?;
                config
            }
        };
        run(config, place, &Options { threads, stop_after: self.stop_after, json: self.json })
    }
}

/// A run goes on with its own configuration; one that is named beside it only says which run is meant. Another task's is
/// a mistake, and differences in single keys are told.
fn compare_with_named(name: &str, named: &Config, run: &Config, path: &Path) -> Outcome {
    let tags = |config: &Config| config.es_manager.train.env_configs.tags.clone();
    if tags(named) != tags(run) {
        return Err(Failure::input(format!(
            "`{name}` plays {}, but the run in {} plays {}: leave `{name}` out to go on with this run as it was begun, or \
             name another folder with --run-dir",
            tags(named).join(", "),
            path.display(),
            tags(run).join(", ")
        )));
    }
    let differences = run.differences(named)?;
    if !differences.is_empty() {
        let keys: Vec<&str> = differences.iter().map(|difference| difference.path.as_str()).collect();
        output::note(format_args!(
            "note: the run goes on with its own settings; those of `{name}` differ in {}. What is to change has to be \
             given as KEY=VALUE",
            keys.join(", ")
        ));
    }
    Ok(())
}

/// How a run is run, apart from its configuration.
pub struct Options {
    /// The flag `--threads`.
    pub threads: Option<usize>,
    /// Stop in good order after this iteration.
    pub stop_after: Option<u64>,
    /// Print JSON.
    pub json: bool,
}

/// Sets a run up, runs it, prints its outcome.
pub fn run(config: Config, place: Place, options: &Options) -> Outcome {
    set_threads(options.threads, Some(&config))?;
    print_warnings(&config);
    let started = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_interrupts(&stop)?;
    let mut trainer = set_up(config, place, &stop)?;
    if options.stop_after.is_some_and(|last| trainer.iterations_done() >= last.max(1)) {
        stop.store(true, Ordering::Relaxed);
    }
    let folder = trainer.run_dir().path().to_path_buf();
    let mut progress = RunProgress::new(trainer.config());
    let mut before = None;
    let end = trainer.train(&mut |event| {
        progress.observe(&event);
        if let Event::Evaluated { iteration: 0, report } = &event {
            before.get_or_insert(report.score);
        }
        let done = match event {
            Event::Iteration { iteration, .. } | Event::Evaluated { iteration, .. } => Some(iteration),
            _ => None,
        };
        if done.zip(options.stop_after).is_some_and(|(done, last)| done >= last) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    progress.finish();
    let end = end.map_err(|error| resumable(error.into(), &folder))?;
    let seconds = started.elapsed().as_secs_f64();
    match end {
        RunEnd::Finished(summary) if options.json => {
            let mut out = serde_json::to_value(&*summary).unwrap_or_default();
            out["run_dir"] = json!(folder);
            out["status"] = json!("finished");
            out["seconds_in_process"] = json!(seconds);
            output::json(&out);
        }
        RunEnd::Finished(summary) => {
            print_summary(&summary, before, &trainer.config().es_manager.train.env_configs.tags, &folder);
        }
        RunEnd::Interrupted { iteration } if options.json => {
            output::json(&json!({
                "status": "interrupted",
                "iterations": iteration,
                "run_dir": folder,
                "seconds_in_process": seconds,
            }));
        }
        RunEnd::Interrupted { iteration } => output::line(format_args!(
            "interrupted {}; the checkpoint is written. Go on with\n    {}",
            if iteration > 0 { format!("after iteration {iteration}") } else { "before the first iteration".into() },
            resume_command(&folder)
        )),
    }
    Ok(())
}

fn set_up(config: Config, place: Place, stop: &Arc<AtomicBool>) -> Outcome<Trainer> {
    match place {
        Place::Resume(path) => {
            output::note(format_args!("resuming the run in {}", path.display()));
            Ok(Trainer::resume(config, &path, Arc::clone(stop))?)
        }
        Place::Fresh { mut path, automatic } => loop {
            match Trainer::new(config.clone(), &path, Arc::clone(stop)) {
                // Another process was faster to take the folder.
                Err(TrainError::RunDir(
                    RunDirError::Exists { .. } | RunDirError::Running { .. } | RunDirError::Occupied { .. },
                )) if automatic => {
                    let next = run_folder::free(&config)?;
                    if next == path {
                        return Err(Failure::run(format!("{} cannot be used as a run folder", path.display())));
                    }
                    path = next;
                }
                Err(error) => return Err(unusable_folder(error)),
                Ok(trainer) => {
                    output::note(format_args!("the run goes to {}", path.display()));
                    return Ok(trainer);
                }
            }
        },
    }
}

/// While a run is being set up, a folder that cannot be made is the user's choice rather than a fault.
fn unusable_folder(error: TrainError) -> Failure {
    use std::io::ErrorKind::{
        AlreadyExists, InvalidInput, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    let chosen = [AlreadyExists, InvalidInput, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem];
    match &error {
        TrainError::RunDir(RunDirError::Io { error: cause, .. }) if chosen.contains(&cause.kind()) => {
            Failure::input(format!("{error}; name a folder that can be made with --run-dir"))
        }
        _ => error.into(),
    }
}

/// The first interrupt asks for a stop after the present step, the second one kills.
fn listen_for_interrupts(stop: &Arc<AtomicBool>) -> Outcome {
    let asked = AtomicBool::new(false);
    let stop = Arc::clone(stop);
    let set = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        stop.store(true, Ordering::Relaxed);
        output::note(format_args!(
            "\ninterrupted: finishing the present step and writing a checkpoint; once more kills at once"
        ));
    });
    set.map_err(|error| Failure::run(format!("cannot listen for Ctrl-C: {error}")))
}

fn resume_command(folder: &Path) -> String {
    format!("ragen train --resume --run-dir {}", folder.display())
}

/// Adds to the failure of a run what is left of it.
fn resumable(failure: Failure, folder: &Path) -> Failure {
    match failure {
        Failure::Run(text) => Failure::Run(format!(
            "{text}; what was written to {} stays and can be resumed with `{}`",
            folder.display(),
            resume_command(folder)
        )),
        input @ Failure::Input(_) => input,
    }
}

/// `before`: the score before the first iteration, which the summary holds only after a warm start. `trained`: the tags
/// that training plays.
fn print_summary(summary: &Summary, before: Option<Score>, trained: &[String], folder: &Path) {
    let success = &summary.success;
    let mut table = Table::new(&["validation", "success", "95 % interval", "episodes"]);
    let mut row = |name: &str, share: Option<f64>, n: Option<usize>| {
        if let Some((share, n)) = share.zip(n) {
            let ci = wilson95((share * n as f64).round() as usize, n);
            table.row([name.to_owned(), percent(share), interval(ci), n.to_string()]);
        }
    };
    let n = Some(success.n);
    row("random", success.random, success.random_n);
    match success.warm_start {
        Some(share) => row("after the warm start", Some(share), n),
        None => row("before training", before.map(|score| score.success), before.map(|score| score.n)),
    }
    if summary.iterations > 0 {
        row("after training", Some(success.r#final), n);
    }
    row("oracle", success.oracle, success.oracle_n);
    for (tag, other) in &summary.success_by_tag {
        let name = if trained.contains(tag) { tag.clone() } else { format!("{tag} (not trained on)") };
        row(&name, Some(other.r#final), Some(other.n));
    }
    output::line(format_args!(""));
    table.print();
    output::line(format_args!(""));
    let mut facts = Table::default();
    let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
    fact("iterations", format!("{} after {} warm-start steps", summary.iterations, summary.warm_start_steps));
    if let Some(reason) = summary.ended_early {
        fact("ended early", reason.words().to_owned());
    }
    let guard = &summary.guard;
    if guard.warnings > 0 {
        fact(
            "guard",
            format!(
                "{} warnings, {} interventions, {} of them rollbacks; see events.jsonl",
                guard.warnings, guard.interventions, guard.rollbacks
            ),
        );
    }
    fact("wall time", duration(summary.seconds));
    fact(
        "tokens/s",
        format!("{:.0} sampled, {:.0} trained", summary.generated_tokens_per_second, summary.trained_tokens_per_second),
    );
    fact("mismatch", format!("{:.1e} largest |recorded − recomputed| log-probability", summary.mismatch_max));
    fact("weights", format!("sha256 {}", summary.weights_sha256));
    fact("run folder", folder.display().to_string());
    for line in facts.left_lines() {
        output::line(format_args!("{line}"));
    }
}
