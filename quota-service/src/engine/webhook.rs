//! Events sent to a URL, signed where there is a secret, each at least once.

use super::events::{Cursor, events_after};
use super::message;
use super::placed;
use crate::config::{EventKinds, WebhookFormat};
use crate::metrics;
use crate::trace::{self, span};
use axum::http::HeaderMap;
use serving::standing::Standing;
use serving::webhook::{PostError, Webhook as Receiver};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{PlacedPool, Store, StoreError};
use tokio::sync::watch;
use tracing::{Instrument, field};
use vocab::PoolId;
use wire::EventBody;

const TAKES_AT_MOST: Duration = Duration::from_secs(10);
/// Pauses between attempts double from the first to the last of these.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));

/// Where events go, which ones, and how they are written.
#[derive(Clone)]
pub struct Webhook {
    receiver: Receiver,
    format: WebhookFormat,
    kinds: EventKinds,
}

impl Webhook {
    /// A receiver of signed bodies.
    ///
    /// # Errors
    /// The URL is no `http://HOST…` or `https://HOST…`, or the secret is shorter than 16 bytes.
    pub fn new(url: &str, secret: &[u8]) -> Result<Self, String> {
        Receiver::new(url, secret).map(Self::of)
    }

    /// A receiver that checks no signature, as those of chats.
    ///
    /// # Errors
    /// The URL is no `http://HOST…` or `https://HOST…`.
    pub fn unsigned(url: &str) -> Result<Self, String> {
        Receiver::unsigned(url).map(Self::of)
    }

    fn of(receiver: Receiver) -> Self {
        Self { receiver, format: WebhookFormat::Json, kinds: EventKinds::default() }
    }

    /// Sends bodies of a format, of these kinds of events; none stands for all.
    #[must_use]
    pub fn sending(self, format: WebhookFormat, kinds: EventKinds) -> Self {
        Self { format, kinds, ..self }
    }

    /// Trusts the authorities of a file (PEM), or those of the machine, where the URL is one of https.
    ///
    /// # Errors
    /// The file holds no certificate, or the machine trusts no authority.
    pub fn trusting(self, ca_file: Option<&Path>) -> Result<Self, String> {
        if !self.receiver.is_secure() {
            return Ok(self);
        }
        Ok(Self { receiver: self.receiver.trusting(prometheus::client_tls(ca_file)?), ..self })
    }

    async fn send(&self, event: &EventBody) -> Result<(), PostError> {
        let body = message::body(event, self.format);
        let mut headers = HeaderMap::new();
        trace::hand_on(&mut headers);
        self.receiver.post(body, headers).await.map(drop)
    }

    /// Tries until it is taken, or refused for good: such a message would hold up all behind it.
    async fn deliver(&self, pool: &PoolId, event: &EventBody) {
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
                Err(_) => PostError::NoAnswer(format!("no answer within {} s", TAKES_AT_MOST.as_secs())),
            };
            span.record("why", field::display(&why));
            if let Some(status) = why.refusal_for_good() {
                metrics::webhook_refused(pool, status.as_u16());
                tracing::warn!(
                    event = %event.id, kind = %event.kind, %pool, %why,
                    "the webhook refuses the event for good: it is set aside, and the next one is sent; GET /v1/events has it"
                );
                return;
            }
            if standing.begins("") {
                tracing::warn!(event = %event.id, %why, "the webhook refuses the event: the service tries again until it is taken");
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
                    tracing::info!(%pool, lasted_s = over.lasted_s, times = over.times, "the webhook reads events again");
                }
            }
            Err(fault) => {
                if standing.begins("") {
                    tracing::warn!(%pool, %fault, "cannot read events for the webhook: they wait for the database");
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
            if webhook.kinds.has(event.kind) {
                webhook.deliver(pool, event).await;
            }
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

    /// Answers every request over TLS with 204, as a server of this name.
    async fn server(name: &str) -> (u16, String) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = tokio_rustls::rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust it goes away.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _ = stream.read(&mut [0; 4_096]).await;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
                let _ = stream.shutdown().await;
            }
        });
        (port, made.cert.pem())
    }

    #[tokio::test]
    async fn an_https_webhook_is_sent_to_a_server_of_the_private_authority_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let event =
            r#"{"id": "1", "kind": "started", "cluster": "earth", "gpu_model": "A100", "at": "2024-03-01T00:00:00Z"}"#;
        let event: EventBody = serde_json::from_str(event).unwrap();
        let (port, certificate) = server("localhost").await;
        let (other_port, other) = server("elsewhere").await;
        let hook = |port| Webhook::new(&format!("https://localhost:{port}/x"), &[7; 32]).unwrap();
        std::fs::write(&file, certificate).unwrap();
        hook(port).trusting(Some(&file)).unwrap().send(&event).await.unwrap();
        let other_server = hook(other_port).trusting(Some(&file)).unwrap().send(&event).await.unwrap_err();
        std::fs::write(&file, other).unwrap();
        let other_authority = hook(port).trusting(Some(&file)).unwrap().send(&event).await.unwrap_err();
        let other_name = hook(other_port).trusting(Some(&file)).unwrap().send(&event).await.unwrap_err();
        for refused in [other_server, other_authority, other_name] {
            let refused = refused.to_string();
            assert!(refused.contains("the certificate of the server is not trusted"), "{refused}");
        }
        std::fs::write(&file, "nothing").unwrap();
        assert!(hook(port).trusting(Some(&file)).err().unwrap().contains("ca.pem"));
    }
}
