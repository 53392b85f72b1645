//! `ragen new-env`: what it writes, what it refuses, and that what it writes works.

use std::path::Path;
use std::process::Command;

use super::support::{arg, ragen};

fn made(folder: &Path) {
    ragen(&["new-env", "treasure-hunt", "--path", &arg(folder)]).done();
}

#[test]
fn a_crate_with_the_new_names() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("hunt");
    made(&folder);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("name = \"treasure-hunt\""), "{manifest}");
    for dependency in ["crates/cli", "crates/envs"] {
        let path = manifest.lines().find(|line| line.contains(dependency)).unwrap().split('"').nth(1).unwrap();
        assert!(Path::new(path).join("Cargo.toml").is_file(), "{path}");
    }
    let source = read("src/main.rs");
    assert!(source.contains("pub const ENV_TYPE: &str = \"treasure_hunt\";") && source.contains("struct TreasureHunt"));
    assert!(read("config.yaml").contains("tags: [TreasureHunt]") && read("README.md").contains("# treasure-hunt"));
    // What is there is not overwritten.
    ragen(&["new-env", "other", "--path", &arg(&folder)]).refused(&["exists already", "--path"]);
}

#[test]
fn names_that_cannot_be() {
    ragen(&["new-env", "Treasure Hunt"]).refused(&["`Treasure Hunt`", "treasure-hunt"]);
    ragen(&["new-env", "sokoban"]).refused(&["taken"]);
    ragen(&["new-env", "hunt", "--ragen", "/nowhere"]).refused(&["/nowhere", "crates/envs/Cargo.toml"]);
}

/// Takes minutes, as it compiles everything once more. Run it with
/// `cargo test -p ragen --test commands new_env -- --ignored`; `RAGEN_SKELETON_TARGET` names a folder for the build that
/// is kept.
#[test]
#[ignore = "compiles everything once more"]
fn the_crate_compiles_and_passes_its_tests() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("hunt");
    made(&folder);
    let target = std::env::var_os("RAGEN_SKELETON_TARGET").map_or_else(|| dir.path().join("target"), Into::into);
    let cargo = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", &target)
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
        out.into_owned()
    };
    let tests = cargo(&["test"]);
    assert!(tests.contains("test result: ok. 5 passed"), "{tests}");
    let played = cargo(&["run", "--", "play", "TreasureHunt", "--oracle"]);
    assert!(played.contains("solved after"), "{played}");
    let small = "train config.yaml es_manager.train.env_groups=2 es_manager.val.env_groups=8 warm_start.max_steps=2 \
                 warm_start.batch_size=8 trainer.total_training_steps=1 trainer.threads=1";
    let arguments: Vec<&str> = ["run", "--"].into_iter().chain(small.split(' ').filter(|a| !a.is_empty())).collect();
    cargo(&arguments);
    assert!(folder.join("runs/treasure_hunt/summary.json").exists());
}
