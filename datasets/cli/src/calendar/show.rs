//! `datasets calendar show`.

use super::{in_words, named, pair, resolve};
use crate::args::ShowCalendar;
use crate::error::CliError;
use crate::panel;
use command_line::{print_json, print_notice, print_text, say, table};
use datasets::Calendar;
use datasets::calendar::Day;
use serde::Serialize;

#[derive(Serialize)]
struct Shown {
    calendar: String,
    /// None: all years.
    years: Option<[i32; 2]>,
    /// Whether `--year` is one of them.
    covered: bool,
    days: Vec<ShownDay>,
}

#[derive(Serialize)]
struct ShownDay {
    date: String,
    weekday: String,
    kind: &'static str,
    name: String,
}

pub async fn run(what: &ShowCalendar, database: &str, json: bool) -> Result<(), CliError> {
    let calendar = calendar(what, database).await?;
    let years = calendar.covered_years();
    let covered = what.year.is_none_or(|year| years.as_ref().is_none_or(|years| years.contains(&year)));
    if let Some(year) = what.year.filter(|_| !covered) {
        let known = in_words(&calendar);
        print_notice(format_args!(
            "warning: {year} is outside the years of calendar {known}: only Saturdays and Sundays count as days off"
        ));
    }
    let days: Vec<_> = calendar.days().into_iter().filter(|day| asked(day, what.year)).map(shown).collect();
    if json {
        print_json(&Shown { calendar: calendar.name(), years: years.as_ref().map(pair), covered, days });
        return Ok(());
    }
    say(format_args!("calendar {}; Saturdays and Sundays are days off, and:", in_words(&calendar)));
    let row = |day: &ShownDay| vec![day.date.clone(), day.weekday.clone(), day.kind.to_owned(), day.name.clone()];
    print_text(&table(&["date", "weekday", "kind", "name"], &days.iter().map(row).collect::<Vec<_>>()));
    Ok(())
}

/// Opens a database only where the calendar is stored in one.
async fn calendar(what: &ShowCalendar, database: &str) -> Result<Calendar, CliError> {
    // Days have no zone.
    const ZONE: &str = "UTC";
    let Some(text) = &what.calendar else {
        let store = store::connect_existing(database).await?;
        let cluster = panel::chosen(store.as_ref(), what.cluster.as_ref()).await?.remove(0);
        return panel::calendar(store.as_ref(), &cluster).await;
    };
    let named = named(text)?;
    if named.file.is_none() && named.choice.own().is_none() {
        return Ok(Calendar::parse(ZONE, text)?);
    }
    if let Some(read) = &named.file {
        return Ok(Calendar::with_own(ZONE, &named.choice.to_string(), Some(&read.table.to_csv()))?);
    }
    let store = store::connect_existing(database).await?;
    resolve(Some(store.as_ref()), ZONE, &named).await
}

fn asked(day: &Day, year: Option<i32>) -> bool {
    year.is_none_or(|year| day.year() == year)
}

fn shown(day: &Day) -> ShownDay {
    ShownDay {
        date: day.date.to_string(),
        weekday: day.date.format("%A").to_string(),
        kind: day.kind.as_str(),
        name: day.name.clone(),
    }
}
