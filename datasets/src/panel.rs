//! One cluster's history on the hour grid, with its gaps marked.

use crate::calendar::{Calendar, HourFeatures};
use std::collections::BTreeMap;
use std::ops::Range;
use vocab::{ClusterName, HorizonHours, HourStart, PoolId, SeriesId, UsageRow};

/// Why rows do not make a panel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PanelError {
    #[error("cluster {cluster} has no usage: ingest some first")]
    Empty { cluster: ClusterName },
    #[error("series {series} does not belong to cluster {cluster}")]
    OtherCluster { series: SeriesId, cluster: ClusterName },
    #[error("series {series} has two values for {hour}")]
    Twice { series: SeriesId, hour: HourStart },
    #[error("hour {hour} lies outside the panel ({start} and {hours} h on)")]
    OutsidePanel { hour: HourStart, start: HourStart, hours: usize },
}

/// One series, hour by hour. Gaps are filled forward from the last measured hour, which uses the past only; before the
/// first measured hour the fill is zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    id: SeriesId,
    demand_gpus: Vec<f64>,
    recorded: Vec<bool>,
    measured: Vec<bool>,
    first_measured: Option<usize>,
}

impl Series {
    #[must_use]
    pub const fn id(&self) -> &SeriesId {
        &self.id
    }

    /// GPUs in each hour of the panel, gaps filled.
    #[must_use]
    pub fn demand_gpus(&self) -> &[f64] {
        &self.demand_gpus
    }

    /// Whether each hour has a row, be it in a recording gap.
    #[must_use]
    pub fn recorded(&self) -> &[bool] {
        &self.recorded
    }

    /// Whether each hour was measured: false where there is no row, and in recording gaps.
    #[must_use]
    pub fn measured(&self) -> &[bool] {
        &self.measured
    }

    /// Index of the first measured hour.
    #[must_use]
    pub const fn first_measured(&self) -> Option<usize> {
        self.first_measured
    }

    fn empty(id: SeriesId, hours: usize) -> Self {
        let measured = vec![false; hours];
        Self { id, demand_gpus: vec![0.0; hours], recorded: measured.clone(), measured, first_measured: None }
    }

    /// Adds an hour without a row.
    fn push_empty(&mut self) {
        self.demand_gpus.push(0.0);
        self.recorded.push(false);
        self.measured.push(false);
    }

    fn record_last(&mut self, demand_gpus: f64) {
        if let (Some(last), Some(recorded)) = (self.demand_gpus.last_mut(), self.recorded.last_mut()) {
            (*last, *recorded) = (demand_gpus, true);
        }
    }

    /// [`seal`](Self::seal) for the last hour alone.
    fn seal_last(&mut self, is_gap: bool) {
        let Some(last) = self.demand_gpus.len().checked_sub(1) else { return };
        self.measured[last] = self.recorded[last] && !is_gap;
        if self.measured[last] {
            self.first_measured.get_or_insert(last);
        } else {
            self.demand_gpus[last] = last
                .checked_sub(1)
                .filter(|_| self.first_measured.is_some())
                .map_or(0.0, |before| self.demand_gpus[before]);
        }
    }

    fn seal(&mut self, recording_gap: &[bool]) {
        self.first_measured = None;
        self.measured.clone_from(&self.recorded);
        let mut last = 0.0;
        for (hour, gap) in recording_gap.iter().enumerate() {
            self.measured[hour] &= !gap;
            if self.measured[hour] {
                last = self.demand_gpus[hour];
                self.first_measured.get_or_insert(hour);
            } else {
                self.demand_gpus[hour] = last;
            }
        }
    }
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
}

impl Panel {
    #[must_use]
    pub const fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    #[must_use]
    pub const fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    #[must_use]
    pub const fn start(&self) -> HourStart {
        self.start
    }

    #[must_use]
    pub const fn hours(&self) -> usize {
        self.hours
    }

    /// The first instant after the panel: the latest issue time that it supports.
    #[must_use]
    pub fn end(&self) -> HourStart {
        self.start.plus_hours(self.hours as i64)
    }

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

    #[must_use]
    pub fn pool_peaks(&self) -> &[Series] {
        &self.pool_peaks
    }

    /// Hours in which every organization is zero or without a row: the recorder failed, not the demand. With a single
    /// series no such thing can be told, and nothing is marked.
    #[must_use]
    pub fn recording_gap(&self) -> &[bool] {
        &self.recording_gap
    }

    /// The calendar of each hour of the panel and of [`HorizonHours::MAX`] hours more.
    #[must_use]
    pub fn features(&self) -> &[HourFeatures] {
        &self.features
    }

    /// Index of an hour; `None` before the panel. An hour at or past the end has an index, too: it may be an issue time.
    #[must_use]
    pub fn index_of(&self, hour: HourStart) -> Option<usize> {
        usize::try_from(hour.hours_since(self.start)).ok()
    }

    #[must_use]
    pub fn hour_at(&self, index: usize) -> HourStart {
        self.start.plus_hours(index as i64)
    }

    /// Adds the hour after the last one: `demand` holds the organizations and pools that were measured in it, each once.
    /// The panel is then the same as if it had been built with this hour, at the cost of the hour alone.
    ///
    /// # Errors
    /// A series belongs to another cluster.
    pub fn push_hour(&mut self, demand: &[(SeriesId, f64)]) -> Result<(), PanelError> {
        let other = demand.iter().find(|(id, _)| id.pool.cluster != self.cluster);
        if let Some((series, _)) = other.cloned() {
            return Err(PanelError::OtherCluster { series, cluster: self.cluster.clone() });
        }
        let is_only = |one: &[Series]| one.len() < 2;
        let was_single = is_only(&self.series);
        for (id, _) in demand {
            let hours = self.hours;
            let all = if id.is_pool_peak() { &mut self.pool_peaks } else { &mut self.series };
            if let Err(place) = all.binary_search_by(|one| one.id.cmp(id)) {
                all.insert(place, Series::empty(id.clone(), hours));
            }
        }
        for one in self.series.iter_mut().chain(&mut self.pool_peaks) {
            one.push_empty();
        }
        for (id, demand_gpus) in demand {
            let all = if id.is_pool_peak() { &mut self.pool_peaks } else { &mut self.series };
            if let Ok(place) = all.binary_search_by(|one| one.id.cmp(id)) {
                all[place].record_last(*demand_gpus);
            }
        }
        self.hours += 1;
        let last = self.hours - 1;
        let silent = |one: &Series| !one.recorded[last] || one.demand_gpus[last] == 0.0;
        self.recording_gap.push(!is_only(&self.series) && self.series.iter().all(silent));
        self.features
            .push(self.calendar.at(self.start.plus_hours((self.hours + usize::from(HorizonHours::MAX)) as i64 - 1)));
        if was_single && !is_only(&self.series) {
            // With a second series it can be told which earlier hours were not recorded.
            self.recording_gap = recording_gaps(&self.series, self.hours);
            let gaps = self.recording_gap.clone();
            self.series.iter_mut().chain(&mut self.pool_peaks).for_each(|one| one.seal(&gaps));
            return Ok(());
        }
        let gap = self.recording_gap[last];
        self.series.iter_mut().chain(&mut self.pool_peaks).for_each(|one| one.seal_last(gap));
        Ok(())
    }

    /// The last hour in which any organization was measured.
    #[must_use]
    pub fn newest_measured(&self) -> Option<HourStart> {
        let last = |series: &Series| series.measured.iter().rposition(|&measured| measured);
        self.series.iter().filter_map(last).max().map(|index| self.hour_at(index))
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
            builder.push(&row.series, row.hour, row.demand.as_gpus())?;
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
        if std::mem::replace(&mut series.recorded[index], true) {
            return Err(PanelError::Twice { series: id.clone(), hour });
        }
        series.demand_gpus[index] = demand_gpus;
        Ok(())
    }

    fn add_series(&mut self, id: &SeriesId) -> Result<(), PanelError> {
        if id.pool.cluster != self.cluster {
            return Err(PanelError::OtherCluster { series: id.clone(), cluster: self.cluster.clone() });
        }
        self.series.insert(id.clone(), Series::empty(id.clone(), self.hours));
        Ok(())
    }

    /// Finds the recording gaps, fills the gaps forward and looks up the calendar.
    ///
    /// # Errors
    /// There is no organization, or no hour.
    pub fn finish(self) -> Result<Panel, PanelError> {
        let (mut pool_peaks, mut series): (Vec<_>, Vec<_>) =
            self.series.into_values().partition(|series| series.id.is_pool_peak());
        if series.is_empty() || self.hours == 0 {
            return Err(PanelError::Empty { cluster: self.cluster });
        }
        let recording_gap = recording_gaps(&series, self.hours);
        for one in series.iter_mut().chain(&mut pool_peaks) {
            one.seal(&recording_gap);
        }
        let known = self.hours + usize::from(HorizonHours::MAX);
        let features = (0..known).map(|hour| self.calendar.at(self.start.plus_hours(hour as i64))).collect();
        Ok(Panel {
            cluster: self.cluster,
            calendar: self.calendar,
            start: self.start,
            hours: self.hours,
            series,
            pool_peaks,
            recording_gap,
            features,
        })
    }
}

fn recording_gaps(series: &[Series], hours: usize) -> Vec<bool> {
    if series.len() < 2 {
        return vec![false; hours];
    }
    let silent = |one: &Series, hour: usize| !one.recorded[hour] || one.demand_gpus[hour] == 0.0;
    (0..hours).map(|hour| series.iter().all(|one| silent(one, hour))).collect()
}

#[cfg(test)]
mod tests;
