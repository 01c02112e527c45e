//! Who writes for the pools of a cluster: one service at a time, and every write proves that it is still the one.

use crate::StoreError;
use crate::stored::{valid, whole};
use async_trait::async_trait;
use vocab::ClusterName;

/// The right to write for the pools of a cluster, until somebody else takes the next epoch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    pub cluster: ClusterName,
    pub epoch: u64,
}

/// A lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    pub lease: Lease,
    /// The name of the service that took it.
    pub holder: String,
    /// Where other services reach the holder; empty where they cannot.
    pub address: String,
    /// Counted up by the holder: one that stands still has no holder any more.
    pub beat: u64,
    /// Its holder has given it back.
    pub released: bool,
}

#[async_trait]
pub trait LeaseStore {
    /// Every lease that was ever taken, by cluster.
    async fn leases(&self) -> Result<Vec<LeaseRecord>, StoreError>;

    /// Counts the beats of these leases up. Answers those that are still held in that epoch.
    async fn beat(&self, held: &[Lease]) -> Result<Vec<Lease>, StoreError>;

    /// Takes the lease of a cluster, as long as it is as it was `seen`: `None` for one that nobody ever took. Writes of the
    /// epoch before that are under way are waited for. `None` where somebody was faster.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where the cluster is unknown; [`StoreError::Busy`] where a write of the epoch before does not
    /// end within a second.
    async fn take_lease(
        &self,
        cluster: &ClusterName,
        seen: Option<&LeaseRecord>,
        holder: &str,
        address: &str,
    ) -> Result<Option<Lease>, StoreError>;

    /// Takes every lease from whoever holds it: after a restore nobody may go on as before.
    async fn outdate_leases(&self) -> Result<(), StoreError>;

    /// Gives a lease back: the next one need not wait. Nothing happens where it was lost.
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
