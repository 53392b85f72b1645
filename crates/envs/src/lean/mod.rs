//! Proofs in Lean 4, tactic by tactic, checked by a Kimina Lean server, as in RAGEN-2's Lean environment.
//!
//! Every step costs 0.1; an accepted tactic pays 1, a rejected one costs 1, a proof without errors and holes pays 10
//! more; a server that says that time was up costs 1 more, the last step without a proof 2 more. A tactic is accepted
//! when Lean complains about nothing but goals that are still open, and nothing is left with `sorry`. Deviations from
//! RAGEN, taken back by `compat: true`: training and validation draw from different theorems, and a server that fails
//! ends the episode with an error instead of a rejected tactic.

mod config;
mod kimina;
mod render;
mod statement;

pub use config::{INSTRUCTION, LeanConfig};
pub use kimina::{Checked, Kimina, Message, Position};
pub use statement::Statement;

use rand_core::Rng;
use serde_json::Value;

use crate::config::refuse;
use crate::dataset::Pools;
use crate::rng::PythonRandom;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};

/// Registry name.
pub const ENV_TYPE: &str = "lean";

/// The proof environment.
pub struct Lean {
    config: LeanConfig,
    spec: EnvSpec,
    rows: Pools<Statement>,
    server: Kimina,
    episode: Option<Episode>,
}

struct Episode {
    statement: Statement,
    /// Accepted tactics.
    tactics: Vec<String>,
    /// What became of every tactic, in words.
    log: Vec<String>,
    /// What Lean said last.
    messages: Vec<Message>,
    steps: usize,
    proved: bool,
    over: bool,
}

/// What a check of one more tactic comes to.
enum Verdict {
    Proved,
    Accepted,
    Rejected,
    TimedOut,
}

impl Lean {
    /// An environment with this configuration; asks the server whether it is up unless it has said so before.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range, the file is not what it should be, or the server is not up.
    pub fn new(config: LeanConfig) -> Result<Self, EnvError> {
        config.check()?;
        let rows = Pools::open(&config.files(), statement::statement)?;
        let server = Kimina::connect(&config.server_url, config.timeout())
            .map_err(|message| refuse(ENV_TYPE, format!("setting `server_url`: {message}")))?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, rows, server, episode: None })
    }

    /// An environment from JSON settings; see [`LeanConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types, values out of range, a file or a server that cannot be used.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(LeanConfig::from_json(config)?)
    }

    /// Lets Lean read the proof with one more tactic.
    fn judge(&self, episode: &Episode, tactic: &str) -> Result<(Verdict, Vec<Message>), EnvError> {
        let mut tactics = episode.tactics.clone();
        tactics.push(tactic.to_owned());
        let Statement { name, .. } = &episode.statement;
        let told = |data: String| vec![Message { severity: "error".to_owned(), pos: Position::default(), data }];
        match self.server.check(&format!("{name}-{}", episode.steps), &episode.statement.file(&tactics)) {
            Ok(Checked::TimedOut(message)) => Ok((Verdict::TimedOut, told(message))),
            Ok(Checked::Read { messages, sorries }) => {
                let verdict = if sorries > 0 || messages.iter().any(Message::blocks) {
                    Verdict::Rejected
                } else if messages.iter().any(Message::is_error) {
                    Verdict::Accepted
                } else {
                    Verdict::Proved
                };
                Ok((verdict, messages))
            }
            Err(message) if self.config.compat => Ok((Verdict::Rejected, told(message))),
            Err(message) => Err(EnvError::Play { env_type: ENV_TYPE.to_owned(), message }),
        }
    }
}

impl Environment for Lean {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, split: Split) -> Result<String, EnvError> {
        let row = PythonRandom::new(seed).randbelow(self.rows.len(split) as u64) as usize;
        let statement = self.rows.get(split, row).cloned().ok_or_else(|| EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: "there are no rows".to_owned(),
        })?;
        self.episode = Some(Episode {
            statement,
            tactics: Vec::new(),
            log: Vec::new(),
            messages: Vec::new(),
            steps: 0,
            proved: false,
            over: false,
        });
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let episode = self.episode.as_ref().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
        if episode.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let tactic = action.trim();
        if tactic.is_empty() {
            // As in the reference nothing at all costs what a rejected tactic costs.
            return Ok(Step { reward: -1.1, ..Step::not_understood(self.render()) });
        }
        let (verdict, messages) = self.judge(episode, tactic)?;
        let max_steps = self.config.max_steps;
        let episode = self.episode.as_mut().ok_or_else(|| EnvError::not_started(ENV_TYPE))?;
        episode.steps += 1;
        episode.messages = messages;
        let (what, pay) = match verdict {
            Verdict::Proved => ("accepted, the proof is complete", 1.0 + 10.0),
            Verdict::Accepted => ("accepted", 1.0),
            Verdict::Rejected => ("rejected", -1.0),
            Verdict::TimedOut => ("rejected, the time was up", -1.0 - 1.0),
        };
        episode.log.push(format!("`{tactic}`: {what}"));
        let accepted = pay > 0.0;
        if accepted {
            episode.tactics.push(tactic.to_owned());
        }
        episode.proved = matches!(verdict, Verdict::Proved);
        let truncated = !episode.proved && episode.steps >= max_steps;
        episode.over = episode.proved || truncated;
        let mut info =
            Info { success: episode.proved, action_is_valid: true, action_is_effective: accepted, ..Info::default() };
        info.extra.insert("tactics_accepted".to_owned(), episode.tactics.len() as f64);
        info.extra.insert("lean_timed_out".to_owned(), f64::from(u8::from(matches!(verdict, Verdict::TimedOut))));
        let terminated = episode.proved;
        let reward = -0.1 + pay + if truncated { -2.0 } else { 0.0 };
        Ok(Step { observation: self.render(), reward, terminated, truncated, info })
    }

    fn render(&self) -> String {
        match &self.episode {
            Some(Episode { statement, tactics, log, messages, steps, .. }) => {
                render::state(statement, tactics, log, messages, *steps, self.config.max_steps)
            }
            None => String::new(),
        }
    }

    fn can_hold_out(&self) -> bool {
        !self.config.compat
    }

    /// The rest of the row's own proof, where it has one and nothing else has been accepted.
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let Some(Episode { statement, tactics, over: false, steps, .. }) = &self.episode else { return Vec::new() };
        let left = actions_left.min(self.config.max_steps.saturating_sub(*steps));
        match statement.proof.strip_prefix(tactics.as_slice()) {
            Some(rest) if rest.len() <= left => rest.to_vec(),
            _ => Vec::new(),
        }
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        _rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let mut actions = self.oracle(actions_left);
        actions.truncate(max_actions);
        let first = actions.first()?;
        let reasoning = match style {
            DemoStyle::Brief => {
                format!("next {}", first.split_whitespace().take(10).collect::<Vec<_>>().join(" "))
            }
            DemoStyle::Verbose => {
                let done = self.episode.as_ref()?.tactics.len();
                format!("The proof has {done} accepted tactics. The next one to try is: {first}")
            }
        };
        Some(Demonstration { reasoning, actions })
    }
}
