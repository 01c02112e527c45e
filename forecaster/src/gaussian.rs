//! The normal distribution and empirical quantiles.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};
use std::f64::consts::PI;

fn standard() -> Normal {
    Normal::standard()
}

/// P(Z ≤ z) of the standard normal.
#[must_use]
pub fn cdf(z: f64) -> f64 {
    standard().cdf(z)
}

/// Density of the standard normal.
#[must_use]
pub fn pdf(z: f64) -> f64 {
    standard().pdf(z)
}

/// The quantile of the standard normal at `p`, 0 < p < 1: the ICDF of GFS §3.3.1.
///
/// ```
/// let z = forecaster::gaussian::quantile(0.9);
/// assert!((z - 1.281_551_6).abs() < 1e-7);
/// // The 0.9 quantile of a demand of 10 GPUs with a standard deviation of 2 GPUs.
/// assert!((10.0 + 2.0 * z - 12.563_103).abs() < 1e-6);
/// ```
///
/// # Panics
/// When `p` is outside [0, 1].
#[must_use]
pub fn quantile(p: f64) -> f64 {
    standard().inverse_cdf(p)
}

/// The continuous ranked probability score of a Gaussian forecast, in the unit of `actual` (Gneiting and Raftery 2007,
/// eq. 21). A deviation of zero is a point forecast, whose score is the absolute error.
///
/// ```
/// use forecaster::gaussian::crps;
///
/// // 7 GPUs came. The point forecast of 4 is 3 off; a spread that admits the error scores better.
/// assert_eq!(crps(7.0, 4.0, 0.0), 3.0);
/// assert!((crps(7.0, 4.0, 2.0) - 1.988_85).abs() < 1e-4);
/// ```
#[must_use]
pub fn crps(actual: f64, mean: f64, stddev: f64) -> f64 {
    if stddev <= 0.0 {
        return (actual - mean).abs();
    }
    let z = (actual - mean) / stddev;
    stddev * (z * (2.0 * cdf(z) - 1.0) + 2.0 * pdf(z) - 1.0 / PI.sqrt())
}

/// The empirical quantile of sorted values at `p`, linear between order statistics (type 7, NumPy's default). `None`
/// without values.
///
/// ```
/// use forecaster::gaussian::empirical_quantile;
///
/// assert_eq!(empirical_quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.9), Some(4.6));
/// assert_eq!(empirical_quantile(&[], 0.9), None);
/// ```
#[must_use]
pub fn empirical_quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (place - below as f64) * (sorted[above] - sorted[below]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values of scipy.stats.norm.
    #[test]
    fn the_tails_agree_with_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.9, 1.281_551_565_544_600_4),
            (0.95, 1.644_853_626_951_472_2),
            (0.999, 3.090_232_306_167_813),
            (0.999_999, 4.753_424_308_817_087),
        ] {
            assert!((quantile(p) - z).abs() < 1e-9, "ppf({p}) is {}", quantile(p));
            assert!((cdf(z) - p).abs() < 1e-11, "cdf({z}) is {}", cdf(z));
        }
    }

    #[test]
    fn a_point_forecast_scores_its_absolute_error() {
        assert_eq!(crps(7.0, 4.0, 0.0), 3.0);
        // SciPy: z (2 Φ(z) − 1) + 2 φ(z) − 1/√π at z = 0.5.
        assert!((crps(0.5, 0.0, 1.0) - 0.331_403_531_254_855_8).abs() < 1e-9);
    }

    #[test]
    fn quantiles_lie_between_order_statistics() {
        assert_eq!(empirical_quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.9), Some(4.6));
        assert_eq!(empirical_quantile(&[3.0], 0.95), Some(3.0));
        assert_eq!(empirical_quantile(&[], 0.5), None);
    }
}
