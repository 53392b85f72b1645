//! A room with its receptacles and the things in them: what may be done, and what it changes.
//!
//! The rules are those of ALFWorld's text engine. What is not here: the words, which are in `text`.

use std::collections::BTreeSet;

/// Something that holds things and does not move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receptacle {
    /// Kind and number, e.g. `cabinet 3`.
    pub name: String,
    /// Kind in lower case, e.g. `cabinet`.
    pub kind: String,
    /// Where one stands to use it. Receptacles may share a location.
    pub location: usize,
    /// It has a door, and shows nothing while that is closed.
    pub openable: bool,
    /// Its door is open.
    pub open: bool,
}

impl Receptacle {
    /// What is inside can be seen and reached.
    #[must_use]
    pub fn accessible(&self) -> bool {
        !self.openable || self.open
    }
}

/// What can be done with a thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It can be carried.
    pub pickupable: bool,
    /// A sink cleans it.
    pub cleanable: bool,
    /// A microwave heats it.
    pub heatable: bool,
    /// A fridge cools it.
    pub coolable: bool,
    /// A knife slices it.
    pub sliceable: bool,
    /// It can be switched on.
    pub toggleable: bool,
    /// It is a vessel. Nothing can be put into it here.
    pub vessel: bool,
}

/// What has been done to a thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Cleaned.
    pub clean: bool,
    /// Heated, and not cooled since.
    pub hot: bool,
    /// Cooled, and not heated since.
    pub cool: bool,
    /// Sliced.
    pub sliced: bool,
    /// Switched on.
    pub on: bool,
}

/// A thing in the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// Kind and number, e.g. `mug 2`.
    pub name: String,
    /// Kind in lower case, e.g. `mug`.
    pub kind: String,
    /// The receptacle it is in; `None` while it is held.
    pub place: Option<usize>,
    /// What can be done with it.
    pub can: Abilities,
    /// What has been done to it.
    pub is: Condition,
}

/// A room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Receptacles in the order in which they are listed.
    pub receptacles: Vec<Receptacle>,
    /// Things in the order in which they are listed.
    pub things: Vec<Thing>,
    /// Which kind of receptacle takes which kind of thing.
    pub fits: BTreeSet<(String, String)>,
    /// The location of the agent; `None` before it has gone anywhere.
    pub at: Option<usize>,
}

/// Something to do. Numbers are positions in the lists of the [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Walk to a receptacle.
    GoTo(usize),
    /// Open a receptacle.
    Open(usize),
    /// Close a receptacle.
    Close(usize),
    /// Take a thing (first) out of a receptacle.
    Take(usize, usize),
    /// Put the held thing (first) into a receptacle.
    Move(usize, usize),
    /// Clean the held thing (first) with a sink.
    Clean(usize, usize),
    /// Heat the held thing (first) with a microwave.
    Heat(usize, usize),
    /// Cool the held thing (first) with a fridge.
    Cool(usize, usize),
    /// Switch a thing on.
    Use(usize),
    /// Slice a thing (first) with the held knife.
    Slice(usize, usize),
    /// Look at a receptacle.
    ExamineReceptacle(usize),
    /// Look at the held thing.
    ExamineThing(usize),
    /// Look around.
    Look,
    /// Say what is held.
    Inventory,
    /// List the commands.
    Help,
}

impl World {
    /// The held thing.
    #[must_use]
    pub fn held(&self) -> Option<usize> {
        self.things.iter().position(|thing| thing.place.is_none())
    }

    /// Things in a receptacle, in their order.
    pub fn inside(&self, receptacle: usize) -> impl Iterator<Item = &Thing> {
        self.things.iter().filter(move |thing| thing.place == Some(receptacle))
    }

    /// The location of a thing: that of its receptacle, and none while it is held.
    #[must_use]
    pub fn location_of(&self, thing: usize) -> Option<usize> {
        self.receptacles.get(self.things.get(thing)?.place?).map(|receptacle| receptacle.location)
    }

    /// A receptacle takes a thing, by their kinds.
    #[must_use]
    pub fn takes(&self, receptacle: usize, thing: usize) -> bool {
        self.fits.contains(&(self.receptacles[receptacle].kind.clone(), self.things[thing].kind.clone()))
    }

    /// Receptacles at the agent's location.
    pub fn here(&self) -> impl Iterator<Item = usize> {
        let at = self.at;
        (0..self.receptacles.len()).filter(move |&r| at == Some(self.receptacles[r].location))
    }

    /// Everything that may be done now, in no particular order.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        let mut commands = vec![Command::Look, Command::Inventory, Command::Help];
        let held = self.held();
        for (r, receptacle) in self.receptacles.iter().enumerate() {
            if self.at != Some(receptacle.location) {
                commands.push(Command::GoTo(r));
                continue;
            }
            commands.push(Command::ExamineReceptacle(r));
            if receptacle.openable {
                commands.push(if receptacle.open { Command::Close(r) } else { Command::Open(r) });
            }
            match held {
                Some(thing) => self.with_held(thing, r, &mut commands),
                None if receptacle.accessible() => {
                    let here = self.things.iter().enumerate().filter(|(_, t)| t.place == Some(r) && t.can.pickupable);
                    commands.extend(here.map(|(thing, _)| Command::Take(thing, r)));
                }
                None => {}
            }
        }
        let knife = held.filter(|&thing| matches!(self.things[thing].kind.as_str(), "knife" | "butterknife"));
        for (t, thing) in self.things.iter().enumerate() {
            if self.at.is_none() || self.location_of(t) != self.at {
                continue;
            }
            if thing.can.toggleable {
                commands.push(Command::Use(t));
            }
            if let Some(knife) = knife.filter(|_| thing.can.sliceable) {
                commands.push(Command::Slice(t, knife));
            }
        }
        commands.extend(held.map(Command::ExamineThing));
        commands
    }

    /// What the held thing allows at a receptacle.
    fn with_held(&self, thing: usize, r: usize, commands: &mut Vec<Command>) {
        let can = self.things[thing].can;
        if self.receptacles[r].accessible() && self.takes(r, thing) {
            commands.push(Command::Move(thing, r));
        }
        match self.receptacles[r].kind.as_str() {
            "sinkbasin" if can.cleanable => commands.push(Command::Clean(thing, r)),
            "microwave" if can.heatable => commands.push(Command::Heat(thing, r)),
            "fridge" if can.coolable => commands.push(Command::Cool(thing, r)),
            _ => {}
        }
    }

    /// Executes a command, which has to be one of [`World::commands`].
    pub fn apply(&mut self, command: Command) {
        match command {
            Command::GoTo(r) => self.at = Some(self.receptacles[r].location),
            Command::Open(r) => self.receptacles[r].open = true,
            Command::Close(r) => self.receptacles[r].open = false,
            Command::Take(thing, _) => self.things[thing].place = None,
            Command::Move(thing, r) => self.things[thing].place = Some(r),
            Command::Clean(thing, _) => self.things[thing].is.clean = true,
            Command::Heat(thing, _) => {
                let is = &mut self.things[thing].is;
                (is.hot, is.cool) = (true, false);
            }
            Command::Cool(thing, _) => {
                let is = &mut self.things[thing].is;
                (is.hot, is.cool) = (false, true);
            }
            Command::Use(thing) => self.things[thing].is.on = true,
            Command::Slice(thing, _) => self.things[thing].is.sliced = true,
            Command::ExamineReceptacle(_)
            | Command::ExamineThing(_)
            | Command::Look
            | Command::Inventory
            | Command::Help => {}
        }
    }
}
