//! The hours of a pool that were watched: only they are measured demand. Downtime is a gap, and no demand that stood still.

use store::{Store, StoreError};
use vocab::{HourStart, PoolId, SeriesId, UnixSeconds};

const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;

/// An hour is measured where at least so much of it was watched.
const WATCHED_S_MIN: i64 = HOUR_S / 2;

/// A time in which no writer ran for the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downtime {
    from: UnixSeconds,
    to: UnixSeconds,
}

impl Downtime {
    /// None where it costs no hour.
    #[must_use]
    pub fn between(from: UnixSeconds, to: UnixSeconds) -> Option<Self> {
        let downtime = Self { from, to };
        let first = from.hour().ok()?;
        // The hour in which it begins may be watched for long enough; one of the next two is not where it goes on.
        (0..=2).any(|hours| downtime.costs(first.plus_hours(hours))).then_some(downtime)
    }

    #[must_use]
    pub const fn to(&self) -> UnixSeconds {
        self.to
    }

    /// Whether less than half of an hour was watched.
    #[must_use]
    pub fn costs(&self, hour: HourStart) -> bool {
        let (begin, end) = (hour.instant(), hour.plus_hours(1).instant());
        self.to.min(end).since_s(self.from.max(begin)) > HOUR_S - WATCHED_S_MIN
    }

    /// The first hour after it that is measured; none outside of the calendar.
    #[must_use]
    pub fn measured_from(&self) -> Option<HourStart> {
        let hour = self.to.hour().ok()?;
        Some(if self.costs(hour) { hour.plus_hours(1) } else { hour })
    }
}

/// Which hours of demand become usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// The first hour whose demand was seen whole; none before the first task.
    pub from: Option<HourStart>,
    pub downtime: Option<Downtime>,
}

impl Measured {
    #[must_use]
    pub fn holds(&self, hour: HourStart) -> bool {
        self.from.is_some_and(|from| hour >= from) && !self.downtime.is_some_and(|downtime| downtime.costs(hour))
    }
}

/// The latest moment up to which rows prove that a writer ran for a pool that Headroom places: usage of an hour is written when
/// the hour is over, and a quota is cut from the state of the writer. Not before `known`, and not after `now`.
///
/// # Errors
/// The database does not answer.
pub async fn watched_until(
    store: &dyn Store,
    pool: &PoolId,
    known: UnixSeconds,
    now: UnixSeconds,
) -> Result<UnixSeconds, StoreError> {
    let (Ok(from), Ok(present)) = (known.hour(), now.hour()) else { return Ok(known) };
    let mut until = known;
    let sink = &mut |series: &SeriesId, hour: HourStart, _| {
        if series.is_pool_peak() {
            until = until.max(hour.plus_hours(1).instant());
        }
    };
    store.load_pool_usage(pool, from, present, sink).await?;
    let quotas = store.latest_quotas(Some(&pool.cluster)).await?;
    let computed = quotas.iter().filter(|quota| quota.pool == *pool).map(|quota| quota.computed_at);
    Ok(computed.fold(until, UnixSeconds::max).min(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minutes after the start of hour 0.
    fn minute(minute: i64) -> UnixSeconds {
        UnixSeconds::new(1_709_222_400 + minute * 60)
    }

    fn hour(number: i64) -> HourStart {
        minute(number * 60).hour().unwrap()
    }

    /// Which of the hours 0 to 5 are measured, and the first one that is afterwards.
    fn measured(from: i64, to: i64) -> (String, Option<i64>) {
        let downtime = Downtime::between(minute(from), minute(to));
        let measured = Measured { from: Some(hour(0)), downtime };
        let hours = (0..6).filter(|number| measured.holds(hour(*number))).map(|number| number.to_string());
        let next = downtime.and_then(|downtime| downtime.measured_from());
        (hours.collect::<Vec<_>>().join(" "), next.map(|next| next.hours_since(hour(0))))
    }

    #[test]
    fn an_hour_is_measured_where_at_least_half_of_it_was_watched() {
        assert_eq!(measured(90, 300), ("0 1 5".to_owned(), Some(5)), "half of hour 1");
        assert_eq!(measured(89, 270), ("0 4 5".to_owned(), Some(4)), "half of hour 4");
        assert_eq!(measured(60, 271), ("0 5".to_owned(), Some(5)));
        assert_eq!(measured(65, 100), ("0 2 3 4 5".to_owned(), Some(2)), "both ends in one hour");
    }

    #[test]
    fn a_short_downtime_costs_no_hour() {
        assert_eq!(measured(65, 95), ("0 1 2 3 4 5".to_owned(), None));
        assert_eq!(measured(45, 75).0, "0 1 2 3 4 5");
        assert_eq!(measured(45, 80).0, "0 1 2 3 4 5", "15 minutes of one hour and 20 of the next");
        assert_eq!(measured(120, 60).0, "0 1 2 3 4 5", "a clock that went back");
    }

    #[test]
    fn before_the_first_task_nothing_is_measured() {
        assert!(!Measured::default().holds(hour(0)));
    }
}
