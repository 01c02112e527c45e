//! A refusal as a response.

use super::{ApiError, RETRY_AFTER_S};
use crate::health::Refusal;
use crate::http::forward::Elsewhere;
use crate::metrics;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use store::StoreError;
use wire::Problem;

/// Only an ingest makes a cluster, since it has a time zone.
const CREATE: &str = "create it with `datasets ingest`, or with the time_zone of a source";

/// A cluster that is not among the known ones.
pub(super) fn unknown_cluster(asked: String, known: Vec<String>) -> Problem {
    let detail = if known.is_empty() { format!("{asked}: {CREATE}") } else { asked };
    Problem { known, ..ApiError::plain(404, "unknown-cluster", "Unknown cluster", detail) }
}

/// Something that is not stored.
pub(super) fn not_found(what: &str, detail: String) -> Problem {
    let detail = if what == "cluster" { format!("{detail}: {CREATE}") } else { detail };
    ApiError::plain(404, "not-found", "Not found", detail)
}

/// A problem that passes by itself.
pub(super) fn later(code: &str, title: &str, why: String) -> Problem {
    Problem { retry_after_s: Some(RETRY_AFTER_S), ..ApiError::plain(503, code, title, why) }
}

/// A database without an answer that helps.
pub(super) fn no_answer(why: String) -> Problem {
    later("store-unavailable", "The database does not answer", why)
}

/// The problem of a fault of the database; `is_logged` where nothing else has logged it.
pub(super) fn of_store(fault: &StoreError, is_logged: bool) -> Problem {
    let detail = fault.to_string();
    match fault {
        StoreError::Lost { reason, .. } => {
            log(fault, is_logged);
            let detail = format!("its file is not the opened one: {reason}");
            ApiError::plain(503, "store-lost", "The database is lost", detail)
        }
        StoreError::Unavailable { .. } => no_answer(detail),
        // These pass within a moment.
        StoreError::Busy { .. } | StoreError::Fenced { .. } => Problem { retry_after_s: Some(1), ..no_answer(detail) },
        // Of the operator's doing while the service runs: a password, a permission, search_path, a certificate.
        StoreError::Denied { .. } | StoreError::Tls { .. } | StoreError::Schema { .. } => {
            log(fault, is_logged);
            no_answer("it refuses this service: see the log of the service".to_owned())
        }
        StoreError::NotAudited { .. } => {
            if is_logged {
                tracing::warn!(%fault, "the audit takes no entry; the write was rolled back");
            }
            metrics::audit_failed();
            let detail = "the audit could not be written, so nothing was done: retry".to_owned();
            Problem { retry_after_s: Some(1), ..ApiError::plain(503, "not-audited", "Audit not written", detail) }
        }
        StoreError::NotFound { what, .. } => not_found(what, detail),
        StoreError::Conflict { .. } => ApiError::plain(409, "conflict", "Conflicting update", detail),
        StoreError::Contradiction { .. } | StoreError::OutOfRange { .. } => {
            ApiError::plain(422, "refused", "The database cannot hold this", detail)
        }
        StoreError::Full { .. } => ApiError::plain(507, "store-full", "The database takes no more data", detail),
        StoreError::BadUrl { .. }
        | StoreError::NoFile { .. }
        | StoreError::NoDatabase { .. }
        | StoreError::OtherDatabase { .. }
        | StoreError::OtherTables { .. }
        | StoreError::Leftover { .. }
        | StoreError::OtherLog { .. }
        | StoreError::Corrupt { .. }
        | StoreError::NoBatch { .. }
        | StoreError::Unexpected(_) => {
            log(fault, is_logged);
            // The details are for the operator: they may hold names and paths that no client should read.
            ApiError::plain(500, "internal", "The service failed", "see the log of the service".to_owned())
        }
    }
}

fn log(fault: &StoreError, is_logged: bool) {
    if is_logged {
        tracing::error!(%fault, "a request failed");
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let elsewhere = match &self {
            Self::Elsewhere(Some(leader)) if !leader.address.is_empty() => Some(Elsewhere(leader.address.clone())),
            _ => None,
        };
        let refusal = match &self {
            Self::Store(fault) => Refusal::of(fault),
            Self::Turn(fault) => Refusal::of(fault),
            _ => None,
        };
        let problem = self.problem();
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&problem).expect("a problem has strings and numbers");
        let json = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, json)], body).into_response();
        if let Some(seconds) = problem.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"headroom\""));
        }
        if let Some(elsewhere) = elsewhere {
            response.extensions_mut().insert(elsewhere);
        }
        if let Some(refusal) = refusal {
            response.extensions_mut().insert(refusal);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_lost_database_have_their_own_answers_and_secrets_stay_in_the_log() {
        let of = |fault: StoreError| ApiError::from(fault).problem();
        let full = of(StoreError::Full { reason: "no space left on device".into() });
        assert_eq!((full.status, full.code.as_str(), full.retry_after_s), (507, "store-full", None));
        let gone = of(StoreError::Unavailable { reason: "connection refused".into() });
        assert_eq!((gone.status, gone.retry_after_s), (503, Some(RETRY_AFTER_S)));
        let denied = of(StoreError::Denied { reason: "password of headroom".into() });
        assert_eq!((denied.status, denied.code.as_str()), (503, "store-unavailable"));
        assert!(!denied.detail.contains("headroom"), "{}", denied.detail);
        let broken = of(StoreError::Corrupt { what: "a table of headroom".into(), reason: "as a test".into() });
        assert_eq!((broken.status, broken.detail.contains("headroom")), (500, false));
    }

    #[test]
    fn an_unknown_cluster_says_how_to_create_one_where_there_is_none_and_which_there_are_else() {
        let (none, some) = (unknown_cluster("mars".to_owned(), Vec::new()), vec!["earth".to_owned()]);
        assert!(none.detail.starts_with("mars: create it with `datasets ingest`"), "{}", none.detail);
        let known = unknown_cluster("mars".to_owned(), some.clone());
        assert_eq!((known.detail.as_str(), known.known), ("mars", some));
    }
}
