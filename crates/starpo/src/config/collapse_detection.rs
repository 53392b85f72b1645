//! `collapse_detection`: whether and how often it is measured if the reasoning depends on the prompt.

use serde::{Deserialize, Serialize};

use super::problems::Problems;

/// Measurements of reasoning collapse (RAGEN-2, arXiv 2604.06268). They read and change nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollapseDetection {
    /// Iterations between measurements; the first iteration is measured as well. −1: never. Default 5.
    pub compute_freq: i64,
    /// Measure first turns: texts under the groups' initial prompts. Default true.
    pub first_turn_enabled: bool,
    /// Measure turns of whole trajectories: texts under their full contexts. Default true.
    pub multi_turn_enabled: bool,
    /// Texts of a measurement, at most. Default 64.
    pub num_samples: usize,
    /// Fewer trajectory samples are drawn where scoring them would probably take more than this share of the iterations
    /// it is spread over. Default 0.1.
    pub max_share: f64,
    /// Reasoning counts as independent of the prompt when its mutual information is below this share of the first
    /// measurement. Default 0.25.
    pub regime_mi_share: f64,
    /// Reasoning counts as the same every time when its conditional entropy is below this share of the first
    /// measurement. Default 0.75.
    pub regime_entropy_share: f64,
}

impl Default for CollapseDetection {
    fn default() -> Self {
        Self {
            compute_freq: 5,
            first_turn_enabled: true,
            multi_turn_enabled: true,
            num_samples: 64,
            max_share: 0.1,
            regime_mi_share: 0.25,
            regime_entropy_share: 0.75,
        }
    }
}

impl CollapseDetection {
    /// Whether a measurement is due at iteration `step` (from 1). Responses without reasoning have nothing to measure.
    pub fn is_due(&self, step: u64, enable_think: bool) -> bool {
        let freq = u64::try_from(self.compute_freq).unwrap_or(0);
        let on = enable_think && freq > 0 && (self.first_turn_enabled || self.multi_turn_enabled);
        on && crate::mi::is_due(step, freq)
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.every("collapse_detection.compute_freq", self.compute_freq);
        problems.at_least_one("collapse_detection.num_samples", self.num_samples);
        problems.at_most("collapse_detection.num_samples", self.num_samples, 4096);
        problems.positive("collapse_detection.max_share", self.max_share);
        problems.unit_interval("collapse_detection.regime_mi_share", self.regime_mi_share);
        problems.unit_interval("collapse_detection.regime_entropy_share", self.regime_entropy_share);
    }
}
