//! The loop that renews the quotas: read, think, write, publish.

mod cache;
pub mod fallback;
mod follow;
pub mod heat;
mod history;
mod learned;
pub mod limits;
pub mod pace;
mod read;
mod rounds;
mod told;
mod write;

pub use read::{own_calendar, settings};
pub use rounds::{run, watch};

use crate::access::Tokens;
use crate::args::Config;
use crate::clock::Clock;
use crate::drift::{Drifts, Ledgers, Renewed};
use crate::engine::{Engine, Webhook};
use crate::health::Health;
use crate::leases::{Leases, Led};
use crate::metrics;
use crate::plan::{ClusterInputs, ClusterPlan, plan};
use crate::promises::KeptByPool;
use crate::published::{Published, PublishedPool};
use crate::trace::span;
use crate::writes::Writes;
use arc_swap::ArcSwap;
use cache::Cache;
pub use follow::Follower;
use heat::Heat;
use history::History;
use pace::{Haste, Pace};
use serving::standing::Standing;
use serving::tls::Tls;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::{Cluster, Store, StoreError};
use tokio::sync::{Notify, watch};
use tracing::{Instrument, field};
use vocab::{ClusterName, HorizonHours, PoolState, UnixSeconds};

/// What every part of the service shares.
pub struct Service {
    pub store: Arc<dyn Store>,
    pub clock: Arc<Clock>,
    pub config: Config,
    pub published: ArcSwap<Published>,
    /// How the forecasts of the last seven days fared.
    pub drift: ArcSwap<Drifts>,
    /// How promises were kept lately.
    pub kept: ArcSwap<KeptByPool>,
    /// Counts publications; pollers that wait listen to it.
    pub publications: watch::Sender<u64>,
    /// When the service began to watch pools: the age of an eta that has never moved.
    pub started_at: UnixSeconds,
    /// Whether the service was told to stop: who waits is answered at once.
    pub stopping: watch::Sender<bool>,
    /// Who may ask for what.
    pub tokens: Tokens,
    /// What clients have asked to write, and is under way.
    pub writes: Writes,
    /// Which clusters this service writes for.
    pub leases: Arc<Leases>,
    /// The pools whose tasks are placed here.
    pub engine: Engine,
    /// Whether the database is there and takes writes.
    pub health: Health,
    /// What fails now, and was told.
    pub faults: Standing,
    /// Clusters that this service writes for, and whose pools have not begun yet.
    gained: Mutex<Vec<ClusterName>>,
    /// What this service shows to others.
    tls: OnceLock<Arc<Tls>>,
    wanted: Notify,
    /// When the renewals begin that reports ask for.
    pace: Pace,
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
        let leases = if clock.is_virtual() {
            Leases::alone(store.clone())
        } else {
            // That they are names was checked with the settings.
            let clusters = config.own_clusters().unwrap_or_default();
            Leases::new(config.replica_name(), config.patience()).only(clusters)
        };
        Self::with_leases(store, clock, config, webhook, leases)
    }

    /// As [`with_webhook`](Self::with_webhook), under a name and with a patience of its own.
    #[must_use]
    pub fn with_leases(
        store: Arc<dyn Store>,
        clock: Clock,
        config: Config,
        webhook: Option<Webhook>,
        leases: Leases,
    ) -> Arc<Self> {
        let pace = Pace::new(Duration::from_secs(config.report_refresh_s));
        let (started_at, clock, leases) = (clock.now(), Arc::new(clock), Arc::new(leases));
        let engine = Engine::new(store.clone(), leases.clone(), clock.clone(), &config, webhook);
        Arc::new(Self {
            engine,
            tokens: Tokens::new(),
            writes: Writes::default(),
            leases,
            store,
            clock,
            config,
            published: ArcSwap::default(),
            drift: ArcSwap::default(),
            kept: ArcSwap::default(),
            publications: watch::Sender::new(0),
            started_at,
            stopping: watch::Sender::new(false),
            health: Health::default(),
            faults: Standing::new(),
            gained: Mutex::default(),
            tls: OnceLock::new(),
            wanted: Notify::new(),
            pace,
            looked: AtomicBool::new(false),
        })
    }

    /// Whether the database was read since the start: before, a pool that is not published may still be there.
    #[must_use]
    pub fn has_looked(&self) -> bool {
        self.looked.load(Ordering::Acquire)
    }

    /// Looks who writes for which cluster, and begins or ends to.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn look_at_leases(&self) -> Result<(), StoreError> {
        let changes = self.leases.look(&self.store).await?;
        for cluster in &changes.lost {
            tracing::warn!(%cluster, "another service writes for the cluster now");
        }
        self.engine.leave(&changes.lost);
        for cluster in &changes.gained {
            tracing::info!(%cluster, "this service writes for the cluster now");
        }
        if !changes.gained.is_empty() {
            self.request_refresh();
        }
        // Where the database fails just now, or the look is given up, the next one begins what this one has not.
        let gained = {
            let mut gained = self.gained.lock().unwrap_or_else(PoisonError::into_inner);
            gained.extend(changes.gained);
            gained.clone()
        };
        self.engine.lead(&gained).await?;
        self.gained.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    /// Says what this service shows to others; once.
    pub fn secured(&self, tls: Arc<Tls>) {
        let _ = self.tls.set(tls);
    }

    /// What this service shows to others, where it speaks HTTPS.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.get()
    }

    /// Reads the tokens again; answers how many are in force.
    ///
    /// # Errors
    /// The database does not answer: those that are known stay in force.
    pub async fn read_tokens(&self) -> Result<usize, StoreError> {
        let from_afar = !self.config.listen.ip().is_loopback();
        self.tokens.read(self.store.as_ref(), from_afar, self.clock.now()).await
    }

    /// Asks for a renewal of every cluster; several requests become one.
    pub fn request_refresh(&self) {
        self.wanted.notify_one();
    }

    /// Asks for a renewal of a cluster, after the least interval of its haste.
    pub fn request_renewal(&self, cluster: &ClusterName, haste: Haste) {
        self.pace.want(cluster, haste);
    }

    /// Lowers the published quotas of a pool at once where its reported state leaves less than they say. A raise waits for
    /// the next renewal.
    pub fn lower(&self, state: &PoolState) {
        let (cluster, gpu_model) = (state.pool.cluster.as_str(), state.pool.gpu_model.as_str());
        let published = self.published.load();
        // What is placed here is known from the tasks.
        let reported = published.pool(cluster, gpu_model).filter(|pool| pool.glance.tasks.is_none());
        let lowered = reported.and_then(|pool| pool.lowered(state));
        if let Some(pool) = lowered {
            self.publish(vec![pool]);
        }
    }

    /// Puts pools in place of those of the same id.
    pub fn publish(&self, pools: Vec<PublishedPool>) {
        self.published.store(Arc::new(self.published.load().with(pools)));
        self.publications.send_modify(|count| *count += 1);
    }
}

/// Which clusters are renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    All,
    /// Those whose reports have waited for the least interval.
    Due,
}

/// Renews quotas, and remembers what need not be read again.
#[derive(Default)]
pub struct Renewer {
    cache: Cache,
    ledgers: Ledgers,
    learned: learned::Known,
    heat: Heat,
    history: History,
    /// The epoch in which each cluster was renewed last: what was known before another one is of no use.
    epochs: BTreeMap<ClusterName, u64>,
}

impl Renewer {
    /// Whether a cluster that this service writes for has another promoted run than the one that was last tried, or other
    /// usage than was last read.
    pub async fn sees_news(&self, service: &Service) -> bool {
        !self.news(service).await.is_empty()
    }

    /// The clusters of [`sees_news`](Self::sees_news), and how soon they are to be renewed.
    async fn news(&self, service: &Service) -> Vec<(ClusterName, Haste)> {
        self.cache.news(service).await
    }

    /// Renews the quotas of every cluster that this service writes for once. What fails is logged, counted, and said in the
    /// answers, which age.
    pub async fn renew(&mut self, service: &Service) {
        self.renew_of(service, Of::All).await;
    }

    async fn renew_of(&mut self, service: &Service, of: Of) {
        let started = Instant::now();
        let clusters = match service.store.clusters().await {
            Ok(clusters) => clusters,
            Err(fault) => return told::all(service, &Err(fault)),
        };
        told::all(service, &Ok(()));
        let mut knows_all = true;
        service.pace.keep(|cluster| service.leases.led(cluster).is_some());
        for cluster in clusters {
            let Some(led) = service.leases.led(&cluster.name) else {
                knows_all = false;
                continue;
            };
            if of == Of::Due && !service.pace.is_due(&cluster.name) {
                continue;
            }
            service.pace.begins(&cluster.name);
            self.notice(&cluster.name, &led);
            let span = span!("cluster", cluster = %cluster.name, otel.status_code = field::Empty);
            let renewed = self.renew_cluster(service, &led, &cluster).instrument(span.clone()).await;
            if renewed.is_err() {
                span.record("otel.status_code", "ERROR");
            }
            told::cluster(service, &cluster.name, &renewed);
        }
        limits::push(service).await;
        if knows_all && of == Of::All {
            service.looked.store(true, Ordering::Release);
        }
        metrics::refreshed(started.elapsed());
    }

    /// Forgets what was known of a cluster for which another service has written meanwhile.
    fn notice(&mut self, cluster: &ClusterName, led: &Led) {
        if self.epochs.insert(cluster.clone(), led.epoch).is_some_and(|before| before != led.epoch) {
            self.ledgers.forget(cluster);
            self.learned.forget(|pool| pool.cluster == *cluster);
            self.heat.forget(|pool| pool.cluster == *cluster);
            self.history.forget(|pool| pool.cluster == *cluster);
        }
    }

    async fn renew_cluster(&mut self, service: &Service, led: &Led, cluster: &Cluster) -> Result<(), StoreError> {
        let (epoch, held) = (led.epoch, led.store.as_ref());
        // 1. Read.
        let now = service.clock.now();
        let known = read::cluster(service, &mut self.cache, cluster, now).instrument(span!("read")).await?;
        let (mut inputs, placed) = match known {
            read::ClusterKnown::Ready(inputs, placed) => (inputs, placed),
            read::ClusterKnown::Without { pools, problem } => {
                service.publish(write::kept(service, pools, &problem).await?);
                return Ok(());
            }
        };
        // 2. Look back at what was said of the hours that are over. Under a virtual clock there is no ledger.
        if !service.clock.is_virtual() {
            let run = &inputs.run;
            let caught_up = self.ledgers.catch_up(held, &cluster.name, &inputs.panel, run, now).await;
            told::ledger(service, &cluster.name, "scores", &caught_up);
            inputs.calibrator = self.ledgers.calibrator(&cluster.name, run.id);
            for pool in &mut inputs.pools {
                pool.learned = Some(self.learned.take(held, pool).await?);
            }
        }
        // 3. Think, on a thread of its own, so that requests keep moving.
        let Some((inputs, mut plan)) = think(inputs).instrument(span!("think")).await else {
            metrics::refresh_failed();
            let problem = "the last renewal broke off: see the log of the service";
            told::keep(service, |pool| pool.id.cluster == cluster.name, problem);
            return Ok(());
        };
        let renewed = Renewed::of(cluster.name.clone(), inputs.panel.clone(), inputs.run.id, now, &mut plan);
        let learned = self.learned.remember(&inputs, &mut plan);
        // 4. Write, then publish: an answer may only say what a restart would find again.
        let published = write::write(service, held, &inputs, &placed, (plan.pools, &learned), &mut self.history)
            .instrument(span!("write"))
            .await?;
        self.learned.note(&learned);
        if service.leases.led(&cluster.name).is_some_and(|led| led.epoch == epoch) {
            span!("publish", pools = published.len()).in_scope(|| service.publish(published));
        }
        // 5. Keep what was said.
        if !service.clock.is_virtual() {
            told::ledger(service, &cluster.name, "forecasts", &self.ledgers.record(service, held, renewed).await);
            for (pool, here) in &placed {
                let noted = self.heat.note(held, pool, &here.nodes, now).await;
                told::ledger(service, &cluster.name, &format!("nodes of {pool}"), &noted);
            }
        }
        Ok(())
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
