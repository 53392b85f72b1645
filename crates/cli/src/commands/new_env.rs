//! `ragen new-env`: a crate with an environment in it, ready to be changed.
//!
//! Its source is `examples/custom_env.rs` with other names, so that what is written compiles and passes its tests
//! whenever the example does.

use std::path::{Path, PathBuf};

use clap::Args;
use ragen_envs::{env_types, templates};

use crate::failure::{Failure, Outcome};
use crate::output;

/// Write a crate with an environment of one's own: a working example with settings, oracle, tests and a configuration,
/// and the `ragen` command with it in it.
#[derive(Args)]
#[command(after_help = "Example:\n  ragen new-env treasure-hunt && cd treasure-hunt && cargo test")]
pub struct NewEnv {
    /// Name of the crate: lower-case letters, digits, - and _.
    #[arg(value_name = "NAME")]
    name: String,
    /// Folder to make; default: ./NAME.
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Source folder of ragen, which the crate builds on; default: the one around the present folder, else the one this
    /// binary was built from.
    #[arg(long, value_name = "DIR")]
    ragen: Option<PathBuf>,
}

/// The files: where they go, and their text with the example's names in it.
const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("../../assets/new_env/Cargo.toml.txt")),
    ("src/main.rs", include_str!("../../../../examples/custom_env.rs")),
    ("config.yaml", include_str!("../../assets/new_env/config.yaml")),
    ("README.md", include_str!("../../assets/new_env/README.md")),
    (".gitignore", "/target\n/runs\n"),
];

/// Names that crates cannot have, or that would stand in the way.
const RESERVED: &str = "abstract alloc as async await become box break const continue core crate do dyn else enum extern \
                        false final fn for gen if impl in let loop macro match mod move mut override priv proc-macro pub \
                        ragen ragen-envs ref return self serde serde-json static std struct super test trait true try \
                        type typeof unsafe unsized use virtual where while yield";

impl NewEnv {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let names = Names::of(&self.name)?;
        let ragen = source_folder(self.ragen.as_deref())?;
        let folder = self.path.unwrap_or_else(|| PathBuf::from(&self.name));
        if folder.exists() {
            return Err(Failure::input(format!("{} exists already; choose another name or --path", folder.display())));
        }
        let fail = |error: std::io::Error| Failure::run(format!("cannot write {}: {error}", folder.display()));
        std::fs::create_dir_all(folder.join("src")).map_err(fail)?;
        for (file, text) in FILES {
            std::fs::write(folder.join(file), names.put_into(text, &ragen)).map_err(fail)?;
        }
        // The same versions of everything as in ragen, where its lock file is at hand.
        if let Ok(lock) = std::fs::read(ragen.join("Cargo.lock")) {
            std::fs::write(folder.join("Cargo.lock"), lock).map_err(fail)?;
        }
        output::line(format_args!(
            "{} holds a crate with the environment `{}` (tag {}). Next:\n  cd {}\n  cargo test\n  cargo run --release -- \
             play {}",
            folder.display(),
            names.snake,
            names.camel,
            folder.display(),
            names.camel
        ));
        Ok(())
    }
}

/// A name in the spellings that are needed.
struct Names {
    /// As a crate: `treasure-hunt`.
    kebab: String,
    /// As a registry name: `treasure_hunt`.
    snake: String,
    /// As a type and tag: `TreasureHunt`.
    camel: String,
}

impl Names {
    fn of(name: &str) -> Outcome<Self> {
        let sound = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 60
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
        if !sound || name.ends_with(['-', '_']) || name.contains("--") || name.contains("__") {
            return Err(Failure::input(format!(
                "`{name}` cannot be the name of an environment: expected lower-case letters, digits and single - or _ \
                 between them, beginning with a letter, as in `treasure-hunt`"
            )));
        }
        let kebab = name.replace('_', "-");
        let snake = name.replace('-', "_");
        let camel: String = snake
            .split('_')
            .map(|word| {
                let (first, rest) = word.split_at(word.len().min(1));
                first.to_uppercase() + rest
            })
            .collect();
        let taken = env_types().contains(&&*snake) || templates().iter().any(|template| template.tag == camel);
        if taken || RESERVED.split(' ').any(|reserved| reserved == kebab) {
            return Err(Failure::input(format!("the name `{name}` is taken; choose another")));
        }
        Ok(Self { kebab, snake, camel })
    }

    /// The text of a file with these names in place of the example's.
    fn put_into(&self, text: &str, ragen: &Path) -> String {
        let path = ragen.display().to_string().replace('\\', "/");
        text.replace("my-walk", &self.kebab)
            .replace("my_walk", &self.snake)
            .replace("MyWalk", &self.camel)
            .replace("RAGEN", &path)
    }
}

/// Where the source of ragen is.
fn source_folder(given: Option<&Path>) -> Outcome<PathBuf> {
    let is_source = |folder: &Path| folder.join("crates/envs/Cargo.toml").is_file();
    let absolute = |folder: &Path| {
        folder.canonicalize().map_err(|error| Failure::input(format!("cannot read {}: {error}", folder.display())))
    };
    if let Some(given) = given {
        if is_source(given) {
            return absolute(given);
        }
        return Err(Failure::input(format!(
            "{} is not the source folder of ragen: expected crates/envs/Cargo.toml in it",
            given.display()
        )));
    }
    let here = std::env::current_dir().map_err(Failure::run)?;
    if let Some(around) = here.ancestors().find(|folder| is_source(folder)) {
        return absolute(around);
    }
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if is_source(&built_from) {
        return absolute(&built_from);
    }
    Err(Failure::input(
        "the source of ragen was not found: the new crate builds on it, so say where it is with --ragen, or run this \
         within it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_all_spellings() {
        let names = Names::of("treasure-hunt_2").unwrap();
        assert_eq!(
            (&*names.kebab, &*names.snake, &*names.camel),
            ("treasure-hunt-2", "treasure_hunt_2", "TreasureHunt2")
        );
        for name in [
            "",
            "Hunt",
            "2hunt",
            "-hunt",
            "hunt-",
            "hunt--two",
            "hunt two",
            "../hunt",
            "sokoban",
            "ragen",
            "test",
            "match",
        ] {
            assert!(Names::of(name).is_err(), "{name}");
        }
        assert!(Names::of("frozen-lake").is_err() && Names::of(&"a".repeat(61)).is_err());
    }

    #[test]
    fn nothing_of_the_example_s_names_is_left() {
        let names = Names::of("treasure-hunt").unwrap();
        for (file, text) in FILES {
            let text = names.put_into(text, Path::new("/src/of/it"));
            for old in ["my-walk", "my_walk", "MyWalk", "RAGEN", "custom_env.rs"] {
                assert!(!text.contains(old), "{old} in {file}");
            }
        }
    }
}
