//! A service with one published pool, and a handler that does nothing but answer the same bytes.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use quota_service::args::Config;
use quota_service::clock::Clock;
use quota_service::http::router;
use quota_service::plan::Held;
use quota_service::published::{Answer, PublishedPool};
use quota_service::{AppState, Options};
use std::sync::Arc;
use store::Store;
use vocab::{MilliGpus, PoolId};
use wire::{QuotaAnswer, ReasonBody};

pub const PATH: &str = "/quota?cluster=earth&gpu_model=V100&hours=4";

/// An answer with this quota.
pub fn answer(clock: &Clock, quota_gpus: f64) -> Answer {
    let now = clock.now();
    let fresh = QuotaAnswer {
        cluster: "earth".into(),
        gpu_model: "V100".into(),
        hours: 4,
        guarantee_rate: 0.9,
        quota_gpus,
        used_gpus: 0.0,
        available_gpus: 65.719,
        inventory_gpus: 65.719,
        capacity_gpus: 856.0,
        demand_bound_gpus: 790.281,
        eta: 1.0,
        idle_gpus: 146.0,
        aggregation: "pooled".into(),
        run_id: Some("run-1".into()),
        computed_at: now.to_string(),
        valid_until: now.plus_s(600).to_string(),
        stage: wire::StageBody::Fresh,
        stale: false,
        as_of: None,
        reasons: vec![ReasonBody { code: "inventory".into(), detail: "65.719 GPUs stay free of HP demand".into() }],
    };
    Answer::new(fresh, now, Held { spot: MilliGpus::ZERO, available: MilliGpus::ZERO }, None)
}

/// The pool that answers it.
pub fn pool(answer: Answer) -> PublishedPool {
    PublishedPool {
        answers: vec![answer],
        problem: None,
        ..PublishedPool::without_quota(PoolId::parse("earth:V100").expect("a pool"), String::new())
    }
}

/// Our service with one published pool, and what it answers.
pub async fn ours() -> (AppState, Router, Answer) {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let url = format!("sqlite://{}", folder.join("bench.db").display());
    let store: Arc<dyn Store> = store::connect(&url).await.expect("a fresh database opens");
    let service = AppState::new(Options::new(store, Clock::real(), Config::default()));
    service.access.read_tokens().await.expect("the database answers");
    let answer = answer(&service.core.clock, 65.719);
    service.quotas.publish(vec![pool(answer.clone())]);
    (service.clone(), router(service, String::new), answer)
}

/// A handler that does nothing but answer these bytes with these headers.
pub fn bare(answer: &Answer) -> Router {
    let ready = answer.at(answer.computed_at).clone();
    let headers = [
        (header::ETAG, ready.etag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ];
    Router::new().route("/quota", get(move || async move { (headers, ready.body) }))
}
