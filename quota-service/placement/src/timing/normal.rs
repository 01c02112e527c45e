//! The standard normal distribution, and the expected improvement that rests on it.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Density at `z`.
#[must_use]
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() * FRAC_1_SQRT_2 / PI.sqrt()
}

/// Φ(z), the probability of at most `z`: a series near the middle (Marsaglia 2004), a continued fraction in the tails.
#[must_use]
pub fn cumulative(z: f64) -> f64 {
    debug_assert!(!z.is_nan(), "a probability of a number");
    if z > 4.0 {
        return 1.0 - lower_tail(-z);
    }
    if z < -4.0 {
        return lower_tail(z);
    }
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while sum + term != sum {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 + sum * density(z)
}

/// Φ(z) far below zero: φ(z) over Laplace's continued fraction.
fn lower_tail(z: f64) -> f64 {
    let fraction = (1..=60).rev().fold(-z, |rest, step| -z + f64::from(step) / rest);
    density(z) / fraction
}

/// A normal belief about a value, and how it changes with the place of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Belief {
    /// Mean.
    pub mean: f64,
    /// Slope of the mean.
    pub mean_slope: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Slope of the standard deviation.
    pub stddev_slope: f64,
}

/// E[max(best − f, 0)] for f of this belief, and its slope (Jones et al. 1998; Lazer §4.2 minimizes).
#[must_use]
pub fn expected_improvement(belief: &Belief, best: f64) -> (f64, f64) {
    let gain = best - belief.mean;
    debug_assert!(belief.stddev >= 0.0, "a deviation is not negative");
    if belief.stddev <= f64::MIN_POSITIVE {
        return if gain > 0.0 { (gain, -belief.mean_slope) } else { (0.0, 0.0) };
    }
    let z = gain / belief.stddev;
    let (below, at) = (cumulative(z), density(z));
    ((gain * below + belief.stddev * at).max(0.0), belief.stddev_slope * at - belief.mean_slope * below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Continuous, ContinuousCDF, Normal};

    #[test]
    fn the_distribution_is_that_of_a_kept_library() {
        let normal = Normal::standard();
        for step in -160..=160 {
            let z = f64::from(step) / 20.0;
            assert!((density(z) - normal.pdf(z)).abs() < 1e-14, "{z}");
            let (ours, theirs) = (cumulative(z), normal.cdf(z));
            assert!((ours - theirs).abs() <= 1e-10 * theirs.max(1e-6), "{z}: {ours} against {theirs}");
        }
        // Tables of Abramowitz and Stegun.
        assert!((cumulative(1.0) - 0.841_344_746_068_543).abs() < 1e-14);
        assert!((cumulative(-6.0) / 9.865_876_450_377e-10 - 1.0).abs() < 1e-11);
    }

    #[test]
    fn the_expected_improvement_has_its_closed_form_and_its_slope() {
        let belief = |mean, stddev| Belief { mean, mean_slope: 0.0, stddev, stddev_slope: 0.0 };
        // At z = 0 it is σ φ(0).
        assert!((expected_improvement(&belief(1.0, 2.0), 1.0).0 - 2.0 * 0.398_942_280_401_432_7).abs() < 1e-14);
        // At z = 1: σ (Φ(1) + φ(1)).
        let at_one = 2.0 * (0.841_344_746_068_543 + 0.241_970_724_519_143_37);
        assert!((expected_improvement(&belief(0.0, 2.0), 2.0).0 - at_one).abs() < 1e-14);
        assert_eq!(expected_improvement(&belief(3.0, 0.0), 1.0).0, 0.0, "what is known to be worse improves nothing");
        assert_eq!(expected_improvement(&belief(1.0, 0.0), 3.0).0, 2.0);
        let moved = |by: f64| {
            let belief = Belief { mean: 0.3 + 0.7 * by, mean_slope: 0.7, stddev: 0.5 - 0.2 * by, stddev_slope: -0.2 };
            expected_improvement(&belief, 0.1)
        };
        let numeric = (moved(1e-6).0 - moved(-1e-6).0) / 2e-6;
        assert!((moved(0.0).1 - numeric).abs() < 1e-8);
    }
}
