//! GPU time and days.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use vocab::{SECONDS_PER_DAY, UnixSeconds};

/// GPU time, in thousandths of a GPU times seconds. Sums saturate: 64 bits hold a million GPUs for 500 years.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuTime(u64);

/// In one GPU-hour.
pub(crate) const MILLI_GPU_S_PER_GPU_HOUR: u64 = 3_600_000;

impl GpuTime {
    /// None.
    pub const ZERO: Self = Self(0);

    /// So many thousandths of a GPU for so many seconds; nothing for a negative time.
    #[must_use]
    pub const fn of(milli: u64, seconds: i64) -> Self {
        if seconds <= 0 { Self::ZERO } else { Self(milli.saturating_mul(seconds as u64)) }
    }

    /// From thousandths of a GPU times seconds.
    #[must_use]
    pub const fn from_milli_gpu_s(milli_gpu_s: u64) -> Self {
        Self(milli_gpu_s)
    }

    /// Thousandths of a GPU times seconds.
    #[must_use]
    pub const fn milli_gpu_s(self) -> u64 {
        self.0
    }

    /// GPU-hours. Exact to the thousandth of a GPU-second up to two billion GPU-hours.
    #[must_use]
    pub fn gpu_hours(self) -> f64 {
        self.0 as f64 / MILLI_GPU_S_PER_GPU_HOUR as f64
    }

    /// The rest after `other`; zero where that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for GpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for GpuTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for GpuTime {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// A day of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day of an instant.
    #[must_use]
    pub const fn of(at: UnixSeconds) -> Self {
        Self(at.get().div_euclid(SECONDS_PER_DAY))
    }

    /// The day with a number since 1970-01-01.
    #[must_use]
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Its first instant.
    #[must_use]
    pub const fn begin(self) -> UnixSeconds {
        UnixSeconds::new(self.0.saturating_mul(SECONDS_PER_DAY))
    }

    /// The day after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// `2026-11-25`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.begin().to_string();
        f.write_str(text.split('T').next().unwrap_or_default())
    }
}

/// Why a text is no day or month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayError {
    text: String,
}

impl fmt::Display for DayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid month {:?}: expected YYYY-MM between 1970-01 and 2200-12, such as 2026-11", self.text)
    }
}

impl std::error::Error for DayError {}

/// A month of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    from: Day,
    to: Day,
}

impl Month {
    /// Reads `YYYY-MM`.
    ///
    /// # Errors
    /// It is none, or outside of 1970 to 2200.
    pub fn parse(text: &str) -> Result<Self, DayError> {
        let wrong = || DayError { text: text.to_owned() };
        let (year, month) = text.split_once('-').filter(|_| text.len() == 7).ok_or_else(wrong)?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok());
        let (year, month) = (digits(year).flatten().ok_or_else(wrong)?, digits(month).flatten().ok_or_else(wrong)?);
        if !(1970..=2200).contains(&year) || !(1..=12).contains(&month) {
            return Err(wrong());
        }
        let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        Ok(Self { from: first_of(year, month), to: first_of(next.0, next.1) })
    }

    /// The month of a day.
    #[must_use]
    pub fn of(day: Day) -> Self {
        let text = day.to_string();
        let whole = Self { from: day, to: day.next() };
        text.get(..7).and_then(|month| Self::parse(month).ok()).unwrap_or(whole)
    }

    /// Its first day.
    #[must_use]
    pub const fn from(self) -> Day {
        self.from
    }

    /// The day after its last one.
    #[must_use]
    pub const fn to(self) -> Day {
        self.to
    }
}

/// `2026-11`.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.from.to_string();
        f.write_str(text.get(..7).unwrap_or(&text))
    }
}

/// The first day of a month (1 to 12) of the Gregorian calendar. The year is counted from 1 March, so that the leap day is its last.
const fn first_of(year: i64, month: i64) -> Day {
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * from_march + 2) / 5;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Day(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_has_its_days_also_in_leap_years() {
        for (text, from, to) in [
            ("2026-11", "2026-11-01", "2026-12-01"),
            ("2026-12", "2026-12-01", "2027-01-01"),
            ("2024-02", "2024-02-01", "2024-03-01"),
            ("2100-02", "2100-02-01", "2100-03-01"),
            ("1970-01", "1970-01-01", "1970-02-01"),
        ] {
            let month = Month::parse(text).unwrap();
            assert_eq!([month.from().to_string(), month.to().to_string()], [from, to]);
            assert_eq!((month.to_string().as_str(), Month::of(month.from())), (text, month));
        }
        let days = |text: &str| Month::parse(text).map(|month| month.to().number() - month.from().number());
        assert_eq!([days("2024-02"), days("2023-02"), days("2100-02")], [Ok(29), Ok(28), Ok(28)]);
    }

    #[test]
    fn a_wrong_month_is_refused_with_the_expected_form() {
        for wrong in ["2026", "2026-13", "2026-00", "26-11", "2026-1", "2026-+1", "3000-01", "2026-11-01", ""] {
            let fault = Month::parse(wrong).unwrap_err().to_string();
            assert!(fault.contains("expected YYYY-MM"), "{fault}");
        }
    }

    #[test]
    fn gpu_hours_read_back_to_the_same_thousandths_of_a_gpu_second() {
        for milli_gpu_s in [0, 1, 999, 3_600_000, 123_456_789_012_345, 7_199_999_999_999_999] {
            let hours = GpuTime::from_milli_gpu_s(milli_gpu_s).gpu_hours();
            assert_eq!((hours * 3_600_000.0).round() as u64, milli_gpu_s);
        }
        assert_eq!(GpuTime::of(1_000, -5), GpuTime::ZERO);
    }
}
