//! The tables against dates from other sources (see `tables/record_facts.py`), day by day.

use crate::calendar::*;
use chrono::Days as Plus;
use std::collections::BTreeMap;

/// Days that differ from the rule of the week, by calendar; and the years that they are all of.
fn facts() -> BTreeMap<String, (RangeInclusive<i32>, BTreeMap<NaiveDate, DayKind>)> {
    let mut all = BTreeMap::new();
    let (mut code, mut years, mut days) = (String::new(), 0..=0, BTreeMap::new());
    let end = ["# end 0-0"];
    for line in include_str!("../tables/facts.csv").lines().skip(1).chain(end) {
        if let Some((next, range)) = line.strip_prefix("# ").and_then(|line| line.split_once(' ')) {
            all.insert(std::mem::replace(&mut code, next.to_owned()), (years, std::mem::take(&mut days)));
            let (first, last) = range.split_once('-').unwrap();
            years = first.parse().unwrap()..=last.parse().unwrap();
            continue;
        }
        let fields: Vec<_> = line.split(',').collect();
        assert_eq!(fields[0], code);
        days.insert(fields[1].parse().unwrap(), DayKind::parse(fields[2]).unwrap());
    }
    all.remove("");
    all
}

fn dates(years: &RangeInclusive<i32>) -> impl Iterator<Item = NaiveDate> + use<> {
    let end = NaiveDate::from_ymd_opt(years.end() + 1, 1, 1).unwrap();
    let first = NaiveDate::from_ymd_opt(*years.start(), 1, 1).unwrap();
    std::iter::successors(Some(first), |date| date.checked_add_days(Plus::new(1))).take_while(move |date| *date < end)
}

#[test]
fn every_day_of_every_table_is_what_another_source_says_of_it() {
    let facts = facts();
    let codes: Vec<&str> = facts.keys().map(String::as_str).collect();
    assert_eq!(codes, ["CN", "DE", "GB", "IN", "JP", "US"]);
    for (code, (years, known)) in &facts {
        let calendar = Calendar::parse("UTC", code).unwrap();
        let covered = calendar.covered_years().unwrap();
        assert!(covered.contains(years.start()) && covered.contains(years.end()), "{code}");
        assert_eq!(covered == *years, code != "IN", "{code}: facts are of all years, but for India");
        for date in dates(years) {
            let weekend = date.weekday().num_days_from_monday() >= 5;
            let off = known.get(&date).map_or(weekend, |kind| *kind == DayKind::Off);
            assert_eq!(calendar.is_day_off(date), off, "{code} {date}");
        }
    }
}

#[test]
fn the_facts_hold_make_up_days_of_every_year_of_china_and_of_no_other_country() {
    let facts = facts();
    for (code, (years, known)) in &facts {
        for year in years.clone() {
            let work = known.iter().filter(|(date, kind)| date.year() == year && **kind == DayKind::Work).count();
            assert_eq!(work > 0, code == "CN", "{code} {year}: {work} make-up days");
        }
    }
}

#[test]
fn in_every_table_make_up_days_are_saturdays_or_sundays_and_no_day_lies_outside_the_years() {
    for one in BuiltIn::ALL {
        let Some(table) = one.table() else { continue };
        assert!(table.days().len() > 150, "{}: {} days", one.name(), table.days().len());
        for day in table.days() {
            assert!(table.years().contains(&day.date.year()), "{} {}", one.name(), day.date);
            let weekend = day.date.weekday().num_days_from_monday() >= 5;
            assert!(weekend || day.kind == DayKind::Off, "{} {} {}", one.name(), day.date, day.name);
        }
    }
}
