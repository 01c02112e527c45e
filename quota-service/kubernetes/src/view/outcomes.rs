//! Outcomes of promises.

use super::facts::{PodFacts, Uid};
use crate::names::{KUEUE_EVICTS, KUEUE_PREEMPTS};
use crate::view::pool::task_of;
use placement::fleet::Guarantee;
use vocab::{EventId, MilliGpus, NodeId, Outcome, OutcomeKind, PoolId, TaskClass, TaskId, UnixSeconds};

/// Promises that ended longer ago were reported by a replica then, or no longer concern eta, which uses one day.
const REPORTED_AGAIN_S: i64 = vocab::SECONDS_PER_DAY;

/// Reason of the condition of a pod that did not tolerate a `NoExecute` taint of its node.
pub(super) const BY_TAINT: &str = "DeletionByTaintManager";

/// How a running pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The scheduler made room for another pod, or Kueue, or we did.
    Preempted,
    /// Its node is lost, or ran out of something.
    NodeLost,
    /// An operator evicted it: a drain, or what Kueue does for other reasons than to make room.
    Drained,
    /// It came to its own end.
    Finished,
    /// It was deleted, or its end was not seen.
    Deleted,
}

impl End {
    /// By what the API says of it last.
    #[must_use]
    pub fn of(last: &PodFacts, has_ended: bool) -> Self {
        if let Some(reason) = last.disruption.as_deref().and_then(|reason| reason.strip_prefix(KUEUE_EVICTS)) {
            return Self::by_kueue(reason);
        }
        match last.disruption.as_deref() {
            Some("EvictionByEvictionAPI") if !last.is_announced => Self::Drained,
            Some(
                BY_TAINT | "DeletionByDeviceTaintManager" | "DeletionByPodGC" | "TerminationByKubelet" | "Evicted",
            ) => Self::NodeLost,
            // PreemptionByScheduler, what we announced, and conditions of others.
            Some(_) => Self::Preempted,
            None if has_ended && !last.is_going => Self::Finished,
            None => Self::Deleted,
        }
    }

    /// By the reason for which Kueue evicted its Workload.
    fn by_kueue(reason: &str) -> Self {
        match reason {
            _ if reason.starts_with(KUEUE_PREEMPTS) => Self::Preempted,
            "NodeFailures" => Self::NodeLost,
            // `spec.active` was set to false, or the job has run as long as it says itself that it may.
            "Deactivated" | "DeactivatedDueToMaximumExecutionTimeExceeded" => Self::Deleted,
            // A stopped queue, pods that were not ready in time, another check, or what is not known: nobody took its GPUs.
            _ => Self::Drained,
        }
    }

    #[must_use]
    pub const fn is_eviction(self) -> bool {
        matches!(self, Self::Preempted)
    }

    const fn kind(self) -> OutcomeKind {
        match self {
            Self::Preempted => OutcomeKind::Broken,
            Self::NodeLost => OutcomeKind::NodeFailure,
            Self::Drained => OutcomeKind::Drain,
            Self::Finished => OutcomeKind::Kept,
            Self::Deleted => OutcomeKind::UserDeleted,
        }
    }
}

/// Id of the outcome of a pod's promise: a pod is promised once.
#[must_use]
pub fn event_id(uid: Uid) -> EventId {
    EventId::parse(&format!("pod-{uid}")).expect("40 characters are a name")
}

/// It ran to the end of its guarantee.
pub(super) fn kept(
    pool: &PoolId,
    task: &TaskId,
    guarantee: Guarantee,
    gpus: Option<MilliGpus>,
    node: Option<NodeId>,
) -> Outcome {
    Outcome {
        event_id: event_id(Uid::of(task.as_str())),
        pool: pool.clone(),
        guarantee_hours: guarantee.hours,
        kind: OutcomeKind::Kept,
        ended_at: guarantee.until,
        began_at: Some(guarantee.until.plus_s(-guarantee.hours.seconds())),
        gpus,
        task: Some(task.clone()),
        node,
    }
}

/// It ended; `None` where it was promised nothing, or the promise was over. `ended` is when, as its status says it: a connector that
/// starts later reports the same.
pub(super) fn of_end(
    pool: &PoolId,
    pod: &PodFacts,
    end: End,
    ended: Option<UnixSeconds>,
    now: UnixSeconds,
) -> Option<Outcome> {
    let guarantee = Guarantee::from(pod.since(), pod.guarantee?);
    (guarantee.until > now).then(|| early(pool, pod, guarantee, end, ended.map_or(now, |at| within(pod, at, now))))
}

/// A pod that had ended when it was first seen, judged as one that ends while it is watched.
pub(super) fn of_ended(pool: &PoolId, pod: &PodFacts, end: End, now: UnixSeconds) -> Option<Outcome> {
    let guarantee = Guarantee::from(pod.since(), pod.guarantee?);
    let ended = within(pod, pod.ended?, now);
    if guarantee.until <= ended {
        return of_past(pool, pod, now);
    }
    (now.since_s(ended) < REPORTED_AGAIN_S).then(|| early(pool, pod, guarantee, end, ended))
}

/// The clock of a node may differ.
fn within(pod: &PodFacts, ended: UnixSeconds, now: UnixSeconds) -> UnixSeconds {
    ended.max(pod.since()).min(now)
}

/// It ended before its guarantee.
fn early(pool: &PoolId, pod: &PodFacts, guarantee: Guarantee, end: End, ended_at: UnixSeconds) -> Outcome {
    Outcome {
        event_id: event_id(pod.uid),
        pool: pool.clone(),
        guarantee_hours: guarantee.hours,
        kind: end.kind(),
        ended_at,
        began_at: Some(pod.since()),
        gpus: Some(pod.amount()),
        task: Some(task_of(pod.uid)),
        node: pod.node.clone(),
    }
}

/// A running pod that is seen for the first time, and whose promise ended lately: it was kept.
pub(super) fn of_past(pool: &PoolId, pod: &PodFacts, now: UnixSeconds) -> Option<Outcome> {
    let guarantee = Guarantee::from(pod.since(), pod.guarantee?);
    let is_past =
        pod.class == TaskClass::Spot && guarantee.until <= now && now.since_s(guarantee.until) < REPORTED_AGAIN_S;
    is_past.then(|| kept(pool, &task_of(pod.uid), guarantee, Some(pod.amount()), pod.node.clone()))
}
