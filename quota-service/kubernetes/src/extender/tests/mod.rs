//! Requests of the scheduler, byte by byte, and their answers.

mod serving;

use super::*;
use crate::cluster::watch::Shared;
use crate::headroom::Offer;
use crate::view::facts::{Life, NodeFacts, Uid};
use crate::view::tests::fixture;
use placement::{Limit, Policy, Stage};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tower::ServiceExt;
use vocab::{ClusterName, HorizonHours, MilliGpus, NodeId, Organization, TaskClass};

const PREEMPT_META: &[u8] = include_bytes!("../../../fixtures/extender/preempt-meta.json");
const PREEMPT_FULL: &[u8] = include_bytes!("../../../fixtures/extender/preempt-full.json");
const FILTER_NAMES: &[u8] = include_bytes!("../../../fixtures/extender/filter-names.json");
const FILTER_NODES: &[u8] = include_bytes!("../../../fixtures/extender/filter-nodes.json");
const PRIORITIZE: &[u8] = include_bytes!("../../../fixtures/extender/prioritize-names.json");
/// The UID of the spot pod in the fixtures.
const SWEEP: &str = "5f0c1f7e-8a53-4b0e-9a39-0d6b6f6f9b02";

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(1_793_600_000 + seconds)
}

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

fn number(uid: u64) -> Uid {
    Uid::of(&format!("00000000-0000-4000-8000-{uid:012x}"))
}

fn pod(uid: Uid, gpus: u32, class: TaskClass, on: Option<&str>, since: i64) -> PodFacts {
    PodFacts {
        namespace: "team-b".into(),
        organization: Organization::parse("team-b").unwrap(),
        created: at(since),
        bound: on.map(|_| at(since)),
        ..fixture::pod(uid, gpus, class, on)
    }
}

/// A cluster of three nodes: the pods of the fixtures hold two of them and half of the third.
struct World {
    state: ExtenderState,
    shared: Arc<Shared>,
    now: Arc<AtomicI64>,
    offers: watch::Sender<Arc<Offers>>,
}

impl World {
    fn new(change: impl FnOnce(&mut Config), before: Option<Before>) -> Self {
        let mut config =
            Config { cluster: "earth".parse().unwrap(), extender_deadline_ms: 60_000, ..Config::default() };
        change(&mut config);
        let view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS);
        let shared = Shared::new(view, || at(0));
        for name in ["node-1", "node-2", "node-3"] {
            let gpu_model = Some(GpuModel::parse("A100").unwrap());
            let node = NodeId::parse(name).unwrap();
            let facts = NodeFacts {
                node,
                gpu_model,
                gpus: 8,
                is_open: true,
                is_ready: true,
                is_emptied: false,
                topology: None,
            };
            shared.write().set_node(facts, at(0));
        }
        let promised = |pod: PodFacts| PodFacts { guarantee: Some(hours(1)), ..pod };
        let spot = |uid, node, since| pod(number(uid), 4, TaskClass::Spot, Some(node), since);
        for pod in [
            spot(1, "node-1", -9_000),
            spot(2, "node-1", -9_000),
            promised(spot(3, "node-2", 0)),
            spot(4, "node-2", 0),
            spot(5, "node-3", 0),
        ] {
            shared.write().set_pod(pod, at(0));
        }
        let (offers, heard) = watch::channel(Arc::new(Offers::default()));
        let now = Arc::new(AtomicI64::new(at(0).get()));
        let time = now.clone();
        let clock: Clock = Arc::new(move || UnixSeconds::new(time.load(Ordering::Relaxed)));
        let mut state = ExtenderState::new(&config, shared.clone(), heard, clock);
        Arc::get_mut(&mut state.0).unwrap().before = before;
        Self { state, shared, now, offers }
    }

    fn plain() -> Self {
        Self::new(|_| (), None)
    }

    fn offering(quotas: [u32; 2]) -> Self {
        let world = Self::plain();
        world.offer(quotas, 0);
        world
    }

    fn offer(&self, quotas: [u32; 2], computed: i64) {
        let limits = [1, 4].into_iter().zip(quotas);
        let limits = limits.map(|(of, quota)| Limit { hours: hours(of), quota: MilliGpus::from_gpus(quota) }).collect();
        let offer = Offer {
            limits,
            bounds: Vec::new(),
            demand: Vec::new(),
            eta: placement::Eta::ONE,
            capacity: MilliGpus::from_gpus(24),
            stage: Stage::Fresh,
            computed_at: at(computed),
        };
        let pools = [(GpuModel::parse("A100").unwrap(), offer)].into();
        self.offers.send_replace(Arc::new(Offers { pools, asked_at: Some(at(0)) }));
    }

    fn pass_to(&self, seconds: i64) {
        self.now.store(at(seconds).get(), Ordering::Relaxed);
    }

    async fn post(&self, verb: &str, body: impl Into<Vec<u8>>) -> Value {
        let request = Request::post(format!("/extender/v1/{verb}")).body(Body::from(body.into())).unwrap();
        let response = router(self.state.clone()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/json");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

fn replaced(body: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.contains(from), "{from} is in the fixture");
    text.replace(from, to).into_bytes()
}

fn all_pass() -> Value {
    json!({
        "Nodes": null, "NodeNames": ["node-1", "node-2", "node-3"],
        "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": "",
    })
}

#[tokio::test]
async fn spot_within_its_quota_passes_and_counts_until_it_is_seen() {
    let world = World::offering([12, 4]);
    assert_eq!(world.post("filter", FILTER_NAMES).await, all_pass());
    assert_eq!(world.post("filter", FILTER_NAMES).await, all_pass(), "it asks again and counts once");
    assert_eq!(world.state.assumed_pods(), 1);
    let second = replaced(FILTER_NAMES, "9b02", "9b03");
    assert_eq!(world.post("filter", second.clone()).await, all_pass(), "4 of 4");
    let third = replaced(FILTER_NAMES, "9b02", "9b04");
    let refused = world.post("filter", third.clone()).await;
    let why = "headroom: 2.000 GPUs more than the 4.000 that are promised for 4h would exceed the quota of 4.000";
    let unresolvable = json!({ "node-1": why, "node-2": why, "node-3": why });
    assert_eq!(refused["FailedAndUnresolvableNodes"], unresolvable);
    assert_eq!((&refused["NodeNames"], &refused["FailedNodes"]), (&json!([]), &json!({})));
    // The first is seen on a node, and now counts there; the second never comes.
    let facts = PodFacts { guarantee: Some(hours(4)), ..pod(Uid::of(SWEEP), 2, TaskClass::Spot, Some("node-3"), 1) };
    world.shared.write().set_pod(facts.clone(), at(1));
    world.state.seen(facts.uid, Some(&facts));
    assert_eq!(world.state.assumed_pods(), 1);
    assert_eq!(world.post("filter", third.clone()).await["NodeNames"], json!([]));
    world.pass_to(30);
    assert_eq!(world.post("filter", third).await, all_pass());
    assert_eq!(world.state.assumed_pods(), 1);
}

#[tokio::test]
async fn a_pod_that_needs_no_quota_passes_without_one() {
    let world = World::plain();
    let hp = replaced(FILTER_NAMES, r#""priorityClassName":"spot""#, r#""priorityClassName":"production""#);
    let at_will =
        replaced(FILTER_NAMES, r#""headroom.dev/guarantee-hours":"4""#, r#""headroom.dev/guarantee-hours":"0""#);
    let no_gpus = replaced(FILTER_NAMES, "nvidia.com/gpu", "example.com/fpga");
    for body in [hp, at_will, no_gpus] {
        assert_eq!(world.post("filter", body).await, all_pass());
    }
    assert_eq!(world.state.assumed_pods(), 0);
    let refused = world.post("filter", FILTER_NAMES).await;
    let why = "headroom: a guarantee of 4h is not offered: there is no quota yet";
    assert_eq!(refused["FailedAndUnresolvableNodes"]["node-1"], why);
    let broken = replaced(FILTER_NAMES, r#""nvidia.com/gpu":"2""#, r#""nvidia.com/gpu":"many""#);
    let why = &world.post("filter", broken).await["FailedAndUnresolvableNodes"]["node-1"];
    assert!(why.as_str().unwrap().contains("it is no quantity"), "spot that cannot be counted does not pass: {why}");
}

#[tokio::test]
async fn an_old_quota_admits_nothing_new() {
    let world = World::plain();
    world.offer([100, 100], -2_400);
    let refused = world.post("filter", FILTER_NAMES).await;
    let why = "headroom: a guarantee of 4h is not given now: the quota was not renewed for long";
    assert_eq!(refused["FailedAndUnresolvableNodes"]["node-2"], why);
}

#[tokio::test]
async fn whole_nodes_are_answered_as_they_came() {
    let world = World::offering([12, 4]);
    let sent: Value = serde_json::from_slice(FILTER_NODES).unwrap();
    let answer = world.post("filter", FILTER_NODES).await;
    assert_eq!((&answer["Nodes"], &answer["NodeNames"]), (&sent["Nodes"], &Value::Null));
    world.offer([0, 0], 0);
    let refused = world.post("filter", FILTER_NODES).await;
    assert_eq!((&refused["Nodes"], &refused["NodeNames"]), (&json!({ "items": [] }), &Value::Null));
    let failed = refused["FailedAndUnresolvableNodes"].as_object().unwrap();
    assert_eq!(failed.keys().collect::<Vec<_>>(), ["node-1", "node-2"]);
}

#[tokio::test]
async fn nodes_are_ordered_as_the_policy_does_and_unknown_ones_come_last() {
    let world = World::plain();
    let one = replaced(PRIORITIZE, r#""nvidia.com/gpu":"8""#, r#""nvidia.com/gpu":"4""#);
    let scores = |of: Value| -> Vec<(String, u64)> {
        let score = |one: &Value| (one["Host"].as_str().unwrap().to_owned(), one["Score"].as_u64().unwrap());
        of.as_array().unwrap().iter().map(score).collect()
    };
    let named = |scores: [u64; 4]| -> Vec<(String, u64)> {
        ["node-3", "node-1", "unknown", "node-2"].map(str::to_owned).into_iter().zip(scores).collect()
    };
    assert_eq!(scores(world.post("prioritize", one.clone()).await), named([10, 0, 0, 0]), "it fits on the third alone");
    for uid in [1, 2] {
        world.shared.write().remove_pod(number(uid), None, at(0));
    }
    assert_eq!(scores(world.post("prioritize", one).await), named([10, 9, 0, 0]), "the fuller one first");
    assert_eq!(scores(world.post("prioritize", PRIORITIZE).await), named([0, 10, 0, 0]));
    let none = replaced(PRIORITIZE, "nvidia.com/gpu", "example.com/fpga");
    assert_eq!(scores(world.post("prioritize", none).await), named([0; 4]));
}

#[tokio::test]
async fn preemption_takes_one_node_with_the_victims_that_it_was_offered_with() {
    let world = World::plain();
    let victims = |uids: &[u64], violations: u32| {
        let pods: Vec<Value> = uids.iter().map(|uid| json!({ "UID": number(*uid).to_string() })).collect();
        json!({ "Pods": pods, "NumPDBViolations": violations })
    };
    let only = |node: &str, victims: Value| json!({ "NodeNameToMetaVictims": { node: victims } });
    // The second keeps a promise, the third has a victim that nobody knows.
    let first = only("node-1", victims(&[1, 2], 0));
    assert_eq!(world.post("preempt", PREEMPT_META).await, first);
    assert_eq!(world.post("preempt", PREEMPT_FULL).await, first, "the answer is short in both modes");
    world.pass_to(4_000);
    let second = only("node-2", victims(&[3, 4], 0));
    assert_eq!(world.post("preempt", PREEMPT_META).await, second, "the promise is over, and less work is lost");
    let hp = PodFacts { class: TaskClass::Hp, ..pod(number(4), 4, TaskClass::Hp, Some("node-2"), 0) };
    world.state.seen(hp.uid, Some(&hp));
    assert_eq!(world.post("preempt", PREEMPT_META).await, first, "HP of a lower priority is kept before spot");
    world.state.seen(number(1), None);
    assert_eq!(world.post("preempt", PREEMPT_META).await, second, "each has one that is not spot, for all we know");
    let spot = replaced(PREEMPT_META, r#""priorityClassName":"production""#, r#""priorityClassName":"spot""#);
    assert_eq!(world.post("preempt", spot).await, json!({ "NodeNameToMetaVictims": {} }), "spot evicts nobody");
    let upper = replaced(PREEMPT_META, "00000000-0000-4000-8000-00000000000", "A-UID-OF-ANOTHER-KIND-");
    let node = world.post("preempt", upper).await;
    let uids = &node["NodeNameToMetaVictims"]["node-1"]["Pods"];
    assert_eq!(uids[0]["UID"], "A-UID-OF-ANOTHER-KIND-1", "UIDs go back as they came");
}

#[tokio::test]
async fn spot_that_ended_lately_makes_the_number_of_victims_count() {
    let world = World::plain();
    for uid in 1_000..1_010 {
        let runs = pod(number(uid), 1, TaskClass::Spot, Some("node-9"), 0);
        world.state.seen(runs.uid, Some(&runs));
        world.state.seen(runs.uid, Some(&PodFacts { life: Life::Ended, ..runs.clone() }));
        world.state.seen(runs.uid, None);
    }
    let evicted = pod(number(2_000), 1, TaskClass::Spot, Some("node-9"), 0);
    let evicted = PodFacts { disruption: Some("PreemptionByScheduler".into()), ..evicted };
    world.state.seen(evicted.uid, Some(&evicted));
    world.state.seen(evicted.uid, None);
    let history = world.state.burdens().history(at(10));
    assert_eq!((history.finished, history.evicted), (10, 1));
    assert_eq!(world.state.burdens().history(at(86_400)).finished, 0);
    world.state.renew();
    assert_eq!(world.state.burdens().history(at(10)).finished, 10);
}
