//! Reasoning in words for a household turn.

use rand_core::Rng;

use super::goal::{Goal, TaskType};
use super::world::{Command, World};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// Words for a turn that begins with the first command of a plan; `actions` are the commands as they are typed.
pub(super) fn turn(
    world: &World,
    goal: &Goal,
    plan: &[Command],
    actions: Vec<String>,
    style: DemoStyle,
    rng: &mut dyn Rng,
) -> Option<Demonstration> {
    let next = actions.first()?;
    // The thing that the plan handles first is what all this is about.
    let thing = plan.iter().find_map(|command| match *command {
        Command::Take(thing, _) | Command::Move(thing, _) => Some(thing),
        Command::Clean(thing, _) | Command::Heat(thing, _) | Command::Cool(thing, _) => Some(thing),
        _ => None,
    });
    let name = thing.or(world.held()).map_or(goal.object.as_str(), |thing| world.things[thing].name.as_str());
    let holding = world.held().is_some();
    let aim = match goal.task {
        TaskType::LookAtObjInLight => format!("look at {name} under the {}", goal.target),
        TaskType::PickCleanThenPlaceInRecep => format!("clean {name} for the {}", goal.target),
        TaskType::PickHeatThenPlaceInRecep => format!("heat {name} for the {}", goal.target),
        TaskType::PickCoolThenPlaceInRecep => format!("cool {name} for the {}", goal.target),
        TaskType::PickAndPlaceSimple | TaskType::PickTwoObjAndPlace => format!("bring {name} to the {}", goal.target),
    };
    let have = if holding { "have it" } else { "get it" };
    let reasoning = match style {
        DemoStyle::Brief => format!("{aim}, {have}"),
        DemoStyle::Verbose => {
            let state = match world.held() {
                Some(held) => format!("I am carrying {}", world.things[held].name),
                None => "My hands are empty".to_owned(),
            };
            let first = sentence(world, plan[0]);
            match index_below(rng, 3) {
                0 => format!("The task is to {aim}. {state}. {first} The next action is: {next}."),
                1 => format!("{state}, and I have to {aim}. {first} So I {next}."),
                _ => format!("I want to {aim}. {state} at the moment. {first} Therefore: {next}."),
            }
        }
    };
    Some(Demonstration { reasoning, actions })
}

/// Why the command makes sense.
fn sentence(world: &World, command: Command) -> String {
    match command {
        Command::GoTo(r) => format!("What I need now is at {}.", world.receptacles[r].name),
        Command::Open(r) => format!("The {} is closed.", world.receptacles[r].name),
        Command::Take(_, r) => format!("The object is within reach at {}.", world.receptacles[r].name),
        Command::Move(_, r) => format!("The object belongs to {} now.", world.receptacles[r].name),
        Command::Clean(..) => "It has to be clean first.".to_owned(),
        Command::Heat(..) => "It has to be hot first.".to_owned(),
        Command::Cool(..) => "It has to be cool first.".to_owned(),
        _ => "That is what is left to do.".to_owned(),
    }
}
