//! The rule for an organization that has left, or stands still: nothing stays reserved for it.

use crate::calibration::reach::AT_HAND_HOURS;
use crate::rows::{HistoryFault, Source};
use datasets::{HourRange, Panel, Series};
use std::collections::BTreeSet;
use vocab::{DemandForecast, ForecastError, ForecastOrigin, HorizonHours, HourStart, PoolId, SeriesId, StepForecast};

/// An organization without demand for so many hours in which its pool was recorded has left. On the hours of Helios before
/// its test week one that was at zero for 48 hours asked for anything within the next four with a chance of 1.9 % (3.0 %
/// after 24 hours, 2.3 % after a week), so that zero is its 0.95 quantile. A gap of a day in its rows is no leaving.
pub const LEFT_AFTER_HOURS: usize = 48;

/// One that came back after such a pause before has left after so many: who works on workdays, or once a week, is back within seven days
/// (DECISIONS.md, "An organization that pauses has not left").
const PAUSED_LEFT_AFTER_HOURS: usize = 7 * 24;

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
    /// organization of its pool, or the pool as a whole (`*`), has one, and does not [pause](pauses). Hours in which the whole pool is
    /// silent say nothing. `has_returned` is whether it came back after such a pause before. Series are best asked for in the order of
    /// the panel.
    pub fn has_left(&mut self, series: usize, has_returned: bool) -> bool {
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
                return !pauses(one, recorded, has_returned);
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

/// The organizations that came back after [`LEFT_AFTER_HOURS`] or more hours that were measured as zero, within these hours.
///
/// # Errors
/// The history cannot be read.
pub fn returned(what: &Source<'_>, within: HourRange) -> Result<BTreeSet<SeriesId>, HistoryFault> {
    let mut returned = BTreeSet::new();
    what.history.each(&mut |panel| {
        let place = |hour: HourStart| usize::try_from(hour.hours_since(panel.start())).unwrap_or(0).min(panel.hours());
        let hours = place(within.from)..place(within.to);
        let came_back = panel.series().iter().filter(|one| came_back(one, hours.clone()));
        returned.extend(came_back.map(|one| one.id().clone()));
    })?;
    Ok(returned)
}

fn came_back(one: &Series, hours: std::ops::Range<usize>) -> bool {
    // Before its first demand nobody pauses.
    let mut silent = None;
    for hour in hours.filter(|hour| one.measured()[*hour]) {
        if one.demand_gpus()[hour] > 0.0 {
            if silent >= Some(LEFT_AFTER_HOURS) {
                return true;
            }
            silent = Some(0);
        } else {
            silent = silent.map(|hours| hours + 1);
        }
    }
    false
}

/// Whether an organization that is silent does what it did before: it came back after [`LEFT_AFTER_HOURS`] or more without demand, within
/// the hours at hand or, as `has_returned` says, those that a model learned from; and it is not silent for [`PAUSED_LEFT_AFTER_HOURS`]
/// yet. `recorded` is whether its pool was, in the hours before the issue time.
fn pauses(one: &Series, recorded: &[bool], has_returned: bool) -> bool {
    let at_hand = recorded.len().saturating_sub(AT_HAND_HOURS)..recorded.len();
    let gpus = |hour: usize| Some(one.demand_gpus()[hour]).filter(|_| one.measured()[hour]);
    // Where rows end instead of demand, a forecast would hold what was measured last for as long.
    if at_hand.clone().rev().find_map(gpus).is_none_or(|gpus| gpus > 0.0) {
        return false;
    }
    let (mut silent, mut pause, mut longest) = (None, 0, 0);
    for hour in at_hand.rev() {
        if gpus(hour).is_none_or(|gpus| gpus <= 0.0) {
            pause += usize::from(recorded[hour]);
            continue;
        }
        if silent.is_some() {
            longest = longest.max(pause);
        }
        silent.get_or_insert(pause);
        pause = 0;
    }
    // The first pause may have begun before the hours at hand.
    let has_returned = has_returned || longest.max(pause) >= LEFT_AFTER_HOURS;
    silent.is_some_and(|silent| silent < PAUSED_LEFT_AFTER_HOURS && has_returned)
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
        has_a_left_after(HOURS, a, b)
    }

    fn has_a_left_after(hours: usize, a: impl Fn(usize) -> Option<f64>, b: impl Fn(usize) -> Option<f64>) -> bool {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let end = start.plus_hours(hours as i64);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
        let pool = PoolId::parse("earth:V100").unwrap();
        for hour in 0..hours {
            for (name, gpus) in [("a", a(hour)), ("b", b(hour))] {
                let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
                if let Some(gpus) = gpus {
                    builder.push(&id, start.plus_hours(hour as i64), gpus).unwrap();
                }
            }
        }
        Leaving::at(&builder.finish().unwrap(), end).has_left(0, false)
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
    fn an_organization_of_workdays_or_of_one_day_a_week_has_not_left_until_a_week_is_over() {
        // From 9 to 18 on Monday to Friday: 63 hours from Friday evening on.
        let workdays = |hour: usize| if hour / 24 % 7 < 5 && (9..18).contains(&(hour % 24)) { 5.0 } else { 0.0 };
        let has_left =
            |end: usize, demand: &dyn Fn(usize) -> f64| has_a_left_after(end, |hour| Some(demand(hour)), |_| Some(3.0));
        let monday = |week: usize, hour: usize| week * 168 + hour;
        assert!(has_left(monday(1, 8), &workdays), "the first weekend is no habit");
        assert!(!has_left(monday(2, 8), &workdays) && !has_left(monday(5, 8), &workdays));
        // Nobody comes on the third Monday, nor later.
        let until = |hour: usize| if hour < monday(2, 0) { workdays(hour) } else { 0.0 };
        let friday_evening = monday(2, 0) - 54;
        assert!(!has_left(friday_evening + PAUSED_LEFT_AFTER_HOURS - 1, &until));
        assert!(has_left(friday_evening + PAUSED_LEFT_AFTER_HOURS, &until));
        let weekly = |hour: usize| if hour % 168 < 12 { 5.0 } else { 0.0 };
        assert!(!has_left(monday(3, 0), &weekly));
    }

    #[test]
    fn an_organization_that_came_back_long_ago_has_not_left_until_a_week_is_over() {
        let (hours, silent) = (1_100, 900);
        let paused = |hour: usize| if (20..80).contains(&hour) || hour >= silent { Some(0.0) } else { Some(5.0) };
        let has_left = |end: usize, has_returned: bool| {
            let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
            let start = HourStart::from_unix_s(0).unwrap();
            let mut builder =
                PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(hours));
            let pool = PoolId::parse("earth:V100").unwrap();
            for hour in 0..hours as usize {
                for (name, gpus) in [("a", paused(hour).unwrap()), ("b", 3.0)] {
                    let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
                    builder.push(&id, start.plus_hours(hour as i64), gpus).unwrap();
                }
            }
            Leaving::at(&builder.finish().unwrap(), start.plus_hours(end as i64)).has_left(0, has_returned)
        };
        assert!(has_left(silent + LEFT_AFTER_HOURS, false), "the pause is not among the hours at hand");
        assert!(!has_left(silent + LEFT_AFTER_HOURS, true));
        assert!(
            !has_left(silent + PAUSED_LEFT_AFTER_HOURS - 1, true) && has_left(silent + PAUSED_LEFT_AFTER_HOURS, true)
        );
    }

    #[test]
    fn an_organization_whose_rows_end_has_left_although_it_paused_before() {
        let paused = |hour: usize| if (20..80).contains(&hour) { Some(0.0) } else { Some(5.0) };
        let ended = |hour: usize| paused(hour).filter(|_| hour < 100);
        assert!(has_a_left_after(100 + LEFT_AFTER_HOURS, ended, |_| Some(3.0)));
        let stopped = |hour: usize| if hour < 100 { paused(hour) } else { Some(0.0) };
        assert!(!has_a_left_after(100 + LEFT_AFTER_HOURS, stopped, |_| Some(3.0)));
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
        assert!((0..ORGANIZATIONS).all(|series| !leaving.has_left(series, false)));
    }

    #[test]
    fn hours_in_which_the_whole_pool_is_silent_say_nothing() {
        let half_recorded = |hour: usize| hour.is_multiple_of(2).then_some(3.0);
        assert!(!has_a_left(until(HOURS - LEFT_AFTER_HOURS, None), half_recorded));
        assert!(!has_a_left(until(2, None), until(2, None)), "nobody has left where nothing is recorded");
    }
}
