//! Days that differ from the rule of the week, over stated years.

use chrono::{Datelike, NaiveDate};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Kind of a named day, for any weekday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayKind {
    Off,
    /// A make-up working day: a Saturday or Sunday on which people work.
    Work,
}

impl DayKind {
    /// Text in files: `off` or `work`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Work => "work",
        }
    }

    /// Reads `off` or `work`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Off, Self::Work].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A named day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// The date.
    pub date: NaiveDate,
    /// Day off or working day.
    pub kind: DayKind,
    /// Name of the holiday.
    pub name: String,
}

impl Day {
    /// Year of the date.
    #[must_use]
    pub fn year(&self) -> i32 {
        self.date.year()
    }
}

/// Named days, sorted, at most one a date, and the years that they are complete for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayTable {
    years: RangeInclusive<i32>,
    days: Vec<Day>,
}

impl DayTable {
    /// Kind of a date; `None` for most dates.
    #[must_use]
    pub fn kind_of(&self, date: NaiveDate) -> Option<DayKind> {
        let place = self.days.binary_search_by_key(&date, |day| day.date).ok()?;
        Some(self.days[place].kind)
    }

    /// The years that the table is complete for.
    #[must_use]
    pub fn years(&self) -> RangeInclusive<i32> {
        self.years.clone()
    }

    /// The days, by date.
    #[must_use]
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// The table as `read::days` reads it back.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv = csv::Writer::from_writer(Vec::new());
        let mut row = |fields: [&str; 3]| csv.write_record(fields).expect("a Vec takes any bytes");
        row(["date", "kind", "name"]);
        for day in &self.days {
            row([&day.date.to_string(), day.kind.as_str(), &day.name]);
        }
        let rows = csv.into_inner().expect("a Vec takes any bytes");
        let rows = String::from_utf8(rows).expect("fields are text");
        format!("{YEARS_LINE} {}-{}\n{rows}", self.years.start(), self.years.end())
    }
}

/// How the line begins that states the years of a table.
pub(crate) const YEARS_LINE: &str = "# years:";

/// Two rows or events make one date a day off and a working day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// The date.
    pub date: NaiveDate,
    pub first_kind: DayKind,
    /// Row or line.
    pub first_place: u64,
}

/// Collects the days of a file.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    days: BTreeMap<NaiveDate, (Day, u64)>,
    /// Days that were there already with the same kind.
    pub equal_duplicates: u64,
}

impl Collector {
    /// Adds a day found at a row or line.
    ///
    /// # Errors
    /// The date is there already with the other kind.
    pub fn add(&mut self, date: NaiveDate, kind: DayKind, name: &str, place: u64) -> Result<(), Contradiction> {
        match self.days.get_mut(&date) {
            None => {
                self.days.insert(date, (Day { date, kind, name: one_line(name) }, place));
            }
            Some((known, first_place)) if known.kind != kind => {
                return Err(Contradiction { date, first_kind: known.kind, first_place: *first_place });
            }
            Some(_) => self.equal_duplicates += 1,
        }
        Ok(())
    }

    /// The first and the last year of the days.
    pub fn years(&self) -> Option<RangeInclusive<i32>> {
        let (first, last) = (self.days.keys().next()?, self.days.keys().next_back()?);
        Some(first.year()..=last.year())
    }

    /// The table of these years; days of others are left out, since a table that is stored is refused with them.
    pub fn finish(self, years: RangeInclusive<i32>) -> DayTable {
        let days = self.days.into_values().map(|(day, _)| day).filter(|day| years.contains(&day.year()));
        DayTable { days: days.collect(), years }
    }
}

/// A name as one line of printable text: it is stored and printed in tables.
fn one_line(name: &str) -> String {
    let spaced: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}
