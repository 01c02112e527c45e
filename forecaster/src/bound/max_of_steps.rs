//! The quantile of the maximum of H equally correlated standard normals.

use crate::gaussian;

/// Correlations above this are one variable for our purpose, and would divide by zero below.
const MOST_CORRELATION: f64 = 0.999_9;
/// The integrand is below 1e-14 outside ±8.
const HALF_WIDTH: f64 = 8.0;
/// Widest step of the integration, for what is as smooth as the normal density itself.
const WIDEST_STEP: f64 = 0.25;
/// The regula falsi below gains a digit or more a turn.
const MOST_TURNS: usize = 60;
const CLOSE_ENOUGH: f64 = 1e-10;

/// z such that all of `steps` standard normals with common correlation `correlation` stay at or below it with
/// probability `p`.
///
/// With a common factor u the others are independent given u, so P(max ≤ z) = ∫ φ(u) Φ((z − √ρ u)/√(1 − ρ))^H du.
/// One step, or ρ = 1, gives the plain quantile; ρ = 0 the quantile at p^(1/H).
pub fn quantile(p: f64, steps: usize, correlation: f64) -> f64 {
    let plain = gaussian::quantile(p);
    if steps <= 1 || correlation >= MOST_CORRELATION {
        return plain;
    }
    let correlation = correlation.max(0.0);
    let excess = |z: f64| probability(z, steps, correlation) - p;
    // The ends bracket the answer: it lies between full correlation and none.
    root(&excess, plain, gaussian::quantile(p.powf(1.0 / steps as f64)))
}

/// The zero of a rising function between `low` and `high`: regula falsi, with the Illinois rule that halves the weight of
/// an end that stays.
fn root(rising: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let (mut at_low, mut at_high) = (rising(low), rising(high));
    for _ in 0..MOST_TURNS {
        if high - low < CLOSE_ENOUGH || at_high <= 0.0 {
            break;
        }
        let middle = (low * at_high - high * at_low) / (at_high - at_low);
        let at_middle = rising(middle);
        if at_middle.abs() < CLOSE_ENOUGH {
            return middle;
        }
        if at_middle < 0.0 {
            (low, at_low, at_high) = (middle, at_middle, at_high / 2.0);
        } else {
            (high, at_high, at_low) = (middle, at_middle, at_low / 2.0);
        }
    }
    high
}

/// P(max ≤ z), by the trapezoidal rule, which is spectrally exact for a smooth integrand that vanishes at both ends: its
/// error falls as e^(−2π²/h²) for a density of width one, and for Φ(u/s)^H as if that had the width s/√H.
fn probability(z: f64, steps: usize, correlation: f64) -> f64 {
    let (shared, own) = (correlation.sqrt(), (1.0 - correlation).sqrt());
    let step = WIDEST_STEP.min(own / shared.max(own) / (steps as f64).sqrt());
    integral(z, steps, [shared, own], (2.0 * HALF_WIDTH / step).ceil() as usize)
}

/// The integral over so many intervals.
fn integral(z: f64, steps: usize, [shared, own]: [f64; 2], intervals: usize) -> f64 {
    let width = 2.0 * HALF_WIDTH / intervals as f64;
    let at = |index: usize| {
        let factor = -HALF_WIDTH + index as f64 * width;
        gaussian::pdf(factor) * gaussian::cdf((z - shared * factor) / own).powi(steps as i32)
    };
    (0..=intervals).map(at).sum::<f64>() * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_plain_quantile_and_that_of_independent_steps() {
        assert_eq!(quantile(0.9, 1, 0.3), gaussian::quantile(0.9));
        assert_eq!(quantile(0.9, 4, 1.0), gaussian::quantile(0.9));
        assert!((quantile(0.9, 4, 0.0) - gaussian::quantile(0.9_f64.powf(0.25))).abs() < 1e-9);
    }

    /// scipy.stats.multivariate_normal.cdf of four equicorrelated normals (golden/bound.py).
    #[test]
    fn it_agrees_with_the_multivariate_normal() {
        for (correlation, z) in [(0.3, 1.896_5), (0.5, 1.838_3), (0.9, 1.574_4)] {
            let ours = quantile(0.9, 4, correlation);
            assert!((ours - z).abs() < 1e-4, "at {correlation}: {ours} against {z}");
        }
    }

    #[test]
    fn a_finer_integration_says_the_same() {
        for correlation in [0.0, 0.1, 0.5, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999] {
            for steps in [2, 4, 8, 24, 168] {
                for z in [-1.0, 0.0, 1.28, 1.9, 3.0, 4.5] {
                    let ours = probability(z, steps, correlation);
                    let finer = integral(z, steps, [correlation.sqrt(), (1.0 - correlation).sqrt()], 50_000);
                    assert!((ours - finer).abs() < 1e-9, "{correlation} {steps} {z}: {ours} against {finer}");
                }
            }
        }
    }

    #[test]
    fn it_grows_with_the_steps_and_shrinks_with_the_correlation() {
        assert!(quantile(0.9, 2, 0.5) < quantile(0.9, 4, 0.5));
        assert!(quantile(0.9, 4, 0.8) < quantile(0.9, 4, 0.2));
    }
}
