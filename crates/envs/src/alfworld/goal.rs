//! What a game asks for.

use serde::{Deserialize, Serialize};

use super::world::{Abilities, Condition, World};

/// The six kinds of household tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskType {
    /// Put a thing into a receptacle.
    PickAndPlaceSimple,
    /// Hold a thing beside a lamp that is on.
    LookAtObjInLight,
    /// Clean a thing, then put it away.
    PickCleanThenPlaceInRecep,
    /// Heat a thing, then put it away.
    PickHeatThenPlaceInRecep,
    /// Cool a thing, then put it away.
    PickCoolThenPlaceInRecep,
    /// Put two things of a kind into the same receptacle.
    PickTwoObjAndPlace,
}

impl TaskType {
    /// All of them.
    pub const ALL: [TaskType; 6] = [
        TaskType::PickAndPlaceSimple,
        TaskType::LookAtObjInLight,
        TaskType::PickCleanThenPlaceInRecep,
        TaskType::PickHeatThenPlaceInRecep,
        TaskType::PickCoolThenPlaceInRecep,
        TaskType::PickTwoObjAndPlace,
    ];

    /// A thing with these abilities can be what the task is about.
    #[must_use]
    pub fn suits(self, can: Abilities) -> bool {
        can.pickupable
            && match self {
                TaskType::PickCleanThenPlaceInRecep => can.cleanable,
                TaskType::PickHeatThenPlaceInRecep => can.heatable,
                TaskType::PickCoolThenPlaceInRecep => can.coolable,
                _ => true,
            }
    }

    /// A thing in this condition counts.
    #[must_use]
    pub fn satisfied_by(self, is: Condition) -> bool {
        match self {
            TaskType::PickCleanThenPlaceInRecep => is.clean,
            TaskType::PickHeatThenPlaceInRecep => is.hot,
            TaskType::PickCoolThenPlaceInRecep => is.cool,
            _ => true,
        }
    }

    /// The kind of receptacle that brings a thing into the right condition.
    #[must_use]
    pub fn tool(self) -> Option<&'static str> {
        match self {
            TaskType::PickCleanThenPlaceInRecep => Some("sinkbasin"),
            TaskType::PickHeatThenPlaceInRecep => Some("microwave"),
            TaskType::PickCoolThenPlaceInRecep => Some("fridge"),
            _ => None,
        }
    }
}

/// What has to be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// What kind of task it is.
    pub task: TaskType,
    /// Kind of the thing.
    pub object: String,
    /// Kind of the receptacle it belongs in; for [`TaskType::LookAtObjInLight`] the kind of the lamp.
    pub target: String,
}

impl Goal {
    /// The task in words; there are two ways to say each.
    #[must_use]
    pub fn words(&self, second: bool) -> String {
        let Self { object, target, .. } = self;
        match (self.task, second) {
            (TaskType::PickAndPlaceSimple, false) => format!("put a {object} in {target}"),
            (TaskType::PickAndPlaceSimple, true) => format!("put some {object} on {target}"),
            (TaskType::LookAtObjInLight, false) => format!("look at {object} under the {target}"),
            (TaskType::LookAtObjInLight, true) => format!("examine the {object} with the {target}"),
            (TaskType::PickCleanThenPlaceInRecep, false) => format!("put a clean {object} in {target}"),
            (TaskType::PickCleanThenPlaceInRecep, true) => format!("clean some {object} and put it in {target}"),
            (TaskType::PickHeatThenPlaceInRecep, false) => format!("put a hot {object} in {target}"),
            (TaskType::PickHeatThenPlaceInRecep, true) => format!("heat some {object} and put it in {target}"),
            (TaskType::PickCoolThenPlaceInRecep, false) => format!("put a cool {object} in {target}"),
            (TaskType::PickCoolThenPlaceInRecep, true) => format!("cool some {object} and put it in {target}"),
            (TaskType::PickTwoObjAndPlace, false) => format!("put two {object} in {target}"),
            (TaskType::PickTwoObjAndPlace, true) => format!("find two {object} and put them in {target}"),
        }
    }

    /// Whether it is reached.
    #[must_use]
    pub fn reached(&self, world: &World) -> bool {
        if self.task == TaskType::LookAtObjInLight {
            let holds = world.held().is_some_and(|thing| world.things[thing].kind == self.object);
            let lit = |(i, thing): (usize, &super::world::Thing)| {
                thing.kind == self.target && thing.is.on && world.location_of(i) == world.at
            };
            return holds && world.at.is_some() && world.things.iter().enumerate().any(lit);
        }
        let needed = if self.task == TaskType::PickTwoObjAndPlace { 2 } else { 1 };
        world.receptacles.iter().enumerate().any(|(r, receptacle)| {
            receptacle.kind == self.target
                && world.inside(r).filter(|t| t.kind == self.object && self.task.satisfied_by(t.is)).count() >= needed
        })
    }
}
