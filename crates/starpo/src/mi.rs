//! Reasoning-collapse diagnostics (RAGEN-2, arXiv 2604.06268): does the reasoning depend on the prompt?
//!
//! Every reasoning text is scored under every prompt of the batch. A text that is as likely under the other prompts as
//! under its own says nothing about its prompt, however diverse the texts are: template collapse, which entropy does
//! not show. Pure functions over the matrix of log-probabilities; who computes the matrix is elsewhere.

use serde::{Deserialize, Serialize};

use crate::tokens::mean;

/// Added to standard deviations in z-scores.
pub const STD_EPS: f64 = 1e-3;
/// Decay of the moving averages of the standard deviations.
pub const EMA_DECAY: f64 = 0.9;
/// The k of the retrieval accuracies, besides 1.
pub const RETRIEVAL_KS: [usize; 3] = [2, 4, 8];
const LARGEST_K: usize = 8;

/// A matrix that can not be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MiError {
    /// A row of the matrix, or a list beside it, has the wrong length.
    #[error("`{what}` needs {expected} values and has {found}")]
    Length {
        /// The argument.
        what: &'static str,
        /// Values needed.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A column that does not exist.
    #[error("text {text} names prompt column {column}, and there are {columns}")]
    Column {
        /// Row of the matrix.
        text: usize,
        /// Column named.
        column: usize,
        /// Columns there are.
        columns: usize,
    },
    /// A text without tokens, or a log-probability that is not finite.
    #[error("text {text} has {found}; drop texts without tokens and texts no prompt can produce before this step")]
    Text {
        /// Row of the matrix.
        text: usize,
        /// What is wrong.
        found: String,
    },
}

/// The cross matrix and what its rows and columns are.
#[derive(Clone, Copy, Debug)]
pub struct CrossScores<'a> {
    /// `log_prob[k][j]` = Σ_t log p(token t of text k | prompt j, earlier tokens), in nats.
    pub log_prob: &'a [Vec<f64>],
    /// Tokens of each text.
    pub lengths: &'a [usize],
    /// The column of each text's own prompt.
    pub own: &'a [usize],
    /// One number per column, equal for columns whose prompt tokens are equal.
    pub signatures: &'a [u64],
}

/// One of the two versions of the quantities: of length-normalised log-probabilities (a score) or of their sums (nats).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Information {
    /// I = mean(matched − marginal). At most log N for the sums; may be slightly negative, which means 0.
    pub mutual_information: f64,
    /// H(Z|X) = −mean matched.
    pub conditional_entropy: f64,
    /// H(Z) = −mean marginal.
    pub reasoning_entropy: f64,
    /// Population standard deviation of the marginals over texts.
    pub marginal_std: f64,
    /// mean(matched − marginal)/(marginal_std + ε).
    pub zscore: f64,
}

/// Everything measured on one matrix.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Collapse {
    /// Of log-probabilities per token.
    pub token: Information,
    /// Of log-probabilities of whole texts.
    pub sequence: Information,
    /// log N, the largest mutual information N prompts allow.
    pub upper_bound: f64,
    /// For k = 1, 2, 4, 8: the share of texts whose own prompt is among the best k columns.
    pub retrieval: Vec<Retrieval>,
}

/// A retrieval accuracy beside its chance level.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Retrieval {
    /// k as asked for; min(k, N, 8) columns are looked at.
    pub k: usize,
    /// The accuracy.
    pub accuracy: f64,
    /// What drawing columns at random would give at most.
    pub chance: f64,
}

/// Measures a cross matrix. `None` when there are fewer than two columns or no text: nothing can be compared.
///
/// # Errors
/// [`MiError`] when the parts do not fit together or a number is not finite.
pub fn collapse(scores: CrossScores<'_>) -> Result<Option<Collapse>, MiError> {
    let (texts, columns) = (scores.log_prob.len(), scores.signatures.len());
    let check = |what, expected, found| {
        if expected == found { Ok(()) } else { Err(MiError::Length { what, expected, found }) }
    };
    check("lengths", texts, scores.lengths.len())?;
    check("own", texts, scores.own.len())?;
    for (text, row) in scores.log_prob.iter().enumerate() {
        check("log_prob row", columns, row.len())?;
        let column = scores.own[text];
        if column >= columns {
            return Err(MiError::Column { text, column, columns });
        }
        if scores.lengths[text] == 0 {
            return Err(MiError::Text { text, found: "no tokens".to_owned() });
        }
        if let Some(bad) = row.iter().find(|x| !x.is_finite()) {
            return Err(MiError::Text { text, found: format!("the log-probability {bad}") });
        }
    }
    if columns < 2 || texts == 0 {
        return Ok(None);
    }
    let per_token: Vec<Vec<f64>> = scores
        .log_prob
        .iter()
        .zip(scores.lengths)
        .map(|(row, n)| row.iter().map(|x| x / *n as f64).collect())
        .collect();
    Ok(Some(Collapse {
        token: information(&per_token, scores.own),
        sequence: information(scores.log_prob, scores.own),
        upper_bound: (columns as f64).ln(),
        retrieval: retrieval(&per_token, scores.own, scores.signatures),
    }))
}

fn information(matrix: &[Vec<f64>], own: &[usize]) -> Information {
    let matched: Vec<f64> = matrix.iter().zip(own).map(|(row, c)| row[*c]).collect();
    let marginal: Vec<f64> = matrix
        .iter()
        .map(|row| {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            largest + (row.iter().map(|x| (x - largest).exp()).sum::<f64>() / row.len() as f64).ln()
        })
        .collect();
    let (mean_matched, mean_marginal) = (mean(&matched), mean(&marginal));
    let squares: Vec<f64> = marginal.iter().map(|x| (x - mean_marginal) * (x - mean_marginal)).collect();
    let marginal_std = mean(&squares).sqrt();
    let mutual_information = mean_matched - mean_marginal;
    Information {
        mutual_information,
        conditional_entropy: -mean_matched,
        reasoning_entropy: -mean_marginal,
        marginal_std,
        zscore: mutual_information / (marginal_std + STD_EPS),
    }
}

fn retrieval(per_token: &[Vec<f64>], own: &[usize], signatures: &[u64]) -> Vec<Retrieval> {
    let columns = signatures.len();
    let ranked: Vec<Vec<u64>> = per_token
        .iter()
        .map(|row| {
            let mut order: Vec<usize> = (0..columns).collect();
            order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
            order.into_iter().map(|c| signatures[c]).collect()
        })
        .collect();
    let same: Vec<f64> = own
        .iter()
        .map(|c| signatures.iter().filter(|s| **s == signatures[*c]).count() as f64 / columns as f64)
        .collect();
    let chance = mean(&same);
    std::iter::once(1)
        .chain(RETRIEVAL_KS)
        .map(|k| {
            let used = k.min(columns).min(LARGEST_K);
            let hits: Vec<f64> = ranked
                .iter()
                .zip(own)
                .map(|(best, c)| f64::from(u8::from(best[..used].contains(&signatures[*c]))))
                .collect();
            Retrieval { k, accuracy: mean(&hits), chance: (chance * used as f64).min(1.0) }
        })
        .collect()
}

/// The moving averages of the marginals' deviations; one per namespace of metrics, saved with the run.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct MarginalEma {
    /// Of the per-token version; `None` before the first measurement.
    pub token: Option<f64>,
    /// Of the whole-text version.
    pub sequence: Option<f64>,
}

impl MarginalEma {
    /// e ← 0.9 e + 0.1 std, starting with the first measurement. Returns the z-scores with the new averages, per token
    /// and of whole texts.
    pub fn update(&mut self, measured: &Collapse) -> (f64, f64) {
        let step = |e: &mut Option<f64>, now: &Information| {
            let next = e.map_or(now.marginal_std, |e| EMA_DECAY * e + (1.0 - EMA_DECAY) * now.marginal_std);
            *e = Some(next);
            now.mutual_information / (next + STD_EPS)
        };
        (step(&mut self.token, &measured.token), step(&mut self.sequence, &measured.sequence))
    }
}

impl Collapse {
    /// The numbers to log, under RAGEN's names without their namespace.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let mut out: Vec<(String, f64)> = [
            ("mi_estimate", self.token.mutual_information),
            ("mi_seq_estimate", self.sequence.mutual_information),
            ("mi_upper_bound", self.upper_bound),
            ("matched_log_prob_mean", -self.token.conditional_entropy),
            ("marginal_log_prob_mean", -self.token.reasoning_entropy),
            ("conditional_entropy_est", self.token.conditional_entropy),
            ("conditional_entropy_seq_est", self.sequence.conditional_entropy),
            ("reasoning_entropy_est", self.token.reasoning_entropy),
            ("reasoning_entropy_seq_est", self.sequence.reasoning_entropy),
            ("marginal_std", self.token.marginal_std),
            ("marginal_std_seq", self.sequence.marginal_std),
            ("mi_zscore", self.token.zscore),
            ("mi_zscore_seq", self.sequence.zscore),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for r in &self.retrieval {
            let suffix = if r.k == 1 { String::new() } else { format!("@{}", r.k) };
            out.push((format!("retrieval_accuracy{suffix}"), r.accuracy));
            out.push((format!("retrieval_chance_level{suffix}"), r.chance));
            out.push((format!("retrieval_above_chance{suffix}"), r.accuracy - r.chance));
        }
        out
    }
}

/// Whether the diagnostics are due: at step 1 and at every multiple of `compute_freq`, never at step 0.
pub fn is_due(step: u64, compute_freq: u64) -> bool {
    step == 1 || (step > 0 && compute_freq > 0 && step.is_multiple_of(compute_freq))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::fixtures::{cases, close, labels, name, number, numbers};

    fn measure(log_prob: &[Vec<f64>], own: &[usize], signatures: &[u64]) -> Collapse {
        let lengths = vec![1; log_prob.len()];
        collapse(CrossScores { log_prob, lengths: &lengths, own, signatures }).unwrap().unwrap()
    }

    #[test]
    fn published_example() {
        let matrix = [vec![-1.0, -2.0], vec![-1.5, -1.0], vec![-3.0, -2.5], vec![-0.5, -0.7]];
        let got = measure(&matrix, &[0, 0, 1, 1], &[1, 2]);
        let token = got.token;
        let found = [
            token.mutual_information,
            token.conditional_entropy,
            token.reasoning_entropy,
            token.marginal_std,
            token.zscore,
        ];
        for (g, w) in found.iter().zip([0.053259, 1.425, 1.478259, 0.774048, 0.068716]) {
            assert!((g - w).abs() < 1e-6, "{g} {w}");
        }
        assert_eq!(got.retrieval[0], Retrieval { k: 1, accuracy: 0.5, chance: 0.5 });
    }

    #[test]
    fn identical_prompts_are_always_found() {
        let got = measure(&[vec![-1.0, -2.0], vec![-1.0, -3.0]], &[1, 0], &[7, 7]);
        assert_eq!(got.retrieval[0], Retrieval { k: 1, accuracy: 1.0, chance: 1.0 });
    }

    #[test]
    fn edges() {
        let one = CrossScores { log_prob: &[vec![-1.0]], lengths: &[1], own: &[0], signatures: &[1] };
        assert_eq!(collapse(one), Ok(None));
        let two = CrossScores { log_prob: &[vec![-1.0, -2.0]], lengths: &[1], own: &[0], signatures: &[1, 2] };
        assert!(collapse(two).unwrap().is_some());
        assert!(matches!(collapse(CrossScores { own: &[2], ..two }), Err(MiError::Column { .. })));
        assert!(matches!(collapse(CrossScores { lengths: &[0], ..two }), Err(MiError::Text { .. })));
        assert!(matches!(collapse(CrossScores { lengths: &[], ..two }), Err(MiError::Length { .. })));
        let nan = [vec![-1.0, f64::NAN]];
        assert!(matches!(collapse(CrossScores { log_prob: &nan, ..two }), Err(MiError::Text { .. })));
    }

    #[test]
    fn every_case_agrees_with_its_source() {
        let Some(cases) = cases("mi") else { return };
        for case in &cases {
            let (inputs, outputs, name) = (&case["inputs"], &case["outputs"], name(case));
            if let Some(computed) = outputs.get("computed") {
                let freq = number(&inputs["compute_freq"]) as u64;
                let got: Vec<f64> = numbers(&inputs["steps"])
                    .iter()
                    .map(|step| f64::from(u8::from(is_due(*step as u64, freq))))
                    .collect();
                close(name, "due", &got, &numbers(computed), 0.0);
                continue;
            }
            let mut ema = MarginalEma::default();
            match inputs.get("steps") {
                Some(steps) => {
                    for (step, want) in steps.as_array().unwrap().iter().zip(outputs["steps"].as_array().unwrap()) {
                        compare(name, &step["token_log_probs"], inputs, want, &mut ema);
                    }
                }
                None => compare(name, &inputs["token_log_probs"], inputs, outputs, &mut ema),
            }
        }
    }

    fn compare(
        name: &str,
        token_log_probs: &serde_json::Value,
        inputs: &serde_json::Value,
        outputs: &serde_json::Value,
        ema: &mut MarginalEma,
    ) {
        // Columns are the sorted distinct group ids.
        let ids = numbers(&inputs["group_ids"]);
        let mut columns = ids.clone();
        columns.sort_by(f64::total_cmp);
        columns.dedup();
        let own: Vec<usize> = ids.iter().map(|id| columns.iter().position(|c| c == id).unwrap()).collect();
        let by_column = token_log_probs.as_array().unwrap();
        let log_prob: Vec<Vec<f64>> =
            (0..own.len()).map(|k| by_column.iter().map(|column| numbers(&column[k]).iter().sum()).collect()).collect();
        let lengths: Vec<usize> = numbers(&inputs["reasoning_lengths"]).iter().map(|n| *n as usize).collect();
        let signatures: Vec<u64> = labels(&inputs["prompt_signature_per_column"]).iter().map(|s| *s as u64).collect();
        let scores = CrossScores { log_prob: &log_prob, lengths: &lengths, own: &own, signatures: &signatures };
        let want = outputs.as_object().unwrap();
        let Some(got) = collapse(scores).unwrap() else {
            assert!(want.is_empty(), "{name}");
            return;
        };
        let (zscore, zscore_seq) = ema.update(&got);
        let mut metrics = got.metrics();
        metrics.extend(
            [
                ("marginal_std_ema", ema.token.unwrap()),
                ("marginal_std_ema_seq", ema.sequence.unwrap()),
                ("mi_zscore_ema", zscore),
                ("mi_zscore_ema_seq", zscore_seq),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        for (key, want) in want {
            let (_, value) = metrics.iter().find(|(k, _)| k == key).unwrap_or_else(|| panic!("{name}: no {key}"));
            close(name, key, &[*value], &[number(want)], 2e-8);
        }
    }
}
