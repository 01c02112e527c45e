//! Hours that a recorder wrote as zero because it had failed.

use super::ReadReport;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, HourStart, MilliGpus, SeriesId};

/// Finds the hours in which every organization of a cluster is at zero, of rows in any order. A cluster with a single
/// organization has none: its zeros may be demand.
#[derive(Debug, Default)]
pub struct ZeroHours {
    organizations: BTreeMap<ClusterName, BTreeSet<SeriesId>>,
    is_zero: BTreeMap<ClusterName, BTreeMap<HourStart, bool>>,
}

impl ZeroHours {
    /// Adds a row; those of the pool's own peak say nothing.
    pub fn add(&mut self, series: &SeriesId, hour: HourStart, demand: MilliGpus) {
        if series.is_pool_peak() {
            return;
        }
        let cluster = &series.pool.cluster;
        if !self.organizations.get(cluster).is_some_and(|known| known.contains(series)) {
            self.organizations.entry(cluster.clone()).or_default().insert(series.clone());
            self.is_zero.entry(cluster.clone()).or_default();
        }
        if let Some(hours) = self.is_zero.get_mut(cluster) {
            *hours.entry(hour).or_insert(true) &= demand.is_zero();
        }
    }

    /// The hours, by cluster.
    #[must_use]
    pub fn finish(self) -> BTreeSet<(ClusterName, HourStart)> {
        let has_several = |cluster: &ClusterName| self.organizations.get(cluster).is_some_and(|names| names.len() > 1);
        let of_cluster = |(cluster, hours): (&ClusterName, &BTreeMap<HourStart, bool>)| {
            let zero = hours.iter().filter(|(_, is_zero)| **is_zero).map(|(hour, _)| (cluster.clone(), *hour));
            zero.collect::<Vec<_>>()
        };
        self.is_zero.iter().filter(|(cluster, _)| has_several(cluster)).flat_map(of_cluster).collect()
    }
}

impl ReadReport {
    /// Leaves out all rows of the hours in which every organization of a cluster is at zero, for a trace that is known to
    /// have zeros where its recorder failed. Answers the number of hours that were left out, over all clusters.
    pub fn leave_out_zero_hours(&mut self) -> usize {
        let mut zero_hours = ZeroHours::default();
        self.rows.iter().for_each(|row| zero_hours.add(&row.series, row.hour, row.demand));
        let gaps = zero_hours.finish();
        if !gaps.is_empty() {
            self.rows.retain(|row| !gaps.contains(&(row.series.pool.cluster.clone(), row.hour)));
        }
        gaps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::tests::rows;

    fn left(picture: &str) -> (usize, usize) {
        let mut report = ReadReport { rows: rows(picture), ..ReadReport::default() };
        (report.leave_out_zero_hours(), report.rows.len())
    }

    #[test]
    fn hours_of_zeros_are_left_out_of_a_trace_that_has_them_for_gaps() {
        assert_eq!(left("a 3 0 0 .\nb 2 0 1 0\n* 4 0 1 0"), (2, 6), "the pool's own peak goes with them");
    }

    #[test]
    fn zeros_of_a_single_organization_stay() {
        assert_eq!(left("a 3 0 1\n* 3 0 1"), (0, 6));
    }
}
