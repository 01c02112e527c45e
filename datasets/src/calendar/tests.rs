//! Zones, names, years and a user's own days.

mod facts;

use super::*;
use crate::time;

fn hour(text: &str) -> HourStart {
    time::parse(text, chrono_tz::UTC).unwrap().hour().unwrap()
}

fn at(zone: &str, text: &str) -> HourFeatures {
    Calendar::parse(zone, Calendar::WEEKDAYS).unwrap().at(hour(text))
}

/// `hour_of_day weekday` of consecutive hours from a UTC time on.
fn hours_from(zone: &str, start: &str, count: i64) -> Vec<(u8, u8)> {
    let calendar = Calendar::parse(zone, Calendar::WEEKDAYS).unwrap();
    let features = (0..count).map(|more| calendar.at(hour(start).plus_hours(more)));
    features.map(|one| (one.hour_of_day, one.weekday)).collect()
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn own(name: &str, csv: &str) -> Calendar {
    Calendar::with_own("Asia/Shanghai", name, Some(csv)).unwrap()
}

#[test]
fn an_hour_belongs_to_the_day_of_its_zone() {
    let shanghai = at("Asia/Shanghai", "2020-05-17T16:00:00Z");
    assert_eq!(shanghai, HourFeatures { hour_of_day: 0, weekday: 0, day_off: false });
    let utc = at("UTC", "2020-05-17T16:00:00Z");
    assert_eq!(utc, HourFeatures { hour_of_day: 16, weekday: 6, day_off: true });
}

#[test]
fn a_make_up_saturday_is_a_working_day() {
    let china = Calendar::parse("Asia/Shanghai", "CN").unwrap();
    let off = |text: &str| china.at(hour(text)).day_off;
    assert!(!off("2020-05-09T04:00:00Z"), "Saturday, worked for 5 May");
    assert!(off("2020-05-05T04:00:00Z"), "Tuesday, off");
    assert!(off("2020-05-16T04:00:00Z"), "a plain Saturday");
    assert!(!off("2020-05-18T04:00:00Z"), "a plain Monday");
    assert!(at("Asia/Shanghai", "2020-05-09T04:00:00Z").day_off, "`weekdays` does not know it");
}

#[test]
fn a_holiday_begins_and_ends_at_local_midnight() {
    let kolkata = Calendar::parse("Asia/Kolkata", "IN").unwrap();
    let off = |text: &str| kolkata.at(hour(text)).day_off;
    assert!(!off("2024-08-14T18:00:00Z"), "23:30 on the 14th: the hour belongs to the time at which it starts");
    assert!(off("2024-08-14T19:00:00Z"), "00:30 on Independence Day");
    assert!(off("2024-08-15T18:00:00Z") && !off("2024-08-15T19:00:00Z"));
}

#[test]
fn in_zones_of_half_and_quarter_hours_the_grid_hour_has_the_hour_in_which_it_starts() {
    assert_eq!(at("Asia/Kolkata", "2024-03-01T00:00:00Z").hour_of_day, 5);
    assert_eq!(
        hours_from("Asia/Kathmandu", "2024-03-01T17:00:00Z", 3),
        [(22, 4), (23, 4), (0, 5)],
        "22:45, 23:45, 00:45"
    );
}

#[test]
fn the_repeated_hour_of_autumn_has_the_same_local_hour_twice_and_the_lost_hour_of_spring_none() {
    let local = |start| hours_from("Europe/Berlin", start, 4).into_iter().map(|(hour, _)| hour).collect::<Vec<_>>();
    assert_eq!(local("2024-10-26T23:00:00Z"), [1, 2, 2, 3]);
    assert_eq!(local("2024-03-31T00:00:00Z"), [1, 3, 4, 5]);
}

#[test]
fn daylight_saving_of_half_an_hour_moves_the_hours_by_half_an_hour() {
    let local =
        |start| hours_from("Australia/Lord_Howe", start, 3).into_iter().map(|(hour, _)| hour).collect::<Vec<_>>();
    assert_eq!(local("2024-10-05T14:00:00Z"), [0, 1, 3], "00:30, 01:30, and 02:30 is 03:00: +10:30 becomes +11");
    assert_eq!(local("2024-04-06T14:00:00Z"), [1, 1, 2], "01:00, 01:30 again after 02:00 became 01:30, 02:30");
}

#[test]
fn a_leap_day_is_a_day_of_its_own() {
    assert_eq!(hours_from("UTC", "2024-02-28T23:00:00Z", 2), [(23, 2), (0, 3)]);
    assert_eq!(hours_from("UTC", "2024-02-29T23:00:00Z", 2), [(23, 3), (0, 4)]);
    assert!(own("leap", "date,kind,name\n2024-02-29,off,Leap day\n").is_day_off(date("2024-02-29")));
}

#[test]
fn a_day_that_a_zone_skipped_has_no_hour() {
    let samoa = hours_from("Pacific/Apia", "2011-12-30T08:00:00Z", 4);
    assert_eq!(samoa, [(22, 3), (23, 3), (0, 5), (1, 5)], "after Thursday the 29th came Saturday the 31st");
}

#[test]
fn names_are_known_in_capitals_or_not_and_kept_in_one_form() {
    for (given, kept) in
        [("cn", "CN"), ("Weekdays", "weekdays"), ("uk", "GB"), ("gb", "GB"), ("IN", "IN"), ("jp+acme", "JP+acme")]
    {
        assert_eq!(CalendarChoice::parse(given).unwrap().to_string(), kept);
    }
}

#[test]
fn unknown_names_are_refused_with_what_there_is() {
    assert!(matches!(Calendar::parse("Asia/Peking", "CN"), Err(CalendarError::UnknownZone { .. })));
    for (given, hint) in [
        ("weekday", "did you mean weekdays?"),
        ("Mars", "or a CSV or iCal file"),
        ("Chine+acme", "did you mean CN?"),
        ("germany", "did you mean DE?"),
    ] {
        let fault = Calendar::parse("UTC", given).unwrap_err().to_string();
        assert!(fault.contains("expected weekdays, CN, US, DE, GB, JP, IN") && fault.ends_with(hint), "{fault}");
    }
    assert!(CalendarError::unknown("amce", &["acme".to_owned()]).to_string().ends_with("did you mean acme?"));
}

#[test]
fn a_users_own_calendar_cannot_take_a_name_that_comes_along_or_that_is_a_path() {
    assert!(matches!(CalendarChoice::of_own(None, "uk"), Err(CalendarError::Taken { .. })));
    for name in ["CN+a+b", "a/b", "", "my holidays"] {
        assert!(matches!(CalendarChoice::parse(name), Err(CalendarError::Name(_))), "{name:?}");
    }
}

#[test]
fn a_users_own_day_goes_before_the_countrys() {
    let csv = "date,kind,name\n2024-10-01,work,Release\n2024-10-11,off,Company day\n2024-10-12,off,Company day\n";
    let calendar = own("CN+acme", csv);
    let off: Vec<bool> = ["2024-10-01", "2024-10-02", "2024-10-11", "2024-10-12"]
        .iter()
        .map(|day| calendar.is_day_off(date(day)))
        .collect();
    assert_eq!(off, [false, true, true, true], "National Day is worked, a make-up Saturday is not");
    assert_eq!(calendar.days().iter().filter(|day| day.date == date("2024-10-12")).count(), 1);
    let own = own("acme", csv);
    assert!(!own.is_day_off(date("2024-10-02")), "alone it knows no country");
}

#[test]
fn years_beyond_the_table_are_weekends_only_and_say_so() {
    let china = Calendar::parse("Asia/Shanghai", "CN").unwrap();
    let (known, beyond) = (hour("2026-12-31T15:00:00Z"), hour("2026-12-31T16:00:00Z"));
    assert!(china.covers(known) && !china.covers(beyond), "midnight in Shanghai");
    assert!(!china.is_day_off(date("2027-10-01")) && china.is_day_off(date("2027-10-02")), "a Friday and a Saturday");
    assert_eq!(china.uncovered(hour("2006-01-01T00:00:00Z"), known), None);
    let warning = |first, last| china.uncovered(hour(first), hour(last)).unwrap().to_string();
    assert_eq!(
        warning("2020-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        "calendar CN covers the years 2006 to 2026; from 2027-01-01 on only Saturdays and Sundays count as days off"
    );
    assert!(warning("2005-12-31T00:00:00Z", "2026-01-01T00:00:00Z").contains("; before 2006-01-01 only"));
    assert!(
        warning("2005-12-31T00:00:00Z", "2028-01-01T00:00:00Z")
            .contains("; before 2006-01-01 and from 2027-01-01 on only")
    );
}

#[test]
fn the_years_known_are_the_countrys_or_those_of_a_users_own_file_or_all() {
    let csv = "date,kind,name\n2024-10-11,off,Company day\n2025-10-10,off,Company day\n";
    assert_eq!(own("acme", csv).covered_years(), Some(2024..=2025));
    assert_eq!(own("CN+acme", csv).covered_years(), Some(2006..=2026));
    assert_eq!(own("weekdays+acme", csv).covered_years(), None, "nothing but weekends is expected besides");
    assert_eq!(Calendar::parse("UTC", "weekdays").unwrap().covered_years(), None);
}

#[test]
fn an_own_calendar_that_was_not_brought_along_or_was_damaged_is_refused() {
    assert!(matches!(Calendar::parse("UTC", "acme"), Err(CalendarError::UnknownCalendar { .. })));
    let damaged = Calendar::with_own("UTC", "acme", Some("date,kind,name\n2024-10-11,of,x\n")).unwrap_err();
    assert!(damaged.to_string().starts_with("calendar acme, row 2: column kind: "), "{damaged}");
}
