//! Losses and derivatives against veRL.

use serde_json::Value;

use super::*;
use crate::advantage::fixtures::{Ragged, cases, close, matrix, name, number};
use crate::aggregate::{LossAggMode, Normalizer, weighted_sum};
use crate::kl::KlPenalty;

const TOL: f64 = 2e-8;

/// The normaliser a case asks for; totals of a larger batch where it names them.
fn normalizer(mode: &str, info: &Value, ragged: &Ragged, width: usize) -> Normalizer {
    let length = info["loss_scale_factor"].as_f64().unwrap_or(width as f64);
    let mode = LossAggMode::parse(mode, length).unwrap();
    let own = |n: usize| n as f64;
    let tokens = info["batch_num_tokens"].as_f64().unwrap_or(own(ragged.rows.tokens()));
    let filled = ragged.rows.lengths().filter(|n| *n > 0).count();
    let sequences = info["global_batch_size"].as_f64().unwrap_or(own(filled));
    let dp = match mode {
        LossAggMode::SeqMeanTokenSumNorm { .. } => 1.0,
        _ => info["dp_size"].as_f64().unwrap_or(1.0),
    };
    Normalizer::from_totals(mode, tokens, sequences).scaled(dp)
}

fn scatter(ragged: &Ragged, shape: &Value, flat: &[f64]) -> Vec<f64> {
    let mut out: Vec<Vec<f64>> = matrix(shape).iter().map(|row| vec![0.0; row.len()]).collect();
    for ((i, t), v) in ragged.row_of.iter().zip(&ragged.columns).zip(flat) {
        out[*i][*t] = *v;
    }
    out.concat()
}

fn policy(function: &str, rows: &crate::tokens::Rows, inputs: &PolicyInputs<'_>, config: &Value) -> PolicyLoss {
    let setting = |key: &str, default: f64| config[key].as_f64().unwrap_or(default);
    let base = setting("clip_ratio", 0.2);
    let (low, high) = (setting("clip_ratio_low", base), setting("clip_ratio_high", base));
    let cov = |key: &str, default: f64| config["policy_loss"][key].as_f64().unwrap_or(default);
    match function {
        "vanilla" => {
            let options = PpoOptions {
                clip_ratio_low: low,
                clip_ratio_high: high,
                clip_ratio_c: Some(setting("clip_ratio_c", 3.0)),
            };
            ppo(inputs, &options)
        }
        "gspo" => gspo(rows, inputs, &GspoOptions { clip_ratio_low: low, clip_ratio_high: high }),
        "geo_mean" => gmpo(rows, inputs, &GmpoOptions { clip_ratio_low: low, clip_ratio_high: high }),
        "cispo" => cispo(inputs, &CispoOptions { clip_ratio_low: low, clip_ratio_high: high }),
        "sapo" => sapo(inputs, &SapoOptions { tau_pos: setting("tau_pos", 1.0), tau_neg: setting("tau_neg", 1.05) }),
        "gpg" => policy_gradient(&PolicyInputs { is_weight: None, ..*inputs }),
        "reinforce" => policy_gradient(inputs),
        "clip_cov" => {
            let options = ClipCovOptions {
                clip_ratio_low: low,
                clip_ratio_high: high,
                clip_cov_ratio: cov("clip_cov_ratio", 2e-4),
                clip_cov_lb: cov("clip_cov_lb", 1.0),
                clip_cov_ub: cov("clip_cov_ub", 5.0),
            };
            let covariance = covariances(inputs.advantage, inputs.log_prob).unwrap();
            let removed = clip_cov_select(inputs, &covariance, &options, |_| 0).unwrap();
            clip_cov(inputs, &removed, &options)
        }
        "kl_cov" => {
            let covariance = covariances(inputs.advantage, inputs.log_prob).unwrap();
            let selected = kl_cov_select(&covariance, cov("kl_cov_ratio", 2e-4));
            kl_cov(inputs, &selected, cov("ppo_kl_coef", 0.1))
        }
        other => panic!("unknown loss {other}"),
    }
    .unwrap()
}

#[test]
fn losses_and_derivatives_agree_with_their_source() {
    let Some(cases) = cases("losses") else { return };
    assert!(!cases.is_empty());
    for case in &cases {
        let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
        match case["function"].as_str().expect("a function") {
            "agg_loss" => aggregation(inputs, outputs, name),
            "value_loss" => value(inputs, outputs, name),
            "kl_penalty" => divergence(inputs, outputs, name),
            "compute_entropy_loss" => entropy_case(inputs, outputs, name),
            // Functions of logits belong to the model; here nothing sees logits.
            "entropy_from_logits" | "logprobs_from_logits" | "sum_pi_squared" => {}
            function => policy_case(function, inputs, outputs, name),
        }
    }
}

fn policy_case(function: &str, inputs: &Value, outputs: &Value, name: &str) {
    let ragged = Ragged::new(&inputs["response_mask"]);
    let config = &inputs["config"];
    let all_rows = matrix(&inputs["response_mask"]);
    let width = all_rows[0].len();
    let weight = match function {
        "geo_mean" => {
            // The source divides by all rows, empty ones included.
            let mode = LossAggMode::SeqMeanTokenMean;
            Normalizer::from_totals(mode, 0.0, all_rows.len() as f64).weights(&ragged.rows)
        }
        _ => {
            let mode = match function {
                "gspo" | "sapo" => "seq-mean-token-mean",
                _ => inputs["loss_agg_mode"].as_str().unwrap(),
            };
            normalizer(mode, &config["global_batch_info"], &ragged, width).weights(&ragged.rows)
        }
    };
    let is = inputs.get("rollout_is_weights").filter(|w| !w.is_null()).map(|w| ragged.pick(w));
    let (lp, old) = (ragged.pick(&inputs["log_prob"]), ragged.pick(&inputs["old_log_prob"]));
    let advantage = ragged.pick(&inputs["advantages"]);
    let given = PolicyInputs { is_weight: is.as_deref(), ..PolicyInputs::new(&lp, &old, &advantage, &weight) };
    let got = policy(function, &ragged.rows, &given, config);
    close(name, "loss", &[got.loss], &[number(&outputs["loss"])], TOL);
    let grad = scatter(&ragged, &inputs["response_mask"], &got.d_log_prob);
    close(name, "gradient", &grad, &matrix(&outputs["grad_log_prob"]).concat(), TOL);
    for (key, want) in outputs["metrics"].as_object().expect("metrics") {
        let value = match key.as_str() {
            "pg_clipfrac" => got.metrics.pg_clipfrac(),
            "pg_clipfrac_lower" => got.metrics.pg_clipfrac_lower(),
            "ppo_kl" => got.metrics.ppo_kl(),
            other => panic!("{name}: unknown metric {other}"),
        };
        close(name, key, &[value], &[number(want)], TOL);
    }
}

fn aggregation(inputs: &Value, outputs: &Value, name: &str) {
    let ragged = Ragged::new(&inputs["loss_mask"]);
    let width = matrix(&inputs["loss_mask"])[0].len();
    let mode = inputs["loss_agg_mode"].as_str().unwrap();
    let weights = normalizer(mode, inputs, &ragged, width).weights(&ragged.rows);
    let got = weighted_sum(&ragged.pick(&inputs["loss_mat"]), &weights);
    let want = number(&outputs["loss"]);
    if want.is_nan() {
        // An empty batch is 0/0 in the source and nothing here.
        assert_eq!((got, ragged.rows.tokens()), (0.0, 0), "{name}");
        return;
    }
    close(name, "loss", &[got], &[want], TOL);
    let grad = scatter(&ragged, &inputs["loss_mask"], &weights);
    close(name, "gradient", &grad, &matrix(&outputs["grad_loss_mat"]).concat(), TOL);
}

fn value(inputs: &Value, outputs: &Value, name: &str) {
    let ragged = Ragged::new(&inputs["response_mask"]);
    let width = matrix(&inputs["response_mask"])[0].len();
    let mode = inputs["loss_agg_mode"].as_str().unwrap();
    let weight = normalizer(mode, &Value::Null, &ragged, width).weights(&ragged.rows);
    let given = ValueInputs {
        value: &ragged.pick(&inputs["vpreds"]),
        old_value: &ragged.pick(&inputs["values"]),
        returns: &ragged.pick(&inputs["returns"]),
        weight: &weight,
    };
    let got = value_loss(&given, number(&inputs["cliprange_value"])).unwrap();
    close(name, "loss", &[got.loss], &[number(&outputs["vf_loss"])], TOL);
    close(name, "clipfrac", &[got.vf_clipfrac()], &[number(&outputs["vf_clipfrac"])], TOL);
    let grad = scatter(&ragged, &inputs["response_mask"], &got.d_value);
    close(name, "gradient", &grad, &matrix(&outputs["grad_vpreds"]).concat(), TOL);
}

fn divergence(inputs: &Value, outputs: &Value, name: &str) {
    let penalty: KlPenalty = inputs["kl_penalty"].as_str().unwrap().parse().unwrap();
    let (lp, rp) = (matrix(&inputs["logprob"]).concat(), matrix(&inputs["ref_logprob"]).concat());
    let values: Vec<f64> = lp.iter().zip(&rp).map(|(a, b)| penalty.value(*a, *b)).collect();
    close(name, "value", &values, &matrix(&outputs["value"]).concat(), TOL);
    let term = crate::kl::kl_loss(&lp, &rp, &vec![1.0; lp.len()], penalty).unwrap();
    close(name, "gradient", &term.d_log_prob, &matrix(&outputs["grad_logprob"]).concat(), TOL);
}

/// The entropies come from the logits, here as the model would give them; the aggregation is what is tested.
fn entropy_case(inputs: &Value, outputs: &Value, name: &str) {
    let ragged = Ragged::new(&inputs["response_mask"]);
    let width = matrix(&inputs["response_mask"])[0].len();
    let logits: Vec<Vec<Vec<f64>>> = inputs["logits"].as_array().unwrap().iter().map(matrix).collect();
    let entropy: Vec<f64> = ragged
        .row_of
        .iter()
        .zip(&ragged.columns)
        .map(|(i, t)| {
            let z = &logits[*i][*t];
            let largest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = z.iter().map(|x| (x - largest).exp()).sum();
            largest + total.ln() - z.iter().map(|x| x * (x - largest).exp() / total).sum::<f64>()
        })
        .collect();
    let mode = inputs["loss_agg_mode"].as_str().unwrap();
    let weight = normalizer(mode, &Value::Null, &ragged, width).weights(&ragged.rows);
    let term = entropy_bonus(&entropy, &weight, 1.0).unwrap();
    close(name, "entropy", &[term.entropy], &[number(&outputs["entropy"])], TOL);
    close(name, "loss", &[-term.loss], &[number(&outputs["entropy"])], TOL);
}
