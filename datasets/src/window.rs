//! Input of a model at one issue time. Training and serving cut their windows here only.

use crate::calendar::HourFeatures;
use crate::panel::Panel;
use std::borrow::Cow;
use vocab::{HorizonHours, HourStart, SeriesId};

/// Why there is no window. None of these is an error of the data: the caller forecasts by the cold-start rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowFault {
    #[error("the history before {issue} has {have} h, the model looks back {need} h")]
    ShortHistory { issue: HourStart, have: usize, need: usize },
    #[error("issue time {issue} is past the end of the history, {end}")]
    PastEnd { issue: HourStart, end: HourStart },
}

/// The view of one series at one issue time: no value at or after `issue` is in it. Its hours are those of the cluster's clock
/// ([`Clock`](crate::Clock)): the same time of the day before is always 24 hours back.
#[derive(Debug, Clone, PartialEq)]
pub struct Window<'a> {
    /// Series of the window.
    pub series: &'a SeriesId,
    /// The first instant not seen.
    pub issue: HourStart,
    /// GPUs in each of the last `lookback` hours, oldest first, gaps filled forward.
    pub demand_gpus: Cow<'a, [f64]>,
    /// Whether each of these hours was measured.
    pub measured: Cow<'a, [bool]>,
    /// Calendar of each of them.
    pub seen: Cow<'a, [HourFeatures]>,
    /// Calendar of each target hour; calendars are known ahead.
    pub targets: &'a [HourFeatures],
}

impl Window<'_> {
    /// The newest value, filled forward where the last hour is a gap.
    #[must_use]
    pub fn last_gpus(&self) -> f64 {
        self.demand_gpus.last().copied().unwrap_or(0.0)
    }
}

/// Demand after the issue time: for training and scoring only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome<'a> {
    /// GPUs in each hour, gaps filled forward.
    pub demand_gpus: &'a [f64],
    /// Whether each of these hours was measured.
    pub measured: &'a [bool],
}

/// The window of series number `series` of the panel at `issue`.
///
/// ```
/// use datasets::{Calendar, PanelBuilder, window};
/// use vocab::{ClusterName, HorizonHours, HourStart, Organization, PoolId, SeriesId};
///
/// let start = HourStart::from_unix_s(0)?;
/// let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS)?;
/// let mut builder = PanelBuilder::new(ClusterName::parse("earth")?, calendar, start, start.plus_hours(3));
/// let series = SeriesId { pool: PoolId::parse("earth:A100")?, organization: Organization::parse("vision")? };
/// builder.push(&series, start, 4.0)?;
/// builder.push(&series, start.plus_hours(2), 6.0)?;
/// let panel = builder.finish()?;
/// let seen = window::at(&panel, 0, panel.end(), 3, HorizonHours::ONE)?;
/// assert_eq!(seen.last_gpus(), 6.0);
/// assert_eq!(seen.demand_gpus.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The series has fewer than `lookback_hours` hours since its first measured one, or `issue` is past the panel's end.
///
/// # Panics
/// When the panel has no series of that number.
pub fn at(
    panel: &Panel,
    series: usize,
    issue: HourStart,
    lookback_hours: usize,
    horizon: HorizonHours,
) -> Result<Window<'_>, WindowFault> {
    at_least(panel, series, issue, lookback_hours, lookback_hours, horizon)
}

/// As [`at`], but a series with fewer hours than `lookback_hours` shows those that it has, if they are `least_hours`.
///
/// # Errors
/// The series has fewer than `least_hours` hours since its first measured one, or `issue` is past the panel's end.
///
/// # Panics
/// When the panel has no series of that number.
pub fn at_least(
    panel: &Panel,
    series: usize,
    issue: HourStart,
    lookback_hours: usize,
    least_hours: usize,
    horizon: HorizonHours,
) -> Result<Window<'_>, WindowFault> {
    let one = &panel.series()[series];
    let end = panel.index_of(issue).unwrap_or(0);
    if end > panel.hours() {
        return Err(WindowFault::PastEnd { issue, end: panel.end() });
    }
    let have = end.saturating_sub(one.first_measured().unwrap_or(end));
    if have < least_hours {
        return Err(WindowFault::ShortHistory { issue, have, need: least_hours });
    }
    let (series, targets) = (one.id(), &panel.features()[end..end + horizon.steps()]);
    if let Some(hours) = panel.clock().hours(end - have, end, lookback_hours) {
        if hours.len() < least_hours {
            return Err(WindowFault::ShortHistory { issue, have: hours.len(), need: least_hours });
        }
        let demand_gpus = hours.iter().map(|hour| one.demand_gpus()[*hour]).collect();
        let measured = hours.iter().map(|hour| one.measured()[*hour]).collect();
        let seen = hours.iter().map(|hour| panel.features()[*hour]).collect();
        return Ok(Window { series, issue, demand_gpus, measured, seen, targets });
    }
    let seen = end - have.min(lookback_hours)..end;
    Ok(Window {
        series,
        issue,
        demand_gpus: Cow::Borrowed(&one.demand_gpus()[seen.clone()]),
        measured: Cow::Borrowed(&one.measured()[seen.clone()]),
        seen: Cow::Borrowed(&panel.features()[seen]),
        targets,
    })
}

/// Demand of series number `series` in the hours from `issue`; `None` where one lies outside the panel.
///
/// # Panics
/// When the panel has no series of that number.
#[must_use]
pub fn outcome(panel: &Panel, series: usize, issue: HourStart, horizon: HorizonHours) -> Option<Outcome<'_>> {
    let start = panel.index_of(issue)?;
    let hours = start..start + horizon.steps();
    let one = &panel.series()[series];
    Some(Outcome { demand_gpus: one.demand_gpus().get(hours.clone())?, measured: one.measured().get(hours)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Calendar;
    use crate::panel::PanelBuilder;
    use proptest::prelude::*;
    use vocab::{ClusterName, Organization, PoolId};

    /// Two series, so that recording gaps can occur; `None` is an hour without a row.
    fn panel(values: &[Option<u8>]) -> Panel {
        let calendar = Calendar::parse("Asia/Shanghai", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let end = start.plus_hours(values.len() as i64);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, end);
        let pool = PoolId::parse("earth:V100").unwrap();
        for (name, shift) in [("a", 0), ("b", 7)] {
            let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
            builder.push(&id, start, 1.0).unwrap();
            for (hour, value) in values.iter().enumerate().skip(1) {
                if let Some(value) = value {
                    let demand = f64::from(value.wrapping_mul(shift + 1));
                    builder.push(&id, start.plus_hours(hour as i64), demand).unwrap();
                }
            }
        }
        builder.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        #[test]
        fn nothing_at_or_after_the_issue_time_reaches_the_window(
            past in prop::collection::vec(prop::option::of(any::<u8>()), 12..40),
            future in prop::collection::vec(prop::option::of(any::<u8>()), 6),
            other in prop::collection::vec(prop::option::of(any::<u8>()), 6),
        ) {
            let one = panel(&[past.clone(), future].concat());
            let two = panel(&[past.clone(), other].concat());
            let issue = one.hour_at(past.len());
            let horizon = HorizonHours::new(4).unwrap();
            for series in 0..2 {
                prop_assert_eq!(at(&one, series, issue, 8, horizon), at(&two, series, issue, 8, horizon));
            }
        }
    }

    #[test]
    fn the_window_ends_before_the_issue_time_and_the_outcome_begins_there() {
        let values: Vec<_> = (0..20).map(Some).collect();
        let panel = panel(&values);
        let issue = panel.hour_at(10);
        let window = at(&panel, 0, issue, 3, HorizonHours::new(2).unwrap()).unwrap();
        assert_eq!(*window.demand_gpus, [7.0, 8.0, 9.0]);
        assert_eq!(window.targets[0].hour_of_day, 18, "10:00 UTC is 18:00 in Shanghai");
        assert_eq!(outcome(&panel, 0, issue, HorizonHours::new(2).unwrap()).unwrap().demand_gpus, [10.0, 11.0]);
    }

    #[test]
    fn the_end_of_the_panel_is_an_issue_time_without_an_outcome() {
        let panel = panel(&[Some(1); 20]);
        let horizon = HorizonHours::new(4).unwrap();
        assert!(at(&panel, 0, panel.end(), 8, horizon).is_ok());
        assert_eq!(outcome(&panel, 0, panel.end(), horizon), None);
        assert!(matches!(at(&panel, 0, panel.end().plus_hours(1), 8, horizon), Err(WindowFault::PastEnd { .. })));
    }

    #[test]
    fn a_history_shorter_than_the_lookback_shows_what_it_has_where_that_is_enough() {
        let panel = panel(&[Some(1); 20]);
        let shown = |least_hours: usize| at_least(&panel, 0, panel.end(), 168, least_hours, HorizonHours::ONE);
        assert_eq!(shown(12).unwrap().demand_gpus.len(), 20);
        assert_eq!(shown(21), Err(WindowFault::ShortHistory { issue: panel.end(), have: 20, need: 21 }));
    }

    #[test]
    fn a_history_shorter_than_the_lookback_is_refused_with_both_lengths() {
        let panel = panel(&[Some(1); 20]);
        let fault = at(&panel, 0, panel.end(), 168, HorizonHours::ONE).unwrap_err();
        assert!(matches!(fault, WindowFault::ShortHistory { have: 20, need: 168, .. }));
    }

    #[test]
    fn the_same_time_of_the_day_before_is_24_hours_back_where_the_clock_changes() {
        // Demand is the hour of the day in Berlin, whose clock went forward on 2026-03-29 and back on 2026-10-25 at 01:00 UTC.
        for (change_s, have) in [(1_774_746_000, 97), (1_792_890_000, 95)] {
            let calendar = Calendar::parse("Europe/Berlin", Calendar::WEEKDAYS).unwrap();
            let start = HourStart::from_unix_s(change_s).unwrap().plus_hours(-48);
            let mut builder =
                PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar.clone(), start, start.plus_hours(96));
            let pool = PoolId::parse("earth:V100").unwrap();
            let id = SeriesId { pool, organization: Organization::parse("a").unwrap() };
            for hour in (0..96).map(|hour| start.plus_hours(hour)) {
                builder.push(&id, hour, f64::from(calendar.at(hour).hour_of_day)).unwrap();
            }
            let panel = builder.finish().unwrap();
            let seen = at(&panel, 0, panel.end(), 90, HorizonHours::ONE).unwrap();
            let skipped =
                |place: usize| seen.seen[place].hour_of_day != ((seen.seen[0].hour_of_day as usize + place) % 24) as u8;
            let differ: Vec<usize> =
                (24..90).filter(|place| seen.demand_gpus[*place] != seen.demand_gpus[place - 24]).collect();
            let skips = (0..90).filter(|place| skipped(*place)).count();
            assert_eq!(skips, usize::from(have == 97), "the hour that the clock skipped is the one before");
            assert!(differ.iter().all(|place| skipped(*place) || skipped(place - 24)), "{differ:?}");
            let all = at_least(&panel, 0, panel.end(), 168, 24, HorizonHours::ONE).unwrap();
            assert_eq!((all.demand_gpus.len(), all.measured.len(), all.seen.len()), (have, have, have));
        }
    }
}
