//! One event, and the days that it names.

use super::lines::{Line, unescaped};
use super::repeat::Repeat;
use super::{EventFault, Fault};
use crate::calendar::DayKind;
use crate::read::dates::date;
use chrono::{Days as Plus, NaiveDate};

/// Longer ones are slips: a year off is no holiday.
const LONGEST_DAYS: i64 = 366;
/// How published calendars of China mark a make-up working day in its summary.
const WORK_MARKS: [&str; 3] = ["补班", "（班）", "(班)"];

/// The lines of an event that matter here.
pub struct Event {
    /// Where it begins.
    pub line: u64,
    lines: Vec<Line>,
}

/// Kind of an event.
pub enum Seen {
    Days(Days),
    /// It has a time of day.
    Timed,
    Cancelled,
}

/// The days of an event.
pub struct Days {
    pub dates: Vec<NaiveDate>,
    pub kind: DayKind,
    pub name: String,
    /// It repeats every year without an end.
    pub endless: bool,
}

impl Event {
    pub const fn at(line: u64) -> Self {
        Self { line, lines: Vec::new() }
    }

    pub fn take(&mut self, line: Line) {
        self.lines.push(line);
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.name == name)
    }

    fn one<'a>(&'a self, name: &'a str) -> Option<&'a Line> {
        self.all(name).next()
    }

    pub fn seen(&self) -> Result<Seen, Fault> {
        let is = |name: &str, value: &str| self.one(name).is_some_and(|line| line.value.eq_ignore_ascii_case(value));
        if is("STATUS", "CANCELLED") {
            return Ok(Seen::Cancelled);
        }
        let start = self.one("DTSTART").ok_or((self.line, EventFault::NoStart))?;
        if start.value.contains('T') {
            return Ok(Seen::Timed);
        }
        if let Some(line) = self.one("RECURRENCE-ID") {
            return Err((line.number, EventFault::Override));
        }
        let first = day("DTSTART", start, &start.value)?;
        let length = self.length_days(first)?;
        let repeat = match self.one("RRULE") {
            None => Repeat::ONCE,
            Some(line) => Repeat::parse(&line.value, first).map_err(|fault| (line.number, fault))?,
        };
        let mut starts = repeat.starts(first);
        starts.extend(self.listed("RDATE")?);
        let left_out = self.listed("EXDATE")?;
        starts.retain(|start| !left_out.contains(start));
        let from = |start: NaiveDate| (0..length).filter_map(move |day| start.checked_add_days(Plus::new(day)));
        let name = self.one("SUMMARY").map_or(String::new(), |line| unescaped(&line.value));
        let dates = starts.into_iter().flat_map(from).collect();
        Ok(Seen::Days(Days { dates, kind: self.kind(&name), name, endless: repeat.is_endless() }))
    }

    fn kind(&self, name: &str) -> DayKind {
        let mut categories = self.all("CATEGORIES").flat_map(|line| line.value.split(','));
        let work = categories.any(|category| category.trim().eq_ignore_ascii_case("WORKDAY"));
        if work || WORK_MARKS.iter().any(|mark| name.contains(mark)) { DayKind::Work } else { DayKind::Off }
    }

    fn length_days(&self, first: NaiveDate) -> Result<u64, Fault> {
        let (line, days) = if let Some(line) = self.one("DTEND") {
            let end = day("DTEND", line, &line.value)?;
            let days = end.signed_duration_since(first).num_days();
            if days < 1 {
                return Err((line.number, EventFault::NoLength { start: first, end }));
            }
            (line, days)
        } else if let Some(line) = self.one("DURATION") {
            let fault = || (line.number, EventFault::Duration { text: line.value.clone() });
            (line, duration_days(&line.value).ok_or_else(fault)?)
        } else {
            return Ok(1);
        };
        if days > LONGEST_DAYS {
            return Err((line.number, EventFault::TooLong { days }));
        }
        Ok(days.unsigned_abs())
    }

    /// The dates of `EXDATE` or `RDATE` lines, each a list.
    fn listed(&self, name: &'static str) -> Result<Vec<NaiveDate>, Fault> {
        let each = |line: &Line| line.value.split(',').map(|text| day(name, line, text)).collect::<Vec<_>>();
        self.all(name).flat_map(each).collect()
    }
}

/// `20241231`; a time after it, which some programs write beside a whole day, says nothing more.
fn day(name: &'static str, line: &Line, text: &str) -> Result<NaiveDate, Fault> {
    let written = text.trim().split('T').next().unwrap_or_default();
    date(written, "%Y%m%d").ok_or_else(|| (line.number, EventFault::Date { name, text: text.to_owned() }))
}

/// `P3D`, `P1W`.
fn duration_days(text: &str) -> Option<i64> {
    let number = text.strip_prefix('P')?;
    let (number, unit) = number.split_at_checked(number.len().checked_sub(1)?)?;
    let number: i64 = number.parse().ok().filter(|number| (1..10_000).contains(number))?;
    match unit {
        "D" => Some(number),
        "W" => Some(number * 7),
        _ => None,
    }
}
