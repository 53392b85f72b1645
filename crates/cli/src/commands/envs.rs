//! `ragen envs`: what can be played, and whether it keeps its promises.

use clap::{Args, Subcommand};
use ragen_envs::baseline::{Baseline, VAL_SEEDS, baseline};
use ragen_envs::checker::{Report, check};
use ragen_envs::{EnvError, Split, registry};
use ragen_starpo::agent::env_tag;
use ragen_starpo::config::Config;
use ragen_starpo::instances::EnvTag;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::json;

use crate::arguments::Positional;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Table, percent};

/// Seeds that the checker plays.
const CHECK_SEEDS: u64 = 32;
/// Random episodes per instance.
const REPETITIONS: usize = 4;

/// List and check environments.
#[derive(Args)]
pub struct Envs {
    #[command(subcommand)]
    command: EnvsCommand,
}

#[derive(Subcommand)]
enum EnvsCommand {
    /// List the environments by the tags that es_manager.*.env_configs.tags takes.
    List {
        /// Print JSON, with the settings of each.
        #[arg(long)]
        json: bool,
    },
    /// Try out what every environment promises (the same seed gives the same episode, malformed actions change nothing,
    /// the oracle keeps its word, …) and score random actions and the oracle on the validation instances.
    Check {
        /// Tags to check, then overrides section.key=value; default: all that need no file or server of yours.
        #[arg(value_name = "TAG|KEY=VALUE")]
        tags: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    Serve(super::envs_serve::Serve),
}

impl Envs {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.command {
            EnvsCommand::List { json } => list(json),
            EnvsCommand::Check { tags, json } => check_all(&tags, json),
            EnvsCommand::Serve(serve) => serve.run(),
        }
    }
}

fn list(as_json: bool) -> Outcome {
    let mut rows = Vec::new();
    for template in registry::templates() {
        let actions = match template.needs() {
            Some(_) => Vec::new(),
            None => registry::make(template.env_type, &template.env_config)?.spec().actions.clone(),
        };
        rows.push((template, actions));
    }
    if as_json {
        let list = rows.iter().map(|(t, actions)| {
            json!({
                "tag": t.tag,
                "env_type": t.env_type,
                "max_actions_per_traj": t.max_actions_per_traj,
                "max_tokens": t.max_tokens,
                "env_config": t.env_config,
                "env_instruction": t.env_instruction,
                "actions": actions,
                "needs": t.needs().map(|(setting, _)| setting),
            })
        });
        output::json(&list.collect());
        return Ok(());
    }
    let mut table = Table::default();
    table.row(["tag".into(), "environment".into(), "actions an episode".into(), "action names".into()]);
    for (t, actions) in &rows {
        let names = match t.needs() {
            Some((setting, what)) => format!("needs {setting}: {what}"),
            None if actions.is_empty() => "free text".into(),
            None => actions.join(" "),
        };
        table.row([t.tag.to_owned(), t.env_type.to_owned(), t.max_actions_per_traj.to_string(), names]);
    }
    table.print();
    Ok(())
}

/// What a check found.
struct Checked {
    tag: EnvTag,
    report: Result<Report, Vec<String>>,
    baseline: Result<Baseline, EnvError>,
}

fn check_one(tag: EnvTag) -> Outcome<Checked> {
    let make = || (tag.make)();
    let mut env = make()?;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let budget = tag.max_actions_per_traj;
    let baseline = baseline(&mut *env, VAL_SEEDS, Split::Val, budget, REPETITIONS, &mut rng);
    drop(env);
    let checked = check(
        || match make() {
            Ok(env) => env,
            // The checker catches it and reports it as a problem.
            Err(error) => std::panic::panic_any(error.to_string()),
        },
        0..CHECK_SEEDS,
    );
    let report = checked.map_err(|problems| problems.iter().map(ToString::to_string).collect());
    Ok(Checked { report, baseline, tag })
}

fn check_all(tags: &[String], as_json: bool) -> Outcome {
    let arguments = Positional::split(tags, usize::MAX, "tags")?;
    let config = Config::load(None, &arguments.overrides)?;
    let tags: Vec<String> = if arguments.names.is_empty() {
        // What needs a file or a server of the user's is checked when it is named.
        let ready = registry::templates().into_iter().filter(|template| template.needs().is_none());
        ready.map(|template| template.tag.to_owned()).collect()
    } else {
        arguments.names
    };
    let mut results = Vec::new();
    for tag in tags {
        results.push(check_one(env_tag(&config, &tag)?)?);
    }
    let faulty: Vec<&str> =
        results.iter().filter(|r| r.report.is_err() || r.baseline.is_err()).map(|r| r.tag.tag.as_str()).collect();
    if as_json {
        output::json(&results.iter().map(as_value).collect());
    } else {
        print(&results);
    }
    if faulty.is_empty() {
        return Ok(());
    }
    Err(Failure::run(format!("{} broke promises, listed above; mend them and check again", faulty.join(", "))))
}

fn as_value(checked: &Checked) -> serde_json::Value {
    let mut out = json!({ "tag": checked.tag.tag, "ok": checked.report.is_ok() && checked.baseline.is_ok() });
    match &checked.report {
        Ok(report) => {
            out["seeds"] = json!(report.seeds);
            out["steps"] = json!(report.steps);
            out["distinct_instances"] = json!(report.distinct_instances);
        }
        Err(problems) => out["problems"] = json!(problems),
    }
    match &checked.baseline {
        Ok(b) => {
            out["instances"] = json!(b.instances);
            out["random_success"] = json!(b.random_success);
            out["random_standard_error"] = json!(b.random_standard_error);
            out["random_return"] = json!(b.random_return);
            out["oracle_success"] = json!(b.oracle_success);
            out["oracle_return"] = json!(b.oracle_return);
            out["optimum"] = json!(b.optimum);
        }
        Err(error) => out["baseline_error"] = json!(error.to_string()),
    }
    out
}

fn print(results: &[Checked]) {
    let mut table = Table::new(&[
        "tag",
        "check",
        "instances",
        "random",
        "oracle",
        "best possible",
        "random return",
        "oracle return",
    ]);
    for r in results {
        let check = if r.report.is_ok() { "ok" } else { "BROKEN" };
        match &r.baseline {
            Ok(b) => table.row([
                r.tag.tag.clone(),
                check.to_owned(),
                b.instances.to_string(),
                format!("{} ± {:.1}", percent(b.random_success), 100.0 * b.random_standard_error),
                percent(b.oracle_success),
                b.optimum.map_or_else(|| "–".into(), percent),
                format!("{:.2}", b.random_return),
                format!("{:.2}", b.oracle_return),
            ]),
            Err(_) => table.row([r.tag.tag.clone(), "BROKEN".into()]),
        }
    }
    table.print();
    for r in results {
        for problem in r.report.as_ref().err().into_iter().flatten() {
            output::line(format_args!("{}: {problem}", r.tag.tag));
        }
        if let Err(error) = &r.baseline {
            output::line(format_args!("{}: {error}", r.tag.tag));
        }
    }
}
