//! Follows a quota by long polling.

use crate::error::ClientError;
use crate::exchange::Asked;
use crate::pauses::Pauses;
use crate::pool::Pool;
use chrono::{DateTime, Utc};
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use std::time::Duration;
use wire::QuotaAnswer;

/// Time for which the service holds a request whose answer is still the one that was seen; it allows a minute.
const HELD: Duration = Duration::from_secs(30);
/// After an answer without news: a service that stops gives it at once.
const AFTER_NO_NEWS: Duration = Duration::from_secs(1);

/// A quota, and each new one. Made by [`Pool::quotas`].
#[derive(Debug)]
pub struct Quotas {
    pool: Pool,
    hours: u8,
    /// Tag of the last answer.
    etag: Option<HeaderValue>,
    last: Option<QuotaAnswer>,
    pauses: Pauses,
    /// Wait before the next request.
    pause: Duration,
}

impl Quotas {
    pub(crate) fn new(pool: Pool, hours: u8) -> Self {
        Self { pool, hours, etag: None, last: None, pauses: Pauses::default(), pause: Duration::ZERO }
    }

    /// The quota at the first call, then the next one that differs.
    ///
    /// After a transient error ([`ClientError::is_transient`]) the next call waits for [`pause`](Self::pause) and goes on where it
    /// was. Until [`valid_until`](QuotaAnswer::valid_until) the last quota stands; [`available_gpus`] of it may be admitted.
    ///
    /// # Errors
    /// The service does not answer, refuses, or is no quota-service.
    pub async fn next(&mut self) -> Result<QuotaAnswer, ClientError> {
        loop {
            tokio::time::sleep(std::mem::take(&mut self.pause)).await;
            match self.ask().await {
                Ok(Some(quota)) => {
                    self.pauses = Pauses::default();
                    self.last = Some(quota.clone());
                    return Ok(quota);
                }
                Ok(None) => {
                    self.pauses = Pauses::default();
                    self.pause = AFTER_NO_NEWS;
                }
                Err(fault) => {
                    self.pause = self.pauses.next(fault.retry_after());
                    return Err(fault);
                }
            }
        }
    }

    /// Wait of the next call; zero unless the last one failed.
    #[must_use]
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    /// The last quota.
    #[must_use]
    pub const fn last(&self) -> Option<&QuotaAnswer> {
        self.last.as_ref()
    }

    /// `None` where the quota is still the last one.
    async fn ask(&mut self) -> Result<Option<QuotaAnswer>, ClientError> {
        let mut path = self.pool.quota_path(self.hours);
        let mut held = Duration::ZERO;
        if self.etag.is_some() {
            (path, held) = (path.with("wait", format!("{}s", HELD.as_secs())), HELD);
        }
        let mut asked = Asked { held, ..Asked::get(path.as_str()) };
        if let Some(etag) = &self.etag {
            asked.headers.insert(IF_NONE_MATCH, etag.clone());
        }
        let answer = self.pool.client.ask_once(&asked).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let quota = self.pool.client.read(path.as_str(), &answer)?;
        self.etag = answer.headers.get(ETAG).cloned();
        Ok(Some(quota))
    }
}

/// GPUs that a scheduler may admit on a quota at an instant: none once the quota is too old.
#[must_use]
pub fn available_gpus(quota: &QuotaAnswer, now: DateTime<Utc>) -> f64 {
    let until = DateTime::parse_from_rfc3339(&quota.valid_until);
    if until.is_ok_and(|until| now < until) { quota.available_gpus } else { 0.0 }
}
