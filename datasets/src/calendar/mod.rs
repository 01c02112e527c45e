//! The local calendar of a cluster: hour of day, weekday, day off.
//!
//! A Saturday or Sunday is off unless a table calls it a working day; another day is on unless a table calls it off. A
//! table states its years: outside of them only weekends are known, and [`Calendar::uncovered`] says so.

mod built_in;
mod choice;
mod days;
#[cfg(test)]
mod tests;

pub use built_in::BuiltIn;
pub use choice::CalendarChoice;
pub(crate) use days::{Collector, Contradiction, YEARS_LINE};
pub use days::{Day, DayKind, DayTable};

use crate::read::{self, ReadError};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use vocab::{HourStart, NameError};

/// Why a calendar was refused.
#[derive(Debug, thiserror::Error)]
pub enum CalendarError {
    #[error("{name:?} is not a time zone: use a name of the IANA database such as Asia/Shanghai or UTC")]
    UnknownZone { name: String },
    #[error("unknown calendar {name:?}: expected {known}, or a CSV or iCal file{}",
        closest.as_ref().map_or(String::new(), |closest| format!(": did you mean {closest}?")))]
    UnknownCalendar { name: String, known: String, closest: Option<String> },
    #[error("{name:?} is a built-in calendar: give your own calendar another name")]
    Taken { name: String },
    #[error(transparent)]
    Name(#[from] NameError),
    /// The stored days of a user's own calendar.
    #[error(transparent)]
    Days(Box<ReadError>),
}

/// From this likeness on a name is offered in place of an unknown one.
const LIKENESS_MIN: f64 = 0.7;

impl CalendarError {
    /// `own` are the users' calendars that there are.
    #[must_use]
    pub fn unknown(name: &str, own: &[String]) -> Self {
        let built_in = || BuiltIn::ALL.into_iter().map(|one| (one.name(), one.name()));
        let countries = BuiltIn::ALL.into_iter().map(|one| (one.country(), one.name()));
        let own = || own.iter().map(|one| (one.as_str(), one.as_str()));
        let likeness = |text: &str| strsim::jaro_winkler(&text.to_lowercase(), &name.to_lowercase());
        let named = built_in().chain(countries).chain(own()).map(|(text, known)| (likeness(text), known));
        let closest = named.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
        let closest = closest.map(|(_, known)| known.to_owned());
        let known: Vec<&str> = built_in().chain(own()).map(|(_, known)| known).collect();
        Self::UnknownCalendar { name: name.to_owned(), known: known.join(", "), closest }
    }
}

/// Calendar features of one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourFeatures {
    /// 0 to 23, local; in a zone whose offset holds half an hour, the hour in which the grid hour starts.
    pub hour_of_day: u8,
    /// 0 is Monday.
    pub weekday: u8,
    pub day_off: bool,
}

impl HourFeatures {
    pub const HOURS_OF_DAY: usize = vocab::HOURS_PER_DAY as usize;
    pub const WEEKDAYS: usize = 7;

    /// How the day departs from the week: 1 on a day off outside of the weekend, −1 on a working day within it, 0 on all others.
    #[must_use]
    pub const fn departure_from_week(&self) -> i8 {
        self.day_off as i8 - (self.weekday >= 5) as i8
    }
}

/// Reads a name of the IANA database, such as `Asia/Shanghai`.
///
/// # Errors
/// [`CalendarError::UnknownZone`].
pub fn zone(name: &str) -> Result<Tz, CalendarError> {
    name.parse().map_err(|_| CalendarError::UnknownZone { name: name.to_owned() })
}

/// A time zone and the days off in it. A clone shares the tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    zone: Tz,
    choice: Arc<CalendarChoice>,
    base: Option<&'static DayTable>,
    own: Option<Arc<DayTable>>,
}

impl Calendar {
    /// Saturday and Sunday off: the default of a cluster.
    pub const WEEKDAYS: &str = BuiltIn::Weekdays.name();

    /// A calendar that comes with the program.
    ///
    /// # Errors
    /// A name is not known.
    pub fn parse(zone: &str, calendar: &str) -> Result<Self, CalendarError> {
        Self::with_own(zone, calendar, None)
    }

    /// A calendar as [`CalendarChoice`] reads its name; `own_csv` are the days of the user's own one, where it has one.
    ///
    /// # Errors
    /// A name is not known, the user's own calendar was not brought along, or its days no longer parse.
    pub fn with_own(zone: &str, calendar: &str, own_csv: Option<&str>) -> Result<Self, CalendarError> {
        let zone = self::zone(zone)?;
        let choice = CalendarChoice::parse(calendar)?;
        let own = match (choice.own(), own_csv) {
            (None, _) => None,
            (Some(name), None) => return Err(CalendarError::unknown(name.as_str(), &[])),
            (Some(name), Some(csv)) => {
                let file = format!("calendar {name}");
                let read = read::days_csv(file.as_ref(), csv).map_err(|fault| CalendarError::Days(Box::new(fault)))?;
                Some(Arc::new(read.table))
            }
        };
        Ok(Self { zone, base: choice.base().and_then(BuiltIn::table), choice: Arc::new(choice), own })
    }

    #[must_use]
    pub const fn zone(&self) -> Tz {
        self.zone
    }

    /// The name, in the form that is stored.
    #[must_use]
    pub fn name(&self) -> String {
        self.choice.to_string()
    }

    /// The calendar of an hour; every hour has exactly one, also where clocks change: that of the local time at which it
    /// starts, even where local midnight lies within it.
    #[must_use]
    pub fn at(&self, hour: HourStart) -> HourFeatures {
        let local = self.local(hour);
        let weekday = local.weekday().num_days_from_monday() as u8;
        HourFeatures { hour_of_day: local.hour() as u8, weekday, day_off: self.is_day_off(local.date()) }
    }

    /// Seconds by which the local clock is ahead of UTC at the start of an hour.
    #[must_use]
    pub fn offset_s(&self, hour: HourStart) -> i32 {
        self.zone.offset_from_utc_datetime(&Self::utc(hour).naive_utc()).fix().local_minus_utc()
    }

    fn utc(hour: HourStart) -> DateTime<Utc> {
        DateTime::from_timestamp(hour.unix_s(), 0).expect("hours lie between 1970 and 2200")
    }

    fn local(&self, hour: HourStart) -> NaiveDateTime {
        Self::utc(hour).with_timezone(&self.zone).naive_local()
    }

    /// A user's own day goes before the country's, and a named day before the rule of the week.
    #[must_use]
    pub fn is_day_off(&self, date: NaiveDate) -> bool {
        let own = self.own.as_ref().and_then(|table| table.kind_of(date));
        match own.or_else(|| self.base?.kind_of(date)) {
            Some(kind) => kind == DayKind::Off,
            None => date.weekday().num_days_from_monday() >= 5,
        }
    }

    /// The named days, by date.
    #[must_use]
    pub fn days(&self) -> Vec<&Day> {
        let base = self.base.map_or(&[][..], DayTable::days);
        let own = self.own.as_ref().map_or(&[][..], |table| table.days());
        let by_date: BTreeMap<_, _> = base.iter().chain(own).map(|day| (day.date, day)).collect();
        by_date.into_values().collect()
    }

    /// The years whose days off are known; `None` where all are. The years of a country are those of its table, with and without a user's own days.
    #[must_use]
    pub fn covered_years(&self) -> Option<RangeInclusive<i32>> {
        match self.choice.base() {
            Some(_) => self.base.map(DayTable::years),
            None => self.own.as_ref().map(|table| table.years()),
        }
    }

    /// Whether the days off of an hour's year are known, beyond weekends.
    #[must_use]
    pub fn covers(&self, hour: HourStart) -> bool {
        self.covered_years().is_none_or(|years| years.contains(&self.local(hour).year()))
    }

    /// Hours from `first` to `last` beyond the table: `None` where it covers all of them.
    #[must_use]
    pub fn uncovered(&self, first: HourStart, last: HourStart) -> Option<Uncovered> {
        let years = self.covered_years()?;
        let (before, after) = (self.local(first).year() < *years.start(), self.local(last).year() > *years.end());
        (before || after).then(|| Uncovered { calendar: self.name(), years, before, after })
    }
}

/// Hours beyond the years of a table: weekends are all that is known there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncovered {
    pub calendar: String,
    pub years: RangeInclusive<i32>,
    /// There are hours before the first year.
    pub before: bool,
    /// There are hours after the last year.
    pub after: bool,
}

impl fmt::Display for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.years.start(), self.years.end());
        let when = match (self.before, self.after) {
            (true, true) => format!("before {first}-01-01 and from {}-01-01 on", last + 1),
            (true, false) => format!("before {first}-01-01"),
            (false, _) => format!("from {}-01-01 on", last + 1),
        };
        write!(
            f,
            "calendar {} covers the years {first} to {last}; {when} only Saturdays and Sundays count as days off",
            self.calendar
        )
    }
}
