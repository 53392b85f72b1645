//! The room: cells, objects, and what can be seen from where.

use crate::rng::NumpyGenerator;

/// Names that objects take.
pub const OBJECTS: [&str; 16] = [
    "chair", "table", "lamp", "sofa", "plant", "desk", "shelf", "clock", "mirror", "basket", "piano", "stove",
    "ladder", "barrel", "statue", "trunk",
];

/// A compass direction, clockwise from north.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Facing {
    /// Towards greater y.
    North,
    /// Towards greater x.
    East,
    /// Towards smaller y.
    South,
    /// Towards smaller x.
    West,
}

impl Facing {
    /// All of them, clockwise.
    pub const ALL: [Facing; 4] = [Facing::North, Facing::East, Facing::South, Facing::West];

    /// Its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["north", "east", "south", "west"][self as usize]
    }

    /// The direction after so many quarter turns clockwise.
    #[must_use]
    pub fn turned(self, quarters: usize) -> Self {
        Self::ALL[(self as usize + quarters) % 4]
    }
}

/// A cell, counted from the south-west corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Eastwards.
    pub x: i32,
    /// Northwards.
    pub y: i32,
}

impl Place {
    /// How far another place lies ahead and to the right of someone here who faces this way.
    #[must_use]
    pub fn seen_from(self, viewer: Place, facing: Facing) -> (i32, i32) {
        let (dx, dy) = (self.x - viewer.x, self.y - viewer.y);
        match facing {
            Facing::North => (dy, dx),
            Facing::East => (dx, -dy),
            Facing::South => (-dy, -dx),
            Facing::West => (-dx, dy),
        }
    }

    /// Cells between two places, along rows and columns.
    #[must_use]
    pub fn distance(self, other: Place) -> i32 {
        (self.x - other.x).abs() + (self.y - other.y).abs()
    }
}

/// An object and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Out of [`OBJECTS`].
    pub name: &'static str,
    /// Its cell.
    pub place: Place,
}

/// A room with its objects and the place where the agent begins, facing north.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Cells from west to east and from south to north.
    pub size: (i32, i32),
    /// Objects, each on a cell of its own.
    pub objects: Vec<Object>,
    /// Where the agent begins.
    pub start: Place,
}

impl Room {
    /// A random room.
    #[must_use]
    pub fn generate(size: (i32, i32), objects: usize, stream: &mut NumpyGenerator) -> Self {
        let mut taken: Vec<Place> = Vec::new();
        let mut place = |stream: &mut NumpyGenerator| loop {
            let x = stream.integers(0, i64::from(size.0)) as i32;
            let y = stream.integers(0, i64::from(size.1)) as i32;
            let place = Place { x, y };
            if !taken.contains(&place) {
                taken.push(place);
                return place;
            }
        };
        let start = place(stream);
        let mut names = OBJECTS.to_vec();
        let objects = (0..objects.min(OBJECTS.len()))
            .map(|_| {
                let name = names.swap_remove(stream.integers(0, names.len() as i64) as usize);
                Object { name, place: place(stream) }
            })
            .collect();
        Self { size, objects, start }
    }

    /// The object of a name, without regard to case.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<&Object> {
        self.objects.iter().find(|object| object.name.eq_ignore_ascii_case(name.trim()))
    }

    /// The objects in view for someone at `place` facing `facing`, with what they see within 45 degrees to either side;
    /// an object underfoot is in view too.
    pub fn view(&self, place: Place, facing: Facing) -> impl Iterator<Item = &Object> + '_ {
        self.objects.iter().filter(move |object| {
            let (ahead, right) = object.place.seen_from(place, facing);
            ahead >= right.abs()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_is_a_quarter_of_the_room() {
        let at = |x, y| Place { x, y };
        assert_eq!(at(3, 5).seen_from(at(1, 1), Facing::North), (4, 2));
        assert_eq!(at(3, 5).seen_from(at(1, 1), Facing::East), (2, -4));
        assert_eq!(at(3, 5).seen_from(at(1, 1), Facing::South), (-4, -2));
        assert_eq!(at(3, 5).seen_from(at(1, 1), Facing::West), (-2, 4));
        for seed in 0..100 {
            let room = Room::generate((10, 10), 5, &mut NumpyGenerator::new(seed));
            // All around, everything is seen at least once.
            for object in &room.objects {
                let seen = Facing::ALL
                    .iter()
                    .filter(|&&facing| room.view(room.start, facing).any(|other| other.name == object.name));
                assert!((1..=2).contains(&seen.count()));
                assert!(room.objects.iter().filter(|other| other.place == object.place).count() == 1);
            }
        }
    }
}
