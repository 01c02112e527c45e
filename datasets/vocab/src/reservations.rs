//! Reservations: windows of a pool that are sold ahead.

use crate::{MilliGpus, Organization, PoolId, UnixSeconds};
use std::collections::BTreeSet;

/// From `from` on and before `to`, `gpus` of a pool are for the HP tasks of one organization: one occurrence of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReservedWindow {
    /// Begin of the window.
    pub from: UnixSeconds,
    /// End of the window, after `from`.
    pub to: UnixSeconds,
    /// The organization that gets the GPUs.
    pub organization: Organization,
    /// GPUs of the window.
    pub gpus: MilliGpus,
}

impl ReservedWindow {
    /// Whether the window has begun by `now`, and is not over.
    #[must_use]
    pub fn is_open(&self, now: UnixSeconds) -> bool {
        self.from <= now && now < self.to
    }

    /// Whether it is open, or its notice of so many seconds has begun.
    #[must_use]
    pub fn has_begun(&self, now: UnixSeconds, notice_s: i64) -> bool {
        self.from.plus_s(-notice_s) <= now && now < self.to
    }
}

/// The number of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(pub u64);

/// A day of the week, in the time zone of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weekday {
    /// The first day of the week.
    Monday,
    /// The second one.
    Tuesday,
    /// The third one.
    Wednesday,
    /// The fourth one.
    Thursday,
    /// The fifth one.
    Friday,
    /// The sixth one.
    Saturday,
    /// The last one.
    Sunday,
}

impl Weekday {
    /// All days, Monday first.
    pub const ALL: [Self; 7] =
        [Self::Monday, Self::Tuesday, Self::Wednesday, Self::Thursday, Self::Friday, Self::Saturday, Self::Sunday];

    /// As it is written in requests, rows and calendars (RFC 5545, `BYDAY`).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Monday => "MO",
            Self::Tuesday => "TU",
            Self::Wednesday => "WE",
            Self::Thursday => "TH",
            Self::Friday => "FR",
            Self::Saturday => "SA",
            Self::Sunday => "SU",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|day| day.as_str() == text)
    }
}

/// Weekly repetition of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeats {
    /// Days on which a window begins, at the local time of the first one.
    pub days: BTreeSet<Weekday>,
    /// No window begins at this instant or later; `None` for ever.
    pub until: Option<UnixSeconds>,
}

/// GPUs of a pool that are sold ahead: one window, or one on some days of each week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The pool.
    pub pool: PoolId,
    /// The first window.
    pub first: ReservedWindow,
    /// Its repetition; `None` for a single window.
    pub repeats: Option<Repeats>,
}
