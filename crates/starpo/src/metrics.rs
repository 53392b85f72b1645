//! Named numbers of an iteration, their accumulators, and their form as a line of JSON. Not a place where numbers are
//! computed, and not their file: that is the run folder's.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Named numbers, in the order of their names. Names have sections separated by slashes, e.g. `train/response_length`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

/// Why a line is not a line of metrics.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// Not JSON.
    #[error("expected a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON, but something is missing or of the wrong type.
    #[error("`{name}`: expected {expected}, found {found}")]
    Field {
        /// The name.
        name: String,
        /// What would be right.
        expected: &'static str,
        /// What is there.
        found: String,
    },
}

impl Metrics {
    /// No numbers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a number; a former one of that name is replaced.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }

    /// Sets a number if there is one.
    pub fn set_some(&mut self, name: impl Into<String>, value: Option<f64>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// The number of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Takes over all numbers of `other`, with `prefix` (such as `train/`, or nothing) before their names.
    pub fn merge(&mut self, prefix: &str, other: &Metrics) {
        for (name, value) in other.iter() {
            self.set(format!("{prefix}{name}"), value);
        }
    }

    /// Names and numbers, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line of JSON without the line break: `{"step":3,"actor/grad_norm":0.5}`.
    ///
    /// JSON has no word for what is not finite: such numbers become the texts `"NaN"`, `"Infinity"` and `"-Infinity"`,
    /// so that nothing is lost and any JSON reader can read the line.
    pub fn to_json_line(&self, step: u64) -> String {
        let mut object = Map::new();
        object.insert("step".into(), step.into());
        for (name, value) in self.iter() {
            object.insert(name.into(), to_json(value));
        }
        Value::Object(object).to_string()
    }

    /// Reads what [`Metrics::to_json_line`] wrote: the step and the numbers.
    ///
    /// # Errors
    /// [`MetricsError`] for anything else.
    pub fn from_json_line(line: &str) -> Result<(u64, Self), MetricsError> {
        let object: Map<String, Value> = serde_json::from_str(line)?;
        let wrong = |name: &str, expected: &'static str, found: String| MetricsError::Field {
            name: name.into(),
            expected,
            found,
        };
        let step = object.get("step").unwrap_or(&Value::Null);
        let step = step.as_u64().ok_or_else(|| wrong("step", "a whole number", step.to_string()))?;
        let mut metrics = Self::new();
        for (name, value) in &object {
            if name != "step" {
                let number = from_json(value).ok_or_else(|| wrong(name, "a number", value.to_string()))?;
                metrics.set(name.clone(), number);
            }
        }
        Ok((step, metrics))
    }
}

impl FromIterator<(String, f64)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (String, f64)>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl Extend<(String, f64)> for Metrics {
    fn extend<I: IntoIterator<Item = (String, f64)>>(&mut self, numbers: I) {
        self.0.extend(numbers);
    }
}

fn to_json(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

fn from_json(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text == "NaN" => Some(f64::NAN),
        Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
        Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Sums up a number that is observed many times, in the order of observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accumulator {
    sum: f64,
    weight: f64,
    min: f64,
    max: f64,
}

impl Default for Accumulator {
    fn default() -> Self {
        Self { sum: 0.0, weight: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Accumulator {
    /// Adds an observation.
    pub fn add(&mut self, value: f64) {
        self.add_weighted(value, 1.0);
    }

    /// Adds an observation that stands for `weight` (≥ 0) of them, such as the mean over that many tokens. A weight of
    /// zero is no observation.
    pub fn add_weighted(&mut self, value: f64, weight: f64) {
        if weight > 0.0 {
            self.sum += value * weight;
            self.weight += weight;
            // Unlike `f64::min`, these keep a NaN: it must not vanish from a report.
            self.min = if value < self.min || value.is_nan() { value } else { self.min };
            self.max = if value > self.max || value.is_nan() { value } else { self.max };
        }
    }

    /// Weighted mean; `None` without observations.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    /// Smallest observation; `None` without observations.
    pub fn min(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.min)
    }

    /// Largest observation; `None` without observations.
    pub fn max(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.max)
    }

    /// Sum of the observations, weighted.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

/// Accumulators by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accumulators(BTreeMap<String, Accumulator>);

impl Accumulators {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an observation under `name`.
    pub fn add(&mut self, name: &str, value: f64) {
        self.add_weighted(name, value, 1.0);
    }

    /// Adds an observation of a weight under `name`, see [`Accumulator::add_weighted`].
    pub fn add_weighted(&mut self, name: &str, value: f64, weight: f64) {
        match self.0.get_mut(name) {
            Some(accumulator) => accumulator.add_weighted(value, weight),
            None => self.0.entry(name.to_owned()).or_default().add_weighted(value, weight),
        }
    }

    /// The accumulator of that name.
    pub fn get(&self, name: &str) -> Option<&Accumulator> {
        self.0.get(name)
    }

    /// The mean of each, under its name.
    pub fn means(&self) -> Metrics {
        self.0.iter().filter_map(|(name, a)| Some((name.clone(), a.mean()?))).collect()
    }

    /// Mean, maximum and minimum of each, under `name/mean`, `name/max`, `name/min`.
    pub fn summaries(&self) -> Metrics {
        let mut metrics = Metrics::new();
        for (name, accumulator) in &self.0 {
            metrics.set_some(format!("{name}/mean"), accumulator.mean());
            metrics.set_some(format!("{name}/max"), accumulator.max());
            metrics.set_some(format!("{name}/min"), accumulator.min());
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_line_round_trips_even_what_is_not_finite() {
        let mut metrics = Metrics::new();
        metrics.set("b", 0.1 + 0.2);
        metrics.set("a/x", f64::NAN);
        metrics.set("c", f64::INFINITY);
        metrics.set("d", f64::NEG_INFINITY);
        metrics.set("e", -0.0);
        let line = metrics.to_json_line(7);
        let expected = r#"{"step":7,"a/x":"NaN","b":0.30000000000000004,"c":"Infinity","d":"-Infinity","e":-0.0}"#;
        assert_eq!(line, expected);
        let (step, read) = Metrics::from_json_line(&line).unwrap();
        assert_eq!(step, 7);
        assert!(read.get("a/x").unwrap().is_nan());
        assert_eq!(read.get("b"), metrics.get("b"));
        assert_eq!(read.get("d"), Some(f64::NEG_INFINITY));
        assert_eq!(read.len(), 5);
    }

    #[test]
    fn broken_lines_are_named() {
        assert!(matches!(Metrics::from_json_line("{\"step\":1,"), Err(MetricsError::Json(_))));
        let missing = Metrics::from_json_line("{\"a\":1}").unwrap_err();
        assert_eq!(missing.to_string(), "`step`: expected a whole number, found null");
        let text = Metrics::from_json_line("{\"step\":1,\"a\":\"x\"}").unwrap_err();
        assert_eq!(text.to_string(), "`a`: expected a number, found \"x\"");
    }

    #[test]
    fn accumulators_weigh_and_keep_nan() {
        let mut all = Accumulators::new();
        all.add_weighted("loss", 1.0, 3.0);
        all.add_weighted("loss", 5.0, 1.0);
        all.add_weighted("loss", 99.0, 0.0);
        assert_eq!(all.means().get("loss"), Some(2.0));
        assert_eq!(all.summaries().get("loss/max"), Some(5.0));
        assert_eq!(all.summaries().get("loss/min"), Some(1.0));
        assert_eq!(Accumulator::default().mean(), None);
        all.add("loss", f64::NAN);
        all.add("loss", 0.0);
        let loss = all.get("loss").unwrap();
        assert!(loss.mean().unwrap().is_nan() && loss.max().unwrap().is_nan() && loss.min().unwrap().is_nan());
    }

    #[test]
    fn merging_prefixes_names() {
        let mut metrics = Metrics::new();
        metrics.merge("train/", &[("success".to_string(), 0.5)].into_iter().collect());
        assert_eq!(metrics.iter().collect::<Vec<_>>(), [("train/success", 0.5)]);
    }
}
