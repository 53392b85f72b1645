//! An environment of one's own, with everything that the built-in ones have: settings, an oracle, demonstrations for the
//! warm start, tests. Once it is registered, the whole `ragen` command works on it.
//!
//! The game: the agent stands on a line of cells and walks to the goal.

use ragen_envs::config::{check_range, read};
use ragen_envs::rng::NumpyGenerator;
use ragen_envs::{
    DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Rng, Split, Step, Template, register,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Registry name: what `env_type` says in a configuration.
pub const ENV_TYPE: &str = "my_walk";
/// Rules and goal in words, for the prompt.
pub const INSTRUCTION: &str = "You stand at P on a line of cells. Walk to the goal G.";

/// Settings, under `env_config` in a configuration. An unknown key is refused with the nearest known one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MyWalkConfig {
    /// Number of cells, 2 to 100. Default 9.
    pub length: usize,
}

impl Default for MyWalkConfig {
    fn default() -> Self {
        Self { length: 9 }
    }
}

/// The environment. One value plays one episode at a time.
pub struct MyWalk {
    config: MyWalkConfig,
    spec: EnvSpec,
    /// The present episode; `None` before the first `reset`.
    episode: Option<Episode>,
}

struct Episode {
    player: usize,
    goal: usize,
}

impl MyWalk {
    /// An environment from JSON settings; null gives the defaults.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let config: MyWalkConfig = read(ENV_TYPE, config, &["length"])?;
        check_range(ENV_TYPE, "length", config.length, 2, 100)?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            // Names are matched without regard to case. Leave this empty where any text is an action.
            actions: vec!["Left".to_owned(), "Right".to_owned()],
            legend: vec![("P".to_owned(), "player".to_owned()), ("G".to_owned(), "goal".to_owned())],
        };
        Ok(Self { config, spec, episode: None })
    }

    /// The shortest way to the goal; empty when there are fewer actions left than it takes.
    fn plan(&self, actions_left: usize) -> Vec<String> {
        let Some(Episode { player, goal }) = self.episode else {
            return Vec::new();
        };
        let way = if goal < player { "Left" } else { "Right" };
        let distance = player.abs_diff(goal);
        if distance <= actions_left { vec![way.to_owned(); distance] } else { Vec::new() }
    }
}

impl Environment for MyWalk {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// The same seed must give the same instance, so all randomness comes from a stream made of the seed. Take instances
    /// from separate sets where `split` matters to you; training already skips those that validation plays.
    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let mut stream = NumpyGenerator::new(seed);
        let mut cell = |n: usize| stream.integers(0, n as i64) as usize;
        let player = cell(self.config.length);
        let goal = (player + 1 + cell(self.config.length - 1)) % self.config.length;
        self.episode = Some(Episode { player, goal });
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.player == episode.goal {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let before = episode.player;
        if action.trim().eq_ignore_ascii_case("Left") {
            episode.player = before.saturating_sub(1);
        } else if action.trim().eq_ignore_ascii_case("Right") {
            episode.player = (before + 1).min(self.config.length - 1);
        } else {
            // Not an error: the model may write anything.
            return Ok(Step::not_understood(self.render()));
        }
        let success = episode.player == episode.goal;
        let info =
            Info { success, action_is_valid: true, action_is_effective: episode.player != before, ..Info::default() };
        let reward = if success { 1.0 } else { -0.1 };
        Ok(Step { observation: self.render(), reward, terminated: success, truncated: false, info })
    }

    /// What the agent sees. It should tell the state completely; else give `state_key` as well.
    fn render(&self) -> String {
        let Some(Episode { player, goal }) = self.episode else {
            return String::new();
        };
        let symbol = |cell| match cell {
            cell if cell == player => 'P',
            cell if cell == goal => 'G',
            _ => '_',
        };
        (0..self.config.length).map(symbol).collect()
    }

    /// The best player there is. Without one, leave `oracle`, `optimum` and `demonstrate` out: training then starts
    /// without a warm start, and reports have no ceiling.
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.plan(actions_left)
    }

    /// How often the best player reaches the goal from here.
    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let Episode { player, goal } = self.episode.as_ref()?;
        Some(if player.abs_diff(*goal) <= actions_left { 1.0 } else { 0.0 })
    }

    /// A turn as the oracle would take it, with its reasoning in words, for the warm start.
    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        _rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let Episode { player, goal } = self.episode.as_ref()?;
        let mut actions = self.plan(actions_left);
        actions.truncate(max_actions);
        let way = actions.first()?.to_lowercase();
        let reasoning = match style {
            DemoStyle::Brief => format!("P{player} goal{goal} go {way}"),
            DemoStyle::Verbose => format!("I am on cell {player} and the goal is on cell {goal}, so I go {way}."),
        };
        Some(Demonstration { reasoning, actions })
    }
}

/// Makes the environment known under its name and a tag.
///
/// # Errors
/// [`EnvError::Config`] when either is taken.
pub fn add() -> Result<(), EnvError> {
    let template = Template {
        tag: "MyWalk",
        env_type: ENV_TYPE,
        max_actions_per_traj: 10,
        max_tokens: 100,
        env_instruction: INSTRUCTION,
        env_config: json!({ "length": 9 }),
    };
    register(template, |config| Ok(Box::new(MyWalk::from_json(config)?)))
}

/// The `ragen` command with this environment in it.
fn main() -> std::process::ExitCode {
    if let Err(error) = add() {
        eprintln!("error: {error}");
        return std::process::ExitCode::FAILURE;
    }
    ragen::main()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ragen_envs::baseline::{VAL_SEEDS, play_oracle};
    use ragen_envs::checker::check;

    fn made(config: Value) -> Box<dyn Environment> {
        Box::new(MyWalk::from_json(&config).expect("valid settings"))
    }

    #[test]
    fn it_keeps_what_every_environment_promises() {
        for config in [json!(null), json!({ "length": 2 }), json!({ "length": 40 })] {
            if let Err(problems) = check(|| made(config.clone()), 0..40) {
                panic!("{config}: {problems:#?}");
            }
        }
    }

    #[test]
    fn the_oracle_reaches_the_goal() {
        let mut env = made(json!(null));
        for seed in VAL_SEEDS {
            let played = play_oracle(env.as_mut(), seed, Split::Val, 10).expect("playable");
            assert!(played.success, "seed {seed}");
        }
    }

    #[test]
    fn a_walk_by_hand() {
        let mut env = MyWalk::from_json(&json!({ "length": 5 })).expect("valid settings");
        env.episode = Some(Episode { player: 1, goal: 3 });
        assert_eq!(env.render(), "_P_G_");
        let step = env.step("right").expect("a step");
        assert_eq!((step.observation.as_str(), step.reward, step.terminated), ("__PG_", -0.1, false));
        let step = env.step("Right").expect("a step");
        assert_eq!((step.reward, step.terminated, step.info.success), (1.0, true, true));
        assert!(env.step("Left").is_err(), "the episode is over");
    }

    #[test]
    fn wrong_settings_are_refused() {
        let refused = |config| MyWalk::from_json(&config).err().expect("refused").to_string();
        assert!(refused(json!({ "lenght": 5 })).contains("did you mean `length`?"));
        assert!(refused(json!({ "length": 1 })).contains("from 2 to 100, found 1"));
    }

    #[test]
    fn it_is_known_by_name_and_tag_once() {
        add().expect("free names");
        assert!(ragen_envs::make(ENV_TYPE, &json!(null)).is_ok());
        assert_eq!(ragen_envs::template("MyWalk").expect("a known tag").env_type, ENV_TYPE);
        assert!(add().expect_err("taken").to_string().contains("exists already"));
    }
}
