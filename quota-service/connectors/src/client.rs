//! The client of quota-service.

use crate::values::HeadroomUrl;
use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, USER_AGENT};
use axum::http::{Method, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pooled;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 64 * 1_024 * 1_024;

/// Why a request to Headroom failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadroomError {
    /// A setting is wrong.
    #[error("{key}: {detail}")]
    Settings {
        /// The setting.
        key: &'static str,
        /// Cause.
        detail: String,
    },
    /// No answer.
    #[error("{url} does not answer: {detail}")]
    Unavailable {
        /// URL of the request.
        url: String,
        /// Cause.
        detail: String,
    },
    /// An HTTP status that is no success.
    #[error("{url} answers {status}: {detail}")]
    Refused {
        /// URL of the request.
        url: String,
        /// HTTP status.
        status: u16,
        /// Detail of the problem.
        detail: String,
    },
    /// An answer of another kind.
    #[error("{url} does not answer as quota-service: {detail}; check headroom_url")]
    Foreign {
        /// URL of the request.
        url: String,
        /// Cause.
        detail: String,
    },
}

impl HeadroomError {
    /// Whether the same request may succeed later. A request refused as invalid stays invalid.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Foreign { .. } | Self::Settings { .. } => true,
            Self::Refused { status, .. } => !matches!(status, 400 | 413 | 422),
        }
    }
}

/// Where quota-service is, and how a connector shows who it is.
#[derive(Debug, Clone, Copy)]
pub struct ServiceSettings<'a> {
    /// Its URL.
    pub url: &'a HeadroomUrl,
    /// File with the token (`headroom_token_file`).
    pub token_file: Option<&'a Path>,
    /// Authority of its certificate (`headroom_ca_file`).
    pub ca_file: Option<&'a Path>,
    /// Name and version of the connector, as `User-Agent`.
    pub agent: &'static str,
}

/// Client of one quota-service.
#[derive(Debug, Clone)]
pub struct Headroom {
    url: HeadroomUrl,
    token_file: Option<PathBuf>,
    agent: &'static str,
    client: Pooled<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Headroom {
    /// # Errors
    /// The authority cannot be read.
    pub fn new(settings: ServiceSettings<'_>) -> Result<Self, HeadroomError> {
        let url = settings.url.clone();
        let tls = trusting(settings.ca_file, url.is_secure)
            .map_err(|detail| HeadroomError::Settings { key: "headroom_ca_file", detail })?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let client = Pooled::builder(TokioExecutor::new()).pool_idle_timeout(Duration::from_secs(30)).build(connector);
        let token_file = settings.token_file.map(Path::to_owned);
        Ok(Self { url, token_file, agent: settings.agent, client })
    }

    /// # Errors
    /// It does not answer, refuses, or is no quota-service.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, HeadroomError> {
        self.ask(Method::GET, path, None).await
    }

    /// As [`get`](Self::get), with the `Date` of the answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_dated<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Option<String>), HeadroomError> {
        self.ask_dated(Method::GET, path, None).await
    }

    /// # Errors
    /// As [`get`](Self::get).
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, HeadroomError> {
        let body = serde_json::to_vec(body).map_err(|fault| self.foreign(path, fault.to_string()))?;
        self.ask(method, path, Some(body.into())).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<T, HeadroomError> {
        self.ask_dated(method, path, body).await.map(|(answer, _)| answer)
    }

    async fn ask_dated<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(T, Option<String>), HeadroomError> {
        let request = self.request(method, path, body)?;
        let away = |detail: String| HeadroomError::Unavailable { url: self.at(path), detail };
        let exchange = async {
            let response = self.client.request(request).await.map_err(|fault| away(chain(&fault)))?;
            let status = response.status();
            let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
            Ok((status, date, body.map_err(|fault| away(fault.to_string()))?.to_bytes()))
        };
        let answered = tokio::time::timeout(ANSWERS_WITHIN, exchange).await;
        let (status, date, body) =
            answered.map_err(|_| away(format!("no answer within {} s", ANSWERS_WITHIN.as_secs())))??;
        if !status.is_success() {
            return Err(self.refused(path, status, &body));
        }
        let read = serde_json::from_slice(&body).map_err(|fault| self.foreign(path, fault.to_string()))?;
        Ok((read, date))
    }

    fn request(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Request<Full<Bytes>>, HeadroomError> {
        let mut request = Request::builder().method(method).uri(self.at(path));
        request = request.header(USER_AGENT, self.agent);
        if let Some(file) = &self.token_file {
            // Read each time: a token is changed by changing its file.
            let wrong = |detail| HeadroomError::Settings { key: "headroom_token_file", detail };
            let token = std::fs::read_to_string(file);
            let token = token.map_err(|fault| wrong(format!("{}: {fault}", file.display())))?;
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let made = request.body(Full::new(body.unwrap_or_default()));
        made.map_err(|fault| HeadroomError::Settings { key: "headroom_token_file", detail: fault.to_string() })
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.base)
    }

    fn foreign(&self, path: &str, detail: String) -> HeadroomError {
        HeadroomError::Foreign { url: self.at(path), detail }
    }

    /// The detail of a problem, if the body is one.
    fn refused(&self, path: &str, status: StatusCode, body: &[u8]) -> HeadroomError {
        let problem = serde_json::from_slice::<wire::Problem>(body).ok();
        let text = || String::from_utf8_lossy(body).chars().take(200).collect();
        let detail = problem.map_or_else(text, |problem| problem.detail);
        HeadroomError::Refused { url: self.at(path), status: status.as_u16(), detail }
    }
}

/// A fault with its causes.
#[must_use]
pub fn chain(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

/// TLS of a client that trusts the authorities of a file (PEM), or, without one and where it `is_secure`, those of the machine.
///
/// # Errors
/// The file holds no certificate, or the machine trusts no authority.
pub fn trusting(ca_file: Option<&Path>, is_secure: bool) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        let ca_file = path.display();
        let read = CertificateDer::pem_file_iter(path).map_err(|fault| format!("{ca_file}: {fault:?}"))?;
        for certificate in read {
            let certificate = certificate.map_err(|fault| format!("{ca_file}: {fault:?}"))?;
            roots.add(certificate).map_err(|fault| format!("{ca_file}: {fault}"))?;
        }
        if roots.is_empty() {
            return Err(format!("{ca_file}: it holds no certificate (PEM)"));
        }
    } else if is_secure {
        for certificate in rustls_native_certs::load_native_certs().certs {
            // An unusable one leaves the others.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err("this machine trusts no authority: name a file of authorities".to_owned());
        }
    }
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let client = client.with_protocol_versions(&[&TLS13]).map_err(|fault| fault.to_string())?;
    Ok(client.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connector_offers_tls_1_3_alone() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let ca = file("ca.pem", certificate.pem());
        let config = Arc::new(trusting(Some(&ca), true).unwrap());
        let name = "localhost".try_into().unwrap();
        let mut connection = tokio_rustls::rustls::ClientConnection::new(config, name).unwrap();
        let mut hello = Vec::new();
        let _ = connection.write_tls(&mut hello).unwrap();
        let at = hello.windows(3).position(|bytes| bytes == [0, 43, 0]).expect("it offers versions");
        assert_eq!(hello[at + 4..at + 7], [2, 3, 4], "one version, of two bytes");
    }
}
