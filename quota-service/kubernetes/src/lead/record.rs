//! The record of a Lease, as far as it decides.

use serde_json::{Value, json};

/// Holder of a Lease, and the number of its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Empty where it was given back.
    pub holder: String,
    /// `leaseTransitions`; the epoch of the holder. A 32-bit number in the API.
    pub transitions: u32,
    /// `resourceVersion`: changes with every write, and is the precondition of ours.
    pub version: String,
}

/// The most that `leaseTransitions` holds.
pub const MOST_TRANSITIONS: u32 = i32::MAX.unsigned_abs();

/// Now, as the API writes times of leases: exactly six digits of a second.
#[must_use]
pub fn micro_time() -> String {
    chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Path of the Leases of a namespace.
#[must_use]
pub fn leases(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

impl Record {
    /// Reads the record of a Lease.
    #[must_use]
    pub fn read(lease: &Value) -> Self {
        let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
        Self {
            holder: lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            transitions: u32::try_from(transitions).unwrap_or(MOST_TRANSITIONS),
            version: lease["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The Lease that says this. What it lasts is written for others to read; nothing here believes it, nor `renewTime`.
    #[must_use]
    pub fn lease(&self, name: &str, lasts_s: u64, acquired: Option<&str>) -> Value {
        let now = micro_time();
        // A Lease that was given back may be taken at once: others read that from how long it lasts.
        let lasts_s = if self.holder.is_empty() { 1 } else { lasts_s };
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "labels": { crate::names::MANAGED_BY: crate::names::HEADROOM } },
            "spec": {
                "holderIdentity": self.holder, "leaseDurationSeconds": lasts_s, "leaseTransitions": self.transitions,
                "acquireTime": acquired.unwrap_or(&now), "renewTime": now,
            },
        });
        if !self.version.is_empty() {
            lease["metadata"]["resourceVersion"] = self.version.as_str().into();
        }
        lease
    }
}
