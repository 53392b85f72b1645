//! Where a run goes: a fresh folder, or one that holds a run to go on with.

use std::path::{Path, PathBuf};

use ragen_starpo::config::{Config, ResumeMode};
use ragen_starpo::run_dir::{RunDir, RunState};

use crate::failure::{Failure, Outcome};

/// Runs of one name that are looked through.
const MOST_RUNS: usize = 10_000;

/// Where a run goes.
#[derive(Debug, PartialEq)]
pub enum Place {
    /// A fresh folder. `automatic`: the user did not name it, so that another one does as well.
    Fresh {
        /// The folder.
        path: PathBuf,
        /// Nobody named it.
        automatic: bool,
    },
    /// A folder with a run to go on with.
    Resume(PathBuf),
}

/// The folder of a configuration's first run: `<local_log_dir>/<experiment_name>`.
fn first(config: &Config) -> PathBuf {
    Path::new(&config.trainer.local_log_dir).join(&config.trainer.experiment_name)
}

/// The folder of the `n`-th run of that name: `NAME`, `NAME-2`, `NAME-3`, …
fn numbered(first: &Path, n: usize) -> PathBuf {
    if n <= 1 {
        return first.to_path_buf();
    }
    let mut name = first.file_name().unwrap_or_default().to_os_string();
    name.push(format!("-{n}"));
    first.with_file_name(name)
}

/// A folder that a new run may be made in: it is not there yet, or there is nothing in it.
fn is_free(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The first free folder of the configuration's name.
///
/// # Errors
/// When there is none.
pub fn free(config: &Config) -> Outcome<PathBuf> {
    let first = first(config);
    (1..=MOST_RUNS).map(|n| numbered(&first, n)).find(|path| is_free(path)).ok_or_else(|| {
        Failure::input(format!("{MOST_RUNS} runs are in {} already: name a folder with --run-dir", first.display()))
    })
}

/// The latest run of the configuration's name, with its state.
fn latest(config: &Config) -> Outcome<Option<(PathBuf, RunState)>> {
    let first = first(config);
    let mut found = None;
    for n in 1..=MOST_RUNS {
        let path = numbered(&first, n);
        if is_free(&path) {
            break;
        }
        if let Some(state) = RunDir::state_of(&path)? {
            found = Some((path, state));
        }
    }
    Ok(found)
}

/// Decides where the run goes. `resume`: the user asks for it; otherwise `trainer.resume_mode` does.
///
/// # Errors
/// When there is no run to go on with although the user asks for one, or a named folder holds a run already.
pub fn choose(config: &Config, run_dir: Option<&Path>, resume: bool) -> Outcome<Place> {
    let auto = config.trainer.resume_mode == ResumeMode::Auto;
    let found = match run_dir {
        Some(path) => RunDir::state_of(path)?.map(|state| (path.to_path_buf(), state)),
        None => latest(config)?,
    };
    match (found, resume) {
        (Some((path, _)), true) => Ok(Place::Resume(path)),
        (None, true) => {
            let looked = run_dir.map_or_else(|| first(config), Path::to_path_buf);
            Err(Failure::input(format!(
                "nothing to resume: expected a run (a folder with config.yaml) at {}; name it with --run-dir, or leave \
                 --resume out to start one",
                looked.display()
            )))
        }
        (Some((path, RunState::Interrupted)), false) if auto => Ok(Place::Resume(path)),
        // A named folder is meant even if its run is over: there may be more iterations to do now.
        (Some((path, RunState::Finished)), false) if auto && run_dir.is_some() => Ok(Place::Resume(path)),
        (Some((path, state)), false) if run_dir.is_some() => Err(Failure::input(format!(
            "{} holds a run already ({state}): go on with it by --resume, or choose another --run-dir; nothing in it \
             was changed",
            path.display()
        ))),
        _ => match run_dir {
            Some(path) => Ok(Place::Fresh { path: path.to_path_buf(), automatic: false }),
            None => Ok(Place::Fresh { path: free(config)?, automatic: true }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_name_are_numbered() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::load(None, &[]).unwrap();
        config.trainer.local_log_dir = root.path().display().to_string();
        let fresh = |name: &str| Place::Fresh { path: root.path().join(name), automatic: true };
        assert_eq!(choose(&config, None, false).unwrap(), fresh("sokoban"));
        assert_eq!(choose(&config, None, true).unwrap_err().status(), 2);

        drop(RunDir::create(root.path().join("sokoban"), &config).unwrap());
        assert_eq!(choose(&config, None, false).unwrap(), fresh("sokoban-2"));
        drop(RunDir::create(root.path().join("sokoban-2"), &config).unwrap());
        assert_eq!(choose(&config, None, true).unwrap(), Place::Resume(root.path().join("sokoban-2")));
        let named = root.path().join("sokoban");
        assert_eq!(choose(&config, Some(&named), true).unwrap(), Place::Resume(named.clone()));
        let refused = choose(&config, Some(&named), false).unwrap_err();
        assert!(refused.paragraph().contains("interrupted") && refused.paragraph().contains("--resume"));

        config.trainer.resume_mode = ResumeMode::Auto;
        assert_eq!(choose(&config, None, false).unwrap(), Place::Resume(root.path().join("sokoban-2")));
        std::fs::write(root.path().join("sokoban-2/summary.json"), "{}").unwrap();
        assert_eq!(choose(&config, None, false).unwrap(), fresh("sokoban-3"));
    }
}
