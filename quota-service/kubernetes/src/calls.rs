//! Requests to the Kubernetes API with typed refusals: stale, owned by another manager, throttled.
//!
//! `kube` drops `Retry-After` when it makes an error of an answer, so writes go through this module, as JSON.

mod patch;

use axum::http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;

/// Wait after 429 without a `Retry-After`.
const THROTTLED_FOR: Duration = Duration::from_secs(1);
/// Longest wait, even if the server asks for more.
const WAITS_AT_MOST: Duration = Duration::from_mins(5);

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// 404.
    #[error("it does not exist: {detail}")]
    Absent {
        /// Text of the server.
        detail: String,
    },
    /// 409: the object changed after it was read. Read and decide again.
    #[error("it changed after it was read: {detail}")]
    Stale {
        /// Text of the server.
        detail: String,
    },
    /// 409 of an apply: others own fields that it would change.
    #[error("fields belong to the field manager {}: {detail}", managers.join(", "))]
    Owned {
        /// Owners of the fields.
        managers: Vec<String>,
        /// Text of the server.
        detail: String,
    },
    /// 429.
    #[error("the API server is busy and asks for a wait of {} s", after.as_secs())]
    Throttled {
        /// Wait before the next request.
        after: Duration,
    },
    /// 429 of an eviction, or 500 where several budgets cover one pod: a disruption budget does not allow it now.
    #[error("a disruption budget does not allow it: {detail}")]
    Budget {
        /// Text of the server.
        detail: String,
    },
    /// Any other 4xx.
    #[error("refused with HTTP {code}: {detail}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// Text of the server.
        detail: String,
    },
    /// 5xx, no answer, or an unreadable one: the request may have been done.
    #[error("no valid answer of the API server: {detail}")]
    Failed {
        /// Cause.
        detail: String,
    },
}

/// Requests, each answered within a time or failed.
#[derive(Clone)]
pub struct Calls {
    client: Client,
    answers_within: Duration,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("answers_within", &self.answers_within).finish_non_exhaustive()
    }
}

/// A request, before it is sent.
struct Ask<'a> {
    method: Method,
    path: String,
    kind: &'a str,
    body: Option<&'a Value>,
}

impl Calls {
    /// Requests through `client`, each with this time limit.
    #[must_use]
    pub const fn new(client: Client, answers_within: Duration) -> Self {
        Self { client, answers_within }
    }

    /// # Errors
    /// The object does not exist, or the server did not return it.
    pub async fn get(&self, path: &str) -> Result<Value, Fault> {
        self.send(Ask { method: Method::GET, path: path.to_owned(), kind: "", body: None }).await
    }

    /// As `get`; `None` where there is none.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, Fault> {
        match self.get(path).await {
            Ok(object) => Ok(Some(object)),
            Err(Fault::Absent { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// POST to the path of a collection.
    ///
    /// # Errors
    /// `Stale` if the name is taken.
    pub async fn create(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Fault> {
        let path = format!("{path}?fieldManager={manager}");
        self.send(Ask { method: Method::POST, path, kind: "application/json", body: Some(object) }).await
    }

    /// PUT; `metadata.resourceVersion` is the precondition.
    ///
    /// # Errors
    /// `Stale` if another writer was faster.
    pub async fn update(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Fault> {
        let path = format!("{path}?fieldManager={manager}");
        self.send(Ask { method: Method::PUT, path, kind: "application/json", body: Some(object) }).await
    }

    /// Server-side apply that takes nothing from others; `metadata.resourceVersion`, where it stands, is a precondition.
    ///
    /// # Errors
    /// `Stale` if another writer was faster, `Owned` if it would change fields of other managers.
    pub async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Fault> {
        let path = format!("{path}?fieldManager={manager}&force=false");
        self.send(Ask { method: Method::PATCH, path, kind: "application/apply-patch+yaml", body: Some(object) }).await
    }

    async fn send(&self, ask: Ask<'_>) -> Result<Value, Fault> {
        let late = Fault::Failed { detail: format!("no answer within {} s", self.answers_within.as_secs_f32()) };
        tokio::time::timeout(self.answers_within, self.exchange(ask)).await.unwrap_or(Err(late))
    }

    async fn exchange(&self, ask: Ask<'_>) -> Result<Value, Fault> {
        let failed = |fault: &dyn std::error::Error| Fault::Failed { detail: connectors::chain(fault) };
        let mut request = Request::builder().method(ask.method).uri(&ask.path);
        if !ask.kind.is_empty() {
            request = request.header(header::CONTENT_TYPE, ask.kind);
        }
        let body = ask.body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(Body::from(body)).map_err(|fault| failed(&fault))?;
        let answer = self.client.send(request).await.map_err(|fault| failed(&fault))?;
        let code = answer.status().as_u16();
        let after = answer.headers().get(header::RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse().ok());
        let body = answer.into_body().collect().await.map_err(|fault| failed(&fault))?.to_bytes();
        if (200..300).contains(&code) {
            return serde_json::from_slice(&body).map_err(|fault| failed(&fault));
        }
        Err(fault_of(code, after, &body))
    }
}

/// The fault in an answer that is no success.
fn fault_of(code: u16, after_s: Option<u64>, body: &[u8]) -> Fault {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let detail =
        status["message"].as_str().map_or_else(|| String::from_utf8_lossy(body).trim().to_owned(), str::to_owned);
    match code {
        404 => Fault::Absent { detail },
        409 => {
            let managers = managers(&status);
            if managers.is_empty() { Fault::Stale { detail } } else { Fault::Owned { managers, detail } }
        }
        // The server evicts no pod that several budgets cover, and says so with a 500.
        429 | 500 if is_of_budget(&status) => Fault::Budget { detail },
        429 => {
            let after = after_s.or_else(|| status["details"]["retryAfterSeconds"].as_u64()).map(Duration::from_secs);
            Fault::Throttled { after: after.unwrap_or(THROTTLED_FOR).clamp(THROTTLED_FOR, WAITS_AT_MOST) }
        }
        400..500 => Fault::Refused { code, detail },
        _ => Fault::Failed { detail: format!("HTTP {code}: {detail}") },
    }
}

/// Whether a disruption budget is why. A 429 without that is a server that is busy.
fn is_of_budget(status: &Value) -> bool {
    let mut causes = status["details"]["causes"].as_array().into_iter().flatten();
    let text = status["message"].as_str().unwrap_or_default();
    causes.any(|cause| cause["reason"] == "DisruptionBudget") || text.contains("more than one PodDisruptionBudget")
}

/// Managers of the fields that an apply would change: the server names them in quotes, one in each cause.
fn managers(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let of_fields = causes.filter(|cause| cause["reason"] == "FieldManagerConflict");
    let mut found: Vec<String> = of_fields
        .map(|cause| {
            let text = cause["message"].as_str().unwrap_or_default();
            text.split('"').nth(1).unwrap_or(text).to_owned()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(code: u16, after_s: Option<u64>, body: &Value) -> Fault {
        fault_of(code, after_s, body.to_string().as_bytes())
    }

    #[test]
    fn a_conflict_of_fields_names_its_managers_and_a_plain_one_is_stale() {
        let cause = |name: &str| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {name:?} using v1") });
        let body = json!({ "message": "Apply failed", "details": { "causes": [cause("argo"), cause("argo"), cause("kubectl")] } });
        let Fault::Owned { managers, .. } = read(409, None, &body) else { panic!("fields are owned") };
        assert_eq!(managers, ["argo", "kubectl"]);
        assert!(matches!(read(409, None, &json!({ "reason": "Conflict" })), Fault::Stale { .. }));
    }

    #[test]
    fn a_budget_is_distinguished_from_a_server_that_is_busy() {
        let cause = json!({ "reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods" });
        let refused = json!({ "message": "Cannot evict pod", "details": { "causes": [cause] } });
        assert!(matches!(read(429, None, &refused), Fault::Budget { .. }));
        let several = json!({ "message": "This pod has more than one PodDisruptionBudget, which is not supported." });
        assert!(matches!(read(500, None, &several), Fault::Budget { .. }));
        assert!(matches!(read(429, Some(1), &json!({ "message": "too many requests" })), Fault::Throttled { .. }));
    }

    #[test]
    fn throttling_says_how_long_within_bounds() {
        let wait_s = |after_s, body: &Value| match read(429, after_s, body) {
            Fault::Throttled { after } => after.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!(wait_s(Some(7), &json!({})), 7);
        assert_eq!(wait_s(None, &json!({ "details": { "retryAfterSeconds": 9 } })), 9);
        assert_eq!(wait_s(None, &json!({})), 1);
        assert_eq!(wait_s(Some(0), &json!({})), 1, "a loop without a pause loads the server");
        assert_eq!(wait_s(Some(90_000), &json!({})), 300);
    }
}
