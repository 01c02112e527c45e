//! Webhooks, signed where there is a secret: one POST over a connection of its own, over HTTP or HTTPS.

use crate::client;
use axum::body::Bytes;
use axum::http::HeaderMap;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::{Method, Request, Response, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use sha2::Sha256;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// The header that proves the sender: `sha256=` and the HMAC of the body in hexadecimal digits.
const SIGNATURE: &str = "headroom-signature";
/// Bytes of the longest code that an error shows of a refusal's body.
const LONGEST_CODE: usize = 40;

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The receiver answers no success.
    #[error("it answers {status}{}", .code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its body, where it is a code such as Slack's `invalid_payload`. Other bodies may repeat the path of the URL, a secret.
        code: Option<String>,
    },
    /// There is no answer.
    #[error("{0}")]
    NoAnswer(String),
}

impl From<String> for PostError {
    fn from(why: String) -> Self {
        Self::NoAnswer(why)
    }
}

impl PostError {
    fn refused(status: StatusCode, body: &[u8]) -> Self {
        let is_code =
            |text: &&str| text.len() <= LONGEST_CODE && text.bytes().all(|one| matches!(one, b'a'..=b'z' | b'_'));
        let code = std::str::from_utf8(body).ok().map(str::trim).filter(|text| !text.is_empty()).filter(is_code);
        Self::Refused { status, code: code.map(str::to_owned) }
    }

    /// The status of a receiver that refuses this message for good. Where the status speaks of the URL, of credentials or of the
    /// moment, the same message may be taken later, and every other one is refused as well.
    #[must_use]
    pub fn refusal_for_good(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } if status.is_client_error() && !PASSING.contains(&status.as_u16()) => {
                Some(*status)
            }
            _ => None,
        }
    }
}

/// Statuses (4xx) that do not speak of the message: of credentials (401, 403, 407), the URL (404, 405, 410, 421), the moment (408, 423, 425,
/// 429), the protocol (426).
const PASSING: [u16; 12] = [401, 403, 404, 405, 407, 408, 410, 421, 423, 425, 426, 429];

/// The URL of a webhook, and the key that signs what goes there.
#[derive(Clone)]
pub struct Webhook {
    url: Uri,
    /// The receivers of chats check no signature and have none.
    secret: Option<Arc<[u8]>>,
    /// Authorities whose certificates are trusted, where the URL is one of https.
    tls: Option<Arc<ClientConfig>>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Webhook {
    /// A receiver of signed bodies.
    ///
    /// # Errors
    /// The URL is no `http://HOST…` or `https://HOST…`, or the secret is shorter than 16 bytes.
    pub fn new(url: &str, secret: &[u8]) -> Result<Self, String> {
        let unsigned = Self::unsigned(url)?;
        if secret.len() < 16 {
            return Err(format!("the secret has {} bytes; 16 are the least", secret.len()));
        }
        Ok(Self { secret: Some(secret.into()), ..unsigned })
    }

    /// A receiver that checks no signature.
    ///
    /// # Errors
    /// The URL is no `http://HOST…` or `https://HOST…`.
    pub fn unsigned(url: &str) -> Result<Self, String> {
        // The URL of a chat is a secret: no message repeats it.
        let expected = "write http://HOST:PORT/PATH or https://HOST:PORT/PATH";
        let parsed: Uri = url.parse().map_err(|fault| format!("it is no URL ({fault}): {expected}"))?;
        let scheme = parsed.scheme_str();
        if !matches!(scheme, Some("http" | "https")) || parsed.host().is_none_or(str::is_empty) {
            let found =
                scheme.map_or_else(|| "it has no scheme".to_owned(), |scheme| format!("its scheme is {scheme}"));
            return Err(format!("{found}: {expected}"));
        }
        if parsed.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!("it names a user, which would not be sent: {expected}"));
        }
        Ok(Self { url: parsed, secret: None, tls: None })
    }

    /// Whether the URL is one of https.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.url.scheme_str() == Some("https")
    }

    /// Trusts these authorities, where the URL is one of https.
    #[must_use]
    pub fn trusting(self, tls: Arc<ClientConfig>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Signature header of a body, where there is a secret.
    #[must_use]
    pub fn signature(&self, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_ref()?).expect("HMAC takes keys of any length");
        mac.update(body);
        let digest = mac.finalize().into_bytes();
        Some(digest.iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}")))
    }

    /// Sends a JSON body with its signature and more headers. How long that may take is the caller's business.
    ///
    /// # Errors
    /// The server does not answer, is not trusted, or answers no success.
    pub async fn post(&self, body: Vec<u8>, more: HeaderMap) -> Result<Response<Bytes>, PostError> {
        let port = self.url.port_u16().unwrap_or(if self.is_secure() { 443 } else { 80 });
        let host = self.url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, self.url.authority().map_or(host, |authority| authority.as_str()))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close");
        if let Some(signature) = self.signature(&body) {
            request = request.header(SIGNATURE, signature);
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let mut request = request.map_err(|fault| fault.to_string())?;
        request.headers_mut().extend(more);
        let stream = TcpStream::connect((host, port)).await.map_err(|fault| fault.to_string())?;
        let response = if self.is_secure() {
            let tls = self.tls.clone().ok_or_else(|| "the authorities to trust were not read".to_owned())?;
            let name = ServerName::try_from(host.to_owned()).map_err(|fault| fault.to_string())?;
            let stream = TlsConnector::from(tls).connect(name, stream).await;
            client::glance(TokioIo::new(stream.map_err(|fault| untrusted(&fault))?), request).await?
        } else {
            client::glance(TokioIo::new(stream), request).await?
        };
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(PostError::refused(status, response.body())) }
    }
}

/// Reason of a failed TLS connection.
fn untrusted(fault: &std::io::Error) -> String {
    if fault.kind() == std::io::ErrorKind::InvalidData && fault.to_string().contains("certificate") {
        return format!(
            "the certificate of the server is not trusted ({fault}): check the host of the webhook's URL and its file of authorities"
        );
    }
    format!("TLS 1.3 fails: {fault}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_signed_as_rfc_4231_has_it() {
        let key = [0x0b; 20];
        let hook = Webhook::new("http://127.0.0.1:1/x", &key).unwrap();
        let expected = "sha256=b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(hook.signature(b"Hi There").as_deref(), Some(expected));
        assert_eq!(Webhook::unsigned("http://127.0.0.1:1/x").unwrap().signature(b"Hi There"), None);
    }

    #[test]
    fn a_message_is_refused_for_good_by_what_is_wrong_with_it_and_not_by_the_url_or_the_moment() {
        let of = |status: u16| PostError::refused(StatusCode::from_u16(status).unwrap(), b"invalid_payload\n");
        let good: Vec<u16> = (100..600).filter(|status| of(*status).refusal_for_good().is_some()).collect();
        for status in [400, 413, 415, 422] {
            assert!(good.contains(&status), "{status}");
        }
        for status in [302, 401, 403, 404, 408, 410, 429, 500, 502, 503, 504] {
            assert!(!good.contains(&status), "{status}");
        }
        assert_eq!(of(400).to_string(), "it answers 400 Bad Request (invalid_payload)");
        for body in ["", "Cannot POST /services/T0/B0/secret", "{}"] {
            let conflict = PostError::refused(StatusCode::CONFLICT, body.as_bytes());
            assert_eq!(conflict.to_string(), "it answers 409 Conflict", "the path of the URL is a secret");
        }
        assert_eq!(PostError::from("no route".to_owned()).refusal_for_good(), None);
    }

    #[test]
    fn an_address_out_of_reach_or_a_secret_too_short_is_refused() {
        for (url, secret, why) in [
            ("ftp://example.org/x", "0123456789abcdef", "or https://HOST:PORT/PATH"),
            ("example.org", "0123456789abcdef", "write http://HOST:PORT/PATH"),
            ("http://example.org/services/x y", "0123456789abcdef", "write http://HOST:PORT/PATH"),
            ("http://user:password@example.org/x", "0123456789abcdef", "it names a user"),
            ("http://example.org", "short", "has 5 bytes"),
        ] {
            let refused = Webhook::new(url, secret.as_bytes()).err().unwrap();
            assert!(refused.contains(why), "{refused}");
            assert!(
                !refused.contains("example.org") && !refused.contains("services"),
                "the URL is a secret: {refused}"
            );
        }
    }
}
