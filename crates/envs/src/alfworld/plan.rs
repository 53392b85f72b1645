//! The shortest way to a goal for somebody who knows where everything is.
//!
//! Every way consists of the same legs: put away what is in the hands and not wanted, fetch a thing, treat it, bring it
//! to its place. What can be chosen is where to put, which thing, with which tool, into which receptacle; all choices
//! are compared. Doing legs in another order never saves a step, since each needs the agent at its own place and the
//! hands hold one thing.

use super::goal::{Goal, TaskType};
use super::world::{Command, World};

/// The commands of a shortest way; empty when the goal is reached already, `None` when it cannot be.
#[must_use]
pub fn shortest(world: &World, goal: &Goal) -> Option<Vec<Command>> {
    if goal.reached(world) {
        return Some(Vec::new());
    }
    let wanted: Vec<usize> = (0..world.things.len())
        .filter(|&t| world.things[t].kind == goal.object && world.things[t].can.pickupable)
        .collect();
    let mut best = None;
    match goal.task {
        TaskType::LookAtObjInLight => {
            let lamps: Vec<usize> = (0..world.things.len())
                .filter(|&t| world.things[t].kind == goal.target && world.things[t].can.toggleable)
                .collect();
            for &thing in &wanted {
                for &lamp in &lamps {
                    for start in starts(world, thing) {
                        keep(&mut best, light(start, thing, lamp));
                    }
                }
            }
        }
        TaskType::PickTwoObjAndPlace => {
            for r in targets(world, goal) {
                let outside: Vec<usize> =
                    wanted.iter().copied().filter(|&t| world.things[t].place != Some(r)).collect();
                let inside = wanted.len() - outside.len();
                for &first in &outside {
                    for start in starts(world, first) {
                        let Some(one) = start.deliver(first, goal, None, r) else { continue };
                        if inside >= 1 {
                            keep(&mut best, Some(one));
                            continue;
                        }
                        for &second in outside.iter().filter(|&&t| t != first) {
                            keep(&mut best, one.clone().deliver(second, goal, None, r));
                        }
                    }
                }
            }
        }
        _ => {
            let tools: Vec<Option<usize>> = match goal.task.tool() {
                None => vec![None],
                Some(kind) => {
                    (0..world.receptacles.len()).filter(|&r| world.receptacles[r].kind == kind).map(Some).collect()
                }
            };
            for &thing in &wanted {
                for start in starts(world, thing) {
                    for &tool in &tools {
                        for r in targets(world, goal) {
                            keep(&mut best, start.clone().deliver(thing, goal, tool, r));
                        }
                    }
                }
            }
        }
    }
    best.map(|way| way.commands)
}

fn targets<'a>(world: &'a World, goal: &'a Goal) -> impl Iterator<Item = usize> + 'a {
    (0..world.receptacles.len()).filter(|&r| world.receptacles[r].kind == goal.target)
}

fn keep<'a>(best: &mut Option<Way<'a>>, way: Option<Way<'a>>) {
    if let Some(way) = way
        && best.as_ref().is_none_or(|best| way.commands.len() < best.commands.len())
    {
        *best = Some(way);
    }
}

/// The ways to have `thing`, or nothing, in the hands.
fn starts(world: &World, thing: usize) -> Vec<Way<'_>> {
    let way = Way { world, at: world.at, held: world.held(), opened: Vec::new(), commands: Vec::new() };
    match way.held {
        Some(held) if held != thing => (0..world.receptacles.len())
            .filter(|&r| world.takes(r, held))
            .map(|r| {
                let mut way = way.clone();
                way.reach(r);
                way.unlock(r);
                way.commands.push(Command::Move(held, r));
                way.held = None;
                way
            })
            .collect(),
        _ => vec![way],
    }
}

/// Holds `thing` beside the lamp and switches that on.
fn light(mut way: Way<'_>, thing: usize, lamp: usize) -> Option<Way<'_>> {
    way.fetch(thing)?;
    let world = way.world;
    way.reach(world.things[lamp].place?);
    if !world.things[lamp].is.on {
        way.commands.push(Command::Use(lamp));
    }
    Some(way)
}

/// Commands so far and the little of the world that they have changed.
#[derive(Clone)]
struct Way<'a> {
    world: &'a World,
    at: Option<usize>,
    held: Option<usize>,
    /// Receptacles opened on the way.
    opened: Vec<usize>,
    commands: Vec<Command>,
}

impl Way<'_> {
    fn reach(&mut self, r: usize) {
        let location = self.world.receptacles[r].location;
        if self.at != Some(location) {
            self.commands.push(Command::GoTo(r));
            self.at = Some(location);
        }
    }

    fn unlock(&mut self, r: usize) {
        if !self.world.receptacles[r].accessible() && !self.opened.contains(&r) {
            self.commands.push(Command::Open(r));
            self.opened.push(r);
        }
    }

    /// Takes a thing, unless it is held.
    fn fetch(&mut self, thing: usize) -> Option<()> {
        if self.held == Some(thing) {
            return Some(());
        }
        let r = self.world.things[thing].place?;
        self.reach(r);
        self.unlock(r);
        self.commands.push(Command::Take(thing, r));
        self.held = Some(thing);
        Some(())
    }

    /// Fetches a thing, treats it with the tool if it needs that, and puts it into `r`.
    fn deliver(mut self, thing: usize, goal: &Goal, tool: Option<usize>, r: usize) -> Option<Self> {
        if !self.world.takes(r, thing) {
            return None;
        }
        self.fetch(thing)?;
        if let Some(tool) = tool.filter(|_| !goal.task.satisfied_by(self.world.things[thing].is)) {
            if !goal.task.suits(self.world.things[thing].can) {
                return None;
            }
            self.reach(tool);
            self.commands.push(match goal.task {
                TaskType::PickHeatThenPlaceInRecep => Command::Heat(thing, tool),
                TaskType::PickCoolThenPlaceInRecep => Command::Cool(thing, tool),
                _ => Command::Clean(thing, tool),
            });
        }
        self.reach(r);
        self.unlock(r);
        self.commands.push(Command::Move(thing, r));
        self.held = None;
        Some(self)
    }
}
