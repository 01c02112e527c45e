//! Events sent to a URL, each signed, each at least once.

use super::events::{Cursor, events_after};
use super::placed;
use crate::client;
use crate::trace::{self, span};
use axum::body::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::{Method, Request, Uri, header};
use hyper_util::rt::TokioIo;
use serving::standing::Standing;
use sha2::Sha256;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{PlacedPool, Store, StoreError};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tracing::{Instrument, field};
use vocab::PoolId;
use wire::EventBody;

/// The header that proves who sent it: `sha256=` and the HMAC of the body in hexadecimal digits.
const SIGNATURE: &str = "headroom-signature";
const TAKES_AT_MOST: Duration = Duration::from_secs(10);
/// Pauses between attempts double from the first to the last of these.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));

/// Where events go, and the key that signs them.
#[derive(Clone)]
pub struct Webhook {
    url: Uri,
    secret: Arc<[u8]>,
    /// Authorities whose certificates are trusted, where the URL is one of https.
    tls: Option<Arc<ClientConfig>>,
}

impl Webhook {
    /// # Errors
    /// The URL is no `http://HOST…` or `https://HOST…`, or the secret is shorter than 16 bytes.
    pub fn new(url: &str, secret: &[u8]) -> Result<Self, String> {
        let parsed: Uri = url.parse().map_err(|fault| format!("{url:?} is no URL: {fault}"))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none() {
            return Err(format!("{url:?}: write http://HOST:PORT/PATH or https://HOST:PORT/PATH"));
        }
        if secret.len() < 16 {
            return Err(format!("the secret has {} bytes; 16 are the least", secret.len()));
        }
        Ok(Self { url: parsed, secret: secret.into(), tls: None })
    }

    /// Trusts the authorities of a file (PEM), or those of the machine, where the URL is one of https.
    ///
    /// # Errors
    /// The file holds no certificate, or the machine trusts no authority.
    pub fn trusting(self, ca_file: Option<&Path>) -> Result<Self, String> {
        if self.url.scheme_str() != Some("https") {
            return Ok(self);
        }
        Ok(Self { tls: Some(prometheus::client_tls(ca_file)?), ..self })
    }

    /// Signature header of a body.
    #[must_use]
    pub fn signature(&self, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        mac.update(body);
        format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
    }

    async fn send(&self, event: &EventBody) -> Result<(), String> {
        let is_secure = self.url.scheme_str() == Some("https");
        let port = self.url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let host = self.url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let body = serde_json::to_vec(event).expect("an event has strings and numbers");
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
        let stream = TcpStream::connect((host, port)).await.map_err(|fault| fault.to_string())?;
        let response = if is_secure {
            let tls = self.tls.clone().ok_or("the authorities to trust were not read")?;
            let name = ServerName::try_from(host.to_owned()).map_err(|fault| fault.to_string())?;
            let stream = TlsConnector::from(tls).connect(name, stream).await;
            client::exchange(TokioIo::new(stream.map_err(|fault| untrusted(&fault))?), request).await?
        } else {
            client::exchange(TokioIo::new(stream), request).await?
        };
        let status = response.status();
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
                tracing::warn!(event = %event.id, %why, "the webhook refuses the event: the service tries again until it is taken");
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }
}

/// Reason of a failed TLS connection.
fn untrusted(fault: &std::io::Error) -> String {
    if fault.kind() == std::io::ErrorKind::InvalidData && fault.to_string().contains("certificate") {
        return format!(
            "the certificate of the server is not trusted ({fault}): check the host of webhook_url and webhook_authorities_file"
        );
    }
    format!("TLS 1.3 fails: {fault}")
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
            ("ftp://example.org/x", "0123456789abcdef", "or https://HOST:PORT/PATH"),
            ("example.org", "0123456789abcdef", "write http://HOST:PORT/PATH"),
            ("http://example.org", "short", "has 5 bytes"),
        ] {
            let refused = Webhook::new(url, secret.as_bytes()).err().unwrap();
            assert!(refused.contains(why), "{refused}");
        }
    }

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
            assert!(refused.contains("the certificate of the server is not trusted"), "{refused}");
        }
        std::fs::write(&file, "nothing").unwrap();
        assert!(hook(port).trusting(Some(&file)).err().unwrap().contains("ca.pem"));
    }
}
