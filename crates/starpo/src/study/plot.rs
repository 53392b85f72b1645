//! The curves of a study as a picture.

use std::path::Path;

use plotters::prelude::*;

use super::Study;
use super::results::{ArmResult, Point};

/// Pixels.
const SIZE: (u32, u32) = (900, 520);

/// A plot that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {path}: {message}")]
pub struct PlotError {
    path: String,
    message: String,
}

/// Draws the smoothed metric of every run, and the mean of each arm as a heavy line, as SVG. Nothing is drawn when no
/// run has a value.
///
/// # Errors
/// [`PlotError`] when the file cannot be written.
pub fn curves(study: &Study, arms: &[ArmResult], path: &Path) -> Result<(), PlotError> {
    let all: Vec<Point> = arms.iter().flat_map(|arm| &arm.runs).flat_map(|run| run.smoothed.iter().copied()).collect();
    if all.is_empty() {
        return Ok(());
    }
    draw(study, arms, &all, path)
        .map_err(|error| PlotError { path: path.display().to_string(), message: error.to_string() })
}

fn draw(
    study: &Study,
    arms: &[ArmResult],
    all: &[Point],
    path: &Path,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let last = all.iter().map(|(step, _)| *step).max().unwrap_or(1).max(1);
    let low = all.iter().map(|(_, v)| *v).fold(0.0, f64::min);
    let high = all.iter().map(|(_, v)| *v).fold(f64::MIN_POSITIVE, f64::max);
    let top = if study.metric.ends_with("success") { 1.0 } else { high + 0.05 * (high - low) };
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|e| fail(&e))?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{}: {}", study.name, study.metric), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(0u64..last, low..top)
        .map_err(|e| fail(&e))?;
    chart.configure_mesh().x_desc("iteration").y_desc(&study.metric).draw().map_err(|e| fail(&e))?;
    for (i, arm) in arms.iter().enumerate() {
        let colour = Palette99::pick(i).to_rgba();
        for run in &arm.runs {
            let line = LineSeries::new(run.smoothed.iter().copied(), colour.mix(0.35).stroke_width(1));
            chart.draw_series(line).map_err(|e| fail(&e))?;
        }
        let mean = LineSeries::new(mean_curve(arm), colour.stroke_width(3));
        let drawn = chart.draw_series(mean).map_err(|e| fail(&e))?;
        drawn.label(&arm.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3)));
    }
    let labels = chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw();
    labels.map_err(|e| fail(&e))?;
    root.present().map_err(|e| fail(&e))?;
    Ok(())
}

/// The mean over runs at every iteration that all of them have.
fn mean_curve(arm: &ArmResult) -> Vec<Point> {
    let Some(first) = arm.runs.first() else { return Vec::new() };
    let at = |step: u64| -> Option<f64> {
        let values: Option<Vec<f64>> =
            arm.runs.iter().map(|run| run.smoothed.iter().find(|(s, _)| *s == step).map(|(_, v)| *v)).collect();
        values.map(|values| crate::tokens::mean(&values))
    };
    first.smoothed.iter().filter_map(|(step, _)| Some((*step, at(*step)?))).collect()
}
