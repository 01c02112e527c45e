//! Demand that returns where days off end. Residuals and rises of the last week hardly ever hold such an end, so that no expert foresees
//! how far demand rises then; the same hours of usual weeks do.

use super::recent::hourly;
use datasets::{Clock, HourFeatures, Panel};
use vocab::{HorizonHours, HourStart, PoolId};

/// Hours after the end of a day off within which what returns may not have been seen yet: its first morning.
const UNSEEN_HOURS: usize = 12;
/// Weeks within which usual days are sought.
const WEEKS: usize = 8;
/// Usual hours before the day off whose demand says how much is left of that of the week before.
const LEVEL_HOURS: usize = DAY_HOURS;
/// Demand that has fallen by less than a twentieth counts as it was.
const ALIKE: f64 = 1.05;
const DAY_HOURS: usize = 24;
const WEEK_HOURS: usize = 7 * DAY_HOURS;

/// `[hours − 1]`, in GPUs: the largest demand within 1, 2, … hours from `issue` on that the pool had at these times when they were last usual
/// ones, of those hours alone that are less of a day off than one of the last half day was; less, where demand had fallen from week to
/// week before the day off. `None` where no hour is, or nothing is known of usual ones. Empty where no day off ends. Nothing at or after
/// `issue` is read.
pub fn returns(panel: &Panel, pool: &PoolId, issue: HourStart, horizon: HorizonHours) -> Vec<Option<f64>> {
    let Some(now) = panel.index_of(issue).filter(|now| (1..=panel.hours()).contains(now)) else { return Vec::new() };
    let days = Days(panel.features(), panel.clock());
    let before = (now.saturating_sub(UNSEEN_HOURS)..now).map(|hour| days.departs(hour)).max().unwrap_or(0);
    let hours = now..now + horizon.steps();
    let is_less_off = |hour: usize| days.departs(hour) < before;
    if !hours.clone().any(is_less_off) {
        return Vec::new();
    }
    let demand = |hour: usize| hourly(panel, pool, std::iter::once(hour)).first().copied();
    let (mut peak, mut of_hours) = (None::<f64>, Vec::with_capacity(horizon.steps()));
    for hour in hours {
        let last = if is_less_off(hour) { days.last_usual(hour, now).and_then(demand) } else { None };
        peak = last.map(|gpus| peak.map_or(gpus, |peak| peak.max(gpus))).or(peak);
        of_hours.push(peak);
    }
    // Of usual hours before the day off, and of the usual ones before each of them.
    let usual = (0..now).rev().filter(|hour| days.departs(*hour) <= 0).take(LEVEL_HOURS);
    let pairs = usual.filter_map(|hour| Some((demand(hour)?, demand(days.last_usual(hour, hour)?)?)));
    let (level, earlier) = pairs.fold((0.0, 0.0), |(level, earlier), (one, other)| (level + one, earlier + other));
    let left = if earlier > 0.0 { (ALIKE * level / earlier).min(1.0) } else { 1.0 };
    of_hours.into_iter().map(|gpus| Some(gpus? * left)).collect()
}

/// The calendar of a panel, by hour, and its clock.
struct Days<'a>(&'a [HourFeatures], &'a Clock);

impl Days<'_> {
    fn departs(&self, hour: usize) -> i8 {
        self.0.get(hour).map_or(0, HourFeatures::departure_from_week)
    }

    /// The same hour of the last usual week before `now`; of a make-up working day that of the last working day.
    fn last_usual(&self, hour: usize, now: usize) -> Option<usize> {
        let kind = self.departs(hour);
        let every = if kind < 0 { DAY_HOURS } else { WEEK_HOURS };
        let mut earlier = (1..=WEEKS * WEEK_HOURS / every).map_while(|back| self.1.before(hour, back * every));
        let is_alike = |hour: usize| if kind < 0 { !self.0[hour].day_off } else { self.departs(hour) == kind };
        earlier.find(|hour| *hour < now && is_alike(*hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{Aggregation, bounds};
    use crate::calibration::Calibrator;
    use datasets::{Calendar, PanelBuilder};
    use vocab::{DemandForecast, ForecastOrigin, GuaranteeRate, Organization, QUANTILE_LEVELS, SeriesId, StepForecast};

    /// The first hour is that of Monday 2024-01-01. Two organizations with 10 GPUs each and `more` in an hour; days off and working days
    /// by their number, from 0.
    fn panel(days: usize, off: &[usize], work: &[usize], more: impl Fn(usize) -> f64) -> (Panel, PoolId) {
        let row = |kind: &'static str| move |day: &usize| format!("2024-01-{:02},{kind},x\n", day + 1);
        let rows: String = off.iter().map(row("off")).chain(work.iter().map(row("work"))).collect();
        let table = format!("# years: 2024-2024\ndate,kind,name\n{rows}");
        let calendar = Calendar::with_own("UTC", "company.csv", Some(&table)).unwrap();
        let start = HourStart::from_unix_s(1_704_067_200).unwrap();
        let pool = PoolId::parse("earth:V100").unwrap();
        let end = start.plus_hours(days as i64 * 24);
        let mut builder = PanelBuilder::new(pool.cluster.clone(), calendar, start, end);
        for name in ["a", "b"] {
            let series = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
            for hour in 0..days * 24 {
                builder.push(&series, start.plus_hours(hour as i64), 10.0 + more(hour)).unwrap();
            }
        }
        (builder.finish().unwrap(), pool)
    }

    fn at(panel: &Panel, pool: &PoolId, hour: usize, hours: u64) -> Vec<Option<f64>> {
        returns(panel, pool, panel.hour_at(hour), HorizonHours::new(hours).unwrap())
    }

    #[test]
    fn the_end_of_a_day_off_brings_back_the_same_hours_of_the_last_usual_week() {
        // Day 24 is the fourth Thursday, which is off, and the Friday of the week before was off as well. Fridays at 01:00 have more GPUs.
        let more = |hour: usize| if hour % 168 == 97 { (hour / 168 * 5) as f64 } else { 0.0 };
        let (panel, pool) = panel(25, &[18, 24], &[], more);
        let evening = 24 * 24 + 23;
        // That of week 1 had 15 GPUs of each organization at 01:00.
        assert_eq!(at(&panel, &pool, evening, 4), [None, Some(20.0), Some(30.0), Some(30.0)]);
        assert!(at(&panel, &pool, evening - 4, 4).is_empty(), "it does not end within the hours");
        // The morning after, whose hours so far are as a day off.
        let (panel, pool) = self::panel(26, &[18, 24], &[], more);
        assert_eq!(at(&panel, &pool, 25 * 24 + 1, 2), [Some(30.0); 2]);
        assert_eq!(at(&panel, &pool, 25 * 24 + 11, 1), [Some(20.0)]);
        assert!(at(&panel, &pool, 25 * 24 + 12, 4).is_empty(), "noon");
    }

    #[test]
    fn a_make_up_working_day_brings_back_those_of_working_days() {
        let more = |hour: usize| if hour / 24 % 7 < 5 { (hour / 24) as f64 } else { 0.0 };
        // Friday, day 11, before a Saturday that is worked; Wednesday and Thursday before it are off.
        let (panel, pool) = panel(12, &[9, 10], &[12], more);
        assert_eq!(at(&panel, &pool, 11 * 24 + 23, 2), [None, Some(42.0)], "that of Friday");
    }

    #[test]
    fn weekends_alone_and_a_first_week_bring_back_nothing() {
        let (weekends, pool) = panel(28, &[], &[], |hour| hour as f64);
        assert!((0..28 * 24).all(|hour| at(&weekends, &pool, hour, 24).is_empty()));
        let (first, pool) = panel(3, &[2], &[], |_| 0.0);
        assert_eq!(at(&first, &pool, 2 * 24 + 22, 4), [None; 4], "no Thursday before");
    }

    #[test]
    fn where_demand_had_fallen_before_the_day_off_less_returns() {
        // Of 20 GPUs of each organization 10 are left since the Monday of the day off, a Thursday.
        let (fallen, pool) = panel(18, &[17], &[], |hour| if hour / 24 < 14 { 10.0 } else { 0.0 });
        assert_eq!(at(&fallen, &pool, 17 * 24 + 23, 2), [None, Some(21.0)], "half of 40, and a twentieth of it");
        let (alike, pool) = panel(18, &[17], &[], |hour| if hour / 24 < 14 { 0.4 } else { 0.0 });
        assert_eq!(at(&alike, &pool, 17 * 24 + 23, 2), [None, Some(20.8)], "less than a twentieth below");
    }

    /// The last value stays, for both organizations.
    fn last_values(panel: &Panel, issue: usize) -> Vec<DemandForecast> {
        let one = |series: &datasets::Series| {
            let gpus = series.demand_gpus()[issue - 1];
            let step =
                StepForecast { mean_gpus: gpus, stddev_gpus: 1.0, quantiles_gpus: QUANTILE_LEVELS.map(|_| gpus) };
            let steps = vec![step; 2];
            DemandForecast::new(series.id().clone(), panel.hour_at(issue), ForecastOrigin::Model, steps).unwrap()
        };
        panel.series().iter().map(one).collect()
    }

    #[test]
    fn a_bound_is_no_less_than_what_returns() {
        // Of 15 GPUs of each organization 4 are left on a day off.
        let more = |hour: usize| if [18, 24].contains(&(hour / 24)) { -6.0 } else { 5.0 };
        let (panel, pool) = panel(25, &[18, 24], &[], more);
        let now = 24 * 24 + 23;
        let mut calibrator = Calibrator::new(HorizonHours::new(2).unwrap(), true);
        (24..now - 1).for_each(|issue| calibrator.observe(&panel, panel.hour_at(issue), &last_values(&panel, issue)));
        let raw = last_values(&panel, now);
        let known = calibrator.conformal(&panel, &raw, GuaranteeRate::GFS).remove(&pool).unwrap();
        let (members, offered) =
            (raw.iter().collect::<Vec<_>>(), [1, 2].map(|hours| HorizonHours::new(hours).unwrap()));
        for aggregation in Aggregation::ALL {
            let bounds = bounds(&members, aggregation, None, Some(&known), GuaranteeRate::GFS, &offered).unwrap();
            let of = |place: usize| (bounds[place].returns_gpus, bounds[place].bound_gpus);
            assert!(of(0).0.is_none() && of(0).1 < 20.0, "{aggregation}: {:?}", of(0));
            assert_eq!(of(1), (Some(30.0), 30.0), "{aggregation}");
        }
    }
}
