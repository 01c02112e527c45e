//! Calendars by name: built in, stored, or a file.

mod list;
mod set;
mod show;

use crate::args::CalendarCommand;
use crate::error::CliError;
use datasets::calendar::BuiltIn;
use datasets::read::{self, ReadDays};
use datasets::{Calendar, CalendarChoice, CalendarError};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::Path;
use store::{Cluster, Store};
use vocab::HourStart;

pub async fn run(command: &CalendarCommand, database: &str, json: bool) -> Result<(), CliError> {
    match command {
        CalendarCommand::List => list::run(database, json).await,
        CalendarCommand::Show(what) => show::run(what, database, json).await,
        CalendarCommand::Set(what) => set::run(what, database, json).await,
    }
}

/// Calendar that a user named.
pub struct Named {
    pub choice: CalendarChoice,
    /// The days of the file, where it is one.
    pub file: Option<ReadDays>,
}

/// Understands `CN`, `acme`, `acme.csv`, `CN+acme` and `CN+acme.csv`, and reads the file.
pub fn named(text: &str) -> Result<Named, CliError> {
    let (base, own) = match text.split_once('+') {
        Some((base, own)) if BuiltIn::parse(base).is_some() => (BuiltIn::parse(base), own),
        _ => (None, text),
    };
    if !is_file(own) {
        return Ok(Named { choice: CalendarChoice::parse(text)?, file: None });
    }
    let file = Path::new(own);
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let choice =
        CalendarChoice::of_own(base, stem).map_err(|fault| CliError::CalendarFile { file: file.to_owned(), fault })?;
    Ok(Named { choice, file: Some(read::days(file)?) })
}

/// A text with a path separator or the extension of a calendar is a file, present or not; a bare name only if the file exists.
fn is_file(text: &str) -> bool {
    let path = Path::new(text);
    let ending = path
        .extension()
        .is_some_and(|ending| ["csv", "ics", "ical"].iter().any(|one| ending.eq_ignore_ascii_case(one)));
    let separated = text.contains('/') || text.contains(std::path::MAIN_SEPARATOR);
    separated || ending || (BuiltIn::parse(text).is_none() && path.is_file())
}

/// Reads the named calendar; its own days come from the file or from the database, which may not exist yet.
pub async fn resolve(store: Option<&dyn Store>, zone: &str, named: &Named) -> Result<Calendar, CliError> {
    let csv = match &named.file {
        Some(read) => Some(read.table.to_csv()),
        None => stored_days(store, &named.choice).await?,
    };
    Ok(Calendar::with_own(zone, &named.choice.to_string(), csv.as_deref())?)
}

/// The days of a user's own calendar; none where the choice has none.
async fn stored_days(store: Option<&dyn Store>, choice: &CalendarChoice) -> Result<Option<String>, CliError> {
    let Some(name) = choice.own() else { return Ok(None) };
    let Some(store) = store else { return Err(CalendarError::unknown(name.as_str(), &[]).into()) };
    if let Some(stored) = store.calendar(name).await? {
        return Ok(Some(stored.days_csv));
    }
    let own: Vec<_> = store.calendars().await?.iter().map(|one| one.name.to_string()).collect();
    Err(CalendarError::unknown(name.as_str(), &own).into())
}

/// Result of storing a file of days.
#[derive(Debug, Serialize)]
pub struct StoredDays {
    pub name: String,
    pub days: usize,
    pub years: [i32; 2],
    /// 1 for a new one, more where it took the place of other days, none where these were stored already.
    pub new_version: Option<i64>,
    pub equal_duplicates: u64,
    /// Events with a time of day, left out.
    pub timed_events: u64,
    pub cancelled_events: u64,
    /// Other clusters that follow the same calendar.
    pub other_clusters: Vec<String>,
}

/// Stores the days of the file that was named; `clusters` are those that it is meant for.
pub async fn store_days(
    store: &dyn Store,
    named: &Named,
    clusters: &[&Cluster],
) -> Result<Option<StoredDays>, CliError> {
    let (Some(read), Some(name)) = (&named.file, named.choice.own()) else { return Ok(None) };
    let new_version = store.put_calendar(name, &read.table.to_csv()).await?;
    let follows =
        |other: &Cluster| CalendarChoice::parse(&other.calendar).is_ok_and(|choice| choice.own() == Some(name));
    let others = store.clusters().await?.into_iter();
    let others = others.filter(|other| follows(other) && clusters.iter().all(|one| one.name != other.name));
    Ok(Some(StoredDays {
        name: name.to_string(),
        days: read.table.days().len(),
        years: pair(&read.table.years()),
        new_version,
        equal_duplicates: read.equal_duplicates,
        timed_events: read.timed_events,
        cancelled_events: read.cancelled_events,
        other_clusters: others.map(|other| other.name.to_string()).collect(),
    }))
}

impl StoredDays {
    /// Prints skipped events and other clusters with this calendar, on stderr.
    pub fn note(&self) {
        let Self { name, timed_events, cancelled_events, .. } = self;
        if *timed_events > 0 {
            command_line::print_notice(format_args!(
                "note: calendar {name}: skipped {timed_events} events with a time of day; days off are all-day events"
            ));
        }
        if *cancelled_events > 0 {
            command_line::print_notice(format_args!(
                "note: calendar {name}: skipped {cancelled_events} cancelled events"
            ));
        }
        if self.new_version.is_some_and(|version| version > 1) {
            let others = if self.other_clusters.is_empty() {
                String::new()
            } else {
                format!("; it is also the calendar of {}", self.other_clusters.join(", "))
            };
            command_line::print_notice(format_args!("note: the days of calendar {name} changed{others}"));
        }
    }
}

pub fn pair(years: &RangeInclusive<i32>) -> [i32; 2] {
    [*years.start(), *years.end()]
}

/// `CN, 2006 to 2026`.
pub fn in_words(calendar: &Calendar) -> String {
    match calendar.covered_years() {
        Some(years) => format!("{}, {} to {}", calendar.name(), years.start(), years.end()),
        None => calendar.name(),
    }
}

/// Hours from `first` to `last` outside the years of the calendar, in words.
pub fn warning(calendar: &Calendar, first: HourStart, last: HourStart) -> Option<String> {
    calendar.uncovered(first, last).map(|uncovered| uncovered.to_string())
}

/// Prints a warning on stderr.
pub fn warn(cluster: &str, warning: Option<&str>) {
    if let Some(warning) = warning {
        command_line::print_notice(format_args!("warning: cluster {cluster}: {warning}"));
    }
}
