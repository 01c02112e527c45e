//! The hours that went worst, and what happened in them.

use super::{Material, mean};
use crate::forecasts::ForecastRow;
use crate::measured::RecordingGaps;
use std::collections::{BTreeMap, BTreeSet};
use vocab::HourStart;

const HOURS_SHOWN: usize = 10;
const SERIES_SHOWN: usize = 3;

/// One hour over all series.
pub struct WorstHour {
    pub target: HourStart,
    /// Sum over series of the subject's absolute error, each the mean over the forecasts of that hour.
    pub error_gpus: f64,
    /// The same of the reference.
    pub reference_error_gpus: Option<f64>,
    /// Other hours less than a horizon away that are among the worst by themselves and tell of the same event.
    pub neighbours: usize,
    /// Sum over series.
    pub demand_gpus: f64,
    /// The same an hour before, where it was measured.
    pub before_gpus: Option<f64>,
    /// The hour before was a recording gap.
    pub after_gap: bool,
    /// The series with the largest errors, largest first.
    pub series: Vec<Share>,
}

/// Part of one series in the error.
pub struct Share {
    pub series: usize,
    pub error_gpus: f64,
    pub actual_gpus: f64,
    pub before_gpus: Option<f64>,
    /// Means over the forecasts of that hour.
    pub median_gpus: f64,
    pub q95_gpus: f64,
}

type Actuals = BTreeMap<HourStart, BTreeMap<usize, f64>>;

/// The worst first.
pub fn worst_hours(material: &Material<'_>) -> Vec<WorstHour> {
    let rows = material.scored(material.subject);
    let mut actuals: Actuals = BTreeMap::new();
    let mut by_hour: BTreeMap<HourStart, Vec<&ForecastRow>> = BTreeMap::new();
    for row in rows {
        actuals.entry(row.target()).or_default().insert(row.series, row.actual_gpus);
        by_hour.entry(row.target()).or_default().push(row);
    }
    let mut order: Vec<(HourStart, f64)> = by_hour.iter().map(|(hour, rows)| (*hour, error_gpus(rows))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let reference = material.reference.map(|model| {
        let mut rows: BTreeMap<HourStart, Vec<&ForecastRow>> = BTreeMap::new();
        material.scored(model).into_iter().for_each(|row| rows.entry(row.target()).or_default().push(row));
        rows
    });
    let picked = picked(&order, i64::from(material.horizon()));
    let view = |(target, error, neighbours): (HourStart, f64, usize)| WorstHour {
        target,
        error_gpus: error,
        reference_error_gpus: reference.as_ref().and_then(|rows| rows.get(&target)).map(|rows| error_gpus(rows)),
        neighbours,
        demand_gpus: actuals[&target].values().sum(),
        before_gpus: before(&actuals, target),
        after_gap: follows_gap(material.gaps, material, target),
        series: shares(&by_hour[&target], &actuals),
    };
    picked.into_iter().map(view).collect()
}

/// The first hours of the order, with those left out that lie less than a horizon from one that is in: each hour out of
/// the first half is counted with the event that it belongs to.
fn picked(order: &[(HourStart, f64)], horizon_hours: i64) -> Vec<(HourStart, f64, usize)> {
    let mut picked: Vec<(HourStart, f64, usize)> = Vec::new();
    for (hour, error) in &order[..order.len().div_ceil(2)] {
        let same = picked.iter().position(|(other, ..)| hour.hours_since(*other).abs() < horizon_hours);
        match same {
            Some(place) => picked[place].2 += 1,
            None if picked.len() < HOURS_SHOWN => picked.push((*hour, *error, 0)),
            None => {}
        }
    }
    picked
}

fn error_gpus(rows: &[&ForecastRow]) -> f64 {
    let mut by_series: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for row in rows {
        by_series.entry(row.series).or_default().push((row.forecast.quantiles_gpus[0] - row.actual_gpus).abs());
    }
    by_series.into_values().map(mean).sum()
}

/// The demand an hour before of the series that are there now; `None` where one of them is missing.
fn before(actuals: &Actuals, target: HourStart) -> Option<f64> {
    let earlier = actuals.get(&target.plus_hours(-1))?;
    actuals[&target].keys().map(|series| earlier.get(series).copied()).sum()
}

fn follows_gap(gaps: &RecordingGaps, material: &Material<'_>, target: HourStart) -> bool {
    let clusters: BTreeSet<_> = material.forecasts.series.iter().map(|series| &series.pool.cluster).collect();
    clusters.into_iter().any(|cluster| gaps.at(cluster, target.plus_hours(-1)))
}

fn shares(rows: &[&ForecastRow], actuals: &Actuals) -> Vec<Share> {
    let mut by_series: BTreeMap<usize, Vec<&ForecastRow>> = BTreeMap::new();
    for row in rows {
        by_series.entry(row.series).or_default().push(row);
    }
    let share = |(series, rows): (usize, Vec<&ForecastRow>)| Share {
        series,
        error_gpus: mean(rows.iter().map(|row| (row.forecast.quantiles_gpus[0] - row.actual_gpus).abs())),
        actual_gpus: rows[0].actual_gpus,
        before_gpus: actuals.get(&rows[0].target().plus_hours(-1)).and_then(|hour| hour.get(&series)).copied(),
        median_gpus: mean(rows.iter().map(|row| row.forecast.quantiles_gpus[0])),
        q95_gpus: mean(rows.iter().map(|row| row.forecast.quantiles_gpus[2])),
    };
    let mut all: Vec<Share> = by_series.into_iter().map(share).collect();
    all.sort_by(|a, b| b.error_gpus.total_cmp(&a.error_gpus).then(a.series.cmp(&b.series)));
    all.truncate(SERIES_SHOWN);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_of_one_event_are_counted_with_its_worst() {
        let hour = |index: i64| HourStart::from_unix_s(index * 3_600).unwrap();
        let order: Vec<_> = [(10, 9.0), (11, 8.0), (30, 7.0), (9, 6.0), (50, 0.1), (70, 0.1), (80, 0.1)]
            .map(|(index, error)| (hour(index), error))
            .to_vec();
        let picked: Vec<_> =
            picked(&order, 4).into_iter().map(|(hour, _, more)| (hour.unix_s() / 3_600, more)).collect();
        assert_eq!(picked, [(10, 2), (30, 0)], "the first half of seven hours is four");
    }
}
