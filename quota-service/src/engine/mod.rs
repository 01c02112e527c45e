//! Decides for pools whose tasks the service places: one writer for each, which holds the pool in memory, writes what was
//! decided, and only then answers.

mod call;
mod decide;
mod error;
mod events;
mod limits;
mod message;
mod reads;
mod record;
mod state;
mod tally;
mod turn;
mod views;
mod watched;
mod webhook;
mod windows;
mod writer;

pub use call::{
    Accounted, Call, Decided, Explain, Facts, ListNodes, ListShares, ListTasks, Order, Placed, ReadAccounts, ReadFacts,
    SoldBy, TakeSnapshot, TaskCall, TaskPage,
};
pub use error::EngineError;
pub use events::{Cursor, events_after};
pub use limits::Limits;
pub use record::{HELD_BACK, answer};
pub use state::{Rebuilt, read_on, rebuild};
pub use views::{NodeUse, Shares, TaskCounts, TaskQuery, counts};
pub use webhook::Webhook;

use crate::core::Core;
use crate::quotas::Quotas;
use crate::trace::span;
use call::{Queued, ReadState, Reply};
use placement::power::{NodePower, PowerError, PowerTable};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{AuditRecord, PlacedPool, Store, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{Instrument, field};
use vocab::{ClusterName, PoolId};
use writer::{Begins, Writer};

/// Calls that may wait in the queue of a writer; further callers wait for a place.
const QUEUED_CALLS: usize = 4_096;

/// How often events are looked for that another service writes.
const LOOKED_FOR_EVERY: Duration = Duration::from_secs(1);

/// How long a turn may take when the service stops.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Parts that all writers share.
struct Shared {
    core: Arc<Core>,
    /// The quotas served now: a pool begins with their limits.
    quotas: Arc<Quotas>,
    webhook: Option<Webhook>,
    power: PowerTable,
    begins: Begins,
}

/// A handle of a writer.
#[derive(Clone)]
struct Handle {
    queue: mpsc::Sender<Queued>,
    /// The last entry that was written.
    written: watch::Receiver<u64>,
}

/// The pools that the service places.
pub struct Engine {
    shared: Arc<Shared>,
    pools: Mutex<BTreeMap<PoolId, Handle>>,
    writers: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    #[must_use]
    pub fn new(core: Arc<Core>, quotas: Arc<Quotas>, webhook: Option<Webhook>) -> Self {
        // The program has checked the file at its start, but it may be another one now.
        let power = core.config.power().unwrap_or_else(|why| {
            tracing::error!(why, "power_file cannot be read again: the built-in power of GPU models is used");
            PowerTable::default()
        });
        let shared = Shared { core, quotas, webhook, power, begins: Begins::default() };
        Self { shared: Arc::new(shared), pools: Mutex::default(), writers: Mutex::default() }
    }

    /// Power of the nodes of a pool.
    ///
    /// # Errors
    /// It is not known of their GPU model.
    pub fn power(&self, pool: &PoolId) -> Result<NodePower, PowerError> {
        self.shared.power.of(&pool.gpu_model)
    }

    /// Goes on with every pool of these clusters that has a journal, and returns them: this service writes for them from now on. Under
    /// a virtual clock nothing is placed.
    ///
    /// # Errors
    /// The database does not answer: each pool begins when it is first asked for.
    pub async fn lead(&self, clusters: &[ClusterName]) -> Result<Vec<PoolId>, StoreError> {
        if clusters.is_empty() || self.shared.core.clock.is_virtual() {
            return Ok(Vec::new());
        }
        let mut begun = Vec::new();
        for placed in self.shared.core.store.placed_pools().await? {
            if clusters.contains(&placed.pool.cluster) {
                // A lease that is lost meanwhile shows at the next update.
                let _ = self.spawn(&placed.pool);
                begun.push(placed.pool);
            }
        }
        Ok(begun)
    }

    /// Leaves the pools of these clusters to another service: their writers end with the turn that they are at.
    pub fn leave(&self, clusters: &[ClusterName]) {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool, _| !clusters.contains(&pool.cluster));
    }

    /// Lets every writer end its turn, and ends it.
    pub async fn stop(&self) {
        // A writer ends with its last sender.
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let writers = std::mem::take(&mut *self.writers.lock().unwrap_or_else(PoisonError::into_inner));
        for writer in writers {
            let _ = tokio::time::timeout(ENDS_WITHIN, writer).await;
        }
    }

    /// Calls the writer of a pool; starts it where the pool has nodes.
    ///
    /// # Errors
    /// The pool has neither nodes nor a journal, the call does not fit its state, or the database does not answer:
    /// then nothing was done, or the answer is lost.
    pub async fn ask<C: Call>(&self, pool: &PoolId, call: C) -> Result<C::Answer, EngineError> {
        self.order(pool, call, None).await
    }

    /// As [`ask`](Self::ask); the change and its audit entry are one transaction.
    ///
    /// # Errors
    /// As there.
    pub async fn order<C: Call>(
        &self,
        pool: &PoolId,
        call: C,
        audit: Option<AuditRecord>,
    ) -> Result<C::Answer, EngineError> {
        if self.shared.core.clock.is_virtual() {
            return Err(EngineError::Virtual);
        }
        let handle = match self.running(pool) {
            Some(handle) => handle,
            None if self.is_known(pool).await? => self.spawn(pool)?,
            None => return Err(EngineError::UnknownPool),
        };
        decided(pool, &handle, call, audit).await
    }

    /// As [`ask`](Self::ask), where the pool has a writer already.
    ///
    /// # Errors
    /// As there.
    pub async fn ask_if_running<C: Call>(&self, pool: &PoolId, call: C) -> Result<Option<C::Answer>, EngineError> {
        match self.running(pool) {
            Some(handle) => decided(pool, &handle, call, None).await.map(Some),
            None => Ok(None),
        }
    }

    /// Lets time pass in every placed pool of a cluster.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn pass(&self, cluster: &ClusterName) -> Result<(), EngineError> {
        for pool in self.running_pools().iter().filter(|pool| pool.cluster == *cluster) {
            self.ask_if_running(pool, Order::Pass).await?;
        }
        Ok(())
    }

    /// The state of a pool to cut quota from, where its tasks are placed here.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn state(&self, pool: &PoolId) -> Result<Option<Box<Placed>>, EngineError> {
        Ok(self.ask_if_running(pool, ReadState).await?.flatten())
    }

    /// Waits until an entry after `seq` was written, here or by another service, and answers the last one.
    pub async fn written_after(&self, pool: &PoolId, seq: u64) -> u64 {
        loop {
            let written = self.running(pool).map(|handle| handle.written);
            if let Some(mut written) = written
                && let Ok(last) = written.wait_for(|last| *last > seq).await
            {
                return *last;
            }
            // Another service writes for the pool: the database is the only source.
            tokio::time::sleep(LOOKED_FOR_EVERY).await;
            match placed(self.shared.core.store.as_ref(), pool).await {
                Ok(Some(placed)) if placed.seq > seq => return placed.seq,
                Ok(_) => {}
                Err(fault) => tracing::debug!(%pool, %fault, "cannot read events: they wait for the database"),
            }
        }
    }

    /// The pools with a writer.
    #[must_use]
    pub fn running_pools(&self) -> Vec<PoolId> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Whether the pool has a writer.
    #[must_use]
    pub fn is_running(&self, pool: &PoolId) -> bool {
        self.running(pool).is_some()
    }

    fn running(&self, pool: &PoolId) -> Option<Handle> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).get(pool).cloned()
    }

    async fn is_known(&self, pool: &PoolId) -> Result<bool, StoreError> {
        let store = self.shared.core.store.as_ref();
        Ok(!store.pool_nodes(pool).await?.is_empty() || placed(store, pool).await?.is_some())
    }

    /// # Errors
    /// Another service writes for the cluster.
    fn spawn(&self, pool: &PoolId) -> Result<Handle, EngineError> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = pools.get(pool) {
            return Ok(handle.clone());
        }
        let store = self.shared.core.leases.led(&pool.cluster).map(|led| led.store);
        let store = store.ok_or_else(|| EngineError::Elsewhere(self.shared.core.leases.leader(&pool.cluster)))?;
        let ((queue, queued), (writes, written)) = (mpsc::channel(QUEUED_CALLS), watch::channel(0));
        let writer = Writer::new(self.shared.clone(), store.clone(), pool.clone(), queued, writes);
        let running = tokio::spawn(writer.run());
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).push(running);
        if let Some(webhook) = &self.shared.webhook {
            tokio::spawn(webhook::run(store, webhook.clone(), pool.clone(), written.clone()));
        }
        let handle = Handle { queue, written };
        pools.insert(pool.clone(), handle.clone());
        Ok(handle)
    }
}

/// The answer of a writer, in a span of the current trace.
async fn decided<C: Call>(
    pool: &PoolId,
    handle: &Handle,
    call: C,
    audit: Option<AuditRecord>,
) -> Result<C::Answer, EngineError> {
    let Some(asked) = call.decides() else { return send(handle, call, audit).await };
    let span = span!("decide", pool = %pool, asked, outcome = field::Empty);
    let answer = send(handle, call, audit).instrument(span.clone()).await;
    span.record(
        "outcome",
        match &answer {
            Ok(answer) => C::outcome(answer),
            Err(EngineError::Unavailable { .. } | EngineError::Turn(_) | EngineError::Store(_)) => "unavailable",
            Err(_) => "refused",
        },
    );
    answer
}

async fn send<C: Call>(handle: &Handle, call: C, audit: Option<AuditRecord>) -> Result<C::Answer, EngineError> {
    let (reply, answer) = Reply::new();
    handle.queue.send(Queued { message: call.message(reply), audit }).await.map_err(|_| EngineError::stopped())?;
    answer.await.map_err(|_| EngineError::stopped())?
}

/// A pool with a journal.
///
/// # Errors
/// The database does not answer.
pub async fn placed(store: &dyn Store, pool: &PoolId) -> Result<Option<PlacedPool>, StoreError> {
    Ok(store.placed_pools().await?.into_iter().find(|one| one.pool == *pool))
}
