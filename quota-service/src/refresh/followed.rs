//! Tasks that another service places, by their journal: the answers of a service that follows fall with them as those of the leader do.

use crate::engine::{TaskCounts, counts, read_on, rebuild};
use crate::published::{PublishedPool, TasksNow};
use crate::quotas::Quotas;
use crate::settings;
use placement::pool::Pool;
use std::collections::BTreeMap;
use store::{PlacedPool, Store, StoreError, StoredJournal};
use vocab::{PlacedBy, PoolId};

/// The pools that other services place, as they were read last.
#[derive(Default)]
pub(super) struct FollowedPools(BTreeMap<PoolId, Followed>);

struct Followed {
    /// The last entry that was read.
    seq: u64,
    /// Of the settings by which the pool was read.
    version: Option<i64>,
    pool: Pool,
    tasks: TasksNow,
}

impl Followed {
    /// The pool as the journal has it, or further from what was read of it; `None` where Headroom does not place it.
    ///
    /// # Errors
    /// The database does not answer, or the journal is damaged.
    async fn read(store: &dyn Store, placed: PlacedPool, known: Option<Self>) -> Result<Option<Self>, StoreError> {
        let (id, number) = (placed.pool.clone(), placed.id);
        let settings = settings::load(store, &id).await?;
        if settings.placed_by != Some(PlacedBy::Headroom) {
            return Ok(None);
        }
        let known = known.filter(|known| known.version == settings.version);
        let snapshot = if known.is_some() { None } else { store.pool_snapshot(number).await? };
        let after = known.as_ref().map_or(snapshot.as_ref().map_or(0, |snapshot| snapshot.seq), |known| known.seq);
        let mut entries = store.journal_entries(number, after).await?;
        entries.retain(|entry| entry.seq <= placed.seq);
        if entries.first().is_some_and(|entry| entry.seq != after + 1) {
            let (what, reason) = (format!("the journal of {id}"), format!("no entry follows {after}"));
            return Err(StoreError::Corrupt { what, reason });
        }
        let seq = placed.seq.max(after);
        let mut pool = if let Some(mut known) = known {
            read_on(&mut known.pool, &id, &entries)?;
            known.pool
        } else {
            let (policy, rules) = (settings.placement.policy(), settings.placement.rules());
            rebuild(&StoredJournal { placed, snapshot, entries }, policy, rules)?.pool
        };
        let tasks = TasksNow::of(&mut pool, id);
        Ok(Some(Self { seq, version: settings.version, pool, tasks }))
    }

    fn counts(&self) -> TaskCounts {
        counts(&self.pool)
    }
}

impl FollowedPools {
    /// Answers that are read from the database, with what the tasks have taken since.
    pub(super) fn followed(&self, pool: PublishedPool) -> PublishedPool {
        let known = self.0.get(&pool.id).filter(|_| pool.glance.placed_by != Some(PlacedBy::External));
        known.and_then(|known| pool.following(&known.tasks, &|| known.counts())).unwrap_or(pool)
    }

    /// Reads what is new of the journals, and brings the published answers to it. A database that does not answer has nothing new.
    pub(super) async fn follow(&mut self, quotas: &Quotas) {
        let store = quotas.core.store.as_ref();
        let Ok(mut placed) = store.placed_pools().await else { return };
        placed.retain(|one| is_followed(quotas, &one.pool));
        self.0.retain(|pool, _| placed.iter().any(|one| one.pool == *pool));
        for one in placed {
            let id = one.pool.clone();
            if self.0.get(&id).is_none_or(|known| known.seq < one.seq) {
                let known = self.0.remove(&id);
                match Followed::read(store, one, known).await {
                    Ok(Some(read)) => _ = self.0.insert(id.clone(), read),
                    Ok(None) => continue,
                    Err(fault) => {
                        tracing::debug!(pool = %id, %fault, "cannot read the tasks of another service");
                        continue;
                    }
                }
            }
            if let Some(known) = self.0.get(&id) {
                quotas.follow_tasks(&known.tasks, &|| known.counts());
            }
        }
    }
}

/// Whether another service places the tasks of a pool, by what is published.
fn is_followed(quotas: &Quotas, pool: &PoolId) -> bool {
    let published = quotas.published.load();
    let known = published.pool(pool.cluster.as_str(), pool.gpu_model.as_str());
    let may_be_placed = known.is_some_and(|known| known.glance.placed_by != Some(PlacedBy::External));
    may_be_placed && quotas.core.leases.led(&pool.cluster).is_none()
}
