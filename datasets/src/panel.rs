//! One cluster's history on the hour grid, with its gaps marked.

mod clock;
mod parts;
mod series;

use crate::calendar::{Calendar, HourFeatures};
pub use clock::Clock;
pub use series::{Falls, Series};
use std::collections::BTreeMap;
use std::ops::Range;
use vocab::{ClusterName, HorizonHours, HourDemand, HourStart, PoolId, SeriesId, UsageRow};

/// Why rows do not make a panel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PanelError {
    #[error("cluster {cluster} has no usage: load it with datasets ingest")]
    Empty { cluster: ClusterName },
    #[error("series {series} does not belong to cluster {cluster}")]
    OtherCluster { series: SeriesId, cluster: ClusterName },
    #[error("series {series} has two values for {hour}")]
    Twice { series: SeriesId, hour: HourStart },
    #[error("hour {hour} lies outside the panel ({start} and {hours} h on)")]
    OutsidePanel { hour: HourStart, start: HourStart, hours: usize },
}

/// The series of one cluster over the same hours, with the calendar of each hour.
///
/// `series` holds the organizations and is sorted by id; the pools' own peaks (`*`) stand apart, since a model must not
/// count them as demand of one more tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    cluster: ClusterName,
    calendar: Calendar,
    start: HourStart,
    hours: usize,
    series: Vec<Series>,
    pool_peaks: Vec<Series>,
    recording_gap: Vec<bool>,
    features: Vec<HourFeatures>,
    clock: Clock,
}

impl Panel {
    /// Cluster of the panel.
    #[must_use]
    pub const fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// Calendar of the cluster.
    #[must_use]
    pub const fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// First hour.
    #[must_use]
    pub const fn start(&self) -> HourStart {
        self.start
    }

    /// Number of hours.
    #[must_use]
    pub const fn hours(&self) -> usize {
        self.hours
    }

    /// The first instant after the panel: the latest issue time that it supports.
    #[must_use]
    pub fn end(&self) -> HourStart {
        self.start.plus_hours(self.hours as i64)
    }

    /// Series, by id.
    #[must_use]
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Places of a pool's organizations among the series.
    #[must_use]
    pub fn places_of(&self, pool: &PoolId) -> Range<usize> {
        let start = self.series.partition_point(|series| series.id.pool < *pool);
        start..start + self.series[start..].partition_point(|series| series.id.pool == *pool)
    }

    /// The series of a pool's organizations.
    #[must_use]
    pub fn series_of(&self, pool: &PoolId) -> &[Series] {
        &self.series[self.places_of(pool)]
    }

    /// Hourly peaks of the pools, by id.
    #[must_use]
    pub fn pool_peaks(&self) -> &[Series] {
        &self.pool_peaks
    }

    /// The own peak of a pool (`*`), where it has rows.
    #[must_use]
    pub fn pool_peak_of(&self, pool: &PoolId) -> Option<&Series> {
        let place = self.pool_peaks.binary_search_by(|series| series.id.pool.cmp(pool)).ok()?;
        Some(&self.pool_peaks[place])
    }

    /// Hours without a row of any organization: the recorder failed, not the demand. Explicit zeros are measurements;
    /// traces whose recorder wrote zeros where it failed lose these rows at import ([`crate::read::ReadReport::leave_out_zero_hours`]).
    #[must_use]
    pub fn recording_gap(&self) -> &[bool] {
        &self.recording_gap
    }

    /// The calendar of each hour of the panel and of [`HorizonHours::MAX`] hours more.
    #[must_use]
    pub fn features(&self) -> &[HourFeatures] {
        &self.features
    }

    /// Changes of the cluster's clock within the hours of [`features`](Self::features).
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Index of an hour; `None` before the panel. An hour at or past the end has an index, too: it may be an issue time.
    #[must_use]
    pub fn index_of(&self, hour: HourStart) -> Option<usize> {
        usize::try_from(hour.hours_since(self.start)).ok()
    }

    /// Hour of an index.
    #[must_use]
    pub fn hour_at(&self, index: usize) -> HourStart {
        self.start.plus_hours(index as i64)
    }

    /// Adds the hour after the last one: `demand` holds the organizations and pools that were measured in it, each once.
    /// The panel is then the same as if it had been built with this hour, at the cost of the hour alone.
    ///
    /// # Errors
    /// A series belongs to another cluster.
    pub fn push_hour(&mut self, demand: &[(SeriesId, HourDemand)]) -> Result<(), PanelError> {
        let other = demand.iter().find(|(id, _)| id.pool.cluster != self.cluster);
        if let Some((series, _)) = other.cloned() {
            return Err(PanelError::OtherCluster { series, cluster: self.cluster.clone() });
        }
        let (pools, organizations): (Vec<_>, Vec<_>) = demand.iter().partition(|(id, _)| id.is_pool_peak());
        self.recording_gap.push(organizations.is_empty());
        push_rows(&mut self.series, organizations, self.hours);
        push_rows(&mut self.pool_peaks, pools, self.hours);
        self.hours += 1;
        let last = self.hours + usize::from(HorizonHours::MAX) - 1;
        self.features.push(self.calendar.at(self.start.plus_hours(last as i64)));
        self.clock.note(&self.calendar, self.start, last);
        Ok(())
    }

    /// The last hour in which any organization, or a pool as a whole, was measured.
    #[must_use]
    pub fn newest_measured(&self) -> Option<HourStart> {
        self.newest_of(self.series.iter().chain(&self.pool_peaks))
    }

    /// The last hour in which any organization of a pool, or the pool as a whole, was measured.
    #[must_use]
    pub fn newest_measured_of(&self, pool: &PoolId) -> Option<HourStart> {
        self.newest_of(self.series_of(pool).iter().chain(self.pool_peak_of(pool)))
    }

    fn newest_of<'a>(&self, series: impl Iterator<Item = &'a Series>) -> Option<HourStart> {
        let last = |series: &Series| series.measured.iter().rposition(|&measured| measured);
        series.filter_map(last).max().map(|index| self.hour_at(index))
    }
}

/// Collects rows of one cluster into a [`Panel`]. The range is fixed first, so that rows can come in any order and the
/// memory is known.
#[derive(Debug)]
pub struct PanelBuilder {
    cluster: ClusterName,
    calendar: Calendar,
    start: HourStart,
    hours: usize,
    series: BTreeMap<SeriesId, Series>,
}

impl PanelBuilder {
    /// A panel of the hours from `start` to before `end`; none where `end` is not after `start`.
    #[must_use]
    pub fn new(cluster: ClusterName, calendar: Calendar, start: HourStart, end: HourStart) -> Self {
        let hours = usize::try_from(end.hours_since(start)).unwrap_or(0);
        Self { cluster, calendar, start, hours, series: BTreeMap::new() }
    }

    /// A panel that holds `rows` from their first to their last hour.
    ///
    /// # Errors
    /// There are no rows, or one is refused as by [`Self::push`].
    pub fn from_rows(cluster: ClusterName, calendar: Calendar, rows: &[UsageRow]) -> Result<Panel, PanelError> {
        let hours = || rows.iter().map(|row| row.hour);
        let (Some(first), Some(last)) = (hours().min(), hours().max()) else {
            return Err(PanelError::Empty { cluster });
        };
        let mut builder = Self::new(cluster, calendar, first, last.plus_hours(1));
        for row in rows {
            builder.push_demand(&row.series, row.hour, row.hour_demand())?;
        }
        builder.finish()
    }

    /// # Errors
    /// The row belongs to another cluster, lies outside the range, or its hour already has a value.
    pub fn push(&mut self, id: &SeriesId, hour: HourStart, demand_gpus: f64) -> Result<(), PanelError> {
        let outside = PanelError::OutsidePanel { hour, start: self.start, hours: self.hours };
        let index = usize::try_from(hour.hours_since(self.start)).map_err(|_| outside.clone())?;
        if index >= self.hours {
            return Err(outside);
        }
        if !self.series.contains_key(id) {
            self.add_series(id)?;
        }
        let series = self.series.get_mut(id).expect("added above");
        if std::mem::replace(&mut series.measured[index], true) {
            return Err(PanelError::Twice { series: id.clone(), hour });
        }
        series.demand_gpus[index] = demand_gpus;
        Ok(())
    }

    /// As [`push`](Self::push), with what is known of the end of the hour.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_demand(&mut self, id: &SeriesId, hour: HourStart, demand: HourDemand) -> Result<(), PanelError> {
        self.push(id, hour, demand.peak.as_gpus())?;
        let (index, fallen_gpus) = (hour.hours_since(self.start), demand.fallen_gpus());
        if let (Some(series), Ok(index)) = (self.series.get_mut(id), usize::try_from(index)) {
            series.falls_by(index, fallen_gpus);
        }
        Ok(())
    }

    fn add_series(&mut self, id: &SeriesId) -> Result<(), PanelError> {
        if id.pool.cluster != self.cluster {
            return Err(PanelError::OtherCluster { series: id.clone(), cluster: self.cluster.clone() });
        }
        self.series.insert(id.clone(), Series::empty(id.clone(), self.hours));
        Ok(())
    }

    /// Adds a whole series: GPUs of each hour of the range, whether it was measured, and where it fell below its peak. What unmeasured
    /// hours hold is not read.
    ///
    /// # Errors
    /// The series belongs to another cluster, is there already, or has another number of hours.
    pub fn push_series(
        &mut self,
        id: SeriesId,
        demand_gpus: Vec<f64>,
        measured: Vec<bool>,
        falls: Falls,
    ) -> Result<(), PanelError> {
        if demand_gpus.len() != self.hours || measured.len() != self.hours {
            let hour = self.start.plus_hours(demand_gpus.len().max(measured.len()) as i64);
            return Err(PanelError::OutsidePanel { hour, start: self.start, hours: self.hours });
        }
        if self.series.contains_key(&id) {
            return Err(PanelError::Twice { series: id, hour: self.start });
        }
        self.add_series(&id)?;
        self.series.insert(id.clone(), Series { id, demand_gpus, measured, first_measured: None, falls });
        Ok(())
    }

    /// Marks the recording gaps, fills the gaps forward and looks up the calendar.
    ///
    /// # Errors
    /// There is no organization, or no hour.
    pub fn finish(self) -> Result<Panel, PanelError> {
        if self.series.keys().all(SeriesId::is_pool_peak) {
            return Err(PanelError::Empty { cluster: self.cluster });
        }
        self.finish_measured()
    }

    /// As [`finish`](Self::finish), of pools that may have no organization: their own peaks (`*`) are measurements.
    ///
    /// # Errors
    /// There is no series, or no hour.
    pub fn finish_measured(self) -> Result<Panel, PanelError> {
        let (mut pool_peaks, mut series): (Vec<_>, Vec<_>) =
            self.series.into_values().partition(|series| series.id.is_pool_peak());
        if (series.is_empty() && pool_peaks.is_empty()) || self.hours == 0 {
            return Err(PanelError::Empty { cluster: self.cluster });
        }
        let recording_gap = recording_gaps(&series, self.hours);
        series.iter_mut().chain(&mut pool_peaks).for_each(Series::seal);
        let known = self.hours + usize::from(HorizonHours::MAX);
        let features = (0..known).map(|hour| self.calendar.at(self.start.plus_hours(hour as i64))).collect();
        let clock = Clock::of(&self.calendar, self.start, known);
        Ok(Panel {
            cluster: self.cluster,
            calendar: self.calendar,
            start: self.start,
            hours: self.hours,
            series,
            pool_peaks,
            recording_gap,
            features,
            clock,
        })
    }
}

fn recording_gaps(series: &[Series], hours: usize) -> Vec<bool> {
    let mut gaps = vec![true; hours];
    for one in series {
        gaps.iter_mut().zip(&one.measured).for_each(|(gap, measured)| *gap &= !measured);
    }
    gaps
}

/// Adds an hour to series of `hours` hours, in their order. New ones are sorted in once, for any number of them.
fn push_rows(series: &mut Vec<Series>, mut rows: Vec<&(SeriesId, HourDemand)>, hours: usize) {
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.dedup_by(|a, b| a.0 == b.0);
    let known = series.len();
    for (id, _) in &rows {
        if series[..known].binary_search_by(|one| one.id.cmp(id)).is_err() {
            series.push(Series::empty(id.clone(), hours));
        }
    }
    if series.len() > known {
        series.sort_by(|a, b| a.id.cmp(&b.id));
    }
    let mut rows = rows.into_iter().peekable();
    for one in series {
        let row = rows.next_if(|(id, _)| *id == one.id);
        one.push(row.map(|(_, demand)| *demand));
    }
}

#[cfg(test)]
pub(crate) mod tests;
