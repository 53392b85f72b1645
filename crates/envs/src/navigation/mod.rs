//! Spatial navigation: look around in a room, then answer a question about where things are.
//!
//! Sizes, field of view, actions and rewards are those of RAGEN's environment `spatial`, which stands on a library that
//! is not part of it and is not registered there. The questions, of ten kinds as there, are our own and have answers to
//! choose from, so that chance level is known. Rendering twice shows the same text (in RAGEN it becomes an error).

mod action;
mod config;
mod question;
mod room;

pub use config::{INSTRUCTION, NavigationConfig};
pub use question::{Kind, Question, letter};
pub use room::{Facing, OBJECTS, Object, Place, Room};

use std::fmt::Write;

use rand_core::Rng;
use serde_json::Value;

use crate::rng::{NumpyGenerator, index_below};
use crate::{DemoStyle, Demonstration, EnvError, EnvSpec, Environment, Info, Split, Step};
use action::Action;

/// Registry name.
pub const ENV_TYPE: &str = "spatial";

/// What every step costs.
const STEP: f64 = -0.1;
/// What the right answer pays on top.
const RIGHT: f64 = 10.0;
/// What a wrong answer costs on top.
const WRONG: f64 = -1.0;
/// What a step costs that cannot be read.
const UNREADABLE: f64 = -1.0;

/// The spatial navigation environment.
pub struct Navigation {
    config: NavigationConfig,
    kinds: Vec<Kind>,
    spec: EnvSpec,
    episode: Option<Episode>,
}

#[derive(Clone)]
struct Episode {
    room: Room,
    question: Question,
    place: Place,
    facing: Facing,
    /// Objects that have been in view, by index.
    seen: Vec<bool>,
    /// Directions looked at from the present place.
    looked: [bool; 4],
    /// Steps, unreadable ones included.
    steps: usize,
    /// Steps that could be taken.
    taken: usize,
    /// What the last step brought, and the same of the last that could be taken.
    message: String,
    last_message: String,
    /// Whether the answer that was given is right.
    answered: Option<bool>,
    over: bool,
}

impl Navigation {
    /// An environment with this configuration.
    ///
    /// # Errors
    /// [`EnvError::Config`] when a setting is out of range.
    pub fn new(config: NavigationConfig) -> Result<Self, EnvError> {
        config.check()?;
        let kinds = config.kinds()?;
        let spec = EnvSpec {
            env_type: ENV_TYPE.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            actions: Vec::new(),
            legend: Vec::new(),
        };
        Ok(Self { config, kinds, spec, episode: None })
    }

    /// An environment from JSON settings; see [`NavigationConfig`] for the keys.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        Self::new(NavigationConfig::from_json(config)?)
    }

    /// The present room and question, if an episode has begun.
    #[must_use]
    pub fn instance(&self) -> Option<(&Room, &Question)> {
        self.episode.as_ref().map(|episode| (&episode.room, &episode.question))
    }

    /// Steps that an episode may take.
    fn limit(&self) -> usize {
        self.config.max_exp_steps + 1
    }

    fn open(&self) -> Option<&Episode> {
        self.episode.as_ref().filter(|episode| !episode.over)
    }
}

impl Episode {
    fn new(room: Room, question: Question) -> Self {
        let (place, seen) = (room.start, vec![false; room.objects.len()]);
        let message = "You stand at the start and face north.".to_owned();
        let facing = Facing::North;
        let last_message = message.clone();
        let (looked, answered) = ([false; 4], None);
        Self {
            room,
            question,
            place,
            facing,
            seen,
            looked,
            steps: 0,
            taken: 0,
            message,
            last_message,
            answered,
            over: false,
        }
    }

    /// Carries a list of actions out, or says what is impossible about it, having changed something then: call it on
    /// a copy.
    fn perform(&mut self, actions: &[Action]) -> Result<(), String> {
        for action in actions {
            match action {
                Action::Rotate(quarters) => self.facing = self.facing.turned(*quarters),
                Action::JumpTo(name) => {
                    let object = self.room.view(self.place, self.facing).find(|o| o.name.eq_ignore_ascii_case(name));
                    let Some(object) = object else {
                        return Err(format!("There is no `{}` in view from there.", action::shorten(name)));
                    };
                    self.place = object.place;
                    self.looked = [false; 4];
                }
                Action::Observe => self.message = self.look(),
                Action::Term(answer) => {
                    let right = self.question.is_right(answer);
                    self.answered = Some(right);
                    self.message = if right { "Right.".to_owned() } else { "Wrong.".to_owned() };
                }
            }
        }
        Ok(())
    }

    /// Looks around and tells what is in view.
    fn look(&mut self) -> String {
        self.looked[self.facing as usize] = true;
        let mut text = format!("You face {}.", self.facing.name());
        let mut things = Vec::new();
        for object in self.room.view(self.place, self.facing) {
            if let Some(i) = self.room.objects.iter().position(|other| other.name == object.name) {
                self.seen[i] = true;
            }
            let (ahead, right) = object.place.seen_from(self.place, self.facing);
            things.push(match (ahead, right) {
                (0, _) => format!("{} right here", object.name),
                (_, 0) => format!("{} {ahead} ahead", object.name),
                (_, 1..) => format!("{} {ahead} ahead, {right} right", object.name),
                _ => format!("{} {ahead} ahead, {} left", object.name, -right),
            });
        }
        let things = if things.is_empty() { "nothing".to_owned() } else { things.join("; ") };
        let _ = write!(text, " In view: {things}.");
        text
    }

    /// Looks in every direction until all objects have been seen, then answers.
    fn plan(&self) -> Vec<String> {
        let mut copy = self.clone();
        let mut plan = Vec::new();
        let mut turned = 0;
        for _ in 0..4 {
            if copy.seen.iter().all(|&seen| seen) {
                break;
            }
            if !copy.looked[copy.facing as usize] {
                plan.push(match turned {
                    0 => "Actions: [Observe()]".to_owned(),
                    quarters => format!("Actions: [Rotate({}), Observe()]", 90 * quarters),
                });
                copy.look();
                turned = 0;
            }
            copy.facing = copy.facing.turned(1);
            turned += 1;
        }
        plan.push(format!("Actions: [Term({})]", letter(self.question.right)));
        plan
    }

    /// Objects with their places from the start, those that have been seen.
    fn known(&self) -> Vec<String> {
        let start = self.room.start;
        let seen = self.room.objects.iter().zip(&self.seen).filter(|(_, seen)| **seen);
        seen.map(|(o, _)| format!("{} {},{}", o.name, o.place.x - start.x, o.place.y - start.y)).collect()
    }
}

impl Environment for Navigation {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, _split: Split) -> Result<String, EnvError> {
        let mut stream = NumpyGenerator::new(seed);
        let room = Room::generate(self.config.room_size, self.config.num_objects, &mut stream);
        let question = Question::generate(&room, &self.kinds, &mut stream);
        self.episode = Some(Episode::new(room, question));
        Ok(self.render())
    }

    fn step(&mut self, action: &str) -> Result<Step, EnvError> {
        let limit = self.limit();
        let Some(episode) = self.episode.as_mut() else {
            return Err(EnvError::not_started(ENV_TYPE));
        };
        if episode.over {
            return Err(EnvError::ended(ENV_TYPE));
        }
        episode.steps += 1;
        let truncated = episode.steps >= limit;
        episode.over = truncated;
        let mut after = episode.clone();
        let refused = match action::parse(action) {
            Err(message) => Some((UNREADABLE, format!("This could not be read: {message}."))),
            Ok(actions) => after.perform(&actions).err().map(|message| (STEP, message)),
        };
        if let Some((reward, message)) = refused {
            episode.message = message;
            let info = Info::default();
            return Ok(Step { observation: self.render(), reward, terminated: false, truncated, info });
        }
        after.taken += 1;
        after.last_message.clone_from(&after.message);
        let success = after.answered == Some(true);
        let terminated = after.answered.is_some();
        after.over |= terminated;
        let reward = match after.answered {
            Some(true) => STEP + RIGHT,
            Some(false) => STEP + WRONG,
            None => STEP,
        };
        let seen = after.seen.iter().filter(|&&seen| seen).count() as f64 / after.seen.len().max(1) as f64;
        *episode = after;
        let extra = [("objects_seen".to_owned(), seen)].into();
        let info = Info { success, action_is_valid: true, action_is_effective: true, extra };
        Ok(Step { observation: self.render(), reward, terminated, truncated: truncated && !terminated, info })
    }

    fn render(&self) -> String {
        let Some(Episode { room, question, message, steps, answered, .. }) = &self.episode else {
            return String::new();
        };
        if answered.is_some() {
            return message.clone();
        }
        let names: Vec<&str> = room.objects.iter().map(|object| object.name).collect();
        let (width, depth) = room.size;
        let mut text = format!("Room of {width} x {depth} cells with {}.\n{message}\n", names.join(", "));
        let _ = write!(text, "Question: {}", question.text);
        for (i, option) in question.options.iter().enumerate() {
            let _ = write!(text, "\n{}) {option}", letter(i));
        }
        let _ = write!(text, "\nSteps left: {}", self.limit().saturating_sub(*steps));
        text
    }

    /// The room, the question and where the agent is; a step that could not be taken leaves no trace in it.
    fn state_key(&self) -> String {
        let Some(episode) = &self.episode else {
            return String::new();
        };
        let Episode { room, question, place, facing, seen, taken, last_message, .. } = episode;
        format!("{room:?} {question:?} {place:?} {facing:?} {seen:?} {taken} {last_message}")
    }

    /// A quarter, half or three-quarter turn, a jump to an object in view, or an answer, all alike.
    fn sample_action(&self, rng: &mut dyn Rng) -> Option<String> {
        let episode = self.open()?;
        let mut choices: Vec<String> = [90, 180, 270].map(|by| format!("Actions: [Rotate({by}), Observe()]")).to_vec();
        for object in episode.room.view(episode.place, episode.facing) {
            choices.push(format!("Actions: [JumpTo({}), Observe()]", object.name));
        }
        let answers = (0..episode.question.options.len()).map(|i| format!("Actions: [Term({})]", letter(i)));
        choices.extend(answers);
        let i = index_below(rng, choices.len());
        Some(choices.swap_remove(i))
    }

    /// The steps of a player that looks around until it has seen everything and then answers; none when they do not
    /// all fit.
    fn oracle(&self, actions_left: usize) -> Vec<String> {
        let Some(episode) = self.open() else {
            return Vec::new();
        };
        let plan = episode.plan();
        if plan.len() <= actions_left.min(self.limit() - episode.steps) { plan } else { Vec::new() }
    }

    /// Certain where the reference player has the time to see everything; how well one can guess before is not known.
    fn optimum(&self, actions_left: usize) -> Option<f64> {
        match self.episode.as_ref()? {
            episode if episode.over => Some(if episode.answered == Some(true) { 1.0 } else { 0.0 }),
            _ if actions_left == 0 => Some(0.0),
            _ => Some(1.0).filter(|_| !self.oracle(actions_left).is_empty()),
        }
    }

    fn demonstrate(
        &self,
        actions_left: usize,
        max_actions: usize,
        style: DemoStyle,
        rng: &mut dyn Rng,
    ) -> Option<Demonstration> {
        let episode = self.open()?;
        // One at a time: what to do next depends on what is seen.
        let action = self.oracle(actions_left).into_iter().next().filter(|_| max_actions > 0)?;
        let known = episode.known();
        let answers = episode.seen.iter().all(|&seen| seen);
        let (seen, all) = (known.len(), episode.seen.len());
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(" ") };
        let question = &episode.question;
        let answer = question.options.get(question.right).map_or("", String::as_str);
        let choice = index_below(rng, 3);
        let reasoning = match (style, answers) {
            // As in Sokoban, brief words follow from the situation and never from chance.
            (DemoStyle::Brief, true) => format!("{known} so {}", letter(question.right)),
            (DemoStyle::Brief, false) => format!("{known} seen, {} missing", all - seen),
            (DemoStyle::Verbose, true) => match choice {
                0 => format!("East and north of the start, I have seen: {known}. So the answer is {answer}."),
                1 => format!("With everything seen ({known}, counted east and north from the start) it is {answer}."),
                _ => format!("I know all the places now: {known}. The question is answered by: {answer}."),
            },
            (DemoStyle::Verbose, false) => match choice {
                0 => format!("So far I have seen {seen} of {all} objects ({known}); I look further before I answer."),
                1 => format!("I cannot answer before I know where everything is. Known: {known}. I look around."),
                _ => format!("{} objects are still missing, beside: {known}. I go on looking around.", all - seen),
            },
        };
        Some(Demonstration { reasoning, actions: vec![action] })
    }
}
