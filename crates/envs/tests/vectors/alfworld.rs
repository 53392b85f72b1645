//! Household games against recorded transcripts of ALFWorld's logic and words, and our tables against its tables.

use std::collections::BTreeMap;

use ragen_envs::Environment;
use ragen_envs::alfworld::goal::Goal;
use ragen_envs::alfworld::tables::{Room, THINGS, openable, receptacles};
use ragen_envs::alfworld::{Alfworld, Game, facts};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn game(case: &Value) -> Game {
    let names: BTreeMap<String, String> = serde_json::from_value(case["names"].clone()).expect("names");
    let params = &case["params"];
    let target = if text(&params["parent_target"]).is_empty() { "toggle_target" } else { "parent_target" };
    let goal = Goal {
        task: facts::task_type(text(&case["task_type"])).expect("a task type"),
        object: text(&params["object_target"]).to_lowercase(),
        target: text(&params[target]).to_lowercase(),
    };
    let facts = case["facts"].as_array().expect("facts").iter().map(text);
    facts::game(facts, &names, goal, text(&case["task_desc"])).expect("a game")
}

#[test]
fn transcripts() {
    let Some(cases) = super::fixtures::json_lines("alfworld_synth_transcripts.jsonl") else { return };
    for case in cases {
        let mut env = Alfworld::from_json(&json!(null)).expect("valid");
        env.start_on(game(&case));
        assert_eq!(json!(env.told()), case["intro"]);
        assert_eq!(json!(env.available_actions()), case["admissible0"]);
        for step in case["steps"].as_array().expect("steps") {
            let action = text(&step["action"]);
            let listed = env.available_actions().iter().any(|known| known == action);
            let got = env.step(action).expect("a step");
            assert_eq!(json!(env.told()), step["obs"], "{action}");
            assert_eq!(got.info.action_is_valid, listed, "{action}");
            let list: Vec<&str> = step["admissible"].as_array().expect("a list").iter().map(text).collect();
            let shown = format!("{}\n\nAdmissible actions: [{}]", text(&step["obs"]), list.join(", "));
            assert_eq!(got.observation, shown, "{action}");
            assert_eq!(json!([got.terminated, got.info.success]), json!([step["done"], step["won"]]), "{action}");
            assert_eq!(got.reward, 10.0 * step["score"].as_f64().expect("a score"), "{action}");
        }
    }
}

#[test]
fn the_oracle_is_never_slower_than_the_recorded_player() {
    let Some(cases) = super::fixtures::json_lines("alfworld_synth_transcripts.jsonl") else { return };
    for case in cases {
        let mut env = Alfworld::from_json(&json!(null)).expect("valid");
        env.start_on(game(&case));
        let plan = env.oracle(50);
        assert!(!plan.is_empty() && plan.len() <= case["steps"].as_array().expect("steps").len(), "{plan:?}");
        let last = plan.iter().map(|action| env.step(action).expect("a step")).last().expect("a step");
        assert!(last.terminated && last.info.success, "{plan:?}");
    }
}

#[test]
fn our_tables_are_part_of_the_reference_tables() {
    let Some(path) = super::fixtures::data_file("alfworld/alfworld_tables.json") else { return };
    let tables: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON");
    let lower = |value: &Value| -> Vec<String> {
        value.as_array().expect("a list").iter().map(|name| text(name).to_lowercase()).collect()
    };
    let fits: BTreeMap<String, Vec<String>> = tables["can_contain"]
        .as_object()
        .expect("a mapping")
        .iter()
        .map(|(receptacle, things)| (receptacle.to_lowercase(), lower(things)))
        .collect();
    let with = |property: &str| lower(&tables["object_props"][property]);
    let (vessels, doors) = (lower(&tables["movable_receptacles"]), lower(&tables["openable"]));
    for kind in THINGS {
        let can = kind.can();
        let name = kind.name.to_owned();
        for (ours, theirs) in [
            (can.cleanable, with("Cleanable").contains(&name)),
            (can.heatable, with("Heatable").contains(&name)),
            (can.coolable, with("Coolable").contains(&name)),
            (can.sliceable, with("Sliceable").contains(&name)),
            (can.toggleable, with("Toggleable").contains(&name)),
            (can.vessel, vessels.contains(&name)),
        ] {
            assert_eq!(ours, theirs, "{name}");
        }
        assert!(lower(&tables["objects"]).contains(&name), "{name}");
        if can.pickupable {
            for place in kind.places() {
                assert!(fits[place].contains(&name), "{name} in {place}");
            }
        }
    }
    for room in Room::ALL {
        for (kind, ..) in receptacles(room) {
            assert!(lower(&tables["receptacles"]).contains(&(*kind).to_owned()), "{kind}");
            assert_eq!(openable(kind), doors.contains(&(*kind).to_owned()), "{kind}");
        }
    }
}
