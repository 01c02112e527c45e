//! Reads of the Kubernetes API.

use super::Check;
use crate::config::Config;
use axum::http::header::{CONTENT_TYPE, DATE};
use axum::http::{Method, Request};
use connectors::chain;
use connectors::doctor::{http_date, skew};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;

/// Of one request. A server that takes longer is no use to a scheduler either.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// Supported and tested minor versions of Kubernetes: 1.34 to 1.37.
const MINOR: std::ops::RangeInclusive<u32> = 34..=37;

/// An answer: its status, when it was made, and its JSON.
pub struct Answer {
    pub status: u16,
    pub date: Option<String>,
    pub body: Value,
}

impl Answer {
    /// Status and message of a refusal.
    fn message(&self) -> String {
        let reason = self.body["message"].as_str().unwrap_or("no reason given");
        format!("HTTP {}: {reason}", self.status)
    }
}

/// Client of the checks.
pub struct Api(Client);

impl Api {
    pub const fn new(client: Client) -> Self {
        Self(client)
    }

    pub fn client(&self) -> &Client {
        &self.0
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, String> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(bytes)).map_err(|fault| fault.to_string())?;
        let exchange = async {
            let response = self.0.send(request).await.map_err(|fault| chain(&fault))?;
            let status = response.status().as_u16();
            let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
            let bytes = response.into_body().collect().await.map_err(|fault| fault.to_string())?.to_bytes();
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            Ok(Answer { status, date, body })
        };
        let asked = tokio::time::timeout(ANSWERS_WITHIN, exchange).await;
        asked.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWERS_WITHIN.as_secs())))
    }

    /// An object; `None` where there is none of that path.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, String> {
        let answer = self.ask(Method::GET, path, None).await?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            _ => Err(answer.message()),
        }
    }

    /// The objects of a list; none where the path is not served.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let found = self.find(path).await?;
        Ok(found.and_then(|mut list| list["items"].as_array_mut().map(std::mem::take)).unwrap_or_default())
    }

    /// Requests a review; the API does not store it.
    pub async fn review(&self, path: &str, body: &Value) -> Result<Value, String> {
        let answer = self.ask(Method::POST, path, Some(body)).await?;
        if matches!(answer.status, 200 | 201) { Ok(answer.body) } else { Err(answer.message()) }
    }

    /// Checks that the server answers, accepts the token, has a supported version, and agrees on the time.
    pub async fn reached(&self, config: &Config) -> Vec<Check> {
        const NAME: &str = "kubernetes";
        let fix = "correct kubeconfig (server and token), or check that the API server runs and is reachable from here";
        let answer = match self.ask(Method::GET, "/version", None).await {
            Ok(answer) => answer,
            Err(why) => return vec![Check::fail(NAME, format!("the API server does not answer: {why}"), fix)],
        };
        let now = connectors::clock::now();
        match answer.status {
            200 => {}
            401 => {
                let fix = "correct the token: kubectl create token, or the service account of the pod";
                return vec![Check::fail(NAME, "the token is not known (HTTP 401)", fix)];
            }
            _ => return vec![Check::fail(NAME, answer.message(), fix)],
        }
        let mut checks = vec![version(&answer.body, config)];
        let date = answer.date.as_deref().and_then(http_date);
        checks.extend(date.map(|date| skew("clock of kubernetes", date, now)));
        checks
    }
}

fn version(answer: &Value, config: &Config) -> Check {
    const NAME: &str = "kubernetes";
    let whole = answer["gitVersion"].as_str().unwrap_or("no version");
    let found = match config.kubeconfig.get() {
        None => whole.to_owned(),
        Some(file) => format!("{whole}, by {}", file.display()),
    };
    // Some distributions write "34+".
    let number = |field: &str| answer[field].as_str().and_then(|text| text.trim_end_matches('+').parse::<u32>().ok());
    match (number("major"), number("minor")) {
        (Some(1), Some(minor)) if MINOR.contains(&minor) => Check::ok(NAME, found),
        (Some(1), Some(minor)) if minor < *MINOR.start() => Check::warn(
            NAME,
            format!("{found}: older than 1.34"),
            "upgrade Kubernetes, or test every mode on a copy first",
        ),
        (Some(_), Some(_)) => {
            Check::warn(NAME, format!("{found}: newer than 1.37"), "install a newer headroom-kubernetes")
        }
        _ => Check::warn(NAME, found, "check that this is a Kubernetes API server"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_that_was_not_tried_is_warned_of() {
        let status = |minor: &str| {
            let answer = json!({ "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.0") });
            version(&answer, &Config::default()).status
        };
        assert_eq!(["34", "35+", "37"].map(status), [Status::Ok; 3]);
        assert_eq!(["33", "38", ""].map(status), [Status::Warn; 3]);
    }
}
