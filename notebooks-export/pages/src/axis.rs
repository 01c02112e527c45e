//! Axes with round numbers, and with days.

use super::number::tick;
use chrono::{Datelike, Duration, NaiveDateTime, Timelike};

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// A range of values and where its ticks are.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub label: String,
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From zero to the round number at or above `most`, with about `count` ticks.
    #[must_use]
    pub fn from_zero(label: &str, most: f64, count: u32) -> Self {
        Self::between(label, 0.0, most, count)
    }

    /// From the round number at or below `least` to the one at or above `most`.
    #[must_use]
    pub fn between(label: &str, least: f64, most: f64, count: u32) -> Self {
        let range = if most - least > 1e-9 { most - least } else { f64::from(count) };
        let step = round_step(range / f64::from(count));
        let (first, last) = ((least / step + 1e-9).floor() as i64, (most / step - 1e-9).ceil() as i64);
        let ticks = (first..=last.max(first + 1)).map(|index| index as f64 * step);
        let ticks: Vec<_> = ticks.map(|value| (value, tick(value, step))).collect();
        Self { label: label.to_owned(), from: first as f64 * step, to: last.max(first + 1) as f64 * step, ticks }
    }

    /// Whole numbers from `first` to `last`, a tick each, half a step of room on both sides.
    #[must_use]
    pub fn whole(label: &str, first: usize, last: usize) -> Self {
        let every = (last - first) / 24 + 1;
        let ticks = (first..=last).step_by(every).map(|value| (value as f64, value.to_string())).collect();
        Self { label: label.to_owned(), from: first as f64 - 0.5, to: last as f64 + 0.5, ticks }
    }

    /// Local time, in hours since `from`: a tick at midnight of each day, or of every so many days.
    #[must_use]
    pub fn days(label: &str, from: NaiveDateTime, to: NaiveDateTime) -> Self {
        let hours = |time: NaiveDateTime| (time - from).num_seconds() as f64 / SECONDS_PER_HOUR;
        let days = (to - from).num_days().max(1);
        let every = days / 12 + 1;
        let first = from.date().and_hms_opt(0, 0, 0).expect("midnight is a time");
        let first = if from.hour() == 0 && from.minute() == 0 { first } else { first + Duration::days(1) };
        let midnights = (0..=days / every + 1).map(|index| first + Duration::days(index * every));
        let name = |time: NaiveDateTime| format!("{} {}", time.day(), time.format("%b"));
        let ticks = midnights.filter(|time| *time <= to).map(|time| (hours(time), name(time))).collect();
        Self { label: label.to_owned(), from: 0.0, to: hours(to).max(1.0), ticks }
    }

    /// Place of a value: 0 at the beginning, 1 at the end, `None` outside.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// 1, 2 or 5 times a power of ten, at or above.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|round| *round >= step * 0.999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::NaiveDate;

    fn labels(axis: &Axis) -> String {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_numbers_that_hold_the_values() {
        assert_eq!(labels(&Axis::from_zero("", 7.3, 5)), "0 2 4 6 8");
        assert_eq!(labels(&Axis::from_zero("", 0.034, 4)), "0.00 0.01 0.02 0.03 0.04");
        assert_eq!(labels(&Axis::from_zero("", 1_203.0, 4)), "0 500 1000 1500");
        assert_eq!(labels(&Axis::between("", -0.6, 0.3, 4)), "-1.0 -0.5 0.0 0.5");
        assert_eq!(labels(&Axis::from_zero("", 0.0, 4)), "0 1", "nothing but zero has an axis, too");
    }

    #[test]
    fn days_have_their_midnights_however_many_there_are() {
        let at = |day: u32, hour: u32| NaiveDate::from_ymd_opt(2024, 2, day).unwrap().and_hms_opt(hour, 0, 0).unwrap();
        let axis = Axis::days("", at(27, 22), at(29, 12));
        assert_eq!((labels(&axis), axis.ticks[0].0), ("28 Feb 29 Feb".to_owned(), 2.0));
        assert_eq!(axis.share(-5.0), 0.0);
        let month = Axis::days("", at(1, 0), at(29, 0));
        assert_eq!(labels(&month), "1 Feb 4 Feb 7 Feb 10 Feb 13 Feb 16 Feb 19 Feb 22 Feb 25 Feb 28 Feb");
    }
}
