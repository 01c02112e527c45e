//! `RRULE:FREQ=YEARLY`: what holidays need. Everything else is refused.

use super::EventFault;
use crate::read::dates::{YEARS, date};
use chrono::{Datelike, NaiveDate};

/// How often an event comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    every_years: i32,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// So many times, the first included.
    After(u32),
    /// The last day on which one may start.
    Until(NaiveDate),
    Never,
}

impl Repeat {
    pub const ONCE: Self = Self { every_years: 1, end: End::After(1) };

    /// # Errors
    /// The rule is none that repeats the date of `first` from year to year.
    pub fn parse(text: &str, first: NaiveDate) -> Result<Self, EventFault> {
        let refused = || EventFault::Repeat { name: "RRULE", text: text.to_owned() };
        let (mut repeat, mut yearly) = (Self { every_years: 1, end: End::Never }, false);
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(refused)?;
            let number = || value.parse::<u32>().ok().filter(|number| (1..=1_000).contains(number)).ok_or_else(refused);
            match key.to_ascii_uppercase().as_str() {
                "FREQ" if value.eq_ignore_ascii_case("YEARLY") => yearly = true,
                "INTERVAL" => repeat.every_years = number()? as i32,
                "COUNT" | "UNTIL" if repeat.end != End::Never => return Err(refused()),
                "COUNT" => repeat.end = End::After(number()?),
                "UNTIL" => {
                    let until = value.split('T').next().unwrap_or_default();
                    repeat.end = End::Until(date(until, "%Y%m%d").ok_or_else(refused)?);
                }
                // The date of the start, repeated.
                "BYMONTH" if number()? == first.month() => {}
                "BYMONTHDAY" if number()? == first.day() => {}
                // On which day weeks begin is nothing to a date.
                "WKST" => {}
                _ => return Err(refused()),
            }
        }
        yearly.then_some(repeat).ok_or_else(refused)
    }

    pub fn is_endless(self) -> bool {
        self.end == End::Never
    }

    /// The days on which it starts: 29 February comes in leap years only, and only then counts.
    pub fn starts(self, first: NaiveDate) -> Vec<NaiveDate> {
        let years = (first.year()..=*YEARS.end()).step_by(self.every_years.unsigned_abs() as usize);
        let starts = years.filter_map(|year| first.with_year(year));
        match self.end {
            End::After(count) => starts.take(count as usize).collect(),
            End::Until(last) => starts.take_while(|start| *start <= last).collect(),
            End::Never => starts.collect(),
        }
    }
}
