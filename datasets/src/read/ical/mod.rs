//! iCal (RFC 5545): the all-day events of a calendar as days off.
//!
//! Its own code, since the crates there are keep no line numbers, and an event that is not understood has to be shown with
//! its line instead of being taken for a day at work. What counts is documented at [`days`].

mod event;
mod lines;
mod repeat;
#[cfg(test)]
mod tests;

use super::ReadError;
use super::dates::{ReadDays, YEARS};
use crate::calendar::{Collector, Contradiction};
use chrono::{Datelike, NaiveDate};
use event::{Event, Seen};
use lines::{Line, content_lines};
use std::path::Path;

/// Fault of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventFault {
    #[error("not an iCal file: it does not begin with BEGIN:VCALENDAR")]
    NoCalendar,
    #[error("{text:?} is not a line of iCal: expected NAME:VALUE")]
    NoLine { text: String },
    #[error("BEGIN:{} has no END: the file is cut off", what.escape_debug())]
    NotEnded { what: String },
    #[error("the event has no DTSTART")]
    NoStart,
    #[error("{name}: {text:?} is not a day of the years 1970 to 2199: write it as 20241231")]
    Date { name: &'static str, text: String },
    #[error("DTEND {end} does not come after DTSTART {start}: it is the first day after the event")]
    NoLength { start: NaiveDate, end: NaiveDate },
    #[error("DURATION: {text:?} is not a number of whole days: write P3D")]
    Duration { text: String },
    #[error("the event lasts {days} days, more than a year: is DTEND right?")]
    TooLong { days: i64 },
    #[error(
        "{name}: {} is not understood: FREQ=YEARLY with INTERVAL, COUNT and UNTIL is; give the days as events of their own, or as CSV",
        text.escape_debug()
    )]
    Repeat { name: &'static str, text: String },
    #[error(
        "RECURRENCE-ID changes one day of a series: leave the day out of the series by EXDATE and give it as an event of its own"
    )]
    Override,
    #[error(
        "{date} is a working day here and a day off at line {first_line}, or the other way round: keep one of them"
    )]
    Contradiction { date: NaiveDate, first_line: u64 },
}

pub fn is_ical(text: &str) -> bool {
    text.trim_start().get(..15).is_some_and(|start| start.eq_ignore_ascii_case("BEGIN:VCALENDAR"))
}

/// Reads the all-day events. One is a day off, or a make-up working day where it has the category `WORKDAY`, or a summary
/// with 补班 or （班）, as published calendars of China mark it. Events with a time of day and cancelled ones are left out
/// and counted. The years covered are those from the first to the last day; what repeats every year without an end does not
/// move the last one, unless nothing else does, and is left out of the years after it: there only the week counts.
///
/// # Errors
/// A line is bad, or no event is a day.
pub fn days(file: &Path, text: &str) -> Result<ReadDays, ReadError> {
    let at = |line: u64, fault: EventFault| ReadError::Line { file: file.to_owned(), line, fault };
    if !is_ical(text) {
        return Err(at(1, EventFault::NoCalendar));
    }
    let (mut collector, mut endless) = (Collector::default(), Vec::new());
    let (mut timed_events, mut cancelled_events) = (0, 0);
    for event in events(text).map_err(|(line, fault)| at(line, fault))? {
        let seen = event.seen().map_err(|(line, fault)| at(line, fault))?;
        match seen {
            Seen::Timed => timed_events += 1,
            Seen::Cancelled => cancelled_events += 1,
            Seen::Days(days) if days.endless => endless.push((event.line, days)),
            Seen::Days(days) => add(&mut collector, event.line, &days).map_err(|fault| at(event.line, fault))?,
        }
    }
    let bounded = collector.years();
    for (line, days) in endless {
        add(&mut collector, line, &days).map_err(|fault| at(line, fault))?;
    }
    let all = collector.years().ok_or_else(|| ReadError::NoDays { file: file.to_owned() })?;
    let last = bounded.map_or(*all.end(), |years| *years.end());
    let equal_duplicates = collector.equal_duplicates;
    let table = collector.finish(*all.start()..=last);
    Ok(ReadDays { table, equal_duplicates, timed_events, cancelled_events })
}

fn add(collector: &mut Collector, line: u64, days: &event::Days) -> Result<(), EventFault> {
    let contradiction =
        |Contradiction { date, first_place, .. }| EventFault::Contradiction { date, first_line: first_place };
    for date in &days.dates {
        if YEARS.contains(&date.year()) {
            collector.add(*date, days.kind, &days.name, line).map_err(contradiction)?;
        }
    }
    Ok(())
}

type Fault = (u64, EventFault);

/// The events of a file. What lies inside an event, such as an alarm, is none of it.
fn events(text: &str) -> Result<Vec<Event>, Fault> {
    let (mut events, mut open) = (Vec::new(), Vec::<Line>::new());
    let mut event: Option<Event> = None;
    for line in content_lines(text) {
        let line = line?;
        match line.name.as_str() {
            "BEGIN" => {
                if line.value.eq_ignore_ascii_case("VEVENT") {
                    event = Some(Event::at(line.number));
                }
                open.push(line);
            }
            "END" => {
                let ended = open.pop();
                if !ended.is_some_and(|begun| begun.value.eq_ignore_ascii_case(&line.value)) {
                    return Err((line.number, EventFault::NoLine { text: format!("END:{}", line.value) }));
                }
                if line.value.eq_ignore_ascii_case("VEVENT") {
                    events.extend(event.take());
                }
            }
            _ => {
                let inside = open.last().is_some_and(|begun| begun.value.eq_ignore_ascii_case("VEVENT"));
                if let Some(event) = event.as_mut().filter(|_| inside) {
                    event.take(line);
                }
            }
        }
    }
    match open.pop() {
        Some(begun) => Err((begun.number, EventFault::NotEnded { what: begun.value })),
        None => Ok(events),
    }
}
