//! Reasoning in words for a FrozenLake turn.

use rand_core::Rng;

use super::{Lake, Move, Tile};
use crate::claims::{cell, offset, sides};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// Words for a turn that executes `plan` from `player`; `None` for an empty plan.
pub(super) fn turn(
    lake: &Lake,
    player: usize,
    plan: &[Move],
    style: DemoStyle,
    rng: &mut dyn Rng,
) -> Option<Demonstration> {
    let way = lower(*plan.first()?);
    let (at, goal) = (lake.position(player), lake.position(lake.goal()));
    let ((r, c), (gr, gc)) = (at, goal);
    let beside = Move::ALL.map(|way| lake.neighbour(player, way));
    let holes = beside.map(|cell| lake.tile(cell) == Tile::Hole);
    let hole = beside.into_iter().zip(holes).find(|(_, hole)| *hole).map(|(cell, _)| lake.position(cell));
    let choice = index_below(rng, 3);
    let reasoning = match (style, hole) {
        // As in Sokoban, brief words follow from the situation and never from chance. They always go through all four
        // sides: what may be left out, the agent soon leaves out.
        (DemoStyle::Brief, _) => {
            format!("P{} goal{}{}{} {}", cell(at), cell(goal), offset(at, goal), sides(holes), brief_way(plan[0]))
        }
        (DemoStyle::Verbose, None) => match choice {
            0 => format!("I am at ({r}, {c}) and the goal is at ({gr}, {gc}). No hole is next to me, so I go {way}."),
            1 => format!("The goal lies at ({gr}, {gc}). From ({r}, {c}) the best move is {way}."),
            _ => format!("From ({r}, {c}) I head for the goal at ({gr}, {gc}); going {way} is the safest way there."),
        },
        (DemoStyle::Verbose, Some((hr, hc))) => match choice {
            0 => format!(
                "I am at ({r}, {c}), the goal is at ({gr}, {gc}), and there is a hole at ({hr}, {hc}). Going {way} is \
                 the best I can do without falling in."
            ),
            1 => format!(
                "The hole at ({hr}, {hc}) is close. From ({r}, {c}) I go {way} to reach the goal at ({gr}, {gc})."
            ),
            _ => format!(
                "The ice may slip, and ({hr}, {hc}) is a hole right beside me. Towards the goal at ({gr}, {gc}) I go \
                 {way} from ({r}, {c})."
            ),
        },
    };
    let actions = plan.iter().map(|way| way.name().to_owned()).collect();
    Some(Demonstration { reasoning, actions })
}

fn brief_way(way: Move) -> &'static str {
    match way {
        Move::Left => "go left",
        Move::Down => "step down",
        Move::Right => "move right",
        Move::Up => "head up",
    }
}

fn lower(way: Move) -> &'static str {
    match way {
        Move::Left => "left",
        Move::Down => "down",
        Move::Right => "right",
        Move::Up => "up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_go_in_the_order_of_the_moves() {
        assert_eq!(sides([false; 4]), Move::ALL.map(|way| format!(" {}", lower(way))).concat());
    }
}
