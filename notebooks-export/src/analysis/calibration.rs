//! Calibration: promised against observed probability.

use super::mean;
use crate::forecasts::{ForecastRow, ROUNDING_GPUS};
use forecaster::gaussian;
use vocab::{LEAST_STDDEV_GPUS, QUANTILE_LEVELS};

/// Levels of the curve: 0.05, 0.10, … 0.95.
const LEVELS: u32 = 19;
/// Bars of the PIT histogram.
pub const PIT_BINS: usize = 20;

/// Promised level against the share of hours that stayed below.
pub struct Curve {
    /// Of the Gaussian of mean and deviation.
    pub gaussian: Vec<(f64, f64)>,
    /// Of the exported quantiles.
    pub quantiles: [(f64, f64); 3],
}

/// The curve of one model. An actual that equals its bound is worth the level: were the forecast one point and right, no
/// level would be broken and none too high.
pub fn curve(rows: &[&ForecastRow]) -> Curve {
    let share = |level: f64, bound: &dyn Fn(&ForecastRow) -> f64| {
        mean(rows.iter().map(|row| {
            let above = row.actual_gpus - bound(row);
            if above.abs() <= ROUNDING_GPUS { level } else { f64::from(u8::from(above < 0.0)) }
        }))
    };
    let gaussian_at = |step: u32| {
        let level = f64::from(step) / f64::from(LEVELS + 1);
        let z = gaussian::quantile(level);
        (level, share(level, &|row| row.forecast.mean_gpus + z * row.forecast.stddev_gpus))
    };
    let mut place = 0;
    let quantiles = QUANTILE_LEVELS.map(|level| {
        let at = place;
        place += 1;
        (level, share(level, &|row| row.forecast.quantiles_gpus[at]))
    });
    Curve { gaussian: (1..=LEVELS).map(gaussian_at).collect(), quantiles }
}

/// Probability integral transform of the Gaussian: how often the actual fell into each twentieth of its distribution,
/// relative to 1/20. A point forecast that is right counts a little in each.
pub fn pit(rows: &[&ForecastRow]) -> [f64; PIT_BINS] {
    let mut bins = [0.0; PIT_BINS];
    let each = PIT_BINS as f64 / rows.len().max(1) as f64;
    for row in rows {
        let above = row.actual_gpus - row.forecast.mean_gpus;
        if row.forecast.stddev_gpus <= LEAST_STDDEV_GPUS && above.abs() <= LEAST_STDDEV_GPUS {
            for bin in &mut bins {
                *bin += each / PIT_BINS as f64;
            }
            continue;
        }
        let rank = gaussian::cdf(above / row.forecast.stddev_gpus.max(LEAST_STDDEV_GPUS));
        bins[((rank * PIT_BINS as f64) as usize).min(PIT_BINS - 1)] += each;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{HourStart, StepForecast};

    fn row(mean_gpus: f64, stddev_gpus: f64, actual_gpus: f64) -> ForecastRow {
        let quantiles_gpus = QUANTILE_LEVELS.map(|level| mean_gpus + gaussian::quantile(level) * stddev_gpus);
        let forecast = StepForecast { mean_gpus, stddev_gpus, quantiles_gpus };
        let issue = HourStart::from_unix_s(0).unwrap();
        ForecastRow { row: 2, model: 0, series: 0, issue, step: 1, forecast, actual_gpus }
    }

    /// Actuals at the mid-points of a hundred equal shares of the distribution.
    fn drawn(stddev_gpus: f64) -> Vec<ForecastRow> {
        (0..100).map(|i| row(10.0, stddev_gpus, 10.0 + gaussian::quantile((f64::from(i) + 0.5) / 100.0))).collect()
    }

    #[test]
    fn a_right_deviation_lies_on_the_diagonal_and_a_doubled_one_promises_too_little() {
        let (right, wide) = (drawn(1.0), drawn(2.0));
        let of = |rows: &[ForecastRow]| curve(&rows.iter().collect::<Vec<_>>());
        assert!(of(&right).gaussian.iter().all(|(level, share)| (level - share).abs() < 1e-9));
        assert!(of(&right).quantiles.iter().all(|(level, share)| (level - share).abs() < 1e-9));
        let wide = of(&wide);
        assert!(wide.quantiles[1].1 > 0.98, "0.9 of twice the deviation is 0.995 of it");
        assert_eq!(wide.gaussian.len(), 19);
    }

    #[test]
    fn pit_is_flat_where_the_deviation_is_right_and_a_hill_where_it_is_too_wide() {
        let rows = drawn(1.0);
        let flat = pit(&rows.iter().collect::<Vec<_>>());
        assert!(flat.iter().all(|bar| (bar - 1.0).abs() < 1e-9), "{flat:?}");
        let rows = drawn(2.0);
        let hill = pit(&rows.iter().collect::<Vec<_>>());
        assert!(hill[0] < 0.3 && hill[10] > 1.5, "{hill:?}");
    }

    #[test]
    fn a_point_forecast_that_is_right_is_calibrated() {
        let rows = [row(0.0, 0.0, 0.0)];
        let rows: Vec<_> = rows.iter().collect();
        assert!(curve(&rows).gaussian.iter().all(|(level, share)| (level - share).abs() < 1e-12));
        assert!(pit(&rows).iter().all(|bar| (bar - 1.0).abs() < 1e-12));
    }
}
