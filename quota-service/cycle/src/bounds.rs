//! Bounds of a pool's forecasts, over the hours that a promise given now covers.

use datasets::{Panel, Series};
use forecaster::LEFT_AFTER_HOURS;
use forecaster::bound::{Aggregation, BoundError, PoolBound, PoolCalibration, bounds};
use forecaster::calibration::Conformal;
use forecaster::scores::actual_peak_gpus;
use vocab::{
    AmountError, DemandForecast, GuaranteeRate, HorizonHours, HourStart, MilliGpus, Organization, PoolId, UnixSeconds,
};

/// Measured peaks from which an order statistic at 0.9 exists, and a few more.
const LEAST_RESIDUALS: usize = 12;

/// B_H of a forecast, for one number of offered hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForecastBound {
    /// Hours H of the promise.
    pub hours: HorizonHours,
    /// The bound, in GPUs.
    pub bound: MilliGpus,
    /// Demand that returns where a day off ends within the hours; 0 where none does. It stands beside what is learned from
    /// moment to moment, which knows no days off.
    pub returns: MilliGpus,
}

impl ForecastBound {
    /// Of the bound that a forecast has for a promise of `hours`.
    #[must_use]
    pub fn of(hours: HorizonHours, bound: &PoolBound) -> Self {
        let returns = |gpus: f64| MilliGpus::rounded_up(gpus.max(0.0)).unwrap_or(MilliGpus::MAX);
        Self { hours, bound: bound.bound, returns: bound.returns_gpus.map_or(MilliGpus::ZERO, returns) }
    }
}

/// The inputs of a pool's bounds.
pub struct Forecasted<'a> {
    /// Of its organizations, as they are issued.
    pub members: &'a [DemandForecast],
    /// The evidence of its measured peaks.
    pub conformal: Option<&'a Conformal>,
    /// Of validation, with the aggregation that serves; none before anything is trained.
    pub calibration: Option<&'a PoolCalibration>,
    /// The operator's setting; else validation chooses.
    pub aggregation: Option<Aggregation>,
    /// That the forecasts reach.
    pub horizon: HorizonHours,
    /// Steps that a promise covers beyond its own hours ([`more_steps`]).
    pub more_steps: u8,
}

impl Forecasted<'_> {
    /// How organizations become one bound. Before anything is trained the pool's own measured peaks decide, as soon as there
    /// are some.
    #[must_use]
    pub fn aggregation(&self) -> Aggregation {
        let has_peaks = |known: &Conformal| known.hours.iter().all(|one| one.residuals >= LEAST_RESIDUALS);
        let untrained = || match self.conformal {
            Some(known) if has_peaks(known) => Aggregation::Mixture,
            _ => Aggregation::SumOfBounds,
        };
        self.aggregation.unwrap_or_else(|| self.calibration.map_or_else(untrained, |known| known.chosen))
    }

    /// The forecast steps that a promise of `hours` from now covers. Where the forecast ends before, its last step stands for
    /// the rest.
    fn covered(&self, hours: HorizonHours) -> HorizonHours {
        covered(hours, self.more_steps, self.horizon)
    }
}

/// The forecast steps that a promise covers: its own hours and those [more](more_steps), as far as the forecast reaches.
#[must_use]
pub fn covered(hours: HorizonHours, more_steps: u8, horizon: HorizonHours) -> HorizonHours {
    let steps = u64::from(hours.get()) + u64::from(more_steps);
    HorizonHours::new(steps).map_or(horizon, |steps| steps.min(horizon))
}

/// Steps that a promise given at `now` covers beyond its own hours: those of usage that has not come yet, and one where it
/// starts within an hour and so ends within another. The first value are the hours that are late.
#[must_use]
pub fn more_steps(issue: HourStart, now: UnixSeconds) -> (u8, u8) {
    let Ok(hour) = now.hour() else { return (0, 0) };
    let late = u8::try_from(hour.hours_since(issue).max(0)).unwrap_or(u8::MAX);
    (late, late.saturating_add(u8::from(hour.instant() != now)))
}

/// HP demand in the hour before `issue`; where it exceeds all amounts, the largest one.
#[must_use]
pub fn latest_demand(panel: &Panel, pool: &PoolId, issue: HourStart) -> Option<MilliGpus> {
    let newest = issue.plus_hours(-1);
    let measured = actual_peak_gpus(panel, pool, newest, HorizonHours::ONE);
    let filled = || {
        let hour = panel.index_of(newest)?;
        panel.series_of(pool).iter().map(|series| series.demand_gpus()[hour]).reduce(|sum, demand| sum + demand)
    };
    measured.or_else(filled).and_then(|gpus| match MilliGpus::nearest(gpus) {
        Err(AmountError::TooLarge { .. }) => Some(MilliGpus::MAX),
        amount => amount.ok(),
    })
}

/// Which organizations of a pool have reported the newest hour of usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported<'a> {
    /// The hour.
    pub hour: HourStart,
    /// Those that have not, by name: the last known demand of each stands for it.
    pub missing: Vec<&'a Organization>,
    /// All that are expected to: those with a row in this hour or in the two days before.
    pub organizations: usize,
}

/// Series of the organizations of a pool that are expected to report the hour of this index.
pub(crate) fn expected<'a>(panel: &'a Panel, pool: &PoolId, index: usize) -> Vec<&'a Series> {
    let lately = index.saturating_sub(LEFT_AFTER_HOURS)..=index;
    let is_expected = |series: &&Series| series.measured()[lately.clone()].contains(&true);
    panel.series_of(pool).iter().filter(is_expected).collect()
}

/// Which organizations of a pool have reported the hour before `issue`. One that was silent for two days has left, as forecasts
/// have it.
#[must_use]
pub fn reported<'a>(panel: &'a Panel, pool: &PoolId, issue: HourStart) -> Reported<'a> {
    let hour = issue.plus_hours(-1);
    let newest = panel.index_of(hour).filter(|newest| *newest < panel.hours());
    let expected = newest.map_or_else(Vec::new, |newest| expected(panel, pool, newest));
    let is_missing = |series: &&&Series| newest.is_some_and(|newest| !series.measured()[newest]);
    let missing = expected.iter().filter(is_missing).map(|series| &series.id().organization).collect();
    Reported { hour, missing, organizations: expected.len() }
}

/// B_H of the forecasts for each of `offered`, at a guarantee rate.
///
/// # Errors
/// A bound exceeds what an amount holds.
pub fn forecast_bounds(
    of: &Forecasted<'_>,
    offered: &[HorizonHours],
    rate: GuaranteeRate,
) -> Result<Vec<PoolBound>, BoundError> {
    let members: Vec<&DemandForecast> = of.members.iter().collect();
    let steps: Vec<_> = offered.iter().map(|hours| of.covered(*hours)).collect();
    bounds(&members, of.aggregation(), of.calibration, of.conformal, rate, &steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{ClusterName, SeriesId};

    #[test]
    fn demand_above_all_amounts_together_is_the_largest_one_and_not_unknown() {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let (start, pool) = (HourStart::from_unix_s(0).unwrap(), PoolId::parse("earth:V100").unwrap());
        let end = start.plus_hours(60);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
        for number in 0..101 {
            let organization = Organization::parse(&format!("o{number}")).unwrap();
            let id = SeriesId { pool: pool.clone(), organization };
            (0..60).for_each(|hour| builder.push(&id, start.plus_hours(hour), 1e7).unwrap());
        }
        assert_eq!(latest_demand(&builder.finish().unwrap(), &pool, end), Some(MilliGpus::MAX));
    }

    /// The missing of the last of 60 hours, and the expected: each name with the hours that it reports.
    fn missing(organizations: &[(&str, &dyn Fn(i64) -> bool)]) -> (Vec<String>, usize) {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let (start, pool) = (HourStart::from_unix_s(0).unwrap(), PoolId::parse("earth:V100").unwrap());
        let end = start.plus_hours(60);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
        for (name, reports) in organizations {
            let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
            for hour in (0..60).filter(|hour| reports(*hour)) {
                builder.push(&id, start.plus_hours(hour), 3.0).unwrap();
            }
        }
        let panel = builder.finish().unwrap();
        let found = reported(&panel, &pool, end);
        assert_eq!(found.hour, start.plus_hours(59));
        (found.missing.into_iter().map(ToString::to_string).collect(), found.organizations)
    }

    #[test]
    fn organizations_that_reported_within_two_days_and_not_the_newest_hour_are_missing() {
        let (all, late, left, new) =
            (|_: i64| true, |hour: i64| hour < 59, |hour: i64| hour < 11, |hour: i64| hour == 59);
        assert_eq!(
            missing(&[("all", &all), ("late", &late), ("left", &left), ("new", &new)]),
            (vec!["late".into()], 3)
        );
        assert_eq!(missing(&[("all", &all), ("a-day", &|hour: i64| hour <= 11)]), (vec!["a-day".into()], 2));
        assert_eq!(missing(&[("late", &late)]), (vec!["late".into()], 1), "another pool of the cluster is ahead");
        assert_eq!(missing(&[("all", &all)]), (Vec::new(), 1));
    }
}
