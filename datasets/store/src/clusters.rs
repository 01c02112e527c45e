//! Clusters, and the version of what is known about their usage.

use crate::StoreError;
use crate::stored::valid;
use async_trait::async_trait;
use vocab::ClusterName;

/// A set of nodes with one calendar. Zone and calendar are names that `datasets::calendar` understands; the days of a
/// user's own calendar are in `calendars`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub name: ClusterName,
    pub time_zone: String,
    pub calendar: String,
}

#[async_trait]
pub trait ClusterStore {
    /// Creates the cluster, or changes its zone and calendar.
    async fn put_cluster(&self, cluster: &Cluster) -> Result<(), StoreError>;

    async fn cluster(&self, name: &ClusterName) -> Result<Option<Cluster>, StoreError>;

    /// All, by name.
    async fn clusters(&self) -> Result<Vec<Cluster>, StoreError>;

    /// A counter that grows with every append that inserted or changed a usage or capacity row of the cluster, and with
    /// retention that removed one. Read it before loading: whoever reads the same version later has missed nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn usage_version(&self, name: &ClusterName) -> Result<i64, StoreError>;
}

row! {
    pub(crate) struct ClusterRow {
        pub name: String,
        pub time_zone: String,
        pub calendar: String,
    }
}

impl TryFrom<ClusterRow> for Cluster {
    type Error = StoreError;

    fn try_from(row: ClusterRow) -> Result<Self, StoreError> {
        let name = valid("cluster", ClusterName::parse(&row.name))?;
        Ok(Self { name, time_zone: row.time_zone, calendar: row.calendar })
    }
}

pub(crate) const WHAT: &str = "cluster";
