//! Reasoning in words for a planned Sokoban turn.

use rand_core::Rng;

use super::{Board, Cell, Direction, Outcome};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// What the first push of a plan does.
struct Push {
    /// Where the box stands.
    from: (usize, usize),
    /// Where the player has to stand.
    stand: (usize, usize),
    direction: Direction,
    /// Steps before the push.
    walk: usize,
}

/// Words for a turn that executes `plan` on `board`; `None` for an empty plan.
pub(super) fn turn(board: &Board, plan: &[Direction], style: DemoStyle, rng: &mut dyn Rng) -> Option<Demonstration> {
    let first = plan.first()?;
    let player = board.position(board.player());
    let goal = nearest_target(board, plan);
    let push = first_push(board, plan);
    let reasoning = match style {
        DemoStyle::Brief => brief(player, goal, push.as_ref(), *first, rng),
        DemoStyle::Verbose => verbose(player, goal, push.as_ref(), *first, rng),
    };
    let actions = plan.iter().map(|direction| direction.name().to_owned()).collect();
    Some(Demonstration { reasoning, actions })
}

fn brief(
    (pr, pc): (usize, usize),
    (gr, gc): (usize, usize),
    push: Option<&Push>,
    first: Direction,
    rng: &mut dyn Rng,
) -> String {
    let style = index_below(rng, 3);
    let go = lower(first);
    match push {
        Some(Push { from: (br, bc), walk: 0, direction, .. }) => {
            let way = lower(*direction);
            match style {
                0 => format!("P {pr},{pc} box {br},{bc} goal {gr},{gc}: push {way}."),
                1 => format!("Box {br},{bc} to {gr},{gc}. Push {way} from {pr},{pc}."),
                _ => format!("At {pr},{pc}, push box {br},{bc} {way}, goal {gr},{gc}."),
            }
        }
        Some(Push { from: (br, bc), stand: (sr, sc), direction, .. }) => {
            let way = lower(*direction);
            match style {
                0 => format!("P {pr},{pc} box {br},{bc} goal {gr},{gc}: go {sr},{sc}, push {way}."),
                1 => format!("Box {br},{bc} must go {way}. Stand {sr},{sc}: {go} first."),
                _ => format!("From {pr},{pc} to {sr},{sc}, then push box {br},{bc} {way}."),
            }
        }
        None => match style {
            0 => format!("P {pr},{pc} goal {gr},{gc}: go {go}."),
            1 => format!("At {pr},{pc}: walk {go} around the box."),
            _ => format!("Goal {gr},{gc}. From {pr},{pc} go {go}."),
        },
    }
}

fn verbose(
    (pr, pc): (usize, usize),
    (gr, gc): (usize, usize),
    push: Option<&Push>,
    first: Direction,
    rng: &mut dyn Rng,
) -> String {
    let style = index_below(rng, 3);
    let go = lower(first);
    match push {
        Some(Push { from: (br, bc), walk: 0, direction, .. }) => {
            let way = lower(*direction);
            match style {
                0 => format!(
                    "I stand at ({pr}, {pc}), right beside the box at ({br}, {bc}). The target is at ({gr}, {gc}), so \
                     I push the box {way}."
                ),
                1 => format!(
                    "The box at ({br}, {bc}) has to reach the target at ({gr}, {gc}). From my place at ({pr}, {pc}) I \
                     can push it {way} at once."
                ),
                _ => format!(
                    "The target is at ({gr}, {gc}) and the box at ({br}, {bc}). I am on the right side of it at ({pr}, \
                     {pc}); pushing {way} brings it closer."
                ),
            }
        }
        Some(Push { from: (br, bc), stand: (sr, sc), direction, .. }) => {
            let way = lower(*direction);
            match style {
                0 => format!(
                    "The box at ({br}, {bc}) has to go {way}, so I must stand at ({sr}, {sc}). I am at ({pr}, {pc}) \
                     and start by going {go}."
                ),
                1 => format!(
                    "I am at ({pr}, {pc}), the box is at ({br}, {bc}), the target at ({gr}, {gc}). I walk to ({sr}, \
                     {sc}) and push {way} from there."
                ),
                _ => format!(
                    "To push the box at ({br}, {bc}) {way} towards the target at ({gr}, {gc}), I first go {go} from \
                     ({pr}, {pc}) to reach ({sr}, {sc})."
                ),
            }
        }
        None => match style {
            0 => format!("I am at ({pr}, {pc}) and the target is at ({gr}, {gc}). I walk {go} to get behind the box."),
            1 => format!("No push helps yet. From ({pr}, {pc}) I go {go}, around the box."),
            _ => format!("The target is at ({gr}, {gc}). I have to get round the box, so I go {go} from ({pr}, {pc})."),
        },
    }
}

/// The first push of the plan, if there is one in it.
fn first_push(board: &Board, plan: &[Direction]) -> Option<Push> {
    let mut board = board.clone();
    for (walk, &direction) in plan.iter().enumerate() {
        let stand = board.position(board.player());
        let from = board.neighbour(board.player(), direction)?;
        if board.step(direction) == Outcome::Pushed {
            return Some(Push { from: board.position(from), stand, direction, walk });
        }
    }
    None
}

/// The empty target closest to the first box that the plan pushes, or to the player.
fn nearest_target(board: &Board, plan: &[Direction]) -> (usize, usize) {
    let (row, col) = first_push(board, plan).map_or_else(|| board.position(board.player()), |push| push.from);
    board
        .fixed()
        .iter()
        .enumerate()
        .filter(|&(i, &cell)| cell == Cell::Target && board.state()[i] != Cell::BoxOnTarget)
        .map(|(i, _)| board.position(i))
        .min_by_key(|&(r, c)| r.abs_diff(row) + c.abs_diff(col))
        .unwrap_or((row, col))
}

fn lower(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Left => "left",
        Direction::Right => "right",
    }
}
