//! An instance of Countdown: how it is made, what an answer is worth, how it is solved.

use std::fmt;

use super::digits::numbers_in;
use super::expression::{Number, evaluate};
use super::{CountdownConfig, ENV_TYPE};
use crate::rng::{PythonRandom, splitmix64};
use crate::{EnvError, Split};

/// Draws before a seed is given up.
const MAX_DRAWS: usize = 100_000;
/// Of all instances one in this many is for validation.
const VAL_EVERY: u64 = 10;
/// What an answer with the right numbers but the wrong value is worth.
const FORMAT_SCORE: f64 = 0.1;

/// A target and the numbers to make it of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// What the expression has to be worth.
    pub target: i64,
    /// The numbers, each to be used once.
    pub nums: Vec<i64>,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target: {}, nums: {:?}", self.target, self.nums)
    }
}

impl Instance {
    /// The instance of a seed: numbers at random, a target that some sum or difference of them gives.
    ///
    /// # Errors
    /// [`EnvError::Instance`] when no draw gives a target in range, as with a small `max_target` and large numbers.
    pub fn generate(config: &CountdownConfig, seed: u64, split: Split) -> Result<Self, EnvError> {
        let mut random = PythonRandom::new(seed);
        for _ in 0..MAX_DRAWS {
            let count = random.randint(config.min_numbers as i64, config.max_numbers as i64);
            let mut nums: Vec<i64> = (0..count).map(|_| random.randint(1, i64::from(config.max_number))).collect();
            let mut target = 0;
            for (i, number) in nums.iter().enumerate() {
                target += if i > 0 && random.random() < 0.5 { -number } else { *number };
            }
            // The first number is always added; it should not stand first for that.
            random.shuffle(&mut nums);
            let instance = Self { target, nums };
            if (1..=i64::from(config.max_target)).contains(&target) && (config.compat || instance.split() == split) {
                return Ok(instance);
            }
        }
        Err(EnvError::Instance {
            env_type: ENV_TYPE.to_owned(),
            seed,
            message: format!(
                "no target from 1 to {} after {MAX_DRAWS} draws; use a greater `max_target` or a smaller `max_number`",
                config.max_target
            ),
        })
    }

    /// Training or validation, by target and numbers in any order, so that the two never share an instance.
    #[must_use]
    pub fn split(&self) -> Split {
        let mut nums = self.nums.clone();
        nums.sort_unstable();
        let hash = nums.iter().fold(splitmix64(self.target as u64), |hash, &n| splitmix64(hash ^ n as u64));
        if hash.is_multiple_of(VAL_EVERY) { Split::Val } else { Split::Train }
    }

    /// The numbers with signs that add up to the target, those to be added first; `None` when no signs do.
    #[must_use]
    pub fn solution(&self) -> Option<Vec<i64>> {
        let signs = signs(&self.nums, self.target as f64)?;
        let signed = |minus: bool| {
            let of_this_sign = self.nums.iter().enumerate().filter(move |(i, _)| (signs >> i & 1 == 1) == minus);
            of_this_sign.map(move |(_, &n)| if minus { -n } else { n })
        };
        Some(signed(false).chain(signed(true)).collect())
    }
}

/// Whether some sum and difference of all the numbers is the target: RAGEN's condition for keeping a row of its data.
#[must_use]
pub fn has_solution(nums: &[i64], target: f64) -> bool {
    signs(nums, target).is_some()
}

/// The first choice of numbers to subtract, as bits, that gives the target; at most 16 numbers are tried.
fn signs(nums: &[i64], target: f64) -> Option<u32> {
    if nums.len() > 16 {
        return None;
    }
    (0..1u32 << nums.len()).find(|signs| {
        let sum: i128 =
            nums.iter().enumerate().map(|(i, &n)| if signs >> i & 1 == 1 { -i128::from(n) } else { n.into() }).sum();
        sum as f64 == target
    })
}

/// What an answer is worth: 0 when its integers are not exactly the given numbers, 1 when its value is within 1e-5 of
/// the target, 0.1 otherwise.
#[must_use]
pub fn reward(answer: &str, target: f64, nums: &[i64]) -> f64 {
    let Some(mut used) = numbers_in(answer) else {
        return 0.0;
    };
    let mut given: Vec<i128> = nums.iter().map(|&n| i128::from(n)).collect();
    used.sort_unstable();
    given.sort_unstable();
    if used != given {
        return 0.0;
    }
    let value = match evaluate(answer) {
        Ok(Number::Int(value)) => value as f64,
        Ok(Number::Float(value)) => value,
        Err(_) => return FORMAT_SCORE,
    };
    if (value - target).abs() < 1e-5 { 1.0 } else { FORMAT_SCORE }
}

/// Signed numbers as an expression: `7 + 3 - 2`.
pub(super) fn expression(terms: &[i64]) -> String {
    let mut text = String::new();
    for (i, term) in terms.iter().enumerate() {
        match (i, *term < 0) {
            (0, _) => text.push_str(&term.to_string()),
            (_, false) => text.push_str(&format!(" + {term}")),
            (_, true) => text.push_str(&format!(" - {}", term.unsigned_abs())),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_by_hand() {
        for (answer, expected) in [
            ("9 + 3 - 2", 1.0),
            ("2 * 3 - 9", 0.1),
            ("(9 + 3) - 2 # because", 1.0),
            ("9 + 3", 0.0),
            ("9 + 3 - 2 + 0", 0.0),
            ("9 + 3 - 2 = 10", 0.0),
            ("9 + 3 - 2 =", 0.1),
            ("932", 0.0),
            ("9 / (3 - 3) + 2", 0.0),
            ("9 3 2", 0.1),
            ("٩ + 3 - 2", 0.1),
            ("99999999999999999999999999999999999999999999", 0.0),
            ("", 0.0),
        ] {
            assert_eq!(reward(answer, 10.0, &[2, 3, 9]), expected, "{answer}");
        }
        assert_eq!(reward("", 0.0, &[]), 0.1);
    }

    #[test]
    fn solutions_put_what_is_added_first() {
        let instance = Instance { target: 10, nums: vec![2, 9, 3] };
        assert_eq!(instance.solution(), Some(vec![9, 3, -2]));
        assert_eq!(expression(&[9, 3, -2]), "9 + 3 - 2");
        assert_eq!(Instance { target: -5, nums: vec![2, 3] }.solution(), Some(vec![-2, -3]));
        assert_eq!(expression(&[-2, -3]), "-2 - 3");
        assert_eq!(Instance { target: 6, nums: vec![2, 3] }.solution(), None);
        assert!(has_solution(&[], 0.0) && !has_solution(&[1; 40], 40.0));
    }
}
