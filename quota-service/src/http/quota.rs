//! `GET /quota`: the answer that schedulers poll. No lock, no database, no computation on the way.

use super::ApiError;
use super::extract::{Query, published_pool};
use crate::published::{PublishedPool, Ready};
use crate::quotas::Quotas;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use placement::staleness::stage;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoParams;
use vocab::UnixSeconds;
use wire::{Problem, QuotaAnswer};

/// The longest wait: middleboxes close quiet connections.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct QuotaQuery {
    pub cluster: String,
    pub gpu_model: String,
    /// Guarantee hours.
    #[param(minimum = 1, maximum = 168)]
    pub hours: u64,
    /// With `If-None-Match`: the longest wait for another answer, such as `30s`; at most a minute.
    wait: Option<String>,
}

/// The quota: GPUs that spot tasks with a guarantee of at least `hours` may hold
///
/// The answer carries a strong `ETag`; with `If-None-Match` an unchanged one is 304.
#[utoipa::path(get, path = "/quota", tag = "quota", params(QuotaQuery), responses(
    (status = 200, description = "The quota, with its stage and reasons", body = QuotaAnswer),
    (status = 304, description = "Unchanged"),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or hours; `known` lists the known ones", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet", body = Problem, content_type = "application/problem+json"),
))]
pub async fn quota(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<QuotaQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    answer(&quotas, &query, &headers).await
}

/// The same as `/quota`
#[utoipa::path(get, path = "/v1/quota", tag = "quota", params(QuotaQuery), responses(
    (status = 200, description = "The quota, with its stage and reasons", body = QuotaAnswer),
    (status = 304, description = "Unchanged"),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or hours; `known` lists the known ones", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet", body = Problem, content_type = "application/problem+json"),
))]
pub async fn quota_v1(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<QuotaQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    answer(&quotas, &query, &headers).await
}

async fn answer(quotas: &Quotas, query: &QuotaQuery, headers: &HeaderMap) -> Result<Response, ApiError> {
    let seen = headers.get(header::IF_NONE_MATCH);
    if let Some(text) = &query.wait {
        let longest = wait(text)?;
        if let Some(seen) = seen {
            wait_for_another(quotas, query, seen, longest).await?;
        }
    }
    let pool = published_pool(quotas, &query.cluster, &query.gpu_model)?;
    Ok(respond(ready(&pool, query.hours, quotas.core.clock.now())?, seen))
}

/// The answer for these hours now.
pub fn ready(pool: &PublishedPool, hours: u64, now: UnixSeconds) -> Result<&Ready, ApiError> {
    let found = u8::try_from(hours).ok().and_then(|hours| pool.answer(hours));
    found.map(|answer| answer.at(now)).ok_or_else(|| nothing_for(pool, hours))
}

/// The error for hours without an answer.
pub fn nothing_for(pool: &PublishedPool, hours: u64) -> ApiError {
    if pool.answers.is_empty() {
        return ApiError::NoQuotaYet { why: pool.why_none() };
    }
    let known = pool.answers.iter().map(|answer| answer.hours().to_string()).collect();
    ApiError::UnknownHours { asked: hours, known }
}

/// The answer, or 304 where the client has it.
pub fn respond(ready: &Ready, seen: Option<&HeaderValue>) -> Response {
    let always = [
        (header::ETAG, ready.etag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ];
    if seen.is_some_and(|seen| matches_etag(seen, &ready.etag)) {
        return (StatusCode::NOT_MODIFIED, always).into_response();
    }
    (always, ready.body.clone()).into_response()
}

/// RFC 9110: a list of tags, or `*`; weak tags compare as strong ones here, since bodies are equal byte for byte.
fn matches_etag(seen: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(seen), Ok(etag)) = (seen.to_str(), etag.to_str()) else { return false };
    seen.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

fn wait(text: &str) -> Result<Duration, ApiError> {
    let refused =
        || ApiError::Query { detail: format!("wait: invalid wait {text:?}: write a number of seconds such as 30s") };
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().map_err(|_| refused())?;
    Ok(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// Returns when the answer differs from `seen`, or after `wait`. A slow client gets the newest answer, never a queue of old ones.
async fn wait_for_another(
    quotas: &Quotas,
    query: &QuotaQuery,
    seen: &HeaderValue,
    wait: Duration,
) -> Result<(), ApiError> {
    let until = Instant::now() + wait;
    let mut publications = quotas.publications.subscribe();
    let mut stopping = quotas.core.stopping.subscribe();
    loop {
        publications.mark_unchanged();
        let now = quotas.core.clock.now();
        let pool = published_pool(quotas, &query.cluster, &query.gpu_model)?;
        if !matches_etag(seen, &ready(&pool, query.hours, now)?.etag) || Instant::now() >= until {
            return Ok(());
        }
        let ages = tokio::time::sleep(until_next_stage(&pool, query.hours, now));
        tokio::select! {
            _ = publications.changed() => {}
            () = tokio::time::sleep_until(until) => {}
            () = ages => {}
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
        }
    }
}

/// How long the answer stays at its stage.
pub fn until_next_stage(pool: &PublishedPool, hours: u64, now: UnixSeconds) -> Duration {
    let answer = u8::try_from(hours).ok().and_then(|hours| pool.answer(hours));
    let end = answer.and_then(|answer| stage(answer.computed_at, now).1);
    end.map_or(LONGEST_WAIT, |end| Duration::from_secs(end.since_s(now).max(0).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_alone_in_a_list_and_by_the_star() {
        let etag = HeaderValue::from_static("\"abc\"");
        for (seen, matches) in [
            ("\"abc\"", true),
            ("\"x\", \"abc\"", true),
            ("W/\"abc\"", true),
            ("*", true),
            ("\"abcd\"", false),
            ("abc", false),
        ] {
            assert_eq!(matches_etag(&HeaderValue::from_static(seen), &etag), matches, "{seen}");
        }
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_and_at_most_a_minute() {
        assert_eq!(wait("30s").unwrap(), Duration::from_secs(30));
        assert_eq!(wait("3600").unwrap(), LONGEST_WAIT);
        assert!(wait("soon").is_err());
    }
}
