//! Small calendars, and what can be wrong with them.

use super::*;

/// An event of these lines, in a calendar; the first of them is line 3.
fn calendar(events: &[&str]) -> String {
    let whole = |event: &&str| format!("BEGIN:VEVENT|{event}|END:VEVENT|");
    let events: Vec<String> = events.iter().map(whole).collect();
    format!("BEGIN:VCALENDAR|{}END:VCALENDAR|", events.concat()).replace('|', "\r\n")
}

fn read(events: &[&str]) -> Result<ReadDays, String> {
    days("own.ics".as_ref(), &calendar(events)).map_err(|fault| fault.to_string())
}

/// `date kind` of each day, without the century.
fn listed(events: &[&str]) -> String {
    let read = read(events).unwrap();
    let day = |day: &crate::calendar::Day| format!("{} {}", &day.date.to_string()[2..], day.kind.as_str());
    read.table.days().iter().map(day).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_end_of_an_event_is_the_first_day_after_it() {
    assert_eq!(listed(&["DTSTART;VALUE=DATE:20240229|DTEND;VALUE=DATE:20240302"]), "24-02-29 off, 24-03-01 off");
    assert_eq!(listed(&["DTSTART;VALUE=DATE:20241231"]), "24-12-31 off", "one day where it has no end");
    assert_eq!(listed(&["DTSTART;VALUE=DATE:20241231|DURATION:P2D"]), "24-12-31 off, 25-01-01 off");
}

#[test]
fn folded_lines_quoted_parameters_and_escaped_text_are_put_right() {
    let text =
        "DTSTART;VALUE=DATE;X-A=\"b:c\":2024|\t1101|SUMMARY;LANGUAGE=en:All Saints\\, ob|  served\\nin \\\\parts\\;";
    let read = read(&[text]).unwrap();
    assert_eq!(read.table.days()[0].name, "All Saints, ob served in \\parts;");
    assert_eq!(read.table.days()[0].date.to_string(), "2024-11-01");
}

#[test]
fn a_category_or_a_chinese_mark_makes_a_make_up_working_day() {
    assert_eq!(listed(&["DTSTART:20240204|CATEGORIES:Office,workday"]), "24-02-04 work");
    assert_eq!(
        listed(&["DTSTART:20240204|SUMMARY:春节（班）", "DTSTART:20240218|SUMMARY:补班"]),
        "24-02-04 work, 24-02-18 work"
    );
    assert_eq!(listed(&["DTSTART:20240212|SUMMARY:春节（休）"]), "24-02-12 off");
}

#[test]
fn what_repeats_every_year_ends_by_count_or_until_and_leaves_days_out() {
    let from = |rule: &str| listed(&[&format!("DTSTART;VALUE=DATE:20231225|RRULE:FREQ=YEARLY;{rule}")]);
    assert_eq!(from("COUNT=2"), "23-12-25 off, 24-12-25 off");
    assert_eq!(from("INTERVAL=2;COUNT=2"), "23-12-25 off, 25-12-25 off");
    assert_eq!(
        from("UNTIL=20251225T000000Z;BYMONTH=12;BYMONTHDAY=25;WKST=MO"),
        "23-12-25 off, 24-12-25 off, 25-12-25 off"
    );
    assert_eq!(from("COUNT=3|EXDATE;VALUE=DATE:20241225|RDATE:20240105"), "23-12-25 off, 24-01-05 off, 25-12-25 off");
}

#[test]
fn a_leap_day_comes_again_in_leap_years_only() {
    assert_eq!(listed(&["DTSTART:20200229|RRULE:FREQ=YEARLY;COUNT=2"]), "20-02-29 off, 24-02-29 off");
}

#[test]
fn what_repeats_without_an_end_does_not_say_how_far_the_calendar_reaches() {
    let endless = "DTSTART:20231225|RRULE:FREQ=YEARLY";
    let read = read(&[endless, "DTSTART:20250421"]).unwrap();
    assert_eq!(read.table.years(), 2023..=2025, "Easter Monday is known for one year");
    let christmas = |year| read.table.kind_of(NaiveDate::from_ymd_opt(year, 12, 25).unwrap());
    assert_eq!((christmas(2025).is_some(), christmas(2026)), (true, None), "of later years only the week is known");
    let stored = read.table.to_csv();
    assert_eq!(crate::read::days_csv("stored".as_ref(), &stored).unwrap().table, read.table, "as it is stored");
    assert_eq!(super::days("own.ics".as_ref(), &calendar(&[endless])).unwrap().table.years(), 2023..=2199);
}

#[test]
fn appointments_and_cancelled_events_are_left_out_and_counted_and_alarms_and_notes_are_no_days() {
    let read = read(&[
        "DTSTART:20240101|BEGIN:VALARM|DTSTART:20240102|END:VALARM",
        "DTSTART;TZID=Europe/Berlin:20240103T090000",
        "DTSTART:20240104|STATUS:CANCELLED",
        "DTSTART:20240101",
    ])
    .unwrap();
    assert_eq!((read.timed_events, read.cancelled_events, read.equal_duplicates), (1, 1, 1));
    assert_eq!(read.table.days().len(), 1);
    let note = "BEGIN:VCALENDAR\nBEGIN:VJOURNAL\nDTSTART:20240101\nEND:VJOURNAL\nEND:VCALENDAR\n";
    assert!(matches!(days("own.ics".as_ref(), note), Err(ReadError::NoDays { .. })));
}

#[test]
fn what_is_not_understood_is_refused_with_its_line_and_a_remedy() {
    for (event, expected) in [
        ("DTSTART:20240101|RRULE:FREQ=YEARLY;BYDAY=4TH", "line 4: RRULE: FREQ=YEARLY;BYDAY=4TH is not understood: "),
        ("DTSTART:20240101|RRULE:FREQ=MONTHLY", "line 4: RRULE: FREQ=MONTHLY is not understood: "),
        ("DTSTART:20240101|RRULE:FREQ=YEARLY;COUNT=2;UNTIL=20250101", "line 4: RRULE: "),
        ("DTSTART:20240101|RECURRENCE-ID:20240101", "line 4: RECURRENCE-ID changes one day"),
        ("DTSTART:20240101|DTEND:20240101", "line 4: DTEND 2024-01-01 does not come after"),
        ("DTSTART:20240101|DTEND:20260101", "line 4: the event lasts 731 days, more than a year"),
        ("DTSTART:20240101|DURATION:PT8H", "line 4: DURATION: \"PT8H\" is not a number of whole days"),
        ("DTSTART:20230229", "line 3: DTSTART: \"20230229\" is not a day"),
        ("DTSTART:20240101|EXDATE:2024-01-01", "line 4: EXDATE: \"2024-01-01\" is not a day"),
        ("SUMMARY:x", "line 2: the event has no DTSTART"),
        ("DTSTART:20240101|no colon", "line 4: \"no colon\" is not a line of iCal"),
        ("DTSTART:20240101|END:VJOURNAL", "line 4: \"END:VJOURNAL\" is not a line of iCal"),
    ] {
        let fault = read(&[event]).unwrap_err();
        assert!(fault.starts_with(&format!("own.ics, {expected}")), "{fault}");
    }
}

#[test]
fn a_day_that_is_off_and_worked_is_refused_with_both_lines() {
    let fault = read(&["DTSTART:20240204", "DTSTART:20240204|CATEGORIES:WORKDAY"]).unwrap_err();
    assert!(fault.starts_with("own.ics, line 5: 2024-02-04 is a working day here and a day off at line 2"), "{fault}");
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let whole = calendar(&["DTSTART:20240101"]);
    let cut = &whole[..whole.len() - "END:VEVENT\r\nEND:VCALENDAR\r\n".len()];
    let fault = days("own.ics".as_ref(), cut).unwrap_err().to_string();
    assert_eq!(fault, "own.ics, line 2: BEGIN:VEVENT has no END: the file is cut off");
    let page = days("own.ics".as_ref(), "<html>not found</html>").unwrap_err().to_string();
    assert!(page.starts_with("own.ics, line 1: not an iCal file"), "{page}");
}
