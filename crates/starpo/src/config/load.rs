//! Reads configurations: YAML files, built-in tasks, overrides; and writes the resolved one back.
//!
//! Layers are laid over each other, later ones win: the built-in base, the files a task names under `defaults`, the
//! task itself, overrides `section.key=value`. Every layer is checked against the known keys before it is laid on, so
//! that an error names the layer it came from. Whether values make sense together is [`Config::validate`]'s business.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Config;
use super::nearest::nearest;
use super::overlay::{Overlay, parse_yaml};

/// The base that every configuration starts from.
const BASE: &str = include_str!("../../../../configs/base.yaml");

/// The built-in tasks: name and YAML text.
const TASKS: &[(&str, &str)] = &[
    ("base", BASE),
    ("bandit", include_str!("../../../../configs/bandit.yaml")),
    ("bandit_smollm2", include_str!("../../../../configs/bandit_smollm2.yaml")),
    ("countdown", include_str!("../../../../configs/countdown.yaml")),
    ("frozen_lake", include_str!("../../../../configs/frozen_lake.yaml")),
    ("rubikscube", include_str!("../../../../configs/rubikscube.yaml")),
    ("sokoban", include_str!("../../../../configs/sokoban.yaml")),
    ("sokoban_smollm2", include_str!("../../../../configs/sokoban_smollm2.yaml")),
    ("spatial", include_str!("../../../../configs/spatial.yaml")),
    ("sudoku", include_str!("../../../../configs/sudoku.yaml")),
    ("webshop", include_str!("../../../../configs/webshop.yaml")),
];

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No task and no file of that name.
    #[error("no configuration `{name}`: it is neither a file nor one of the built-in tasks {known}{}", did_you_mean(.nearest))]
    UnknownTask {
        /// What was asked for.
        name: String,
        /// The built-in tasks.
        known: String,
        /// The built-in task that was probably meant.
        nearest: Option<String>,
    },
    /// A file cannot be read.
    #[error("cannot read the configuration {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A resolved configuration without all of its sections.
    #[error(
        "{origin} is not a whole configuration, as a run writes it: it lacks {missing}; restore the file, or write the \
         sections that are missing"
    )]
    Incomplete {
        /// The file.
        origin: String,
        /// The sections that are not there.
        missing: String,
    },
    /// Broken YAML.
    #[error("{origin}: {}{message}", line_column(.position))]
    Syntax {
        /// The file or override.
        origin: String,
        /// Line and column, from 1, where known.
        position: Option<(u64, u64)>,
        /// What is broken.
        message: String,
    },
    /// A key that does not exist.
    #[error("unknown key `{path}` in {origin}{}{}", did_you_mean(.nearest), instead(.advice))]
    UnknownKey {
        /// Full dotted path.
        path: String,
        /// The file or override.
        origin: String,
        /// The known path that was probably meant.
        nearest: Option<String>,
        /// For keys of RAGEN and veRL: what takes their place.
        advice: Option<String>,
    },
    /// A value of the wrong type, or not one of the legal names.
    #[error("`{path}` in {origin}: expected {expected}, found {found}")]
    WrongType {
        /// Full dotted path.
        path: String,
        /// The file or override.
        origin: String,
        /// What would be right.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An override without the form `section.key=value`.
    #[error("override `{text}`: {message}")]
    Override {
        /// The override.
        text: String,
        /// What is wrong with it.
        message: String,
    },
    /// A `defaults` list that cannot be followed.
    #[error("`defaults` in {origin}: {message}")]
    Defaults {
        /// The file.
        origin: String,
        /// What is wrong with it.
        message: String,
    },
    /// Values that make no sense.
    #[error("the configuration makes no sense: {}", .problems.join("; "))]
    Invalid {
        /// Every complaint, a sentence each.
        problems: Vec<String>,
    },
    /// The resolved configuration cannot be written as YAML.
    #[error("cannot write the configuration as YAML: {0}")]
    Serialize(String),
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

fn instead(advice: &Option<String>) -> String {
    advice.as_ref().map(|a| format!("; {a}")).unwrap_or_default()
}

fn line_column(position: &Option<(u64, u64)>) -> String {
    position.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default()
}

impl Config {
    /// Names of the built-in tasks.
    pub fn tasks() -> impl Iterator<Item = &'static str> {
        TASKS.iter().map(|(name, _)| *name)
    }

    /// Loads a task (a YAML file or the name of a built-in one; `None` is the base), lays overrides
    /// `section.key=value` over it and validates the result. Values of overrides are YAML.
    ///
    /// # Errors
    /// [`ConfigError`]: see its variants.
    pub fn load(task: Option<&str>, overrides: &[String]) -> Result<Self, ConfigError> {
        let config = Self::load_unvalidated(task, overrides)?;
        config.validate()?;
        Ok(config)
    }

    /// [`Config::load`] without [`Config::validate`].
    ///
    /// # Errors
    /// [`ConfigError`]: see its variants.
    pub fn load_unvalidated(task: Option<&str>, overrides: &[String]) -> Result<Self, ConfigError> {
        let mut overlay = Overlay::new()?;
        overlay.add_yaml(BASE, "the built-in base")?;
        if let Some(task) = task {
            add_task(&mut overlay, &find_task(task)?, &mut Vec::new())?;
        }
        for text in overrides {
            overlay.add_override(text)?;
        }
        overlay.finish()
    }

    /// Reads a configuration from YAML text, such as a run's `config.yaml`, over the built-in base, and validates it.
    /// `origin` names the text in errors.
    ///
    /// # Errors
    /// [`ConfigError`]: see its variants.
    pub fn from_yaml(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let mut overlay = Overlay::new()?;
        overlay.add_yaml(BASE, "the built-in base")?;
        overlay.add_yaml(text, origin)?;
        let config = overlay.finish()?;
        config.validate()?;
        Ok(config)
    }

    /// Reads a resolved configuration back, such as a run's `config.yaml`: like [`Config::from_yaml`], but every section
    /// has to be there, so that a file cut short is noticed instead of being filled up with defaults.
    ///
    /// # Errors
    /// [`ConfigError`]: see its variants.
    pub fn from_resolved_yaml(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let mut overlay = Overlay::new()?;
        let layer = parse_yaml(text, origin)?;
        let missing = overlay.sections().filter(|key| layer.get(key).is_none()).collect::<Vec<_>>().join(", ");
        if !missing.is_empty() {
            return Err(ConfigError::Incomplete { origin: origin.into(), missing });
        }
        overlay.add(layer, origin)?;
        let config = overlay.finish()?;
        config.validate()?;
        Ok(config)
    }

    /// The keys in which two configurations differ, with the value of each in YAML's (JSON's) words, in the order of the
    /// keys.
    ///
    /// # Errors
    /// [`ConfigError::Serialize`].
    pub fn differences(&self, other: &Self) -> Result<Vec<Difference>, ConfigError> {
        let value = |config: &Self| serde_json::to_value(config).map_err(|e| ConfigError::Serialize(e.to_string()));
        let mut out = Vec::new();
        differ("", &value(self)?, &value(other)?, &mut out);
        Ok(out)
    }

    /// This configuration with overrides `section.key=value` laid over it, validated: for a run that is resumed with
    /// other settings.
    ///
    /// # Errors
    /// [`ConfigError`]: see its variants.
    pub fn with_overrides(&self, overrides: &[String]) -> Result<Self, ConfigError> {
        let present = serde_json::to_value(self).map_err(|error| ConfigError::Serialize(error.to_string()))?;
        let mut overlay = Overlay::new()?;
        overlay.add(present, "the configuration")?;
        for text in overrides {
            overlay.add_override(text)?;
        }
        let config = overlay.finish()?;
        config.validate()?;
        Ok(config)
    }

    /// The whole configuration as YAML; [`Config::from_yaml`] reads it back to the same values.
    ///
    /// # Errors
    /// [`ConfigError::Serialize`], for values YAML cannot hold.
    pub fn to_yaml(&self) -> Result<String, ConfigError> {
        serde_saphyr::to_string(self).map_err(|error| ConfigError::Serialize(error.to_string()))
    }
}

/// A key that two configurations set differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Full dotted path.
    pub path: String,
    /// The value in the first.
    pub here: String,
    /// The value in the second.
    pub there: String,
}

fn differ(path: &str, here: &Value, there: &Value, out: &mut Vec<Difference>) {
    if let (Value::Object(a), Value::Object(b)) = (here, there) {
        let missing = b.iter().filter(|(key, _)| !a.contains_key(*key)).map(|(key, value)| (key, &Value::Null, value));
        for (key, a, b) in a.iter().map(|(key, a)| (key, a, b.get(key).unwrap_or(&Value::Null))).chain(missing) {
            differ(&if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, a, b, out);
        }
    } else if here != there {
        out.push(Difference { path: path.into(), here: here.to_string(), there: there.to_string() });
    }
}

/// Where a task's text comes from.
enum Task {
    BuiltIn(&'static str, &'static str),
    File(PathBuf),
}

impl Task {
    fn origin(&self) -> String {
        match self {
            Self::BuiltIn(name, _) => format!("the built-in task `{name}`"),
            Self::File(path) => path.display().to_string(),
        }
    }
}

fn built_in(name: &str) -> Option<Task> {
    TASKS.iter().find(|(task, _)| *task == name).map(|(name, text)| Task::BuiltIn(name, text))
}

/// Anything that looks like a file is one; otherwise a built-in task, then a file after all.
fn find_task(name: &str) -> Result<Task, ConfigError> {
    let path = Path::new(name);
    let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
    if !looks_like_a_file && let Some(task) = built_in(name) {
        return Ok(task);
    }
    if path.is_file() || looks_like_a_file && path.exists() {
        return Ok(Task::File(path.to_path_buf()));
    }
    let local = Path::new("configs").join(format!("{name}.yaml"));
    if !looks_like_a_file && local.is_file() {
        return Ok(Task::File(local));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
    Err(ConfigError::UnknownTask {
        name: name.into(),
        known: Config::tasks().collect::<Vec<_>>().join(", "),
        nearest: nearest(stem, Config::tasks()).map(String::from),
    })
}

/// A name under `defaults`: a file beside the one that names it, or a built-in task.
fn find_default(name: &str, beside: &Task) -> Result<Task, ConfigError> {
    if let Task::File(path) = beside {
        let folder = path.parent().unwrap_or(Path::new(""));
        for candidate in [folder.join(name), folder.join(format!("{name}.yaml"))] {
            if candidate.is_file() {
                return Ok(Task::File(candidate));
            }
        }
    }
    built_in(name).ok_or_else(|| ConfigError::Defaults {
        origin: beside.origin(),
        message: format!("`{name}` is neither a file beside it nor a built-in task"),
    })
}

/// Lays on what the task's `defaults` name, in their order, then the task itself. `open` holds the tasks that are
/// being read, to notice circles.
fn add_task(overlay: &mut Overlay, task: &Task, open: &mut Vec<String>) -> Result<(), ConfigError> {
    let origin = task.origin();
    if open.contains(&origin) {
        let message = format!("goes in a circle: {} → {origin}", open.join(" → "));
        return Err(ConfigError::Defaults { origin, message });
    }
    let mut layer = match task {
        Task::BuiltIn(_, text) => parse_yaml(text, &origin)?,
        Task::File(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| ConfigError::Read { path: path.clone(), error })?;
            parse_yaml(&text, &origin)?
        }
    };
    let defaults = layer.as_object_mut().and_then(|keys| keys.shift_remove("defaults"));
    open.push(origin.clone());
    for name in default_names(defaults, &origin)? {
        add_task(overlay, &find_default(&name, task)?, open)?;
    }
    open.pop();
    overlay.add(layer, &origin)
}

fn default_names(defaults: Option<Value>, origin: &str) -> Result<Vec<String>, ConfigError> {
    let wrong = |found: &Value| ConfigError::Defaults {
        origin: origin.into(),
        message: format!("expected a list of task names, found {found}"),
    };
    let names = match defaults {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(names)) => names,
        Some(other) => return Err(wrong(&other)),
    };
    let mut out = Vec::new();
    for name in names {
        match name {
            // Hydra's word for the file itself, which always comes last here.
            Value::String(name) if name == "_self_" => {}
            Value::String(name) => out.push(name),
            other => return Err(wrong(&other)),
        }
    }
    Ok(out)
}
