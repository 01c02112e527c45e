//! Streams the events of a pool as they are written, from the last event of the client.

use super::ApiError;
use super::extract::Query;
use super::tasks::PoolQuery;
use crate::core::Core;
use crate::engine::{Cursor, Engine, events_after, placed};
use crate::quotas::Quotas;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{once, unfold};
use futures_util::{Stream, StreamExt};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use store::{PlacedPool, PlacedPoolId};
use vocab::PoolId;
use wire::{EventBody, Problem};

/// The position of a client.
struct Telling {
    core: Arc<Core>,
    engine: Arc<Engine>,
    pool: PoolId,
    id: PlacedPoolId,
    cursor: Cursor,
    /// The last entry that was known when events were last read.
    seen: u64,
    read: VecDeque<(Cursor, EventBody)>,
}

/// Events of a pool: tasks start and are evicted, nodes are lost, quotas change
///
/// Server-sent events: `id`, `event` (its kind) and `data`. With `Last-Event-ID` it continues after that event, else from
/// now on. The first line is a comment, `: after ID`: a client that leaves before an event came goes on from that id.
#[utoipa::path(get, path = "/v1/events", tag = "tasks", params(PoolQuery), responses(
    (status = 200, description = "A stream that ends with the service", body = EventBody, content_type = "text/event-stream"),
    (status = 400, description = "The query or Last-Event-ID is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "No task was ever submitted to the pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn events(
    State(quotas): State<Arc<Quotas>>,
    State(engine): State<Arc<Engine>>,
    Query(query): Query<PoolQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let pool = query.pool()?;
    let Some(PlacedPool { id, seq: last, .. }) = placed(quotas.core.store.as_ref(), &pool).await? else {
        return Err(ApiError::UnknownPool { asked: pool.to_string(), known: quotas.published.load().ids() });
    };
    let cursor = match headers.get("last-event-id") {
        None => Cursor::after(last),
        Some(seen) => seen.to_str().ok().and_then(Cursor::parse).ok_or_else(|| ApiError::Query {
            detail: "Last-Event-ID: expected the id of an event, such as one of this stream".to_owned(),
        })?,
    };
    if cursor.seq > last {
        let detail = format!(
            "Last-Event-ID: the newest entry of the pool is {last}, so this id is of another database, as after a restored backup: \
             go on without it, or from 0.0 to read all that are kept"
        );
        return Err(ApiError::Query { detail });
    }
    let telling = Telling { core: quotas.core.clone(), engine, pool, id, cursor, seen: last, read: VecDeque::new() };
    let stream = unfold(telling, |mut telling| async move { telling.next().await.map(|event| (Ok(event), telling)) });
    let place = once(ready(Ok::<_, Infallible>(Event::default().comment(format!("after {cursor}")))));
    Ok(Sse::new(place.chain(stream)).keep_alive(KeepAlive::default()))
}

impl Telling {
    /// The next event, once it is there. The stream ends when the service stops, or cannot read: the client comes back
    /// with the last id that it has seen.
    async fn next(&mut self) -> Option<Event> {
        let mut stopping = self.core.stopping.subscribe();
        loop {
            if let Some((at, body)) = self.read.pop_front() {
                self.cursor = at;
                let data = serde_json::to_string(&body).expect("an event has strings and numbers");
                return Some(Event::default().id(body.id).event(body.kind.as_str()).data(data));
            }
            let read = events_after(self.core.store.as_ref(), self.id, self.cursor).await;
            self.read = read.inspect_err(|fault| tracing::warn!(%fault, "events were not read")).ok()?.into();
            if !self.read.is_empty() {
                continue;
            }
            // Up to there no entry holds one: the next look begins behind.
            self.cursor = self.cursor.max(Cursor::after(self.seen));
            tokio::select! {
                last = self.engine.written_after(&self.pool, self.seen) => self.seen = last,
                _ = stopping.wait_for(|stopping| *stopping) => return None,
            }
        }
    }
}
