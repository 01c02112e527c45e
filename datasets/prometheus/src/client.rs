//! HTTP client with retries.

use crate::answer::{Answer, AnswerFault, parse};
use crate::error::SourceError;
use crate::exchange::{Bounds, ExchangeFault, Question, Reply, exchange, tls};
use crate::settings::Source;
use hyper::Method;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::ClientConfig;

/// Attempts of one query.
const ATTEMPTS: u32 = 4;
/// Pauses between them double from the first to the last of these.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// A server that asks for a longer pause is asked again after this one.
const LONGEST_WAIT_S: u64 = 30;
/// Largest answer; what is larger is asked for in parts.
const MAX_BYTES: usize = 64 * 1_024 * 1_024;
/// Longest part of a query in an error.
const QUERY_CHARACTERS: usize = 300;

/// How one query ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    /// Parts may be missing.
    Warned,
    Failed,
}

impl Outcome {
    /// Name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Warned => "warned",
            Self::Failed => "failed",
        }
    }
}

/// Asks one Prometheus.
pub struct Client<'a> {
    source: &'a Source,
    tls: Option<Arc<ClientConfig>>,
    attempts: u32,
    pause: Duration,
    max_bytes: usize,
    report: Option<&'a (dyn Fn(Outcome) + Send + Sync)>,
}

/// A failed query, and whether a smaller one may succeed.
pub(crate) enum Failed {
    TooHeavy(SourceError),
    Other(SourceError),
}

impl From<Failed> for SourceError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::TooHeavy(fault) | Failed::Other(fault) => fault,
        }
    }
}

/// Next step after a reply or its absence.
enum Next {
    Again { why: String, pause_s: Option<u64>, is_slow: bool },
    AsGet,
    GiveUp(Failed),
}

impl<'a> Client<'a> {
    /// # Errors
    /// The certificates of authorities cannot be read, or are none.
    pub fn new(source: &'a Source) -> Result<Self, SourceError> {
        let settings = |why| SourceError::Settings { key: "ca_file", why };
        if let Some(file) = source.ca_file.as_ref().filter(|_| source.target.is_secure) {
            std::fs::read(file).map_err(|fault| SourceError::unread("ca_file", file, &fault))?;
        }
        let tls = source.target.is_secure.then(|| tls(source.ca_file.as_deref())).transpose().map_err(settings)?;
        Ok(Self { source, tls, attempts: ATTEMPTS, pause: PAUSE.0, max_bytes: MAX_BYTES, report: None })
    }

    /// Calls `report` with the outcome of each query.
    #[must_use]
    pub fn reporting(self, report: &'a (dyn Fn(Outcome) + Send + Sync)) -> Self {
        Self { report: Some(report), ..self }
    }

    /// With other bounds, for tests.
    #[cfg(test)]
    pub(crate) fn bounded(self, pause: Duration, max_bytes: usize) -> Self {
        Self { pause, max_bytes, ..self }
    }

    pub(crate) fn url(&self) -> String {
        self.source.target.to_string()
    }

    /// The samples of a query from `from_s` to `to_s`, both included.
    pub(crate) async fn range(&self, query: &str, from_s: i64, to_s: i64) -> Result<Answer, Failed> {
        let (start, end, step) = (from_s.to_string(), to_s.to_string(), self.source.step_s.to_string());
        let timeout = format!("{}s", self.source.timeout.as_secs());
        let form = [("query", query), ("start", &start), ("end", &end), ("step", &step), ("timeout", &timeout)];
        let asked = self.ask("/api/v1/query_range", &form, query).await;
        if let Some(report) = self.report {
            report(match &asked {
                Ok(answer) if answer.warnings.is_empty() => Outcome::Answered,
                Ok(_) => Outcome::Warned,
                Err(_) => Outcome::Failed,
            });
        }
        asked
    }

    /// The version, as the server tells it; of one that tells none, that it is ready.
    ///
    /// # Errors
    /// It does not answer, or is something else.
    pub async fn version(&self) -> Result<String, SourceError> {
        let what = "its version";
        match self.reply("/api/v1/status/buildinfo", Method::GET, String::new(), what).await {
            Ok(reply) => {
                let version = serde_json::from_slice::<serde_json::Value>(&reply.body).ok();
                let version = version.as_ref().and_then(|body| body["data"]["version"].as_str()).map(str::to_owned);
                version.ok_or_else(|| self.foreign("the answer holds no version: is this a Prometheus?".to_owned()))
            }
            Err(Failed::Other(SourceError::Refused { status: 404, .. })) => {
                self.reply("/-/ready", Method::GET, String::new(), "whether it is ready").await?;
                Ok("unknown".to_owned())
            }
            Err(failed) => Err(failed.into()),
        }
    }

    async fn ask(&self, endpoint: &str, form: &[(&str, &str)], query: &str) -> Result<Answer, Failed> {
        let (mut attempt, mut fault) = (0, String::new());
        while attempt < self.attempts {
            let reply = self.reply(endpoint, Method::POST, encoded(form), query).await?;
            match parse(&reply.body) {
                Ok(answer) => return Ok(answer),
                // Whole as far as HTTP knows, and yet cut: by something between. It may be whole the next time.
                Err(AnswerFault::Cut { detail }) => fault = format!("the answer breaks off: {detail}"),
                Err(AnswerFault::Refused { text, .. }) => return Err(Failed::Other(self.execution(query, text))),
                Err(other @ AnswerFault::Foreign { .. }) => return Err(Failed::Other(self.foreign(other.to_string()))),
            }
            attempt += 1;
            tokio::time::sleep(self.pause_before(attempt, None)).await;
        }
        Err(Failed::Other(self.unavailable(query, fault)))
    }

    /// A reply with status 200, asked for as often as may help.
    async fn reply(&self, endpoint: &str, method: Method, form: String, query: &str) -> Result<Reply, Failed> {
        let token = self.token().map_err(Failed::Other)?;
        let mut question = Question { method, path: self.source.target.path(endpoint), form, token: token.as_deref() };
        let bounds = Bounds { within: self.source.timeout, max_bytes: self.max_bytes };
        let (mut attempt, mut was_slow) = (0, false);
        loop {
            let exchanged = exchange(&self.source.target, self.tls.as_ref(), &question, bounds).await;
            let next = match exchanged {
                Ok(reply) if reply.status == 200 => return Ok(reply),
                Ok(reply) => self.after_reply(&reply, query, &question.method),
                Err(fault) => self.after_fault(fault, query),
            };
            attempt += 1;
            match next {
                Next::GiveUp(failed) => return Err(failed),
                Next::AsGet => question.method = Method::GET,
                // A query that takes too long twice is too large.
                Next::Again { why, is_slow: true, .. } if was_slow => {
                    return Err(Failed::TooHeavy(self.unavailable(query, why)));
                }
                Next::Again { why, .. } if attempt >= self.attempts => {
                    return Err(Failed::Other(self.unavailable(query, why)));
                }
                Next::Again { pause_s, is_slow, .. } => {
                    was_slow = is_slow;
                    tokio::time::sleep(self.pause_before(attempt, pause_s)).await;
                }
            }
        }
    }

    fn after_reply(&self, reply: &Reply, query: &str, method: &Method) -> Next {
        let refusal = match parse(&reply.body) {
            Err(AnswerFault::Refused { kind, text }) => Some((kind, text)),
            _ => None,
        };
        let text = refusal.as_ref().map_or("", |(_, text)| text.as_str());
        let refused = |why: String| Next::GiveUp(Failed::Other(self.refused(query, reply.status, why)));
        match reply.status {
            405 if *method == Method::POST => Next::AsGet,
            422 if is_too_much(text) => {
                let fault = SourceError::TooHeavy { url: self.url(), query: shortened(query), why: text.to_owned() };
                Next::GiveUp(Failed::TooHeavy(fault))
            }
            422 => Next::GiveUp(Failed::Other(self.execution(query, text.to_owned()))),
            300..=399 => {
                let to = reply.location.as_deref().map(without_secrets).unwrap_or_default();
                refused(format!("it redirects: use the URL {to}").trim_end().to_owned())
            }
            401 | 403 => refused("not authenticated or not authorized: see token_file (--token-file)".to_owned()),
            404 => refused("no Prometheus at this URL: does it need a path, such as /prometheus?".to_owned()),
            429 | 500..=599 => {
                let is_slow = refusal.as_ref().is_some_and(|(kind, _)| kind == "timeout");
                let why = format!("it answers {}{}{text}", reply.status, if text.is_empty() { "" } else { ", " });
                Next::Again { why, pause_s: reply.retry_after_s, is_slow }
            }
            _ if text.is_empty() => refused("no reason given".to_owned()),
            _ => refused(text.to_owned()),
        }
    }

    fn after_fault(&self, fault: ExchangeFault, query: &str) -> Next {
        match fault {
            ExchangeFault::Broken(why) => Next::Again { why, pause_s: None, is_slow: false },
            ExchangeFault::Slow(within) => {
                let why = format!("no answer within {} s", within.as_secs_f64());
                Next::Again { why, pause_s: None, is_slow: true }
            }
            ExchangeFault::Untrusted(why) => {
                let hint = "name its authority with ca_file (--ca-file)";
                Next::GiveUp(Failed::Other(self.foreign(format!("its certificate is not trusted, {why}: {hint}"))))
            }
            ExchangeFault::TooLarge(most) => {
                let why = format!("the answer is larger than {most} bytes");
                let fault = SourceError::TooHeavy { url: self.url(), query: shortened(query), why };
                Next::GiveUp(Failed::TooHeavy(fault))
            }
        }
    }

    /// Read each time: tokens of service accounts change while programs run.
    fn token(&self) -> Result<Option<String>, SourceError> {
        let Some(file) = &self.source.token_file else { return Ok(None) };
        let settings = |why| SourceError::Settings { key: "token_file", why };
        let bytes = std::fs::read(file).map_err(|fault| SourceError::unread("token_file", file, &fault))?;
        let text = String::from_utf8_lossy(&bytes);
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(settings(format!("{}: expected one token on one line", file.display())));
        }
        Ok(Some(token.to_owned()))
    }

    fn pause_before(&self, attempt: u32, asked_s: Option<u64>) -> Duration {
        let doubled = self.pause.saturating_mul(1 << (attempt - 1).min(10)).min(PAUSE.1);
        asked_s.map_or(doubled, |seconds| Duration::from_secs(seconds.min(LONGEST_WAIT_S)).max(doubled))
    }

    fn unavailable(&self, query: &str, why: String) -> SourceError {
        SourceError::Unavailable { url: self.url(), query: shortened(query), why, attempts: self.attempts }
    }

    fn refused(&self, query: &str, status: u16, why: String) -> SourceError {
        SourceError::Refused { url: self.url(), query: shortened(query), status, why }
    }

    fn execution(&self, query: &str, why: String) -> SourceError {
        SourceError::Execution { url: self.url(), query: shortened(query), why }
    }

    fn foreign(&self, why: String) -> SourceError {
        SourceError::Foreign { url: self.url(), why }
    }
}

/// Whether the fault may go away with fewer hours.
fn is_too_much(text: &str) -> bool {
    text.contains("too many samples") || text.contains("maximum resolution")
}

/// A query in an error.
pub(crate) fn shortened(query: &str) -> String {
    let on_one_line = query.split_whitespace().collect::<Vec<_>>().join(" ");
    match on_one_line.char_indices().nth(QUERY_CHARACTERS) {
        Some((end, _)) => format!("{}…", &on_one_line[..end]),
        None => on_one_line,
    }
}

/// A place without user and query, which may be secret.
fn without_secrets(location: &str) -> String {
    let place = location.split(['?', '#']).next().unwrap_or_default();
    match place.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => place.to_owned(),
    }
}

fn encoded(form: &[(&str, &str)]) -> String {
    let mut all = String::new();
    for (name, value) in form {
        let _ = write!(all, "{}{name}=", if all.is_empty() { "" } else { "&" });
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                all.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(all, "%{byte:02X}");
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
