//! Queries and bodies; a refusal names the place of the fault.

use super::error::SEND_JSON;
use super::{ApiError, missing_fields, parameters};
use crate::core::Core;
use crate::published::PublishedPool;
use crate::quotas::Quotas;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use std::sync::Arc;
use utoipa::ToSchema;
use vocab::{ClusterName, PoolId, UnixSeconds};
use wire::{FieldFault, Strict};

/// The query of a request.
pub struct Query<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query
            .map(|query| Self(query.0))
            .map_err(|fault| ApiError::Query { detail: parameters::plainly(&fault.body_text(), &parts.uri) })
    }
}

/// The parameters of a path.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|_| ApiError::Path {
            detail: format!("{} is not UTF-8 text: percent-encode the UTF-8 bytes of the name", parts.uri.path()),
        })
    }
}

/// A JSON body.
pub struct Json<T>(pub T);

impl<S, T> FromRequest<S> for Json<T>
where
    S: Send + Sync,
    T: DeserializeOwned + ToSchema,
    Arc<Core>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if !request.headers().get(header::CONTENT_TYPE).is_some_and(super::origin::is_json) {
            return Err(ApiError::NotJson(SEND_JSON));
        }
        if request.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(ApiError::NotJson("a compressed body is not read: send it without Content-Encoding"));
        }
        let max_bytes = Arc::<Core>::from_ref(state).config.max_body_bytes;
        let body = Bytes::from_request(request, state).await.map_err(|fault| match fault {
            BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
                ApiError::TooLarge { max_bytes }
            }
            other => ApiError::Receive { detail: other.body_text() },
        })?;
        parse(&body).map(Self)
    }
}

/// Parses a body whose schema is in the OpenAPI document.
pub fn parse<T: DeserializeOwned + ToSchema>(body: &[u8]) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(Strict(&mut reader)).map_err(|fault| {
        let pointer = pointer(fault.path());
        let range = missing_fields::range(&T::name(), &pointer);
        let detail = wire::plain::fault(&fault.inner().to_string(), range, &missing_fields::required);
        let first = FieldFault::new(pointer, detail);
        lacking::<T>(body, &first).unwrap_or_else(|| vec![first])
    })?;
    reader.end().map_err(|fault| FieldFault::new("", fault))?;
    Ok(value)
}

/// All missing fields, where the first fault is a missing field.
fn lacking<T: ToSchema>(body: &[u8], first: &FieldFault) -> Option<Vec<FieldFault>> {
    let field = first.detail.strip_prefix("missing field `")?.split('`').next()?;
    let missing = missing_fields::fields(&T::name(), &serde_json::from_slice(body).ok()?);
    let named = format!("{}/{field}", first.pointer);
    missing.iter().any(|fault| fault.pointer == named).then_some(missing)
}

/// RFC 6901.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let escaped = |text: &str| text.replace('~', "~0").replace('/', "~1");
    let segment = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", escaped(key)),
        Segment::Enum { variant } => format!("/{}", escaped(variant)),
        Segment::Unknown => String::new(),
    };
    path.iter().map(segment).collect()
}

/// The pool of a path such as `/v1/pools/earth:V100/state`.
pub fn pool_id(quotas: &Quotas, text: &str) -> Result<PoolId, ApiError> {
    PoolId::parse(text)
        .map_err(|fault| ApiError::UnknownPool { asked: fault.to_string(), known: quotas.published.load().ids() })
}

/// Refuses a time more than `skew_s` ahead of the clock of the service: one of the two clocks is wrong.
pub fn not_ahead(pointer: &str, time: UnixSeconds, now: UnixSeconds, skew_s: u32) -> Result<(), FieldFault> {
    if time.since_s(now) <= i64::from(skew_s) {
        return Ok(());
    }
    let detail = format!(
        "{time} is more than {skew_s} s ahead of the clock of the service, {now}: synchronize the clocks, or raise clock_skew_s"
    );
    Err(FieldFault::new(pointer, detail))
}

/// Accepts a write where this replica leads the cluster, or no leader is known.
pub fn written_here(core: &Core, cluster: &ClusterName) -> Result<(), ApiError> {
    match core.leases.leader(cluster) {
        Some(leader) if core.leases.led(cluster).is_none() => Err(ApiError::Elsewhere(Some(leader))),
        _ => Ok(()),
    }
}

/// The published pool of these names.
pub fn published_pool(quotas: &Quotas, cluster: &str, gpu_model: &str) -> Result<Arc<PublishedPool>, ApiError> {
    let published = quotas.published.load();
    if let Some(pool) = published.pool(cluster, gpu_model) {
        return Ok(pool.clone());
    }
    // Another replica may know the pool, or this one may soon.
    if !quotas.are_complete() {
        return Err(ApiError::NoQuotaYet {
            why: "the service has just started and is reading the database: retry".to_owned(),
        });
    }
    let of = ClusterName::parse(cluster).ok();
    if of.as_ref().is_some_and(|cluster| quotas.is_unread(cluster)) {
        let why = "the pools of the cluster could not be read since the start; the log has the cause: retry";
        return Err(ApiError::NoQuotaYet { why: why.to_owned() });
    }
    match of.and_then(|cluster| quotas.core.leases.leader(&cluster)) {
        Some(leader) => Err(ApiError::NoQuotaYet { why: leader.no_quota() }),
        None => Err(ApiError::UnknownPool { asked: format!("{cluster}:{gpu_model}"), known: published.ids() }),
    }
}
