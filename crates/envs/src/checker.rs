//! The environment checker: what every environment promises, tried out.
//!
//! It plays seeded random episodes and reports each broken promise with the seed, so that an environment written in an
//! afternoon is as dependable as a built-in one.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::rng::{Pcg64, splitmix64};
use crate::{DemoStyle, EnvError, Environment, Split, Step};

/// Actions an episode of the checker may take.
const MAX_ACTIONS: usize = 30;

/// What was tried, when nothing was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Seeds tried.
    pub seeds: usize,
    /// Steps taken.
    pub steps: usize,
    /// Different first observations.
    pub distinct_instances: usize,
    /// Episodes that came to their own end; only these tell whether a step after the end is refused.
    pub ended: usize,
    /// Instances on which the oracle was checked against a known optimum.
    pub oracle_checked: usize,
    /// Mean optimum of those, as a success rate.
    pub optimum: f64,
    /// The oracle's success rate on those.
    pub oracle_success: f64,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule} (seed {}): {detail}", seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string()))]
pub struct Problem {
    /// The promise, in a few words.
    pub rule: &'static str,
    /// The instance it was broken on, if on one.
    pub seed: Option<u64>,
    /// What was expected and what was found.
    pub detail: String,
}

/// Checks an environment on the instances of these seeds (some dozens find most faults; at least two are needed).
///
/// # Errors
/// All the problems found, at most one of a kind a seed.
pub fn check(
    make: impl Fn() -> Box<dyn Environment>,
    seeds: impl IntoIterator<Item = u64>,
) -> Result<Report, Vec<Problem>> {
    let mut checker = Checker { make, report: Report::default(), problems: Vec::new(), renders: HashMap::new() };
    let mut first = HashSet::new();
    checker.guarded("step before reset is refused", None, Checker::before_reset);
    for seed in seeds {
        checker.report.seeds += 1;
        checker.guarded("reset gives an instance", Some(seed), |checker| {
            let mut env = (checker.make)();
            first.insert(env.reset(seed, Split::Train).map_err(|error| error.to_string())?);
            Ok(())
        });
        checker.guarded("same seed, same episode", Some(seed), |checker| checker.determinism(seed));
        checker.guarded("reset starts afresh", Some(seed), |checker| checker.fresh_reset(seed));
        checker.guarded("malformed actions change nothing", Some(seed), |checker| checker.malformed(seed));
        checker.guarded("actions are matched without regard to case", Some(seed), |checker| checker.case(seed));
        checker.guarded("demonstrations are playable", Some(seed), |checker| checker.demonstrations(seed));
        checker.guarded("the oracle keeps its promise", Some(seed), |checker| checker.oracle(seed));
    }
    checker.report.distinct_instances = first.len();
    if checker.report.seeds > 1 && first.len() < 2 {
        checker.problem("different seeds differ", None, "every seed gave the same first observation".to_owned());
    }
    checker.compare_oracle();
    if checker.problems.is_empty() { Ok(checker.report) } else { Err(checker.problems) }
}

/// Text that no environment should stumble over.
#[must_use]
pub fn malformed_actions() -> Vec<String> {
    let mut actions: Vec<String> = [
        "",
        " ",
        "\n",
        "\0",
        "\u{1b}[2J",
        "\u{feff}",
        "||",
        "Up || Down",
        "Upp",
        "U p",
        "0",
        "-1",
        "5",
        "99999999999999999999",
        "NaN",
        "<answer>Up</answer>",
        "<|im_end|>",
        "🙂",
        "ÜP",
        "√",
        "a\u{301}",
        "{}",
        "[1]",
        "search[",
        "click[]",
        "search[]",
        "finish[",
        "place 1 at row 0 col 0",
        "%s%n",
        "../../etc/passwd",
        "1/0",
        "9**9**9**9",
        "((((((((((",
        "\u{202e}pU",
    ]
    .iter()
    .map(|&action| action.to_owned())
    .collect();
    actions.push("Up ".repeat(20_000));
    actions.push("(".repeat(100_000));
    actions.push("𝕏".repeat(10_000));
    actions
}

struct Checker<F> {
    make: F,
    report: Report,
    problems: Vec<Problem>,
    /// What states of a key looked like.
    renders: HashMap<String, String>,
}

impl<F: Fn() -> Box<dyn Environment>> Checker<F> {
    fn problem(&mut self, rule: &'static str, seed: Option<u64>, detail: String) {
        self.problems.push(Problem { rule, seed, detail });
    }

    /// Runs a check and turns its error, or its panic, into a problem.
    fn guarded(&mut self, rule: &'static str, seed: Option<u64>, check: impl FnOnce(&mut Self) -> Result<(), String>) {
        match catch_unwind(AssertUnwindSafe(|| check(self))) {
            Ok(Ok(())) => {}
            Ok(Err(detail)) => self.problem(rule, seed, detail),
            Err(_) => self.problem(rule, seed, "the environment panicked".to_owned()),
        }
    }

    fn before_reset(&mut self) -> Result<(), String> {
        let mut env = (self.make)();
        let action = env.spec().actions.first().cloned().unwrap_or_else(|| "anything".to_owned());
        refused(env.step(&action))
    }

    fn determinism(&mut self, seed: u64) -> Result<(), String> {
        let (mut a, mut b) = ((self.make)(), (self.make)());
        let observation = begin(a.as_mut(), seed)?;
        same(&observation, &begin(b.as_mut(), seed)?, "first observations")?;
        same(&a.state_key(), &b.state_key(), "state keys after reset")?;
        self.consistent(a.as_ref(), &observation)?;
        let mut draws = seed;
        for _ in 0..MAX_ACTIONS {
            let Some(action) = some_action(a.as_ref(), &mut draws) else {
                break;
            };
            let (before, step) = (a.state_key(), take(a.as_mut(), &action)?);
            same(&step, &take(b.as_mut(), &action)?, "steps")?;
            same(&a.state_key(), &b.state_key(), "state keys")?;
            self.report.steps += 1;
            self.consistent(a.as_ref(), &step.observation)?;
            if !step.info.action_is_valid {
                return Err(format!("the offered action {action:?} was not understood"));
            }
            if before == a.state_key() && step.info.success {
                return Err(format!("action {action:?} reached the goal without changing the state key"));
            }
            if step.terminated || step.truncated {
                self.report.ended += 1;
                return refused(a.step(&action));
            }
        }
        Ok(())
    }

    /// The observation is the rendering, and equal keys look equal.
    fn consistent(&mut self, env: &dyn Environment, observation: &str) -> Result<(), String> {
        same(observation, env.render().as_str(), "the observation and the rendering")?;
        let seen = self.renders.entry(env.state_key()).or_insert_with(|| observation.to_owned());
        if seen != observation {
            return Err(format!("one state key, two renderings:\n{seen}\nand\n{observation}"));
        }
        Ok(())
    }

    /// An environment that has been played gives the same episode as a new one.
    fn fresh_reset(&mut self, seed: u64) -> Result<(), String> {
        let (mut used, mut new) = ((self.make)(), (self.make)());
        begin(used.as_mut(), splitmix64(seed) % 1000)?;
        let mut draws = seed.wrapping_add(1);
        for _ in 0..3 {
            let Some(action) = some_action(used.as_ref(), &mut draws) else { break };
            if take(used.as_mut(), &action)?.terminated {
                break;
            }
        }
        same(&begin(used.as_mut(), seed)?, &begin(new.as_mut(), seed)?, "first observations")?;
        for _ in 0..MAX_ACTIONS {
            let Some(action) = some_action(new.as_ref(), &mut draws) else { break };
            let step = take(new.as_mut(), &action)?;
            same(&take(used.as_mut(), &action)?, &step, "steps")?;
            if step.terminated || step.truncated {
                break;
            }
        }
        Ok(())
    }

    fn malformed(&mut self, seed: u64) -> Result<(), String> {
        let mut env = (self.make)();
        begin(env.as_mut(), seed)?;
        for action in malformed_actions() {
            let offered = env.available_actions();
            let known = offered.iter().any(|offered| offered.eq_ignore_ascii_case(action.trim()));
            let (before, shown) = (env.state_key(), env.render());
            let step = take(env.as_mut(), &action)?;
            self.report.steps += 1;
            let what: String = action.chars().take(40).collect();
            if step.info.action_is_valid && !known && !offered.is_empty() {
                return Err(format!("{what:?} is not among the offered actions, but was understood"));
            }
            if !step.info.action_is_valid {
                if step.terminated || step.truncated {
                    // Some environments take any text as the final answer; that ends them by right.
                    begin(env.as_mut(), seed)?;
                    continue;
                }
                // Where actions are free text the environment may say that it did not understand.
                if before != env.state_key() || shown != env.render() && !env.action_lookup().is_empty() {
                    return Err(format!("{what:?} was not understood, but changed the state"));
                }
            }
            if step.terminated || step.truncated {
                begin(env.as_mut(), seed)?;
            }
        }
        Ok(())
    }

    fn case(&mut self, seed: u64) -> Result<(), String> {
        let (mut upper, mut lower) = ((self.make)(), (self.make)());
        begin(upper.as_mut(), seed)?;
        begin(lower.as_mut(), seed)?;
        // Free text is the environment's own business.
        if upper.action_lookup().is_empty() {
            return Ok(());
        }
        let mut draws = seed.wrapping_add(2);
        for _ in 0..MAX_ACTIONS {
            let Some(action) = some_action(upper.as_ref(), &mut draws) else { break };
            let step = take(upper.as_mut(), &action.to_uppercase())?;
            same(&step, &take(lower.as_mut(), &action.to_lowercase())?, "steps in upper and lower case")?;
            if !step.info.action_is_valid {
                return Err(format!("{:?} was not understood, but {action:?} is offered", action.to_uppercase()));
            }
            if step.terminated || step.truncated {
                break;
            }
        }
        Ok(())
    }

    /// A demonstration takes the oracle's actions, at most as many as asked for, and says why.
    fn demonstrations(&mut self, seed: u64) -> Result<(), String> {
        let mut env = (self.make)();
        begin(env.as_mut(), seed)?;
        let plan = env.oracle(MAX_ACTIONS);
        for style in [DemoStyle::Brief, DemoStyle::Verbose] {
            let turn = |stream| env.demonstrate(MAX_ACTIONS, 2, style, &mut Pcg64::new(stream));
            same(&turn(seed), &turn(seed), "demonstrations from equal random streams")?;
            let Some(turn) = turn(seed) else {
                if plan.is_empty() {
                    continue;
                }
                return Err("the oracle has a plan, but there is no demonstration".to_owned());
            };
            if turn.reasoning.trim().is_empty() || turn.actions.is_empty() || turn.actions.len() > 2 {
                return Err(format!("expected reasoning and 1 or 2 actions, found {turn:?}"));
            }
            if env.demonstrate(MAX_ACTIONS, 0, style, &mut Pcg64::new(seed)).is_some() {
                return Err("a turn of no actions was demonstrated".to_owned());
            }
            if !plan.is_empty() && plan.get(..turn.actions.len()) != Some(&turn.actions[..]) {
                return Err(format!("the oracle plans {plan:?}, the demonstration does {:?}", turn.actions));
            }
            let novice = |most, stream| env.demonstrate_novice(MAX_ACTIONS, most, style, &mut Pcg64::new(stream));
            same(&novice(2, seed), &novice(2, seed), "a novice's turns from equal random streams")?;
            if novice(0, seed).is_some() {
                return Err("a novice took a turn of no actions".to_owned());
            }
            for stream in seed..seed + 8 {
                let Some(turn) = novice(2, stream) else { continue };
                if turn.reasoning.trim().is_empty() || turn.actions.is_empty() || turn.actions.len() > 2 {
                    return Err(format!("expected a novice's reasoning and 1 or 2 actions, found {turn:?}"));
                }
                let agreement = env.check_reasoning(&turn.reasoning, &turn.actions);
                if let Some(agreement) = agreement.filter(|a| a.right != a.claims) {
                    return Err(format!("a novice sees rightly, but {turn:?} has {agreement:?}"));
                }
            }
        }
        Ok(())
    }

    fn oracle(&mut self, seed: u64) -> Result<(), String> {
        let mut env = (self.make)();
        begin(env.as_mut(), seed)?;
        let Some(optimum) = env.optimum(MAX_ACTIONS) else {
            return Ok(());
        };
        if !(0.0..=1.0 + 1e-9).contains(&optimum) {
            return Err(format!("expected a probability as optimum, found {optimum}"));
        }
        if !env.oracle(0).is_empty() {
            return Err("the oracle acts although no action is left".to_owned());
        }
        let played = crate::baseline::play_oracle(env.as_mut(), seed, Split::Train, MAX_ACTIONS)
            .map_err(|error| error.to_string())?;
        self.report.oracle_checked += 1;
        self.report.optimum += optimum;
        self.report.oracle_success += f64::from(u8::from(played.success));
        if optimum > 1.0 - 1e-9 && !played.success {
            return Err(format!("success is certain within {MAX_ACTIONS} actions, but the oracle failed"));
        }
        if optimum == 0.0 && played.success {
            return Err("success is said to be impossible, but the oracle succeeded".to_owned());
        }
        Ok(())
    }

    /// Over many instances the oracle's success rate is the optimum, within four standard errors.
    fn compare_oracle(&mut self) {
        let n = self.report.oracle_checked as f64;
        if n == 0.0 {
            return;
        }
        self.report.optimum /= n;
        self.report.oracle_success /= n;
        let Report { optimum, oracle_success, .. } = self.report;
        // The spread of one instance is at most that of a coin with the mean optimum; one miss is always allowed for.
        let allowed = 4.0 * (optimum * (1.0 - optimum).max(0.0) / n).sqrt() + 1e-9;
        if (optimum - oracle_success).abs() > allowed.max(1.0 / n) {
            self.problem(
                "the oracle reaches the optimum",
                None,
                format!("expected a success rate of {optimum:.3} ± {allowed:.3}, found {oracle_success:.3}"),
            );
        }
    }
}

fn begin(env: &mut dyn Environment, seed: u64) -> Result<String, String> {
    env.reset(seed, Split::Train).map_err(|error| error.to_string())
}

fn take(env: &mut dyn Environment, action: &str) -> Result<Step, String> {
    let step = env.step(action).map_err(|error| error.to_string())?;
    if !step.reward.is_finite() {
        return Err(format!("expected a finite reward, found {}", step.reward));
    }
    if step.terminated && step.truncated {
        return Err("a step both terminated and truncated the episode".to_owned());
    }
    Ok(step)
}

fn refused(result: Result<Step, EnvError>) -> Result<(), String> {
    match result {
        Err(EnvError::Play { .. }) => Ok(()),
        Err(other) => Err(format!("expected a refusal to play, found: {other}")),
        Ok(_) => Err("expected a refusal to play, but the step was taken".to_owned()),
    }
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(a: &T, b: &T, what: &str) -> Result<(), String> {
    if a == b { Ok(()) } else { Err(format!("{what} differ:\n{a:?}\nand\n{b:?}")) }
}

/// A pseudo-random one of the offered actions; for free text nothing is offered, and the environment draws one.
fn some_action(env: &dyn Environment, draws: &mut u64) -> Option<String> {
    *draws = splitmix64(*draws);
    let actions = env.available_actions();
    if actions.is_empty() {
        return env.sample_action(&mut Pcg64::new(*draws));
    }
    let i = usize::try_from(*draws % (actions.len().max(1) as u64)).ok()?;
    actions.get(i).cloned()
}
