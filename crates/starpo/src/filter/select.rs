//! Which of several scored groups are kept.

use super::FilterError;
use crate::aggregate::nearest;

/// Scores whose magnitude does not exceed this count as zero.
pub const ZERO_SCORE: f64 = 1e-10;

/// How top-p turns scores into shares (`rollout_filter_top_p_prob_mode`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TopPMode {
    /// Shares of the sum: keep the shortest prefix whose sum reaches p·Σ − eps, nothing if it is never reached.
    Linear {
        /// `selection_eps`; 0.01 in RAGEN. It is in units of the score, so scale it to the rewards.
        eps: f64,
    },
    /// Softmax shares: keep the shortest prefix whose probability reaches p. Always keeps at least one group.
    Softmax,
}

/// How many groups are kept (`rollout_filter_strategy` and `rollout_filter_value`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// Groups that carry the share p of the score; p ≥ 1 keeps all.
    TopP {
        /// p.
        value: f64,
        /// Shares of what.
        mode: TopPMode,
    },
    /// The fraction of all groups, rounded down, at least one.
    TopK {
        /// The fraction.
        value: f64,
    },
    /// A number of groups, at least one.
    TopKAbs {
        /// The number.
        count: usize,
    },
    /// Groups whose score is at least `value` times the largest (or at most the smallest divided by it).
    MinP {
        /// The factor.
        value: f64,
    },
}

/// Which end is kept (`rollout_filter_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterType {
    /// The largest scores.
    #[default]
    Largest,
    /// The smallest scores.
    Smallest,
}

/// A complete selection rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// How many.
    pub strategy: Strategy,
    /// From which end.
    pub filter_type: FilterType,
    /// Whether groups of score zero may be kept (`rollout_filter_include_zero`).
    pub include_zero: bool,
}

impl Default for Selection {
    /// No filter: top-p 1 with zeros.
    fn default() -> Self {
        let strategy = Strategy::TopP { value: 1.0, mode: TopPMode::Linear { eps: 0.01 } };
        Self { strategy, filter_type: FilterType::Largest, include_zero: true }
    }
}

/// The selection as the configuration spells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectionConfig<'a> {
    /// `top_p`, `top_k`, `top_k_abs` or `min_p`.
    pub strategy: &'a str,
    /// The strategy's value.
    pub value: f64,
    /// `largest` or `smallest`.
    pub filter_type: &'a str,
    /// Whether groups of score zero may be kept.
    pub include_zero: bool,
    /// `linear` or `softmax`; read by top-p only.
    pub top_p_prob_mode: &'a str,
    /// Slack of linear top-p.
    pub selection_eps: f64,
}

impl SelectionConfig<'_> {
    /// Reads the rule.
    ///
    /// # Errors
    /// [`FilterError::Unknown`] names the nearest known word; [`FilterError::Value`] for a value out of range.
    pub fn read(&self) -> Result<Selection, FilterError> {
        let unknown = |key, found: &str, known: &[&'static str]| FilterError::Unknown {
            key,
            found: found.to_owned(),
            nearest: nearest(found, known),
        };
        let filter_type = match self.filter_type {
            "largest" => FilterType::Largest,
            "smallest" => FilterType::Smallest,
            other => return Err(unknown("rollout_filter_type", other, &["largest", "smallest"])),
        };
        let value = self.value;
        let refuse = |expected| Err(FilterError::Value { key: "rollout_filter_value", expected, found: value });
        if !(value.is_finite() && value > 0.0) {
            return refuse("a number above 0");
        }
        let strategy = match self.strategy {
            "top_p" => {
                let mode = match self.top_p_prob_mode {
                    "linear" if self.selection_eps.is_finite() => TopPMode::Linear { eps: self.selection_eps },
                    "linear" => {
                        let (key, expected) = ("selection_eps", "a finite number");
                        return Err(FilterError::Value { key, expected, found: self.selection_eps });
                    }
                    "softmax" => TopPMode::Softmax,
                    other => return Err(unknown("rollout_filter_top_p_prob_mode", other, &["linear", "softmax"])),
                };
                Strategy::TopP { value, mode }
            }
            "top_k" if value <= 1.0 => Strategy::TopK { value },
            "top_k" => return refuse("at most 1 (a fraction of the groups) with top_k; top_k_abs takes a number"),
            "top_k_abs" if value >= 1.0 => Strategy::TopKAbs { count: value as usize },
            "top_k_abs" => return refuse("at least 1 with top_k_abs; top_k takes a fraction"),
            "min_p" if value <= 1.0 => Strategy::MinP { value },
            "min_p" => return refuse("at most 1 with min_p"),
            other => {
                return Err(unknown("rollout_filter_strategy", other, &["top_p", "top_k", "top_k_abs", "min_p"]));
            }
        };
        Ok(Selection { strategy, filter_type, include_zero: self.include_zero })
    }
}

impl Selection {
    /// Indices of the kept scores, in the order of selection: best first, ties by index. NaN sorts as the largest.
    ///
    /// Can be empty: nothing but zeros with `include_zero` off; linear top-p whose threshold p·Σ − eps is not
    /// positive or not reached; min-p on negative scores.
    pub fn select(&self, scores: &[f64]) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..scores.len()).filter(|i| self.include_zero || scores[*i].abs() > ZERO_SCORE).collect();
        let smallest = self.filter_type == FilterType::Smallest;
        let key = |i: usize| if scores[i].is_nan() { f64::INFINITY } else { scores[i] };
        order.sort_by(|a, b| if smallest { key(*a).total_cmp(&key(*b)) } else { key(*b).total_cmp(&key(*a)) });
        let keep = match self.strategy {
            Strategy::TopP { value, .. } if value >= 1.0 => order.len(),
            Strategy::TopP { value, mode: TopPMode::Linear { eps } } => linear_prefix(scores, &order, value, eps),
            Strategy::TopP { value, mode: TopPMode::Softmax } => softmax_prefix(scores, &order, value, smallest),
            Strategy::TopK { value } => ((value * scores.len() as f64) as usize).max(1),
            Strategy::TopKAbs { count } => count.max(1),
            Strategy::MinP { value } => {
                let Some(extreme) = order.first().map(|i| scores[*i]) else { return order };
                order.retain(|i| {
                    if smallest {
                        scores[*i] <= extreme / (value + 1e-10) + 1e-10
                    } else {
                        scores[*i] >= value * extreme - 1e-10
                    }
                });
                order.len()
            }
        };
        order.truncate(keep);
        order
    }
}

/// Length of the prefix of `order` that linear top-p keeps.
fn linear_prefix(scores: &[f64], order: &[usize], p: f64, eps: f64) -> usize {
    let threshold = p * order.iter().map(|i| scores[*i]).sum::<f64>() - eps;
    let (mut sum, mut kept) = (0.0, 0);
    for i in order {
        if sum >= threshold || scores[*i] <= 0.0 {
            break;
        }
        sum += scores[*i];
        kept += 1;
    }
    // A threshold that is never reached (NaN included) keeps nothing.
    if sum >= threshold { kept } else { 0 }
}

/// Length of the prefix of `order` that softmax top-p keeps.
fn softmax_prefix(scores: &[f64], order: &[usize], p: f64, smallest: bool) -> usize {
    let logits: Vec<f64> = order.iter().map(|i| if smallest { -scores[*i] } else { scores[*i] }).collect();
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|x| (x - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    for (i, weight) in weights.iter().enumerate() {
        sum += weight / total;
        if sum >= p {
            return i + 1;
        }
    }
    order.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f64; 8] = [0.0, 0.0, 0.05, 0.1, 1.0, 3.35, 4.95, 5.8];

    fn top_p(value: f64, mode: TopPMode, include_zero: bool, scores: &[f64]) -> Vec<usize> {
        Selection { strategy: Strategy::TopP { value, mode }, filter_type: FilterType::Largest, include_zero }
            .select(scores)
    }

    #[test]
    fn published_example() {
        let linear = TopPMode::Linear { eps: 0.01 };
        for include_zero in [true, false] {
            for (p, want) in [(0.98, 4), (0.95, 4), (0.9, 3), (0.8, 3), (0.6, 2), (0.4, 2)] {
                assert_eq!(top_p(p, linear, include_zero, &SCORES), [7, 6, 5, 4][..want], "linear {p}");
            }
            for (p, want) in [(0.98, 3), (0.95, 3), (0.9, 2), (0.8, 2), (0.6, 1), (0.4, 1)] {
                assert_eq!(top_p(p, TopPMode::Softmax, include_zero, &SCORES), [7, 6, 5][..want], "softmax {p}");
            }
        }
    }

    #[test]
    fn zeros_and_tiny_scores() {
        let linear = TopPMode::Linear { eps: 0.01 };
        assert!(top_p(0.9, linear, true, &[0.0; 8]).is_empty());
        assert_eq!(top_p(0.9, TopPMode::Softmax, true, &[0.0; 8]).len(), 8);
        assert!(top_p(0.9, TopPMode::Softmax, false, &[0.0; 8]).is_empty());
        assert_eq!(top_p(0.9, linear, true, &[1.0; 8]).len(), 8);
        let mut tiny = [0.0; 8];
        tiny[7] = 0.005;
        assert!(top_p(0.9, linear, true, &tiny).is_empty());
        assert_eq!(top_p(0.9, TopPMode::Linear { eps: 0.0 }, true, &tiny), [7]);
        tiny[7] = 0.05;
        assert_eq!(top_p(0.9, linear, true, &tiny), [7]);
    }

    #[test]
    fn counts_are_of_all_groups() {
        let rule = |strategy| Selection { strategy, filter_type: FilterType::Largest, include_zero: false };
        assert_eq!(rule(Strategy::TopK { value: 0.25 }).select(&SCORES), [7, 6]);
        assert_eq!(rule(Strategy::TopK { value: 0.01 }).select(&SCORES), [7]);
        assert_eq!(rule(Strategy::TopK { value: 1.0 }).select(&SCORES).len(), 6);
        assert_eq!(rule(Strategy::TopKAbs { count: 3 }).select(&SCORES), [7, 6, 5]);
        assert_eq!(rule(Strategy::TopKAbs { count: 99 }).select(&SCORES).len(), 6);
        assert_eq!(rule(Strategy::MinP { value: 0.5 }).select(&SCORES), [7, 6, 5]);
        for strategy in [Strategy::TopK { value: 0.5 }, Strategy::TopKAbs { count: 2 }, Strategy::MinP { value: 0.5 }] {
            assert!(rule(strategy).select(&[]).is_empty());
        }
    }

    #[test]
    fn the_default_keeps_everything() {
        assert_eq!(Selection::default().select(&SCORES).len(), 8);
    }

    #[test]
    fn configuration_is_checked() {
        let good = SelectionConfig {
            strategy: "top_p",
            value: 0.9,
            filter_type: "largest",
            include_zero: true,
            top_p_prob_mode: "linear",
            selection_eps: 0.01,
        };
        assert!(good.read().is_ok());
        let nearest = |config: SelectionConfig<'_>| match config.read() {
            Err(FilterError::Unknown { nearest, .. }) => nearest,
            other => panic!("{other:?}"),
        };
        assert_eq!(nearest(SelectionConfig { strategy: "topk", ..good }), "top_k");
        assert_eq!(nearest(SelectionConfig { filter_type: "large", ..good }), "largest");
        assert_eq!(nearest(SelectionConfig { top_p_prob_mode: "soft_max", ..good }), "softmax");
        for (strategy, value) in
            [("top_k", 3.0), ("top_k_abs", 0.5), ("min_p", 2.0), ("top_p", 0.0), ("top_p", f64::NAN)]
        {
            let config = SelectionConfig { strategy, value, ..good };
            assert!(matches!(config.read(), Err(FilterError::Value { .. })), "{strategy} {value}");
        }
    }
}
