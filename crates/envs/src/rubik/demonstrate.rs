//! Reasoning in words for a turn of the cube.

use rand_core::Rng;

use super::cube::TURNS;
use super::{Cube, whole_faces};
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// Words for the first `max_actions` turns of a plan; `None` when that is nothing.
pub(super) fn turn(
    cube: &Cube,
    plan: &[usize],
    max_actions: usize,
    style: DemoStyle,
    rng: &mut dyn Rng,
) -> Option<Demonstration> {
    let actions: Vec<String> = plan.iter().take(max_actions).map(|&turn| TURNS[turn].to_owned()).collect();
    let first = actions.first()?;
    let (left, whole) = (plan.len(), whole_faces(cube));
    let whole = if whole.is_empty() { "none".to_owned() } else { whole };
    let now = actions.join(" ");
    let choice = index_below(rng, 3);
    let reasoning = match style {
        // As in Sokoban, brief words follow from the situation and never from chance.
        DemoStyle::Brief => format!("whole {whole} left {left} turn {now}"),
        DemoStyle::Verbose => match choice {
            0 => {
                format!("Faces that show one colour: {whole}. The cube is {left} quarter turns from solved; now {now}.")
            }
            1 => format!("From here the shortest way takes {left} turns and begins with {first}, so I turn {now}."),
            _ => format!("With {whole} whole so far, {now} brings the cube closer: {left} turns are left in all."),
        },
    };
    Some(Demonstration { reasoning, actions })
}
