//! Answers kube-scheduler's HTTP extender: filter holds spot to its quota, prioritize orders nodes as the policy does, preempt takes the
//! node where evictions cost least.
//!
//! The scheduler asks for one pod at a time and waits. Work is done on threads of its own, a few at once, and after the deadline a
//! neutral answer goes out: HP passes, nodes score alike, the scheduler's own choice of a node stands. Only a guarantee is never given
//! neutrally. An answer is always JSON with status 200: any other is a fault of the extender to the scheduler, which then, with
//! `ignorable: true`, goes on without it.

mod answers;
mod body;
mod breaker;
mod burdens;
mod counters;
mod listening;
mod offer;
mod places;
mod quota;
pub mod wire;

#[cfg(test)]
mod tests;

pub use listening::{ExtenderError, Listening};
pub use quota::Refused;

use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::headroom::Offers;
use crate::view::View;
use crate::view::facts::{PodFacts, Reading, Uid};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Request, Response, header};
use axum::routing::post;
use body::Buffers;
use breaker::{Breaker, Turn};
use burdens::Burdens;
use counters::{Outcome, Verb};
use placement::assumed::Assumed;
use placement::fleet::Workload;
use places::Remembered;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use vocab::{GpuModel, UnixSeconds};

/// Of a body: 5,000 whole nodes are some 100 MB.
const BODY_BYTES_MOST: usize = 256 << 20;
/// Questions that are worked on at once; a scheduler asks one at a time, and a cluster has few schedulers.
const AT_ONCE: usize = 4;

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> UnixSeconds + Send + Sync>;

/// Runs before work.
type Before = Arc<dyn Fn() + Send + Sync>;

/// State of the extender. Clones share it.
#[derive(Clone)]
pub struct ExtenderState(Arc<Inner>);

impl std::ops::Deref for ExtenderState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// The parts of [`ExtenderState`]. Locks are taken in the order in which they stand here.
pub struct Inner {
    shared: Arc<Shared>,
    burdens: RwLock<Burdens>,
    remembered: RwLock<Remembered>,
    assumed: Mutex<Assumed<GpuModel>>,
    offers: watch::Receiver<Arc<Offers>>,
    clock: Clock,
    reading: Reading,
    workload: Workload,
    deadline: Duration,
    assumed_s: i64,
    permits: Arc<Semaphore>,
    breaker: Mutex<Breaker>,
    buffers: Buffers,
    /// Before each work, in tests.
    before: Option<Before>,
}

impl ExtenderState {
    /// Reads the view once; [`seen`](Self::seen) keeps it up to date from then on.
    #[must_use]
    pub fn new(config: &Config, shared: Arc<Shared>, offers: watch::Receiver<Arc<Offers>>, clock: Clock) -> Self {
        let burdens = Burdens::of(&shared.read(), clock());
        Self(Arc::new(Inner {
            shared,
            burdens: RwLock::new(burdens),
            remembered: RwLock::default(),
            assumed: Mutex::default(),
            offers,
            clock,
            reading: Reading::of(config),
            workload: Workload::default(),
            deadline: Duration::from_millis(config.extender_deadline_ms),
            assumed_s: i64::try_from(config.assumed_s).unwrap_or(i64::MAX),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            breaker: Mutex::default(),
            buffers: Buffers::default(),
            before: None,
        }))
    }

    /// Notes a pod that is new or has changed; `None` for a deleted one. Called after the view has it. A pod on a node is assumed no
    /// longer.
    pub fn seen(&self, uid: Uid, pod: Option<&PodFacts>) {
        let now = self.now();
        match pod {
            Some(pod) => write(&self.burdens).seen(pod, now),
            None => write(&self.burdens).forget(uid, now),
        }
        if pod.is_none_or(|pod| pod.node.is_some()) {
            self.assumed().forget(uid.0);
        }
    }

    /// Reads the view again: pods deleted during a gap of the watch are not reported.
    pub fn renew(&self) {
        let now = self.now();
        // Locks are taken in one order, and the view is not locked while others wait for us.
        let read = Burdens::of(&self.view(), now);
        write(&self.burdens).renew(read);
    }

    /// How many pods were let through and are not seen on a node.
    #[must_use]
    pub fn assumed_pods(&self) -> usize {
        let now = self.now();
        let mut assumed = self.assumed();
        assumed.pass_to(now);
        assumed.len()
    }

    /// Publishes the number of assumed pods.
    pub fn tell(&self) {
        counters::assumed(self.assumed_pods());
    }

    fn now(&self) -> UnixSeconds {
        (self.clock)()
    }

    fn view(&self) -> RwLockReadGuard<'_, View> {
        self.shared.read()
    }

    fn burdens(&self) -> RwLockReadGuard<'_, Burdens> {
        self.burdens.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered(&self) -> RwLockReadGuard<'_, Remembered> {
        self.remembered.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered_mut(&self) -> RwLockWriteGuard<'_, Remembered> {
        write(&self.remembered)
    }

    fn assumed(&self) -> MutexGuard<'_, Assumed<GpuModel>> {
        self.assumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the breaker how an answer went.
    fn note(&self, in_time: bool) {
        match self.breaker().note(Instant::now(), in_time) {
            None => return,
            Some(Turn::Opens) => tracing::warn!(
                deadline_ms = self.deadline.as_millis(),
                "answers to the scheduler are late: neutral ones go out at once; a message follows when that ends"
            ),
            Some(Turn::Closes) => tracing::info!("answers to the scheduler are in time again"),
        }
        counters::open(!in_time);
    }

    /// Answers a body as the verb does, with all the time it takes; for benchmarks.
    ///
    /// # Errors
    /// The body is none of this verb.
    pub fn answer(&self, verb: &str, body: &[u8]) -> serde_json::Result<Vec<u8>> {
        match verb {
            "prioritize" => answers::prioritize(body, self),
            "preempt" => answers::preempt(body, self),
            _ => answers::filter_by_quota(body, self, Instant::now() + self.deadline),
        }
    }
}

/// Guarded data changes in one step, or by code that does not panic: it is whole even after a panic.
fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The routes of the extender, `POST /extender/v1/{filter,prioritize,preempt}`.
pub fn router(state: ExtenderState) -> Router {
    let of = |verb: Verb| post(move |State(state), request| answer(verb, state, request));
    Router::new()
        .route("/extender/v1/filter", of(Verb::Filter))
        .route("/extender/v1/prioritize", of(Verb::Prioritize))
        .route("/extender/v1/preempt", of(Verb::Preempt))
        .with_state(state)
}

async fn answer(verb: Verb, state: ExtenderState, request: Request<Body>) -> Response<Body> {
    let began = Instant::now();
    let (outcome, bytes) = match body::read(request, BODY_BYTES_MOST, state.buffers.take()).await {
        Err(fault) => (Outcome::Malformed, unreadable(verb, &fault)),
        Ok(body) => {
            let body = Arc::new(body);
            let answered = answered(verb, &state, body.clone(), began).await;
            if let Ok(buffer) = Arc::try_unwrap(body) {
                state.buffers.put(buffer);
            }
            answered
        }
    };
    counters::answered(verb, outcome, began.elapsed());
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

type Answered = (Outcome, Vec<u8>);

async fn answered(verb: Verb, state: &ExtenderState, body: Arc<Vec<u8>>, began: Instant) -> Answered {
    let by = began + state.deadline;
    let (of, bytes) = (state.clone(), body.clone());
    let worked = within(state, by, move || match verb {
        Verb::Filter => answers::filter_by_quota(&bytes, &of, by),
        Verb::Prioritize => answers::prioritize(&bytes, &of),
        Verb::Preempt => answers::preempt(&bytes, &of),
    });
    match worked.await {
        Some(Ok(answer)) => (Outcome::Answered, answer),
        Some(Err(fault)) => (Outcome::Malformed, unreadable(verb, &fault.to_string())),
        None => neutral(verb, state, body).await,
    }
}

/// Result of the work; none if it was late lately, all threads are busy, it takes too long, or it fails.
async fn within<T: Send + 'static>(
    state: &ExtenderState,
    by: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if !state.breaker().is_closed(Instant::now()) {
        return None;
    }
    let permit = state.permits.clone().try_acquire_owned().ok()?;
    let before = state.before.clone();
    let working = tokio::task::spawn_blocking(move || {
        // It is held until the work ends, however late that is.
        let _permit = permit;
        if let Some(before) = before {
            before();
        }
        work()
    });
    let worked = tokio::time::timeout_at(by.into(), working).await;
    state.note(worked.is_ok());
    worked.ok()?.ok()
}

/// The neutral answer rests on the body alone: it waits for no lock.
async fn neutral(verb: Verb, state: &ExtenderState, body: Arc<Vec<u8>>) -> Answered {
    let of = state.clone();
    let worked = tokio::task::spawn_blocking(move || match verb {
        Verb::Filter => answers::filter(&body, |pod| quota::neutral(pod, &of.reading)),
        Verb::Prioritize => answers::neutral_prioritize(&body),
        Verb::Preempt => answers::neutral_preempt(&body, &of.reading),
    });
    match worked.await {
        Ok(Ok(answer)) => (Outcome::Neutral, answer),
        Ok(Err(fault)) => (Outcome::Malformed, unreadable(verb, &fault.to_string())),
        Err(fault) => (Outcome::Malformed, unreadable(verb, &fault.to_string())),
    }
}

/// Where no node can be named. A filter says why, and is ignored; no scores are none; and no pod is evicted, since the scheduler
/// takes an empty answer for a veto: it asks again when it tries the pod again.
fn unreadable(verb: Verb, why: &str) -> Vec<u8> {
    match verb {
        Verb::Filter => answers::unreadable_filter(why),
        Verb::Prioritize => b"[]".to_vec(),
        Verb::Preempt => br#"{"NodeNameToMetaVictims":{}}"#.to_vec(),
    }
}
