//! Dates of calendar files, shared by CSV and iCal.

use crate::calendar::DayTable;
use chrono::{Datelike, NaiveDate};
use std::ops::RangeInclusive;

/// Years of the hour grid.
pub(super) const YEARS: RangeInclusive<i32> = 1970..=2199;

/// Days read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadDays {
    /// The days, with the years that they cover.
    pub table: DayTable,
    /// Days that repeat an earlier one with the same kind.
    pub equal_duplicates: u64,
    /// Events of iCal that have a time of day: appointments, not days off.
    pub timed_events: u64,
    /// Cancelled events of iCal.
    pub cancelled_events: u64,
}

/// A date on the hour grid, written in full: `2024-1-1` is as likely a slip as a date.
pub(super) fn date(text: &str, format: &str) -> Option<NaiveDate> {
    let date = NaiveDate::parse_from_str(text, format).ok()?;
    let in_full = date.format(format).to_string() == text;
    (in_full && YEARS.contains(&date.year())).then_some(date)
}
