//! Advantage estimators against the reference implementations.

use serde_json::Value;

use super::fixtures::{Ragged, cases, close, labels, matrix, name, number, numbers};
use super::*;
use crate::kl::KlController;
use crate::tokens::{whiten, whiten_keep_mean, whiten_stats};

const RAW: BaselineOptions = BaselineOptions { singleton: SingletonGroup::RawReturn };
const TOL: f64 = 2e-8;

fn grpo_options(inputs: &Value) -> GrpoOptions {
    GrpoOptions {
        norm_adv_by_std_in_grpo: inputs["norm_adv_by_std_in_grpo"].as_bool().unwrap_or(true),
        eps: inputs["epsilon"].as_f64().unwrap_or(1e-6),
        min_variance: 0.0,
        singleton: SingletonGroup::RawReturn,
    }
}

/// Row returns as the sources take them: over all columns, masked ones included.
fn row_returns(inputs: &Value) -> Vec<f64> {
    matrix(&inputs["token_level_rewards"]).iter().map(|row| row.iter().sum()).collect()
}

fn by_row(inputs: &Value, ragged: &Ragged, function: &str) -> Result<Vec<f64>, AdvantageError> {
    let returns = row_returns(inputs);
    let groups = labels(&inputs["index"]);
    let lengths: Vec<usize> = ragged.rows.lengths().collect();
    let per_row = match function {
        "grpo" => grpo(&returns, &groups, grpo_options(inputs)),
        "grpo_vectorized" => grpo(&returns, &groups, GrpoOptions { min_variance: 1e-6, ..grpo_options(inputs) }),
        "grpo_passk" => grpo_passk(&returns, &groups, grpo_options(inputs)),
        "rloo" => rloo(&returns, &groups, RAW),
        "rloo_vectorized" => rloo(&returns, &groups, BaselineOptions { singleton: SingletonGroup::Zero }),
        "opo" => opo(&returns, &lengths, &groups, RAW),
        "gpg" => gpg(
            &returns,
            &groups,
            GpgOptions {
                f_norm: inputs["f_norm"].as_f64().unwrap_or(1.0),
                alpha: GpgAlpha::NonZeroReturns,
                singleton: SingletonGroup::RawReturn,
            },
        ),
        "reinforce_plus_plus_baseline" => {
            return reinforce_plus_plus_baseline(&ragged.rows, &returns, &groups, RAW);
        }
        other => panic!("unknown function {other}"),
    }?;
    Ok(ragged.rows.spread(&per_row)?)
}

#[test]
fn estimators_agree_with_their_sources() {
    let Some(cases) = cases("advantages") else { return };
    assert!(!cases.is_empty());
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        let function = case["function"].as_str().expect("a function");
        match function {
            "masked_whiten" => whitening(inputs, outputs, name),
            "compute_rewards" => {
                let flat = |key: &str| matrix(&inputs[key]).concat();
                let k1 = "k1".parse().unwrap();
                let got = kl_in_reward(
                    &flat("token_level_scores"),
                    &flat("old_log_prob"),
                    &flat("ref_log_prob"),
                    k1,
                    number(&inputs["kl_ratio"]),
                )
                .unwrap();
                close(name, "rewards", &got, &matrix(&outputs["token_level_rewards"]).concat(), TOL);
            }
            "adaptive_kl" => {
                let mut controller = KlController::Adaptive {
                    coef: number(&inputs["init_kl_coef"]),
                    target: number(&inputs["target_kl"]),
                    horizon: number(&inputs["horizon"]),
                };
                let mut got = Vec::new();
                for (kl, n) in numbers(&inputs["current_kl"]).iter().zip(numbers(&inputs["n_steps"])) {
                    controller.update(*kl, n as usize);
                    got.push(controller.coef());
                }
                close(name, "coef", &got, &numbers(&outputs["coef_after_each_update"]), TOL);
            }
            _ => estimator(function, inputs, outputs, name),
        }
    }
}

fn whitening(inputs: &Value, outputs: &Value, name: &str) {
    let ragged = Ragged::new(&inputs["mask"]);
    let values = ragged.pick(&inputs["values"]);
    let got = if inputs["shift_mean"].as_bool() == Some(false) { whiten_keep_mean(&values) } else { whiten(&values) };
    if outputs.get("raises").is_some() {
        assert!(got.is_err(), "{name}");
        return;
    }
    close(name, "whitened", &got.unwrap(), &ragged.pick(&outputs["whitened"]), TOL);
    if outputs.get("mean").is_some() {
        let stats = whiten_stats(&values).unwrap();
        close(name, "mean", &[stats.mean], &[number(&outputs["mean"])], TOL);
        close(name, "var_biased", &[stats.biased_var], &[number(&outputs["var_biased"])], TOL);
        close(name, "var_unbiased", &[stats.unbiased_var], &[number(&outputs["var_unbiased"])], TOL);
    }
}

fn estimator(function: &str, inputs: &Value, outputs: &Value, name: &str) {
    let ragged = Ragged::new(&inputs["response_mask"]);
    let rows = &ragged.rows;
    let rewards = || ragged.pick(&inputs["token_level_rewards"]);
    let gamma = || number(&inputs["gamma"]);
    let want = |key: &str| ragged.pick(&outputs[key]);
    match function {
        "gae" => {
            let values = ragged.pick(&inputs["values"]);
            let got = gae(rows, &rewards(), &values, gamma(), number(&inputs["lam"])).unwrap();
            close(name, "returns", &got.returns, &want("returns"), TOL);
            close(name, "before whitening", &got.advantages, &want("advantages_before_whitening"), TOL);
            close(name, "advantages", &whiten(&got.advantages).unwrap(), &want("advantages"), TOL);
        }
        "reinforce_plus_plus" => {
            let options = ReinforcePlusPlus { gamma: gamma(), reset_after: &ragged.gaps };
            let got = reinforce_plus_plus(rows, &rewards(), options).unwrap();
            close(name, "returns", &got.returns, &want("returns"), TOL);
            close(name, "advantages", &got.advantages, &want("advantages"), TOL);
        }
        "remax" => {
            let got = remax(rows, &rewards(), &numbers(&inputs["reward_baselines"])).unwrap();
            close(name, "returns", &got.returns, &want("returns"), TOL);
            close(name, "advantages", &got.advantages, &want("advantages"), TOL);
        }
        "optimal_token_baseline" | "tir_optimal_token_baseline" => {
            let weights = inputs.get("rollout_is_weights").filter(|w| !w.is_null()).map(|w| ragged.pick(w));
            let got = optimal_token_baseline(
                rows,
                TokenBaselineInputs {
                    rewards: &rewards(),
                    log_prob: &ragged.pick(&inputs["old_log_probs"]),
                    sum_pi_squared: &ragged.pick(&inputs["sum_pi_squared"]),
                    is_weight: weights.as_deref(),
                    positions: (function == "optimal_token_baseline").then_some(&ragged.columns[..]),
                    groups: &labels(&inputs["index"]),
                },
                TokenBaselineOptions {
                    handle_zero_tail: inputs["handle_zero_tail"]
                        .as_bool()
                        .unwrap_or(function == "tir_optimal_token_baseline"),
                    singleton: SingletonGroup::RawReturn,
                },
            )
            .unwrap();
            close(name, "returns", &got.returns, &want("returns"), TOL);
            close(name, "advantages", &got.advantages, &want("advantages"), TOL);
        }
        "ragen2_grpo" => {
            let returns = row_returns(inputs);
            let groups = labels(&inputs["index"]);
            let episodes = match inputs.get("episode_ids") {
                Some(ids) if !ids.is_null() => labels(ids),
                _ => (0..returns.len()).collect(),
            };
            let got = grpo_episodes(&returns, &groups, &episodes, grpo_options(inputs)).unwrap();
            let weights = soft_weights(&got.group_std);
            close(name, "group_std", &got.group_std, &numbers(&outputs["group_std"]), TOL);
            close(name, "soft_weight", &weights, &numbers(&outputs["soft_weight"]), TOL);
            close(name, "advantages", &rows.spread(&got.advantages).unwrap(), &want("advantages"), TOL);
            let soft: Vec<f64> = got.advantages.iter().zip(&weights).map(|(a, w)| a * w).collect();
            close(name, "soft", &rows.spread(&soft).unwrap(), &want("soft_advantages"), TOL);
        }
        _ => {
            let got = by_row(inputs, &ragged, function);
            if outputs.get("raises").is_some() {
                assert!(got.is_err(), "{name}");
            } else {
                let tolerance = if function == "grpo_vectorized" { 1e-5 } else { TOL };
                close(name, "advantages", &got.unwrap(), &want("advantages"), tolerance);
            }
        }
    }
}

#[test]
fn bi_level_gae_agrees_where_the_source_is_right() {
    let Some(cases) = cases("bi_level_gae") else { return };
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        let ragged = Ragged::new(&inputs["loss_mask"]);
        let rewards = ragged.pick(&inputs["token_level_rewards"]);
        let values = ragged.pick(&inputs["values"]);
        let options = BiLevelOptions {
            gamma: number(&inputs["gamma"]),
            lam: number(&inputs["lam"]),
            high_level_gamma: number(&inputs["high_level_gamma"]),
        };
        let broken = case.get("known_broken").is_some_and(|b| !b.is_null() && *b != Value::Bool(false));
        // Turn ends: as the source reads them where that is right, else from the gaps in the mask.
        let mut ends: Vec<usize> = ragged.rows.ranges().filter(|r| !r.is_empty()).map(|r| r.end - 1).collect();
        if broken {
            ends.extend(&ragged.gaps);
        } else {
            ends.extend((0..rewards.len()).filter(|t| rewards[*t] != 0.0));
        }
        ends.sort_unstable();
        ends.dedup();
        let got = bi_level_gae(&ragged.rows, &rewards, &values, &ends, options).unwrap();
        if broken {
            assert!(got.advantages.iter().all(|a| a.is_finite()), "{name}");
            continue;
        }
        close(name, "returns", &got.returns, &ragged.pick(&outputs["returns"]), TOL);
        let before = ragged.pick(&outputs["advantages_before_whitening"]);
        close(name, "before whitening", &got.advantages, &before, TOL);
        close(name, "advantages", &whiten(&got.advantages).unwrap(), &ragged.pick(&outputs["advantages"]), TOL);
    }
}

#[test]
fn gigpo_agrees_with_its_source() {
    let Some(cases) = cases("gigpo") else { return };
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        let ragged = Ragged::new(&inputs["response_mask"]);
        let (groups, episodes) = (labels(&inputs["group"]), labels(&inputs["trajectory"]));
        let (states, step_rewards) = (labels(&inputs["anchor_state"]), numbers(&inputs["step_reward"]));
        let episode_returns = numbers(&inputs["episode_return_per_row"]);
        let batch = StepBatch {
            groups: &groups,
            episodes: &episodes,
            states: &states,
            step_rewards: &step_rewards,
            episode_returns: &episode_returns,
        };
        let options = |pooling| GigpoOptions {
            gamma: number(&inputs["gamma"]),
            step_advantage_w: number(&inputs["step_advantage_w"]),
            norm_by_std: inputs["mode"] == "mean_std_norm",
            eps: number(&inputs["epsilon"]),
            pooling,
            singleton: SingletonGroup::RawReturn,
        };
        let pooled = gigpo(batch, options(EpisodePooling::Rows)).unwrap();
        let once = gigpo(batch, options(EpisodePooling::Episodes)).unwrap();
        let spread = |rows: &[f64]| ragged.rows.spread(rows).unwrap();
        let want = |key: &str| ragged.pick(&outputs[key]);
        close(name, "step_returns", &pooled.step_returns, &numbers(&outputs["step_returns"]), TOL);
        let first: Vec<f64> = pooled.first_visit.iter().map(|row| *row as f64).collect();
        close(name, "first row", &first, &numbers(&outputs["step_group_first_row"]), TOL);
        close(name, "step", &spread(&pooled.step), &want("step_advantage"), TOL);
        close(name, "pooled", &spread(&pooled.episode), &want("episode_advantage_rows_pooled"), TOL);
        close(name, "per episode", &spread(&once.episode), &want("episode_advantage_per_trajectory"), TOL);
        close(name, "advantages", &spread(&pooled.advantages), &want("advantages"), TOL);
    }
}

#[test]
fn overlong_penalty_agrees_with_its_source() {
    let Some(cases) = cases("extras") else { return };
    for case in cases.iter().filter(|case| case["function"] == "overlong_penalty") {
        let inputs = &case["inputs"];
        let rule = OverlongPenalty {
            max_response_length: number(&inputs["max_response_length"]),
            buffer: number(&inputs["overlong_buffer"]),
            penalty_factor: number(&inputs["penalty_factor"]),
        };
        let lengths = numbers(&inputs["lengths"]);
        let rewards = numbers(&inputs["rewards"]);
        let got: Vec<f64> = lengths.iter().zip(rewards).map(|(n, r)| r + rule.reward(*n as usize).unwrap()).collect();
        close(name(case), "rewards", &got, &numbers(&case["outputs"]["rewards"]), TOL);
    }
}
