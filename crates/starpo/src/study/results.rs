//! What the runs of a study say together: ends, peaks, and how sure one can be of them.

use std::path::Path;

use serde::Serialize;

use super::{Study, StudyRun};
use crate::evaluate::{MeanOverSeeds, mean_over_seeds};
use crate::metrics::Metrics;
use crate::run_dir::{RunDir, RunDirError};

/// A value of the metric and the iteration it was measured after.
pub type Point = (u64, f64);

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Its seed.
    pub seed: u64,
    /// It has come to its end.
    pub finished: bool,
    /// The metric as measured.
    pub curve: Vec<Point>,
    /// Averages of the last `smooth` values, from the first that has so many on.
    pub smoothed: Vec<Point>,
    /// The last smoothed value.
    pub end: Option<f64>,
    /// The highest one.
    pub peak: Option<f64>,
    /// Iteration of the guard's first warning.
    pub first_warning: Option<u64>,
    /// Iteration after which the smoothed metric was below three quarters of what it had reached.
    pub fallen_by_a_quarter: Option<u64>,
    /// Interventions of the guard.
    pub interventions: u64,
    /// Rollbacks among them, and the iteration of the last one.
    pub rollbacks: u64,
    /// See `rollbacks`.
    pub last_rollback: Option<u64>,
    /// Seconds of all iterations.
    pub seconds: f64,
}

/// The runs of one arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmResult {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunResult>,
    /// Over the ends of the finished runs.
    pub end: Option<MeanOverSeeds>,
    /// Over their peaks.
    pub peak: Option<MeanOverSeeds>,
}

/// Reads the results of a study from its runs' folders; runs that have not begun are left out.
///
/// # Errors
/// [`RunDirError`] for a folder that cannot be read.
pub fn results(study: &Study, runs: &[StudyRun]) -> Result<Vec<ArmResult>, RunDirError> {
    let mut arms = Vec::new();
    for (index, arm) in study.arms.iter().enumerate() {
        let mut found = Vec::new();
        for run in runs.iter().filter(|run| run.arm == index) {
            if RunDir::state_of(&run.path)?.is_some() {
                found.push(run_result(run.seed, &run.path, &study.metric, study.smooth)?);
            }
        }
        let over = |value: fn(&RunResult) -> Option<f64>| {
            let finished = found.iter().filter(|run| run.finished);
            mean_over_seeds(&finished.filter_map(value).collect::<Vec<_>>())
        };
        let (end, peak) = (over(|run| run.end), over(|run| run.peak));
        arms.push(ArmResult { name: arm.name.clone(), runs: found, end, peak });
    }
    Ok(arms)
}

fn run_result(seed: u64, path: &Path, metric: &str, smooth: usize) -> Result<RunResult, RunDirError> {
    let run = RunDir::view(path)?;
    let lines = run.read_metrics()?;
    let curve = curve(&lines, metric);
    let smoothed = smoothed(&curve, smooth);
    let peak = smoothed.iter().map(|(_, v)| *v).reduce(f64::max);
    let events = run.read_events()?;
    let guard: Vec<_> = events.iter().filter(|e| e.get("event").is_some_and(|kind| kind == "guard")).collect();
    let text = |e: &serde_json::Map<String, serde_json::Value>, key: &str| {
        e.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
    };
    let step = |e: &serde_json::Map<String, serde_json::Value>| e.get("step").and_then(serde_json::Value::as_u64);
    let warnings = guard.iter().filter(|e| text(e, "to") == "warned" && text(e, "from") != "warned");
    let done = guard.iter().filter(|e| e.get("action").is_some_and(|a| a.is_string()));
    let done: Vec<_> = done.filter(|e| e.get("only_observed") == Some(&serde_json::Value::Bool(false))).collect();
    let rollbacks: Vec<u64> = done.iter().filter(|e| text(e, "action") == "rollback").filter_map(|e| step(e)).collect();
    Ok(RunResult {
        seed,
        finished: run.is_finished(),
        end: smoothed.last().map(|(_, v)| *v),
        peak,
        first_warning: warnings.filter_map(|e| step(e)).min(),
        fallen_by_a_quarter: fallen(&smoothed, 0.75),
        interventions: done.len() as u64,
        rollbacks: rollbacks.len() as u64,
        last_rollback: rollbacks.into_iter().max(),
        seconds: lines.iter().filter_map(|(_, m)| m.get("timing_s/step")).sum(),
        curve,
        smoothed,
    })
}

/// The values of a metric; of several lines of one iteration the last counts.
fn curve(lines: &[(u64, Metrics)], metric: &str) -> Vec<Point> {
    let mut points: std::collections::BTreeMap<u64, f64> = std::collections::BTreeMap::new();
    for (step, metrics) in lines {
        if let Some(value) = metrics.get(metric).filter(|v| v.is_finite()) {
            points.insert(*step, value);
        }
    }
    points.into_iter().collect()
}

/// Means of `n` values in a row, at the last of them. A curve of fewer values is averaged as a whole.
pub fn smoothed(curve: &[Point], n: usize) -> Vec<Point> {
    let n = n.min(curve.len()).max(1);
    let mean = |w: &[Point]| w.iter().map(|(_, v)| *v).sum::<f64>() / w.len() as f64;
    curve.windows(n).filter_map(|w| Some((w.last()?.0, mean(w)))).collect()
}

/// The first step at which the curve is below `share` of its highest value until then.
fn fallen(curve: &[Point], share: f64) -> Option<u64> {
    let mut best = f64::NEG_INFINITY;
    for (step, value) in curve {
        best = best.max(*value);
        if *value < share * best {
            return Some(*step);
        }
    }
    None
}

/// The table of a study, in Markdown: a row an arm, then a row a run.
pub fn table(study: &Study, arms: &[ArmResult]) -> String {
    let percent = study.metric.ends_with("success");
    let number = |v: f64| if percent { format!("{:.1} %", 100.0 * v) } else { format!("{v:.4}") };
    let mean = |m: &Option<MeanOverSeeds>| match m {
        None => "–".to_owned(),
        Some(m) => match m.ci95 {
            Some((low, high)) => format!("{} ({}–{})", number(m.mean), number(low), number(high)),
            None => number(m.mean),
        },
    };
    let mut out = format!("# {}\n\n", study.name);
    if !study.question.is_empty() {
        out += &format!("{}\n\n", study.question);
    }
    out += &format!(
        "`{}`, mean of the last {} values; 95 % intervals over seeds by Student's t.\n\n",
        study.metric, study.smooth
    );
    out += "| arm | runs | end | peak | end / peak, lowest | interventions |\n|---|---|---|---|---|---|\n";
    for arm in arms {
        let finished: Vec<&RunResult> = arm.runs.iter().filter(|run| run.finished).collect();
        let lowest =
            finished.iter().filter_map(|run| Some(run.end? / run.peak.filter(|peak| *peak > 0.0)?)).reduce(f64::min);
        out += &format!(
            "| {} | {}/{} | {} | {} | {} | {} |\n",
            arm.name,
            finished.len(),
            study.seeds.len(),
            mean(&arm.end),
            mean(&arm.peak),
            lowest.map_or("–".into(), |share| format!("{:.0} %", 100.0 * share)),
            finished.iter().map(|run| run.interventions).sum::<u64>()
        );
    }
    out += "\n| arm | seed | end | peak | first warning | fallen by a quarter | interventions | last rollback | minutes |\n";
    out += "|---|---|---|---|---|---|---|---|---|\n";
    let step = |step: Option<u64>| step.map_or("–".into(), |step| step.to_string());
    for (arm, run) in arms.iter().flat_map(|arm| arm.runs.iter().map(move |run| (arm, run))) {
        out += &format!(
            "| {} | {}{} | {} | {} | {} | {} | {} | {} | {:.1} |\n",
            arm.name,
            run.seed,
            if run.finished { "" } else { " (unfinished)" },
            run.end.map_or("–".into(), number),
            run.peak.map_or("–".into(), number),
            step(run.first_warning),
            step(run.fallen_by_a_quarter),
            run.interventions,
            step(run.last_rollback),
            run.seconds / 60.0
        );
    }
    out
}
