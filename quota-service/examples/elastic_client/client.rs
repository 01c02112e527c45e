//! The requests that keep an elastic task: submit it, read its events, read its places, end it.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the service does not answer: {0}")]
    Unreachable(#[from] ureq::Error),
    #[error("the stream of events broke off: {0}")]
    Stream(#[from] std::io::Error),
    #[error("the service answers {status}: {detail}")]
    Refused { status: u16, detail: String },
}

/// A pod's place: its node, and its GPUs there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub node: String,
    pub gpus: Vec<u64>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gpus: Vec<String> = self.gpus.iter().map(u64::to_string).collect();
        write!(f, "{}:{}", self.node, gpus.join("+"))
    }
}

/// Longest wait for an answer; then the request is tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// A pool of the service.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    /// Events have no end.
    patient: ureq::Agent,
    api: String,
    of_pool: String,
}

impl Client {
    pub fn new(api: &str, cluster: &str, gpu_model: &str) -> Self {
        let config = || ureq::Agent::config_builder().http_status_as_error(false);
        let (agent, patient) = (config().timeout_global(Some(PATIENCE)).build().into(), config().build().into());
        let of_pool = format!("cluster={cluster}&gpu_model={gpu_model}");
        Self { agent, patient, api: api.trim_end_matches('/').to_owned(), of_pool }
    }

    fn read(mut response: ureq::http::Response<ureq::Body>) -> Result<Value, ClientError> {
        let status = response.status().as_u16();
        let body: Value = response.body_mut().read_json()?;
        if status < 300 {
            return Ok(body);
        }
        let detail = [&body["errors"][0]["detail"], &body["detail"]].into_iter().find_map(Value::as_str);
        Err(ClientError::Refused { status, detail: detail.unwrap_or_default().to_owned() })
    }

    /// Submits a task. A repetition is answered with the task as it stands, so that a client may retry after a lost answer.
    pub fn submit(&self, body: &Value) -> Result<Value, ClientError> {
        Self::read(self.agent.post(format!("{}/v1/tasks", self.api)).send_json(body)?)
    }

    pub fn task(&self, id: &str) -> Result<Value, ClientError> {
        Self::read(self.agent.get(format!("{}/v1/tasks/{id}?{}", self.api, self.of_pool)).call()?)
    }

    /// Reports `finish` or `checkpoint`.
    pub fn report(&self, id: &str, event: &str) -> Result<Value, ClientError> {
        Self::read(self.agent.post(format!("{}/v1/tasks/{id}/{event}?{}", self.api, self.of_pool)).send_empty()?)
    }

    pub fn delete(&self, id: &str) -> Result<Value, ClientError> {
        Self::read(self.agent.delete(format!("{}/v1/tasks/{id}?{}", self.api, self.of_pool)).call()?)
    }

    /// Reads events after the one with the id `last`, until `send` returns false or the stream breaks off. `last` is then the
    /// id of the last event read.
    pub fn events(&self, last: &mut String, mut send: impl FnMut(&Value) -> bool) -> Result<(), ClientError> {
        let url = format!("{}/v1/events?{}", self.api, self.of_pool);
        let response = self.patient.get(url).header("last-event-id", last.as_str()).call()?;
        if !response.status().is_success() {
            return Self::read(response).map(drop);
        }
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let line = line?;
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(last);
            }
            let event = line.strip_prefix("data: ").and_then(|json| serde_json::from_str(json).ok());
            if event.is_some_and(|event: Value| !send(&event)) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn of(places: &Value) -> Vec<Place> {
    let place = |place: &Value| Place {
        node: place["node"].as_str().unwrap_or_default().to_owned(),
        gpus: place["gpus"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect(),
    };
    places.as_array().into_iter().flatten().map(place).collect()
}

/// The places that a task has: none while it waits.
pub fn places(task: &Value) -> Vec<Place> {
    let run = &task["detail"]["run"];
    if task["status"] != "running" {
        return Vec::new();
    }
    [of(&run["places"]), of(&run["lent"])].concat()
}

/// The places that an event takes or gives.
pub fn named(event: &Value) -> Vec<Place> {
    of(&event["places"])
}

/// Time left until an instant that the service states; zero once it is over. The clocks of both machines have to agree.
pub fn until(time: &Value) -> Duration {
    let text = time.as_str().unwrap_or_default();
    let left_s =
        chrono::DateTime::parse_from_rfc3339(text).map_or(0, |at| at.timestamp() - chrono::Utc::now().timestamp());
    Duration::from_secs(u64::try_from(left_s).unwrap_or(0))
}
