//! When a source is read, and which hours: pure.

use prometheus::{Asked, Span};
use vocab::{HourStart, UnixSeconds};

/// After the end of an hour: its last samples are there, also of stores that take them over a network.
const SETTLES_S: i64 = 120;
/// Hours that are read again: some stores answer in part while one of their machines restarts.
pub const AGAIN_HOURS: i64 = 6;
/// Pauses after a fault double from the first to the last of these.
const PAUSE_S: (i64, i64) = (30, 600);
/// After so many partial answers in a row, a partial answer is accepted.
const MOST_REPEATS: u32 = 5;

/// How far a source was read.
#[derive(Debug, Default)]
pub struct Schedule {
    /// The first unread hour; `None` before the first.
    next: Option<HourStart>,
    not_before: Option<UnixSeconds>,
    faults: u32,
}

impl Schedule {
    /// Begins at an hour, or as far back as is looked.
    pub fn begin(&mut self, next: Option<HourStart>) {
        self.next = next;
    }

    /// The first unread hour.
    pub const fn next(&self) -> Option<HourStart> {
        self.next
    }

    /// Whether the pause after a fault is over.
    pub fn may_try(&self, now: UnixSeconds) -> bool {
        self.not_before.is_none_or(|time| now >= time)
    }

    /// The hours to read now, if any is over that was not.
    pub fn due(&self, now: UnixSeconds, lookback_hours: u32) -> Option<Asked> {
        let until = now.plus_s(-SETTLES_S).hour().ok()?;
        let earliest = until.plus_hours(-i64::from(lookback_hours));
        let Some(next) = self.next else {
            return Some(Asked { span: Span { from: earliest, until }, may_begin_later: true });
        };
        let from = next.plus_hours(-AGAIN_HOURS).max(earliest);
        (next < until).then_some(Asked { span: Span { from, until }, may_begin_later: false })
    }

    /// Hours before `until` were read.
    pub fn read_until(&mut self, until: HourStart) {
        *self = Self { next: Some(until), ..Self::default() };
    }

    /// Whether what was answered in part is asked for once more.
    pub const fn may_repeat(&self) -> bool {
        self.faults < MOST_REPEATS
    }

    /// Hours before `from` were read, and those from there on in part: after a pause they are read again.
    pub fn read_in_part(&mut self, from: HourStart, now: UnixSeconds) {
        self.next = Some(from);
        self.failed(now);
    }

    /// It did not work.
    pub fn failed(&mut self, now: UnixSeconds) {
        let pause = PAUSE_S.0.saturating_mul(1 << self.faults.min(10)).min(PAUSE_S.1);
        self.not_before = Some(now.plus_s(pause));
        self.faults += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKBACK: u32 = 48;

    fn at(hour: i64, second: i64) -> UnixSeconds {
        UnixSeconds::new(1_700_006_400 + hour * 3_600 + second)
    }

    /// From and until, as hours.
    fn due(schedule: &Schedule, now: UnixSeconds) -> Option<(i64, i64)> {
        let asked = schedule.due(now, LOOKBACK)?;
        let number = |hour: HourStart| (hour.unix_s() - at(0, 0).get()) / 3_600;
        Some((number(asked.span.from), number(asked.span.until)))
    }

    #[test]
    fn an_hour_is_read_two_minutes_after_it_is_over_and_the_last_ones_again() {
        let mut schedule = Schedule::default();
        assert_eq!(due(&schedule, at(100, 119)), Some((51, 99)));
        schedule.read_until(at(99, 0).hour().unwrap());
        assert_eq!(due(&schedule, at(100, 119)), None);
        assert_eq!(due(&schedule, at(100, 120)), Some((93, 100)));
        schedule.read_until(at(100, 0).hour().unwrap());
        assert_eq!(due(&schedule, at(101, 0)), None);
        assert_eq!(due(&schedule, at(101, 120)), Some((94, 101)));
    }

    #[test]
    fn what_was_missed_is_caught_up_as_far_as_is_looked_back() {
        let mut schedule = Schedule::default();
        schedule.begin(Some(at(80, 0).hour().unwrap()));
        assert_eq!(due(&schedule, at(100, 600)), Some((74, 100)));
        assert_eq!(due(&schedule, at(500, 600)), Some((452, 500)));
        assert!(!schedule.due(at(500, 600), LOOKBACK).unwrap().may_begin_later);
        assert!(Schedule::default().due(at(500, 600), LOOKBACK).unwrap().may_begin_later);
    }

    #[test]
    fn what_was_answered_in_part_is_read_again_after_a_pause_and_not_for_ever() {
        let mut schedule = Schedule::default();
        for _ in 0..MOST_REPEATS {
            assert!(schedule.may_repeat());
            schedule.read_in_part(at(60, 0).hour().unwrap(), at(100, 600));
            assert_eq!(due(&schedule, at(100, 600)), Some((54, 100)), "from where it was not answered");
            assert!(!schedule.may_try(at(100, 600)));
        }
        assert!(!schedule.may_repeat());
        schedule.read_until(at(100, 0).hour().unwrap());
        assert!(schedule.may_repeat(), "another time is another fault");
    }

    #[test]
    fn pauses_after_faults_double_up_to_ten_minutes_and_end_with_a_success() {
        let mut schedule = Schedule::default();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            schedule.failed(at(0, 0));
            pauses.push((0..=601).find(|second| schedule.may_try(at(0, *second))).unwrap());
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 600, 600]);
        schedule.read_until(at(1, 0).hour().unwrap());
        schedule.failed(at(0, 0));
        assert!(!schedule.may_try(at(0, 29)) && schedule.may_try(at(0, 30)));
    }
}
