//! Hours of zeros that look like a recorder that failed, or like maintenance.

use command_line::print_notice;
use std::collections::BTreeMap;
use vocab::{ClusterName, HourDemand, HourStart, SeriesId};

/// So many organizations that fall to zero in one hour, and come back in one, do not do so by themselves.
const AT_ONCE: usize = 3;
/// Zeros in more than one of so many hours are a habit, such as nights.
const RARE: usize = 20;

/// Looks for such hours while rows pass by, hours rising.
#[derive(Debug, Default)]
pub struct Outages {
    clusters: BTreeMap<ClusterName, OfCluster>,
}

#[derive(Debug, Default)]
struct OfCluster {
    hours: usize,
    zero_hours: usize,
    /// Organizations with demand in the hour before.
    active: usize,
    /// First hour and length of the zeros that last.
    run: Option<(HourStart, usize)>,
    /// First hour of zeros between which many came and went at once, and the number of all such hours.
    found: Option<(HourStart, usize)>,
}

impl Outages {
    /// Notes the rows of an hour; those of the pool's own peak say nothing.
    pub fn note(&mut self, hour: HourStart, rows: &[(&SeriesId, HourDemand)]) {
        let mut counts: BTreeMap<&ClusterName, usize> = BTreeMap::new();
        for (series, demand) in rows.iter().filter(|(series, _)| !series.is_pool_peak()) {
            *counts.entry(&series.pool.cluster).or_default() += usize::from(!demand.peak.is_zero());
        }
        for (name, active) in counts {
            if !self.clusters.contains_key(name) {
                self.clusters.insert(name.clone(), OfCluster::default());
            }
            if let Some(cluster) = self.clusters.get_mut(name) {
                cluster.note(hour, active);
            }
        }
    }

    /// Sentences for the user, one for each cluster that has such hours.
    pub fn notices(&self) -> Vec<String> {
        let rare = self.clusters.iter().filter(|(_, cluster)| cluster.zero_hours * RARE <= cluster.hours);
        let notice = |(name, cluster): (&ClusterName, &OfCluster)| {
            let (first, hours) = cluster.found?;
            Some(format!(
                "note: cluster {name}: every organization is at zero at once in {hours} hours, the first at {first}, and {AT_ONCE} or more \
                 have demand before and after. If the recorder had failed or nodes were in maintenance, these zeros make bounds too low: \
                 ingest into a new database with --zero-hours gap"
            ))
        };
        rare.filter_map(notice).collect()
    }

    /// Prints them.
    pub fn tell(&self) {
        for notice in self.notices() {
            print_notice(format_args!("{notice}"));
        }
    }
}

impl OfCluster {
    fn note(&mut self, hour: HourStart, active: usize) {
        self.hours += 1;
        if active == 0 {
            self.zero_hours += 1;
            // Where few were active before, they may have ended by themselves.
            self.run = match self.run {
                Some((first, length)) => Some((first, length + 1)),
                None => (self.active >= AT_ONCE).then_some((hour, 1)),
            };
        } else if let Some((first, length)) = self.run.take()
            && active >= AT_ONCE
        {
            let (first, before) = self.found.unwrap_or((first, 0));
            self.found = Some((first, before + length));
        }
        self.active = active;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{MilliGpus, Organization, PoolId};

    /// Notices of four organizations, of which so many are active hour by hour.
    fn notices(active: impl IntoIterator<Item = usize>) -> Vec<String> {
        let pool = PoolId::parse("earth:A100").unwrap();
        let names = ["a", "b", "c", "d"].map(|name| Organization::parse(name).unwrap());
        let series = names.map(|organization| SeriesId { pool: pool.clone(), organization });
        let mut outages = Outages::default();
        for (at, active) in (0_i64..).zip(active) {
            let peak = |index: usize| MilliGpus::from_gpus(u32::from(index < active));
            let demand = |index| HourDemand { peak: peak(index), at_end: None };
            let rows: Vec<_> = series.iter().enumerate().map(|(index, series)| (series, demand(index))).collect();
            outages.note(HourStart::from_unix_s(at * 3_600).unwrap(), &rows);
        }
        outages.notices()
    }

    #[test]
    fn zeros_of_all_at_once_that_are_rare_are_named_with_their_first_hour() {
        let hours = |zeros: usize| [vec![4; 30], vec![0; zeros], vec![3; 70]].concat();
        let found = notices(hours(5));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("in 5 hours, the first at 1970-01-02T06:00:00Z"), "{found:?}");
        assert_eq!(notices(hours(6)), [""; 0], "more than one in twenty");
        assert_eq!(notices(hours(0)), [""; 0]);
    }

    #[test]
    fn organizations_that_end_one_by_one_and_zeros_that_last_to_the_end_are_demand() {
        let one_by_one = [vec![4; 50], vec![3, 2, 1, 0, 0, 4], vec![4; 50]].concat();
        assert_eq!(notices(one_by_one), [""; 0]);
        let to_the_end = [vec![4; 100], vec![0, 0]].concat();
        assert_eq!(notices(to_the_end), [""; 0]);
        let nights = (0..240).map(|hour| if hour % 24 < 8 { 0 } else { 4 });
        assert_eq!(notices(nights), [""; 0]);
    }
}
