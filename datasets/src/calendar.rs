//! The local calendar of a cluster: hour of day, weekday, day off.

use chrono::{DateTime, Datelike, Timelike};
use chrono_tz::Tz;
use vocab::HourStart;

/// Why a calendar was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    #[error("{name:?} is no time zone: use a name of the IANA database such as Asia/Shanghai or UTC")]
    UnknownZone { name: String },
    #[error("{name:?} is no calendar: this version knows `weekdays` (Saturday and Sunday off)")]
    UnknownCalendar { name: String },
}

/// What the calendar says of one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourFeatures {
    /// 0 to 23, local; in a zone whose offset holds half an hour, the hour in which the grid hour starts.
    pub hour_of_day: u8,
    /// 0 is Monday.
    pub weekday: u8,
    pub day_off: bool,
}

impl HourFeatures {
    pub const HOURS_OF_DAY: usize = 24;
    pub const WEEKDAYS: usize = 7;
}

/// A time zone and the days off in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    zone: Tz,
}

impl Calendar {
    /// The one calendar of this version: Saturday and Sunday off.
    pub const WEEKDAYS: &str = "weekdays";

    /// # Errors
    /// A name is not known.
    pub fn parse(zone: &str, calendar: &str) -> Result<Self, CalendarError> {
        if calendar != Self::WEEKDAYS {
            return Err(CalendarError::UnknownCalendar { name: calendar.to_owned() });
        }
        let zone = zone.parse().map_err(|_| CalendarError::UnknownZone { name: zone.to_owned() })?;
        Ok(Self { zone })
    }

    #[must_use]
    pub const fn zone(&self) -> Tz {
        self.zone
    }

    /// The calendar of an hour; every hour has exactly one, also where clocks change.
    #[must_use]
    pub fn at(&self, hour: HourStart) -> HourFeatures {
        let utc = DateTime::from_timestamp(hour.unix_s(), 0).expect("hours lie between 1970 and 2200");
        let local = utc.with_timezone(&self.zone);
        let weekday = local.weekday().num_days_from_monday() as u8;
        HourFeatures { hour_of_day: local.hour() as u8, weekday, day_off: weekday >= 5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(zone: &str, text: &str) -> HourFeatures {
        let calendar = Calendar::parse(zone, Calendar::WEEKDAYS).unwrap();
        calendar.at(crate::time::parse(text, chrono_tz::UTC).unwrap().hour().unwrap())
    }

    #[test]
    fn an_hour_belongs_to_the_day_of_its_zone() {
        let shanghai = at("Asia/Shanghai", "2020-05-17T16:00:00Z");
        assert_eq!(shanghai, HourFeatures { hour_of_day: 0, weekday: 0, day_off: false });
        let utc = at("UTC", "2020-05-17T16:00:00Z");
        assert_eq!(utc, HourFeatures { hour_of_day: 16, weekday: 6, day_off: true });
    }

    #[test]
    fn in_a_half_hour_zone_the_grid_hour_starts_at_half_past() {
        assert_eq!(at("Asia/Kolkata", "2024-03-01T00:00:00Z").hour_of_day, 5);
    }

    #[test]
    fn the_repeated_hour_of_autumn_has_the_same_local_hour_twice() {
        assert_eq!(at("Europe/Berlin", "2024-10-27T00:00:00Z").hour_of_day, 2);
        assert_eq!(at("Europe/Berlin", "2024-10-27T01:00:00Z").hour_of_day, 2);
        assert_eq!(at("Europe/Berlin", "2024-10-27T02:00:00Z").hour_of_day, 3);
    }

    #[test]
    fn unknown_names_are_refused_with_what_there_is() {
        assert!(Calendar::parse("Asia/Peking", Calendar::WEEKDAYS).is_err());
        let fault = Calendar::parse("UTC", "Mars").unwrap_err();
        assert!(fault.to_string().contains("weekdays"));
    }
}
