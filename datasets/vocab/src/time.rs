//! Hours on a grid, seconds, and horizons.

use std::fmt;

/// Seconds of one hour. The only home of this number: hours of usage, forecasts and guarantees are counted by it.
pub const SECONDS_PER_HOUR: i64 = 3_600;
/// Seconds of one day in UTC, which has no leap seconds in Unix time. A local day may have 23 or 25 hours.
pub const SECONDS_PER_DAY: i64 = HOURS_PER_DAY * SECONDS_PER_HOUR;
/// Hours of one day in UTC, the shorter of the two periods of GPU demand.
pub const HOURS_PER_DAY: i64 = 24;
/// Hours of one week, the longer of the two periods of GPU demand, and the longest horizon.
pub const HOURS_PER_WEEK: i64 = 7 * HOURS_PER_DAY;

/// Hours are kept between 1970 and 2200: outside, a timestamp is a mistake in its unit.
const LAST_HOUR: i64 = (2_200 - 1_970) * 8_766;

/// Why a time was refused as the start of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HourError {
    #[error("{} is not the start of an hour in UTC", UnixSeconds::new(*unix_s))]
    OffTheHour { unix_s: i64 },
    #[error("{unix_s} s since 1970 lies outside the years 1970 to 2200: are these milliseconds?")]
    OutOfRange { unix_s: i64 },
}

/// Why a horizon was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HorizonError {
    #[error("{text:?} is not a number of hours: write 4h")]
    NotHours { text: String },
    #[error("{hours} h is outside 1 h to {max} h", max = HorizonHours::MAX)]
    OutOfRange { hours: u64 },
}

/// An instant in whole seconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixSeconds(i64);

impl UnixSeconds {
    /// The instant of a Unix time in seconds.
    #[must_use]
    pub const fn new(unix_s: i64) -> Self {
        Self(unix_s)
    }

    /// Unix time in seconds.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Saturates at the ends of 64 bits, some 292 billion years away.
    #[must_use]
    pub const fn plus_s(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Seconds from `earlier` to `self`; negative where `earlier` is later.
    #[must_use]
    pub const fn since_s(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The start of the hour that holds this instant.
    ///
    /// # Errors
    /// [`HourError::OutOfRange`] outside the years that an [`HourStart`] may have.
    pub const fn hour(self) -> Result<HourStart, HourError> {
        match self.0.checked_sub(self.0.rem_euclid(SECONDS_PER_HOUR)) {
            Some(unix_s) => HourStart::from_unix_s(unix_s),
            None => Err(HourError::OutOfRange { unix_s: self.0 }),
        }
    }

    /// Itself, where it lies within the years that an [`HourStart`] may have: what comes from outside is checked by it, since
    /// other years are mistakes, and those of five digits or before year 0 do not print as what is read as a time.
    ///
    /// # Errors
    /// [`HourError::OutOfRange`] outside of them.
    pub const fn in_calendar(self) -> Result<Self, HourError> {
        match self.hour() {
            Ok(_) => Ok(self),
            Err(_) => Err(HourError::OutOfRange { unix_s: self.0 }),
        }
    }
}

/// RFC 3339 in UTC, to the second.
impl fmt::Display for UnixSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(SECONDS_PER_DAY));
        let second = self.0.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / SECONDS_PER_HOUR, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Proleptic Gregorian date of a day number since 1970-01-01. The year is counted from 1 March, so that the leap day is
/// its last one and each era of 400 years has the same 146,097 days.
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// The first instant of an hour, in UTC.
///
/// ```
/// use vocab::{HourStart, UnixSeconds};
///
/// let hour = UnixSeconds::new(1_709_254_799).hour()?;
/// assert_eq!(hour.to_string(), "2024-03-01T00:00:00Z");
/// assert_eq!(hour.plus_hours(24).hours_since(hour), 24);
/// assert!(HourStart::from_unix_s(1_709_254_799).is_err(), "not on the hour grid");
/// # Ok::<(), vocab::HourError>(())
/// ```
///
/// Zones whose offset holds half an hour share this grid; their calendar does not
/// (see `datasets::calendar`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HourStart(i64);

impl HourStart {
    /// # Errors
    /// The time is off the grid, or outside the years 1970 to 2200.
    pub const fn from_unix_s(unix_s: i64) -> Result<Self, HourError> {
        if unix_s < 0 || unix_s / SECONDS_PER_HOUR > LAST_HOUR {
            return Err(HourError::OutOfRange { unix_s });
        }
        if unix_s % SECONDS_PER_HOUR != 0 {
            return Err(HourError::OffTheHour { unix_s });
        }
        Ok(Self(unix_s / SECONDS_PER_HOUR))
    }

    /// Unix time in seconds.
    #[must_use]
    pub const fn unix_s(self) -> i64 {
        self.0 * SECONDS_PER_HOUR
    }

    /// The hour as an instant.
    #[must_use]
    pub const fn instant(self) -> UnixSeconds {
        UnixSeconds(self.unix_s())
    }

    /// Hours past the ends of the range stay at the ends.
    #[must_use]
    pub fn plus_hours(self, hours: i64) -> Self {
        Self(self.0.saturating_add(hours).clamp(0, LAST_HOUR))
    }

    /// Hours from `earlier` to `self`; negative where `earlier` is later.
    #[must_use]
    pub const fn hours_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for HourStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.instant().fmt(f)
    }
}

/// Hours of a forecast or a guarantee: 1 to 168.
///
/// ```
/// use vocab::HorizonHours;
///
/// assert_eq!(HorizonHours::parse("4h").map(HorizonHours::seconds), Ok(14_400));
/// assert!(HorizonHours::parse("169h").is_err(), "longer than a week");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HorizonHours(u8);

impl HorizonHours {
    /// One week: past it, hourly demand is a matter of planning, not of quota.
    pub const MAX: u8 = HOURS_PER_WEEK as u8;
    /// One hour.
    pub const ONE: Self = Self(1);

    /// # Errors
    /// [`HorizonError::OutOfRange`] outside 1 to [`Self::MAX`].
    pub fn new(hours: u64) -> Result<Self, HorizonError> {
        match u8::try_from(hours) {
            Ok(hours @ 1..=Self::MAX) => Ok(Self(hours)),
            _ => Err(HorizonError::OutOfRange { hours }),
        }
    }

    /// Reads `4h` or `4`.
    ///
    /// # Errors
    /// The text is no whole number of hours, or out of range.
    pub fn parse(text: &str) -> Result<Self, HorizonError> {
        let digits = text.trim().trim_end_matches('h');
        let hours = digits.parse().map_err(|_| HorizonError::NotHours { text: text.to_owned() })?;
        Self::new(hours)
    }

    /// Hours, 1 to 168.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Number of hourly steps of a forecast.
    #[must_use]
    pub const fn steps(self) -> usize {
        self.0 as usize
    }

    /// The horizon in seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0 as i64 * SECONDS_PER_HOUR
    }
}

impl fmt::Display for HorizonHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}h", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_off_the_grid_is_named_as_a_date() {
        let fault = HourStart::from_unix_s(1_588_262_460).expect_err("00:01 is no start of an hour");
        assert_eq!(fault.to_string(), "2020-04-30T16:01:00Z is not the start of an hour in UTC");
        assert!(HourStart::from_unix_s(1_588_262_400_000).is_err(), "milliseconds");
        assert!(HourStart::from_unix_s(-3_600).is_err());
    }

    #[test]
    fn an_instant_outside_the_calendar_is_refused_and_none_overflows() {
        for unix_s in [i64::MIN, -1, 253_402_304_399, i64::MAX] {
            let fault = Err(HourError::OutOfRange { unix_s });
            assert_eq!(UnixSeconds::new(unix_s).in_calendar(), fault);
            assert!(UnixSeconds::new(unix_s).hour().is_err());
        }
        let leap_second = UnixSeconds::new(1_483_228_799);
        assert_eq!(leap_second.in_calendar(), Ok(leap_second));
    }

    #[test]
    fn dates_are_right_on_leap_days_and_at_the_turn_of_centuries() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(UnixSeconds::new(unix_s).to_string(), text);
        }
    }

    #[test]
    fn a_horizon_is_between_an_hour_and_a_week() {
        assert_eq!(HorizonHours::parse("4h").map(HorizonHours::get), Ok(4));
        assert_eq!(HorizonHours::parse("168").map(HorizonHours::get), Ok(168));
        for text in ["0h", "169h", "-1h", "4d", "", "h"] {
            assert!(HorizonHours::parse(text).is_err(), "{text:?} is no horizon");
        }
    }
}
