//! The loop that renews the quotas: read, think, write, publish.

mod cache;
pub mod limits;
mod live;
mod read;
pub use read::settings;
mod write;

use crate::args::Config;
use crate::clock::Clock;
use crate::drift::{Drifts, Ledgers, Renewed};
use crate::engine::{Engine, Webhook};
use crate::metrics;
use crate::plan::{ClusterInputs, ClusterPlan, plan};
use crate::published::{Published, PublishedPool};
use arc_swap::ArcSwap;
use cache::Cache;
use forecaster::live::LiveBound;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::{Cluster, Store, StoreError};
use tokio::sync::{Notify, watch};
use vocab::{HorizonHours, MilliGpus, PoolId, UnixSeconds};

/// What every part of the service shares.
pub struct Service {
    pub store: Arc<dyn Store>,
    pub clock: Arc<Clock>,
    pub config: Config,
    pub published: ArcSwap<Published>,
    /// How the forecasts of the last seven days fared.
    pub drift: ArcSwap<Drifts>,
    /// Counts publications; pollers that wait listen to it.
    pub publications: watch::Sender<u64>,
    /// When the service began to watch pools: the age of an eta that has never moved.
    pub started_at: UnixSeconds,
    /// Whether the service was told to stop: who waits is answered at once.
    pub stopping: watch::Sender<bool>,
    /// The pools whose tasks are placed here.
    pub engine: Engine,
    wanted: Notify,
    /// Whether the pools of the database were read once.
    looked: AtomicBool,
}

impl Service {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Clock, config: Config) -> Arc<Self> {
        Self::with_webhook(store, clock, config, None)
    }

    /// As [`new`](Self::new), telling events of pools to a URL.
    #[must_use]
    pub fn with_webhook(store: Arc<dyn Store>, clock: Clock, config: Config, webhook: Option<Webhook>) -> Arc<Self> {
        let (started_at, clock) = (clock.now(), Arc::new(clock));
        let engine = Engine::new(store.clone(), clock.clone(), &config, webhook);
        Arc::new(Self {
            engine,
            store,
            clock,
            config,
            published: ArcSwap::default(),
            drift: ArcSwap::default(),
            publications: watch::Sender::new(0),
            started_at,
            stopping: watch::Sender::new(false),
            wanted: Notify::new(),
            looked: AtomicBool::new(false),
        })
    }

    /// Whether the database was read since the start: before, a pool that is not published may still be there.
    #[must_use]
    pub fn has_looked(&self) -> bool {
        self.looked.load(Ordering::Acquire)
    }

    /// Asks for a renewal soon; several requests become one.
    pub fn request_refresh(&self) {
        self.wanted.notify_one();
    }

    /// Puts pools in place of those of the same id.
    pub fn publish(&self, pools: Vec<PublishedPool>) {
        self.published.store(Arc::new(self.published.load().with(pools)));
        self.publications.send_modify(|count| *count += 1);
    }
}

/// Renews the quotas every `refresh_s`, when a run is promoted, and when asked. Never returns.
pub async fn run(service: Arc<Service>) {
    let mut renewer = Renewer::default();
    let config = &service.config;
    let mut regular = tokio::time::interval(Duration::from_secs(config.refresh_s));
    let mut promotions = tokio::time::interval(Duration::from_secs(config.promotion_check_s));
    regular.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    promotions.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = regular.tick() => {}
            () = service.wanted.notified() => {}
            _ = promotions.tick() => {
                if !renewer.sees_other_promotions(&service).await {
                    continue;
                }
            }
        }
        renewer.renew(&service).await;
    }
}

/// Renews quotas, and remembers what need not be read again.
#[derive(Default)]
pub struct Renewer {
    cache: Cache,
    ledgers: Ledgers,
    /// Of pools whose tasks are placed here. They begin anew with the service, and count after an hour and a bit.
    live: BTreeMap<PoolId, LiveBound>,
}

impl Renewer {
    /// Whether a cluster has another promoted run than the one that was last tried.
    pub async fn sees_other_promotions(&self, service: &Service) -> bool {
        self.cache.has_other_promotions(service.store.as_ref()).await
    }

    /// Renews the quotas of every cluster once. What fails is logged, counted, and said in the answers, which age.
    pub async fn renew(&mut self, service: &Service) {
        let started = Instant::now();
        let clusters = match service.store.clusters().await {
            Ok(clusters) => clusters,
            Err(fault) => return keep_all(service, &fault),
        };
        for cluster in clusters {
            if let Err(fault) = self.renew_cluster(service, &cluster).await {
                tracing::warn!(cluster = %cluster.name, %fault, "the quotas of the cluster were not renewed");
                metrics::refresh_failed();
                keep(service, |pool| pool.id.cluster == cluster.name, &fault.to_string());
            }
        }
        limits::push(service).await;
        service.looked.store(true, Ordering::Release);
        metrics::refreshed(started.elapsed());
    }

    async fn renew_cluster(&mut self, service: &Service, cluster: &Cluster) -> Result<(), StoreError> {
        // 1. Read.
        let now = service.clock.now();
        let known = read::cluster(service, &mut self.cache, cluster, now).await?;
        let mut inputs = match known {
            read::ClusterKnown::Ready(inputs) => inputs,
            read::ClusterKnown::Without { pools, problem } => {
                service.publish(write::kept(service, pools, &problem));
                return Ok(());
            }
        };
        // 2. Look back at what was said of the hours that are over. Under a virtual clock there is no ledger.
        if !service.clock.is_virtual() {
            let (store, run) = (service.store.as_ref(), &inputs.run);
            let caught_up = self.ledgers.catch_up(store, &cluster.name, &inputs.panel, run, now).await;
            costs_no_quota(cluster, caught_up);
            inputs.calibrator = self.ledgers.calibrator(&cluster.name, run.id);
        }
        for pool in &mut inputs.pools {
            pool.live = live::before(&self.live, pool);
        }
        // 3. Think, on a thread of its own, so that requests keep moving.
        let Some((inputs, mut plan)) = think(inputs).await else {
            metrics::refresh_failed();
            let problem = "the last renewal broke off: see the log of the service";
            keep(service, |pool| pool.id.cluster == cluster.name, problem);
            return Ok(());
        };
        let renewed = Renewed::of(cluster.name.clone(), inputs.panel.clone(), inputs.run.id, now, &mut plan);
        live::remember(&mut self.live, &plan);
        // 4. Write, then publish: an answer may only say what a restart would find again.
        let published = write::write(service, &inputs, plan.pools).await?;
        service.publish(published);
        // 5. Keep what was said.
        if !service.clock.is_virtual() {
            costs_no_quota(cluster, self.ledgers.record(service, renewed).await);
        }
        Ok(())
    }
}

/// A ledger that cannot be kept is told, and that is all.
fn costs_no_quota(cluster: &Cluster, kept: Result<(), StoreError>) {
    if let Err(fault) = kept {
        tracing::warn!(cluster = %cluster.name, %fault, "the ledger of forecasts was not kept");
        metrics::ledger_failed();
    }
}

/// `None` where planning panicked: a bug, which must not keep other clusters from their quotas.
async fn think(inputs: ClusterInputs) -> Option<(ClusterInputs, ClusterPlan)> {
    let worked = tokio::task::spawn_blocking(move || {
        let plan = plan(&inputs);
        (inputs, plan)
    });
    worked.await.inspect_err(|fault| tracing::error!(%fault, "planning broke off, which is a bug")).ok()
}

fn keep_all(service: &Service, fault: &StoreError) {
    tracing::warn!(%fault, "the quotas were not renewed");
    metrics::refresh_failed();
    keep(service, |_| true, &fault.to_string());
}

/// Publishes the last answers of some pools again, with the reason why they are not newer.
fn keep(service: &Service, of: impl Fn(&PublishedPool) -> bool, problem: &str) {
    let unchanged = &|_: u8| -> Option<MilliGpus> { None };
    let published = service.published.load();
    let kept = published.pools().filter(|pool| of(pool) && pool.problem.as_deref() != Some(problem));
    let kept: Vec<_> = kept.map(|pool| pool.with_problem(Some(problem.to_owned()), unchanged)).collect();
    if !kept.is_empty() {
        service.publish(kept);
    }
}

/// Hours of a stored answer as the words have them.
fn horizon(hours: u8) -> Option<HorizonHours> {
    HorizonHours::new(u64::from(hours)).ok()
}

/// Restores the quotas that were stored before a restart: they age from when they were computed.
///
/// # Errors
/// The database does not answer.
pub async fn restore(service: &Service) -> Result<(), StoreError> {
    if service.clock.is_virtual() {
        return Ok(());
    }
    let restored = write::restored(service).await?;
    if !restored.is_empty() {
        service.publish(restored);
    }
    Ok(())
}
