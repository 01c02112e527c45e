//! Hours that a recorder wrote as zero because it had failed.

use super::ReadReport;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, HourStart, SeriesId};

impl ReadReport {
    /// Leaves out all rows of the hours in which every organization of a cluster is at zero, for a trace that is known to
    /// have zeros where its recorder failed. A cluster with a single organization keeps its rows: its zeros may be demand.
    /// Answers the number of hours that were left out, over all clusters.
    pub fn leave_out_zero_hours(&mut self) -> usize {
        let mut organizations: BTreeMap<&ClusterName, BTreeSet<&SeriesId>> = BTreeMap::new();
        let mut is_zero: BTreeMap<(&ClusterName, HourStart), bool> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| !row.series.is_pool_peak()) {
            let cluster = &row.series.pool.cluster;
            organizations.entry(cluster).or_default().insert(&row.series);
            *is_zero.entry((cluster, row.hour)).or_insert(true) &= row.demand.is_zero();
        }
        let has_several = |cluster: &ClusterName| organizations.get(cluster).is_some_and(|names| names.len() > 1);
        let gaps: BTreeSet<(ClusterName, HourStart)> = is_zero
            .iter()
            .filter(|((cluster, _), is_zero)| **is_zero && has_several(cluster))
            .map(|((cluster, hour), _)| ((*cluster).clone(), *hour))
            .collect();
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
