//! Clusters, and the version of their usage history.

use crate::StoreError;
use crate::stored::valid;
use async_trait::async_trait;
use vocab::ClusterName;

/// A named set of nodes with a time zone and a holiday calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its unique name.
    pub name: ClusterName,
    /// A time zone that `datasets::calendar` knows, such as `Europe/Berlin`.
    pub time_zone: String,
    /// A calendar that `datasets::calendar` knows, or one of [`CalendarStore`](crate::CalendarStore).
    pub calendar: String,
}

/// Clusters.
#[async_trait]
pub trait ClusterStore {
    /// Creates the cluster, or changes its time zone and calendar.
    async fn put_cluster(&self, cluster: &Cluster) -> Result<(), StoreError>;

    /// One cluster; `None` if the name is unknown.
    async fn cluster(&self, name: &ClusterName) -> Result<Option<Cluster>, StoreError>;

    /// All clusters, by name.
    async fn clusters(&self) -> Result<Vec<Cluster>, StoreError>;

    /// A counter that grows with every append that inserted or changed a usage or capacity row of the cluster, and with
    /// retention that removed one. Read it before loading: if it is the same later, the load is still complete.
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

/// The kind of a missing cluster in [`StoreError::NotFound`].
pub(crate) const CLUSTER: &str = "cluster";
