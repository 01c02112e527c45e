//! The client of object storage: hyper with rustls, TLS 1.3 alone, and how long it waits.

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, RetryConfig};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto, version};

/// A request is tried again so often at most.
const RETRIES_MOST: usize = 3;
/// And none is begun later than so many times the time that one answer may take.
const ANSWERS_TRIED: u32 = 2;

/// How long a storage may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until a connection stands. `AWS_CONNECT_TIMEOUT`, 5 seconds by default.
    connect: Duration,
    /// Until the head of an answer, and from one piece of its body to the next. `AWS_TIMEOUT`, 30 seconds by default.
    answer: Duration,
}

impl Patience {
    /// The times that a builder read from the environment.
    ///
    /// # Errors
    /// One is no time: its variable, and what was expected.
    pub fn of(builder: &AmazonS3Builder) -> Result<Self, String> {
        let time = |key: ClientConfigKey, variable: &str, default: Duration| {
            let Some(text) = builder.get_config_value(&AmazonS3ConfigKey::Client(key)) else { return Ok(default) };
            let time = humantime::parse_duration(&text).ok().filter(|time| !time.is_zero());
            time.ok_or_else(|| format!("invalid {variable} {text:?}: expected a time such as 30s or 2m"))
        };
        Ok(Self {
            connect: time(ClientConfigKey::ConnectTimeout, "AWS_CONNECT_TIMEOUT", Duration::from_secs(5))?,
            answer: time(ClientConfigKey::Timeout, "AWS_TIMEOUT", Duration::from_secs(30))?,
        })
    }

    /// How often a request is tried: a storage that never answers is given up after a little more than twice the time of an answer.
    pub fn retries(self) -> RetryConfig {
        RetryConfig { max_retries: RETRIES_MOST, retry_timeout: self.answer * ANSWERS_TRIED, ..RetryConfig::default() }
    }
}

/// Makes clients.
#[derive(Debug)]
pub struct Connector(pub Patience);

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<Tcp>, HttpRequestBody>,
    answer: Duration,
}

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
        tcp.set_connect_timeout(Some(self.0.connect));
        // Whether http may be used is up to the store (AWS_ALLOW_HTTP).
        let https =
            HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(https);
        Ok(HttpClient::new(Service { client, answer: self.0.answer }))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(self.answer, self.client.request(request)).await;
        let late = |_| HttpError::new(HttpErrorKind::Timeout, Late(self.answer));
        let answer = answer.map_err(late)?;
        let kind = |fault: &hyper_util::client::legacy::Error| {
            if fault.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request }
        };
        let (head, body) = answer.map_err(|fault| HttpError::new(kind(&fault), fault))?.into_parts();
        let body = Impatient { body, within: self.answer, late: Box::pin(sleep(self.answer)) };
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

/// The storage fell silent.
#[derive(Debug, thiserror::Error)]
#[error("nothing came for {} s (AWS_TIMEOUT)", .0.as_secs_f64())]
struct Late(Duration);

/// A body whose pieces come within a time of each other, or not at all.
struct Impatient {
    body: Incoming,
    within: Duration,
    late: Pin<Box<Sleep>>,
}

impl Body for Impatient {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let next = Instant::now() + self.within;
            self.late.as_mut().reset(next);
            let interrupted = |fault| HttpError::new(HttpErrorKind::Interrupted, fault);
            return Poll::Ready(frame.map(|frame| frame.map_err(interrupted)));
        }
        let within = self.within;
        self.late.as_mut().poll(context).map(|()| Some(Err(HttpError::new(HttpErrorKind::Timeout, Late(within)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
