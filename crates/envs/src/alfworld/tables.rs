//! What there is in a household: receptacles, things, and where which thing belongs.
//!
//! These are our own tables of plain facts, smaller than ALFWorld's and never at odds with them.

use super::world::Abilities;

/// A kind of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Kitchen.
    Kitchen,
    /// Living room.
    LivingRoom,
    /// Bedroom.
    Bedroom,
    /// Bathroom.
    Bathroom,
}

impl Room {
    /// All of them.
    pub const ALL: [Room; 4] = [Room::Kitchen, Room::LivingRoom, Room::Bedroom, Room::Bathroom];

    fn letter(self) -> char {
        match self {
            Room::Kitchen => 'K',
            Room::LivingRoom => 'L',
            Room::Bedroom => 'B',
            Room::Bathroom => 'H',
        }
    }
}

/// Receptacles of a room: kind, fewest and most.
#[must_use]
pub fn receptacles(room: Room) -> &'static [(&'static str, u64, u64)] {
    match room {
        Room::Kitchen => &[
            ("cabinet", 2, 6),
            ("coffeemachine", 0, 1),
            ("countertop", 1, 3),
            ("diningtable", 0, 1),
            ("drawer", 1, 4),
            ("fridge", 1, 1),
            ("garbagecan", 1, 1),
            ("microwave", 1, 1),
            ("shelf", 0, 2),
            ("sinkbasin", 1, 1),
            ("stoveburner", 1, 3),
        ],
        Room::LivingRoom => &[
            ("armchair", 1, 2),
            ("coffeetable", 1, 2),
            ("diningtable", 0, 1),
            ("drawer", 0, 3),
            ("dresser", 0, 1),
            ("garbagecan", 1, 1),
            ("ottoman", 0, 1),
            ("safe", 0, 1),
            ("shelf", 0, 3),
            ("sidetable", 1, 3),
            ("sofa", 1, 1),
        ],
        Room::Bedroom => &[
            ("bed", 1, 1),
            ("desk", 1, 2),
            ("drawer", 2, 5),
            ("dresser", 0, 1),
            ("garbagecan", 1, 1),
            ("laundryhamper", 0, 1),
            ("safe", 0, 1),
            ("shelf", 0, 4),
            ("sidetable", 1, 2),
        ],
        Room::Bathroom => &[
            ("bathtubbasin", 0, 1),
            ("cabinet", 2, 4),
            ("countertop", 1, 2),
            ("drawer", 0, 3),
            ("garbagecan", 1, 1),
            ("handtowelholder", 1, 2),
            ("shelf", 0, 2),
            ("sinkbasin", 1, 2),
            ("toilet", 1, 1),
            ("toiletpaperhanger", 1, 1),
            ("towelholder", 1, 2),
        ],
    }
}

/// Receptacles with a door.
#[must_use]
pub fn openable(receptacle: &str) -> bool {
    matches!(receptacle, "cabinet" | "drawer" | "fridge" | "microwave" | "safe")
}

/// A kind of thing.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// `c` cleanable, `h` heatable, `k` coolable, `s` sliceable, `v` a vessel, `l` a lamp, which cannot be carried.
    traits: &'static str,
    /// Rooms it occurs in, by their letters K, L, B, H.
    rooms: &'static str,
    /// Receptacles it belongs in. Lamps stand there but cannot be moved.
    places: &'static str,
}

impl Kind {
    /// What can be done with it.
    #[must_use]
    pub fn can(&self) -> Abilities {
        let has = |letter| self.traits.contains(letter);
        Abilities {
            pickupable: !has('l'),
            cleanable: has('c'),
            heatable: has('h'),
            coolable: has('k'),
            sliceable: has('s'),
            toggleable: has('l'),
            vessel: has('v'),
        }
    }

    /// It occurs in this kind of room.
    #[must_use]
    pub fn occurs_in(&self, room: Room) -> bool {
        self.rooms.contains(room.letter())
    }

    /// The kinds of receptacles it belongs in.
    pub fn places(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.places.split(' ')
    }
}

const fn kind(name: &'static str, traits: &'static str, rooms: &'static str, places: &'static str) -> Kind {
    Kind { name, traits, rooms, places }
}

const CUTLERY: &str = "countertop diningtable drawer sinkbasin";
const SHAKERS: &str = "cabinet countertop diningtable drawer shelf";
const SMALL: &str = "armchair bed coffeetable desk diningtable drawer dresser shelf sidetable sofa";
const VALUABLE: &str = "coffeetable desk diningtable drawer dresser safe shelf sidetable";
const WRITING: &str = "desk drawer dresser garbagecan shelf sidetable";
const TOILETRIES: &str = "cabinet countertop drawer garbagecan shelf toilet";

/// All things, by name.
pub const THINGS: &[Kind] = &[
    kind("alarmclock", "", "B", "desk dresser shelf sidetable"),
    kind("apple", "chks", "K", "countertop diningtable fridge garbagecan microwave sinkbasin"),
    kind("basketball", "", "B", "bed desk dresser"),
    kind("book", "", "LB", SMALL),
    kind("bowl", "ckv", "KB", "cabinet countertop desk diningtable dresser fridge microwave shelf sidetable sinkbasin"),
    kind("box", "v", "L", "armchair coffeetable diningtable dresser ottoman shelf sidetable sofa"),
    kind("bread", "hks", "K", "countertop diningtable fridge garbagecan microwave"),
    kind("butterknife", "c", "K", CUTLERY),
    kind("candle", "", "H", "cabinet countertop drawer shelf toilet"),
    kind("cd", "", "B", "desk drawer dresser garbagecan safe shelf sidetable"),
    kind("cellphone", "", "LB", SMALL),
    kind(
        "cloth",
        "c",
        "BH",
        "bathtubbasin cabinet countertop desk drawer dresser garbagecan laundryhamper shelf sinkbasin toilet",
    ),
    kind("creditcard", "", "LB", VALUABLE),
    kind("cup", "chkv", "K", "cabinet countertop diningtable fridge microwave shelf sinkbasin"),
    kind("desklamp", "l", "LB", "desk dresser sidetable"),
    kind(
        "dishsponge",
        "c",
        "KH",
        "bathtubbasin cabinet countertop diningtable drawer garbagecan shelf sinkbasin toilet",
    ),
    kind("egg", "chks", "K", "countertop diningtable fridge garbagecan microwave sinkbasin"),
    kind("fork", "c", "K", CUTLERY),
    kind("glassbottle", "", "K", "cabinet countertop diningtable fridge microwave shelf sinkbasin"),
    kind(
        "handtowel",
        "",
        "H",
        "bathtubbasin cabinet countertop drawer garbagecan handtowelholder shelf sinkbasin toilet",
    ),
    kind("kettle", "c", "K", "cabinet countertop diningtable shelf sinkbasin stoveburner"),
    kind("keychain", "", "LB", VALUABLE),
    kind("knife", "c", "K", CUTLERY),
    kind("ladle", "c", "K", "cabinet countertop diningtable drawer sinkbasin"),
    kind("laptop", "", "LB", "armchair bed coffeetable desk diningtable dresser ottoman sidetable sofa"),
    kind("lettuce", "cks", "K", "countertop diningtable fridge garbagecan sinkbasin"),
    kind(
        "mug",
        "chkv",
        "KB",
        "cabinet coffeemachine countertop desk diningtable dresser fridge microwave shelf sidetable sinkbasin",
    ),
    kind("newspaper", "", "L", "armchair coffeetable diningtable drawer garbagecan ottoman shelf sidetable sofa"),
    kind("pan", "ckv", "K", "cabinet countertop diningtable fridge sinkbasin stoveburner"),
    kind("pen", "", "B", WRITING),
    kind("pencil", "", "B", WRITING),
    kind("peppershaker", "", "K", SHAKERS),
    kind("pillow", "", "LB", "armchair bed ottoman sofa"),
    kind("plate", "chkv", "K", "cabinet countertop diningtable fridge microwave shelf sinkbasin"),
    kind("pot", "ckv", "K", "cabinet countertop diningtable fridge shelf sinkbasin stoveburner"),
    kind("potato", "chks", "K", "countertop diningtable fridge garbagecan microwave sinkbasin"),
    kind("remotecontrol", "", "L", "armchair coffeetable diningtable drawer dresser ottoman shelf sidetable sofa"),
    kind("saltshaker", "", "K", SHAKERS),
    kind("soapbar", "c", "H", "bathtubbasin cabinet countertop drawer garbagecan shelf sinkbasin toilet"),
    kind("soapbottle", "", "KH", TOILETRIES),
    kind("spatula", "c", "K", CUTLERY),
    kind("spoon", "c", "K", CUTLERY),
    kind("spraybottle", "", "H", TOILETRIES),
    kind("statue", "", "L", "coffeetable diningtable dresser safe shelf sidetable"),
    kind("tennisracket", "", "B", "bed desk dresser"),
    kind("tissuebox", "", "LH", "cabinet coffeetable countertop diningtable drawer garbagecan shelf sidetable toilet"),
    kind("toiletpaper", "", "H", "cabinet countertop drawer garbagecan shelf toilet toiletpaperhanger"),
    kind("tomato", "chks", "K", "countertop diningtable fridge garbagecan microwave sinkbasin"),
    kind("towel", "", "H", "towelholder"),
    kind("vase", "", "L", "coffeetable diningtable dresser safe shelf sidetable"),
    kind("watch", "", "LB", VALUABLE),
    kind("winebottle", "k", "K", "cabinet countertop diningtable fridge garbagecan shelf"),
];
