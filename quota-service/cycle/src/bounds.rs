//! Bounds of a pool's forecasts, over the hours that a promise given now covers.

use datasets::Panel;
use forecaster::bound::{Aggregation, BoundError, PoolBound, PoolCalibration, bounds};
use forecaster::calibration::Conformal;
use forecaster::scores::actual_peak_gpus;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, HourStart, MilliGpus, PoolId, UnixSeconds};

/// Measured peaks from which an order statistic at 0.9 exists, and a few more.
const LEAST_RESIDUALS: usize = 12;

/// The inputs of a pool's bounds.
pub struct Forecasted<'a> {
    /// Of its organizations, as they are issued.
    pub members: &'a [DemandForecast],
    /// The evidence of its measured peaks.
    pub conformal: Option<&'a Conformal>,
    /// The choice of validation; none before anything is trained.
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

/// HP demand in the hour before `issue`, as far as it is an amount.
#[must_use]
pub fn latest_demand(panel: &Panel, pool: &PoolId, issue: HourStart) -> Option<MilliGpus> {
    let newest = issue.plus_hours(-1);
    let measured = actual_peak_gpus(panel, pool, newest, HorizonHours::ONE);
    let filled = || {
        let hour = panel.index_of(newest)?;
        panel.series_of(pool).iter().map(|series| series.demand_gpus()[hour]).reduce(|sum, demand| sum + demand)
    };
    measured.or_else(filled).and_then(|gpus| MilliGpus::nearest(gpus).ok())
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
