//! Rows of an append: sorted, each series named once, checked for contradictions. Pure.

use super::Merged;
use crate::StoreError;
use crate::stored::Span;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use vocab::{CapacityRow, ClusterName, HourDemand, HourStart, SeriesId, UsageRow};

/// The rows of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    /// In order.
    pub series: Vec<&'a SeriesId>,
    /// By hour, then series; each pair once.
    pub rows: Vec<Row>,
    /// By pool, then hour; each pair once.
    pub capacity: Vec<&'a CapacityRow>,
    /// Equal rows that were left out.
    pub repeated: Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub hour: HourStart,
    /// Position in the batch's list of series.
    pub series: u32,
    pub demand: HourDemand,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Repeated {
    pub usage: usize,
    pub capacity: usize,
}

impl Batch<'_> {
    /// The distinct hours of its rows.
    pub fn hours(&self) -> impl Iterator<Item = HourStart> {
        self.rows.chunk_by(|a, b| a.hour == b.hour).map(|group| group[0].hour)
    }

    /// Over all rows.
    pub fn span(&self) -> Span {
        self.rows.first().zip(self.rows.last()).map(|(first, last)| (first.hour, last.hour))
    }

    /// Over the rows of organizations other than `*`.
    pub fn demand_span(&self) -> Span {
        let mut rows = self.rows.iter().filter(|row| !self.series[row.series as usize].is_pool_peak());
        let first = rows.next()?;
        Some((first.hour, rows.next_back().unwrap_or(first).hour))
    }

    /// Counts of all usage rows of the append, repeated ones included.
    pub fn merged(&self, inserted: u64, changed: u64) -> Merged {
        Merged::of(self.rows.len() + self.repeated.usage, inserted, changed)
    }

    /// Counts of all capacity rows of the append, repeated ones included.
    pub fn merged_capacity(&self, inserted: u64, changed: u64) -> Merged {
        Merged::of(self.capacity.len() + self.repeated.capacity, inserted, changed)
    }
}

/// Rows by cluster, in the order of clusters, so that all writers lock several clusters in the same order.
pub(crate) fn by_cluster<'a>(
    rows: &'a [UsageRow],
    capacity: &'a [CapacityRow],
) -> Result<BTreeMap<&'a ClusterName, Batch<'a>>, StoreError> {
    let mut batches = grouped(rows);
    for row in capacity {
        batches.entry(&row.pool.cluster).or_default().capacity.push(row);
    }
    for batch in batches.values_mut() {
        let Batch { series, rows, capacity, repeated } = batch;
        rows.sort_unstable_by_key(|row| (row.hour, row.series));
        repeated.usage = joined(rows)
            .map_err(|(row, other)| contradiction(series[row.series as usize], row.hour, [row.demand, other]))?;
        capacity.sort_unstable_by(|a, b| (&a.pool, a.from).cmp(&(&b.pool, b.from)));
        repeated.capacity = without_repeats(capacity).map_err(|rows: (&CapacityRow, _)| {
            let of = |row: &CapacityRow| HourDemand::of_peak(row.capacity);
            contradiction(&rows.0.pool, rows.0.from, [of(rows.0), of(rows.1)])
        })?;
    }
    Ok(batches)
}

fn grouped(rows: &[UsageRow]) -> BTreeMap<&ClusterName, Batch<'_>> {
    let (mut series, places) = interned(rows);
    // Places are in the order of appearance; ranks are in the order of series, counted from the first of a cluster.
    let mut order: Vec<u32> = (0..series.len() as u32).collect();
    order.sort_unstable_by_key(|&place| series[place as usize]);
    series.sort_unstable();
    let mut batches: Vec<(&ClusterName, Batch<'_>)> = Vec::new();
    let mut homes = vec![(0, 0); series.len()];
    for (&place, id) in order.iter().zip(&series) {
        if batches.last().is_none_or(|(cluster, _)| **cluster != id.pool.cluster) {
            batches.push((&id.pool.cluster, Batch::default()));
        }
        let home = batches.len() - 1;
        let list = &mut batches[home].1.series;
        homes[place as usize] = (home, list.len() as u32);
        list.push(*id);
    }
    for (row, place) in rows.iter().zip(places) {
        let (home, series) = homes[place as usize];
        batches[home].1.rows.push(Row { hour: row.hour, series, demand: row.hour_demand() });
    }
    batches.into_iter().collect()
}

/// The distinct series in the order of their appearance, and for each row the position of its series among them. Rows
/// mostly come series by series or hour by hour in the same order, so the series after the last one is tried first:
/// it saves the hash in nearly all rows.
fn interned(rows: &[UsageRow]) -> (Vec<&SeriesId>, Vec<u32>) {
    let mut series: Vec<&SeriesId> = Vec::new();
    let mut known = HashMap::new();
    let mut place = 0;
    let places = rows.iter().map(|row| {
        let next = if place + 1 < series.len() { place + 1 } else { 0 };
        place = if series.get(place).is_some_and(|last| **last == row.series) {
            place
        } else if series.get(next).is_some_and(|guess| **guess == row.series) {
            next
        } else {
            *known.entry(&row.series).or_insert_with(|| {
                series.push(&row.series);
                series.len() - 1
            })
        };
        place as u32
    });
    let places = places.collect();
    (series, places)
}

/// Keeps one row of each group of rows of one series and hour, which are neighbours, with what they know together. Returns the number of
/// removed rows, or the first row that is contradicted, and what contradicts it.
fn joined(rows: &mut Vec<Row>) -> Result<usize, (Row, HourDemand)> {
    let before = rows.len();
    let mut contradicted = None;
    rows.dedup_by(|row, kept| {
        let same = (row.hour, row.series) == (kept.hour, kept.series);
        match kept.demand.joined(row.demand) {
            _ if !same => false,
            Some(both) => {
                kept.demand = both;
                true
            }
            None => {
                contradicted.get_or_insert((*kept, row.demand));
                true
            }
        }
    });
    contradicted.map_or(Ok(before - rows.len()), Err)
}

/// Keeps one row of each group of equal rows, which are neighbours. Returns the number of removed rows, or the two rows of
/// the first group whose values differ.
fn without_repeats<'a>(rows: &mut Vec<&'a CapacityRow>) -> Result<usize, (&'a CapacityRow, &'a CapacityRow)> {
    let key = |row: &&'a CapacityRow| (&row.pool, row.from);
    let differ = |pair: &&[&'a CapacityRow]| key(&pair[0]) == key(&pair[1]) && pair[0].capacity != pair[1].capacity;
    if let Some(pair) = rows.windows(2).find(differ) {
        return Err((pair[0], pair[1]));
    }
    let before = rows.len();
    rows.dedup_by(|row, kept| key(row) == key(kept));
    Ok(before - rows.len())
}

fn contradiction(what: &impl Display, hour: HourStart, values: [HourDemand; 2]) -> StoreError {
    let [first, second] = values;
    StoreError::Contradiction { what: what.to_string(), hour, first, second }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{MilliGpus, Organization, PoolId};

    /// Lines of `CLUSTER:MODEL:ORGANIZATION HOUR GPUS`.
    fn rows(text: &str) -> Vec<UsageRow> {
        let parse = |line: &str| {
            let [series, hour, gpus] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("three words: {line}") };
            let (pool, organization) = series.rsplit_once(':').unwrap();
            UsageRow {
                series: SeriesId {
                    pool: PoolId::parse(pool).unwrap(),
                    organization: Organization::parse(organization).unwrap(),
                },
                hour: HourStart::from_unix_s(hour.parse::<i64>().unwrap() * 3_600).unwrap(),
                demand: MilliGpus::parse(gpus).unwrap(),
                at_end: None,
            }
        };
        text.lines().map(|line| parse(line.trim())).collect()
    }

    fn shown(batches: &BTreeMap<&ClusterName, Batch<'_>>) -> String {
        let row = |batch: &Batch<'_>, row: &Row| {
            format!("{} {} {}", batch.series[row.series as usize], row.hour.unix_s() / 3_600, row.demand.peak)
        };
        let lines = batches.values().flat_map(|batch| batch.rows.iter().map(move |line| row(batch, line)));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn rows_in_any_order_come_out_by_cluster_hour_and_series() {
        let rows = rows("b:V100:x 2 1\na:V100:y 2 2\na:V100:x 1 3\nb:V100:x 1 4\na:A100:y 2 5\na:V100:x 2 6");
        let batches = by_cluster(&rows, &[]).unwrap();
        assert_eq!(
            shown(&batches),
            "a:V100:x 1 3.000\na:A100:y 2 5.000\na:V100:x 2 6.000\na:V100:y 2 2.000\nb:V100:x 1 4.000\nb:V100:x 2 1.000"
        );
        assert_eq!(batches.values().map(|batch| batch.series.len()).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn an_equal_row_is_counted_and_a_different_one_is_refused() {
        let repeated = rows("a:V100:x 1 3\na:V100:y 1 3\na:V100:x 1 3");
        let batches = by_cluster(&repeated, &[]).unwrap();
        let batch = batches.values().next().unwrap();
        assert_eq!((batch.rows.len(), batch.repeated.usage), (2, 1));
        let contradicting = rows("a:V100:x 1 3\na:V100:x 1 4");
        let fault = by_cluster(&contradicting, &[]).unwrap_err().to_string();
        assert_eq!(
            fault,
            "a:V100:x at 1970-01-01T01:00:00Z: one append holds both 3.000 GPUs and 4.000 GPUs; keep one of them"
        );
    }

    #[test]
    fn the_peak_of_the_pool_does_not_count_as_demand() {
        let rows = rows("a:V100:* 1 3\na:V100:x 2 3\na:V100:* 3 3");
        let batches = by_cluster(&rows, &[]).unwrap();
        let hours = |span: Span| span.map(|(first, last)| (first.unix_s() / 3_600, last.unix_s() / 3_600));
        let batch = batches.values().next().unwrap();
        assert_eq!((hours(batch.span()), hours(batch.demand_span())), (Some((1, 3)), Some((2, 2))));
    }
}
