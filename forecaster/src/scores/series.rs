//! Scores of forecasts of single series.

use super::TOLERANCE_GPUS;
use crate::gaussian;
use datasets::{HourRange, Panel, window};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use vocab::{DemandForecast, HorizonHours, StepForecast};

/// Deviations are floored here before CRPS and likelihood, in GPUs.
const LEAST_STDDEV_GPUS: f64 = 1e-3;
/// Series whose mean demand is at most this are left out of nMAE, which divides by it. In GPUs.
const LEAST_MEAN_GPUS: f64 = 0.5;
/// The exported quantiles that are scored as bounds: their place and level.
const BOUNDS: [(usize, f64); 2] = [(1, 0.9), (2, 0.95)];

/// One forecast hour and what came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Which series; scores that average over series group by it.
    pub series: usize,
    /// From 1.
    pub step: usize,
    /// The forecast.
    pub forecast: StepForecast,
    /// Measured demand, in GPUs.
    pub actual_gpus: f64,
}

/// Scores over all series × issue times × steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Forecast hours that were scored.
    pub rows: usize,
    /// Mean absolute error of the median.
    pub mae_median_gpus: f64,
    /// Mean absolute error of the mean, in GPUs.
    pub mae_mean_gpus: f64,
    /// Root mean squared error of the mean.
    pub rmse_mean_gpus: f64,
    /// Root mean square error of the median, in GPUs.
    pub rmse_median_gpus: f64,
    /// Mean of |error of the median| / actual over rows with demand; `None` where none has.
    pub mape_median: Option<f64>,
    /// Mean over series of MAE of the median / mean demand; `None` where no series has any to speak of.
    pub nmae_median: Option<f64>,
    /// Share of hours at or below the quantiles 0.9 and 0.95.
    pub coverage: [f64; 2],
    /// Mean over series of max(0, p − share at or below, share below − p), at 0.9 and 0.95: no one loses by ties, no one
    /// gains by bounds too low. The paper does not define its MAQE in full; this is the project's choice.
    pub maqe: [f64; 2],
    /// Mean pinball loss at 0.9 and 0.95.
    pub pinball_gpus: [f64; 2],
    /// Continuous ranked probability score of the Gaussian.
    pub crps_gpus: f64,
    /// Mean negative log-likelihood of the Gaussian.
    pub nll: f64,
}

/// The loss whose best answer is the quantile at `p`.
///
/// ```
/// use forecaster::scores::pinball;
///
/// // At p = 0.9 demand 2 GPUs above the quantile costs nine times as much as demand 2 GPUs below it.
/// assert!((pinball(12.0, 10.0, 0.9) - 1.8).abs() < 1e-12);
/// assert!((pinball(8.0, 10.0, 0.9) - 0.2).abs() < 1e-12);
/// ```
#[must_use]
pub fn pinball(actual: f64, quantile: f64, p: f64) -> f64 {
    let error = actual - quantile;
    (p * error).max((p - 1.0) * error)
}

/// Pairs forecasts `[issue time][series]` with what was measured. Hours without a measurement are left out; the second
/// number counts them.
#[must_use]
pub fn collect(
    panel: &Panel,
    issues: HourRange,
    rolled: &[Vec<DemandForecast>],
    horizon: HorizonHours,
) -> (Vec<Scored>, usize) {
    let (mut rows, mut unmeasured) = (Vec::new(), 0);
    for (issue, forecasts) in issues.iter().zip(rolled) {
        for (series, forecast) in forecasts.iter().enumerate() {
            let came = window::outcome(panel, series, issue, horizon);
            for (index, step) in forecast.steps().iter().enumerate() {
                match came.filter(|came| came.measured[index]) {
                    Some(came) => rows.push(Scored {
                        series,
                        step: index + 1,
                        forecast: *step,
                        actual_gpus: came.demand_gpus[index],
                    }),
                    None => unmeasured += 1,
                }
            }
        }
    }
    (rows, unmeasured)
}

/// How often demand stayed at or below the upper quantiles of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Coverage {
    /// Forecast hours so far.
    pub rows: usize,
    /// Rows at or below the quantiles 0.9 and 0.95.
    pub at_or_below: [usize; 2],
    /// Rows below them: where demand equals its quantile the level lies between the two shares.
    pub below: [usize; 2],
}

impl Coverage {
    /// Adds a forecast hour.
    pub fn add(&mut self, row: &Scored) {
        self.rows += 1;
        for (level, (place, _)) in BOUNDS.iter().enumerate() {
            self.at_or_below[level] += usize::from(at_or_below(row, *place));
            self.below[level] += usize::from(below(row, *place));
        }
    }

    /// Shares at or below the quantiles 0.9 and 0.95.
    #[must_use]
    pub fn shares(&self) -> [f64; 2] {
        self.at_or_below.map(|count| count as f64 / self.rows.max(1) as f64)
    }

    /// Shares below the quantiles 0.9 and 0.95.
    #[must_use]
    pub fn shares_below(&self) -> [f64; 2] {
        self.below.map(|count| count as f64 / self.rows.max(1) as f64)
    }
}

/// Scores of the rows of any number of series; `None` without rows.
///
/// ```
/// use forecaster::scores::{Scored, score};
/// use vocab::StepForecast;
///
/// let forecast = StepForecast { mean_gpus: 10.0, stddev_gpus: 2.0, quantiles_gpus: [10.0, 12.6, 13.3] };
/// // Nine hours at the median, and one above every quantile.
/// let row = |hour| Scored { series: 0, step: 1, forecast, actual_gpus: if hour == 0 { 14.0 } else { 10.0 } };
/// let scores = score(&(0..10).map(row).collect::<Vec<_>>()).expect("ten rows");
/// assert_eq!(scores.coverage, [0.9, 0.9]);
/// // The quantile 0.9 holds its level; the quantile 0.95 misses it by 0.05.
/// assert!(scores.maqe[0] < 1e-9 && (scores.maqe[1] - 0.05).abs() < 1e-9);
/// assert!((scores.mae_median_gpus - 0.4).abs() < 1e-9);
/// assert!((scores.pinball_gpus[0] - (0.9 * 1.4 + 9.0 * 0.1 * 2.6) / 10.0).abs() < 1e-9);
/// ```
#[must_use]
pub fn score(rows: &[Scored]) -> Option<Scores> {
    let mut sums = ScoreSums::default();
    for row in rows {
        sums.add(row);
    }
    sums.finish()
}

/// Scores of rows that come one after the other: what is kept grows with the series, not with the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoreSums {
    rows: usize,
    median: f64,
    mean: f64,
    mean_squared: f64,
    median_squared: f64,
    crps: f64,
    nll: f64,
    pinball: [f64; 2],
    at_or_below: [usize; 2],
    relative: (f64, usize),
    series: BTreeMap<usize, SeriesSums>,
}

/// Of one series.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct SeriesSums {
    rows: usize,
    error: f64,
    demand: f64,
    at_or_below: [usize; 2],
    below: [usize; 2],
}

impl ScoreSums {
    /// Adds a forecast hour.
    pub fn add(&mut self, row: &Scored) {
        let forecast = &row.forecast;
        let stddev = forecast.stddev_gpus.max(LEAST_STDDEV_GPUS);
        let z = (row.actual_gpus - forecast.mean_gpus) / stddev;
        let median = (forecast.quantiles_gpus[0] - row.actual_gpus).abs();
        let mean = (forecast.mean_gpus - row.actual_gpus).abs();
        self.rows += 1;
        self.median += median;
        self.mean += mean;
        self.mean_squared += mean.powi(2);
        self.median_squared += median.powi(2);
        self.crps += gaussian::crps(row.actual_gpus, forecast.mean_gpus, stddev);
        self.nll += 0.5 * (TAU.ln() + z * z) + stddev.ln();
        if row.actual_gpus > 0.0 {
            self.relative = (self.relative.0 + median / row.actual_gpus, self.relative.1 + 1);
        }
        let series = self.series.entry(row.series).or_default();
        series.rows += 1;
        series.error += median;
        series.demand += row.actual_gpus;
        for (level, (place, p)) in BOUNDS.into_iter().enumerate() {
            self.pinball[level] += pinball(row.actual_gpus, forecast.quantiles_gpus[place], p);
            let (at_or_below, below) = (usize::from(at_or_below(row, place)), usize::from(below(row, place)));
            self.at_or_below[level] += at_or_below;
            series.at_or_below[level] += at_or_below;
            series.below[level] += below;
        }
    }

    /// The scores of what was added; `None` of nothing.
    #[must_use]
    pub fn finish(&self) -> Option<Scores> {
        if self.rows == 0 {
            return None;
        }
        let mean = |sum: f64| sum / self.rows as f64;
        Some(Scores {
            rows: self.rows,
            mae_median_gpus: mean(self.median),
            mae_mean_gpus: mean(self.mean),
            rmse_mean_gpus: mean(self.mean_squared).sqrt(),
            rmse_median_gpus: mean(self.median_squared).sqrt(),
            mape_median: (self.relative.1 > 0).then(|| self.relative.0 / self.relative.1 as f64),
            nmae_median: self.normalised(),
            coverage: self.at_or_below.map(|count| mean(count as f64)),
            maqe: [0, 1].map(|level| self.maqe(level)),
            pinball_gpus: self.pinball.map(mean),
            crps_gpus: mean(self.crps),
            nll: mean(self.nll),
        })
    }

    fn normalised(&self) -> Option<f64> {
        let means = self.series.values().map(|one| (one.error / one.rows as f64, one.demand / one.rows as f64));
        let shares: Vec<f64> =
            means.filter(|(_, demand)| *demand > LEAST_MEAN_GPUS).map(|(error, demand)| error / demand).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn maqe(&self, level: usize) -> f64 {
        let miss = |one: &SeriesSums| {
            let share = |count: usize| count as f64 / one.rows as f64;
            let p = BOUNDS[level].1;
            (p - share(one.at_or_below[level])).max(share(one.below[level]) - p).max(0.0)
        };
        self.series.values().map(miss).sum::<f64>() / self.series.len() as f64
    }
}

fn at_or_below(row: &Scored, place: usize) -> bool {
    row.actual_gpus <= row.forecast.quantiles_gpus[place] + TOLERANCE_GPUS
}

fn below(row: &Scored, place: usize) -> bool {
    row.actual_gpus < row.forecast.quantiles_gpus[place] - TOLERANCE_GPUS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of golden/scores.py: series, step, mean, stddev, three quantiles, actual.
    fn rows() -> Vec<Scored> {
        let parse = |line: &str| {
            let v: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let forecast = StepForecast { mean_gpus: v[2], stddev_gpus: v[3], quantiles_gpus: [v[4], v[5], v[6]] };
            Scored { series: v[0] as usize, step: v[1] as usize, forecast, actual_gpus: v[7] }
        };
        include_str!("../../golden/scores.csv").lines().map(parse).collect()
    }

    #[test]
    fn every_score_agrees_with_the_reference() {
        let ours = score(&rows()).unwrap();
        let named = [
            ("mae_median", ours.mae_median_gpus),
            ("mae_mean", ours.mae_mean_gpus),
            ("rmse_median", ours.rmse_median_gpus),
            ("rmse_mean", ours.rmse_mean_gpus),
            ("mape_median", ours.mape_median.unwrap()),
            ("nmae_median", ours.nmae_median.unwrap()),
            ("cov0.9", ours.coverage[0]),
            ("cov0.95", ours.coverage[1]),
            ("maqe0.9", ours.maqe[0]),
            ("maqe0.95", ours.maqe[1]),
            ("pin0.9", ours.pinball_gpus[0]),
            ("pin0.95", ours.pinball_gpus[1]),
            ("crps", ours.crps_gpus),
            ("nll", ours.nll),
        ];
        let reference = include_str!("../../golden/scores.expected");
        assert_eq!(reference.lines().count(), named.len());
        for (line, (name, ours)) in reference.lines().zip(named) {
            let (expected_name, expected) = line.split_once(' ').unwrap();
            let expected: f64 = expected.parse().unwrap();
            assert_eq!(name, expected_name);
            assert!((ours - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{name}: {ours} against {expected}");
        }
    }

    #[test]
    fn no_one_gains_by_ties_or_by_bounds_too_low() {
        let row = |actual_gpus: f64, bound: f64| Scored {
            series: 0,
            step: 1,
            forecast: StepForecast { mean_gpus: 0.0, stddev_gpus: 1.0, quantiles_gpus: [0.0, bound, bound] },
            actual_gpus,
        };
        let maqe = |rows: &[Scored]| score(rows).unwrap().maqe[0];
        assert_eq!(maqe(&[row(5.0, 5.0), row(5.0, 5.0)]), 0.0, "ties count as kept and not as too high");
        assert!((maqe(&[row(5.0, 1.0)]) - 0.9).abs() < 1e-12);
        assert!((maqe(&[row(5.0, 9.0)]) - 0.1).abs() < 1e-12);
    }
}
