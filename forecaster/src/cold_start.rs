//! The conservative rule for a series that no model knows, or whose history is too short.

use crate::gaussian;
use datasets::Panel;
use vocab::{DemandForecast, ForecastError, ForecastOrigin, HorizonHours, HourStart, QUANTILE_LEVELS, StepForecast};

/// How far back the rule looks: the peak of the last week was the bound of the production cluster before GFS (§4.6.1).
const LOOKBACK_HOURS: usize = 168;
/// At this probability the Gaussian reaches the peak seen so far.
const PEAK_AT: f64 = 0.9;
/// A demand that never moved may still begin to: one GPU at least.
const LEAST_STDDEV_GPUS: f64 = 1.0;

/// The mean stays at the last value; the deviation is such that the bound at 0.9 is the highest hour seen in the last
/// week, and at least one GPU.
pub fn cold_start(
    panel: &Panel,
    series: usize,
    issue: HourStart,
    horizon: HorizonHours,
) -> Result<DemandForecast, ForecastError> {
    let one = &panel.series()[series];
    let end = panel.index_of(issue).unwrap_or(0).min(panel.hours());
    let seen = &one.demand_gpus()[end.saturating_sub(LOOKBACK_HOURS)..end];
    let last = seen.last().copied().unwrap_or(0.0);
    let peak = seen.iter().copied().fold(last, f64::max);
    let stddev_gpus = ((peak - last) / gaussian::quantile(PEAK_AT)).max(LEAST_STDDEV_GPUS);
    let quantiles_gpus = QUANTILE_LEVELS.map(|level| last + stddev_gpus * gaussian::quantile(level));
    let step = StepForecast { mean_gpus: last, stddev_gpus, quantiles_gpus };
    DemandForecast::new(one.id().clone(), issue, ForecastOrigin::ColdStart, vec![step; horizon.steps()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{ClusterName, Organization, PoolId, SeriesId};

    fn cold(demand: &[f64]) -> DemandForecast {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let end = start.plus_hours(demand.len() as i64);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
        let pool = PoolId::parse("earth:V100").unwrap();
        let id = SeriesId { pool, organization: Organization::parse("new").unwrap() };
        for (hour, gpus) in demand.iter().enumerate() {
            builder.push(&id, start.plus_hours(hour as i64), *gpus).unwrap();
        }
        cold_start(&builder.finish().unwrap(), 0, end, HorizonHours::new(4).unwrap()).unwrap()
    }

    #[test]
    fn a_new_organization_is_bounded_by_the_highest_hour_seen() {
        let forecast = cold(&[2.0, 9.0, 4.0]);
        let [q50, q90, _] = forecast.steps()[3].quantiles_gpus;
        assert_eq!((q50, forecast.origin()), (4.0, ForecastOrigin::ColdStart));
        assert!((q90 - 9.0).abs() < 1e-9);
    }

    #[test]
    fn one_that_never_moved_may_still_grow_by_a_gpu_or_so() {
        assert_eq!(cold(&[3.0; 5]).steps()[0].stddev_gpus, 1.0);
    }
}
