//! The end of a pod, as its status says it.

use super::{Life, condition, life};
use crate::cluster::slim::{Pod, unix_s};
use crate::names::TERMINATION_TARGET;
use vocab::UnixSeconds;

/// When a pod ended; `None` where it has not, or its status does not say when.
pub(super) fn of(pod: &Pod) -> Option<UnixSeconds> {
    if life(pod) != Life::Ended {
        return None;
    }
    let terminated = pod.status.container_statuses.iter().filter_map(|one| one.state.terminated.as_ref());
    let finished = terminated.filter_map(|one| one.finished_at.as_ref());
    // A container of a lost node has no end: the condition says when its pod had one.
    let disrupted = ["DisruptionTarget", TERMINATION_TARGET].into_iter().filter_map(|kind| condition(pod, kind));
    let unready = pod.status.conditions.iter().filter(|one| one.kind == "Ready" && one.status == "False");
    let changed = disrupted.chain(unready).filter_map(|one| one.last_transition_time.as_ref());
    finished.chain(changed).map(|time| UnixSeconds::new(unix_s(time))).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pod_ended_with_its_last_container_or_when_it_was_disrupted() {
        let at = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z");
        let of = |phase: &str, containers: &[Value], conditions: &[Value]| {
            let status = json!({ "phase": phase, "containerStatuses": containers, "conditions": conditions });
            let pod: Pod = serde_json::from_value(json!({ "spec": { "nodeName": "n1" }, "status": status })).unwrap();
            super::of(&pod).map(|end| end.to_string())
        };
        let container = |minute| json!({ "state": { "terminated": { "exitCode": 0, "finishedAt": at(minute) } } });
        let runs = || json!({ "state": { "running": { "startedAt": at(0) } } });
        let condition = |kind: &str, status: &str, minute| json!({ "type": kind, "status": status, "lastTransitionTime": at(minute) });
        let scheduled = || condition("PodScheduled", "True", 0);
        assert_eq!(of("Succeeded", &[container(3), container(5)], &[scheduled()]), Some(at(5)));
        assert_eq!(of("Running", &[container(3), runs()], &[scheduled()]), None);
        let lost = condition("DisruptionTarget", "True", 7);
        assert_eq!(of("Failed", &[container(3), runs()], &[scheduled(), lost]), Some(at(7)));
        assert_eq!(of("Failed", &[], &[scheduled(), condition("Ready", "False", 9)]), Some(at(9)));
        assert_eq!(of("Failed", &[], &[scheduled()]), None);
    }
}
