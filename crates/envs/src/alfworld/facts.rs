//! Games from the facts that ALFWorld's planning problems state, for games made elsewhere.

use std::collections::BTreeMap;

use super::generate::Game;
use super::goal::{Goal, TaskType};
use super::world::{Abilities, Condition, Receptacle, Thing, World};

/// A game from its facts, e.g. `(inReceptacle mug_1 cabinet_1)`, and the names of its objects by identifier.
///
/// Receptacles and things are listed in the order of their identifiers.
///
/// # Errors
/// The fact or the identifier that makes no sense, in words.
pub fn game<'a>(
    facts: impl IntoIterator<Item = &'a str>,
    names: &BTreeMap<String, String>,
    goal: Goal,
    task: &str,
) -> Result<Game, String> {
    let facts: Vec<Vec<&str>> = facts
        .into_iter()
        .map(|fact| fact.trim().trim_start_matches('(').trim_end_matches(')').split_whitespace().collect())
        .collect();
    let pairs = |predicate: &str| -> Result<Vec<(&str, &str)>, String> {
        facts
            .iter()
            .filter(|fact| fact.first() == Some(&predicate))
            .map(|fact| match fact[..] {
                [_, a, b] => Ok((a, b)),
                _ => Err(format!("expected two arguments after `{predicate}`, found {}", fact.join(" "))),
            })
            .collect()
    };
    let holds = |predicate: &str, id: &str| facts.iter().any(|fact| fact[..] == [predicate, id]);
    let named = |id: &str| {
        names.get(id).map(|name| name.trim().to_owned()).ok_or_else(|| format!("expected a name for `{id}`"))
    };
    let kind = |id: &str| id.strip_suffix("Type").unwrap_or(id).to_lowercase();

    let mut locations: Vec<&str> = pairs("receptacleAtLocation")?.into_iter().map(|(_, location)| location).collect();
    locations.sort_unstable();
    locations.dedup();
    let at: BTreeMap<&str, &str> = pairs("receptacleAtLocation")?.into_iter().collect();
    let places: BTreeMap<&str, &str> = pairs("inReceptacle")?.into_iter().collect();
    // Maps keep the identifiers sorted.
    let receptacle_kinds: BTreeMap<&str, &str> = pairs("receptacleType")?.into_iter().collect();
    let thing_kinds: BTreeMap<&str, &str> = pairs("objectType")?.into_iter().collect();

    let mut world = World::default();
    let mut index = BTreeMap::new();
    for (&id, &of) in &receptacle_kinds {
        let location = at.get(id).ok_or_else(|| format!("expected a location of `{id}`"))?;
        index.insert(id, world.receptacles.len());
        world.receptacles.push(Receptacle {
            name: named(id)?,
            kind: kind(of),
            location: locations.binary_search(location).unwrap_or_default(),
            openable: holds("openable", id),
            open: holds("opened", id),
        });
    }
    for (&id, &of) in &thing_kinds {
        let inside = places.get(id).ok_or_else(|| format!("expected the receptacle that `{id}` is in"))?;
        let place = index.get(inside).ok_or_else(|| format!("`{id}` is in `{inside}`, which is no receptacle"))?;
        world.things.push(Thing {
            name: named(id)?,
            kind: kind(of),
            place: Some(*place),
            can: Abilities {
                pickupable: holds("pickupable", id),
                cleanable: holds("cleanable", id),
                heatable: holds("heatable", id),
                coolable: holds("coolable", id),
                sliceable: holds("sliceable", id),
                toggleable: holds("toggleable", id),
                vessel: holds("isReceptacleObject", id),
            },
            is: Condition {
                clean: holds("isClean", id),
                hot: holds("isHot", id),
                cool: holds("isCool", id),
                sliced: holds("isSliced", id),
                on: holds("isToggled", id),
            },
        });
    }
    world.fits = pairs("canContain")?.into_iter().map(|(r, t)| (kind(r), kind(t))).collect();
    Ok(Game { world, goal, task: task.to_owned() })
}

/// The task type of this name, as in `pick_and_place_simple`.
#[must_use]
pub fn task_type(name: &str) -> Option<TaskType> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}
