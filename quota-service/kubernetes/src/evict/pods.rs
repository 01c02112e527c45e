//! Requests to the API: pods, an annotation, evictions.

use crate::calls::{Calls, Fault};
use crate::names::{EVICT_AT, EVICT_MANAGER};
use crate::view::facts::{PodFacts, Uid};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vocab::UnixSeconds;

/// More evictions of one owner's pods within [`WINDOW_S`] are a cycle.
const MOST_EVICTIONS: usize = 3;
const WINDOW_S: i64 = vocab::SECONDS_PER_HOUR;

pub(super) struct Pods(Calls);

fn path(pod: &PodFacts) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}

fn is_going(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn gone(pod: &PodFacts) -> Fault {
    Fault::Absent { detail: format!("pod {}/{} has gone", pod.namespace, pod.name) }
}

impl Pods {
    pub const fn new(calls: Calls) -> Self {
        Self(calls)
    }

    /// The pod as it is now; `None` where another one has its name, or none.
    async fn find(&self, pod: &PodFacts) -> Result<Option<Value>, Fault> {
        let found = self.0.find(&path(pod)).await?;
        Ok(found.filter(|found| found["metadata"]["uid"].as_str().map(Uid::of) == Some(pod.uid)))
    }

    /// Whether an HP pod waits because nothing has room for it, and would have others go for that.
    pub async fn still_waits(&self, pod: &PodFacts) -> Result<bool, Fault> {
        let Some(found) = self.find(pod).await? else { return Ok(false) };
        let conditions = found["status"]["conditions"].as_array().into_iter().flatten();
        let mut refused = conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
        // A pod that is gated says SchedulingGated here.
        let has_no_room = refused.any(|one| one["reason"] == "Unschedulable");
        let has_node = found["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        Ok(has_no_room && !has_node && !is_going(&found) && found["spec"]["preemptionPolicy"] != "Never")
    }

    /// Writes the eviction notice on a pod. Answers the pod as it was read.
    pub async fn announce(&self, pod: &PodFacts, at: UnixSeconds) -> Result<Value, Fault> {
        let found = self.find(pod).await?.filter(|found| !is_going(found)).ok_or_else(|| gone(pod))?;
        self.annotate(pod, &found, &json!(at.to_string())).await.map(|()| found)
    }

    /// Takes an announcement back. Answers the pod as it was read, if there was one.
    pub async fn take_back(&self, pod: &PodFacts) -> Result<Option<Value>, Fault> {
        let Some(found) = self.find(pod).await? else { return Ok(None) };
        if found["metadata"]["annotations"].get(EVICT_AT).is_none() {
            return Ok(None);
        }
        match self.annotate(pod, &found, &Value::Null).await {
            Ok(()) => Ok(Some(found)),
            Err(Fault::Absent { .. } | Fault::Stale { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn annotate(&self, pod: &PodFacts, found: &Value, value: &Value) -> Result<(), Fault> {
        let read = &found["metadata"];
        let (uid, version) = (&read["uid"], &read["resourceVersion"]);
        let patch =
            json!({ "metadata": { "uid": uid, "resourceVersion": version, "annotations": { EVICT_AT: value } } });
        self.0.merge(&path(pod), EVICT_MANAGER, &patch).await.map(drop)
    }

    /// Whether a pod could be evicted now. Nothing happens.
    pub async fn may_evict(&self, pod: &PodFacts) -> Result<(), Fault> {
        let found = self.find(pod).await?.ok_or_else(|| gone(pod))?;
        let uid = found["metadata"]["uid"].as_str().unwrap_or_default();
        self.0.try_evict(&pod.namespace, &pod.name, uid, EVICT_MANAGER).await
    }

    /// Evicts a pod. Answers whose pod it was.
    pub async fn evict(&self, pod: &PodFacts) -> Result<String, Fault> {
        let found = self.find(pod).await?.ok_or_else(|| gone(pod))?;
        let uid = found["metadata"]["uid"].as_str().unwrap_or_default();
        self.0.evict(&pod.namespace, &pod.name, uid, EVICT_MANAGER).await?;
        Ok(owner(&found, pod))
    }
}

/// Owner that recreates the pod; without an owner its name, under which it may be created again.
fn owner(found: &Value, pod: &PodFacts) -> String {
    let owners = found["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let named = owners
        .filter(|owner| owner["controller"] == true)
        .find_map(|owner| Some(format!("{} {}/{}", owner["kind"].as_str()?, pod.namespace, owner["name"].as_str()?)));
    named.unwrap_or_else(|| format!("Pod {}/{}", pod.namespace, pod.name))
}

/// Evictions of the last hour, by owner.
#[derive(Debug, Default)]
pub(super) struct Cycles(BTreeMap<String, Vec<UnixSeconds>>);

impl Cycles {
    /// Notes one. Answers whether it is one too many.
    pub fn evicted(&mut self, owner: &str, now: UnixSeconds) -> bool {
        let times = self.0.entry(owner.to_owned()).or_default();
        times.push(now);
        times.len() > MOST_EVICTIONS
    }

    pub fn forget(&mut self, now: UnixSeconds) {
        for times in self.0.values_mut() {
            times.retain(|time| now.since_s(*time) < WINDOW_S);
        }
        self.0.retain(|_, times| !times.is_empty());
    }
}
