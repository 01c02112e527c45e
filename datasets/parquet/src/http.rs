//! The client of object storage: hyper with rustls, TLS 1.3 alone.

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use std::time::Duration;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto, version};

/// A connection that takes longer is tried again.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Head of a response: a server that takes longer has failed.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// Makes clients.
#[derive(Debug)]
pub struct Connector;

#[derive(Debug)]
struct Service(Client<HttpsConnector<Tcp>, HttpRequestBody>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let generic = |source| object_store::Error::Generic { store: "S3", source };
        let mut roots = RootCertStore::empty();
        // A certificate that cannot be read is one that is not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(crypto::ring::default_provider().into())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|fault| generic(fault.into()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        // Whether http may be used is up to the store (AWS_ALLOW_HTTP).
        let https =
            HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(tcp);
        Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build(https))))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(ANSWERS_WITHIN, self.0.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let kind = |fault: &hyper_util::client::legacy::Error| {
            if fault.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request }
        };
        let (head, body) = answer.map_err(|fault| HttpError::new(kind(&fault), fault))?.into_parts();
        let body = body.map_err(|fault| HttpError::new(HttpErrorKind::Interrupted, fault));
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}
