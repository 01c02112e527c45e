//! A cluster, change by change.

pub mod fixture;

use super::facts::{Life, NodeFacts, PodFacts, Reading, Uid};
use super::*;
use crate::config::Config;
use proptest::prelude::*;
use vocab::{HorizonHours, HourStart, MilliGpus, OutcomeKind};

const START: i64 = 1_700_000_000 - 1_700_000_000 % 3_600;

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(START + seconds)
}

fn view() -> View {
    View::new(ClusterName::parse("earth").unwrap(), Reading::of(&Config::default()), Policy::GFS)
}

fn model(name: &str) -> GpuModel {
    GpuModel::parse(name).unwrap()
}

fn node(name: &str, of: &str, gpus: u32) -> NodeFacts {
    NodeFacts {
        node: NodeId::parse(name).unwrap(),
        gpu_model: Some(model(of)),
        gpus,
        is_open: true,
        is_ready: true,
        is_emptied: false,
        topology: None,
    }
}

fn pod(number: u128, gpus: u32, class: TaskClass, on: Option<&str>) -> PodFacts {
    PodFacts {
        name: format!("pod-{number}"),
        created: at(0),
        bound: on.map(|_| at(0)),
        ..fixture::pod(Uid(number), gpus, class, on)
    }
}

fn promised(number: u128, gpus: u32, on: &str, hours: u64) -> PodFacts {
    PodFacts { guarantee: HorizonHours::new(hours).ok(), ..pod(number, gpus, TaskClass::Spot, Some(on)) }
}

fn demand_gpus(view: &View, of: &str) -> u64 {
    view.demand(&model(of)).values().map(|gpus| gpus.milli() / 1_000).sum()
}

fn outcomes(view: &mut View) -> Vec<(OutcomeKind, i64)> {
    view.take_outcomes().into_iter().map(|one| (one.kind, one.ended_at.since_s(at(0)))).collect()
}

#[test]
fn pods_that_come_before_their_node_count_once_it_is_there() {
    let mut view = view();
    view.set_pod(pod(1, 4, TaskClass::Hp, Some("n1")), at(1));
    assert_eq!(view.without_model.len(), 1);
    view.set_node(node("n1", "A100", 8), at(2));
    view.set_node(node("n2", "A100", 8), at(2));
    assert!(view.without_model.is_empty());
    assert_eq!(demand_gpus(&view, "A100"), 4);
    let state = view.state(&model("A100"), 0, at(3)).unwrap();
    assert_eq!((state.capacity, state.idle), (MilliGpus::from_gpus(16), MilliGpus::from_gpus(12)));
}

#[test]
fn a_start_that_is_reported_before_an_end_waits_for_room_and_then_counts() {
    let mut view = view();
    view.set_node(node("n1", "A100", 8), at(0));
    view.set_pod(pod(1, 8, TaskClass::Spot, Some("n1")), at(1));
    view.set_pod(pod(2, 8, TaskClass::Hp, Some("n1")), at(2));
    let used = |view: &View| view.pools()[&model("A100")].fleet.used_milli();
    assert_eq!(used(&view), 8_000);
    view.remove_pod(Uid(1), None, at(3));
    assert_eq!(used(&view), 8_000);
    view.remove_pod(Uid(2), None, at(4));
    assert_eq!(used(&view), 0);
}

#[test]
fn promises_end_once_each_and_say_how() {
    let mut view = view();
    view.set_node(node("n1", "A100", 8), at(0));
    for number in 1..=8 {
        view.set_pod(promised(number, 1, "n1", 1), at(0));
    }
    let gone = |number: u128, reason: &str| PodFacts {
        disruption: (!reason.is_empty()).then(|| reason.to_owned()),
        is_going: true,
        ..promised(number, 1, "n1", 1)
    };
    view.remove_pod(Uid(1), Some(&gone(1, "PreemptionByScheduler")), at(10));
    view.remove_pod(Uid(2), Some(&gone(2, "DeletionByTaintManager")), at(11));
    view.remove_pod(Uid(3), Some(&gone(3, "EvictionByEvictionAPI")), at(12));
    view.remove_pod(Uid(4), Some(&gone(4, "")), at(13));
    view.set_pod(PodFacts { life: Life::Ended, ..promised(5, 1, "n1", 1) }, at(14));
    view.remove_pod(Uid(7), Some(&gone(7, "DeletionByDeviceTaintManager")), at(15));
    view.remove_pod(Uid(8), Some(&gone(8, "WorkloadEvictedDueToPreempted")), at(16));
    let expected = [
        (OutcomeKind::Broken, 10),
        (OutcomeKind::NodeFailure, 11),
        (OutcomeKind::Drain, 12),
        (OutcomeKind::UserDeleted, 13),
        (OutcomeKind::Kept, 14),
        (OutcomeKind::NodeFailure, 15),
        (OutcomeKind::Broken, 16),
    ];
    assert_eq!(outcomes(&mut view), expected);
    view.pass_to(at(3_600));
    assert_eq!(outcomes(&mut view), [(OutcomeKind::Kept, 3_600)]);
    view.remove_pod(Uid(6), Some(&gone(6, "PreemptionByScheduler")), at(3_700));
    assert_eq!(outcomes(&mut view), [], "the promise was over");
}

#[test]
fn a_promise_that_is_over_is_kept_though_its_pod_changes_or_ends_before_the_next_round() {
    let mut view = view();
    view.set_node(node("n1", "A100", 8), at(0));
    view.set_pod(promised(1, 1, "n1", 1), at(0));
    view.set_pod(promised(2, 1, "n1", 1), at(0));
    view.set_pod(PodFacts { saved: Some(at(3_610)), ..promised(1, 1, "n1", 1) }, at(3_610));
    view.remove_pod(Uid(2), None, at(3_620));
    view.pass_to(at(3_700));
    assert_eq!(outcomes(&mut view), [(OutcomeKind::Kept, 3_600), (OutcomeKind::Kept, 3_600)]);
}

#[test]
fn pods_on_a_node_that_says_its_model_late_count_then() {
    let mut view = view();
    view.set_node(node("a1", "A100", 8), at(0));
    view.set_node(node("h1", "H800", 8), at(0));
    view.set_node(NodeFacts { gpu_model: None, ..node("late", "A100", 8) }, at(1));
    view.set_pod(pod(1, 4, TaskClass::Hp, Some("late")), at(2));
    assert_eq!(view.without_model.len(), 1);
    view.set_node(node("late", "A100", 8), at(3));
    assert_eq!(demand_gpus(&view, "A100"), 4);
    assert_eq!(view.state(&model("A100"), 0, at(4)).unwrap().idle, MilliGpus::from_gpus(12));
}

#[test]
fn an_hour_counts_if_it_was_watched_whole_and_peaks_are_what_was_together() {
    let mut view = view();
    view.set_node(node("n1", "A100", 16), at(-600));
    view.set_pod(pod(1, 4, TaskClass::Hp, Some("n1")), at(-600));
    view.begin(at(-500));
    view.set_pod(pod(2, 2, TaskClass::Hp, None), at(100));
    view.remove_pod(Uid(1), None, at(200));
    view.set_pod(pod(3, 3, TaskClass::Hp, Some("n1")), at(300));
    // One changes in place: it was never away.
    view.set_pod(PodFacts { priority: 9, ..pod(3, 3, TaskClass::Hp, Some("n1")) }, at(400));
    view.pass_to(at(3_600));
    let rows = |view: &mut View| -> Vec<(String, i64, [u64; 2])> {
        let rows = view.take_rows().into_iter();
        rows.map(|row| {
            let name = row.series.organization.as_str().to_owned();
            let gpus = [row.demand, row.at_end.unwrap()].map(|gpus| gpus.milli() / 1_000);
            (name, row.hour.hours_since(HourStart::from_unix_s(START).unwrap()), gpus)
        })
        .collect()
    };
    assert_eq!(
        rows(&mut view),
        [("team-a".to_owned(), 0, [6, 5]), ("*".to_owned(), 0, [6, 5])],
        "the hour before was begun late"
    );
    view.missed();
    view.remove_pod(Uid(2), None, at(7_100));
    view.remove_pod(Uid(3), None, at(7_100));
    view.pass_to(at(7_200));
    assert_eq!(rows(&mut view), [], "something may have been missed");
    view.pass_to(at(10_800));
    assert_eq!(
        rows(&mut view)[0],
        ("team-a".to_owned(), 2, [0, 0]),
        "who asked before and does no more asks for nothing"
    );
    view.pass_to(at(4 * 3_600 + 7_200));
    assert_eq!(rows(&mut view).len(), 2, "unwatched hours are missing, except the one that had begun");
}

#[test]
fn pods_that_wait_belong_to_what_they_select_or_to_the_only_pool() {
    let mut view = view();
    view.set_node(node("n1", "A100", 8), at(0));
    view.set_pod(pod(1, 4, TaskClass::Hp, None), at(1));
    assert_eq!(view.demand(&model("A100")).len(), 1);
    view.set_node(node("m1", "H800", 8), at(2));
    assert_eq!((view.demand(&model("A100")).len(), view.without_model.len()), (0, 1));
    view.set_pod(PodFacts { gpu_model: Some(model("H800")), ..pod(1, 4, TaskClass::Hp, None) }, at(3));
    assert_eq!((view.demand(&model("H800")).len(), view.without_model.len()), (1, 0));
}

#[test]
fn a_node_of_more_gpus_than_a_fleet_takes_counts_with_its_pods_and_their_promises() {
    let mut view = view();
    view.set_node(node("n1", "A100", 8), at(0));
    view.set_node(node("sliced", "A100", 80), at(0));
    view.set_pod(promised(1, 2, "sliced", 1), at(0));
    view.set_pod(pod(2, 70, TaskClass::Hp, Some("sliced")), at(0));
    view.set_pod(pod(3, 8, TaskClass::Spot, Some("sliced")), at(0));
    view.set_pod(pod(4, 9, TaskClass::Spot, Some("sliced")), at(0));
    let gpus = |view: &View| {
        let state = view.state(&model("A100"), 0, at(1)).unwrap();
        let pool = &view.pools()[&model("A100")];
        let promised = pool.promised(HorizonHours::ONE).milli() / 1_000;
        (state.capacity.milli() / 1_000, state.idle.milli() / 1_000, pool.spot_gpus(), promised)
    };
    assert_eq!(gpus(&view), (88, 8, 10, 2), "the last pod waits for room");
    view.remove_pod(Uid(2), None, at(2));
    assert_eq!(gpus(&view), (88, 69, 19, 2));
    assert!(view.pool_mut(&model("A100")).unwrap().fits(&pod(5, 61, TaskClass::Spot, None)));
    assert!(!view.pool_mut(&model("A100")).unwrap().fits(&pod(5, 62, TaskClass::Spot, None)));
    view.pass_to(at(3_600));
    assert_eq!(outcomes(&mut view), [(OutcomeKind::Kept, 3_600)]);
    assert_eq!(gpus(&view).3, 0);
    view.set_node(NodeFacts { is_open: false, ..node("sliced", "A100", 80) }, at(3_601));
    assert_eq!(gpus(&view), (8 + 19, 8, 19, 0), "cordoned: what runs counts");
    view.set_node(node("sliced", "A100", 16), at(3_602));
    assert_eq!(gpus(&view), (24, 8 + 6, 10, 0), "9 of 16 GPUs wait for room: 2 and 8 came first");
    view.remove_node(&NodeId::parse("sliced").unwrap(), at(3_603));
    assert_eq!(gpus(&view), (8, 8, 0, 0));
}

#[derive(Debug, Clone)]
enum Change {
    Node(u8, u32, bool, bool),
    NoNode(u8),
    Pod(u8, u32, bool, Option<u8>, bool),
    NoPod(u8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..4_u8, prop_oneof![1..9_u32, 63..70_u32], any::<bool>(), any::<bool>())
            .prop_map(|(n, g, open, b)| Change::Node(n, g, open, b)),
        (0..4_u8).prop_map(Change::NoNode),
        (0..12_u8, 1..5_u32, any::<bool>(), prop::option::of(0..4_u8), any::<bool>())
            .prop_map(|(p, g, hp, on, promised)| Change::Pod(p, g, hp, on, promised)),
        (0..12_u8).prop_map(Change::NoPod),
    ]
}

fn apply(view: &mut View, change: &Change, now: UnixSeconds) {
    match change {
        Change::Node(number, gpus, is_open, is_a100) => {
            let of = if *is_a100 { "A100" } else { "H800" };
            view.set_node(NodeFacts { is_open: *is_open, ..node(&format!("n{number}"), of, *gpus) }, now);
        }
        Change::NoNode(number) => view.remove_node(&NodeId::parse(&format!("n{number}")).unwrap(), now),
        Change::Pod(number, gpus, is_hp, on, is_promised) => {
            let class = if *is_hp { TaskClass::Hp } else { TaskClass::Spot };
            let on = on.map(|number| format!("n{number}"));
            let guarantee = HorizonHours::new(1).ok().filter(|_| *is_promised && !is_hp);
            let facts = PodFacts { guarantee, ..pod(u128::from(*number), *gpus, class, on.as_deref()) };
            view.set_pod(facts, now);
        }
        Change::NoPod(number) => view.remove_pod(Uid(u128::from(*number)), None, now),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any events in any order give the counts of a full read of nodes and pods.
    #[test]
    fn what_is_counted_is_what_is_there(changes in prop::collection::vec(change(), 1..60)) {
        let mut view = view();
        for (step, change) in changes.iter().enumerate() {
            apply(&mut view, change, at(step as i64 * 30));
        }
        for (model, pool) in view.pools() {
            let here: u64 = view.nodes().values().filter(|node| node.gpu_model.as_ref() == Some(model))
                .map(|node| u64::from(node.gpus)).sum();
            let large: u64 = view.nodes().values()
                .filter(|node| node.gpu_model.as_ref() == Some(model) && node.gpus > 64).map(|node| u64::from(node.gpus)).sum();
            prop_assert_eq!(pool.fleet.gpus() + large, here);
            let hp: u64 = view.pods().values()
                .filter(|pod| pod.class == TaskClass::Hp && view.model_of(pod).as_ref() == Some(model))
                .map(|pod| u64::from(pod.gpus)).sum();
            prop_assert_eq!(demand_gpus(&view, model.as_str()), hp);
            for node in pool.fleet.nodes().iter().filter(|node| !node.is_gone) {
                let asked: u64 = view.pods().values().filter(|pod| pod.node.as_ref() == Some(&node.id))
                    .map(|pod| u64::from(pod.gpus)).sum();
                let held = node.used_milli() / 1_000;
                // All of them, or as many as there is room for.
                prop_assert!(held <= asked.min(node.gpus.len() as u64));
                if asked <= node.gpus.len() as u64 {
                    prop_assert_eq!(held, asked);
                }
            }
            let state = view.state(model, 0, at(10_000)).unwrap();
            let spot = state.spot_by_guarantee.values().fold(state.idle, |sum, gpus| sum.saturating_add(*gpus));
            prop_assert!(spot <= state.capacity);
            // Nodes of at least 63 GPUs hold all pods there are.
            let held: u64 = view.pods().values().filter(|pod| pod.class == TaskClass::Spot)
                .filter(|pod| pod.node.as_ref().and_then(|name| view.nodes().get(name)).is_some_and(|node| node.gpus >= 63 && node.gpu_model.as_ref() == Some(model)))
                .map(|pod| u64::from(pod.gpus)).sum();
            prop_assert!(pool.spot_gpus() >= held, "{} of {held}", pool.spot_gpus());
        }
    }
}

/// A pod as the API serves it.
fn of_api(gpus: &str, metadata: serde_json::Value) -> crate::cluster::slim::Pod {
    let mut metadata = metadata;
    metadata["uid"] = "u".into();
    metadata["namespace"] = "team-a".into();
    let amount = serde_json::json!({ "nvidia.com/gpu": gpus });
    let container = serde_json::json!({ "resources": { "requests": amount, "limits": amount } });
    serde_json::from_value(serde_json::json!({ "metadata": metadata, "spec": { "containers": [container] } })).unwrap()
}

#[test]
fn gpus_are_read_in_every_notation_and_what_is_no_quantity_is_named() {
    let reading = Reading::of(&Config::default());
    let read = |gpus: &str| PodFacts::read(&of_api(gpus, serde_json::json!({})), &reading);
    for gpus in ["2", "2e0", "2E0", "2000m", "0.002k", "20e-1", "2.0"] {
        assert_eq!(read(gpus).unwrap().unwrap().0.gpus, 2, "{gpus}");
    }
    assert_eq!(read("80").unwrap().unwrap().0.gpus, 80);
    let fault = read("two").unwrap_err().to_string();
    assert!(fault.contains("nvidia.com/gpu: \"two\": it is no quantity"), "{fault}");
    assert!(read("1M").unwrap_err().to_string().contains("expected at most 65535 GPUs"));
}

#[test]
fn evictions_of_kueue_are_read_from_its_condition_and_other_ends_of_it_are_not() {
    let reading = Reading::of(&Config::default());
    let end = |reason: &str| {
        let mut pod = of_api("1", serde_json::json!({ "deletionTimestamp": "2026-11-22T10:00:00Z" }));
        let conditions = serde_json::json!([{ "type": "TerminationTarget", "status": "True", "reason": reason }]);
        pod.status = serde_json::from_value(serde_json::json!({ "conditions": conditions })).unwrap();
        End::of(&PodFacts::read(&pod, &reading).unwrap().unwrap().0, false)
    };
    for (reason, expected) in [
        ("WorkloadEvictedDueToPreempted", End::Preempted),
        ("WorkloadEvictedDueToAdmissionCheck", End::Drained),
        ("WorkloadEvictedDueToNodeFailures", End::NodeLost),
        ("WorkloadEvictedDueToClusterQueueStopped", End::Drained),
        ("WorkloadEvictedDueToDeactivated", End::Deleted),
        ("WorkloadEvictedDueToDeactivatedDueToMaximumExecutionTimeExceeded", End::Deleted),
        ("WorkloadEvictedDueToDeactivatedDueToAdmissionCheck", End::Drained),
        ("WorkloadDeleted", End::Deleted),
    ] {
        assert_eq!(end(reason), expected, "{reason}");
    }
}

#[test]
fn a_pod_that_its_node_could_not_run_has_lost_its_node_and_did_not_finish() {
    let reading = Reading::of(&Config::default());
    for (reason, expected) in
        [("UnexpectedAdmissionError", End::NodeLost), ("OutOfcpu", End::NodeLost), ("Error", End::Finished)]
    {
        let mut pod = of_api("1", serde_json::json!({}));
        pod.status = serde_json::from_value(serde_json::json!({ "phase": "Failed", "reason": reason })).unwrap();
        assert_eq!(End::of(&PodFacts::read(&pod, &reading).unwrap().unwrap().0, true), expected, "{reason}");
    }
}

#[test]
fn a_label_that_is_no_organization_leaves_the_pod_counted_for_its_namespace() {
    let config = Config { organization_label: "team".parse().unwrap(), ..Config::default() };
    let labels = serde_json::json!({ "labels": { "team": " team" } });
    let (facts, faults) = PodFacts::read(&of_api("1", labels), &Reading::of(&config)).unwrap().unwrap();
    assert_eq!(facts.organization.as_str(), "team-a");
    assert!(faults[0].counts_anyway() && faults[0].to_string().contains("it counts for its namespace"), "{faults:?}");
}

/// As a kube-scheduler 1.36.2 places them.
#[test]
fn init_containers_sidecars_and_the_overhead_of_a_runtime_count_as_the_scheduler_counts_them() {
    let of = |gpus: u32, more: serde_json::Value| {
        let mut container = serde_json::json!({ "resources": { "requests": { "nvidia.com/gpu": gpus.to_string() } } });
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        container
    };
    let main = |gpus| of(gpus, serde_json::json!({}));
    let sidecar = |gpus| of(gpus, serde_json::json!({ "restartPolicy": "Always" }));
    let asked = |init: &[serde_json::Value], overhead: &str| {
        let spec = serde_json::json!({
            "initContainers": init, "containers": [main(1)], "overhead": { "nvidia.com/gpu": overhead, "cpu": "1" },
        });
        let pod = serde_json::from_value(serde_json::json!({ "metadata": {}, "spec": spec, "status": {} })).unwrap();
        super::facts::gpus_of_pod(&pod, "p", "nvidia.com/gpu").unwrap()
    };
    assert_eq!([asked(&[main(2)], "0"), asked(&[sidecar(1)], "0")], [2, 2]);
    assert_eq!([asked(&[sidecar(1), main(2)], "0"), asked(&[main(3), sidecar(1)], "0")], [3, 3]);
    assert_eq!([asked(&[], "2"), asked(&[main(4)], "1")], [3, 5]);
}
