//! Questions about a room: ten kinds, each with up to four answers to choose from, of which one is right.

use super::room::{Facing, Object, Place, Room};
use crate::rng::NumpyGenerator;

/// Answers to choose from, at most.
const OPTIONS: usize = 4;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// In which compass direction one object lies from another.
    Direction,
    /// In which order objects are passed when turning clockwise.
    Rotation,
    /// On which side an object is for someone standing at another and facing north, east, south or west.
    Perspective,
    /// Where an object is, from the start.
    Location,
    /// What can be seen from the start in some direction.
    FieldOfView,
    /// How to get from one object to another.
    Navigation,
    /// How far apart two objects are.
    Distance,
    /// Which object is nearest to the start.
    Nearest,
    /// Which object lies furthest in some direction.
    Extreme,
    /// How many objects lie on one side of the start.
    Count,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 10] = [
        Kind::Direction,
        Kind::Rotation,
        Kind::Perspective,
        Kind::Location,
        Kind::FieldOfView,
        Kind::Navigation,
        Kind::Distance,
        Kind::Nearest,
        Kind::Extreme,
        Kind::Count,
    ];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "direction",
            "rotation",
            "perspective",
            "location",
            "fov",
            "navigation",
            "distance",
            "nearest",
            "extreme",
            "count",
        ][self as usize]
    }
}

/// A question with its possible answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it is about.
    pub kind: Kind,
    /// The question in words.
    pub text: String,
    /// Possible answers, different from each other.
    pub options: Vec<String>,
    /// Index of the right one.
    pub right: usize,
}

impl Question {
    /// A question of a random kind out of `kinds`.
    #[must_use]
    pub fn generate(room: &Room, kinds: &[Kind], stream: &mut NumpyGenerator) -> Self {
        let mut kinds = kinds.to_vec();
        // A kind may have no clear answer in this room; `Location` always has one.
        while !kinds.is_empty() {
            let kind = kinds.remove(pick(kinds.len(), stream));
            for _ in 0..20 {
                if let Some(question) = ask(room, kind, stream) {
                    return question;
                }
            }
        }
        loop {
            if let Some(question) = ask(room, Kind::Location, stream) {
                return question;
            }
        }
    }

    /// Whether a text gives the right answer: its letter or its words.
    #[must_use]
    pub fn is_right(&self, answer: &str) -> bool {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_alphanumeric() || *c == '-').flat_map(char::to_lowercase).collect()
        };
        let answer = plain(answer);
        let letter = plain(&letter(self.right).to_string());
        answer == letter || self.options.get(self.right).is_some_and(|right| plain(right) == answer)
    }
}

/// The letter of an answer.
#[must_use]
pub fn letter(i: usize) -> char {
    char::from(b'A' + (i % 26) as u8)
}

fn pick(n: usize, stream: &mut NumpyGenerator) -> usize {
    stream.integers(0, n as i64) as usize
}

/// Two different objects, in random order.
fn two<'a>(room: &'a Room, stream: &mut NumpyGenerator) -> (&'a Object, &'a Object) {
    let a = pick(room.objects.len(), stream);
    let b = (a + 1 + pick(room.objects.len() - 1, stream)) % room.objects.len();
    (&room.objects[a], &room.objects[b])
}

fn ask(room: &Room, kind: Kind, stream: &mut NumpyGenerator) -> Option<Question> {
    let objects = &room.objects;
    let (a, b) = two(room, stream);
    let facing = Facing::ALL[pick(4, stream)];
    let names = || -> Vec<String> { objects.iter().map(|object| object.name.to_owned()).collect() };
    let (text, right, others) = match kind {
        Kind::Direction => (
            format!("In which direction is the {} from the {}?", b.name, a.name),
            compass(a.place, b.place),
            COMPASS.map(str::to_owned).to_vec(),
        ),
        Kind::Rotation => {
            let order = by_bearing(room)?;
            let right = order.join(", ");
            let others = orders(&order).into_iter().map(|order| order.join(", ")).collect();
            let text = "At the start you face north and turn clockwise once around. In which order do you pass the \
                        objects?";
            (text.to_owned(), right, others)
        }
        Kind::Perspective => (
            format!("You stand at the {} and face {}. Where is the {}?", a.name, facing.name(), b.name),
            side(b.place.seen_from(a.place, facing)).to_owned(),
            SIDES.map(str::to_owned).to_vec(),
        ),
        Kind::Location => {
            let at = |place: Place| format!("{} east, {} north", place.x - room.start.x, place.y - room.start.y);
            let mut others: Vec<String> = objects.iter().map(|object| at(object.place)).collect();
            let Place { x, y } = a.place;
            others.extend([(1, 0), (0, 1), (-1, 1)].map(|(dx, dy)| at(Place { x: x + dx, y: y + dy })));
            (format!("Where is the {}, counted in cells from the start?", a.name), at(a.place), others)
        }
        Kind::FieldOfView => {
            let seen = |facing| {
                let names: Vec<&str> = room.view(room.start, facing).map(|object| object.name).collect();
                if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
            };
            let mut others: Vec<String> = Facing::ALL.iter().map(|&facing| seen(facing)).collect();
            others.extend(names());
            others.extend(["nothing".to_owned(), names().join(", ")]);
            (format!("What do you see from the start when you face {}?", facing.name()), seen(facing), others)
        }
        Kind::Navigation => {
            let (dx, dy) = (b.place.x - a.place.x, b.place.y - a.place.y);
            let others = [(dy, dx), (-dx, dy), (dx, -dy), (-dx, -dy), (dx + 1, dy), (dx, dy + 1)];
            (
                format!("How do you walk from the {} to the {}?", a.name, b.name),
                way(dx, dy),
                others.map(|(dx, dy)| way(dx, dy)).to_vec(),
            )
        }
        Kind::Distance => {
            let distance = a.place.distance(b.place);
            let others = [-2, -1, 1, 2, 3].map(|by| distance + by).into_iter().filter(|&other| other > 0);
            (
                format!("How many cells apart are the {} and the {}, along rows and columns?", a.name, b.name),
                distance.to_string(),
                others.map(|other| other.to_string()).collect(),
            )
        }
        Kind::Nearest => {
            let right = only_least(objects, |object| object.place.distance(room.start))?;
            let text = "Which object is nearest to the start, along rows and columns?";
            (text.to_owned(), right.name.to_owned(), names())
        }
        Kind::Extreme => {
            let far = |object: &Object| -object.place.seen_from(room.start, facing).0;
            (format!("Which object is furthest {}?", facing.name()), only_least(objects, far)?.name.to_owned(), names())
        }
        Kind::Count => {
            let count = objects.iter().filter(|object| object.place.seen_from(room.start, facing).0 > 0).count();
            (
                format!("How many objects are further {} than the start?", facing.name()),
                count.to_string(),
                (0..=objects.len()).map(|n| n.to_string()).collect(),
            )
        }
    };
    with_options(kind, text, right, others, stream)
}

/// Puts the right answer among some wrong ones; `None` when there are no wrong ones.
fn with_options(
    kind: Kind,
    text: String,
    right: String,
    mut others: Vec<String>,
    stream: &mut NumpyGenerator,
) -> Option<Question> {
    let mut options = vec![right.clone()];
    while options.len() < OPTIONS && !others.is_empty() {
        let other = others.swap_remove(pick(others.len(), stream));
        if !options.contains(&other) {
            options.push(other);
        }
    }
    if options.len() < 2 {
        return None;
    }
    for i in (1..options.len()).rev() {
        options.swap(i, pick(i + 1, stream));
    }
    let right = options.iter().position(|option| *option == right)?;
    Some(Question { kind, text, options, right })
}

const COMPASS: [&str; 8] = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
const SIDES: [&str; 8] = [
    "ahead",
    "ahead to the right",
    "right",
    "behind to the right",
    "behind",
    "behind to the left",
    "left",
    "ahead to the left",
];

/// Sector 0 to 7, clockwise from straight ahead; only exact alignment is straight.
fn sector(ahead: i32, right: i32) -> usize {
    match (ahead.signum(), right.signum()) {
        (1, 0) => 0,
        (1, 1) => 1,
        (0, 1) => 2,
        (-1, 1) => 3,
        (-1, 0) => 4,
        (-1, -1) => 5,
        (0, -1) => 6,
        (1, -1) => 7,
        _ => 0,
    }
}

fn compass(from: Place, to: Place) -> String {
    COMPASS[sector(to.y - from.y, to.x - from.x)].to_owned()
}

fn side((ahead, right): (i32, i32)) -> &'static str {
    SIDES[sector(ahead, right)]
}

fn way(dx: i32, dy: i32) -> String {
    let part = |n: i32, plus: &str, minus: &str| match n {
        0 => None,
        n => Some(format!("{} {}", n.abs(), if n > 0 { plus } else { minus })),
    };
    let parts: Vec<String> = [part(dx, "east", "west"), part(dy, "north", "south")].into_iter().flatten().collect();
    if parts.is_empty() { "stay".to_owned() } else { parts.join(", ") }
}

/// Names in the order in which they are passed turning clockwise from north; `None` when two lie in one line.
fn by_bearing(room: &Room) -> Option<Vec<&'static str>> {
    // (half of the circle, slope within it) orders bearings without trigonometry.
    let compare = |a: &(i32, i32), b: &(i32, i32)| {
        let half = |&(dy, dx): &(i32, i32)| u8::from(!(dx > 0 || dx == 0 && dy > 0));
        half(a).cmp(&half(b)).then_with(|| 0.cmp(&(a.0 * b.1 - a.1 * b.0)))
    };
    let mut seen: Vec<((i32, i32), &'static str)> =
        room.objects.iter().map(|object| (object.place.seen_from(room.start, Facing::North), object.name)).collect();
    seen.sort_by(|a, b| compare(&a.0, &b.0));
    let apart = seen.windows(2).all(|pair| compare(&pair[0].0, &pair[1].0).is_ne());
    apart.then(|| seen.into_iter().map(|(_, name)| name).collect())
}

/// Other orders of the same names: neighbours swapped, and the whole reversed.
fn orders(names: &[&'static str]) -> Vec<Vec<&'static str>> {
    let mut found: Vec<Vec<_>> = (1..names.len())
        .map(|i| {
            let mut other = names.to_vec();
            other.swap(i - 1, i);
            other
        })
        .collect();
    found.push(names.iter().rev().copied().collect());
    let mut turned = names.to_vec();
    turned.rotate_left(1);
    found.push(turned);
    found
}

/// The object of the least value, unless two share it.
fn only_least(objects: &[Object], value: impl Fn(&Object) -> i32) -> Option<&Object> {
    let least = objects.iter().map(&value).min()?;
    let mut all = objects.iter().filter(|object| value(object) == least);
    all.next().filter(|_| all.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(objects: &[(&'static str, i32, i32)]) -> Room {
        let objects = objects.iter().map(|&(name, x, y)| Object { name, place: Place { x, y } }).collect();
        Room { size: (10, 10), objects, start: Place { x: 5, y: 5 } }
    }

    #[test]
    fn answers_by_hand() {
        let at = |x, y| Place { x, y };
        assert_eq!(compass(at(1, 1), at(1, 4)), "north");
        assert_eq!(compass(at(1, 1), at(0, 0)), "south-west");
        assert_eq!(side(at(1, 4).seen_from(at(1, 1), Facing::East)), "left");
        assert_eq!(side(at(3, 0).seen_from(at(1, 1), Facing::South)), "ahead to the left");
        assert_eq!((way(3, -2), way(0, 1)), ("3 east, 2 south".to_owned(), "1 north".to_owned()));
        let room = room(&[("lamp", 5, 3), ("sofa", 4, 9), ("desk", 6, 9), ("clock", 9, 5)]);
        assert_eq!(by_bearing(&room), Some(vec!["desk", "clock", "lamp", "sofa"]));
        assert_eq!(only_least(&room.objects, |object| object.place.distance(room.start)).map(|o| o.name), Some("lamp"));
        assert_eq!(only_least(&room.objects, |object| -object.place.y), None);
    }

    #[test]
    fn in_line_there_is_no_order() {
        assert_eq!(by_bearing(&room(&[("lamp", 5, 6), ("sofa", 5, 8)])), None);
        assert!(by_bearing(&room(&[("lamp", 5, 6), ("sofa", 5, 2)])).is_some());
    }

    #[test]
    fn every_kind_is_asked_with_one_right_answer() {
        let mut stream = NumpyGenerator::new(1);
        for kind in Kind::ALL {
            let (mut asked, mut rights) = (0, [0; OPTIONS]);
            for _ in 0..200 {
                let room = Room::generate((10, 10), 3, &mut stream);
                let question = Question::generate(&room, &[kind], &mut stream);
                asked += usize::from(question.kind == kind);
                rights[question.right] += 1;
                assert!((2..=OPTIONS).contains(&question.options.len()), "{question:?}");
                for (i, option) in question.options.iter().enumerate() {
                    assert_eq!(question.is_right(option), i == question.right, "{question:?}");
                    assert_eq!(question.is_right(&letter(i).to_string()), i == question.right);
                }
                assert!(!question.is_right(""));
            }
            // Three objects are three answers at most where the answer is one of them.
            assert!(asked > 150 && rights[..3].iter().all(|&n| n > 15), "{kind:?}: {asked} {rights:?}");
        }
    }
}
