//! Forecasts along time, series by series.

use super::{Material, mean};
use crate::forecasts::ForecastRow;
use forecaster::gaussian;
use std::collections::BTreeMap;
use vocab::HourStart;

/// One series as the subject forecast it, all points the same hours ahead.
pub struct Band {
    /// Its place among the series of the file.
    pub series: usize,
    pub mean_demand_gpus: f64,
    /// By target hour.
    pub points: Vec<BandPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandPoint {
    pub target: HourStart,
    /// Quantile 0.1 of the Gaussian, at least zero.
    pub low_gpus: f64,
    /// Quantiles 0.5, 0.9 and 0.95 as they were exported.
    pub quantiles_gpus: [f64; 3],
    /// `None` in a recording gap.
    pub actual_gpus: Option<f64>,
}

/// The series with the largest mean demand first, each forecast `step` hours ahead.
pub fn bands(material: &Material<'_>, step: u8) -> Vec<Band> {
    let mut by_series: BTreeMap<usize, Vec<BandPoint>> = BTreeMap::new();
    let rows = material.forecasts.ordered.iter().map(|place| &material.forecasts.rows[*place]);
    for row in rows.filter(|row| row.model == material.subject && row.step == step) {
        by_series.entry(row.series).or_default().push(point(row, material));
    }
    let mut bands: Vec<Band> = by_series
        .into_iter()
        .map(|(series, points)| {
            let mean_demand_gpus = mean(points.iter().filter_map(|point| point.actual_gpus));
            Band { series, mean_demand_gpus, points }
        })
        .collect();
    bands.sort_by(|a, b| b.mean_demand_gpus.total_cmp(&a.mean_demand_gpus).then(a.series.cmp(&b.series)));
    bands
}

fn point(row: &ForecastRow, material: &Material<'_>) -> BandPoint {
    let low_gpus = row.forecast.mean_gpus + gaussian::quantile(0.1) * row.forecast.stddev_gpus;
    BandPoint {
        target: row.target(),
        low_gpus: low_gpus.min(row.forecast.quantiles_gpus[0]).max(0.0),
        quantiles_gpus: row.forecast.quantiles_gpus,
        actual_gpus: (!material.gaps.holds(material.forecasts, row)).then_some(row.actual_gpus),
    }
}
