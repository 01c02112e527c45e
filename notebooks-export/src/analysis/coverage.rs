//! Whether each organization's bound held as often as it says.

use super::{Material, mean};
use crate::forecasts::{ForecastRow, ROUNDING_GPUS};
use forecaster::scores::share_interval;
use std::collections::BTreeMap;

/// One series of the subject.
pub struct Coverage {
    /// Its place among the series of the file.
    pub series: usize,
    pub rows: usize,
    pub mean_demand_gpus: f64,
    /// Mean absolute error of the median.
    pub mae_gpus: f64,
    /// Share of hours at or below the quantile 0.9.
    pub share: f64,
    /// 90 % interval of the share, over days.
    pub interval: [f64; 2],
}

/// By share, the lowest first.
pub fn coverage(material: &Material<'_>) -> Vec<Coverage> {
    let mut by_series: BTreeMap<usize, Vec<&ForecastRow>> = BTreeMap::new();
    for row in material.scored(material.subject) {
        by_series.entry(row.series).or_default().push(row);
    }
    let mut all: Vec<Coverage> = by_series.into_iter().map(|(series, rows)| of(series, &rows)).collect();
    all.sort_by(|a, b| a.share.total_cmp(&b.share).then(a.series.cmp(&b.series)));
    all
}

fn of(series: usize, rows: &[&ForecastRow]) -> Coverage {
    let held = |row: &&ForecastRow| row.actual_gpus <= row.forecast.quantiles_gpus[1] + ROUNDING_GPUS;
    Coverage {
        series,
        rows: rows.len(),
        mean_demand_gpus: mean(rows.iter().map(|row| row.actual_gpus)),
        mae_gpus: mean(rows.iter().map(|row| (row.forecast.quantiles_gpus[0] - row.actual_gpus).abs())),
        share: mean(rows.iter().map(|row| f64::from(u8::from(held(row))))),
        interval: share_interval(rows.iter().map(|row| (row.target(), held(row)))),
    }
}
