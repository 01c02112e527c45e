//! Panels of some of the hours or series of a larger one.

use super::{Panel, Series};
use vocab::HourStart;

impl Panel {
    /// The hours from `from` on. A series that was measured before counts as measured from the first of them, with its gaps filled
    /// as they were, so that windows that lie within these hours are the same as those of the whole panel.
    #[must_use]
    pub fn since(&self, from: HourStart) -> Self {
        let first = self.index_of(from).unwrap_or(0).min(self.hours);
        let tail = |one: &Series| Series {
            id: one.id.clone(),
            demand_gpus: one.demand_gpus[first..].to_vec(),
            measured: one.measured[first..].to_vec(),
            first_measured: one.first_measured.map(|hour| hour.saturating_sub(first)),
            falls: one.falls.iter().filter_map(|(hour, gpus)| Some((hour.checked_sub(first as u32)?, *gpus))).collect(),
        };
        Self {
            cluster: self.cluster.clone(),
            calendar: self.calendar.clone(),
            start: self.hour_at(first),
            hours: self.hours - first,
            series: self.series.iter().map(tail).collect(),
            pool_peaks: self.pool_peaks.iter().map(tail).collect(),
            recording_gap: self.recording_gap[first..].to_vec(),
            features: self.features[first..].to_vec(),
            clock: self.clock.since(first),
        }
    }

    /// Adds the series of another panel of the same cluster and hours, whose ids follow those of this one.
    ///
    /// # Panics
    /// When the hours differ, or an id does not follow.
    pub fn append(&mut self, other: Self) {
        assert_eq!((self.start, self.hours), (other.start, other.hours), "parts of one panel have the same hours");
        for (all, more) in [(&mut self.series, other.series), (&mut self.pool_peaks, other.pool_peaks)] {
            all.extend(more);
            assert!(all.is_sorted_by(|one, next| one.id < next.id), "parts of a panel come in the order of their ids");
        }
        self.recording_gap.iter_mut().zip(other.recording_gap).for_each(|(all, one)| *all &= one);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Calendar, PanelBuilder, window};
    use vocab::{ClusterName, HorizonHours, HourStart, Organization, PoolId, SeriesId};

    fn panel(names: &[&str]) -> super::Panel {
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let start = HourStart::from_unix_s(0).unwrap();
        let mut builder =
            PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, start, start.plus_hours(40));
        for name in names {
            let id = SeriesId {
                pool: PoolId::parse("earth:V100").unwrap(),
                organization: Organization::parse(name).unwrap(),
            };
            let size = f64::from(name.as_bytes()[0]);
            let measured: Vec<bool> = (0..40).map(|hour| hour > 2 && hour % 5 != 0).collect();
            builder
                .push_series(
                    id,
                    (0..40).map(|hour| size + f64::from(hour)).collect(),
                    measured,
                    vec![(8, 1.0), (30, 2.5)],
                )
                .unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn windows_of_the_last_hours_are_those_of_the_whole_panel() {
        let (all, horizon) = (panel(&["a", "b"]), HorizonHours::new(2).unwrap());
        let recent = all.since(all.hour_at(20));
        for issue in (28..=40).map(|hour| all.hour_at(hour)) {
            assert_eq!(window::at(&recent, 1, issue, 8, horizon), window::at(&all, 1, issue, 8, horizon));
            assert_eq!(window::outcome(&recent, 1, issue, horizon), window::outcome(&all, 1, issue, horizon));
        }
        assert_eq!(*recent.series()[1].falls(), [(10, 2.5)]);
    }

    #[test]
    fn parts_put_together_are_the_whole_panel() {
        let mut parts = panel(&["a", "b"]);
        parts.append(panel(&["c"]));
        assert_eq!(parts, panel(&["a", "b", "c"]));
    }
}
