//! A pool's demand minute by minute.

use datasets::{HourRange, Panel};
use placement::staleness::VALID_S;
use std::ops::Range;
use vocab::{HourStart, MilliGpus, PoolId, UnixSeconds};

const MINUTE_S: i64 = 60;

/// Demand of the minutes that were measured, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Minutes {
    at: Vec<UnixSeconds>,
    demand: Vec<MilliGpus>,
}

impl Minutes {
    /// The minutes of the hours in which the history has demand of the pool: the others were recorded as zeros while the
    /// recorder had failed, and ingest left them out.
    #[must_use]
    pub fn of_history(all: &[(UnixSeconds, MilliGpus)], panel: &Panel, pool: &PoolId) -> Self {
        let is_measured = |at: UnixSeconds| {
            let place = at.hour().ok().and_then(|hour| panel.index_of(hour)).filter(|place| *place < panel.hours());
            let mut series = panel.pool_peak_of(pool).into_iter().chain(panel.series_of(pool));
            place.is_some_and(|place| series.any(|one| one.measured()[place]))
        };
        let (at, demand) = all.iter().copied().filter(|(at, _)| is_measured(*at)).unzip();
        Self { at, demand }
    }

    /// The peak of each minute of a time, where demand is the sum of jobs: their changes by rising time, ends before arrivals.
    #[must_use]
    pub fn of_changes(changes: &[(UnixSeconds, i64)], (from, until): (UnixSeconds, UnixSeconds)) -> Self {
        let (mut minutes, mut level, mut next) = (Self::default(), 0_i64, 0);
        let mut at = from;
        while at <= until {
            let mut peak = level;
            while let Some((_, change)) = changes.get(next).filter(|(when, _)| *when <= at) {
                level += change;
                peak = peak.max(level);
                next += 1;
            }
            minutes.at.push(at);
            minutes.demand.push(MilliGpus::from_milli(peak.unsigned_abs()).unwrap_or(MilliGpus::ZERO));
            at = at.plus_s(MINUTE_S);
        }
        minutes
    }

    /// Whether any of it lies in this time.
    #[must_use]
    pub fn any_within(&self, from: UnixSeconds, until: UnixSeconds) -> bool {
        !self.places(from, until).is_empty()
    }

    /// The largest demand of each of some hours, in GPUs; none where no minute was measured.
    #[must_use]
    pub fn hourly_peaks_gpus(&self, hours: HourRange) -> Vec<Option<f64>> {
        let places = |hour: HourStart| {
            let place = |at: UnixSeconds| self.at.partition_point(|one| *one < at);
            place(hour.instant())..place(hour.plus_hours(1).instant())
        };
        let peak = |hour| self.demand[places(hour)].iter().max().map(|peak| peak.as_gpus());
        hours.iter().map(peak).collect()
    }

    /// The last measurement at `now`, unless that is so old that a quota of it would no longer be fresh.
    #[must_use]
    pub fn demand_at(&self, now: UnixSeconds) -> Option<MilliGpus> {
        let place = self.at.partition_point(|at| *at <= now).checked_sub(1)?;
        (now.since_s(self.at[place]) < VALID_S).then(|| self.demand[place])
    }

    /// The largest demand in GPUs after `now`, until `end`; `None` where less than half of these minutes was measured.
    #[must_use]
    pub fn peak_gpus(&self, now: UnixSeconds, end: UnixSeconds) -> Option<f64> {
        let places = self.places(now, end);
        let measured_s = places.len() as i64 * MINUTE_S;
        let peak = self.demand[places].iter().max()?;
        (2 * measured_s >= end.since_s(now)).then(|| peak.as_gpus())
    }

    /// After `from`, until `until`.
    fn places(&self, from: UnixSeconds, until: UnixSeconds) -> Range<usize> {
        let start = self.at.partition_point(|at| *at <= from);
        start..self.at.partition_point(|at| *at <= until).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> UnixSeconds {
        UnixSeconds::new(minute * MINUTE_S)
    }

    fn of(demand: impl IntoIterator<Item = (i64, u32)>) -> Minutes {
        let (at, demand) = demand.into_iter().map(|(minute, gpus)| (at(minute), MilliGpus::from_gpus(gpus))).unzip();
        Minutes { at, demand }
    }

    #[test]
    fn the_peak_is_that_of_the_minutes_after_the_promise_until_its_end() {
        let minutes = of((0..=120).map(|minute| (minute, if minute == 60 { 9 } else { 4 })));
        assert_eq!(minutes.peak_gpus(at(0), at(60)), Some(9.0));
        assert_eq!(minutes.peak_gpus(at(60), at(120)), Some(4.0), "what was there when it began is not what came");
        assert_eq!(minutes.demand_at(at(60)), Some(MilliGpus::from_gpus(9)));
    }

    #[test]
    fn the_minutes_of_jobs_are_their_peaks_and_a_job_that_ends_makes_room_for_the_next() {
        let changes =
            [(at(0), 4_000), (at(2), -4_000), (at(2), 6_000), (at(3).plus_s(10), 1_000), (at(3).plus_s(20), -1_000)];
        let minutes = Minutes::of_changes(&changes, (at(0), at(6)));
        let gpus: Vec<_> = minutes.demand.iter().map(|one| one.as_gpus()).collect();
        assert_eq!(gpus, [4.0, 4.0, 6.0, 6.0, 7.0, 6.0, 6.0]);
        assert_eq!(minutes.peak_gpus(at(3), at(6)), Some(7.0));
    }

    #[test]
    fn less_than_half_of_the_minutes_is_no_peak_and_an_old_minute_no_demand_of_now() {
        let minutes = of((0..30).map(|minute| (minute, 4)));
        assert_eq!((minutes.peak_gpus(at(-1), at(59)), minutes.peak_gpus(at(1), at(61))), (Some(4.0), None));
        assert_eq!(minutes.demand_at(at(38)), Some(MilliGpus::from_gpus(4)));
        assert_eq!((minutes.demand_at(at(39)), minutes.demand_at(at(-1))), (None, None));
        assert!(minutes.any_within(at(28), at(99)) && !minutes.any_within(at(29), at(99)));
    }
}
