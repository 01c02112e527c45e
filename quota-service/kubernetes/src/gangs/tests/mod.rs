//! Gangs of several kinds, counted by the view and by a reference that shares no code with it.

mod attempts;
mod world;

use super::{GangKind, GangObject, Stated};
use crate::config::Config;
use crate::view::View;
use crate::view::facts::{Reading, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use placement::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vocab::{ClusterName, GpuModel, OutcomeKind, UnixSeconds};
use world::{Dice, Job, START, Shape, Slot};

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(START + seconds)
}

fn view() -> View {
    let config = Config { gangs: true, ..Config::default() };
    let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS);
    for model in ["A100", "H800"] {
        let node = json!({
            "metadata": { "name": format!("node-{model}"), "labels": { "nvidia.com/gpu.product": model } },
            "status": { "allocatable": { "nvidia.com/gpu": "64" }, "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        view.see_node(&serde_json::from_value(node).unwrap(), at(0)).unwrap();
    }
    view
}

fn read<T: serde::de::DeserializeOwned + Default>(part: &Value) -> T {
    if part.is_null() { T::default() } else { serde_json::from_value(part.clone()).unwrap() }
}

fn tell(view: &mut View, kind: &str, object: &Value, now: UnixSeconds) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (of, read) = match kind {
        "Pod" => {
            view.see_pod(&read(object), now).unwrap();
            return;
        }
        "PodGroup" => (GangKind::PodGroup, GangObject::PodGroup(read(spec))),
        "Workload" => (GangKind::WorkloadGroup, GangObject::Workload(read(spec))),
        "JobSet" => (GangKind::JobSet, GangObject::JobSet(Box::new(read(spec)), read(status))),
        "LeaderWorkerSet" => (GangKind::LeaderWorkerGroup, GangObject::LeaderWorkerSet(Box::new(read(spec)))),
        _ => (GangKind::KueueWorkload, GangObject::KueueWorkload(Box::new(read(spec)), Box::new(read(status)))),
    };
    let meta: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
    let gangs = Stated::read(&meta, &read, view.reading());
    view.see_gangs(of, "team-a", meta.name.as_deref().unwrap(), gangs, now);
    view.settle_gangs(now);
}

/// Objects and pods reach the view in any order.
fn report(view: &mut View, jobs: &[Job], dice: &mut Dice) {
    let mut all: Vec<(&str, Value)> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        all.extend(job.objects(number));
        all.extend(job.pods().into_iter().filter_map(|pod| Some(("Pod", job.pod(number, pod)?))));
    }
    for last in (1..all.len()).rev() {
        all.swap(last, dice.below(last as u64 + 1) as usize);
    }
    for (kind, object) in &all {
        tell(view, kind, object, at(100));
    }
}

/// GPUs of HP by model: of pods that are there, and of those that a gang with a size still misses.
fn reference(jobs: &[Job]) -> BTreeMap<&'static str, (u64, u64)> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.is_hp) {
        let sum = found.entry(job.model).or_default();
        let is_group = matches!(job.shape, Shape::PodGroup | Shape::WorkloadGroup);
        let is_empty = job.pods().is_empty();
        for set in &job.sets {
            for slot in &set.pods {
                match slot {
                    Slot::Waits | Slot::Runs => sum.0 += set.gpus,
                    Slot::Ended => {}
                    // A group states a number of pods, and not their GPUs: those of its pods say that.
                    Slot::Missing if job.shape == Shape::Loose || is_group && is_empty => {}
                    Slot::Missing if job.is_over && !is_group && job.shape != Shape::LeaderWorkerSet => {}
                    Slot::Missing => sum.1 += set.gpus,
                }
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// Whichever kinds state a gang, and in whichever order they are reported: its missing pods are demand, once.
    #[test]
    fn missing_pods_of_gangs_are_demand_as_an_independent_computation_says(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let jobs: Vec<Job> = (0..=dice.below(4)).map(|_| Job::drawn(&mut dice)).collect();
        let mut view = view();
        report(&mut view, &jobs, &mut dice);
        let expected = reference(&jobs);
        for model in ["A100", "H800"] {
            let (there, missing) = expected.get(model).copied().unwrap_or_default();
            let of = GpuModel::parse(model).unwrap();
            let demand: u64 = view.demand(&of).values().map(|gpus| gpus.milli()).sum();
            prop_assert_eq!((demand, view.missing_gpus(&of).milli()), ((there + missing) * 1_000, missing * 1_000), "{} {:?}", model, jobs);
        }
    }

    /// One run of a gang is one promise: the end of its pods is reported once, with the GPUs of all.
    #[test]
    fn a_run_of_a_gang_has_one_outcome_with_all_its_gpus(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let mut jobs: Vec<Job> = (0..=dice.below(4)).map(|_| Job::drawn(&mut dice)).collect();
        for job in &mut jobs {
            job.is_hp = false;
            job.is_over = false;
            job.sets.iter_mut().for_each(|set| set.pods.iter_mut().for_each(|slot| *slot = Slot::Runs));
            if let Shape::JobSet { has_groups, .. } = &mut job.shape {
                // Each group would be a gang of its own.
                *has_groups = *has_groups && job.sets.len() == 1;
            }
        }
        let mut view = view();
        report(&mut view, &jobs, &mut dice);
        let mut expected = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let end = end(&mut view, number, job, &mut dice);
            let of = |set: &world::Set| vec![set.gpus; set.pods.len()];
            let pods: Vec<u64> = job.sets.iter().flat_map(of).filter(|gpus| *gpus > 0).collect();
            if job.shape == Shape::Loose {
                expected.extend(end.into_iter().zip(pods));
            } else {
                expected.push((end.last().copied().unwrap(), pods.iter().sum::<u64>()));
            }
        }
        let mut found = view.take_outcomes();
        view.pass_to(at(3_600 + 60));
        found.extend(view.take_outcomes());
        let mut found: Vec<(OutcomeKind, u64)> = found.into_iter().map(|one| (one.kind, one.gpus.unwrap().milli() / 1_000)).collect();
        let order = |one: &(OutcomeKind, u64)| (format!("{:?}", one.0), one.1);
        found.sort_by_key(order);
        expected.sort_by_key(order);
        prop_assert_eq!(found, expected, "{:?}", jobs);
    }
}

/// Lets a job come to one of four ends. Answers the outcome of each pod with GPUs, and last the one of all.
fn end(view: &mut View, number: usize, job: &Job, dice: &mut Dice) -> Vec<OutcomeKind> {
    let how = dice.below(4);
    let pods: Vec<(usize, usize)> = job.pods().into_iter().filter(|(set, _)| job.sets[*set].gpus > 0).collect();
    let mut kinds = vec![OutcomeKind::Kept; pods.len()];
    let victim = dice.below(pods.len() as u64) as usize;
    for (at_pod, pod) in pods.iter().enumerate().filter(|_| how > 0) {
        let mut last = job.pod(number, *pod).unwrap();
        last["metadata"]["deletionTimestamp"] = at(600).to_string().into();
        kinds[at_pod] = OutcomeKind::UserDeleted;
        let reason = ["", "PreemptionByScheduler", "DeletionByTaintManager"][how as usize - 1];
        if at_pod == victim && how > 1 {
            last["status"]["conditions"] = json!([{ "type": "DisruptionTarget", "status": "True", "reason": reason }]);
            kinds[at_pod] = if how == 2 { OutcomeKind::Broken } else { OutcomeKind::NodeFailure };
        }
        let uid = Uid::of(last["metadata"]["uid"].as_str().unwrap());
        view.see_no_pod(uid, &serde_json::from_value(last).unwrap(), at(600));
    }
    let rank = |kind: &OutcomeKind| match kind {
        OutcomeKind::Kept => 0,
        OutcomeKind::UserDeleted => 1,
        _ => 2,
    };
    let worst = kinds.iter().copied().max_by_key(rank).unwrap();
    if job.shape == Shape::Loose {
        return kinds;
    }
    kinds.push(worst);
    kinds
}

fn spot_pod(name: &str, created: i64, bound: i64) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "team-a", "uid": name, "creationTimestamp": at(created).to_string(),
            "annotations": { "headroom.dev/guarantee-hours": "1" } },
        "spec": { "nodeName": "node-A100", "priorityClassName": "spot", "schedulingGroup": { "podGroupName": "pg" },
            "containers": [{ "name": "main", "resources": { "requests": { "nvidia.com/gpu": "2" } } }] },
        "status": { "phase": "Running",
            "conditions": [{ "type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound).to_string() }] },
    })
}

fn group() -> Value {
    json!({ "metadata": { "name": "pg", "namespace": "team-a", "uid": "pg" }, "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } })
}

#[test]
fn a_pod_that_takes_the_place_of_another_has_the_promise_of_its_gang_and_no_new_one() {
    let mut view = view();
    tell(&mut view, "PodGroup", &group(), at(0));
    tell(&mut view, "Pod", &spot_pod("a", 0, 0), at(0));
    tell(&mut view, "Pod", &spot_pod("b", 0, 30), at(30));
    let promised_until: Vec<i64> = view.pods().values().map(|pod| pod.since().plus_s(3_600).since_s(at(0))).collect();
    assert_eq!(promised_until, [3_600, 3_600], "from when the gang's first pod got its node");
    tell(&mut view, "Pod", &spot_pod("c", 1_800, 1_800), at(1_800));
    view.pass_to(at(3_601));
    let outcomes = view.take_outcomes();
    assert_eq!(
        outcomes.iter().map(|one| (one.kind, one.gpus.unwrap().milli())).collect::<Vec<_>>(),
        [(OutcomeKind::Kept, 6_000)]
    );
    assert_eq!(outcomes[0].began_at, Some(at(0)));
    assert!(outcomes[0].event_id.as_str().starts_with("gang-"), "{}", outcomes[0].event_id);
}

#[test]
fn pods_of_a_job_that_are_deleted_while_kueue_evicts_its_workload_were_evicted_by_it() {
    let ended = |conditions: Value, shape: Shape| {
        let pods = vec![Slot::Runs];
        let job = Job {
            shape,
            is_hp: false,
            is_over: false,
            sets: vec![world::Set { gpus: 2, pods }],
            model: "A100",
            names_workload: false,
        };
        let mut view = view();
        for (kind, mut object) in job.objects(0) {
            if kind == "KueueWorkload" {
                object["status"]["conditions"] = conditions.clone();
            }
            tell(&mut view, kind, &object, at(0));
        }
        let mut pod = job.pod(0, (0, 0)).unwrap();
        tell(&mut view, "Pod", &pod, at(0));
        pod["metadata"]["deletionTimestamp"] = at(600).to_string().into();
        let uid = Uid::of(pod["metadata"]["uid"].as_str().unwrap());
        view.see_no_pod(uid, &serde_json::from_value(pod).unwrap(), at(600));
        view.take_outcomes().into_iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    let evicted = |status: &str, reason: &str| json!([{ "type": "Evicted", "status": status, "reason": reason }]);
    for shape in OF_KUEUE {
        assert_eq!(ended(evicted("True", "Preempted"), shape), [OutcomeKind::Broken], "{shape:?}");
        assert_eq!(ended(evicted("False", "QuotaReserved"), shape), [OutcomeKind::UserDeleted], "{shape:?}");
        assert_eq!(ended(evicted("True", "Deactivated"), shape), [OutcomeKind::UserDeleted], "{shape:?}");
    }
}

/// Outcomes of a pod that got its node at second 0 and went at second 600, where its Workload stated these one after another.
fn ended_after(conditions: &[Value], shape: Shape) -> Vec<OutcomeKind> {
    let sets = vec![world::Set { gpus: 2, pods: vec![Slot::Runs] }];
    let job = Job { shape, is_hp: false, is_over: false, sets, model: "A100", names_workload: false };
    let mut view = view();
    let mut pod = job.pod(0, (0, 0)).unwrap();
    for (kind, object) in job.objects(0) {
        tell(&mut view, kind, &object, at(0));
    }
    tell(&mut view, "Pod", &pod, at(0));
    for condition in conditions {
        for (kind, mut object) in job.objects(0) {
            if kind == "KueueWorkload" {
                object["status"]["conditions"] = condition.clone();
                tell(&mut view, kind, &object, at(580));
            }
        }
    }
    pod["metadata"]["deletionTimestamp"] = at(571).to_string().into();
    let uid = Uid::of(pod["metadata"]["uid"].as_str().unwrap());
    view.see_no_pod(uid, &serde_json::from_value(pod).unwrap(), at(600));
    view.take_outcomes().into_iter().map(|one| one.kind).collect()
}

const OF_KUEUE: [Shape; 2] = [Shape::Kueue, Shape::JobSet { has_kueue: true, has_groups: false }];

#[test]
fn pods_that_end_after_their_workload_got_quota_again_were_evicted_by_kueue() {
    let evicted = |reason: &str| json!([{ "type": "Evicted", "status": "True", "reason": reason }]);
    let one_over = |kind: &str, seconds: i64| {
        let since = at(seconds).to_string();
        json!({ "type": kind, "status": "False", "reason": "QuotaReserved", "lastTransitionTime": since })
    };
    let over = |seconds: i64| json!([one_over("Evicted", seconds)]);
    for shape in OF_KUEUE {
        let preempted = [evicted("Preempted"), over(575), over(575)];
        assert_eq!(ended_after(&preempted, shape), [OutcomeKind::Broken], "{shape:?}");
        let failed = [evicted("NodeFailures"), over(575)];
        assert_eq!(ended_after(&failed, shape), [OutcomeKind::NodeFailure], "{shape:?}");
        // Only the end was seen, with or without that of Kueue's condition of a preemption.
        let preempted = |seconds: i64| json!([one_over("Evicted", 575), one_over("Preempted", seconds)]);
        assert_eq!(ended_after(&[over(575)], shape), [OutcomeKind::Drain], "{shape:?}");
        assert_eq!(ended_after(&[preempted(574)], shape), [OutcomeKind::Broken], "{shape:?}");
        assert_eq!(ended_after(&[preempted(300)], shape), [OutcomeKind::Drain], "an earlier one: {shape:?}");
        let before = [evicted("Preempted"), over(0)];
        assert_eq!(ended_after(&before, shape), [OutcomeKind::UserDeleted], "it began after that: {shape:?}");
    }
}

#[test]
fn a_gang_that_runs_again_has_a_new_promise_under_another_id() {
    let mut view = view();
    tell(&mut view, "PodGroup", &group(), at(0));
    let mut ids = Vec::new();
    for (name, from) in [("a", 0), ("b", 1_000)] {
        let pod = spot_pod(name, from, from);
        tell(&mut view, "Pod", &pod, at(from));
        view.see_no_pod(Uid::of(name), &serde_json::from_value(pod).unwrap(), at(from + 100));
        let outcomes = view.take_outcomes();
        assert_eq!(outcomes.len(), 1);
        ids.push(outcomes[0].event_id.clone());
        // A report that could not be sent comes back as it is.
        view.put_back(Vec::new(), outcomes);
        assert_eq!(view.take_outcomes()[0].event_id, ids[ids.len() - 1]);
    }
    assert_ne!(ids[0], ids[1]);
}
