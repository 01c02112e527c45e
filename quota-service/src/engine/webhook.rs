//! Events told to a URL, each signed, each at least once.

use super::events::{Cursor, events_after};
use super::placed;
use crate::trace::{self, span};
use axum::body::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Uri, header};
use hyper_util::rt::TokioIo;
use serving::said::Standing;
use sha2::Sha256;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use store::{PlacedPool, Store, StoreError};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tracing::{Instrument, field};
use vocab::PoolId;
use wire::EventBody;

/// The header that proves who sent it: `sha256=` and the HMAC of the body in hexadecimal digits.
pub const SIGNATURE: &str = "headroom-signature";
const TAKES_AT_MOST: Duration = Duration::from_secs(10);
/// Pauses between attempts double from the first to the last of these.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));

/// Where events go, and the key that signs them.
#[derive(Clone)]
pub struct Webhook {
    url: Uri,
    secret: Arc<[u8]>,
}

impl Webhook {
    /// # Errors
    /// The URL is no `http://HOST…`, or the secret is shorter than 16 bytes.
    pub fn new(url: &str, secret: &[u8]) -> Result<Self, String> {
        let parsed: Uri = url.parse().map_err(|fault| format!("{url:?} is no URL: {fault}"))?;
        if parsed.scheme_str() != Some("http") || parsed.host().is_none() {
            return Err(format!("{url:?}: write http://HOST:PORT/PATH; for TLS, put a proxy between"));
        }
        if secret.len() < 16 {
            return Err(format!("the secret has {} bytes; 16 are the least", secret.len()));
        }
        Ok(Self { url: parsed, secret: secret.into() })
    }

    /// What the header says of a body.
    #[must_use]
    pub fn signature(&self, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        mac.update(body);
        mac.finalize().into_bytes().iter().fold(String::from("sha256="), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    async fn send(&self, event: &EventBody) -> Result<(), String> {
        let (host, port) = (self.url.host().unwrap_or_default(), self.url.port_u16().unwrap_or(80));
        let body = serde_json::to_vec(event).expect("an event has strings and numbers");
        let stream = TcpStream::connect((host, port)).await.map_err(|fault| fault.to_string())?;
        let handshake = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|fault| fault.to_string())?;
        let driving = tokio::spawn(connection);
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, self.url.authority().map_or(host, |authority| authority.as_str()))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .header(SIGNATURE, self.signature(&body))
            .body(Full::new(Bytes::from(body)));
        let mut request = request.map_err(|fault| fault.to_string())?;
        trace::hand_on(request.headers_mut());
        let response = sender.send_request(request).await.map_err(|fault| fault.to_string())?;
        let status = response.status();
        // Read to its end, so that the other side can close in peace.
        let _ = response.into_body().collect().await;
        driving.abort();
        if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
    }

    /// Tries until it is taken.
    async fn deliver(&self, event: &EventBody) {
        let mut pause = PAUSE.0;
        let standing = Standing::new();
        loop {
            let span =
                span!("webhook", event = %event.id, kind = %event.kind, otel.kind = "client", why = field::Empty);
            let tried = tokio::time::timeout(TAKES_AT_MOST, self.send(event)).instrument(span.clone()).await;
            let why = match tried {
                Ok(Ok(())) => {
                    if let Some(over) = standing.is_over("") {
                        let (lasted_s, times) = (over.lasted_s, over.times);
                        tracing::info!(event = %event.id, lasted_s, times, "the webhook has taken the event");
                    }
                    return;
                }
                Ok(Err(why)) => why,
                Err(_) => format!("no answer within {} s", TAKES_AT_MOST.as_secs()),
            };
            span.record("why", &why);
            if standing.begins("") {
                tracing::warn!(event = %event.id, %why, "the webhook does not take the event: it is tried until it does");
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }
}

/// Tells the events of a pool in their order, from where the last one was taken. Ends with the pool's writer.
pub async fn run(store: Arc<dyn Store>, webhook: Webhook, pool: PoolId, mut written: watch::Receiver<u64>) {
    let standing = Standing::new();
    loop {
        match catch_up(store.as_ref(), &webhook, &pool).await {
            Ok(()) => {
                if let Some(over) = standing.is_over("") {
                    tracing::info!(%pool, lasted_s = over.lasted_s, times = over.times, "events are told again");
                }
            }
            Err(fault) => {
                if standing.begins("") {
                    tracing::warn!(%pool, %fault, "events wait for the database");
                }
                tokio::time::sleep(PAUSE.0).await;
            }
        }
        if written.changed().await.is_err() {
            return;
        }
    }
}

async fn catch_up(store: &dyn Store, webhook: &Webhook, pool: &PoolId) -> Result<(), StoreError> {
    let Some(PlacedPool { id, announced_seq: announced, .. }) = placed(store, pool).await? else { return Ok(()) };
    let mut cursor = Cursor::after(announced);
    loop {
        let events = events_after(store, id, cursor).await?;
        let Some((last, _)) = events.last() else { return Ok(()) };
        let last = *last;
        for (at, event) in &events {
            webhook.deliver(event).await;
            if at.seq > cursor.seq && cursor.seq > announced {
                store.put_announced(id, cursor.seq).await?;
            }
            cursor = *at;
        }
        store.put_announced(id, last.seq).await?;
        cursor = Cursor::after(last.seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_signed_as_rfc_4231_has_it() {
        let key = [0x0b; 20];
        let hook = Webhook::new("http://127.0.0.1:1/x", &key).unwrap();
        let expected = "sha256=b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(hook.signature(b"Hi There"), expected);
    }

    #[test]
    fn what_cannot_be_reached_or_proves_nothing_is_refused() {
        for (url, secret, why) in [
            ("https://example.org/x", "0123456789abcdef", "for TLS, put a proxy between"),
            ("example.org", "0123456789abcdef", "write http://HOST:PORT/PATH"),
            ("http://example.org", "short", "has 5 bytes"),
        ] {
            let refused = Webhook::new(url, secret.as_bytes()).err().unwrap();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
