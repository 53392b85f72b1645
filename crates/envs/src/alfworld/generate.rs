//! Household games from a seed: a house, things in its room, and a task that can be done.
//!
//! A house is a room with its receptacles; there are 30 of each kind of room, as in ALFWorld, of which the last four
//! are unseen in training. The seed decides the task, the house, and where things are.

use super::goal::{Goal, TaskType};
use super::tables::{self, Kind, Room, THINGS};
use super::world::{Condition, Receptacle, Thing, World};
use crate::rng::{PythonRandom, splitmix64};

/// Houses of each kind of room.
pub const HOUSES: u64 = 30;
/// How many of them training never shows.
pub const UNSEEN_HOUSES: u64 = 4;
/// Keeps the streams of houses and games apart from each other.
const HOUSE_STREAM: u64 = 0x686f_7573_6500;

/// A game: a room, what is asked for, and how that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// The room at the beginning.
    pub world: World,
    /// What is asked for.
    pub goal: Goal,
    /// The task in words.
    pub task: String,
}

/// The game of a seed, of one of these task types, in a house that training shows or in one that it does not.
/// `None` when no task could be found, which `tasks` without an entry alone brings about.
#[must_use]
pub fn game(seed: u64, tasks: &[TaskType], unseen: bool) -> Option<Game> {
    let mut rng = PythonRandom::new(splitmix64(seed));
    let task = *rng.choice(tasks)?;
    let room = *rng.choice(rooms(task))?;
    let house = if unseen {
        HOUSES - UNSEEN_HOUSES + rng.randbelow(UNSEEN_HOUSES)
    } else {
        rng.randbelow(HOUSES - UNSEEN_HOUSES)
    };
    let receptacles = receptacles(room, house);
    let goal = rng.choice(&goals(task, room, &receptacles))?.clone();
    let things = things(&goal, room, &receptacles, &mut rng);
    let fits = THINGS
        .iter()
        .filter(|kind| kind.can().pickupable)
        .flat_map(|kind| kind.places().map(|place| (place.to_owned(), kind.name.to_owned())))
        .collect();
    let words = goal.words(rng.random() < 0.5);
    Some(Game { world: World { receptacles, things, fits, at: None }, goal, task: words })
}

/// Rooms in which a task makes sense.
fn rooms(task: TaskType) -> &'static [Room] {
    match task {
        TaskType::PickAndPlaceSimple | TaskType::PickTwoObjAndPlace => &Room::ALL,
        TaskType::LookAtObjInLight => &[Room::Bedroom, Room::LivingRoom],
        TaskType::PickCleanThenPlaceInRecep => &[Room::Bathroom, Room::Kitchen],
        TaskType::PickHeatThenPlaceInRecep | TaskType::PickCoolThenPlaceInRecep => &[Room::Kitchen],
    }
}

/// The receptacles of a house, kind by kind, the highest number first.
fn receptacles(room: Room, house: u64) -> Vec<Receptacle> {
    let stream = HOUSE_STREAM + 4 * house + room as u64;
    let mut rng = PythonRandom::new(splitmix64(stream));
    let mut list = Vec::new();
    for &(kind, low, high) in tables::receptacles(room) {
        let count = low + rng.randbelow(high - low + 1);
        for number in (1..=count).rev() {
            list.push(Receptacle {
                name: format!("{kind} {number}"),
                kind: kind.to_owned(),
                location: list.len(),
                openable: tables::openable(kind),
                open: false,
            });
        }
    }
    list
}

/// Every goal of a task that the room allows: the thing belongs in the target and can lie elsewhere at the beginning.
fn goals(task: TaskType, room: Room, receptacles: &[Receptacle]) -> Vec<Goal> {
    let here = |place: &str| receptacles.iter().any(|receptacle| receptacle.kind == place);
    let objects = THINGS.iter().filter(|kind| kind.occurs_in(room) && task.suits(kind.can()));
    let mut goals = Vec::new();
    for kind in objects {
        let places: Vec<&str> = kind.places().filter(|place| here(place)).collect();
        let goal = |target: &str| Goal { task, object: kind.name.to_owned(), target: target.to_owned() };
        if task == TaskType::LookAtObjInLight {
            goals.push(goal("desklamp"));
        } else if places.len() > 1 {
            goals.extend(places.into_iter().map(goal));
        }
    }
    goals
}

/// Things for a game: some of every kind, enough of the wanted kind and none of it in its target yet.
fn things(goal: &Goal, room: Room, receptacles: &[Receptacle], rng: &mut PythonRandom) -> Vec<Thing> {
    let mut things = Vec::new();
    for kind in THINGS.iter().filter(|kind| kind.occurs_in(room)) {
        let lamp = kind.can().toggleable;
        let wanted = kind.name == goal.object;
        let needed = match goal.task {
            TaskType::LookAtObjInLight if lamp => 1,
            TaskType::PickTwoObjAndPlace if wanted => 2,
            _ if wanted => 1,
            _ => 0,
        };
        // Half of the kinds are absent, a quarter occurs once, and so on; there are few lamps.
        let most = if lamp { 1 } else { 3 };
        let mut count = 0;
        while count < most && rng.random() < 0.5 {
            count += 1;
        }
        let places: Vec<usize> = (0..receptacles.len())
            .filter(|&r| belongs(kind, &receptacles[r]) && !(wanted && receptacles[r].kind == goal.target))
            .collect();
        if places.is_empty() {
            continue;
        }
        let count = count.max(needed);
        for number in (1..=count).rev() {
            things.push(Thing {
                name: format!("{} {number}", kind.name),
                kind: kind.name.to_owned(),
                place: rng.choice(&places).copied(),
                can: kind.can(),
                is: Condition::default(),
            });
        }
    }
    things
}

fn belongs(kind: &Kind, receptacle: &Receptacle) -> bool {
    kind.places().any(|place| place == receptacle.kind)
}
