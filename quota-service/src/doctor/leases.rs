//! Checks of the leader of each cluster, and whether it lives.

use super::Check;
use crate::config::Config;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::{Cluster, LeaseRecord, Store, StoreError};
use vocab::ClusterName;

/// Beats of a lease come this often within its patience.
const BEATS: u32 = 5;
const START: &str = "start quota-service";

/// Watches the beats until each was counted up, or for as long as other services would.
pub async fn of(store: &dyn Store, config: &Config, clusters: &[Cluster]) -> Result<Vec<Check>, StoreError> {
    let first = by_cluster(store).await?;
    let mut last = first.clone();
    let (patience, began) = (config.patience(), Instant::now());
    while stands_still(&first, &last) && began.elapsed() < patience {
        tokio::time::sleep((patience / BEATS).max(Duration::from_millis(10))).await;
        last = by_cluster(store).await?;
    }
    Ok(clusters.iter().map(|cluster| lease(&cluster.name, first.get(&cluster.name), last.get(&cluster.name))).collect())
}

type Leases = BTreeMap<ClusterName, LeaseRecord>;

async fn by_cluster(store: &dyn Store) -> Result<Leases, StoreError> {
    Ok(store.leases().await?.into_iter().map(|record| (record.lease.cluster.clone(), record)).collect())
}

fn stands_still(first: &Leases, last: &Leases) -> bool {
    first.iter().any(|(cluster, before)| !before.released && last.get(cluster) == Some(before))
}

fn lease(cluster: &ClusterName, first: Option<&LeaseRecord>, last: Option<&LeaseRecord>) -> Check {
    let name = format!("leader {cluster}");
    let Some(record) = last else { return Check::warn(name, "no service has held its lease", START) };
    let LeaseRecord { holder, address, lease, .. } = record;
    let at = if address.is_empty() { String::new() } else { format!(" at {address}") };
    if record.released {
        return Check::warn(name, format!("none: {holder} has stopped"), START);
    }
    if first == last {
        let found = format!("{holder}{at} gives no sign of life, and no other service has taken over");
        return Check::warn(name, found, format!("{START}, or look why that one stands still"));
    }
    Check::ok(name, format!("{holder}{at}, epoch {}", lease.epoch))
}
