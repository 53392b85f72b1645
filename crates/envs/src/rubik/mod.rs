//! The 2 × 2 × 2 Rubik's cube: turn faces until each shows one colour.
//!
//! Scrambles, rewards and text are RAGEN's. Deviations unless `compat` is set: B and B' turn the back face as a real
//! cube does (RAGEN's exchanges two stickers on the way and takes corners apart); a scramble that leaves the cube solved
//! is followed by another from the same random stream (in RAGEN such an episode begins solved, and solving it takes
//! undoing a turn of one's own).

mod config;
pub mod cube;
mod demonstrate;
pub mod solve;

pub use config::{INSTRUCTION, RubikConfig};
pub use cube::Cube;

use std::fmt::Write;

use rand_core::Rng;
use serde_json::Value;

use crate::rng::NumpyGenerator;
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
use cube::{COLOURS, FACES, TURNS, parse_turn, ragen_permutation};

/// Registry name.
pub const ENV_TYPE: &str = "rubikscube";

/// Scrambles tried before a seed is given up; even of two turns one in six leaves the cube solved.
const MAX_SCRAMBLES: usize = 1000;
/// Up to this scramble depth the few positions there are occur in training and in validation.
const TOO_SHALLOW_TO_HOLD_OUT: usize = 2;

/// The Rubik's cube environment.
pub struct RubiksCube {
    config: RubikConfig,
    spec: EnvSpec,
    episode: Option<Episode>,
}

struct Episode {
    cube: Cube,
    steps: usize,
    over: bool,
}

impl RubiksCube {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: RubikConfig) -> Result<Self, EnvError> {
        config.check()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: TURNS.iter().map(|&turn| turn.to_owned()).collect(),
            legend: Vec::new(),
        };
        Ok(Self { config, spec, episode: None })
    }

    /// An environment from JSON settings; see [`RubikConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(RubikConfig::from_json(config)?)
    }

    /// The present cube, if an episode has begun.
    #[must_use]
    pub fn cube(&self) -> Option<&Cube> {
        self.episode.as_ref().map(|episode| &episode.cube)
    }

    /// Starts an episode on a given cube.
    pub fn start_on(&mut self, cube: Cube) -> String {
        self.episode = Some(Episode { cube, steps: 0, over: false });
        self.render()
    }

    fn scrambled(&self, seed: u64) -> Option<Cube> {
        let mut stream = NumpyGenerator::new(seed);
        for _ in 0..MAX_SCRAMBLES {
            let mut cube = Cube::solved_state();
            for _ in 0..self.config.scramble_depth {
                cube = turned(&cube, stream.integers(1, 13) as usize - 1, self.config.compat);
            }
            if self.config.compat || !cube.solved() {
                return Some(cube);
            }
        }
        None
    }

    /// The shortest way to solve the cube with so many turns left; empty when there is none.
    fn plan(&self, actions_left: usize) -> Vec<usize> {
        let Some(episode) = self.episode.as_ref().filter(|episode| !episode.over) else {
            return Vec::new();
        };
        let left = actions_left.min(self.config.max_steps - episode.steps);
        let turns = match episode.cube.solved() {
            // Only a turn ends the episode: there and back.
            true => Some(vec![0, 1]),
            false if self.config.compat => solve::solution_in_ragen(&episode.cube),
            false => solve::shortest(&episode.cube),
        };
        turns.filter(|turns| turns.len() <= left).unwrap_or_default()
    }
}

impl Environment for RubiksCube {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let cube = self.scrambled(seed).ok_or_else(|| EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: format!("every one of {MAX_SCRAMBLES} scrambles undid itself; use another `scramble_depth`"),
        })?;
        Ok(self.start_on(cube))
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let compat = self.config.compat;
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        let Some(turn) = parse_turn(action) else {
            return Ok(Step::not_understood(self.render()));
        };
        episode.cube = turned(&episode.cube, turn, compat);
        episode.steps += 1;
        let success = episode.cube.solved();
        let truncated = !success && episode.steps >= self.config.max_steps;
        episode.over = success || truncated;
        let info = Info { success, action_is_valid: true, action_is_effective: true, ..Info::default() };
        let reward = if success { 1.0 } else { 0.0 };
        Ok(Step { observation: self.render(), reward, terminated: success, truncated, info })
    }

    fn render(&self) -> String {
        let Some(Episode { cube, steps, over }) = &self.episode else {
            return String::new();
        };
        let names = ["Up (U):    ", "Left (L):  ", "Front (F): ", "Right (R): ", "Back (B):  ", "Down (D):  "];
        let mut text = format!("=== Rubik's Cube 2x2 State ===\nStep: {steps}/{}\n\n", self.config.max_steps);
        for (name, face) in names.iter().zip(cube.stickers().chunks(4)) {
            let letter = |i: usize| COLOURS[usize::from(face[i])];
            let _ = writeln!(text, "{name}[{}, {}]\n [{}, {}]", letter(0), letter(1), letter(2), letter(3));
        }
        text.push_str(&match (over, cube.solved()) {
            (true, true) => "\n=== Game Over: Cube Solved! ===".to_owned(),
            (true, false) => "\n=== Game Over: Max steps reached. ===".to_owned(),
            _ => format!("\nAvailable Actions:\n{}\n\nWhat is your next move?", TURNS.join(", ")),
        });
        text
    }

    fn can_hold_out(&self) -> bool {
        self.config.scramble_depth > TOO_SHALLOW_TO_HOLD_OUT
    }

    fn oracle(&self, actions_left: usize) -> Vec<String> {
        self.plan(actions_left).into_iter().map(|turn| TURNS[turn].to_owned()).collect()
    }

    fn optimum(&self, actions_left: usize) -> Option<f64> {
        let episode = self.episode.as_ref()?;
        match episode.over && episode.cube.solved() || !self.plan(actions_left).is_empty() {
            true => Some(1.0),
            // How far from solved the cubes are that RAGEN's turns make is known for the nearest only.
            false if self.config.compat && !episode.over && actions_left > 0 => None,
            false => Some(0.0),
        }
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        demonstrate::turn(&self.episode.as_ref()?.cube, &self.plan(actions_left), max_actions, style, rng)
    }
}

/// The cube after a turn, RAGEN's with `compat`.
fn turned(cube: &Cube, turn: usize, compat: bool) -> Cube {
    if compat { cube.moved(&ragen_permutation(turn)) } else { cube.turned(turn) }
}

/// Faces that show one colour, by their letters.
fn whole_faces(cube: &Cube) -> String {
    let whole = |face: &&[u8]| face.iter().all(|colour| *colour == face[0]);
    FACES.iter().zip(cube.stickers().chunks(4)).filter(|(_, face)| whole(face)).map(|(letter, _)| *letter).collect()
}
