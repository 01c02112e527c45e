//! Requests and answers.

use crate::error::ClientError;
use crate::pauses::Pauses;
use crate::tls::{Wrong, trusting, wrong};
use crate::url::ServiceUrl;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pooled;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The largest answer, in bytes.
const MAX_BYTES: usize = 64 * 1_024 * 1_024;

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct Options {
    /// URL of quota-service.
    pub url: ServiceUrl,
    /// File with the token, read for each request: a token is changed by changing its file. Without it, no token is sent.
    pub token_file: Option<PathBuf>,
    /// Authority (PEM) of the service's certificate; without it, the authorities that the machine trusts.
    pub ca_file: Option<PathBuf>,
    /// Prefix of the options' names in the settings of the program, such as `headroom_`; errors name the setting.
    pub setting_prefix: &'static str,
    /// Name and version of the program that asks.
    pub user_agent: String,
    /// Limit of one request, beside the time that it asks the service to wait.
    pub limit: Duration,
    /// Time for which a request is sent again while the service is away or busy. Zero: it is sent once.
    pub patience: Duration,
    /// Called before each pause with the fault and the time until the request is sent again, so that a person who waits knows why.
    pub on_pause: Option<fn(&ClientError, Duration)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: ServiceUrl::default(),
            token_file: None,
            ca_file: None,
            setting_prefix: "",
            user_agent: concat!("headroom-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            limit: Duration::from_secs(10),
            patience: Duration::ZERO,
            on_pause: None,
        }
    }
}

impl Options {
    fn named(&self, option: &str) -> String {
        format!("{}{option}", self.setting_prefix)
    }
}

/// A client of one quota-service. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    options: Arc<Options>,
    pooled: Pooled<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// An answer that was read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn header(&self, name: &HeaderName) -> Option<String> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    }
}

/// A request that may be sent again.
pub struct Asked<'a> {
    pub method: Method,
    pub path: &'a str,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// Time that the service holds the request.
    pub held: Duration,
}

impl<'a> Asked<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, headers: HeaderMap::new(), body: None, held: Duration::ZERO }
    }
}

impl Client {
    /// # Errors
    /// [`ClientError::Settings`]: the authority cannot be read.
    pub fn new(options: impl Into<Options>) -> Result<Self, ClientError> {
        let options = options.into();
        let tls = trusting(options.ca_file.as_deref(), options.url.is_secure)
            .map_err(|detail| ClientError::Settings { setting: options.named("ca_file"), detail })?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let pooled = Pooled::builder(TokioExecutor::new()).pool_idle_timeout(Duration::from_secs(30)).build(connector);
        Ok(Self { options: Arc::new(options), pooled })
    }

    /// The URL of the service.
    #[must_use]
    pub fn url(&self) -> &ServiceUrl {
        &self.options.url
    }

    /// Reads any path.
    ///
    /// # Errors
    /// The service does not answer, refuses, or is no quota-service.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.get_dated(path).await.map(|(answer, _)| answer)
    }

    /// As [`get`](Self::get), with the header `Date` of the answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_dated<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Option<String>), ClientError> {
        let answer = self.ask(&Asked::get(path)).await?;
        Ok((self.read(path, &answer)?, answer.header(&DATE)))
    }

    /// Reads any path whose answer is text of this media type.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_text(&self, path: &str, media_type: &str) -> Result<String, ClientError> {
        let answer = self.ask(&Asked::get(path)).await?;
        let found = answer.header(&CONTENT_TYPE).unwrap_or_else(|| "nothing".to_owned());
        if !found.starts_with(media_type) {
            return Err(self.foreign(path, format!("expected {media_type}, found {found}")));
        }
        String::from_utf8(answer.body.to_vec()).map_err(|fault| self.foreign(path, fault.to_string()))
    }

    /// Sends a body to any path.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|fault| self.foreign(path, fault.to_string()))?;
        let answer = self.ask(&Asked { method, body: Some(body.into()), ..Asked::get(path) }).await?;
        self.read(path, &answer)
    }

    /// Calls any path without a body.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn call<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, ClientError> {
        let answer = self.ask(&Asked { method, ..Asked::get(path) }).await?;
        self.read(path, &answer)
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str, answer: &Answer) -> Result<T, ClientError> {
        serde_json::from_slice(&answer.body).map_err(|fault| self.foreign(path, fault.to_string()))
    }

    /// Sends until there is an answer, for as long as the client is patient. 304 is an answer, too.
    pub(crate) async fn ask(&self, asked: &Asked<'_>) -> Result<Answer, ClientError> {
        let (until, mut pauses) = (Instant::now() + self.options.patience, Pauses::default());
        loop {
            let fault = match self.ask_once(asked).await {
                Err(fault) if fault.is_transient() => fault,
                answer => return answer,
            };
            let (pause, left) = (pauses.next(fault.retry_after()), until.saturating_duration_since(Instant::now()));
            // The last try comes at the end of the patience, unless the service asks for more of it.
            let pause = if fault.retry_after().is_none() { pause.min(left) } else { pause };
            if pause > left || left.is_zero() {
                return Err(fault);
            }
            if let Some(on_pause) = self.options.on_pause {
                on_pause(&fault, pause);
            }
            tokio::time::sleep(pause).await;
        }
    }

    pub(crate) async fn ask_once(&self, asked: &Asked<'_>) -> Result<Answer, ClientError> {
        let limit = self.options.limit + asked.held;
        let exchange = async { self.whole(asked.path, self.open(asked).await?).await };
        let answer = self.within(limit, asked.path, exchange).await?;
        if answer.status.is_success() || answer.status == StatusCode::NOT_MODIFIED {
            return Ok(answer);
        }
        Err(self.refusal(asked.path, &answer))
    }

    /// The body of an answer that has no end.
    pub(crate) async fn open_stream(&self, asked: &Asked<'_>) -> Result<Incoming, ClientError> {
        let opening = async {
            let response = self.open(asked).await?;
            if response.status().is_success() {
                let kind =
                    response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
                if kind.starts_with("text/event-stream") {
                    return Ok(response.into_body());
                }
                // A page of something else: it ends, and would be asked for again without an end.
                return Err(self.foreign(asked.path, format!("expected text/event-stream, found {kind}")));
            }
            Err(self.refusal(asked.path, &self.whole(asked.path, response).await?))
        };
        self.within(self.options.limit, asked.path, opening).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        path: &str,
        exchange: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let late = |_| self.away(path, format!("no answer within {} s", limit.as_secs_f64()));
        tokio::time::timeout(limit, exchange).await.map_err(late)?
    }

    /// The head of an answer; its body follows.
    async fn open(&self, asked: &Asked<'_>) -> Result<Response<Incoming>, ClientError> {
        let request = self.request(asked)?;
        self.pooled.request(request).await.map_err(|fault| self.unanswered(asked.path, &fault))
    }

    /// A request without an answer. Where the URL or a setting is wrong, no later try changes that.
    fn unanswered(&self, path: &str, fault: &(dyn std::error::Error + 'static)) -> ClientError {
        let why = chain(fault);
        let speaks = |detail: &str| self.foreign(path, format!("{detail} ({why})"));
        match wrong(fault) {
            Some(Wrong::Untrusted) => ClientError::Settings {
                setting: self.options.named("ca_file"),
                detail: format!(
                    "the certificate of {} is not trusted: name the file (PEM) of the authority that signed it ({why})",
                    self.options.url
                ),
            },
            Some(Wrong::Certificate) => speaks("its certificate is one of another name or time"),
            Some(Wrong::Authority) => speaks(
                "its certificate is one of an authority: give it one of a server (openssl req -x509 … -addext basicConstraints=critical,CA:FALSE)",
            ),
            Some(Wrong::AsksForOurs) => {
                speaks("it asks clients for a certificate (tls_client_ca_file), and this client shows none")
            }
            Some(Wrong::NoTls) => speaks("it speaks no TLS, as a URL with http:// would have it"),
            None if is_no_http(fault) => {
                speaks("it speaks no HTTP there, perhaps TLS, as a URL with https:// would have it")
            }
            None => self.away(path, why),
        }
    }

    async fn whole(&self, path: &str, response: Response<Incoming>) -> Result<Answer, ClientError> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_BYTES).collect().await;
        let body = body.map_err(|fault| self.away(path, fault.to_string()))?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    fn refusal(&self, path: &str, answer: &Answer) -> ClientError {
        if answer.status.is_redirection() {
            let to = answer.header(&LOCATION).unwrap_or_else(|| "no address".to_owned());
            return self.foreign(path, format!("{} leads to {to}", answer.status));
        }
        let after = answer.header(&RETRY_AFTER).and_then(|text| named_pause(&text));
        ClientError::refused(self.at(path), answer.status, after, &answer.body)
    }

    fn request(&self, asked: &Asked<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
        let wrong = |detail| ClientError::Settings { setting: self.options.named("token_file"), detail };
        let mut request = Request::builder().method(asked.method.clone()).uri(self.at(asked.path));
        request = request.header(USER_AGENT, &self.options.user_agent);
        if let Some(file) = &self.options.token_file {
            let token = std::fs::read_to_string(file);
            let token = token.map_err(|fault| wrong(format!("{}: {fault}", file.display())))?;
            let token = token.trim();
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(wrong(format!("{}: expected one token, on a line of its own", file.display())));
            }
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &asked.headers {
            request = request.header(name, value);
        }
        if asked.body.is_some() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let made = request.body(Full::new(asked.body.clone().unwrap_or_default()));
        made.map_err(|fault| wrong(fault.to_string()))
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.options.url)
    }

    pub(crate) fn away(&self, path: &str, detail: String) -> ClientError {
        ClientError::Unavailable { url: self.at(path), detail }
    }

    pub(crate) fn foreign(&self, path: &str, detail: String) -> ClientError {
        ClientError::Foreign { url: self.at(path), detail }
    }
}

/// Whether the other side has answered, and not as HTTP is written.
fn is_no_http(fault: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(fault), |cause| cause.source());
    causes.any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
}

/// The pause that a header names in seconds, as long as a number holds.
fn named_pause(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// A fault with its causes.
#[must_use]
pub fn chain(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    for cause in std::iter::successors(fault.source(), |cause| cause.source()) {
        // Some faults quote their cause.
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
