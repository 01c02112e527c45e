//! A service inside the test, with a clock that the test sets.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use datasets::{Panel, PanelBuilder};
use forecaster::calibration::Switch;
use forecaster::{Fit, ModelKind, ModelSpec, Trained, checkpoint, train, trained};
use http_body_util::BodyExt;
use quota_service::args::Config;
use quota_service::clock::{Clock, Source};
use quota_service::engine::Webhook;
use quota_service::http::router;
use quota_service::leases::Leases;
use quota_service::refresh::{Follower, Renewer, restore};
use quota_service::{AppState, Options};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use store::{NewRun, RunFacts, RunId, Store, StoreError};
use tokio::sync::Mutex;
use tower::ServiceExt;
use vocab::{ClusterName, GuaranteeRate, HorizonHours, HourDemand, HourStart, SeriesId, UnixSeconds};

/// Wall and monotonic time, which only the test moves.
#[derive(Clone)]
struct SetTime {
    wall_unix_s: Arc<AtomicI64>,
    ran_s: Arc<AtomicI64>,
}

impl Source for SetTime {
    fn wall(&self) -> UnixSeconds {
        UnixSeconds::new(self.wall_unix_s.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.ran_s.load(Ordering::Relaxed).unsigned_abs())
    }
}

/// A service without a port: requests go to its router.
pub struct TestService {
    pub service: AppState,
    router: Router,
    renewer: Mutex<Renewer>,
    follower: Mutex<Follower>,
    time: SetTime,
}

/// The answer of the service.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// # Panics
    /// The status is another one.
    #[must_use]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

impl TestService {
    /// A service at `now` on a database, as it is after a start: stored quotas are restored, none is renewed yet.
    ///
    /// # Panics
    /// The database does not answer.
    pub async fn start(store: Arc<dyn Store>, now: UnixSeconds) -> Self {
        Self::start_with(store, now, Config::default().snapshot_facts, None).await
    }

    /// As [`start`](Self::start), with the setting `snapshot_facts` and a webhook.
    ///
    /// # Panics
    /// The database does not answer.
    pub async fn start_with(
        store: Arc<dyn Store>,
        now: UnixSeconds,
        snapshot_facts: u64,
        webhook: Option<Webhook>,
    ) -> Self {
        Self::begin(store, now, snapshot_facts, webhook, None).await.expect("the database answers")
    }

    /// As [`start`](Self::start), as one of several services on the database, which gives another one up after so long.
    ///
    /// # Panics
    /// The database does not answer.
    pub async fn start_as(store: Arc<dyn Store>, now: UnixSeconds, name: &str, patience: Duration) -> Self {
        let leases = Leases::new(name.to_owned(), patience);
        Self::begin(store, now, Config::default().snapshot_facts, None, Some(leases))
            .await
            .expect("the database answers")
    }

    /// As [`start_as`](Self::start_as), on a database that may not answer.
    ///
    /// # Errors
    /// It does not.
    pub async fn try_start_as(
        store: Arc<dyn Store>,
        now: UnixSeconds,
        name: &str,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let leases = Leases::new(name.to_owned(), patience);
        Self::begin(store, now, 40, None, Some(leases)).await
    }

    async fn begin(
        store: Arc<dyn Store>,
        now: UnixSeconds,
        snapshot_facts: u64,
        webhook: Option<Webhook>,
        leases: Option<Leases>,
    ) -> Result<Self, StoreError> {
        let time = SetTime { wall_unix_s: Arc::new(AtomicI64::new(now.get())), ran_s: Arc::default() };
        let config = Config { max_body_bytes: 64 * 1_024, snapshot_facts, ..Config::default() };
        let clock = Clock::real_from(Box::new(time.clone()));
        let service = AppState::new(Options::new(store, clock, config).webhook(webhook).leases(leases));
        restore(&service.quotas).await?;
        service.renewals.update_leases().await?;
        service.access.read_tokens().await?;
        let router = router(service.clone(), String::new);
        Ok(Self { service, router, renewer: Mutex::default(), follower: Mutex::default(), time })
    }

    /// The router that answers the requests.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Lets time pass.
    pub fn pass_s(&self, seconds: i64) {
        self.time.wall_unix_s.fetch_add(seconds, Ordering::Relaxed);
        self.time.ran_s.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Sets the wall clock back, as an operator or a time server may.
    pub fn set_wall_back_s(&self, seconds: i64) {
        self.time.wall_unix_s.fetch_sub(seconds, Ordering::Relaxed);
    }

    /// Renews the quotas, as the loop of the service does every 300 s.
    pub async fn renew(&self) {
        self.renewer.lock().await.renew(&self.service.renewals).await;
    }

    /// Publishes what other services have computed, as the service does at every beat.
    pub async fn follow(&self) {
        self.follower.lock().await.follow(&self.service.quotas).await;
    }

    /// Leaves its pools to other services, as the service does when it is stopped.
    pub async fn leave(&self) {
        self.renewer.lock().await.leave(&self.service.renewals).await;
        self.service.engine.stop().await;
        self.service.core.leases.release(self.service.core.store.as_ref()).await;
    }

    /// Whether the look for promoted runs, which the service takes every 10 s, would renew the quotas.
    pub async fn sees_news(&self) -> bool {
        self.renewer.lock().await.sees_news(&self.service.core).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, &[], Some(body.to_string())).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &[], Some(body.to_string())).await
    }

    /// # Panics
    /// The router does not answer, which it always does.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Option<String>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() && headers.iter().all(|(name, _)| *name != "content-type") {
            request = request.header("content-type", "application/json");
        }
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(Body::from(body.unwrap_or_default())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("a router answers");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("the body ends").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

/// Trains a model on everything that the cluster has before `until`, and promotes it.
///
/// # Panics
/// There is too little usage.
pub async fn promote(store: &dyn Store, cluster: &ClusterName, kind: ModelKind, until: HourStart) -> RunId {
    promote_over(store, cluster, kind, until, FOUR_HOURS).await
}

const FOUR_HOURS: u64 = 4;

/// The same, for a horizon of so many hours.
///
/// # Panics
/// There is too little usage.
pub async fn promote_over(
    store: &dyn Store,
    cluster: &ClusterName,
    kind: ModelKind,
    until: HourStart,
    hours: u64,
) -> RunId {
    let panel = panel(store, cluster, until).await;
    let horizon = HorizonHours::new(hours).expect("in range");
    let spec = ModelSpec { kind, horizon, lookback_hours: 168, seed: 1 };
    let split = trained::split(&panel, until, &spec).expect("enough usage");
    let fit = Fit { panel: &panel, split, spec, settings: forecaster::blend::Settings::DEFAULT };
    let (trained, _) = train(&fit, GuaranteeRate::GFS, Switch::Auto, &mut |_| ()).expect("training works");
    let checkpoint = checkpoint::save(&trained, "test").expect("a model is saved");
    promote_bytes(store, cluster, kind, until, checkpoint).await
}

/// Promotes a run whose model is these bytes, be they a model or not.
///
/// # Panics
/// The store refuses.
pub async fn promote_bytes(
    store: &dyn Store,
    cluster: &ClusterName,
    kind: ModelKind,
    until: HourStart,
    checkpoint: Vec<u8>,
) -> RunId {
    let facts = RunFacts {
        cluster: cluster.clone(),
        model: kind.to_string(),
        horizon: checkpoint::load(&checkpoint)
            .map_or_else(|_| HorizonHours::new(FOUR_HOURS).expect("in range"), |trained| trained.spec.horizon),
        lookback_hours: 168,
        seed: 1,
        data_from: until.plus_hours(-1_000),
        data_until: until,
        data_sha256: [0; 32],
        series: 1,
        aggregation: String::new(),
        parameters_json: "{}".to_owned(),
        scores_json: "{}".to_owned(),
        code_version: "test".to_owned(),
        created_at: until.instant(),
        train_ms: 1,
    };
    let id = store.insert_run(&NewRun { facts, checkpoint }).await.expect("a run is inserted");
    store.promote(id, until.instant(), "test").await.expect("a run is promoted");
    id
}

/// The model that a cluster is served by.
///
/// # Panics
/// There is none, or it cannot be loaded.
pub async fn promoted(store: &dyn Store, cluster: &ClusterName) -> Trained {
    let run = store.promoted(cluster).await.expect("the database answers").expect("a run is promoted");
    let bytes = store.checkpoint(run.id).await.expect("the database answers");
    checkpoint::load(&bytes).expect("a model")
}

/// The usage of a cluster up to an hour.
///
/// # Panics
/// There is none.
pub async fn panel(store: &dyn Store, cluster: &ClusterName, until: HourStart) -> Panel {
    let stored = store.cluster(cluster).await.expect("the database answers").expect("the cluster is there");
    let calendar = datasets::Calendar::parse(&stored.time_zone, &stored.calendar).expect("a calendar");
    let (first, _) = store.usage_range(cluster).await.expect("the database answers").expect("there is usage");
    let mut builder = PanelBuilder::new(cluster.clone(), calendar, first, until);
    let sink = &mut |series: &SeriesId, hour: HourStart, demand: HourDemand| {
        builder.push_demand(series, hour, demand).expect("rows fit the panel");
    };
    store.load_usage(cluster, first, until, sink).await.expect("usage is loaded");
    builder.finish().expect("there is usage")
}
