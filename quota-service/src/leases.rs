//! Which clusters this service writes for. Several services on one database share the work of answering; for each cluster one
//! of them decides, and every write of it proves that it is still the one ([`Store::held`]).
//!
//! The holder of a lease counts its beat up. A beat that stands still for the patience of an observer, by the observer's own
//! clock, has no holder any more. So clocks need not agree.

use arc_swap::ArcSwap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{Lease, LeaseRecord, Store, StoreError};
use vocab::ClusterName;

/// Beats in the patience of the others: so many may be late without a lease being lost.
const BEATS: u32 = 5;

/// A cluster that this service writes for.
#[derive(Clone)]
pub struct Led {
    pub epoch: u64,
    /// Refuses to write once the lease is lost.
    pub store: Arc<dyn Store>,
}

/// Leader of a cluster that is another service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    pub holder: String,
    pub epoch: u64,
    /// Where it is reached; empty where it is not.
    pub address: String,
}

impl Leader {
    /// Why a pool of the cluster has no quota here.
    #[must_use]
    pub fn no_quota(&self) -> String {
        format!("{} leads the cluster, and has stored no quota of this pool yet: retry", self.holder)
    }
}

/// Changes of one update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub gained: Vec<ClusterName>,
    pub lost: Vec<ClusterName>,
}

/// A lease as it was first seen with its present beat.
struct Seen {
    record: LeaseRecord,
    since: Instant,
}

#[derive(Default)]
struct Watch {
    seen: BTreeMap<ClusterName, Seen>,
    /// Whether the leases were read once: before, a lease under the name of this service is from before its start.
    has_looked: bool,
    /// The epochs of those that could not be taken then.
    before: BTreeMap<ClusterName, u64>,
}

/// The leases, held and watched.
pub struct Leases {
    name: String,
    address: ArcSwap<String>,
    patience: Duration,
    /// The clusters that may be written for; empty for all.
    only: BTreeSet<ClusterName>,
    /// Under a virtual clock nothing is written: every service is on its own.
    alone: Option<Arc<dyn Store>>,
    led: ArcSwap<BTreeMap<ClusterName, Led>>,
    others: ArcSwap<BTreeMap<ClusterName, Leader>>,
    watch: Mutex<Watch>,
}

impl Leases {
    /// Of a service of this name, which no other one that runs has. A lease under the same name that is found at the start is
    /// that of a service that has ended, and is taken at once.
    #[must_use]
    pub fn new(name: String, patience: Duration) -> Self {
        Self {
            name,
            address: ArcSwap::default(),
            patience,
            only: BTreeSet::new(),
            alone: None,
            led: ArcSwap::default(),
            others: ArcSwap::default(),
            watch: Mutex::default(),
        }
    }

    /// Of these clusters alone; of all where there are none. What was held of others before the start is given back.
    #[must_use]
    pub fn only(self, clusters: BTreeSet<ClusterName>) -> Self {
        Self { only: clusters, ..self }
    }

    fn is_ours(&self, cluster: &ClusterName) -> bool {
        self.only.is_empty() || self.only.contains(cluster)
    }

    /// Of a service that writes nothing, and waits for no other one; it looks for new tokens as often as others.
    #[must_use]
    pub fn alone(store: Arc<dyn Store>, patience: Duration) -> Self {
        Self { alone: Some(store), ..Self::new(String::new(), patience) }
    }

    /// Says where other services reach this one.
    pub fn reached_at(&self, address: String) {
        self.address.store(Arc::new(address));
    }

    /// Between two looks.
    #[must_use]
    pub fn beat_every(&self) -> Duration {
        (self.patience / BEATS).max(Duration::from_millis(10))
    }

    /// Lease of a cluster, where this service holds it.
    #[must_use]
    pub fn led(&self, cluster: &ClusterName) -> Option<Led> {
        match &self.alone {
            Some(store) => Some(Led { epoch: 0, store: store.clone() }),
            None => self.led.load().get(cluster).cloned(),
        }
    }

    /// Leader of a cluster; `None` where it is this service, or none is known.
    #[must_use]
    pub fn leader(&self, cluster: &ClusterName) -> Option<Leader> {
        self.others.load().get(cluster).cloned()
    }

    /// Whether another service writes for any cluster.
    #[must_use]
    pub fn follows(&self) -> bool {
        !self.others.load().is_empty()
    }

    /// The clusters that this service writes for.
    #[must_use]
    pub fn led_clusters(&self) -> BTreeSet<ClusterName> {
        self.led.load().keys().cloned().collect()
    }

    /// Whether this service writes for any cluster.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.alone.is_some() || !self.led.load().is_empty()
    }

    /// Counts the beats of what is held, takes what has no holder, and sees who holds the rest.
    ///
    /// # Errors
    /// The database does not answer: what was held counts as held, and each write will tell.
    pub async fn look(&self, store: &Arc<dyn Store>) -> Result<Changes, StoreError> {
        if self.alone.is_some() {
            return Ok(Changes::default());
        }
        let mut changes = Changes::default();
        let mut led = BTreeMap::clone(&self.led.load());
        // 1. What is held.
        let held: Vec<Lease> =
            led.iter().map(|(cluster, led)| Lease { cluster: cluster.clone(), epoch: led.epoch }).collect();
        let still = if held.is_empty() { Vec::new() } else { store.beat(&held).await? };
        for lease in held.into_iter().filter(|lease| !still.contains(lease)) {
            led.remove(&lease.cluster);
            changes.lost.push(lease.cluster);
        }
        // 2. What has no holder.
        let mut records: BTreeMap<ClusterName, LeaseRecord> =
            store.leases().await?.into_iter().map(|record| (record.lease.cluster.clone(), record)).collect();
        self.give_back(store, &mut records).await;
        for cluster in store.clusters().await?.into_iter().filter(|cluster| self.is_ours(&cluster.name)) {
            let record = records.get(&cluster.name);
            if led.contains_key(&cluster.name) || !self.is_free(record) {
                continue;
            }
            let taken = store.take_lease(&cluster.name, record, &self.name, self.address.load().as_str()).await;
            match taken {
                Ok(Some(lease)) => {
                    led.insert(cluster.name.clone(), Led { epoch: lease.epoch, store: store.held(lease) });
                    records.remove(&cluster.name);
                    changes.gained.push(cluster.name);
                }
                Ok(None) => {}
                // A write of the holder before is under way, or the cluster is new: it is tried again.
                Err(fault) => tracing::info!(cluster = %cluster.name, %fault, "cannot take the lease yet"),
            }
        }
        // 3. Who holds the rest.
        let before = self.watch(&records);
        // One that was given back has no holder, and nothing is forwarded to whom it was.
        // Nor has one that stands under this name from before its start, and cannot be taken yet. A later one of this name is of another
        // service that runs, by mistake, under the same name: it writes, and this one follows it.
        let is_from_before = |LeaseRecord { lease, holder, .. }: &LeaseRecord| {
            *holder == self.name && before.get(&lease.cluster) == Some(&lease.epoch)
        };
        let leads = |record: &LeaseRecord| {
            !record.released && !is_from_before(record) && !led.contains_key(&record.lease.cluster)
        };
        let others = records.into_values().filter(leads);
        let leader = |record: LeaseRecord| {
            let LeaseRecord { lease, holder, address, .. } = record;
            (lease.cluster, Leader { holder, epoch: lease.epoch, address })
        };
        self.others.store(Arc::new(others.map(leader).collect()));
        self.led.store(Arc::new(led));
        Ok(changes)
    }

    /// Gives back, once, what stands under the name of this service from before its start and is for others to write now.
    async fn give_back(&self, store: &Arc<dyn Store>, records: &mut BTreeMap<ClusterName, LeaseRecord>) {
        if self.watch.lock().unwrap_or_else(PoisonError::into_inner).has_looked {
            return;
        }
        for record in records.values_mut() {
            let LeaseRecord { lease, holder, released, .. } = record;
            if *released || *holder != self.name || self.is_ours(&lease.cluster) {
                continue;
            }
            match store.release_lease(lease).await {
                Ok(()) => *released = true,
                Err(fault) => tracing::info!(cluster = %lease.cluster, %fault, "cannot release the lease"),
            }
        }
    }

    /// Whether a lease may be taken: it is new, it was given back, it is from before the start of this service, or its
    /// beat stands still.
    fn is_free(&self, record: Option<&LeaseRecord>) -> bool {
        let Some(record) = record else { return true };
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let is_mine_from_before = !watch.has_looked && record.holder == self.name;
        let seen = watch.seen.get(&record.lease.cluster).filter(|seen| seen.record == *record);
        record.released || is_mine_from_before || seen.is_some_and(|seen| seen.since.elapsed() >= self.patience)
    }

    /// Watches the beats of others. Returns the epochs of leases that stand under this name from before the start.
    fn watch(&self, records: &BTreeMap<ClusterName, LeaseRecord>) -> BTreeMap<ClusterName, u64> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if !watch.has_looked {
            let mine = records.values().filter(|record| record.holder == self.name);
            watch.before = mine.map(|record| (record.lease.cluster.clone(), record.lease.epoch)).collect();
        }
        watch.has_looked = true;
        watch.seen.retain(|cluster, _| records.contains_key(cluster));
        for (cluster, record) in records {
            if watch.seen.get(cluster).is_none_or(|seen| seen.record != *record) {
                watch.seen.insert(cluster.clone(), Seen { record: record.clone(), since: Instant::now() });
            }
        }
        watch.before.clone()
    }

    /// Whether another service that runs under the name of this one writes for a cluster: a mistake in the settings.
    #[must_use]
    pub fn has_namesake(&self, cluster: &ClusterName) -> bool {
        self.leader(cluster).is_some_and(|leader| leader.holder == self.name)
    }

    /// Releases all leases: no service has to wait for their expiry. A lease that cannot be released expires.
    pub async fn release(&self, store: &dyn Store) {
        let led = self.led.swap(Arc::default());
        for (cluster, led) in led.iter() {
            let lease = Lease { cluster: cluster.clone(), epoch: led.epoch };
            if let Err(fault) = store.release_lease(&lease).await {
                tracing::info!(%cluster, %fault, "cannot release the lease: it expires");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::ClusterName;

    fn names(text: &[&str]) -> Vec<ClusterName> {
        text.iter().map(|name| ClusterName::parse(name).unwrap()).collect()
    }

    async fn store(folder: &tempfile::TempDir) -> Arc<dyn Store> {
        let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
        let store = store::connect(&url).await.unwrap();
        for name in names(&["earth", "mars", "venus"]) {
            let cluster = store::Cluster { name, time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
            store.put_cluster(&cluster).await.unwrap();
        }
        store
    }

    fn shard(name: &str, clusters: &[&str]) -> Leases {
        Leases::new(name.to_owned(), Duration::from_hours(1)).only(names(clusters).into_iter().collect())
    }

    #[tokio::test]
    async fn services_that_share_the_clusters_take_the_leases_of_their_own_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let (one, two) = (shard("one", &["earth", "venus"]), shard("two", &["mars"]));
        assert_eq!(one.look(&store).await.unwrap().gained, names(&["earth", "venus"]));
        assert_eq!(two.look(&store).await.unwrap().gained, names(&["mars"]));
        assert_eq!(one.look(&store).await.unwrap(), Changes::default());
        let mars = &names(&["mars"])[0];
        assert!(one.led(mars).is_none());
        assert_eq!(one.leader(mars).unwrap().holder, "two");
    }

    #[tokio::test]
    async fn a_service_whose_lease_another_one_of_its_name_has_taken_follows_that_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let (first, second) = (shard("one", &["earth"]), shard("one", &["earth"]));
        let earth = &names(&["earth"])[0];
        let _ = first.look(&store).await.unwrap();
        assert_eq!(second.look(&store).await.unwrap().gained, names(&["earth"]), "as after a restart");
        assert_eq!(first.look(&store).await.unwrap().lost, names(&["earth"]));
        assert!(first.has_namesake(earth) && first.follows() && !second.follows());
        assert_eq!(first.leader(earth).unwrap().epoch, second.led(earth).unwrap().epoch);
    }

    #[tokio::test]
    async fn a_service_on_a_virtual_clock_looks_no_more_often_than_others() {
        let folder = tempfile::tempdir().unwrap();
        let alone = Leases::alone(store(&folder).await, Duration::from_hours(1));
        assert_eq!(alone.beat_every(), shard("one", &[]).beat_every());
    }

    #[tokio::test]
    async fn a_service_with_fewer_clusters_releases_the_others_at_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        assert_eq!(shard("one", &[]).look(&store).await.unwrap().gained.len(), 3);
        let again = shard("one", &["earth"]);
        assert_eq!(again.look(&store).await.unwrap().gained, names(&["earth"]));
        assert_eq!(again.leader(&names(&["mars"])[0]), None, "no leader is known");
        let two = shard("two", &["mars", "venus"]);
        assert_eq!(two.look(&store).await.unwrap().gained, names(&["mars", "venus"]), "no service waits for an hour");
    }
}
