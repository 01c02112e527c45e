//! `GET /v1/quota/stream`: sends each new quota. A slow client gets the newest, never a queue of old ones.

use super::ApiError;
use super::extract::{Query, published_pool};
use super::quota::{nothing_for, until_next_stage};
use crate::published::Ready;
use crate::quotas::Quotas;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::{once, unfold};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use utoipa::IntoParams;
use wire::{Problem, QuotaAnswer};

/// Between two comments that keep a quiet connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    cluster: String,
    gpu_model: String,
    /// Guarantee hours.
    #[param(minimum = 1, maximum = 168)]
    hours: u64,
}

/// The state of a stream.
struct Listening {
    quotas: Arc<Quotas>,
    query: StreamQuery,
    publications: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    sent: Option<HeaderValue>,
}

/// The quota now, and each new one
///
/// Server-sent events: `id` is the `ETag` of `/quota`, `event` is `quota`, `data` its body. With `Last-Event-ID` the first one
/// is sent once it differs.
#[utoipa::path(get, path = "/v1/quota/stream", tag = "quota", params(StreamQuery), responses(
    (status = 200, description = "A stream that ends with the service", body = QuotaAnswer, content_type = "text/event-stream"),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or hours; `known` lists the known ones", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet, or too many streams are open", body = Problem, content_type = "application/problem+json"),
))]
pub async fn stream(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // A fault is answered as a problem, before the stream begins.
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    u8::try_from(query.hours)
        .ok()
        .and_then(|hours| pool.answer(hours))
        .ok_or_else(|| nothing_for(&pool, query.hours))?;
    let (publications, stopping) = (quotas.publications.subscribe(), quotas.core.stopping.subscribe());
    let sent = headers.get("last-event-id").cloned();
    let listening = Listening { quotas, query, publications, stopping, sent };
    let events =
        unfold(listening, |mut listening| async move { listening.next().await.map(|event| (event, listening)) });
    let always = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((always, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response())
}

fn event(ready: &Ready) -> Bytes {
    let id = ready.etag.to_str().unwrap_or_default();
    [format!("id: {id}\nevent: quota\ndata: ").as_bytes(), &ready.body, b"\n\n"].concat().into()
}

impl Listening {
    /// The next answer that differs from the last one, or a comment after a while of silence.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.publications.mark_unchanged();
            let now = self.quotas.core.clock.now();
            let pool = published_pool(&self.quotas, &self.query.cluster, &self.query.gpu_model).ok()?;
            let answer = u8::try_from(self.query.hours).ok().and_then(|hours| pool.answer(hours))?;
            let ready = answer.at(now);
            if self.sent.as_ref() != Some(&ready.etag) {
                self.sent = Some(ready.etag.clone());
                return Some(event(ready));
            }
            let ages = until_next_stage(&pool, self.query.hours, now);
            tokio::select! {
                _ = self.publications.changed() => {}
                () = tokio::time::sleep(ages.min(HEARTBEAT)) => {
                    if ages >= HEARTBEAT {
                        return Some(Bytes::from_static(b": still there\n\n"));
                    }
                }
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
        }
    }
}

/// A body that ends with a future at the latest.
pub fn until(body: Body, end: impl Future<Output = ()> + Send + 'static) -> Body {
    Body::from_stream(body.into_data_stream().take_until(end))
}

/// A body that holds a place until it ends or is dropped.
pub fn held<T: Send + 'static>(body: Body, place: T) -> Body {
    let end = once(async move {
        drop(place);
        Ok(Bytes::new())
    });
    Body::from_stream(body.into_data_stream().chain(end))
}
