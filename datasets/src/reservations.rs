//! Windows of reservations that repeat, in the time zone of their cluster.

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDateTime, Offset, TimeZone, Utc};
pub use chrono_tz::Tz;
use vocab::{Reservation, ReservedWindow, SECONDS_PER_DAY, UnixSeconds, Weekday};

/// The windows of a reservation that overlap `[from, to)`, in the order of time.
///
/// A repetition begins at the same local time on each of its days, and lasts as long as the first window, or until the next one begins: on
/// a day of 23 hours, a window of 24 would meet it. A local time that comes twice is its first occurrence, except that the first window
/// begins when it was asked for; one that never comes counts with the offset before the gap, as in RFC 5545.
#[must_use]
pub fn windows(of: &Reservation, zone: Tz, from: UnixSeconds, to: UnixSeconds) -> Vec<ReservedWindow> {
    let overlaps = |window: &ReservedWindow| window.from < to && from < window.to;
    let first = &of.first;
    let Some(repeats) = &of.repeats else { return Some(first.clone()).filter(overlaps).into_iter().collect() };
    let Some(begin) = local(first.from, zone).filter(|_| !repeats.days.is_empty()) else { return Vec::new() };
    let lasts_s = first.to.since_s(first.from);
    // From the day before the first one that can overlap on: local days are not those of UTC.
    let skipped = (from.since_s(first.from) - lasts_s).div_euclid(SECONDS_PER_DAY) - 1;
    let days = (skipped.max(0)..).map_while(|number| begin.checked_add_days(Days::new(number.unsigned_abs())));
    let begin_on = |day: NaiveDateTime| {
        let is_one = repeats.days.contains(&weekday(day.weekday()));
        // Of a time that comes twice, the first window may begin at the second occurrence.
        is_one.then(|| if day == begin { first.from } else { instant(day, zone) })
    };
    let is_before_end = |at: UnixSeconds| repeats.until.is_none_or(|until| at < until);
    let begins = days.filter_map(|day| Some((begin_on(day)?, day.checked_add_days(Days::new(1)).and_then(begin_on))));
    let each = begins.take_while(|(at, _)| *at < to && is_before_end(*at)).filter(|(at, _)| *at >= first.from);
    let window = |(at, next): (UnixSeconds, Option<UnixSeconds>)| {
        let end = at.plus_s(lasts_s);
        let end = next.filter(|next| is_before_end(*next)).map_or(end, |next| end.min(next));
        ReservedWindow { from: at, to: end, ..first.clone() }
    };
    each.map(window).filter(overlaps).collect()
}

/// Why a reservation does not fit the calendar of its cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReservationError {
    /// The first window begins on a day that the rule does not name.
    #[error("/repeats/days: the first window begins on {day} in {zone}: write {day} among the days, or another time")]
    OtherDay {
        /// The day of the first window.
        day: &'static str,
        /// The time zone of the cluster.
        zone: Tz,
    },
    /// The times are outside of the calendar.
    #[error("/from: {from} is beyond the years of the calendar: write another time")]
    OutsideCalendar {
        /// The begin of the first window.
        from: UnixSeconds,
    },
}

/// Whether the first window begins on a day of its rule.
///
/// # Errors
/// It does not.
pub fn check(of: &Reservation, zone: Tz) -> Result<(), ReservationError> {
    let Some(repeats) = &of.repeats else { return Ok(()) };
    let from = of.first.from;
    let day = weekday_of(from, zone).ok_or(ReservationError::OutsideCalendar { from })?;
    if repeats.days.contains(&day) { Ok(()) } else { Err(ReservationError::OtherDay { day: day.as_str(), zone }) }
}

/// The day of the week at an instant; `None` beyond the years of the calendar.
#[must_use]
pub fn weekday_of(at: UnixSeconds, zone: Tz) -> Option<Weekday> {
    local(at, zone).map(|at| weekday(at.weekday()))
}

fn weekday(day: chrono::Weekday) -> Weekday {
    Weekday::ALL[day.num_days_from_monday() as usize]
}

fn local(at: UnixSeconds, zone: Tz) -> Option<NaiveDateTime> {
    DateTime::<Utc>::from_timestamp(at.get(), 0).map(|at| at.with_timezone(&zone).naive_local())
}

/// The instant of a local time, whether it comes once, twice or never.
fn instant(at: NaiveDateTime, zone: Tz) -> UnixSeconds {
    let resolved = match zone.from_local_datetime(&at) {
        LocalResult::Single(one) | LocalResult::Ambiguous(one, _) => one.timestamp(),
        LocalResult::None => {
            let day_before = zone.from_local_datetime(&(at - Days::new(1))).earliest();
            let offset_s = day_before.map_or(0, |before| i64::from(before.offset().fix().local_minus_utc()));
            at.and_utc().timestamp() - offset_s
        }
    };
    UnixSeconds::new(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use vocab::{MilliGpus, Organization, PoolId, Repeats};

    const BERLIN: Tz = chrono_tz::Europe::Berlin;

    fn at(text: &str) -> UnixSeconds {
        crate::time::parse(text, BERLIN).unwrap()
    }

    fn weekly(from: &str, to: &str, days: &[Weekday], until: Option<&str>) -> Reservation {
        let organization = Organization::parse("lab").unwrap();
        let first = ReservedWindow { from: at(from), to: at(to), organization, gpus: MilliGpus::from_gpus(8) };
        let repeats =
            (!days.is_empty()).then(|| Repeats { days: days.iter().copied().collect(), until: until.map(at) });
        Reservation { pool: PoolId::parse("earth:V100").unwrap(), first, repeats }
    }

    fn begins(of: &Reservation, from: &str, to: &str) -> Vec<String> {
        windows(of, BERLIN, at(from), at(to)).iter().map(|one| one.from.to_string()).collect()
    }

    #[test]
    fn a_single_window_is_there_where_it_overlaps() {
        let once = weekly("2026-03-02T09:00:00+01:00", "2026-03-02T17:00:00+01:00", &[], None);
        assert_eq!(begins(&once, "2026-03-02T16:59:59+01:00", "2026-03-03T00:00:00+01:00").len(), 1);
        assert_eq!(begins(&once, "2026-03-02T17:00:00+01:00", "2026-03-03T00:00:00+01:00").len(), 0);
        assert_eq!(begins(&once, "2026-03-01T17:00:00+01:00", "2026-03-02T09:00:00+01:00").len(), 0);
    }

    #[test]
    fn a_weekly_window_keeps_its_local_time_over_a_change_of_the_clocks_and_ends_with_its_rule() {
        let days = [Weekday::Sunday, Weekday::Monday];
        let of =
            weekly("2026-03-22T09:00:00+01:00", "2026-03-22T11:00:00+01:00", &days, Some("2026-04-05T09:00:00+02:00"));
        let all = begins(&of, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z");
        let expected = ["2026-03-22T08:00:00Z", "2026-03-23T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"];
        assert_eq!(all, expected);
        assert_eq!(begins(&of, "2026-03-29T07:30:00Z", "2026-03-30T07:00:00Z"), ["2026-03-29T07:00:00Z"]);
    }

    #[test]
    fn a_local_time_that_never_comes_and_one_that_comes_twice_are_those_of_rfc_5545() {
        let sundays = [Weekday::Sunday];
        let gap = weekly("2026-03-22T02:30:00+01:00", "2026-03-22T03:30:00+01:00", &sundays, None);
        assert_eq!(
            begins(&gap, "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"),
            ["2026-03-29T01:30:00Z"],
            "02:30 +01:00 is 03:30"
        );
        let twice = weekly("2026-10-18T02:30:00+02:00", "2026-10-18T03:30:00+02:00", &sundays, None);
        assert_eq!(begins(&twice, "2026-10-25T00:00:00Z", "2026-10-26T00:00:00Z"), ["2026-10-25T00:30:00Z"]);
    }

    #[test]
    fn the_first_window_begins_when_it_was_asked_for_also_in_the_second_of_two_equal_hours() {
        let sundays = [Weekday::Sunday];
        let of = weekly("2026-10-25T02:30:00+01:00", "2026-10-25T02:45:00+01:00", &sundays, None);
        let all = begins(&of, "2026-10-25T00:00:00Z", "2026-11-02T00:00:00Z");
        assert_eq!(all, ["2026-10-25T01:30:00Z", "2026-11-01T01:30:00Z"]);
    }

    #[test]
    fn windows_of_24_hours_follow_each_other_without_meeting_over_both_changes_of_the_clocks() {
        for (from, to, day_s) in [
            ("2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00", 23 * 3_600),
            ("2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00", 24 * 3_600),
        ] {
            let of = weekly(from, to, &Weekday::ALL, None);
            let all = windows(&of, BERLIN, at(from), at(from).plus_s(4 * 86_400));
            assert!(all.windows(2).all(|two| two[0].to <= two[1].from), "{all:?}");
            assert_eq!(all[1].to.since_s(all[1].from), day_s, "the day of the change");
            let last = weekly(from, to, &Weekday::ALL, Some(to));
            assert_eq!(windows(&last, BERLIN, at(from), at(to)).len(), 1);
        }
    }

    #[test]
    fn every_week_of_years_has_its_windows_from_wherever_they_are_asked_for() {
        let days: Vec<Weekday> = vec![Weekday::Wednesday, Weekday::Saturday];
        let of = weekly("2026-01-07T23:30:00+01:00", "2026-01-08T05:30:00+01:00", &days, None);
        let (from, to) = ("2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
        let all: BTreeSet<_> = windows(&of, BERLIN, at(from), at(to)).into_iter().collect();
        assert_eq!(all.len(), 2 * 104 - 1, "103 Saturdays and 104 Wednesdays from the first on");
        let hourly = (0..2 * 365 * 24).flat_map(|hour| {
            let begin = at(from).plus_s(hour * 3_600);
            windows(&of, BERLIN, begin, begin.plus_s(3_600))
        });
        assert_eq!(hourly.collect::<BTreeSet<_>>(), all);
    }
}
