//! Events of the API: what was done to an object, for `kubectl describe`. They are rate-limited and in nobody's way: one that cannot
//! be written is dropped and counted.

mod limiter;
#[cfg(test)]
mod tests;

use crate::calls::{Calls, Fault};
use crate::config::Config;
use crate::lead::record::micro_time;
use crate::lead::stopped;
use crate::names::EVENT_MANAGER;
use kube::Client;
use limiter::Limiter;
use serde_json::{Value, json};
use serving::standing::Standing;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Of one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Events that wait to be written.
const QUEUE: usize = 64;
/// Bytes of a note that the API takes.
const NOTE_MOST: usize = 1_024;
/// Bytes of an instance that the API takes.
const INSTANCE_MOST: usize = 128;
/// Namespace of events of objects that have none.
const OF_THE_CLUSTER: &str = "default";

/// Whether an event is an ordinary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    /// An operator should look at it.
    Warning,
}

/// The object that an event is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regarding {
    pub api_version: String,
    pub kind: &'static str,
    /// Empty for an object of the cluster.
    pub namespace: String,
    pub name: String,
    /// Empty where it is not known.
    pub uid: String,
}

impl Regarding {
    /// A pod.
    #[must_use]
    pub fn pod(namespace: &str, name: &str, uid: &str) -> Self {
        let (namespace, name, uid) = (namespace.to_owned(), name.to_owned(), uid.to_owned());
        Self { api_version: "v1".to_owned(), kind: "Pod", namespace, name, uid }
    }

    /// A Workload of Kueue.
    #[must_use]
    pub fn workload(namespace: &str, name: &str, uid: &str) -> Self {
        Self { api_version: "kueue.x-k8s.io/v1beta2".to_owned(), kind: "Workload", ..Self::pod(namespace, name, uid) }
    }
}

/// The cause, in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub kind: Kind,
    /// One word, for programs.
    pub reason: &'static str,
    /// The action, in one word.
    pub action: &'static str,
    /// For people.
    pub text: String,
}

impl Note {
    /// An ordinary one.
    #[must_use]
    pub const fn normal(reason: &'static str, action: &'static str, text: String) -> Self {
        Self { kind: Kind::Normal, reason, action, text }
    }

    /// One for an operator.
    #[must_use]
    pub const fn warning(reason: &'static str, action: &'static str, text: String) -> Self {
        Self { kind: Kind::Warning, reason, action, text }
    }
}

/// Takes events. Clones share their limits.
#[derive(Debug, Clone, Default)]
pub struct Events(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    sender: mpsc::Sender<(Regarding, Note)>,
    limiter: Mutex<Limiter>,
}

impl Events {
    /// None is written.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Writes until `stop` is set, where the settings say so.
    #[must_use]
    pub fn start(client: Client, config: &Config, stop: watch::Receiver<bool>) -> Self {
        if !config.events {
            return Self::none();
        }
        let (sender, queue) = mpsc::channel(QUEUE);
        let writer = Writer {
            calls: Calls::new(client, ANSWERS_WITHIN),
            instance: config.identity().chars().take(INSTANCE_MOST).collect(),
            number: AtomicU64::new(0),
            standing: Standing::new(),
        };
        tokio::spawn(writer.until(queue, stop));
        Self(Some(Arc::new(Inner { sender, limiter: Mutex::default() })))
    }

    /// Takes an event, and returns at once.
    pub fn tell(&self, regarding: Regarding, note: Note) {
        let Some(inner) = &self.0 else { return };
        let of = format!("{}/{}/{}/{}", regarding.kind, regarding.namespace, regarding.name, note.reason);
        let admits = inner.limiter.lock().unwrap_or_else(PoisonError::into_inner).admits(Instant::now(), of);
        if !admits {
            return count("limited");
        }
        if inner.sender.try_send((regarding, note)).is_err() {
            count("dropped");
        }
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("headroom_kubernetes_events_total", "outcome" => outcome).increment(1);
}

struct Writer {
    calls: Calls,
    instance: String,
    number: AtomicU64,
    standing: Standing,
}

impl Writer {
    async fn until(self, mut queue: mpsc::Receiver<(Regarding, Note)>, mut stop: watch::Receiver<bool>) {
        loop {
            let (regarding, note) = tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                next = queue.recv() => match next {
                    Some(next) => next,
                    None => return,
                },
            };
            let went = self.write(&regarding, &note).await;
            count(if went.is_ok() { "written" } else { "failed" });
            self.standing.note(
                "",
                &went,
                |fault| {
                    if matches!(fault, Fault::Refused { code: 401 | 403, .. }) {
                        tracing::warn!(%fault, "events are not written: let this identity create events of events.k8s.io, or set events to false");
                    } else {
                        tracing::warn!(%fault, "an event is not written, and not tried again; nothing else waits for it");
                    }
                },
                |over| tracing::info!(lasted_s = over.lasted_s, "events are written again"),
            );
        }
    }

    async fn write(&self, regarding: &Regarding, note: &Note) -> Result<(), Fault> {
        let namespace = if regarding.namespace.is_empty() { OF_THE_CLUSTER } else { &regarding.namespace };
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        self.calls.create(&path, EVENT_MANAGER, &self.event(namespace, regarding, note)).await.map(drop)
    }

    fn event(&self, namespace: &str, regarding: &Regarding, note: &Note) -> Value {
        let now = micro_time();
        // Unique among replicas and restarts: the time of the process, and a number.
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{:x}{number:x}", chrono::Utc::now().timestamp_micros());
        let name: String = regarding.name.chars().take(200).collect();
        let mut text = note.text.clone();
        while text.len() > NOTE_MOST {
            text.pop();
        }
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": { "name": format!("{}.{unique}", name.trim_end_matches(['-', '.'])), "namespace": namespace },
            "eventTime": now, "type": match note.kind { Kind::Normal => "Normal", Kind::Warning => "Warning" },
            "reason": note.reason, "action": note.action, "note": text,
            "reportingController": "headroom.dev/kubernetes", "reportingInstance": self.instance,
            "regarding": {
                "apiVersion": regarding.api_version, "kind": regarding.kind, "name": regarding.name,
                "namespace": regarding.namespace, "uid": regarding.uid,
            },
        })
    }
}
