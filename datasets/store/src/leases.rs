//! Leases of clusters: one service at a time writes for the pools of a cluster, and every write proves its lease.

use crate::StoreError;
use crate::stored::{valid, whole};
use async_trait::async_trait;
use vocab::ClusterName;

/// The right to write for the pools of a cluster, until another service takes the next epoch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    /// The cluster.
    pub cluster: ClusterName,
    /// The fencing token: each new holder takes the next number.
    pub epoch: u64,
}

/// A lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The cluster and its current epoch.
    pub lease: Lease,
    /// Name of the service that took it.
    pub holder: String,
    /// Address at which other services reach the holder; empty if they cannot.
    pub address: String,
    /// Counter that the holder raises: a lease whose beat stands still has no holder any more.
    pub beat: u64,
    /// Whether its holder has given it back.
    pub released: bool,
}

/// Leases of clusters.
#[async_trait]
pub trait LeaseStore {
    /// The lease of each cluster that ever had one, by cluster.
    async fn leases(&self) -> Result<Vec<LeaseRecord>, StoreError>;

    /// Raises the beats of these leases. Returns those that are still held in that epoch.
    async fn beat(&self, held: &[Lease]) -> Result<Vec<Lease>, StoreError>;

    /// Takes the lease of a cluster if it has not changed since it was `seen`; `seen` is `None` for a cluster that never had
    /// one. Waits for running writes of the epoch before. Returns `None` if another service was faster.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown; [`StoreError::Busy`] if a write of the epoch before does not end
    /// within a second.
    async fn take_lease(
        &self,
        cluster: &ClusterName,
        seen: Option<&LeaseRecord>,
        holder: &str,
        address: &str,
    ) -> Result<Option<Lease>, StoreError>;

    /// Takes every lease from its holder: after a restore no service may continue to write as before.
    async fn outdate_leases(&self) -> Result<(), StoreError>;

    /// Gives a lease back, so that the next service need not wait. A lost lease is ignored.
    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError>;
}

row! {
    pub(crate) struct LeaseRow {
        pub cluster: String,
        pub holder: String,
        pub address: String,
        pub epoch: i64,
        pub beat: i64,
        pub released: bool,
    }
}

impl TryFrom<LeaseRow> for LeaseRecord {
    type Error = StoreError;

    fn try_from(row: LeaseRow) -> Result<Self, StoreError> {
        let cluster = valid("cluster", ClusterName::parse(&row.cluster))?;
        let lease = Lease { cluster, epoch: whole("epoch of a lease", row.epoch)? };
        let beat = whole("beat of a lease", row.beat)?;
        Ok(Self { lease, holder: row.holder, address: row.address, beat, released: row.released })
    }
}

pub(crate) fn fenced(lease: &Lease) -> StoreError {
    StoreError::Fenced { cluster: lease.cluster.to_string(), epoch: lease.epoch }
}
