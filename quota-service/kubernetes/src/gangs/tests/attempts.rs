//! Pods that are made again, objects that go first, and new starts: one promise for each attempt.

use super::*;
use serde_json::json;

/// The Workload of a job, admitted then, with these conditions beside.
fn workload(owner: &str, admitted: Option<i64>, others: &Value) -> Value {
    let mut conditions = others.as_array().cloned().unwrap_or_default();
    if let Some(seconds) = admitted {
        conditions.push(json!({ "type": "Admitted", "status": "True", "lastTransitionTime": at(seconds).to_string() }));
    }
    json!({
        "metadata": { "name": "w", "namespace": "team-a", "uid": "w", "ownerReferences": [{ "kind": "X", "name": owner, "uid": owner, "apiVersion": "x" }] },
        "spec": { "podSets": [] }, "status": { "conditions": conditions },
    })
}

fn job_set(restarts: u32) -> Value {
    json!({ "metadata": { "name": "set", "namespace": "team-a", "uid": "set" }, "spec": { "replicatedJobs": [] }, "status": { "restarts": restarts } })
}

/// A pod of 2 GPUs of the job, or of the JobSet, on its node since then.
fn pod(name: &str, of: &str, bound: i64) -> Value {
    let mut pod = spot_pod(name, bound, bound);
    pod["spec"].as_object_mut().unwrap().remove("schedulingGroup");
    if of == "set" {
        pod["metadata"]["labels"] = json!({ "jobset.sigs.k8s.io/jobset-name": "set" });
    } else {
        pod["metadata"]["ownerReferences"] =
            json!([{ "kind": "Job", "name": of, "uid": of, "apiVersion": "batch/v1", "controller": true }]);
    }
    pod
}

fn fail(view: &mut View, mut pod: Value, seconds: i64) {
    pod["status"]["phase"] = "Failed".into();
    tell(view, "Pod", &pod, at(seconds));
}

fn delete(view: &mut View, mut pod: Value, seconds: i64) {
    pod["metadata"]["deletionTimestamp"] = at(seconds).to_string().into();
    tell(view, "Pod", &pod, at(seconds));
    let uid = Uid::of(pod["metadata"]["uid"].as_str().unwrap());
    view.see_no_pod(uid, &serde_json::from_value(pod).unwrap(), at(seconds));
}

/// Kind, GPUs, begin and end in seconds of each outcome.
fn outcomes(view: &mut View) -> Vec<(OutcomeKind, u64, i64, i64)> {
    let of = |one: vocab::Outcome| {
        let began = one.began_at.unwrap().since_s(at(0));
        (one.kind, one.gpus.unwrap().milli() / 1_000, began, one.ended_at.since_s(at(0)))
    };
    view.take_outcomes().into_iter().map(of).collect()
}

#[test]
fn a_pod_that_is_made_again_has_the_promise_of_the_one_before_and_its_eviction_breaks_it() {
    for of in ["job", "set"] {
        let mut view = view();
        if of == "set" {
            tell(&mut view, "JobSet", &job_set(0), at(0));
        }
        tell(&mut view, "KueueWorkload", &workload(of, Some(0), &json!([])), at(0));
        tell(&mut view, "Pod", &pod("a", of, 10), at(10));
        fail(&mut view, pod("a", of, 10), 100);
        assert_eq!(outcomes(&mut view), [], "{of}: its controller makes it again");
        tell(&mut view, "Pod", &pod("b", of, 200), at(200));
        assert_eq!(view.pod(&Uid::of("b")).unwrap().since(), at(10), "{of}: no new promise");
        let evicted = json!([{ "type": "Evicted", "status": "True", "reason": "Preempted" }]);
        tell(&mut view, "KueueWorkload", &workload(of, None, &evicted), at(300));
        delete(&mut view, pod("b", of, 200), 300);
        assert_eq!(outcomes(&mut view), [(OutcomeKind::Broken, 2, 10, 300)], "{of}");
    }
}

#[test]
fn gpus_of_a_run_are_those_that_it_had_at_once() {
    let mut view = view();
    tell(&mut view, "KueueWorkload", &workload("job", Some(0), &json!([])), at(0));
    for name in ["a", "b"] {
        tell(&mut view, "Pod", &pod(name, "job", 10), at(10));
    }
    for (gone, next, seconds) in [("a", "c", 100), ("b", "d", 200)] {
        fail(&mut view, pod(gone, "job", 10), seconds);
        tell(&mut view, "Pod", &pod(next, "job", seconds), at(seconds));
    }
    // A pod that is going has another in its place before it has ended.
    let mut going = pod("c", "job", 100);
    going["metadata"]["deletionTimestamp"] = at(300).to_string().into();
    tell(&mut view, "Pod", &going, at(300));
    tell(&mut view, "Pod", &pod("e", "job", 310), at(310));
    delete(&mut view, pod("c", "job", 100), 320);
    view.pass_to(at(3_700));
    let found = outcomes(&mut view);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1, found[0].2), (4, 10), "2 pods of 2 GPUs, and not 5");
}

#[test]
fn a_run_without_pods_ends_with_its_workload_or_with_its_promise() {
    let ended = |end: &dyn Fn(&mut View)| {
        let mut view = view();
        tell(&mut view, "KueueWorkload", &workload("job", Some(0), &json!([])), at(0));
        tell(&mut view, "Pod", &pod("a", "job", 10), at(10));
        fail(&mut view, pod("a", "job", 10), 100);
        assert_eq!(outcomes(&mut view), []);
        end(&mut view);
        outcomes(&mut view)
    };
    let kept = [(OutcomeKind::Kept, 2, 10, 100)];
    let finished = json!([{ "type": "Finished", "status": "True", "reason": "Failed" }]);
    assert_eq!(ended(&|view| tell(view, "KueueWorkload", &workload("job", Some(0), &finished), at(110))), kept);
    assert_eq!(ended(&|view| view.see_gangs(GangKind::KueueWorkload, "team-a", "w", Vec::new(), at(110))), kept);
    assert_eq!(ended(&|view| tell(view, "KueueWorkload", &workload("job", Some(200), &json!([])), at(200))), kept);
    assert_eq!(ended(&|view| view.pass_to(at(3_609))), []);
    assert_eq!(ended(&|view| view.pass_to(at(3_610))), kept);
}

#[test]
fn a_pod_that_is_made_again_after_the_promise_is_promised_nothing() {
    let mut view = view();
    tell(&mut view, "KueueWorkload", &workload("job", Some(0), &json!([])), at(0));
    tell(&mut view, "Pod", &pod("a", "job", 10), at(10));
    view.pass_to(at(3_700));
    assert_eq!(outcomes(&mut view), [(OutcomeKind::Kept, 2, 10, 3_610)]);
    fail(&mut view, pod("a", "job", 10), 3_800);
    assert_eq!(outcomes(&mut view), []);
    tell(&mut view, "Pod", &pod("b", "job", 3_900), at(3_900));
    let pool = &view.pools()[&GpuModel::parse("A100").unwrap()];
    assert_eq!(pool.promised(vocab::HorizonHours::new(1).unwrap()).milli(), 0);
    delete(&mut view, pod("b", "job", 3_900), 4_000);
    assert_eq!(outcomes(&mut view), []);
}

#[test]
fn pods_of_a_job_set_are_one_run_whichever_of_its_objects_goes_first() {
    for first in [GangKind::JobSet, GangKind::KueueWorkload] {
        let mut view = view();
        tell(&mut view, "JobSet", &job_set(0), at(0));
        tell(&mut view, "KueueWorkload", &workload("set", Some(0), &json!([])), at(0));
        let pods = ["a", "b", "c"].map(|name| {
            let mut pod = pod(name, "set", 10);
            pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = "w".into();
            pod
        });
        for pod in &pods {
            tell(&mut view, "Pod", pod, at(10));
        }
        let name = if first == GangKind::JobSet { "set" } else { "w" };
        view.see_gangs(first, "team-a", name, Vec::new(), at(600));
        // Two are seen to go before the end of the one of which nothing more was seen.
        let going = |pod: &Value| {
            let mut pod = pod.clone();
            pod["metadata"]["deletionTimestamp"] = at(600).to_string().into();
            pod
        };
        for pod in &pods[1..] {
            tell(&mut view, "Pod", &going(pod), at(600));
        }
        for (seconds, pod) in (600..).zip(&pods) {
            let uid = Uid::of(pod["metadata"]["uid"].as_str().unwrap());
            view.see_no_pod(uid, &serde_json::from_value(going(pod)).unwrap(), at(seconds));
        }
        view.pass_to(at(3_700));
        assert_eq!(outcomes(&mut view), [(OutcomeKind::UserDeleted, 6, 10, 600)], "{first:?}");
    }
}

#[test]
fn a_job_set_that_kueue_admits_again_has_a_new_promise_and_one_that_restarts_has_not() {
    let mut view = view();
    let mut ids = Vec::new();
    tell(&mut view, "JobSet", &job_set(0), at(0));
    tell(&mut view, "KueueWorkload", &workload("set", Some(0), &json!([])), at(0));
    tell(&mut view, "Pod", &pod("a", "set", 10), at(10));
    tell(&mut view, "JobSet", &job_set(1), at(100));
    delete(&mut view, pod("a", "set", 10), 100);
    tell(&mut view, "Pod", &pod("b", "set", 110), at(110));
    assert_eq!(outcomes(&mut view), [], "it goes on");
    for (admitted, name, bound, next) in [(400, "b", 110, "c"), (800, "c", 410, "d")] {
        let evicted = json!([{ "type": "Evicted", "status": "True", "reason": "Preempted" }]);
        tell(&mut view, "KueueWorkload", &workload("set", None, &evicted), at(admitted - 100));
        delete(&mut view, pod(name, "set", bound), admitted - 100);
        let found = view.take_outcomes();
        assert_eq!(found.iter().map(|one| one.kind).collect::<Vec<_>>(), [OutcomeKind::Broken]);
        ids.push(found[0].event_id.clone());
        tell(&mut view, "KueueWorkload", &workload("set", Some(admitted), &json!([])), at(admitted));
        tell(&mut view, "Pod", &pod(next, "set", admitted + 10), at(admitted + 10));
        assert_eq!(view.pod(&Uid::of(next)).unwrap().since(), at(admitted + 10));
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_run_that_began_before_its_workload_was_seen_is_the_same_as_one_that_began_after() {
    let run = |workload_first: bool| {
        let mut view = view();
        tell(&mut view, "JobSet", &job_set(0), at(0));
        let admitted = workload("set", Some(0), &json!([]));
        if workload_first {
            tell(&mut view, "KueueWorkload", &admitted, at(0));
        }
        tell(&mut view, "Pod", &pod("a", "set", 10), at(10));
        tell(&mut view, "KueueWorkload", &admitted, at(11));
        tell(&mut view, "Pod", &pod("b", "set", 12), at(12));
        view.pass_to(at(3_700));
        let found = view.take_outcomes();
        assert_eq!(found.len(), 1);
        (found[0].event_id.clone(), found[0].gpus)
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_pod_that_began_before_the_admission_is_of_an_earlier_run() {
    let mut view = view();
    // The connector starts while pods of the attempt before still end.
    tell(&mut view, "KueueWorkload", &workload("job", Some(500), &json!([])), at(500));
    tell(&mut view, "Pod", &pod("old", "job", 10), at(505));
    tell(&mut view, "Pod", &pod("new", "job", 510), at(510));
    assert_eq!(view.pod(&Uid::of("new")).unwrap().since(), at(510));
}

#[test]
fn of_the_evictions_by_kueue_only_a_preemption_breaks_a_promise() {
    let kinds = [
        ("Preempted", OutcomeKind::Broken),
        ("PodsReadyTimeout", OutcomeKind::Drain),
        ("AdmissionCheck", OutcomeKind::Drain),
        ("ClusterQueueStopped", OutcomeKind::Drain),
        ("LocalQueueStopped", OutcomeKind::Drain),
        ("FlavorMigration", OutcomeKind::Drain),
        ("DeactivatedDueToRequeuingLimitExceeded", OutcomeKind::Drain),
        ("DeactivatedDueToAdmissionCheck", OutcomeKind::Drain),
        ("OfALaterKueue", OutcomeKind::Drain),
        ("NodeFailures", OutcomeKind::NodeFailure),
        ("Deactivated", OutcomeKind::UserDeleted),
        ("DeactivatedDueToMaximumExecutionTimeExceeded", OutcomeKind::UserDeleted),
    ];
    for (reason, kind) in kinds {
        let mut view = view();
        tell(&mut view, "KueueWorkload", &workload("job", Some(0), &json!([])), at(0));
        tell(&mut view, "Pod", &pod("a", "job", 10), at(10));
        // A pod that Kueue queues itself says so by a condition.
        let mut queued = spot_pod("queued", 10, 10);
        queued["spec"].as_object_mut().unwrap().remove("schedulingGroup");
        tell(&mut view, "Pod", &queued, at(10));
        let evicted = json!([{ "type": "Evicted", "status": "True", "reason": reason }]);
        tell(&mut view, "KueueWorkload", &workload("job", None, &evicted), at(300));
        delete(&mut view, pod("a", "job", 10), 310);
        queued["status"]["conditions"].as_array_mut().unwrap().push(
            json!({ "type": "TerminationTarget", "status": "True", "reason": format!("WorkloadEvictedDueTo{reason}") }),
        );
        delete(&mut view, queued, 310);
        let found: Vec<OutcomeKind> = outcomes(&mut view).into_iter().map(|one| one.0).collect();
        assert_eq!(found, [kind, kind], "{reason}");
    }
}
