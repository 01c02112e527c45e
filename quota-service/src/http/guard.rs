//! What keeps one kind of request from starving another: limits on time, on how many are worked on at once, on the rate of one
//! address, and on streams that stay open.
//!
//! A quota is read from memory and costs less than a refusal would save, so that `/quota` and the health checks pass whatever
//! else waits. Writes and other reads take one of their places, and are told to come back where there is none: a queue would
//! only make all of them late.

use super::access::Write;
use super::{ApiError, forward};
use crate::refresh::Service;
use axum::extract::{ConnectInfo, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::StoreError;
use tokio::sync::Semaphore;

/// Limits of the HTTP interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tasks, reports and settings that are taken at once: most of their time they wait for the disk.
    pub writes: usize,
    /// Explanations, histories and the like that are read at once: they take the processor.
    pub reads: usize,
    /// Streams and long polls that are open at once.
    pub streams: usize,
    /// How long a request may take, its body included; streams and long polls apart.
    pub request: Duration,
    /// Requests a second of one address, quotas apart; 0 for any number.
    pub rate: u32,
}

/// Addresses that are remembered before those that were quiet are forgotten.
const ADDRESSES: usize = 10_000;
/// Seconds of rate that an address may use at once.
const BURST_S: f64 = 2.0;
/// Who is refused for want of a place hears so after a while: a client that asks again at once would otherwise cost as much as
/// one that is answered.
const REFUSAL_PAUSE: Duration = Duration::from_millis(200);
/// Who is refused comes back after one of so many seconds: not all at once.
const RETRY_SPREAD_S: u32 = 5;

/// How a request is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Read from memory, never refused.
    Quota,
    /// Stays open.
    Stream,
    Write,
    Read,
}

impl Kind {
    pub fn of(route: Option<&str>, request: &Request) -> Self {
        let waits =
            || request.uri().query().is_some_and(|query| query.split('&').any(|part| part.starts_with("wait=")));
        match route {
            Some("/quota" | "/v1/quota") if waits() => Self::Stream,
            Some("/quota" | "/v1/quota" | "/healthz" | "/readyz" | "/metrics" | "/" | "/assets/{name}") => Self::Quota,
            Some("/v1/quota/stream" | "/v1/events") => Self::Stream,
            Some("/v1/tasks/dry-run") => Self::Read,
            _ if [Method::GET, Method::HEAD].contains(request.method()) => Self::Read,
            _ => Self::Write,
        }
    }
}

/// Tokens of an address, and when they were counted.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// The places that there are.
#[derive(Debug)]
pub struct Guard {
    limits: Limits,
    writes: Semaphore,
    reads: Semaphore,
    streams: Arc<Semaphore>,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
    refused: AtomicU32,
}

impl Guard {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            writes: Semaphore::new(limits.writes),
            reads: Semaphore::new(limits.reads),
            streams: Arc::new(Semaphore::new(limits.streams)),
            buckets: Mutex::default(),
            refused: AtomicU32::new(0),
        }
    }

    /// Seconds after which the next one that is refused may come back: spread, so that they do not all come at once.
    fn retry_after_s(&self) -> u32 {
        1 + self.refused.fetch_add(1, Ordering::Relaxed) % RETRY_SPREAD_S
    }

    async fn overloaded(&self) -> Response {
        let retry_after_s = self.retry_after_s();
        tokio::time::sleep(REFUSAL_PAUSE * retry_after_s).await;
        ApiError::Overloaded { retry_after_s }.into_response()
    }

    /// Takes a token of an address. Answers whether it has one.
    fn has_token(&self, address: IpAddr, now: Instant) -> bool {
        if self.limits.rate == 0 {
            return true;
        }
        let rate = f64::from(self.limits.rate);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= ADDRESSES && !buckets.contains_key(&address) {
            // A full bucket is as good as none.
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

/// Lets a request through, or says when to come back.
pub async fn guarded(service: &Service, guard: &Guard, kind: Kind, request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    if address.is_some_and(|address| !guard.has_token(address, Instant::now())) {
        return ApiError::TooMany { rate: guard.limits.rate, retry_after_s: guard.retry_after_s() }.into_response();
    }
    if kind == Kind::Stream {
        let Ok(place) = guard.streams.clone().try_acquire_owned() else { return guard.overloaded().await };
        // The place is free when the body has been sent, or its client has gone.
        return next.run(request).await.map(|body| super::stream::held(body, place));
    }
    let places = if kind == Kind::Write { &guard.writes } else { &guard.reads };
    let Ok(_place) = places.try_acquire() else { return guard.overloaded().await };
    let limit = guard.limits.request;
    let answered = async {
        let write = if kind == Kind::Write { Write::of(&request) } else { None };
        let response = forward::answered(service, request, next).await;
        match write {
            Some(write) => write.audited(service, response).await,
            None => response,
        }
    };
    tokio::select! {
        biased;
        response = answered => response,
        () = tokio::time::sleep(limit) => ApiError::TooSlow { seconds: limit.as_secs() }.into_response(),
        // What waits for a database that is gone is answered now, and not after the limits of its connections.
        reason = service.health.gone() => ApiError::Store(StoreError::Unavailable { reason }).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(rate: u32) -> Limits {
        Limits { writes: 1, reads: 1, streams: 1, request: Duration::from_secs(1), rate }
    }

    #[test]
    fn an_address_has_its_rate_and_a_burst_and_others_have_theirs() {
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
    fn who_is_refused_comes_back_at_different_times() {
        let guard = Guard::new(limits(0));
        let seconds: std::collections::BTreeSet<u32> = (0..20).map(|_| guard.retry_after_s()).collect();
        assert_eq!(seconds, (1..=5).collect());
    }
}
