//! The words of a room: how commands are written, what they answer, how a game begins. All of it in ALFWorld's grammar.

use super::world::{Command, Thing, World};

/// The answer to a command that is unknown or not possible.
pub const NOTHING: &str = "Nothing happens.";

/// What stands in the help: a command and what it does.
const HELP: [(&str, &str); 13] = [
    ("look:", "look around your current location"),
    ("inventory:", "check your current inventory"),
    ("go to (receptacle):", "move to a receptacle"),
    ("open (receptacle):", "open a receptacle"),
    ("close (receptacle):", "close a receptacle"),
    ("take (object) from (receptacle):", "take an object from a receptacle"),
    ("move (object) to (receptacle):", "place an object in or on a receptacle"),
    ("examine (something):", "examine a receptacle or an object"),
    ("use (object):", "use an object"),
    ("heat (object) with (receptacle):", "heat an object using a receptacle"),
    ("clean (object) with (receptacle):", "clean an object using a receptacle"),
    ("cool (object) with (receptacle):", "cool an object using a receptacle"),
    ("slice (object) with (object):", "slice an object using a sharp object"),
];

/// A command as the player types it.
#[must_use]
pub fn command(world: &World, command: Command) -> String {
    let r = |i: usize| &world.receptacles[i].name;
    let t = |i: usize| &world.things[i].name;
    match command {
        Command::GoTo(to) => format!("go to {}", r(to)),
        Command::Open(it) => format!("open {}", r(it)),
        Command::Close(it) => format!("close {}", r(it)),
        Command::Take(thing, from) => format!("take {} from {}", t(thing), r(from)),
        Command::Move(thing, to) => format!("move {} to {}", t(thing), r(to)),
        Command::Clean(thing, with) => format!("clean {} with {}", t(thing), r(with)),
        Command::Heat(thing, with) => format!("heat {} with {}", t(thing), r(with)),
        Command::Cool(thing, with) => format!("cool {} with {}", t(thing), r(with)),
        Command::Use(thing) => format!("use {}", t(thing)),
        Command::Slice(thing, knife) => format!("slice {} with {}", t(thing), t(knife)),
        Command::ExamineReceptacle(it) => format!("examine {}", r(it)),
        Command::ExamineThing(it) => format!("examine {}", t(it)),
        Command::Look => "look".to_owned(),
        Command::Inventory => "inventory".to_owned(),
        Command::Help => "help".to_owned(),
    }
}

/// What the player reads after a command that has just been executed in `world`.
#[must_use]
pub fn feedback(world: &World, command: Command) -> String {
    let r = |i: usize| &world.receptacles[i].name;
    let t = |i: usize| &world.things[i].name;
    match command {
        Command::GoTo(to) => format!("You arrive at {}. {}", r(to), receptacle(world, to)),
        Command::Open(it) => format!("You open the {}. {}", r(it), receptacle(world, it)),
        Command::Close(it) => format!("You close the {}.", r(it)),
        Command::Take(thing, from) => format!("You pick up the {} from the {}.", t(thing), r(from)),
        Command::Move(thing, to) => format!("You move the {} to the {}.", t(thing), r(to)),
        Command::Clean(thing, with) => format!("You clean the {} using the {}.", t(thing), r(with)),
        Command::Heat(thing, with) => format!("You heat the {} using the {}.", t(thing), r(with)),
        Command::Cool(thing, with) => format!("You cool the {} using the {}.", t(thing), r(with)),
        Command::Use(thing) => format!("You turn on the {}.", t(thing)),
        Command::Slice(thing, knife) => format!("You sliced the {} with the {}.", t(thing), t(knife)),
        Command::ExamineReceptacle(it) => receptacle(world, it),
        Command::ExamineThing(it) => thing(&world.things[it]),
        Command::Look => look(world),
        Command::Inventory => match world.held() {
            Some(held) => format!("You are carrying: a {}.", t(held)),
            None => "You are not carrying anything.".to_owned(),
        },
        Command::Help => help(),
    }
}

/// The first text of a game.
#[must_use]
pub fn intro(world: &World, task: &str) -> String {
    format!(
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see \
         {}.\n\nYour task is to: {task}.",
        list(world.receptacles.iter().map(|receptacle| receptacle.name.as_str()))
    )
}

/// A receptacle with what can be seen in it.
fn receptacle(world: &World, r: usize) -> String {
    let receptacle = &world.receptacles[r];
    let name = &receptacle.name;
    let inside = || list(world.inside(r).map(|thing| thing.name.as_str()));
    match (receptacle.openable, receptacle.open) {
        (true, false) => format!("The {name} is closed."),
        (true, true) => format!("The {name} is open. In it, you see {}.", inside()),
        (false, _) => format!("On the {name}, you see {}.", inside()),
    }
}

/// The state of a held thing.
fn thing(thing: &Thing) -> String {
    let (name, is) = (&thing.name, thing.is);
    if thing.can.vessel {
        return format!("This is a normal {name}. In it, you see nothing.");
    }
    let sliced = if is.sliced { "sliced " } else { "" };
    let state = match (is.clean, is.hot, is.cool) {
        (true, true, _) => "hot and clean ",
        (true, false, true) => "cool and clean ",
        (true, false, false) => "clean ",
        (false, true, _) => "hot ",
        // The reference's word for a cool thing changes when it is sliced.
        (false, false, true) if is.sliced => "cool ",
        (false, false, true) => "cold ",
        (false, false, false) => "",
    };
    if state.is_empty() && sliced.is_empty() {
        return format!("There's nothing special about {name}.");
    }
    format!("This is a {state}{sliced}{name}.")
}

fn look(world: &World) -> String {
    let here = list_of(world.here().map(|r| format!("the {}", world.receptacles[r].name)).collect());
    match here {
        None => "You are in the middle of a room. Looking quickly around you, you see nothing.".to_owned(),
        Some(here) => format!("You are facing {here}. Next to it, you see nothing."),
    }
}

fn help() -> String {
    let mut text = "Available commands:\n".to_owned();
    for (command, meaning) in HELP {
        // One line of the reference is not aligned with the others.
        let width = if command.starts_with("move") { command.len() + 2 } else { 34 };
        text.push_str(&format!("  {command:<width$}{meaning}\n"));
    }
    text
}

/// Names in a row, each with its article.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    list_of(names.map(|name| format!("a {name}")).collect()).unwrap_or_else(|| "nothing".to_owned())
}

fn list_of(names: Vec<String>) -> Option<String> {
    let (last, rest) = names.split_last()?;
    Some(if rest.is_empty() { last.clone() } else { format!("{}, and {last}", rest.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alfworld::world::{Abilities, Condition};

    #[test]
    fn conditions_in_words() {
        let say = |clean, hot, cool, sliced| {
            thing(&Thing {
                name: "apple 1".to_owned(),
                kind: "apple".to_owned(),
                place: None,
                can: Abilities::default(),
                is: Condition { clean, hot, cool, sliced, on: false },
            })
        };
        assert_eq!(say(false, false, false, false), "There's nothing special about apple 1.");
        assert_eq!(say(true, true, false, true), "This is a hot and clean sliced apple 1.");
        assert_eq!(say(true, false, true, false), "This is a cool and clean apple 1.");
        assert_eq!(say(false, false, true, false), "This is a cold apple 1.");
        assert_eq!(say(false, false, true, true), "This is a cool sliced apple 1.");
        assert_eq!(say(false, false, false, true), "This is a sliced apple 1.");
        assert_eq!(say(true, false, false, false), "This is a clean apple 1.");
    }

    #[test]
    fn lists_in_words() {
        assert_eq!(list(std::iter::empty()), "nothing");
        assert_eq!(list(["b 1"].into_iter()), "a b 1");
        assert_eq!(list(["b 1", "c 2"].into_iter()), "a b 1, and a c 2");
        assert_eq!(list(["b 1", "c 2", "d 3"].into_iter()), "a b 1, a c 2, and a d 3");
    }
}
