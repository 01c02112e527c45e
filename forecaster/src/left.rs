//! The rule for an organization that has left, or stands still: nothing stays reserved for it.

use datasets::Panel;
use vocab::{DemandForecast, ForecastError, ForecastOrigin, HorizonHours, HourStart, PoolId, StepForecast};

/// An organization without demand for so many hours in which its pool was recorded has left. On the hours of Helios before
/// its test week one that was at zero for 48 hours asked for anything within the next four with a chance of 1.9 % (3.0 %
/// after 24 hours, 2.3 % after a week), so that zero is its 0.95 quantile. A gap of a day in its rows is no leaving.
pub const LEFT_AFTER_HOURS: usize = 48;

/// Which organizations have left by an issue hour. Whether a pool was recorded in an hour is found once for each pool, so that
/// the cost grows with organizations × hours, however many of them have no row.
pub struct Leaving<'a> {
    panel: &'a Panel,
    /// Hours of the panel before the issue hour.
    end: usize,
    /// The pool that was asked for last, and whether it or any of its organizations was measured in each hour.
    pool: Option<(&'a PoolId, Vec<bool>)>,
}

impl<'a> Leaving<'a> {
    /// Activity of each organization at an issue hour.
    pub fn at(panel: &'a Panel, issue: HourStart) -> Self {
        let end = panel.index_of(issue).unwrap_or(0).min(panel.hours());
        Self { panel, end, pool: None }
    }

    /// Whether series number `series` has neither demand nor a row in the last [`LEFT_AFTER_HOURS`] hours in which any
    /// organization of its pool, or the pool as a whole (`*`), has one. Hours in which the whole pool is silent say nothing. Series are best asked for in
    /// the order of the panel.
    pub fn has_left(&mut self, series: usize) -> bool {
        let panel = self.panel;
        let one = &panel.series()[series];
        let recorded = self.recorded(&one.id().pool);
        let mut silent = 0;
        for hour in (0..recorded.len()).rev() {
            if one.measured()[hour] && one.demand_gpus()[hour] > 0.0 {
                return false;
            }
            silent += usize::from(recorded[hour]);
            if silent == LEFT_AFTER_HOURS {
                return true;
            }
        }
        false
    }

    fn recorded(&mut self, pool: &'a PoolId) -> &[bool] {
        if self.pool.as_ref().is_none_or(|(known, _)| *known != pool) {
            let mut recorded = vec![false; self.end];
            for one in self.panel.series_of(pool).iter().chain(self.panel.pool_peak_of(pool)) {
                recorded.iter_mut().zip(one.measured()).for_each(|(any, measured)| *any |= measured);
            }
            self.pool = Some((pool, recorded));
        }
        self.pool.as_ref().map_or(&[], |(_, recorded)| recorded)
    }
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
    use vocab::{ClusterName, Organization, SeriesId};

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
        Leaving::at(&builder.finish().unwrap(), end).has_left(0)
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

    /// One hour of rows after many without any, of so many organizations that the square of their number would not end.
    #[test]
    fn organizations_without_history_cost_in_proportion_to_their_number() {
        const ORGANIZATIONS: usize = 20_000;
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let pool = PoolId::parse("earth:V100").unwrap();
        let earth = ClusterName::parse("earth").unwrap();
        let mut builder = PanelBuilder::new(earth, calendar, start, start.plus_hours(200));
        for name in 0..ORGANIZATIONS {
            let organization = Organization::parse(&format!("o{name}")).unwrap();
            builder.push(&SeriesId { pool: pool.clone(), organization }, start.plus_hours(199), 0.0).unwrap();
        }
        let panel = builder.finish().unwrap();
        let mut leaving = Leaving::at(&panel, panel.end());
        assert!((0..ORGANIZATIONS).all(|series| !leaving.has_left(series)));
    }

    #[test]
    fn hours_in_which_the_whole_pool_is_silent_say_nothing() {
        let half_recorded = |hour: usize| hour.is_multiple_of(2).then_some(3.0);
        assert!(!has_a_left(until(HOURS - LEFT_AFTER_HOURS, None), half_recorded));
        assert!(!has_a_left(until(2, None), until(2, None)), "nobody has left where nothing is recorded");
    }
}
