//! Notice before an eviction, beside the annotation and the event: a condition of the pod, an EvictionRequest where pods have responders,
//! a signed webhook, a checkpoint hook in the pod, and a drain of Ray nodes. A victim that says that it is ready goes at once.
//!
//! Notices never hold an eviction back: one that fails is logged and tried again until the eviction is due.

mod api;
mod hooks;
mod ray;
mod request;
#[cfg(test)]
mod tests;

pub use request::understood;

use crate::calls::Calls;
use crate::config::{Config, RayUrl};
use crate::names::EVICT_AT;
use crate::view::facts::{PodFacts, Uid};
use api::Marks;
use hooks::Hooks;
use kube::Client;
use ray::Ray;
use request::EvictionRequests;
use serde_json::{Value, json};
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use vocab::UnixSeconds;

/// Of one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Between two tries of one notice.
const TRIES_AGAIN: Duration = Duration::from_secs(2);

/// Why notices cannot be given as the settings say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {detail}")]
pub struct NoticeError {
    /// The setting.
    pub key: &'static str,
    /// Cause.
    pub detail: String,
}

/// Checks the settings of notices, and reads their files.
///
/// # Errors
/// A file cannot be read, or a value cannot be used.
pub fn check(config: &Config) -> Result<(), NoticeError> {
    Hooks::new(config).map(drop)
}

/// A notice to one victim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The victim's facts.
    pub pod: PodFacts,
    /// Address of the pod.
    pub pod_ip: Option<String>,
    /// Annotations and labels.
    marks: BTreeMap<String, String>,
    /// Whether it shares the network of its node.
    is_host_network: bool,
    /// Whether it names responders to evictions.
    has_responders: bool,
    /// Whether it is one of a PodGroup.
    has_group: bool,
    /// When it is evicted.
    pub at: UnixSeconds,
    /// Time of the notice.
    pub since: UnixSeconds,
}

impl Notice {
    /// Of a victim, as the API has it.
    #[must_use]
    pub fn of(pod: &PodFacts, object: &Value, at: UnixSeconds, since: UnixSeconds) -> Self {
        let mut marks = BTreeMap::new();
        for field in ["labels", "annotations"] {
            for (key, value) in object["metadata"][field].as_object().into_iter().flatten() {
                marks.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
            }
        }
        Self {
            pod: pod.clone(),
            pod_ip: object["status"]["podIP"].as_str().map(str::to_owned),
            marks,
            is_host_network: object["spec"]["hostNetwork"] == true,
            has_responders: object["spec"]["evictionResponders"].as_array().is_some_and(|all| !all.is_empty()),
            has_group: object["spec"]["schedulingGroup"].is_object(),
            at,
            since,
        }
    }

    fn mark(&self, key: &str) -> Option<&str> {
        self.marks.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Body that hooks get.
    #[must_use]
    pub fn body(&self, kind: &str) -> Value {
        json!({
            "kind": kind, "id": format!("{}-{}", self.pod.uid, self.at.get()), "evict_at": self.at.to_string(),
            "notified_at": self.since.to_string(), "gpus": self.pod.amount().as_gpus(),
            "pod": {
                "namespace": self.pod.namespace, "name": self.pod.name, "uid": self.pod.uid.to_string(),
                "node": self.pod.node.as_ref().map(vocab::NodeId::as_str),
            },
        })
    }
}

/// Victims that reported by HTTP that they are ready, with the time of the eviction of their notice.
type Ready = Arc<Mutex<BTreeMap<Uid, UnixSeconds>>>;

/// Gives notices, and knows which victims are ready.
pub struct Notices {
    marks: Marks,
    requests: EvictionRequests,
    hooks: Option<Hooks>,
    ray: Option<Ray>,
    open: BTreeMap<Uid, Notice>,
    ready: Ready,
    standing: Arc<Standing>,
    /// Sends hooks; those of notices that are over are stopped.
    sending: BTreeMap<Uid, JoinSet<()>>,
}

impl Notices {
    /// As the settings say; the API is asked what it serves with the first notice.
    ///
    /// # Errors
    /// A file of the settings cannot be read.
    pub fn new(client: &Client, config: &Config) -> Result<Self, NoticeError> {
        let calls = Calls::new(client.clone(), ANSWERS_WITHIN);
        let ready = Ready::default();
        Ok(Self {
            marks: Marks::new(calls.clone()),
            requests: EvictionRequests::new(calls),
            hooks: Hooks::new(config)?,
            ray: Ray::new(config.notice_ray_url.get().map(RayUrl::as_str)),
            open: BTreeMap::new(),
            ready,
            standing: Arc::new(Standing::new()),
            sending: BTreeMap::new(),
        })
    }

    /// Tells a victim, all ways that apply to it.
    pub async fn announce(&mut self, notice: Notice) {
        let uid = notice.pod.uid;
        self.note("condition", &self.marks.condition(&notice, true).await);
        let asked = self.requests.ask(&notice).await;
        self.note("eviction request", &asked);
        let mut sending = JoinSet::new();
        if let Some(hooks) = &self.hooks {
            for target in hooks.targets(&notice) {
                let (ready, standing) = (Arc::clone(&self.ready), Arc::clone(&self.standing));
                sending.spawn(hooks::send(target, notice.clone(), ready, standing));
            }
        }
        if let Some(drain) = self.ray.as_ref().and_then(|ray| ray.drain(&notice)) {
            sending.spawn(ray::send(drain, notice.at, Arc::clone(&self.standing)));
        }
        self.sending.insert(uid, sending);
        self.open.insert(uid, notice);
    }

    /// Tells a victim that it stays: one with a notice from here, or from a leader before, whose time the pod as it was read has.
    pub async fn take_back(&mut self, pod: &PodFacts, object: &Value) {
        let earlier = || {
            let at = object["metadata"]["annotations"][EVICT_AT].as_str().and_then(|at| command_line::instant(at).ok());
            Notice::of(pod, object, at.unwrap_or(pod.created), pod.created)
        };
        let notice = self.close(pod.uid).unwrap_or_else(earlier);
        self.note("condition", &self.marks.condition(&notice, false).await);
        let withdrawn = self.requests.withdraw(&notice).await;
        self.note("eviction request", &withdrawn);
        if let Some(hooks) = &self.hooks {
            hooks.taken_back(&notice, Arc::clone(&self.standing));
        }
    }

    fn close(&mut self, uid: Uid) -> Option<Notice> {
        // A request under way is cut.
        self.sending.remove(&uid);
        self.lock().remove(&uid);
        self.open.remove(&uid)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Uid, UnixSeconds>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a victim reported that it has saved its work, by its annotation or by HTTP, for the eviction at this time.
    #[must_use]
    pub fn is_ready(&self, pod: &PodFacts, at: UnixSeconds) -> bool {
        pod.ready_for == Some(at) || self.lock().get(&pod.uid) == Some(&at)
    }

    /// A victim was evicted: how long it had is measured.
    pub fn evicted(&mut self, pod: &PodFacts, now: UnixSeconds) {
        let is_ready = self.open.get(&pod.uid).is_some_and(|notice| self.is_ready(pod, notice.at) && now < notice.at);
        let Some(notice) = self.close(pod.uid) else { return };
        let by = if is_ready { "acknowledged" } else { "deadline" };
        let seconds = now.since_s(notice.since).max(0) as f64;
        metrics::histogram!("headroom_kubernetes_notice_to_eviction_seconds", "by" => by).record(seconds);
    }

    /// Logs the first failure of a kind of notices, and its end.
    fn note(&self, what: &'static str, went: &Result<(), String>) {
        if went.is_err() {
            metrics::counter!("headroom_kubernetes_notice_faults_total", "of" => what).increment(1);
        }
        self.standing.note(
            what,
            went,
            |fault| tracing::warn!(what, fault, "a notice of eviction fails: the eviction goes on"),
            |over| tracing::info!(what, lasted_s = over.lasted_s, "notices of eviction work again"),
        );
    }
}
