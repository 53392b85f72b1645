//! `ragen study`: arms × seeds from one file, each run a process of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use ragen_starpo::run_dir::atomic::write_atomic;
use ragen_starpo::run_dir::{RunDir, RunState};
use ragen_starpo::study::results::{results, table};
use ragen_starpo::study::{Study as StudyFile, StudyRun, plot};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{self, duration};

/// Name of the file that says what a folder of the study was made with.
const MADE_WITH: &str = "study_arguments.txt";

/// Run a study: every arm with every seed, from one file, and compare them.
///
/// Runs one after another or several at once (`parallel` in the file, or --parallel), each a process of its own with its
/// own run folder. What is finished is skipped and what was interrupted goes on, so that the same command may be given
/// again at any time. At the end, and with --report at any time, results.md, results.json and curves.svg are written to
/// the study's folder.
#[derive(Args)]
#[command(after_help = "Examples:\n  ragen study configs/studies/echo_trap.yaml\n  \
ragen study my_study.yaml --parallel 2 --out runs/studies/mine\n  ragen study my_study.yaml --report")]
pub struct Study {
    /// The study: name, task, seeds, arms.
    #[arg(value_name = "FILE.yaml")]
    file: PathBuf,
    /// Folder of the study. Default: runs/studies/NAME.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at a time; default: what the file says.
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Start nothing: write the report of what is there.
    #[arg(long)]
    report: bool,
    /// Print what would be run, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Print the results as one JSON document.
    #[arg(long)]
    json: bool,
}

/// One process that has to come to its end.
struct Job {
    /// What it is, for the user.
    name: String,
    /// Its run folder.
    path: PathBuf,
    /// `train` or `warm-start`.
    command: &'static str,
    /// Task and overrides.
    arguments: Vec<String>,
    threads: usize,
}

impl Study {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let study = StudyFile::load(&self.file).map_err(Failure::input)?;
        let parallel = self.parallel.unwrap_or(study.parallel);
        if parallel == 0 {
            return Err(Failure::input("--parallel 0: expected at least 1 run at a time"));
        }
        let folder = self.out.clone().unwrap_or_else(|| Path::new("runs/studies").join(&study.name));
        // Children are told their folders by name; a relative one would do, but not after someone changes directories.
        let runs = study.runs(&folder);
        if self.dry_run {
            for job in warm_jobs(&study, &folder).iter().chain(&run_jobs(&study, &runs)) {
                output::line(format_args!("ragen {} {}", job.command, job.command_line().join(" ")));
            }
            return Ok(());
        }
        let mut outcome = Ok(true);
        if !self.report {
            std::fs::create_dir_all(&folder).map_err(|e| Failure::input(format!("{}: {e}", folder.display())))?;
            let stop = Arc::new(AtomicBool::new(false));
            listen_for_interrupts(&stop)?;
            outcome = run_all(warm_jobs(&study, &folder), parallel, &stop)
                .and_then(|whole| if whole { run_all(run_jobs(&study, &runs), parallel, &stop) } else { Ok(false) });
        }
        self.write_report(&study, &runs, &folder)?;
        if !outcome? {
            output::line(format_args!("interrupted; the same command goes on"));
        }
        Ok(())
    }

    fn write_report(&self, study: &StudyFile, runs: &[StudyRun], folder: &Path) -> Outcome {
        let arms = results(study, runs)?;
        if arms.iter().all(|arm| arm.runs.is_empty()) {
            return match self.report {
                true => Err(Failure::input(format!("{} holds no run of this study yet", folder.display()))),
                false => Ok(()),
            };
        }
        let text = table(study, &arms);
        let all = json!({ "study": study, "arms": arms });
        write_atomic(&folder.join("results.md"), text.as_bytes())?;
        write_atomic(&folder.join("results.json"), all.to_string().as_bytes())?;
        plot::curves(study, &arms, &folder.join("curves.svg")).map_err(Failure::run)?;
        if self.json {
            output::json(&all);
        } else {
            output::line(format_args!("{text}"));
            output::line(format_args!("results.md, results.json and curves.svg are in {}", folder.display()));
        }
        Ok(())
    }
}

fn warm_jobs(study: &StudyFile, folder: &Path) -> Vec<Job> {
    let job = |warm: ragen_starpo::study::SharedWarmStart| Job {
        name: format!("warm start {}", warm.path.file_name().unwrap_or_default().to_string_lossy()),
        path: warm.path,
        command: "warm-start",
        arguments: warm.arguments,
        threads: study.threads,
    };
    study.warm_starts(folder).into_iter().map(job).collect()
}

fn run_jobs(study: &StudyFile, runs: &[StudyRun]) -> Vec<Job> {
    let job = |run: &StudyRun| Job {
        name: format!("{}, seed {}", study.arms[run.arm].name, run.seed),
        path: run.path.clone(),
        command: "train",
        arguments: run.arguments.clone(),
        threads: study.threads,
    };
    runs.iter().map(job).collect()
}

impl Job {
    fn command_line(&self) -> Vec<String> {
        let mut line = self.arguments.clone();
        line.extend(["--run-dir".into(), self.path.display().to_string()]);
        if self.threads > 0 {
            line.extend(["--threads".into(), self.threads.to_string()]);
        }
        line
    }

    /// Where the process's own words go.
    fn log(&self) -> PathBuf {
        self.path.with_extension("log")
    }

    fn made_with(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(".");
        name.push(MADE_WITH);
        self.path.with_file_name(name)
    }

    /// Starts the process, or goes on with what it left; `None` when there is nothing left to do.
    fn start(&self) -> Outcome<Option<Child>> {
        let state = RunDir::state_of(&self.path)?;
        let arguments = self.arguments.join("\n");
        let made_with = std::fs::read_to_string(self.made_with()).ok();
        if state.is_some() && made_with.is_some_and(|made| made != arguments) {
            return Err(Failure::input(format!(
                "{} was made with other settings than the study has now: name another folder with --out, or remove it",
                self.path.display()
            )));
        }
        let mut line = self.command_line();
        match state {
            Some(RunState::Finished) => return Ok(None),
            Some(RunState::Running) => {
                return Err(Failure::run(format!(
                    "{} is being written by another process: wait for it, then give the command again",
                    self.path.display()
                )));
            }
            // A warm start has nothing to go on with but a run like any other.
            Some(RunState::Interrupted) => {
                line = vec!["--resume".into(), "--run-dir".into(), self.path.display().to_string()];
                if self.threads > 0 {
                    line.extend(["--threads".into(), self.threads.to_string()]);
                }
            }
            None => {}
        }
        let command = if state.is_some() { "train" } else { self.command };
        let fail = |what: &Path, e: std::io::Error| Failure::run(format!("{}: {e}", what.display()));
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| fail(parent, e))?;
        }
        write_atomic(&self.made_with(), arguments.as_bytes())?;
        let log = File::options().create(true).append(true).open(self.log()).map_err(|e| fail(&self.log(), e))?;
        let binary = std::env::current_exe().map_err(|e| Failure::run(format!("cannot find this program: {e}")))?;
        let child = Command::new(binary)
            .arg(command)
            .args(line)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone().map_err(|e| fail(&self.log(), e))?))
            .stderr(Stdio::from(log))
            .spawn();
        child.map(Some).map_err(|e| Failure::run(format!("cannot start a run: {e}")))
    }
}

/// Runs all jobs, at most `parallel` at a time. False: asked to stop before the end. A job that fails does not keep the
/// others from running; its failure is reported at the end.
fn run_all(jobs: Vec<Job>, parallel: usize, stop: &AtomicBool) -> Outcome<bool> {
    let total = jobs.len();
    let mut waiting: VecDeque<Job> = jobs.into();
    let mut running: Vec<(Job, Child, Instant)> = Vec::new();
    let (mut done, mut failed, mut interrupted) = (0usize, Vec::new(), false);
    loop {
        while running.len() < parallel && !stop.load(Ordering::Relaxed) {
            let Some(job) = waiting.pop_front() else { break };
            match job.start() {
                Ok(None) => {
                    done += 1;
                    output::note(format_args!("[{done}/{total}] {}: finished before", job.name));
                }
                Ok(Some(child)) => {
                    output::note(format_args!("{}: started, see {}", job.name, job.log().display()));
                    running.push((job, child, Instant::now()));
                }
                Err(error) => failed.push(format!("{}: {}", job.name, error.paragraph())),
            }
        }
        if running.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        let mut still = Vec::new();
        for (job, mut child, since) in running {
            match child.try_wait() {
                Ok(None) => still.push((job, child, since)),
                Ok(Some(status)) if status.success() => match RunDir::state_of(&job.path)? {
                    Some(RunState::Finished) => {
                        done += 1;
                        let took = duration(since.elapsed().as_secs_f64());
                        output::note(format_args!("[{done}/{total}] {}: finished in {took}", job.name));
                    }
                    _ => interrupted = true,
                },
                Ok(Some(_)) if stop.load(Ordering::Relaxed) => interrupted = true,
                Ok(Some(status)) => failed.push(format!("{} ({status}, see {})", job.name, job.log().display())),
                Err(error) => failed.push(format!("{}: {error}", job.name)),
            }
        }
        running = still;
    }
    if !failed.is_empty() {
        return Err(Failure::run(format!(
            "{} of {total} did not come to their end: {}; the others are done, and the same command tries again",
            failed.len(),
            failed.join("; ")
        )));
    }
    Ok(!interrupted && waiting.is_empty())
}

/// The runs get the terminal's interrupt as well and end in good order; here nothing new is started after it.
fn listen_for_interrupts(stop: &Arc<AtomicBool>) -> Outcome {
    let stop = Arc::clone(stop);
    let set = ctrlc::set_handler(move || {
        if stop.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        output::note(format_args!("\ninterrupted: waiting for the present runs to write their checkpoints"));
    });
    set.map_err(|error| Failure::run(format!("cannot listen for Ctrl-C: {error}")))
}
