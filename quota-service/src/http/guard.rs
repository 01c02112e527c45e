//! Limits that keep one class of requests from starving another: on time, on concurrency, on the rate of one address, and on open
//! streams.
//!
//! A quota is read from memory and costs less than a refusal saves, so `/quota` and the health checks always pass. Writes and other
//! reads take a place of their class, and are refused with `Retry-After` without a free one: a queue would only make all of them
//! late. One token holds half of the places at most.

use super::places::{Place, Places, Taken};
use super::routes::{LimitClass, Route};
use super::transit::{Asked, Transit, Unfit};
use super::{ApiError, forward};
use crate::access::{Access, Caller, Refused};
use crate::config::Config;
use crate::health::{Health, Refusal};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::LengthLimitError;
use serving::room::{RoomLimits, Share};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{Instrument, Span};

/// Limits of the HTTP interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent writes: most of their time they wait for the disk.
    pub writes: usize,
    /// Concurrent reads, such as explanations and histories: they take the processor.
    pub reads: usize,
    /// Open streams and long polls.
    pub streams: usize,
    /// The time limit of a request, its body included; streams and long polls apart.
    pub request: Duration,
    /// Requests a second of one address, quotas apart; 0 for no limit.
    pub rate: u32,
    /// Bytes of bodies in transit.
    pub room: RoomLimits,
    /// Bytes of one request's body.
    pub body_bytes: usize,
}

impl Limits {
    /// The limits of the settings.
    #[must_use]
    pub const fn of(config: &Config) -> Self {
        Self {
            writes: config.max_writes,
            reads: config.max_reads,
            streams: config.max_streams,
            request: Duration::from_secs(config.request_limit_s),
            rate: config.max_requests_per_s,
            room: RoomLimits { bytes: config.max_transit_bytes, bytes_of_client: config.max_transit_bytes_per_client },
            body_bytes: config.max_body_bytes,
        }
    }
}

/// Addresses with a bucket; beyond, full buckets are dropped first.
const ADDRESSES: usize = 10_000;
/// Seconds of rate that an address may use at once.
const BURST_S: f64 = 2.0;
/// The delay of a refusal for want of a place: a client that retries at once would otherwise cost as much as an answered one.
const REFUSAL_PAUSE: Duration = Duration::from_millis(200);
/// The spread of `Retry-After`, in seconds: clients do not all retry at once.
const RETRY_SPREAD_S: u32 = 5;

/// Limit class of a request. One without a row is limited as what its method suggests.
pub fn class(row: Option<&Route>, request: &Request) -> LimitClass {
    let is_get = [Method::GET, Method::HEAD].contains(request.method());
    let waits = || request.uri().query().is_some_and(|query| query.split('&').any(|part| part.starts_with("wait=")));
    match row.map(|row| row.limit) {
        Some(LimitClass::LongPoll) if waits() => LimitClass::Stream,
        Some(LimitClass::LongPoll) => LimitClass::Memory,
        Some(class) => class,
        None if is_get => LimitClass::Read,
        None => LimitClass::Write,
    }
}

/// Tokens of an address, and when they were counted.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// The places of each class, and the buckets of addresses.
#[derive(Debug)]
pub struct Guard {
    limits: Limits,
    writes: Places,
    reads: Places,
    streams: Arc<Semaphore>,
    transit: Transit,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
    refused: AtomicU32,
}

impl Guard {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            writes: Places::new(limits.writes),
            reads: Places::new(limits.reads),
            streams: Arc::new(Semaphore::new(limits.streams)),
            transit: Transit::new(&limits),
            buckets: Mutex::default(),
            refused: AtomicU32::new(0),
        }
    }

    /// Seconds after which the next refused client may retry, spread over [`RETRY_SPREAD_S`].
    fn retry_after_s(&self) -> u32 {
        1 + self.refused.fetch_add(1, Ordering::Relaxed) % RETRY_SPREAD_S
    }

    async fn overloaded(&self, taken: Taken) -> Response {
        let retry_after_s = self.retry_after_s();
        tokio::time::sleep(REFUSAL_PAUSE * retry_after_s).await;
        ApiError::Overloaded { taken, retry_after_s }.into_response()
    }

    /// Takes a token from the bucket of an address; false where it is empty.
    fn has_token(&self, address: IpAddr, now: Instant) -> bool {
        if self.limits.rate == 0 {
            return true;
        }
        let rate = f64::from(self.limits.rate);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= ADDRESSES && !buckets.contains_key(&address) {
            // A full bucket needs no entry.
            buckets.retain(|_, bucket| now.duration_since(bucket.at).as_secs_f64() < BURST_S);
        }
        let full = Bucket { tokens: rate * BURST_S, at: now };
        let bucket = buckets.entry(address).or_insert(full);
        let since_s = now.saturating_duration_since(bucket.at).as_secs_f64();
        *bucket = Bucket { tokens: (bucket.tokens + since_s * rate).min(rate * BURST_S), at: now };
        let has_one = bucket.tokens >= 1.0;
        if has_one {
            bucket.tokens -= 1.0;
        }
        has_one
    }
}

/// Passes a request on, or refuses it with `Retry-After`.
pub async fn guarded(
    access: &Arc<Access>,
    health: &Arc<Health>,
    guard: &Guard,
    class: LimitClass,
    request: Request,
    next: Next,
) -> Response {
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    if address.is_some_and(|address| !guard.has_token(address, Instant::now())) {
        return ApiError::TooMany { rate: guard.limits.rate, retry_after_s: guard.retry_after_s() }.into_response();
    }
    if class == LimitClass::Stream {
        let Ok(place) = guard.streams.clone().try_acquire_owned() else { return guard.overloaded(Taken::All).await };
        return streamed(access, request, next, place).await;
    }
    let has_written = class == LimitClass::Write;
    let places = if has_written { &guard.writes } else { &guard.reads };
    let asked = Asked::of(&request);
    let place = match places.try_take(asked.client()) {
        Ok(place) => place,
        Err(taken) => return guard.overloaded(taken).await,
    };
    let limit = guard.limits.request;
    let answered = async {
        // A large answer is made in its turn, and only where there is room for it. So are futures played.
        let turn = guard.transit.turn(&asked).await?;
        let share = guard.transit.expect(&asked).ok_or(Unfit::NoRoom)?;
        // The room of the request is released once it is handled.
        let (request, room) = guard.transit.received(request, &asked).await?;
        let (response, place) = if has_written {
            written(access, health, (place, room), request, next).await?
        } else {
            (forward::answered(&access.core, request, next).await, place)
        };
        Ok::<_, Unfit>((response, share, place, turn))
    };
    let sent = tokio::select! {
        biased;
        answered = answered => match answered {
            Ok((response, share, place, _turn)) => guard.transit.sent(response, &asked, share, place, has_written).await,
            Err(Unfit::Other(fault)) => Some(fault.into_response()),
            Err(Unfit::NoRoom) => None,
        },
        () = tokio::time::sleep(limit) => Some(ApiError::TooSlow { seconds: limit.as_secs() }.into_response()),
        // A request that waits for a lost database is answered now, not after the time limits of its connections.
        reason = health.gone() => Some(ApiError::from(StoreError::Unavailable { reason }).into_response()),
    };
    match sent {
        Some(response) => response,
        None => guard.overloaded(Taken::All).await,
    }
}

/// A write runs to its end in a task of its own, and holds its place until then: a client that disconnects leaves nothing half
/// done.
async fn written(
    access: &Arc<Access>,
    health: &Arc<Health>,
    (place, room): (Place, Option<Share>),
    request: Request,
    next: Next,
) -> Result<(Response, Place), Unfit> {
    // 1. Receive: a body that does not arrive whole is no request.
    let (parts, body) = request.into_parts();
    let body = received(body, access.core.config.max_body_bytes).await.map_err(Unfit::Other)?;
    let request = Request::from_parts(parts, Body::from(body));
    // 2. Write.
    let (core, health, under_way) = (access.core.clone(), health.clone(), access.writes.begin());
    let write = async move {
        let response = forward::answered(&core, request, next).await;
        note(&health, &response);
        drop((room, under_way));
        (response, place)
    };
    // 3. Answer, if the client is still connected.
    match tokio::spawn(write.instrument(Span::current())).await {
        Ok(answered) => Ok(answered),
        Err(fault) => match fault.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Unfit::Other(ApiError::NotWritten { detail: "the service is stopping".to_owned() })),
        },
    }
}

/// Notes whether the database took a write; a refusal of another replica, or for want of one that leads, is no evidence.
fn note(health: &Health, response: &Response) {
    match response.extensions().get::<Refusal>() {
        Some(refusal) => health.note_refusal(refusal.clone()),
        None if response.status().is_success() => health.note_write(),
        None => {}
    }
}

/// The whole body.
///
/// # Errors
/// It is larger than `max_bytes`, or its client disconnects before its end.
pub async fn received(body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    to_bytes(body, max_bytes).await.map_err(|fault| {
        let detail = fault.to_string();
        let is_too_large = fault.into_inner().is::<LengthLimitError>();
        if is_too_large { ApiError::TooLarge { max_bytes } } else { ApiError::Receive { detail } }
    })
}

/// Answers a scrape; its bytes count like those of other answers.
pub async fn scraped(guard: &Guard, request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    let Some(share) = guard.transit.expect(&asked) else { return guard.overloaded(Taken::All).await };
    match guard.transit.sent(next.run(request).await, &asked, share, (), false).await {
        Some(response) => response,
        None => guard.overloaded(Taken::All).await,
    }
}

/// Answers a stream or a long poll. It ends when its token is no longer valid; its place is free when the body has been sent, or
/// its client has disconnected.
async fn streamed(access: &Arc<Access>, request: Request, next: Next, place: OwnedSemaphorePermit) -> Response {
    let (access, caller) = (access.clone(), request.extensions().get::<Arc<Caller>>().cloned());
    let mut expired = Box::pin(async move {
        match caller {
            Some(caller) => access.tokens.expired(&caller).await,
            None => std::future::pending().await,
        }
    });
    let response = tokio::select! {
        response = next.run(request) => response,
        () = &mut expired => return ApiError::NoToken(Refused::Unknown).into_response(),
    };
    response.map(|body| super::stream::held(super::stream::until(body, expired), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(rate: u32) -> Limits {
        let room = RoomLimits { bytes: 1, bytes_of_client: 1 };
        Limits { writes: 1, reads: 1, streams: 1, request: Duration::from_secs(1), rate, room, body_bytes: 1 }
    }

    #[test]
    fn each_address_has_its_own_rate_and_burst() {
        let (guard, start) = (Guard::new(limits(10)), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        let [one, other] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let taken = (0..30).filter(|_| guard.has_token(one, start)).count();
        assert_eq!((taken, guard.has_token(other, start)), (20, true));
        assert!(!guard.has_token(one, at(50)) && guard.has_token(one, at(150)), "a tenth of a second each");
        assert_eq!((0..40).filter(|_| guard.has_token(one, at(60_000))).count(), 20);
        assert!((0..1_000).all(|_| Guard::new(limits(0)).has_token(one, start)));
    }

    #[test]
    fn a_leader_that_is_dead_or_a_full_queue_is_no_refusal_of_the_database() {
        let dead = ApiError::plain(503, "not-the-writer", "The leader does not answer", "try again".to_owned());
        let stopping = || ApiError::NotWritten { detail: "the service is stopping".to_owned() };
        let full = || ApiError::from(StoreError::Full { reason: "no space".to_owned() });
        let after = |refused: &dyn Fn() -> ApiError| {
            let health = Health::default();
            (0..5).for_each(|_| note(&health, &refused().into_response()));
            health.problem()
        };
        assert_eq!(after(&|| ApiError::Problem(Box::new(dead.clone()))), None);
        assert_eq!(after(&|| ApiError::Elsewhere(None)), None);
        assert_eq!(after(&|| ApiError::NoQuotaYet { why: "none".to_owned() }), None);
        assert_eq!(after(&|| ApiError::Overloaded { taken: Taken::All, retry_after_s: 1 }), None);
        assert_eq!(after(&|| ApiError::TooMany { rate: 1, retry_after_s: 1 }), None);
        assert_eq!(after(&stopping), None);
        assert!(after(&full).unwrap().contains("no space"));
    }

    #[test]
    fn refused_clients_retry_at_different_times() {
        let guard = Guard::new(limits(0));
        let seconds: std::collections::BTreeSet<u32> = (0..20).map(|_| guard.retry_after_s()).collect();
        assert_eq!(seconds, (1..=5).collect());
    }
}
