use super::*;
use crate::episode::fixtures::{episode, turn};

fn config(overrides: &[&str]) -> Config {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Config::load(None, &overrides).unwrap()
}

fn kept(config: &Config, episodes: &[Episode], entropies: &[f64]) -> Vec<usize> {
    select(config, &rollout_filter(config).unwrap(), episodes, entropies).unwrap().kept_groups
}

/// One turn each; the returns of group 0 differ by rounding, those of group 1 by a lot, those of group 2 not at all.
fn three_groups() -> Vec<Episode> {
    let noisy = 0.1 + 0.2;
    let returns = [(0, noisy), (0, 0.3), (1, 1.0), (1, 0.0), (2, 0.5), (2, 0.5)];
    returns.iter().enumerate().map(|(i, (g, r))| episode(*g, i % 2, &[turn("s", 1 + g, *r)])).collect()
}

const ALL: &str = "actor_rollout_ref.rollout.rollout_filter_value=1.0";
const ZERO: &str = "actor_rollout_ref.rollout.rollout_filter_include_zero=true";

#[test]
fn rounding_is_no_spread_unless_the_reference_is_wanted() {
    assert_eq!(kept(&config(&[ALL]), &three_groups(), &[]), [1]);
    let reference = config(&[ALL, ZERO]);
    let filtered = select(&reference, &rollout_filter(&reference).unwrap(), &three_groups(), &[]).unwrap();
    assert_eq!(filtered.kept_rows, [0, 1, 2, 3, 4, 5]);
    assert!(filtered.scores[0].1 > 0.0, "nothing is rounded");
}

#[test]
fn every_metric_reads_what_it_says() {
    let metric = |name: &str| format!("actor_rollout_ref.rollout.rollout_filter_metric={name}");
    let one = ["actor_rollout_ref.rollout.rollout_filter_strategy=top_k_abs", ALL];
    let entropies = [0.1, 0.1, 0.2, 0.3, 0.5, 0.5];
    for (name, group) in [("reward_variance", 1), ("reward", 1), ("length", 2), ("entropy", 2), ("entropy_variance", 1)]
    {
        let config = config(&[one[0], one[1], &metric(name)]);
        assert_eq!(kept(&config, &three_groups(), &entropies), [group], "{name}");
        assert_eq!(needs_entropy(&rollout_filter(&config).unwrap()), name.starts_with("entropy"));
    }
    let config = config(&[&metric("entropy")]);
    assert!(select(&config, &rollout_filter(&config).unwrap(), &three_groups(), &[]).is_err());
}

#[test]
fn normalised_returns_are_read_for_compatibility_only() {
    let normalise = "agent_proxy.reward_normalization.method=mean_std";
    let batch = "agent_proxy.reward_normalization.grouping=batch";
    let compat = "compat.filter_normalised_returns=true";
    let score = |overrides: &[&str]| {
        let config = config(overrides);
        select(&config, &rollout_filter(&config).unwrap(), &three_groups(), &[]).unwrap().scores[1].1
    };
    let raw = 0.5f64.sqrt();
    assert!((score(&[normalise, batch]) - raw).abs() < 1e-9, "raw returns stay raw");
    let std = crate::tokens::mean_std(&[0.3, 0.3, 1.0, 0.0, 0.5, 0.5]).1;
    assert!((score(&[normalise, batch, compat]) - raw / std).abs() < 1e-5);
}

#[test]
fn nothing_to_select_from() {
    assert!(kept(&config(&[]), &[], &[]).is_empty());
    let equal: Vec<Episode> = (0..3).map(|i| episode(0, i, &[turn("s", 1, 0.7)])).collect();
    assert!(kept(&config(&[]), &equal, &[]).is_empty());
    let mut broken = three_groups();
    broken[0].turns[0].reward = f64::INFINITY;
    let config = config(&[]);
    assert!(select(&config, &rollout_filter(&config).unwrap(), &broken, &[]).is_err());
}

#[test]
fn silent_groups_have_nothing_to_compare() {
    assert_eq!(silent_groups(&three_groups()), [0, 2]);
    assert!(silent_groups(&[]).is_empty());
}

#[test]
fn a_stricter_filter_lets_less_through() {
    let of = |overrides: &[&str]| stricter(rollout_filter(&config(overrides)).unwrap(), 0.5).selection;
    let strategy = |name: &str| format!("actor_rollout_ref.rollout.rollout_filter_strategy={name}");
    let top_k = of(&[&strategy("top_k"), ALL, ZERO]);
    assert_eq!((top_k.strategy, top_k.include_zero), (Strategy::TopK { value: 0.5 }, false));
    let value = |v: &str| format!("actor_rollout_ref.rollout.rollout_filter_value={v}");
    assert_eq!(of(&[&strategy("top_k_abs"), &value("3")]).strategy, Strategy::TopKAbs { count: 1 });
    assert_eq!(of(&[&strategy("min_p"), &value("0.5")]).strategy, Strategy::MinP { value: 0.75 });
    assert!(matches!(of(&[]).strategy, Strategy::TopP { value, .. } if value == 0.45));
}

#[test]
fn spreads_of_kept_groups_only() {
    let config = config(&[ALL]);
    let filtered = select(&config, &rollout_filter(&config).unwrap(), &three_groups(), &[]).unwrap();
    assert_eq!(kept_spreads(&filtered), [(1, 0.5f64.sqrt())]);
}
