//! How much each Workload is boosted. Pure: time is passed in.

use crate::view::View;
use crate::workloads::WorkloadFacts;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vocab::UnixSeconds;

/// Waste, ϑ of GFS Eq. 17 (GPUs × time since work was saved), in GPU-seconds, from which each level begins: 1, 4, 16 and 64 GPU-hours.
/// Waste reaches from one GPU's minutes to a gang's days, so equal ratios and not equal steps; a factor of 4, since a Workload with
/// twice as much to lose as another may have a quarter of it after its next checkpoint. Four levels above none: a boost
/// orders spot Workloads among each other, and must not lift them over another class of priority.
pub const LEVELS_FROM_GPU_S: [u64; 4] = [3_600, 4 * 3_600, 16 * 3_600, 64 * 3_600];
/// Between two changes of one admitted Workload: each makes Kueue sort its queue again.
pub const DWELL_S: i64 = 600;

/// The level of so many GPUs that were saved so long ago, 0 to 4.
#[must_use]
pub fn level(gpus: u64, age_s: u64) -> u8 {
    let waste_gpu_s = gpus.saturating_mul(age_s);
    LEVELS_FROM_GPU_S.iter().filter(|from| waste_gpu_s >= **from).count() as u8
}

/// Known state of a Workload's boost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// When it changed last, or was first seen.
    pub changed: UnixSeconds,
    /// Another field manager writes it: we do not write it.
    pub is_foreign: bool,
}

/// A boost that has to be written; none takes it away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The Workload.
    pub workload: WorkloadFacts,
    pub level: Option<u8>,
}

/// Notes what is new and forgets what has gone, then answers what is to be written, the largest step first. A Workload that is evicted
/// or not admitted loses its boost at once: Kueue would preempt promised Workloads for it. One that has finished keeps its boost: Kueue
/// no longer reads it.
#[must_use]
pub fn changes(
    workloads: &[WorkloadFacts],
    view: &View,
    cluster_queue: &str,
    known: &mut BTreeMap<String, Known>,
    now: UnixSeconds,
) -> Vec<Change> {
    let here: BTreeMap<&String, &WorkloadFacts> =
        workloads.iter().filter(|one| !one.is_finished).map(|one| (&one.uid, one)).collect();
    known.retain(|uid, _| here.contains_key(uid));
    let saved = saved_by_pods(view);
    let mut changes = Vec::new();
    for (uid, workload) in here {
        let runs = workload.is_spot && workload.cluster_queue == cluster_queue && workload.evicted.is_none();
        let admitted = workload.admitted.filter(|_| runs);
        let level = admitted.map(|admitted| {
            let by_pods = saved.get(&(&*workload.namespace, &*workload.name)).copied();
            let by_own = workload.pods.iter().filter_map(|uid| view.pod(uid)?.saved).max();
            level(workload.gpus(), age_s(admitted, workload.saved.max(by_pods).max(by_own), now))
        });
        // Level 0 is no annotation.
        let level = level.filter(|level| *level > 0);
        if workload.boost == level.map(|level| level.to_string()) {
            continue;
        }
        // One that is there already was written by this program before it started again, at the latest now.
        let changed = if workload.boost.is_some() { now } else { UnixSeconds::new(i64::MIN) };
        let known = known.entry(uid.clone()).or_insert(Known { changed, is_foreign: false });
        let is_due = admitted.is_none() || now.since_s(known.changed) >= DWELL_S;
        if !known.is_foreign && is_due {
            changes.push(Change { workload: workload.clone(), level });
        }
    }
    changes.sort_by_key(|change| (Reverse(step(change)), change.workload.uid.clone()));
    changes
}

fn step(change: &Change) -> i64 {
    let is = change.workload.boost.as_ref().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    i64::from(change.level.unwrap_or(0)).saturating_sub(is).saturating_abs()
}

/// Of a gang one pod saves for all, or all do: the latest counts.
fn saved_by_pods(view: &View) -> BTreeMap<(&str, &str), UnixSeconds> {
    let mut saved = BTreeMap::new();
    for pod in view.pods().values() {
        if let Some((workload, at)) = pod.workload.as_deref().zip(pod.saved) {
            let last = saved.entry((&*pod.namespace, workload)).or_insert(at);
            *last = at.max(*last);
        }
    }
    saved
}

/// Since the last checkpoint, or since it was admitted. A job that says nothing of checkpoints looks as if it had all to lose, and
/// one that lies gains 4 points at most; a checkpoint in the future counts as now.
fn age_s(admitted: UnixSeconds, saved: Option<UnixSeconds>, now: UnixSeconds) -> u64 {
    let from = saved.map_or(admitted, |saved| saved.max(admitted));
    u64::try_from(now.since_s(from)).unwrap_or(0)
}
