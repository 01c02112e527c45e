//! Notices in the Kubernetes API: a condition and an event of the pod.

use super::Notice;
use crate::calls::{Calls, Fault};
use crate::clock;
use crate::names::{EVICT_MANAGER, EVICTION_NOTICE, EVICTOR};
use crate::view::facts::Uid;
use serde_json::json;

/// Writes conditions and events.
pub struct Marks {
    calls: Calls,
    identity: String,
}

/// A pod that has gone needs no notice.
fn unless_gone(went: Result<serde_json::Value, Fault>) -> Result<(), String> {
    match went {
        Ok(_) | Err(Fault::Absent { .. } | Fault::Stale { .. }) => Ok(()),
        Err(fault) => Err(fault.to_string()),
    }
}

impl Marks {
    pub const fn new(calls: Calls, identity: String) -> Self {
        Self { calls, identity }
    }

    /// Sets the condition of a victim, or sets it to false.
    pub async fn condition(&self, notice: &Notice, holds: bool) -> Result<(), String> {
        let pod = &notice.pod;
        let (reason, message) = if holds {
            ("HighPriorityDemand", format!("evicted at {} to make room for high-priority pods", notice.at))
        } else {
            ("TakenBack", "no high-priority pod waits for its GPUs any more".to_owned())
        };
        let condition = json!({
            "type": EVICTION_NOTICE, "status": if holds { "True" } else { "False" }, "reason": reason, "message": message,
            "lastTransitionTime": clock::now().to_string(),
        });
        let patch = json!({ "metadata": { "uid": pod.uid.to_string() }, "status": { "conditions": [condition] } });
        let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
        unless_gone(self.calls.strategic(&path, EVICT_MANAGER, &patch).await)
    }

    /// Writes an event of a victim, once: its name is that of what it tells.
    pub async fn event(&self, notice: &Notice, reason: &str) -> Result<(), String> {
        let pod = &notice.pod;
        let Uid(number) = Uid::of(&format!("{} {} {reason}", pod.uid, notice.at));
        // Names have at most 253 characters.
        let start: String = pod.name.chars().take(200).collect();
        let now = clock::now().to_string();
        let message = if reason == "EvictionNotice" {
            format!("Headroom evicts this pod at {} to make room for high-priority pods", notice.at)
        } else {
            "Headroom does not evict this pod: no high-priority pod waits for its GPUs any more".to_owned()
        };
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message,
            "metadata": { "name": format!("{start}.{number:032x}"), "namespace": pod.namespace },
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid.to_string(),
            },
            "firstTimestamp": now, "lastTimestamp": now, "count": 1, "source": { "component": "headroom-kubernetes" },
            "reportingComponent": EVICTOR, "reportingInstance": self.identity, "action": "Evict",
        });
        let path = format!("/api/v1/namespaces/{}/events", pod.namespace);
        unless_gone(self.calls.create(&path, EVICT_MANAGER, &event).await)
    }
}
