//! Selections, whole filters and buckets against RAGEN-2.

use serde_json::Value;

use super::*;
use crate::advantage::fixtures::{cases, close, matrix, name, number, numbers};
use crate::tokens::Rows;

fn selection(inputs: &Value) -> Selection {
    SelectionConfig {
        strategy: inputs["strategy"].as_str().unwrap(),
        value: number(&inputs["value"]),
        filter_type: inputs["filter_type"].as_str().unwrap(),
        include_zero: inputs["include_zero"].as_bool().unwrap(),
        top_p_prob_mode: inputs["top_p_prob_mode"].as_str().unwrap_or("linear"),
        selection_eps: inputs["selection_eps"].as_f64().unwrap_or(0.01),
    }
    .read()
    .unwrap()
}

#[test]
fn every_case_selects_the_same_groups() {
    let Some(cases) = cases("filter") else { return };
    assert!(!cases.is_empty());
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        match case["kind"].as_str() {
            None => plain(inputs, outputs, name),
            Some("full_filter") => whole(inputs, outputs, name),
            Some("buckets") => buckets(inputs, outputs, name),
            Some(other) => panic!("unknown kind {other}"),
        }
    }
}

fn plain(inputs: &Value, outputs: &Value, name: &str) {
    let scores = numbers(&inputs["scores"]);
    let got = selection(inputs).select(&scores);
    let want: Vec<usize> = numbers(&outputs["kept"])
        .iter()
        .enumerate()
        .filter(|(_, kept)| **kept != 0.0)
        .map(|(group, _)| group)
        .collect();
    if outputs["tie_at_boundary"].as_bool() == Some(true) {
        let sorted = |groups: &[usize]| {
            let mut out: Vec<f64> = groups.iter().map(|g| scores[*g]).collect();
            out.sort_by(f64::total_cmp);
            out
        };
        assert_eq!(sorted(&got), sorted(&want), "{name}");
    } else {
        let mut got = got;
        got.sort_unstable();
        assert_eq!(got, want, "{name}");
    }
}

fn whole(inputs: &Value, outputs: &Value, name: &str) {
    let metric = inputs["metric"].as_str().unwrap();
    let filter = RolloutFilter { metric: metric.parse().unwrap(), selection: selection(inputs) };
    let (groups, returns, entropies, lengths);
    if let Some(rewards) = inputs.get("reward_matrix") {
        let rewards = matrix(rewards);
        groups = rewards.iter().enumerate().flat_map(|(g, row)| vec![g; row.len()]).collect::<Vec<_>>();
        returns = rewards.concat();
        (entropies, lengths) = (Vec::new(), Vec::new());
    } else {
        let mask = matrix(&inputs["response_mask"]);
        let group_size = mask.len() / number(&inputs["num_groups"]) as usize;
        groups = (0..mask.len()).map(|row| row / group_size).collect();
        returns = vec![0.0; mask.len()];
        lengths = mask.iter().map(|row| row.iter().sum()).collect();
        entropies = match inputs.get("entropys") {
            Some(values) => {
                let ragged = crate::advantage::fixtures::Ragged::new(&inputs["response_mask"]);
                ragged.rows.means(&ragged.pick(values)).unwrap()
            }
            None => Vec::new(),
        };
    }
    let got = filter
        .apply(FilterInputs { groups: &groups, returns: &returns, entropies: &entropies, lengths: &lengths })
        .unwrap();
    let rows: Vec<f64> = got.kept_rows.iter().map(|row| *row as f64).collect();
    close(name, "kept rows", &rows, &numbers(&outputs["kept_sample_ids"]), 0.0);
    if let Some(want) = outputs.get("group_std") {
        close(name, "group_std", &got.reward_std, &numbers(want), 2e-8);
    }
    if let Some(want) = outputs.get("reward_std_of_kept") {
        let per_row: Vec<f64> = got.kept_rows.iter().map(|row| got.reward_std[groups[*row]]).collect();
        close(name, "std of kept", &per_row, &numbers(want), 2e-8);
    }
    let metrics = got.metrics();
    for (key, want) in outputs["metrics"].as_object().unwrap() {
        let full = format!("rollout/{key}");
        let (_, value) = metrics.iter().find(|(name, _)| *name == full).unwrap_or_else(|| panic!("{name}: no {key}"));
        close(name, key, &[*value], &[number(want)], 2e-8);
    }
}

fn buckets(inputs: &Value, outputs: &Value, name: &str) {
    let per_sample = numbers(&inputs["reward_std_per_sample"]);
    let group_size = number(&inputs["group_size"]) as usize;
    let group_std: Vec<f64> = per_sample.iter().step_by(group_size).copied().collect();
    let got = match inputs["bucket_mode"].as_str() {
        Some("quantile") => quantile_buckets(&group_std, number(&inputs["bucket_count"]) as usize),
        _ => fixed_buckets(&group_std),
    };
    let want: Vec<(&String, &Value)> = outputs.as_object().unwrap().iter().filter(|(k, _)| *k != "all").collect();
    let filled: Vec<&Vec<usize>> = got.iter().filter(|bucket| !bucket.is_empty()).collect();
    assert_eq!(filled.len(), want.len(), "{name}");
    let rows = Rows::from_lengths(vec![group_size; group_std.len()]);
    for (bucket, (key, want)) in filled.iter().zip(want) {
        let groups: Vec<f64> = bucket.iter().map(|g| *g as f64).collect();
        close(name, key, &groups, &numbers(&want["group_ids"]), 0.0);
        let samples: Vec<f64> = bucket.iter().flat_map(|g| rows.range(*g)).map(|row| row as f64).collect();
        close(name, key, &samples, &numbers(&want["sample_ids"]), 0.0);
        let stds: Vec<f64> = bucket.iter().map(|g| group_std[*g]).collect();
        close(name, key, &[mean(&stds)], &[number(&want["mean"])], 2e-8);
    }
}
