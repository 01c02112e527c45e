//! The rule for an organization that has left, or stands still: nothing stays reserved for it.

use datasets::{Panel, Series};
use vocab::{DemandForecast, ForecastError, ForecastOrigin, HorizonHours, HourStart, StepForecast};

/// An organization without demand for so many hours in which its pool was recorded has left. On the hours of Helios before
/// its test week one that was at zero for 48 hours asked for anything within the next four with a chance of 1.9 % (3.0 %
/// after 24 hours, 2.3 % after a week), so that zero is its 0.95 quantile. A gap of a day in its rows is no leaving.
pub const LEFT_AFTER_HOURS: usize = 48;

/// Whether series number `series` has neither demand nor a row in the last [`LEFT_AFTER_HOURS`] hours before `issue` in
/// which any organization of its pool has one. Hours in which the whole pool is silent say nothing.
pub fn has_left(panel: &Panel, series: usize, issue: HourStart) -> bool {
    let one = &panel.series()[series];
    let end = panel.index_of(issue).unwrap_or(0).min(panel.hours());
    let mut pool: Option<&[Series]> = None;
    let mut silent = 0;
    for hour in (0..end).rev() {
        if one.measured()[hour] {
            if one.demand_gpus()[hour] > 0.0 {
                return false;
            }
            silent += 1;
        } else {
            let pool = pool.get_or_insert_with(|| panel.series_of(&one.id().pool));
            silent += usize::from(pool.iter().any(|other| other.measured()[hour]));
        }
        if silent == LEFT_AFTER_HOURS {
            return true;
        }
    }
    false
}

/// Zero, for sure.
pub fn left(
    panel: &Panel,
    series: usize,
    issue: HourStart,
    horizon: HorizonHours,
) -> Result<DemandForecast, ForecastError> {
    let nothing = StepForecast { mean_gpus: 0.0, stddev_gpus: 0.0, quantiles_gpus: [0.0; 3] };
    let id = panel.series()[series].id().clone();
    DemandForecast::new(id, issue, ForecastOrigin::Left, vec![nothing; horizon.steps()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{ClusterName, Organization, PoolId, SeriesId};

    const HOURS: usize = 60;

    /// Whether `a` has left after [`HOURS`], beside `b`; `None` is an hour without a row.
    fn has_a_left(a: impl Fn(usize) -> Option<f64>, b: impl Fn(usize) -> Option<f64>) -> bool {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let end = start.plus_hours(HOURS as i64);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
        let pool = PoolId::parse("earth:V100").unwrap();
        for hour in 0..HOURS {
            for (name, gpus) in [("a", a(hour)), ("b", b(hour))] {
                let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
                if let Some(gpus) = gpus {
                    builder.push(&id, start.plus_hours(hour as i64), gpus).unwrap();
                }
            }
        }
        has_left(&builder.finish().unwrap(), 0, end)
    }

    fn until(last: usize, after: Option<f64>) -> impl Fn(usize) -> Option<f64> {
        move |hour| if hour < last { Some(5.0) } else { after }
    }

    #[test]
    fn an_organization_without_demand_or_rows_for_two_days_has_left() {
        for after in [Some(0.0), None] {
            assert!(has_a_left(until(HOURS - LEFT_AFTER_HOURS, after), |_| Some(3.0)), "{after:?}");
            assert!(!has_a_left(until(HOURS - LEFT_AFTER_HOURS + 1, after), |_| Some(3.0)), "{after:?}");
        }
    }

    #[test]
    fn hours_in_which_the_whole_pool_is_silent_say_nothing() {
        let half_recorded = |hour: usize| hour.is_multiple_of(2).then_some(3.0);
        assert!(!has_a_left(until(HOURS - LEFT_AFTER_HOURS, None), half_recorded));
        assert!(!has_a_left(until(2, None), until(2, None)), "nobody has left where nothing is recorded");
    }
}
