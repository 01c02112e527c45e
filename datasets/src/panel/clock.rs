//! Changes of a cluster's clock, and the hours of a panel as that clock has them: work that begins at nine begins at nine in summer and in
//! winter, which a grid of equal hours does not show.

use crate::calendar::Calendar;
use vocab::{HourStart, SECONDS_PER_HOUR};

/// The changes of a cluster's clock within a panel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock {
    /// Places of the first hours behind a change, rising, and the hours by which the clock went forward.
    changes: Vec<(usize, i64)>,
}

impl Clock {
    /// A clock that never changes.
    pub const STEADY: Self = Self { changes: Vec::new() };

    /// Of so many hours from `start` on. Changes of less than an hour are none: the grid has whole hours.
    pub(super) fn of(calendar: &Calendar, start: HourStart, hours: usize) -> Self {
        let mut clock = Self::STEADY;
        (1..hours).for_each(|place| clock.note(calendar, start, place));
        clock
    }

    /// Notes a change at the beginning of an hour that comes after all others.
    pub(super) fn note(&mut self, calendar: &Calendar, start: HourStart, place: usize) {
        let offset = |place: usize| i64::from(calendar.offset_s(start.plus_hours(place as i64)));
        let forward = (offset(place) - offset(place - 1)) / SECONDS_PER_HOUR;
        if forward != 0 {
            self.changes.push((place, forward));
        }
    }

    /// Of the hours from a place on.
    pub(super) fn since(&self, first: usize) -> Self {
        let later =
            |(place, forward): &(usize, i64)| Some((place.checked_sub(first).filter(|place| *place > 0)?, *forward));
        Self { changes: self.changes.iter().filter_map(later).collect() }
    }

    /// The hour so many whole hours before another one on the clock; `None` before the panel.
    ///
    /// ```
    /// use datasets::{Calendar, PanelBuilder};
    /// use vocab::{ClusterName, HourStart, Organization, PoolId, SeriesId};
    ///
    /// // Clocks of Berlin went forward on 2026-03-29 at 01:00 UTC, the 49th hour from here.
    /// let start = HourStart::from_unix_s(1_774_569_600)?;
    /// let calendar = Calendar::parse("Europe/Berlin", Calendar::WEEKDAYS)?;
    /// let mut builder = PanelBuilder::new(ClusterName::parse("earth")?, calendar, start, start.plus_hours(96));
    /// let series = SeriesId { pool: PoolId::parse("earth:A100")?, organization: Organization::parse("vision")? };
    /// builder.push(&series, start, 4.0)?;
    /// let clock = builder.finish()?.clock().clone();
    /// assert_eq!(clock.before(47, 24), Some(23));
    /// assert_eq!(clock.before(55, 24), Some(32), "09:00 is the eighth hour of the day before, and the seventh of this one");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn before(&self, place: usize, hours: usize) -> Option<usize> {
        let steady = place.checked_sub(hours);
        let between = self.changes.iter().filter(|(change, _)| *change <= place && *change + hours > place);
        let forward: i64 = between.map(|(_, forward)| forward).sum();
        if forward == 0 {
            return steady;
        }
        usize::try_from(place as i64 - hours as i64 + forward).ok()
    }

    /// The newest `most` hours of `first..end` on the clock, oldest first: one that it skipped is the hour before once more, and one that
    /// came twice is its second. `None` where the clock did not change within them: they are the last ones.
    #[must_use]
    pub fn hours(&self, first: usize, end: usize, most: usize) -> Option<Vec<usize>> {
        let longest: usize = self.changes.iter().map(|(_, forward)| forward.unsigned_abs() as usize).sum();
        let is_within =
            |(change, _): &&(usize, i64)| *change > first && *change < end && *change + most + longest >= end;
        let mut changes = self.changes.iter().filter(is_within).rev().peekable();
        changes.peek()?;
        let (mut places, mut at) = (Vec::with_capacity(most + longest), end);
        while places.len() < most && at > first {
            at -= 1;
            places.push(at);
            if let Some((_, forward)) = changes.next_if(|(change, _)| *change == at) {
                let hours = forward.unsigned_abs() as usize;
                if *forward > 0 {
                    places.extend(std::iter::repeat_n(at - 1, hours));
                } else {
                    at = at.saturating_sub(hours).max(first);
                }
            }
        }
        places.truncate(most);
        places.reverse();
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change at hour 10.
    fn changed(forward: i64) -> Clock {
        Clock { changes: vec![(10, forward)] }
    }

    #[test]
    fn a_skipped_hour_is_there_twice_and_a_doubled_one_once() {
        assert_eq!(changed(1).hours(0, 13, 6), Some(vec![8, 9, 9, 10, 11, 12]));
        assert_eq!(changed(-1).hours(0, 13, 6), Some(vec![6, 7, 8, 10, 11, 12]));
        assert_eq!(changed(-1).hours(8, 13, 6), Some(vec![8, 10, 11, 12]), "no more are there");
        for forward in [1, -1] {
            assert_eq!(changed(forward).hours(0, 10, 6), None, "it is not over");
            assert_eq!(changed(forward).hours(10, 20, 6), None, "it was before");
            assert_eq!(changed(forward).hours(0, 20, 6), None, "long before");
        }
    }

    #[test]
    fn the_same_time_of_an_earlier_day_is_an_hour_nearer_or_further_where_the_clock_changed() {
        let before = |forward: i64, place: usize| changed(forward).before(place, 8);
        assert_eq!([9, 10, 17, 18].map(|place| before(1, place)), [Some(1), Some(3), Some(10), Some(10)]);
        assert_eq!([9, 10, 17, 18].map(|place| before(-1, place)), [Some(1), Some(1), Some(8), Some(10)]);
        assert_eq!((before(1, 7), changed(-1).before(10, 10)), (None, None));
    }

    #[test]
    fn both_see_the_same_hours() {
        for forward in [1, -1] {
            let clock = changed(forward);
            for end in 11..30 {
                let hours = clock.hours(0, end, 10).unwrap_or_else(|| (end - 10..end).collect());
                // The hour to come is as far from each as their places say, but for a skipped hour itself.
                for (place, hour) in hours.iter().enumerate().filter(|(_, hour)| !(8..=10).contains(*hour)) {
                    assert_eq!(clock.before(end, 10 - place), Some(*hour), "{forward} {end} {place}");
                }
            }
        }
    }
}
