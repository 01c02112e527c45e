//! Notices in the Kubernetes API: a condition of the pod.

use super::Notice;
use crate::calls::{Calls, Fault};
use crate::names::{EVICT_MANAGER, EVICTION_NOTICE};
use connectors::clock;
use serde_json::json;

/// Writes conditions.
pub struct Marks(Calls);

/// A pod that has gone needs no notice.
fn unless_gone(went: Result<serde_json::Value, Fault>) -> Result<(), String> {
    match went {
        Ok(_) | Err(Fault::Absent { .. } | Fault::Stale { .. }) => Ok(()),
        Err(fault) => Err(fault.to_string()),
    }
}

impl Marks {
    pub const fn new(calls: Calls) -> Self {
        Self(calls)
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
        unless_gone(self.0.strategic(&path, EVICT_MANAGER, &patch).await)
    }
}
