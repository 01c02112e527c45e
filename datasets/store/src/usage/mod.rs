//! The usage history: demand of each series in each hour.

pub(crate) mod batch;

use crate::stored::{Stamp, amount, pool, valid, whole};
use crate::{Cluster, StoreError};
use async_trait::async_trait;
use vocab::{CapacityRow, ClusterName, HourDemand, HourStart, Organization, PoolId, SeriesId, UnixSeconds, UsageRow};

/// Counts of the rows of an append by their effect. The sum is their number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// New rows.
    pub inserted: u64,
    /// Rows that replaced a different value.
    pub changed: u64,
    /// Rows equal to the stored value, or repeated within the append.
    pub unchanged: u64,
}

/// Result of an append.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppendReport {
    /// Counts of usage rows.
    pub usage: Merged,
    /// Counts of capacity rows.
    pub capacity: Merged,
}

/// One series, from its first row to its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSummary {
    /// The series.
    pub series: SeriesId,
    /// Its first hour with a row.
    pub first: HourStart,
    /// Its last hour with a row.
    pub last: HourStart,
    /// Number of hours with a row; gaps have none.
    pub rows: u64,
    /// Time of the last insert or change, by the clock of the database.
    pub changed_at: UnixSeconds,
}

/// Receives the rows of a load.
pub type UsageSink<'a> = &'a mut (dyn FnMut(&SeriesId, HourStart, HourDemand) + Send);

/// Batches of rows, or why there is none.
pub type UsageBatches<'a> = &'a mut (dyn Iterator<Item = Result<Vec<UsageRow>, String>> + Send);

/// The usage history.
#[async_trait]
pub trait UsageStore {
    /// Inserts rows and replaces those whose value differs, of any number of clusters, in any order. A row with the stored peak that
    /// does not know the end of its hour leaves the end that is stored.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if a cluster is unknown; [`StoreError::Contradiction`] if the rows hold two values for the
    /// same series and hour.
    async fn append(&self, rows: &[UsageRow], capacity: &[CapacityRow]) -> Result<AppendReport, StoreError>;

    /// Appends batches one after the other, in one transaction: of more rows than memory holds, the hours of each batch after those
    /// before it. `clusters` are those of all rows: they are created in the same transaction, or get their time zone and calendar, so that
    /// an append that fails leaves no cluster without rows.
    ///
    /// # Errors
    /// As [`append`](Self::append), within a batch; [`StoreError::NoBatch`] if a batch cannot be had.
    async fn append_batches(
        &self,
        clusters: &[Cluster],
        batches: UsageBatches<'_>,
        capacity: &[CapacityRow],
    ) -> Result<AppendReport, StoreError>;

    /// Passes every row of the cluster at `from` or later and before `to`, as of one instant, to `sink`: series in their
    /// order, hours ascending. Holds one series in memory.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]. The sink may have received rows before an error.
    async fn load_usage(
        &self,
        cluster: &ClusterName,
        from: HourStart,
        to: HourStart,
        sink: UsageSink<'_>,
    ) -> Result<(), StoreError>;

    /// As [`load_usage`](Self::load_usage), for one pool and in any order.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if its cluster is unknown.
    async fn load_pool_usage(
        &self,
        pool: &PoolId,
        from: HourStart,
        to: HourStart,
        sink: UsageSink<'_>,
    ) -> Result<(), StoreError>;

    /// First and last hour with a row of an organization other than `*`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn usage_range(&self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, StoreError>;

    /// First and last hour with any row, those of the pool peaks (`*`) included.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn measured_range(&self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, StoreError>;

    /// Whether the end of any hour of a cluster is known. Where none is, it reads all rows.
    async fn knows_ends(&self, cluster: &ClusterName) -> Result<bool, StoreError>;

    /// Number of organizations that ever had a row in the cluster. A name in two pools counts twice; `*` does not count.
    async fn organization_count(&self, cluster: &ClusterName) -> Result<u64, StoreError>;

    /// Those organizations, in order.
    async fn organizations(&self, cluster: &ClusterName) -> Result<Vec<SeriesId>, StoreError>;

    /// Every series of the cluster that has rows, in order. It counts rows, so it reads all of them.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn describe_usage(&self, cluster: &ClusterName) -> Result<Vec<SeriesSummary>, StoreError>;

    /// Deletes all rows of hours before `before`, of every cluster. Returns their number.
    async fn delete_usage_before(&self, before: HourStart) -> Result<u64, StoreError>;
}

impl Merged {
    /// Counts of `rows` rows, of which the rest is unchanged.
    fn of(rows: usize, inserted: u64, changed: u64) -> Self {
        let unchanged = (rows as u64).checked_sub(inserted + changed).expect("each row is written at most once");
        Self { inserted, changed, unchanged }
    }

    pub(crate) const fn wrote(self) -> bool {
        self.inserted + self.changed > 0
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.inserted += more.inserted;
        self.changed += more.changed;
        self.unchanged += more.unchanged;
    }
}

impl AppendReport {
    pub(crate) fn add(&mut self, more: Self) {
        self.usage.add(more.usage);
        self.capacity.add(more.capacity);
    }
}

row! {
    pub(crate) struct SummaryRow {
        pub cluster: String,
        pub gpu_model: String,
        pub organization: String,
        pub first_hour: Stamp,
        pub last_hour: Stamp,
        pub row_count: i64,
        pub changed_at: Stamp,
    }
}

impl TryFrom<SummaryRow> for SeriesSummary {
    type Error = StoreError;

    fn try_from(row: SummaryRow) -> Result<Self, StoreError> {
        Ok(Self {
            series: series(&row.cluster, &row.gpu_model, &row.organization)?,
            first: row.first_hour.hour()?,
            last: row.last_hour.hour()?,
            rows: whole("number of rows", row.row_count)?,
            changed_at: row.changed_at.0,
        })
    }
}

/// Demand of an hour, from its row. A program of before ends of hours corrects the peak alone, so an end above it is that of another
/// peak, and not known.
pub(crate) fn hour_demand(demand_milli: i64, at_end_milli: Option<i64>) -> Result<HourDemand, StoreError> {
    let at_end = at_end_milli.map(|milli| amount("demand at the end", milli)).transpose()?;
    let peak = amount("demand", demand_milli)?;
    Ok(HourDemand { peak, at_end: at_end.filter(|at_end| *at_end <= peak) })
}

/// A series, from the names in its row.
pub(crate) fn series(cluster: &str, gpu_model: &str, organization: &str) -> Result<SeriesId, StoreError> {
    let organization = valid("organization", Organization::parse(organization))?;
    Ok(SeriesId { pool: pool(cluster, gpu_model)?, organization })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::MilliGpus;

    #[test]
    fn an_end_above_the_peak_is_that_of_another_peak_and_not_known() {
        let at_end = |end| hour_demand(3_000, end).unwrap().at_end;
        assert_eq!([Some(2_000), Some(3_000), Some(4_000), None].map(at_end), {
            let [less, same] = [2, 3].map(|gpus| Some(MilliGpus::from_gpus(gpus)));
            [less, same, None, None]
        });
        assert!(hour_demand(3_000, Some(-1)).is_err());
    }
}
