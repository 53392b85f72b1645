//! `ragen play`: an episode by hand, or watching the oracle, random actions or a model.

use std::io::BufRead;

use clap::Args;
use ragen_envs::baseline::random_action;
use ragen_envs::{DemoStyle, Environment, Split, Step};
use ragen_starpo::agent::{context_options, env_tag};
use ragen_starpo::chat_dialogue::ChatDialogue;
use ragen_starpo::config::Config;
use ragen_starpo::instances::{EnvTag, Group};
use ragen_starpo::parse::forced_opening;
use ragen_starpo::rollout::collect;
use ragen_starpo::trainer::{limits, rollout_options};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::eval::{check_context, config_for};
use crate::arguments::{Positional, set_threads};
use crate::failure::{Failure, Outcome};
use crate::model;
use crate::output;

/// Play an environment in the terminal, or watch it being played.
///
/// By hand: type action names (several separated by ||), or the letters beside them; `?` shows the rules, `quit` ends.
/// Input may be piped in.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  ragen play SimpleSokoban --seed 7\n  ragen play FrozenLake --oracle\n  ragen play \
SimpleSokoban --model runs/sokoban"
)]
pub struct Play {
    /// The environment's tag (see `ragen envs list`), then overrides section.key=value.
    #[arg(value_name = "ENV-TAG|KEY=VALUE", required = true)]
    arguments: Vec<String>,
    /// Seed of the instance.
    #[arg(long, value_name = "N", default_value_t = 123)]
    seed: u64,
    /// Watch the oracle, with its reasoning.
    #[arg(long, conflicts_with_all = ["model", "random"])]
    oracle: bool,
    #[arg(long, value_name = "PATH", conflicts_with = "random", help = "Watch a model play: ".to_owned() + model::MODEL_HELP)]
    model: Option<String>,
    /// Watch uniformly random actions.
    #[arg(long)]
    random: bool,
}

impl Play {
    /// Runs the command.
    pub fn run(self, threads: Option<usize>) -> Outcome {
        let arguments = Positional::split(&self.arguments, 1, "one environment tag")?;
        let Some(tag) = arguments.name(0) else {
            return Err(Failure::input("expected the tag of an environment; `ragen envs list` lists them"));
        };
        if let Some(model) = &self.model {
            return self.watch_model(model, tag, &arguments.overrides, threads);
        }
        let config = Config::load(None, &arguments.overrides)?;
        let tag = env_tag(&config, tag)?;
        let mut env = (tag.make)()?;
        let mut state = env.reset(self.seed, Split::Val)?;
        introduce(&*env, &tag, self.seed);
        output::line(format_args!("\n{state}"));
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut input = std::io::stdin().lock();
        let mut played = Tally::default();
        while played.actions < tag.max_actions_per_traj {
            let left = tag.max_actions_per_traj - played.actions;
            let actions = if self.oracle {
                let per_turn = config.agent_proxy.max_actions_per_turn;
                match env.demonstrate(left, per_turn, DemoStyle::Brief, &mut rng) {
                    Some(turn) => {
                        output::line(format_args!("\n{}", turn.reasoning));
                        turn.actions
                    }
                    None => Vec::new(),
                }
            } else if self.random {
                random_action(&*env, &mut rng).into_iter().collect()
            } else {
                match ask(&mut input, &*env, &tag, self.seed, left)? {
                    Some(actions) => actions,
                    None => break,
                }
            };
            if actions.is_empty() {
                output::line(format_args!("no action helps any more"));
                break;
            }
            let mut over = false;
            for action in actions.iter().take(left) {
                let step = env.step(action)?;
                over = played.take(action, &step);
                if over {
                    state = step.observation;
                    break;
                }
                state = step.observation;
            }
            output::line(format_args!("\n{state}"));
            if over {
                break;
            }
        }
        played.conclude(tag.max_actions_per_traj);
        Ok(())
    }

    fn watch_model(&self, model: &str, tag: &str, overrides: &[String], threads: Option<usize>) -> Outcome {
        let config = config_for(model, overrides)?;
        set_threads(threads, Some(&config))?;
        // A wrong tag should be told before a large model is read.
        let tag = env_tag(&config, tag)?;
        let mut found = model::load(model, config.seed)?;
        check_context(&config, &found)?;
        let dialogue = ChatDialogue::of_tokenizer(found.source.tokenizer.clone())?;
        let mut policy = model::policy(&mut found.source, limits(&config));
        let mut options = rollout_options(&config, true, self.seed);
        options.group_size = 1;
        let env = (tag.make)()?;
        introduce(&*env, &tag, self.seed);
        let max_actions = tag.max_actions_per_traj;
        let groups = [Group { tag, seed: self.seed, split: Split::Val }];
        let context = context_options(&config);
        let opening = forced_opening(context.enable_think);
        let episodes = collect(&mut policy, &dialogue, &context, &groups, &options)?;
        for episode in &episodes {
            for (i, turn) in episode.turns.iter().enumerate() {
                output::line(format_args!("\n--- turn {} ({} actions left)\n{}", i + 1, turn.actions_left, turn.state));
                output::line(format_args!("\n{opening}{}", output::printable(turn.text.trim_end())));
                let executed = turn.valid.get(..turn.executed).unwrap_or_default().join(" || ");
                let executed = if executed.is_empty() { "nothing".to_owned() } else { executed };
                output::line(format_args!(
                    "→ {executed}, reward {}{}",
                    turn.reward,
                    if turn.penalty == 0.0 { String::new() } else { format!(", format penalty {}", turn.penalty) }
                ));
            }
            output::line(format_args!(
                "\n{} after {} of {max_actions} actions, return {:.3}",
                episode.outcome.name().replace('_', " "),
                episode.num_actions(),
                episode.total_return()
            ));
        }
        Ok(())
    }
}

fn introduce(env: &dyn Environment, tag: &EnvTag, seed: u64) {
    let spec = env.spec();
    output::line(format_args!("{}, instance {seed}, at most {} actions", tag.tag, tag.max_actions_per_traj));
    output::line(format_args!("{}", tag.instruction.as_deref().unwrap_or(&spec.instruction)));
    if !spec.legend.is_empty() {
        let legend: Vec<String> = spec.legend.iter().map(|(symbol, meaning)| format!("{symbol} {meaning}")).collect();
        output::line(format_args!("{}", legend.join(", ")));
    }
}

/// The letter an action can be called by.
fn letter(i: usize) -> Option<char> {
    u8::try_from(i).ok().filter(|i| *i < 26).map(|i| char::from(b'a' + i))
}

/// The action that a word means: its name, whatever the case, or its letter.
fn meant<'a>(word: &str, actions: &'a [String]) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let by_name = actions.iter().position(|action| action.to_lowercase() == lower);
    let by_letter = || (0..actions.len()).find(|i| letter(*i).is_some_and(|l| lower.chars().eq([l])));
    by_name.or_else(by_letter).and_then(|i| actions.get(i)).map(String::as_str)
}

/// Reads the player's next actions; `None` at the end of the input or at `quit`.
fn ask(
    input: &mut dyn BufRead,
    env: &dyn Environment,
    tag: &EnvTag,
    seed: u64,
    left: usize,
) -> Outcome<Option<Vec<String>>> {
    loop {
        let actions = env.available_actions();
        // Where actions are free text, what is offered are examples.
        let free_text = env.action_lookup().is_empty();
        let choice: Vec<String> = actions
            .iter()
            .enumerate()
            .map(|(i, action)| letter(i).map_or_else(|| action.clone(), |l| format!("({l}) {action}")))
            .collect();
        let choice = match (free_text, actions.is_empty()) {
            (true, true) => "any text".to_owned(),
            (true, false) => format!("{}  or any text", choice.join("  ")),
            (false, _) => choice.join("  "),
        };
        output::text(&format!("{left} left  {choice}  ? quit > "));
        let mut line = String::new();
        let read =
            input.read_line(&mut line).map_err(|error| Failure::input(format!("cannot read the input: {error}")))?;
        let line = line.trim();
        if read == 0 || matches!(line, "quit" | "exit") {
            output::line(format_args!(""));
            return Ok(None);
        }
        match line {
            "" => continue,
            "?" => {
                introduce(env, tag, seed);
                output::line(format_args!("\n{}", env.render()));
                continue;
            }
            _ => {}
        }
        let words: Vec<&str> = line.split("||").map(str::trim).filter(|word| !word.is_empty()).collect();
        let found: Vec<Option<&str>> =
            words.iter().map(|word| meant(word, &actions).or_else(|| free_text.then_some(*word))).collect();
        match found.iter().position(Option::is_none) {
            Some(i) => output::line(format_args!("there is no action `{}`", words[i])),
            None if !found.is_empty() => {
                return Ok(Some(found.into_iter().flatten().map(String::from).collect()));
            }
            None => {}
        }
    }
}

/// How the episode has gone.
#[derive(Default)]
struct Tally {
    actions: usize,
    total: f64,
    success: bool,
    ended: bool,
}

impl Tally {
    /// Takes note of a step; true when the episode is over.
    fn take(&mut self, action: &str, step: &Step) -> bool {
        self.actions += 1;
        self.total += step.reward;
        self.success = step.info.success;
        self.ended = step.terminated || step.truncated;
        let effect = if step.info.action_is_effective { "" } else { " (nothing changed)" };
        output::line(format_args!("→ {action}, reward {}{effect}", step.reward));
        self.ended
    }

    fn conclude(&self, budget: usize) {
        let how = match (self.success, self.ended) {
            (true, _) => "solved",
            (false, true) => "failed",
            (false, false) if self.actions >= budget => "no actions left",
            (false, false) => "not finished",
        };
        output::line(format_args!("{how} after {} of {budget} actions, return {:.3}", self.actions, self.total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_by_name_and_by_letter() {
        let actions: Vec<String> = ["Up", "Down", "b"].map(String::from).to_vec();
        assert_eq!(meant("uP", &actions), Some("Up"));
        assert_eq!(meant("a", &actions), Some("Up"));
        // A name goes before a letter.
        assert_eq!(meant("b", &actions), Some("b"));
        assert_eq!((meant("d", &actions), meant("", &actions)), (None, None));
    }
}
