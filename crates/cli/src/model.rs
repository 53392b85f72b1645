//! Models as users name them: `tiny`, a Hugging Face folder, a GGUF file, a run folder, a checkpoint of a run.

use std::path::{Path, PathBuf};

use ragen_model::trainable::{Limits, Trainable};
use ragen_model::transformer::Transformer;
use ragen_starpo::agent::{AgentError, ModelSource};
use ragen_starpo::config::Config;
use ragen_starpo::local_policy::LocalPolicy;
use ragen_starpo::policy::Policy;
use ragen_starpo::run_dir::RunDir;

use crate::failure::{Failure, Outcome};

/// What a model can be, for help texts.
pub const MODEL_HELP: &str = "`tiny` (the built-in model, random weights), a Hugging Face folder, a GGUF file, a run \
                              folder of `ragen train`, or one of its checkpoints";

/// File of the weights within a checkpoint.
const STATE: &str = "state.safetensors";

/// Where a model comes from.
#[derive(Debug, PartialEq)]
enum Place {
    /// `tiny`, a folder or a file in a public format.
    Plain(String),
    /// The final model of a run.
    FinalModel { run: PathBuf, model: PathBuf },
    /// A checkpoint of a run.
    Checkpoint { run: PathBuf, actor: PathBuf },
}

/// A model with where it comes from.
pub struct Found {
    /// The model.
    pub source: ModelSource,
    /// The folder or file that was read, for people.
    pub origin: String,
}

/// Finds out what `path` is.
fn locate(path: &str) -> Outcome<Place> {
    let folder = Path::new(path);
    if folder.join("config.yaml").is_file() {
        let run = folder.to_path_buf();
        let model = folder.join("model");
        if model.join("config.json").is_file() {
            return Ok(Place::FinalModel { run, model });
        }
        let Some(checkpoint) = RunDir::view(folder)?.latest_checkpoint()? else {
            return Err(Failure::input(format!(
                "the run in {path} has neither a final model (model/) nor a checkpoint yet: let it run on"
            )));
        };
        return Ok(Place::Checkpoint { run, actor: checkpoint.path.join("actor") });
    }
    let actor = if folder.join(STATE).is_file() { folder.to_path_buf() } else { folder.join("actor") };
    if actor.join(STATE).is_file() {
        let absolute = std::path::absolute(&actor).unwrap_or_else(|_| actor.clone());
        let run = absolute.ancestors().find(|dir| dir.join("config.yaml").is_file());
        let Some(run) = run else {
            return Err(Failure::input(format!(
                "{path} is a checkpoint, which is read together with the config.yaml of its run: expected one in a \
                 folder above it"
            )));
        };
        return Ok(Place::Checkpoint { run: run.to_path_buf(), actor });
    }
    Ok(Place::Plain(path.to_owned()))
}

/// The configuration of the run that a model comes from, if it comes from one. Reads no weights.
///
/// # Errors
/// As [`load`], as far as the run is concerned.
pub fn run_config(path: &str) -> Outcome<Option<Config>> {
    match locate(path)? {
        Place::Plain(_) => Ok(None),
        Place::FinalModel { run, .. } | Place::Checkpoint { run, .. } => Ok(Some(RunDir::view(run)?.read_config()?)),
    }
}

/// Reads a model. `seed` makes the weights of `tiny`.
///
/// # Errors
/// Wrong input: nothing there, damaged files, an architecture that is not supported.
pub fn load(path: &str, seed: u64) -> Outcome<Found> {
    match locate(path)? {
        Place::Plain(path) => match ModelSource::load(&path, seed) {
            Ok(source) => Ok(Found { source, origin: path }),
            // The library speaks of the setting; here the model may be an argument.
            Err(AgentError::NoModel(path)) => Err(Failure::input(format!(
                "no model at `{path}`: expected {MODEL_HELP}; scripts/fetch_smollm2.sh fetches a real one"
            ))),
            Err(error) => Err(error.into()),
        },
        Place::FinalModel { model, .. } => {
            let origin = model.display().to_string();
            let source = ModelSource::load(&origin, seed)?;
            Ok(Found { source, origin })
        }
        Place::Checkpoint { run, actor } => {
            let config = RunDir::view(run)?.read_config()?;
            let mut source = ModelSource::load(&config.model_path, config.seed)?;
            let mut policy = policy(&mut source, Limits::default());
            policy.load(&actor)?;
            source.params = policy.model().params().to_vec();
            Ok(Found { source, origin: actor.display().to_string() })
        }
    }
}

/// A policy with the weights of `source`, which are moved out of it.
pub fn policy(source: &mut ModelSource, limits: Limits) -> LocalPolicy {
    let params = std::mem::take(&mut source.params);
    LocalPolicy::new(Trainable::new(Transformer::new(source.config.clone(), false), params, limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let name = |path: &Path| path.display().to_string();
        assert_eq!(locate("tiny").unwrap(), Place::Plain("tiny".into()));
        let config = Config::load(None, &[]).unwrap();
        let run = RunDir::create(path("run"), &config).unwrap();
        assert!(locate(&name(&path("run"))).unwrap_err().paragraph().contains("nor a checkpoint"));
        let actor = |dir: &Path| -> std::io::Result<()> {
            std::fs::create_dir_all(dir.join("actor"))?;
            std::fs::write(dir.join("actor").join(STATE), "")
        };
        let checkpoint = run.write_checkpoint(3, 1, actor).unwrap().path;
        let expected = Place::Checkpoint { run: path("run"), actor: checkpoint.join("actor") };
        for place in [path("run"), checkpoint.clone(), checkpoint.join("actor")] {
            assert_eq!(locate(&name(&place)).unwrap(), expected);
        }
        std::fs::create_dir_all(path("run/model")).unwrap();
        std::fs::write(path("run/model/config.json"), "{}").unwrap();
        assert_eq!(
            locate(&name(&path("run"))).unwrap(),
            Place::FinalModel { run: path("run"), model: path("run/model") }
        );
    }
}
