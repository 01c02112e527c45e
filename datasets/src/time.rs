//! Times as people and files write them.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use vocab::UnixSeconds;

/// Why a written time was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("{text:?} is not a time: write 2024-03-01T00:00:00Z, or 2024-03-01 00:00:00 in the cluster's time zone")]
    NoTime { text: String },
    #[error("{text:?} lies outside the years 1970 to 2200")]
    Beyond { text: String },
    #[error("{text:?} has a fraction of a second: hours start at a whole one, such as 2024-03-01T00:00:00Z")]
    Fraction { text: String },
    #[error("{text:?} is a leap second: write the start of an hour, such as 2024-03-01T00:00:00Z")]
    Leap { text: String },
    #[error("{text:?} occurs twice in {zone} (clocks go back): write it with an offset")]
    Twice { text: String, zone: &'static str },
    #[error("{text:?} does not exist in {zone} (clocks go forward): write it with an offset")]
    Never { text: String, zone: &'static str },
}

/// Reads RFC 3339, or a naive date and time in `zone`.
///
/// # Errors
/// The text is no time, lies outside the years of the hour grid, or is a naive time that `zone` has twice or never: it is never guessed.
pub fn parse(text: &str, zone: Tz) -> Result<UnixSeconds, TimeError> {
    let text = text.trim();
    if let Ok(with_offset) = DateTime::parse_from_rfc3339(text) {
        return within(with_offset.timestamp(), text);
    }
    let naive = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .ok_or_else(|| TimeError::NoTime { text: text.to_owned() })?;
    of_naive(naive, text, zone)
}

/// As [`parse`], of the start of an hour, which no fraction of a second precedes.
///
/// # Errors
/// As [`parse`]; [`TimeError::Fraction`], [`TimeError::Leap`].
pub fn whole(text: &str, zone: Tz) -> Result<UnixSeconds, TimeError> {
    match DateTime::parse_from_rfc3339(text.trim()) {
        // So the nanoseconds of a leap second are counted.
        Ok(time) if time.timestamp_subsec_nanos() >= 1_000_000_000 => {
            Err(TimeError::Leap { text: text.trim().to_owned() })
        }
        Ok(time) if time.timestamp_subsec_nanos() > 0 => Err(TimeError::Fraction { text: text.trim().to_owned() }),
        _ => parse(text, zone),
    }
}

/// Refuses a time with a fraction of a second, given as its nanoseconds, and names it as RFC 3339 (in no zone unless `is_utc`).
#[must_use]
pub fn fraction(unix_s: i64, nanos: u32, is_utc: bool) -> TimeError {
    match DateTime::from_timestamp(unix_s, nanos) {
        Some(time) => {
            let zone = if is_utc { "Z" } else { "" };
            TimeError::Fraction { text: format!("{}{zone}", time.format("%Y-%m-%dT%H:%M:%S%.f")) }
        }
        None => TimeError::Beyond { text: format!("{unix_s} s") },
    }
}

/// The instant of a naive time in `zone`, given as the seconds since 1970 that it would be in UTC.
///
/// # Errors
/// As [`parse`].
pub fn local(naive_s: i64, zone: Tz) -> Result<UnixSeconds, TimeError> {
    match DateTime::from_timestamp(naive_s, 0) {
        Some(time) => of_naive(time.naive_utc(), &time.format("%Y-%m-%d %H:%M:%S").to_string(), zone),
        None => Err(TimeError::Beyond { text: format!("{naive_s} s") }),
    }
}

fn of_naive(naive: NaiveDateTime, text: &str, zone: Tz) -> Result<UnixSeconds, TimeError> {
    match zone.from_local_datetime(&naive) {
        LocalResult::Single(time) => within(time.timestamp(), text),
        LocalResult::Ambiguous(..) => Err(TimeError::Twice { text: text.to_owned(), zone: zone.name() }),
        LocalResult::None => Err(TimeError::Never { text: text.to_owned(), zone: zone.name() }),
    }
}

fn within(unix_s: i64, text: &str) -> Result<UnixSeconds, TimeError> {
    UnixSeconds::new(unix_s).in_calendar().map_err(|_| TimeError::Beyond { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_naive_time_is_read_in_the_clusters_zone_and_an_offset_wins_over_it() {
        let shanghai = chrono_tz::Asia::Shanghai;
        let midnight = parse("2020-05-18 00:00:00", shanghai);
        assert_eq!(midnight, parse("2020-05-17T16:00:00Z", shanghai));
        assert_eq!(midnight, parse("2020-05-18T00:00:00+08:00", chrono_tz::UTC));
    }

    #[test]
    fn a_leap_second_begins_no_hour_and_is_called_by_its_name() {
        let fault = |text| whole(text, chrono_tz::UTC).unwrap_err().to_string();
        let leap = fault("2026-12-31T23:59:60Z");
        assert!(leap.starts_with("\"2026-12-31T23:59:60Z\" is a leap second: "), "{leap}");
        assert!(fault("2026-12-31T23:59:59.5Z").contains("has a fraction of a second"));
    }

    #[test]
    fn the_hour_that_comes_twice_and_the_one_that_never_comes_are_not_guessed() {
        let berlin = chrono_tz::Europe::Berlin;
        assert!(matches!(parse("2024-10-27 02:30:00", berlin), Err(TimeError::Twice { .. })));
        assert!(matches!(parse("2024-03-31 02:30:00", berlin), Err(TimeError::Never { .. })));
        assert!(matches!(parse("31.3.2024", berlin), Err(TimeError::NoTime { .. })));
        let beyond = parse("9999-12-31T23:59:59-01:00", berlin);
        assert!(matches!(beyond, Err(TimeError::Beyond { .. })), "it would print as a year of five digits");
    }
}
