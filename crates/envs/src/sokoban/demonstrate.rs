//! Reasoning in words for a planned Sokoban turn.

use std::collections::VecDeque;

use rand_core::Rng;

use super::{Board, Cell, Direction, Outcome};
use crate::claims::{cell, offset};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// What a plan begins with: one box, pushed in one direction.
struct Push {
    player: (usize, usize),
    /// Where the box stands.
    from: (usize, usize),
    /// Where the plan leaves it in the end.
    goal: (usize, usize),
    /// Where the player has to stand.
    stand: (usize, usize),
    /// The first move.
    first: Direction,
    direction: Direction,
}

/// Words for a turn that executes the first `max_actions` moves of `plan`, which solves `board`; `None` when that is
/// nothing.
pub(super) fn turn(
    board: &Board,
    plan: &[Direction],
    max_actions: usize,
    style: DemoStyle,
    rng: &mut dyn Rng,
) -> Option<Demonstration> {
    words(&first_push(board, plan)?, plan, max_actions, style, rng)
}

/// As [`turn`], of a novice: it walks to a box and pushes it, but which box, which way and how far is chance; `None` when
/// no box can be pushed.
pub(super) fn novice_turn(
    board: &Board,
    max_actions: usize,
    style: DemoStyle,
    rng: &mut dyn Rng,
) -> Option<Demonstration> {
    let walks = walks(board);
    let mut choices = Vec::new();
    for from in board.box_cells() {
        for direction in Direction::ALL {
            let Some(stand) = board.neighbour(from, opposite(direction)) else { continue };
            let free = free_ahead(board, from, direction);
            if let Some(walk) = &walks[stand]
                && free > 0
            {
                choices.push((from, stand, walk, direction, free));
            }
        }
    }
    if choices.is_empty() {
        return None;
    }
    let (from, stand, walk, direction, free) = choices[index_below(rng, choices.len())];
    let pushes = 1 + index_below(rng, free);
    let plan = [&walk[..], &vec![direction; pushes]].concat();
    let from = board.position(from);
    let push = Push {
        player: board.position(board.player()),
        from,
        goal: nearest_target(board, from).unwrap_or(from),
        stand: board.position(stand),
        first: plan[0],
        direction,
    };
    words(&push, &plan, max_actions, style, rng)
}

fn words(
    push: &Push,
    plan: &[Direction],
    max_actions: usize,
    style: DemoStyle,
    rng: &mut dyn Rng,
) -> Option<Demonstration> {
    let actions: Vec<String> = plan.iter().take(max_actions).map(|direction| direction.name().to_owned()).collect();
    if actions.is_empty() {
        return None;
    }
    let reasoning = match style {
        DemoStyle::Brief => brief(push),
        DemoStyle::Verbose => verbose(push, rng),
    };
    Some(Demonstration { reasoning, actions })
}

/// A shortest walk to every cell that the player reaches without a push.
fn walks(board: &Board) -> Vec<Option<Vec<Direction>>> {
    let mut walks = vec![None; board.state().len()];
    walks[board.player()] = Some(Vec::new());
    let mut queue = VecDeque::from([board.player()]);
    while let Some(at) = queue.pop_front() {
        for direction in Direction::ALL {
            let Some(next) = board.neighbour(at, direction) else { continue };
            if board.state()[next].is_free() && walks[next].is_none() {
                let mut walk: Vec<Direction> = walks[at].clone().unwrap_or_default();
                walk.push(direction);
                walks[next] = Some(walk);
                queue.push_back(next);
            }
        }
    }
    walks
}

/// Free cells in a row from `cell` on, without it.
fn free_ahead(board: &Board, cell: usize, direction: Direction) -> usize {
    std::iter::successors(board.neighbour(cell, direction), |&at| board.neighbour(at, direction))
        .take_while(|&at| board.state()[at].is_free())
        .count()
}

/// The free target nearest to a cell, as the crow walks.
fn nearest_target(board: &Board, (row, col): (usize, usize)) -> Option<(usize, usize)> {
    let targets = (0..board.state().len())
        .filter(|&cell| board.fixed()[cell] == Cell::Target && !board.state()[cell].is_box())
        .map(|cell| board.position(cell));
    targets.min_by_key(|&(r, c)| r.abs_diff(row) + c.abs_diff(col))
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
        Direction::Left => Direction::Right,
        Direction::Right => Direction::Left,
    }
}

/// The words follow from the situation, never from chance: a small model learns them fast, and reinforcement learning
/// does not spend its signal on a choice between synonyms.
fn brief(push: &Push) -> String {
    let (player, from, stand) = (cell(push.player), cell(push.from), cell(push.stand));
    // Where the box has to go, as a place and from where it is: so the choice of the push needs no arithmetic.
    let goal = cell(push.goal) + &offset(push.from, push.goal);
    let way = match push.direction {
        Direction::Up => "push up",
        Direction::Down => "shove down",
        Direction::Left => "press left",
        Direction::Right => "drive right",
    };
    if push.player == push.stand {
        format!("P{player} box{from} goal{goal} {way}")
    } else {
        format!("P{player} box{from} goal{goal} stand{stand} first {} then {way}", lower(push.first))
    }
}

fn verbose(push: &Push, rng: &mut dyn Rng) -> String {
    let Push { player: (pr, pc), from: (br, bc), goal: (gr, gc), stand: (sr, sc), first, direction } = *push;
    let (go, way) = (lower(first), lower(direction));
    let choice = index_below(rng, 3);
    if push.player == push.stand {
        match choice {
            0 => format!(
                "I stand at ({pr}, {pc}), right beside the box at ({br}, {bc}). The target is at ({gr}, {gc}), so I \
                 push the box {way}."
            ),
            1 => format!(
                "The box at ({br}, {bc}) has to reach the target at ({gr}, {gc}). From my place at ({pr}, {pc}) I can \
                 push it {way} at once."
            ),
            _ => format!(
                "The target is at ({gr}, {gc}) and the box at ({br}, {bc}). I am on the right side of it at ({pr}, \
                 {pc}) and push {way}."
            ),
        }
    } else {
        match choice {
            0 => format!(
                "The box at ({br}, {bc}) has to go {way}, so I must stand at ({sr}, {sc}). I am at ({pr}, {pc}) and \
                 start by going {go}."
            ),
            1 => format!(
                "I am at ({pr}, {pc}), the box is at ({br}, {bc}), the target at ({gr}, {gc}). I walk to ({sr}, {sc}), \
                 first {go}, and push {way} from there."
            ),
            _ => format!(
                "To push the box at ({br}, {bc}) {way}, on its way to the target at ({gr}, {gc}), I first go {go} from \
                 ({pr}, {pc}) to reach ({sr}, {sc})."
            ),
        }
    }
}

/// The first push of the plan and what becomes of its box.
fn first_push(board: &Board, plan: &[Direction]) -> Option<Push> {
    let first = *plan.first()?;
    let player = board.position(board.player());
    let mut board = board.clone();
    // The push, and where its box stands by now.
    let mut found: Option<(Push, usize)> = None;
    for &direction in plan {
        let stand = board.player();
        let ahead = board.neighbour(stand, direction)?;
        if board.step(direction) != Outcome::Pushed {
            continue;
        }
        match &mut found {
            Some((_, at)) if *at == ahead => *at = board.neighbour(ahead, direction)?,
            Some(_) => {}
            None => {
                let (stand, from) = (board.position(stand), board.position(ahead));
                let push = Push { player, from, goal: from, stand, first, direction };
                found = Some((push, board.neighbour(ahead, direction)?));
            }
        }
    }
    let (push, at) = found?;
    Some(Push { goal: board.position(at), ..push })
}

fn lower(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Left => "left",
        Direction::Right => "right",
    }
}
