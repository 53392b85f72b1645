//! Losses against a second implementation (TRL), and the corrections of a mismatched sampler against veRL.

use serde_json::Value;

use super::*;
use crate::advantage::fixtures::{Ragged, cases, close, matrix, name, number, numbers};
use crate::kl::kl_loss;

const TOL: f64 = 2e-8;

#[test]
fn second_implementation_agrees() {
    let Some(cases) = cases("extras") else { return };
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        match case["function"].as_str().expect("a function") {
            "trl_grpo_loss" => grpo_loss(inputs, outputs, name),
            "off_policy_mask" => {
                let ragged = Ragged::new(&inputs["mask"]);
                let keep = off_policy_mask(
                    &ragged.rows,
                    &ragged.pick(&inputs["log_prob"]),
                    &ragged.pick(&inputs["sampler_log_prob"]),
                    &numbers(&inputs["advantages"]),
                    number(&inputs["threshold"]),
                )
                .unwrap();
                let keep: Vec<f64> = keep.into_iter().map(|k| f64::from(u8::from(k))).collect();
                close(name, "keep", &keep, &numbers(&outputs["keep"]), 0.0);
            }
            _ => {}
        }
    }
}

fn grpo_loss(inputs: &Value, outputs: &Value, name: &str) {
    let settings = &inputs["settings"];
    let setting = |key: &str| settings[key].as_f64().unwrap_or_else(|| panic!("{name}: no {key}"));
    let ragged = Ragged::new(&inputs["mask"]);
    let rows = &ragged.rows;
    let batch = rows.len() as f64;
    let (lp, old) = (ragged.pick(&inputs["log_prob"]), ragged.pick(&inputs["old_log_prob"]));
    let per_row = numbers(&inputs["advantages"]);
    let advantage = rows.spread(&per_row).unwrap();
    let sequence = settings["importance_sampling_level"] == "sequence";
    let loss_type = settings["loss_type"].as_str().unwrap();
    let weight: Vec<f64> = rows
        .ranges()
        .flat_map(|range| {
            let divisor = match loss_type {
                "grpo" | "sapo" => batch * range.len().max(1) as f64,
                "dr_grpo" => batch * setting("max_completion_length"),
                "luspo" => batch,
                _ => rows.tokens() as f64,
            };
            vec![1.0 / divisor; range.len()]
        })
        .collect();
    let mut policy_weight = weight.clone();
    if let Some(threshold) = settings["off_policy_mask_threshold"].as_f64() {
        let sampler =
            if inputs["sampler_log_prob"].is_null() { old.clone() } else { ragged.pick(&inputs["sampler_log_prob"]) };
        let keep = off_policy_mask(rows, &lp, &sampler, &per_row, threshold).unwrap();
        for (range, _) in rows.ranges().zip(&keep).filter(|(_, keep)| !**keep) {
            policy_weight[range].fill(0.0);
        }
    }
    let (low, high) = (setting("epsilon_low"), setting("epsilon_high"));
    let given = PolicyInputs::new(&lp, &old, &advantage, &policy_weight);
    let mut got = match loss_type {
        "cispo" => cispo(&given, &CispoOptions::capped(high)),
        "sapo" => sapo(
            &given,
            &SapoOptions { tau_pos: setting("sapo_temperature_pos"), tau_neg: setting("sapo_temperature_neg") },
        ),
        "vespo" => {
            let ratio: Vec<f64> = lp.iter().zip(&old).map(|(a, b)| a - b).collect();
            let options = VespoOptions {
                k_pos: setting("vespo_k_pos"),
                lambda_pos: setting("vespo_lambda_pos"),
                k_neg: setting("vespo_k_neg"),
                lambda_neg: setting("vespo_lambda_neg"),
            };
            let phi = rows.spread(&vespo_weights(rows, &ratio, &per_row, &options).unwrap()).unwrap();
            policy_gradient(&PolicyInputs { is_weight: Some(&phi), ..given })
        }
        _ if sequence => gspo(rows, &given, &GspoOptions { clip_ratio_low: low, clip_ratio_high: high }),
        _ => {
            let clip_ratio_c = settings["delta"].as_f64();
            ppo(&given, &PpoOptions { clip_ratio_low: low, clip_ratio_high: high, clip_ratio_c })
        }
    }
    .unwrap();
    let beta = setting("beta");
    if beta != 0.0 {
        let reference = ragged.pick(&inputs["ref_log_prob"]);
        let term = if settings["use_bias_correction_kl"] == true {
            let level = if sequence { RatioLevel::Sequence } else { RatioLevel::Token };
            unbiased_kl(rows, &lp, &old, &reference, &weight, level).unwrap()
        } else {
            kl_loss(&lp, &reference, &weight, "k3".parse().unwrap()).unwrap()
        };
        got.loss += beta * term.loss;
        for (g, d) in got.d_log_prob.iter_mut().zip(&term.d_log_prob) {
            *g += beta * d;
        }
        let kl = term.sum / rows.tokens() as f64;
        close(name, "kl", &[kl], &[number(&outputs["metrics"]["kl"])], TOL);
    }
    close(name, "loss", &[got.loss], &[number(&outputs["loss"])], TOL);
    let want = ragged.pick(&outputs["grad_log_prob"]);
    close(name, "gradient", &got.d_log_prob, &want, TOL);
    let metrics = &outputs["metrics"];
    let clipped = metrics.get("cispo_clip_ratio").or_else(|| {
        // Sequence ratios are averaged over rows there and over tokens here.
        metrics.get("clip_ratio/region_mean").filter(|_| !sequence && loss_type != "vespo" && loss_type != "sapo")
    });
    if let (Some(want), "cispo") = (clipped, loss_type) {
        let high: Vec<f64> = lp
            .iter()
            .zip(&old)
            .zip(&advantage)
            .map(|((a, b), adv)| f64::from(u8::from((a - b).exp() > high && *adv > 0.0)))
            .collect();
        close(name, "clip ratio", &[crate::tokens::mean(&high)], &[number(want)], TOL);
    } else if let Some(want) = clipped {
        close(name, "clip ratio", &[got.metrics.pg_clipfrac()], &[number(want)], TOL);
    }
}

#[test]
fn sampler_corrections_agree() {
    let Some(cases) = cases("rollout_correction") else { return };
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        let ragged = Ragged::new(&inputs["response_mask"]);
        match case["function"].as_str().expect("a function") {
            "is_weights" => {
                let options = IsOptions {
                    level: if inputs["rollout_is"] == "sequence" { IsLevel::Sequence } else { IsLevel::Token },
                    threshold: number(&inputs["rollout_is_threshold"]),
                    batch_normalize: inputs["rollout_is_batch_normalize"].as_bool().unwrap(),
                };
                let got = is_weights(&ragged.rows, &ragged.pick(&inputs["log_ratio"]), &options).unwrap();
                close(name, "weights", &got, &ragged.pick(&outputs["weights"]), TOL);
                let m = is_metrics(&ragged.rows, &ragged.pick(&inputs["log_ratio"]), &options).unwrap();
                let named = [
                    ("mean", m.mean),
                    ("max", m.max),
                    ("min", m.min),
                    ("std", m.std),
                    ("eff_sample_size", m.eff_sample_size),
                    ("ratio_fraction_high", m.fraction_high),
                    ("ratio_fraction_low", m.fraction_low),
                    ("seq_mean", m.seq_mean),
                    ("seq_std", m.seq_std),
                    ("seq_max", m.seq_max),
                    ("seq_min", m.seq_min),
                    ("seq_max_deviation", m.seq_max_deviation),
                ];
                for (key, value) in named {
                    let want = &outputs["metrics"][format!("rollout_is_{key}")];
                    if !want.is_null() {
                        // The source's ε in its means leaves a deviation of 5e-5 where there is none, and some of these
                        // are in single precision there.
                        let tolerance = if key == "std" { 1e-4 } else { 1e-6 };
                        close(name, key, &[value], &[number(want)], tolerance);
                    }
                }
            }
            "rejection_mask" => {
                let names = inputs["rollout_rs"].as_str().unwrap().split(',');
                let bounds = match &inputs["rollout_rs_threshold"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let rules: Vec<RejectionRule> =
                    names.zip(bounds.split(',')).map(|(n, b)| RejectionRule::parse(n, b).unwrap()).collect();
                let got = rejection_mask(&ragged.rows, &ragged.pick(&inputs["log_ratio"]), &rules).unwrap();
                let got: Vec<f64> = got.into_iter().map(|k| f64::from(u8::from(k))).collect();
                close(name, "mask", &got, &ragged.pick(&outputs["mask"]), 0.0);
            }
            _ => {
                let got = off_policy_metrics(
                    &ragged.rows,
                    &ragged.pick(&inputs["old_log_prob"]),
                    &ragged.pick(&inputs["rollout_log_prob"]),
                )
                .unwrap();
                let named = [
                    ("training_ppl", got.training_ppl),
                    ("training_log_ppl", got.training_log_ppl),
                    ("rollout_ppl", got.rollout_ppl),
                    ("rollout_log_ppl", got.rollout_log_ppl),
                    ("kl", got.kl),
                    ("k3_kl", got.k3_kl),
                    ("log_ppl_diff", got.log_ppl_diff),
                    ("log_ppl_abs_diff", got.log_ppl_abs_diff),
                    ("log_ppl_diff_max", got.log_ppl_diff_max),
                    ("log_ppl_diff_min", got.log_ppl_diff_min),
                    ("ppl_ratio", got.ppl_ratio),
                    ("chi2_token", got.chi2_token),
                    ("chi2_seq", got.chi2_seq),
                ];
                for (key, value) in named {
                    close(name, key, &[value], &[number(&outputs[key])], TOL);
                }
            }
        }
        assert!(!matrix(&inputs["response_mask"]).is_empty());
    }
}
