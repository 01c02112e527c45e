//! Days off and make-up working days: `date,kind,name`, or iCal.

use super::dates::{ReadDays, YEARS, date};
use super::table::{Extra, Row, Table};
use super::{ReadError, RowFault, ical};
use crate::calendar::{Collector, Contradiction, DayKind, YEARS_LINE};
use chrono::{Datelike, NaiveDate};
use std::io::Cursor;
use std::ops::RangeInclusive;
use std::path::Path;

const COLUMNS: [&str; 3] = ["date", "kind", "name"];

/// Fault of a day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DayFault {
    #[error("column date: {text:?} is not a day of the years 1970 to 2199: write it as 2024-12-31")]
    Date { text: String },
    #[error("column kind: {text:?} is not a kind of day: write off, or work for a make-up working day")]
    Kind { text: String },
    #[error("column date: {date} is {first} in row {first_row} and {second} here: keep one of them", first = first.as_str(), second = second.as_str())]
    Contradiction { date: NaiveDate, first_row: u64, first: DayKind, second: DayKind },
    #[error("column date: {date} is outside the years {first} to {last} of the file")]
    OutsideYears { date: NaiveDate, first: i32, last: i32 },
    #[error("{text:?} contains no years: write {YEARS_LINE} 2020-2026")]
    Years { text: String },
}

/// Reads a user's own calendar: iCal where it is named or begins as one, else CSV.
///
/// # Errors
/// The file cannot be read, is no text, names no day, or a row or line of it is bad.
pub fn days(file: &Path) -> Result<ReadDays, ReadError> {
    let io = |source| ReadError::Io { file: file.to_owned(), source };
    let bytes = std::fs::read(file).map_err(io)?;
    let text = String::from_utf8(bytes).map_err(|fault| {
        let good = &fault.as_bytes()[..fault.utf8_error().valid_up_to()];
        let row = good.split(|byte| *byte == b'\n').count() as u64;
        ReadError::Row { file: file.to_owned(), row, fault: RowFault::NotText }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let named_so =
        file.extension().is_some_and(|ending| ["ics", "ical"].iter().any(|one| ending.eq_ignore_ascii_case(one)));
    if named_so || ical::is_ical(text) { ical::days(file, text) } else { days_csv(file, text) }
}

/// Reads `date,kind,name`; `file` names the text in errors. Lines that begin with `#` are left out, but for the one that
/// states the years that the file covers; without it they are those of its first to its last day.
///
/// # Errors
/// The header is another one, a row is bad, or there is none.
pub fn days_csv(file: &Path, text: &str) -> Result<ReadDays, ReadError> {
    let stated = stated_years(file, text)?;
    // Blank, so that the other rows keep their numbers.
    let rows = text.lines().map(|line| if line.starts_with('#') { "" } else { line }).collect::<Vec<_>>().join("\n");
    let mut table = Table::of(file, Box::new(Cursor::new(rows.into_bytes())), &COLUMNS, Extra::Refused)?;
    let mut collector = Collector::default();
    table.rows(None, |row| take(row, stated.as_ref(), &mut collector).map_err(RowFault::Day))?;
    let years = stated.or_else(|| collector.years()).ok_or_else(|| ReadError::NoDays { file: file.to_owned() })?;
    let equal_duplicates = collector.equal_duplicates;
    Ok(ReadDays { table: collector.finish(years), equal_duplicates, timed_events: 0, cancelled_events: 0 })
}

fn take(row: &Row<'_>, stated: Option<&RangeInclusive<i32>>, collector: &mut Collector) -> Result<(), DayFault> {
    let text = row.text("date");
    let date = date(text, "%Y-%m-%d").ok_or_else(|| DayFault::Date { text: text.to_owned() })?;
    let text = row.text("kind");
    let kind = DayKind::parse(text).ok_or_else(|| DayFault::Kind { text: text.to_owned() })?;
    if let Some(years) = stated.filter(|years| !years.contains(&date.year())) {
        return Err(DayFault::OutsideYears { date, first: *years.start(), last: *years.end() });
    }
    let contradiction = |Contradiction { date, first_kind, first_place }| DayFault::Contradiction {
        date,
        first_row: first_place,
        first: first_kind,
        second: kind,
    };
    collector.add(date, kind, row.text("name"), row.number()).map_err(contradiction)
}

/// Years of the line `# years: 2020-2026`.
fn stated_years(file: &Path, text: &str) -> Result<Option<RangeInclusive<i32>>, ReadError> {
    for (line, row) in text.lines().zip(1..) {
        let Some(years) = line.strip_prefix(YEARS_LINE) else { continue };
        let year = |text: &str| text.trim().parse().ok().filter(|year| YEARS.contains(year));
        let range = years.split_once('-').and_then(|(first, last)| Some(year(first)?..=year(last)?));
        let Some(range) = range.filter(|range| !range.is_empty()) else {
            let fault = RowFault::Day(DayFault::Years { text: line.to_owned() });
            return Err(ReadError::Row { file: file.to_owned(), row, fault });
        };
        return Ok(Some(range));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ReadDays, String> {
        days_csv("own.csv".as_ref(), text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_bad_row_of_a_calendar_is_refused_with_file_row_column_and_remedy() {
        for (row, expected) in [
            (
                "2024-02-30,off,x",
                "row 3: column date: \"2024-02-30\" is not a day of the years 1970 to 2199: write it as 2024-12-31",
            ),
            ("2024-1-1,off,x", "row 3: column date: \"2024-1-1\" is not a day"),
            ("1969-12-31,off,x", "row 3: column date: \"1969-12-31\" is not a day of the years 1970 to 2199"),
            (
                "2024-01-02,holiday,x",
                "row 3: column kind: \"holiday\" is not a kind of day: write off, or work for a make-up working day",
            ),
            ("2024-01-01,work,x", "row 3: column date: 2024-01-01 is off in row 2 and work here: keep one of them"),
            ("2024-01-02,off,x,y", "row 3: 4 fields, but the header has 3"),
        ] {
            let fault = read(&format!("date,kind,name\n2024-01-01,off,New Year\n{row}\n")).unwrap_err();
            assert!(fault.starts_with(&format!("own.csv, {expected}")), "{fault}");
        }
        assert!(read("date,kind\n2024-01-01,off\n").unwrap_err().contains("column name is missing"));
        assert_eq!(read("date,kind,name\n").unwrap_err(), "own.csv: no days");
    }

    #[test]
    fn comments_keep_the_row_numbers_and_equal_days_are_counted() {
        let text = "\u{feff}# ours\r\n\r\ndate,kind,name\r\n# moved\r\n2024-01-01,off,A\r\n2024-01-01,off,B\r\n2024-01-02,of,C\r\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.csv");
        std::fs::write(&file, text).unwrap();
        assert!(days(&file).unwrap_err().to_string().ends_with(
            "own.csv, row 7: column kind: \"of\" is not a kind of day: write off, or work for a make-up working day"
        ));
        std::fs::write(&file, text.replace(",of,", ",off,")).unwrap();
        assert_eq!(days(&file).unwrap().equal_duplicates, 1);
    }

    #[test]
    fn the_years_of_a_file_are_those_it_states_or_those_of_its_days() {
        let rows = "date,kind,name\n2024-01-01,off,A\n2025-01-01,off,B\n";
        assert_eq!(read(rows).unwrap().table.years(), 2024..=2025);
        assert_eq!(read(&format!("# years: 2020-2030\n{rows}")).unwrap().table.years(), 2020..=2030);
        assert_eq!(read("# years: 2020-2030\ndate,kind,name\n").unwrap().table.days(), [], "years without a holiday");
        let outside = read(&format!("# years: 2025-2030\n{rows}")).unwrap_err();
        assert!(outside.contains("row 3: column date: 2024-01-01 is outside the years 2025 to 2030"), "{outside}");
        assert!(
            read(&format!("# years: 2025\n{rows}")).unwrap_err().contains("row 1: \"# years: 2025\" contains no years")
        );
    }

    #[test]
    fn a_table_reads_back_as_it_was_written() {
        let first =
            read("# years: 2020-2030\ndate,kind,name\n2024-01-01,off,\"A, \"\"B\"\"\"\n2024-02-04,work,\n").unwrap();
        assert_eq!(read(&first.table.to_csv()).unwrap(), first);
    }
}
