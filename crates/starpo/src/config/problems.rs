//! Collects everything that is wrong with the meaning of a configuration, so that it is reported at once. Syntax, names
//! and types of keys are checked before, while loading.

/// The complaints found so far, each a sentence that names its key.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<String>);

impl Problems {
    /// Adds a complaint unless `ok`.
    pub(crate) fn require(&mut self, ok: bool, complaint: impl FnOnce() -> String) {
        if !ok {
            self.0.push(complaint());
        }
    }

    /// A count that must be at least 1.
    pub(crate) fn at_least_one(&mut self, key: &str, value: usize) {
        self.require(value >= 1, || format!("`{key}` must be at least 1, found {value}"));
    }

    /// A count that must not exceed what can be held in memory.
    pub(crate) fn at_most(&mut self, key: &str, value: usize, most: usize) {
        self.require(value <= most, || format!("`{key}` must be at most {most}, found {value}"));
    }

    /// A number that single precision can hold: everything is computed in it.
    fn single(&mut self, key: &str, value: f64) {
        let ok = value.abs() <= f64::from(f32::MAX);
        self.require(ok, || format!("`{key}` must be a number within ±3.4e38 (single precision), found {value:e}"));
    }

    /// A finite number that must be at least 0.
    pub(crate) fn non_negative(&mut self, key: &str, value: f64) {
        let ok = value.is_finite() && value >= 0.0;
        self.require(ok, || format!("`{key}` must be a number of at least 0, found {value}"));
        if ok {
            self.single(key, value);
        }
    }

    /// A finite number that must be greater than 0.
    pub(crate) fn positive(&mut self, key: &str, value: f64) {
        let ok = value.is_finite() && value > 0.0;
        self.require(ok, || format!("`{key}` must be a number greater than 0, found {value}"));
        if ok {
            self.single(key, value);
        }
    }

    /// A finite number of either sign.
    pub(crate) fn finite(&mut self, key: &str, value: f64) {
        let ok = value.is_finite();
        self.require(ok, || format!("`{key}` must be a finite number, found {value}"));
        if ok {
            self.single(key, value);
        }
    }

    /// A softmax temperature above 0. Logits are divided by it in single precision.
    pub(crate) fn temperature(&mut self, key: &str, value: f64) {
        let ok = (1e-4..=1e4).contains(&value);
        self.require(ok, || format!("`{key}` must lie between 1e-4 and 1e4, found {value}"));
    }

    /// A number from 0 to 1, both included.
    pub(crate) fn unit_interval(&mut self, key: &str, value: f64) {
        let ok = (0.0..=1.0).contains(&value);
        self.require(ok, || format!("`{key}` must lie between 0 and 1, found {value}"));
    }

    /// A cumulative probability: greater than 0, at most 1.
    pub(crate) fn top_p(&mut self, key: &str, value: f64) {
        let ok = value > 0.0 && value <= 1.0;
        self.require(ok, || {
            format!("`{key}` must be greater than 0 and at most 1 (1 keeps all tokens), found {value}")
        });
    }

    /// A number of most likely tokens: −1 for all, or at least 1.
    pub(crate) fn top_k(&mut self, key: &str, value: i64) {
        let ok = value == -1 || value >= 1;
        self.require(ok, || format!("`{key}` must be -1 (all tokens) or at least 1, found {value}"));
    }

    /// A number of iterations between two events: −1 for never, or at least 1.
    pub(crate) fn every(&mut self, key: &str, value: i64) {
        let ok = value == -1 || value >= 1;
        self.require(ok, || format!("`{key}` must be -1 (never) or at least 1 (iterations), found {value}"));
    }
}
