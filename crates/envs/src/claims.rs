//! What reasoning claims about a grid world: who is where, and which way the first move goes. A reader of plain words
//! that knows no environment; comparing with the state is each environment's own.

use std::cmp::Ordering;

/// Whom a position is claimed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The player.
    Player,
    /// A box.
    Box,
    /// A target or goal.
    Target,
    /// A hole.
    Hole,
    /// A place to go to: a plan, not a claim.
    Plan,
}

/// The claims of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Positions (row, column) with their owners, in the order of the text.
    pub positions: Vec<(Role, (usize, usize))>,
    /// How far the target lies from what has to get there, (rows down, columns right), where the text says so.
    pub offset: Option<(isize, isize)>,
    /// Whether a hole lies left, down, right and up of the player, where the text goes through these four.
    pub holes_beside: Option<[bool; 4]>,
    /// The direction of the first move, in lower case, where the text leaves no doubt.
    pub first_move: Option<&'static str>,
}

/// How much of what reasoning claims is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Claims that can be checked.
    pub claims: usize,
    /// Those that are true.
    pub right: usize,
}

impl Agreement {
    /// Counts one claim.
    pub(crate) fn count(&mut self, right: bool) {
        self.claims += 1;
        self.right += usize::from(right);
    }
}

const DIRECTIONS: [&str; 4] = ["up", "down", "left", "right"];
/// The order in which the four sides are gone through: that of Gymnasium's FrozenLake actions.
const SIDES: [&str; 4] = ["left", "down", "right", "up"];

enum Piece {
    Word(String),
    Number(usize, usize),
    Comma,
    Other,
}

/// Words, numbers (with their digits) and what lies between them.
fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphabetic() {
            let mut word = c.to_lowercase().collect::<String>();
            while let Some(next) = chars.next_if(|n| n.is_alphabetic()) {
                word.extend(next.to_lowercase());
            }
            out.push(Piece::Word(word));
        } else if let Some(digit) = c.to_digit(10) {
            let (mut value, mut digits) = (digit as usize, 1);
            while let Some(next) = chars.next_if(char::is_ascii_digit) {
                value = value.saturating_mul(10).saturating_add(next.to_digit(10).unwrap_or(0) as usize);
                digits += 1;
            }
            out.push(Piece::Number(value, digits));
        } else if c == ',' {
            out.push(Piece::Comma);
        } else if !c.is_whitespace() {
            out.push(Piece::Other);
        }
    }
    out
}

fn role(word: &str) -> Option<Role> {
    Some(match word {
        "p" | "i" | "player" | "from" => Role::Player,
        "box" => Role::Box,
        "goal" | "target" => Role::Target,
        "hole" => Role::Hole,
        "stand" | "walk" | "reach" => Role::Plan,
        _ => return None,
    })
}

/// Row and column in words that [`read`] understands behind the name of whoever is there: without a separator where each
/// is one digit.
pub(crate) fn cell((row, col): (usize, usize)) -> String {
    if row < 10 && col < 10 { format!("{row}{col}") } else { format!(" {row},{col}") }
}

/// How far `to` lies from `from`, in words that [`read`] understands, each with a space before it: ` up2 right1`;
/// nothing where they are one place.
pub(crate) fn offset(from: (usize, usize), to: (usize, usize)) -> String {
    let way = |before: usize, after: usize, less: &str, more: &str| match after.cmp(&before) {
        Ordering::Less => format!(" {less}{}", before - after),
        Ordering::Equal => String::new(),
        Ordering::Greater => format!(" {more}{}", after - before),
    };
    way(from.0, to.0, "up", "down") + &way(from.1, to.1, "left", "right")
}

/// The four sides of the player in words that [`read`] understands, left, down, right, up, each by its name or, where a
/// hole lies there, as `hole`: ` left hole right up`.
pub(crate) fn sides(holes: [bool; 4]) -> String {
    SIDES.iter().zip(holes).map(|(side, hole)| format!(" {}", if hole { "hole" } else { side })).collect()
}

/// The four sides at the beginning of these pieces.
fn read_sides(pieces: &[Piece]) -> Option<[bool; 4]> {
    let mut holes = [false; 4];
    for ((hole, side), piece) in holes.iter_mut().zip(SIDES).zip(pieces.get(..4)?) {
        match piece {
            Piece::Word(word) if word == side => {}
            Piece::Word(word) if word == "hole" => *hole = true,
            _ => return None,
        }
    }
    // `hole02` names a place.
    (!matches!(pieces.get(4), Some(Piece::Number(..)))).then_some(holes)
}

/// Whether an offset (rows down, columns right) leads from one place to another.
pub(crate) fn leads(offset: (isize, isize), from: (usize, usize), to: (usize, usize)) -> bool {
    from.0.checked_add_signed(offset.0) == Some(to.0) && from.1.checked_add_signed(offset.1) == Some(to.1)
}

/// Reads the claims of a text. A position is `r,c` or `(r, c)`, or two digits; it is claimed of the last one named
/// since the position before it. A direction with a number behind it is a part of the offset; four in the order of
/// [`sides`] speak of the cells beside the player. The first move is the direction behind `first` or `start`, or the only
/// one named otherwise.
pub(crate) fn read(text: &str) -> Claims {
    let pieces = pieces(text);
    let mut claims = Claims::default();
    let mut owner = None;
    let mut named: Vec<&'static str> = Vec::new();
    let (mut announced, mut awaited) = (None, false);
    let mut at = 0;
    while at < pieces.len() {
        if let Some(holes) = read_sides(&pieces[at..]) {
            claims.holes_beside = Some(holes);
            at += holes.len();
            continue;
        }
        match &pieces[at] {
            Piece::Word(word) => {
                owner = role(word).or(owner);
                awaited |= word == "first" || word == "start";
                let beside =
                    matches!(pieces.get(at + 1), Some(Piece::Word(next)) if next == "beside" || next == "side");
                let direction = DIRECTIONS.into_iter().find(|d| d == word).filter(|_| !beside);
                if let (Some(direction), Some(&Piece::Number(far, _))) = (direction, pieces.get(at + 1)) {
                    let far = isize::try_from(far).unwrap_or(isize::MAX);
                    let (down, right) = claims.offset.get_or_insert_default();
                    match direction {
                        "up" => *down = down.saturating_sub(far),
                        "down" => *down = down.saturating_add(far),
                        "left" => *right = right.saturating_sub(far),
                        _ => *right = right.saturating_add(far),
                    }
                    at += 1;
                } else if let Some(direction) = direction {
                    named.push(direction);
                    if awaited && announced.is_none() {
                        announced = Some(direction);
                    }
                }
            }
            Piece::Number(row, digits) => {
                let pair = match (pieces.get(at + 1), pieces.get(at + 2)) {
                    (Some(Piece::Comma), Some(Piece::Number(col, _))) => {
                        at += 2;
                        Some((*row, *col))
                    }
                    _ if *digits == 2 => Some((row / 10, row % 10)),
                    _ => None,
                };
                if let (Some(position), Some(of)) = (pair, owner.take()) {
                    claims.positions.push((of, position));
                }
            }
            Piece::Comma | Piece::Other => {}
        }
        at += 1;
    }
    let only = named.first().copied().filter(|first| named.iter().all(|d| d == first));
    claims.first_move = announced.or(only);
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_and_wordy_claims() {
        let brief = read("P22 box33 goal34 stand32 first down then drive right");
        let (p, b, t) = ((Role::Player, (2, 2)), (Role::Box, (3, 3)), (Role::Target, (3, 4)));
        assert_eq!(brief.positions, [p, b, t, (Role::Plan, (3, 2))]);
        assert_eq!((brief.first_move, brief.offset), (Some("down"), None));
        let wordy =
            read("I am at (2, 2), the box is at (3, 3), the target at (3, 4). I walk to (3, 2), first down, and");
        assert_eq!(wordy, brief);
        assert_eq!(read("P 10,2 box 3,11 press left").positions, [(Role::Player, (10, 2)), (Role::Box, (3, 11))]);
    }

    #[test]
    fn places_are_written_as_they_are_read() {
        for place in [(0, 0), (2, 3), (9, 9), (10, 2), (3, 11), (12, 12)] {
            assert_eq!(read(&format!("box{}", cell(place))).positions, [(Role::Box, place)]);
        }
    }

    #[test]
    fn offsets_are_written_as_they_are_read() {
        for (from, to, words) in [
            ((3, 3), (1, 4), " up2 right1"),
            ((1, 4), (3, 3), " down2 left1"),
            ((2, 2), (2, 5), " right3"),
            ((12, 0), (0, 0), " up12"),
            ((2, 2), (2, 2), ""),
        ] {
            assert_eq!(offset(from, to), words);
            let claims = read(&format!("P11 box22 goal14{words} stand32 first down then push up"));
            assert_eq!(claims.positions.len(), 4, "{words}");
            assert_eq!(claims.first_move, Some("down"), "an offset is no move");
            assert_eq!(claims.offset.is_some(), !words.is_empty());
            assert!(leads(claims.offset.unwrap_or_default(), from, to), "{words}");
        }
        assert!(!leads((-1, 0), (0, 0), (0, 0)), "off the board");
        assert!(read(&format!("up{0} up{0}", u64::MAX)).offset.is_some(), "no overflow");
    }

    #[test]
    fn sides_are_written_as_they_are_read() {
        for bits in 0..16 {
            let holes = [0, 1, 2, 3].map(|side| (bits >> side) & 1 == 1);
            let claims = read(&format!("P11 goal33 down2 right2{} go left", sides(holes)));
            assert_eq!((claims.holes_beside, claims.first_move), (Some(holes), Some("left")), "{}", sides(holes));
            assert_eq!((claims.positions.len(), claims.offset), (2, Some((2, 2))));
        }
        assert_eq!(read("P11 left hole up right").holes_beside, None, "another order");
        assert_eq!(read("P11 left down right").holes_beside, None, "one is missing");
        assert_eq!(read("P11 left down right up2").holes_beside, None, "an offset");
        assert_eq!(read("P11 left down right hole22").positions.len(), 2, "a place");
    }

    #[test]
    fn doubt_is_no_claim() {
        assert_eq!(read("go left or right").first_move, None);
        assert_eq!(read("right beside it, I push up").first_move, Some("up"));
        assert!(read("22 33, (4, 5)").positions.is_empty(), "nobody is named");
        assert_eq!(read("box at 7 and 123"), Claims::default());
        assert_eq!(read(""), Claims::default());
        assert_eq!(read("box 99999999999999999999999,1").positions.len(), 1, "no overflow");
    }
}
