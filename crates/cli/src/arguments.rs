//! Arguments that several commands share: names and `key=value` overrides in one list, the number of threads.

use ragen_starpo::config::Config;

use crate::failure::{Failure, Outcome};

/// Most threads that are taken seriously.
const MAX_THREADS: usize = 1024;

/// Positional arguments, told apart: names first, then overrides.
#[derive(Debug, Default, PartialEq)]
pub struct Positional {
    /// Arguments without `=`, at most as many as the command takes.
    pub names: Vec<String>,
    /// `section.key=value`.
    pub overrides: Vec<String>,
}

impl Positional {
    /// Tells names and overrides apart; `expected` describes what the names are. An argument that is an existing path
    /// is a name even if it holds `=`.
    ///
    /// # Errors
    /// When there are more names than the command takes.
    pub fn split(arguments: &[String], most: usize, expected: &str) -> Outcome<Self> {
        let mut out = Self::default();
        for argument in arguments {
            if argument.contains('=') && !std::path::Path::new(argument).exists() {
                out.overrides.push(argument.clone());
            } else {
                out.names.push(argument.clone());
            }
        }
        if let Some(extra) = out.names.get(most) {
            return Err(Failure::input(format!(
                "unexpected argument `{extra}`: expected {expected}, then overrides of the form section.key=value"
            )));
        }
        Ok(out)
    }

    /// The name at a position.
    pub fn name(&self, i: usize) -> Option<&str> {
        self.names.get(i).map(String::as_str)
    }
}

/// Reads a count of at least 1, for clap.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number of at least 1".to_owned()),
        Ok(n) => Ok(n),
    }
}

/// Prints what is legal in a configuration but probably not wanted.
pub fn print_warnings(config: &Config) {
    for warning in config.warnings() {
        crate::output::note(format_args!("warning: {warning}"));
    }
}

/// Sets the number of threads for numerics: the flag, else the configuration, else what `RAYON_NUM_THREADS` says, else
/// one per core. Call once, before anything is computed.
///
/// # Errors
/// For a number beyond reason, and when threads cannot be started.
pub fn set_threads(flag: Option<usize>, config: Option<&Config>) -> Outcome {
    let threads = flag.or(config.map(|c| c.trainer.threads)).unwrap_or(0);
    if threads > MAX_THREADS {
        return Err(Failure::input(format!(
            "{threads} threads were asked for (--threads or trainer.threads): at most {MAX_THREADS} make sense; 0 takes \
             one per core"
        )));
    }
    if threads == 0 {
        return Ok(());
    }
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    built.map_err(|error| Failure::run(format!("cannot start {threads} threads: {error}; use fewer")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_overrides() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let split = Positional::split(&words("sokoban seed=1 a.b=c=d"), 1, "a task").unwrap();
        assert_eq!((split.name(0), split.name(1)), (Some("sokoban"), None));
        assert_eq!(split.overrides, ["seed=1", "a.b=c=d"]);
        let error = Positional::split(&words("sokoban bandit"), 1, "a task").unwrap_err();
        assert_eq!(error.status(), 2);
        assert!(error.paragraph().contains("`bandit`") && error.paragraph().contains("a task"));
    }

    #[test]
    fn too_many_threads() {
        assert_eq!(set_threads(Some(1 << 40), None).unwrap_err().status(), 2);
    }
}
