//! Calendars that users bring along: CSV and iCal.

use crate::{chosen, file_of, is_one_line};
use datasets::calendar::Calendar;
use datasets::read;
use std::path::Path;
use vocab::HourStart;

/// The first line is the name of the file: `own.csv` or `own.ics`.
pub fn calendar(data: &[u8]) {
    let Some((name @ ("own.csv" | "own.ics"), text)) = chosen(data) else { return };
    let path = file_of(name, text);
    let read = match read::days(&path) {
        Ok(read) => read,
        Err(fault) => return crate::tables::names_a_row(&path, text, &fault),
    };
    let stored = read.table.to_csv();
    let again = read::days_csv(Path::new("stored"), &stored).expect("what is stored is read");
    assert_eq!(again.table, read.table, "stored as {stored}");
    for day in read.table.days() {
        assert_eq!(read.table.kind_of(day.date), Some(day.kind));
        assert!(day.name.is_empty() || !day.name.contains(char::is_control), "{:?}", day.name);
    }
    for zone in ["Asia/Shanghai", "America/St_Johns"] {
        let calendar = Calendar::with_own(zone, "CN+own", Some(&stored)).expect("the calendar is one");
        for unix_s in [0, 1_709_164_800, 7_200_000_000] {
            let hour = HourStart::from_unix_s(unix_s).expect("on the grid");
            let features = calendar.at(hour);
            assert!(features.hour_of_day < 24 && features.weekday < 7);
            if let Some(uncovered) = calendar.uncovered(hour, hour.plus_hours(1)) {
                is_one_line(&uncovered.to_string());
            }
        }
    }
}
