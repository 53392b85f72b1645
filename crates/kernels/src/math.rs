//! Elementary functions of one `f32`, written so that loops over them vectorise.
//!
//! What is here: the exponential, the natural logarithm and the logistic sigmoid as straight-line code from fused
//! multiply-adds, the same bits on every instruction set and platform.
//! What is not here: functions needed once a row or less often; those go through `libm`.

use crate::simd::multiversion;

/// Adding this to a number below 2²² in magnitude leaves that number, rounded to the nearest integer (ties to even),
/// in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// The high part of ln 2: its trailing zeros make `n * LN2_HIGH` exact for the exponents that occur.
const LN2_HIGH: f32 = 0.693_359_4;
/// ln 2 − [`LN2_HIGH`].
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Below this the exponential is smaller than the smallest normal number and is returned as zero.
const EXP_LOWEST: f32 = -87.336_54;
/// Above this the exponential exceeds the largest finite number.
const EXP_HIGHEST: f32 = 88.722_83;

/// `eˣ` within 2 units in the last place.
///
/// Results below the smallest normal number are flushed to zero, those above the largest finite one are infinite, NaN
/// stays NaN. Cody–Waite reduction to `|r| ≤ ln(2)/2` and a polynomial.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (p, shifted) = reduced(x);
    // 2ⁿ in two factors, since n = 128 still occurs for finite results.
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = exponent >> 1;
    let rest = exponent.wrapping_sub(half);
    let y = p * power_of_two(half) * power_of_two(rest);
    let y = if x < EXP_LOWEST { 0.0 } else { y };
    if x > EXP_HIGHEST { f32::INFINITY } else { y }
}

/// The bits of [`exp`] at two thirds of its cost, for arguments that are at most 88 or NaN: differences to a maximum,
/// log-probabilities.
#[inline(always)]
pub fn exp_nonpositive(x: f32) -> f32 {
    let (p, shifted) = reduced(x);
    // Shifted up to the exponent's field, n is all that is left of `shifted`; adding it there multiplies by 2ⁿ. NaN
    // stays NaN only by luck of its bits, hence the last line.
    let y = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
    let y = if x < EXP_LOWEST { 0.0 } else { y };
    if x.is_nan() { x } else { y }
}

/// `eʳ` for `x = n ln 2 + r` with integral n and `|r| ≤ ln(2)/2`, and n in the low bits of a float.
#[inline(always)]
fn reduced(x: f32) -> (f32, f32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN2_HIGH, x);
    let r = n.mul_add(-LN2_LOW, r);
    // Taylor coefficients; the first omitted term is below 1e-8 on the reduced interval.
    let mut p = 1.0 / 5_040.0;
    p = r.mul_add(p, 1.0 / 720.0);
    p = r.mul_add(p, 1.0 / 120.0);
    p = r.mul_add(p, 1.0 / 24.0);
    p = r.mul_add(p, 1.0 / 6.0);
    p = r.mul_add(p, 0.5);
    ((r * r).mul_add(p, r) + 1.0, shifted)
}

/// 2ⁿ for `-126 ≤ n ≤ 127`; some number outside.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `ln x` within 2 units in the last place for positive normal numbers.
///
/// Zero and subnormal numbers give −∞, negative ones NaN, +∞ gives +∞, NaN stays NaN. The argument is split as
/// `2ᵏ · m` with `√½ ≤ m < √2`, and `ln m = 2 artanh(s)` with `s = (m − 1) / (m + 1)` is summed as an odd series.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    // Subtracting the bits of √½ makes the exponent field change at √½·2ᵏ rather than at 2ᵏ.
    let offset = bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let k = (offset as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((k as u32) << 23));
    let k = k as f32;
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let mut p = 2.0 / 11.0;
    p = z.mul_add(p, 2.0 / 9.0);
    p = z.mul_add(p, 2.0 / 7.0);
    p = z.mul_add(p, 2.0 / 5.0);
    p = z.mul_add(p, 2.0 / 3.0);
    let p = z * p;
    // ln m = f − (f²/2 − s (f²/2 + p)), which keeps f exact.
    let half_square = 0.5 * f * f;
    let low = s.mul_add(half_square + p, k * LN2_LOW);
    let y = k.mul_add(LN2_HIGH, f - (half_square - low));
    let y = if x < f32::MIN_POSITIVE { f32::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f32::NAN } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    if x.is_nan() { x } else { y }
}

/// The logistic function `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

multiversion! {
    /// Replaces every element by its exponential, with the bits of [`exp`].
    pub fn exp_slice(x: &mut [f32]) {
        for value in x {
            *value = exp(*value);
        }
    }
}

multiversion! {
    /// Replaces every element by its natural logarithm, with the bits of [`ln`].
    pub fn ln_slice(x: &mut [f32]) {
        for value in x {
            *value = ln(*value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance from the exact value in units in the last place of the result.
    fn ulps(found: f32, exact: f64) -> f64 {
        let unit = f64::from(f32::from_bits((exact as f32).abs().to_bits() + 1)) - f64::from((exact as f32).abs());
        (f64::from(found) - exact).abs() / unit
    }

    #[test]
    fn exp_is_within_two_units_over_its_whole_range() {
        let mut worst = 0f64;
        let steps = 2_000_000;
        for i in 0..=steps {
            let x = (-87.3 + (88.72 + 87.3) * f64::from(i) / f64::from(steps)) as f32;
            worst = worst.max(ulps(exp(x), libm::exp(f64::from(x))));
        }
        // Around zero, where most arguments of a sampled distribution lie.
        for i in 0..200_000u32 {
            for x in [-1e-5f32, 1e-5].map(|unit| unit * i as f32) {
                worst = worst.max(ulps(exp(x), libm::exp(f64::from(x))));
            }
        }
        println!("exp: {worst} ulp");
        assert!(worst <= 2.0, "{worst} units in the last place");
    }

    #[test]
    fn exp_at_the_edges() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        for x in [-87.4f32, -88.0, -104.0, -1e4, -1e30, f32::MIN] {
            assert_eq!(exp(x).to_bits(), 0, "{x}");
        }
        for x in [88.73f32, 89.0, 1e4, 1e30, f32::MAX] {
            assert_eq!(exp(x), f32::INFINITY, "{x}");
        }
        assert!(exp(EXP_HIGHEST).is_finite());
        assert!(exp(EXP_LOWEST) >= f32::MIN_POSITIVE);
        assert!(exp(-87.3) >= f32::MIN_POSITIVE);
    }

    #[test]
    fn exp_nonpositive_has_the_bits_of_exp() {
        for i in 0..2_000_000u32 {
            let x = (i as f32).mul_add(-6e-5, 5.0);
            assert_eq!(exp_nonpositive(x).to_bits(), exp(x).to_bits(), "{x}");
        }
        for x in [0.0, -0.0, 88.0, EXP_LOWEST, -87.4, -200.0, -1e30, f32::MIN, f32::NEG_INFINITY] {
            assert_eq!(exp_nonpositive(x).to_bits(), exp(x).to_bits(), "{x}");
        }
        assert!(exp_nonpositive(f32::NAN).is_nan());
    }

    #[test]
    fn ln_is_within_two_units() {
        let mut worst = 0f64;
        for i in 0..2_000_000u32 {
            let bits = f32::MIN_POSITIVE.to_bits() + i * 1_060;
            let x = f32::from_bits(bits);
            if x != 1.0 {
                worst = worst.max(ulps(ln(x), libm::log(f64::from(x))));
            }
        }
        for i in 1..200_000u32 {
            for x in [-2e-6f32, 2e-6].map(|unit| 1.0 + unit * i as f32) {
                if x != 1.0 {
                    worst = worst.max(ulps(ln(x), libm::log(f64::from(x))));
                }
            }
        }
        println!("ln: {worst} ulp");
        assert!(worst <= 2.0, "{worst} units in the last place");
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(0.0), f32::NEG_INFINITY);
        assert_eq!(ln(f32::INFINITY), f32::INFINITY);
        assert!(ln(-1.0).is_nan() && ln(f32::NAN).is_nan() && ln(f32::NEG_INFINITY).is_nan());
        assert!((f64::from(ln(f32::MAX)) - libm::log(f64::from(f32::MAX))).abs() < 1e-5);
    }

    #[test]
    fn sigmoid_against_its_formula() {
        for i in -8_000..=8_000 {
            let x = i as f32 * 0.01;
            let exact = 1.0 / (1.0 + libm::exp(-f64::from(x)));
            assert!(ulps(sigmoid(x), exact) <= 3.0, "{x}");
        }
        assert_eq!(sigmoid(f32::NEG_INFINITY), 0.0);
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert_eq!(sigmoid(-1e4), 0.0);
        assert!(sigmoid(f32::NAN).is_nan());
    }
}
