//! Values as people type them.

use chrono::DateTime;
use vocab::{GuaranteeRate, HorizonHours, HourStart, UnixSeconds};

/// `4h`.
///
/// # Errors
/// It is no horizon.
pub fn horizon(text: &str) -> Result<HorizonHours, String> {
    HorizonHours::parse(text).map_err(|fault| fault.to_string())
}

/// RFC 3339.
///
/// # Errors
/// It is no such time.
pub fn instant(text: &str) -> Result<UnixSeconds, String> {
    let time = DateTime::parse_from_rfc3339(text.trim());
    time.map(|time| UnixSeconds::new(time.timestamp()))
        .map_err(|_| "write a time with its offset, such as 2020-05-18T00:00:00+08:00".to_owned())
}

/// RFC 3339, on the hour.
///
/// # Errors
/// It is no such time, or not the start of an hour: a fraction of a second is none.
pub fn hour(text: &str) -> Result<HourStart, String> {
    let at = instant(text)?;
    match DateTime::parse_from_rfc3339(text.trim()) {
        // So the nanoseconds of a leap second are counted.
        Ok(time) if time.timestamp_subsec_nanos() >= 1_000_000_000 => {
            Err(format!("{} is a leap second: write the start of an hour, such as 2020-05-18T00:00:00Z", text.trim()))
        }
        Ok(time) if time.timestamp_subsec_nanos() > 0 => {
            Err(format!("{} has a fraction of a second: write a whole one, such as 2020-05-18T00:00:00Z", text.trim()))
        }
        _ => HourStart::from_unix_s(at.get()).map_err(|fault| fault.to_string()),
    }
}

/// A guarantee rate.
///
/// # Errors
/// It is no share between 0 and 1.
pub fn guarantee_rate(text: &str) -> Result<f64, String> {
    GuaranteeRate::parse(text).map(GuaranteeRate::as_f64).map_err(|fault| fault.to_string())
}

/// Levels of a log.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
/// The filters of a log, for errors and help.
pub const LOG_FILTER: &str = "error, warn, info, debug, trace, off, or TARGET=LEVEL, a comma between several";

/// Checks the filter of a log. A word without a level would be taken for the name of a module, and silence all others.
///
/// # Errors
/// A part of it is neither a level nor a target with its level.
pub fn check_log_filter(text: &str) -> Result<(), String> {
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word.trim()));
    let is_good = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) => !target.trim().is_empty() && is_level(level),
        None => is_level(part),
    };
    if text.split(',').all(is_good) {
        Ok(())
    } else {
        Err(format!("{text:?} is no filter of the log: write {LOG_FILTER}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_second_is_no_hour_and_is_called_by_its_name() {
        let fault = hour("2026-12-31T23:59:60Z").unwrap_err();
        assert_eq!(
            fault,
            "2026-12-31T23:59:60Z is a leap second: write the start of an hour, such as 2020-05-18T00:00:00Z"
        );
        assert!(hour("2026-12-31T23:59:59.5Z").unwrap_err().contains("has a fraction of a second"));
    }

    #[test]
    fn a_misspelt_level_of_the_log_is_refused_with_the_levels() {
        for good in ["info", "WARN", "off", "info,quota_service=debug", "quota_service::engine=trace"] {
            check_log_filter(good).unwrap();
        }
        for bad in ["", "inof", "quota_service", "info,", "quota_service=loud", "=info"] {
            let fault = check_log_filter(bad).unwrap_err();
            assert!(fault.ends_with(&format!("write {LOG_FILTER}")), "{bad}: {fault}");
        }
    }

    #[test]
    fn times_need_an_offset_and_hours_their_start() {
        assert_eq!(hour("2020-05-18T00:00:00+08:00").unwrap().to_string(), "2020-05-17T16:00:00Z");
        assert!(hour("2020-05-18T00:30:00Z").unwrap_err().contains("not the start of an hour"));
        assert!(hour("2020-05-18T00:00:00.5Z").unwrap_err().starts_with("2020-05-18T00:00:00.5Z has a fraction"));
        assert!(instant("2020-05-18").unwrap_err().starts_with("write a time with its offset"));
    }
}
