//! A cluster whose `ResourceQuota` counts every spot pod, as a real one does.

use super::*;
use crate::calls::Calls;
use crate::publish::{ALL, Content, Gpus, Part, RESOURCE_QUOTA, Target, write};
use crate::tests::{client, config};
use crate::view::facts::{NodeFacts, PodFacts, Reading, Uid};
use fake_kubernetes::FakeKubernetes;
use placement::{Bound, Eta, Limit, Policy};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use vocab::{ClusterName, NodeId, UnixSeconds};

const NOW: UnixSeconds = UnixSeconds::new(1_793_600_000);

fn gpus(gpus: u32) -> MilliGpus {
    MilliGpus::from_gpus(gpus)
}

fn model(name: &str) -> GpuModel {
    GpuModel::parse(name).unwrap()
}

/// A view of nodes of one model each.
fn view(nodes: &[(&str, u32)]) -> View {
    let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config("a")), Policy::GFS);
    for (name, gpus) in nodes {
        let node = NodeId::parse(&name.to_lowercase()).unwrap();
        let gpu_model = Some(model(name));
        view.set_node(
            NodeFacts {
                node,
                gpu_model,
                gpus: *gpus,
                is_open: true,
                is_ready: true,
                is_emptied: false,
                topology: None,
            },
            NOW,
        );
    }
    view
}

/// Without HP demand: the inventory is the capacity.
fn offers(pools: &[(&str, u32)], stage: Stage) -> Offers {
    let offer = |capacity: u32| Offer {
        limits: vec![Limit { hours: HorizonHours::ONE, quota: gpus(capacity) }],
        bounds: vec![Bound { hours: HorizonHours::ONE, bound: gpus(0) }],
        demand: Vec::new(),
        eta: Eta::ONE,
        capacity: gpus(capacity),
        stage,
        computed_at: NOW,
    };
    let pools = pools.iter().map(|(name, capacity)| (model(name), offer(*capacity)));
    Offers { pools: pools.collect(), asked_at: Some(NOW) }
}

fn pod(number: usize, node: &str) -> Value {
    let amount = json!({ "nvidia.com/gpu": "1" });
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("p{number}"), "namespace": "team-a" },
        "spec": { "nodeName": node, "priorityClassName": "spot",
            "containers": [{ "name": "main", "resources": { "requests": amount, "limits": amount } }] },
    })
}

struct Site {
    fake: FakeKubernetes,
    calls: Calls,
    view: View,
    offers: Offers,
}

impl Site {
    async fn new(pools: &[(&str, u32)]) -> Self {
        let fake = FakeKubernetes::start().await;
        fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }));
        let class = json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "spot" }, "value": -10 });
        fake.put(class);
        let calls = Calls::new(client(&fake).await, Duration::from_secs(5));
        Self { fake, calls, view: view(pools), offers: offers(pools, Stage::Fresh) }
    }

    /// Reads all pods, and publishes what is wanted then. Answers it.
    async fn publish(&mut self) -> u64 {
        let mut seen = BTreeSet::new();
        for pod in self.fake.list("pods") {
            let reading = self.view.see_pod(&serde_json::from_value(pod).unwrap(), NOW).unwrap();
            seen.insert(reading.expect("it asks for GPUs").uid);
        }
        self.view.see_all_pods(&seen, NOW);
        let in_all = wanted(&self.offers, &self.view, HorizonHours::ONE).in_all(Part::Main);
        let target = Target::quota(&config("a"), "team-a", Part::Main);
        let live = self.calls.find(&target.path()).await.unwrap();
        let content = Content { gpus: Gpus::from([(ALL.to_owned(), in_all)]), ..Content::default() };
        write(&self.calls, &target, live.as_ref(), &content).await.unwrap();
        in_all
    }

    async fn creates(&self, number: usize, node: &str) -> bool {
        self.calls.create("/api/v1/namespaces/team-a/pods", "test", &pod(number, node)).await.is_ok()
    }

    fn used(&self) -> Value {
        self.fake.get("resourcequotas", "team-a", RESOURCE_QUOTA).unwrap()["status"]["used"]["requests.nvidia.com/gpu"]
            .clone()
    }
}

#[tokio::test]
async fn pods_at_will_do_not_eat_the_quota_that_they_are_counted_against() {
    let mut site = Site::new(&[("A100", 41), ("H800", 27)]).await;
    assert_eq!(site.publish().await, 68);
    for number in 0..68 {
        assert!(site.creates(number, if number < 41 { "a100" } else { "h800" }).await, "pod {number} of 68");
    }
    assert!(!site.creates(68, "a100").await, "the quota is full");
    assert_eq!((site.publish().await, site.used()), (68, json!("68")));
    for number in 0..25 {
        site.fake.delete("pods", "team-a", &format!("p{number}"));
    }
    assert_eq!(site.publish().await, 68);
    for number in 100..125 {
        assert!(site.creates(number, "a100").await, "as many may come as have ended");
    }
    assert!(!site.creates(125, "a100").await);
}

#[test]
fn held_gpus_stay_and_none_are_added_once_the_offer_is_conservative_or_a_node_has_gone() {
    let mut view = view(&[("A100", 16)]);
    let held: PodFacts = {
        let read = serde_json::from_value(pod(1, "a100")).unwrap();
        let named = |mut pod: crate::cluster::slim::Pod| {
            pod.metadata.uid = Some("u".to_owned());
            pod
        };
        PodFacts::read(&named(read), view.reading()).unwrap().unwrap().0
    };
    view.set_pod(PodFacts { gpus: 6, uid: Uid(1), ..held }, NOW);
    let in_all =
        |view: &View, stage| wanted(&offers(&[("A100", 16)], stage), view, HorizonHours::ONE).in_all(Part::Main);
    assert_eq!([Stage::Fresh, Stage::Stale, Stage::Conservative].map(|stage| in_all(&view, stage)), [16, 16, 6]);
    assert_eq!(
        wanted(&Offers::default(), &view, HorizonHours::ONE).in_all(Part::Main),
        0,
        "without an offer nothing is promised"
    );
    let of = |stage| wanted(&offers(&[("A100", 16)], stage), &view, HorizonHours::ONE);
    let (fresh, held) = (of(Stage::Fresh), of(Stage::Conservative));
    assert_eq!((fresh.shared(Part::Main), fresh.held_in("team-a", Part::Main)), (16, 0));
    let namespaces = ["team-a", "team-b"].map(|namespace| held.held_in(namespace, Part::Main));
    assert_eq!((held.shared(Part::Main), namespaces), (0, [6, 0]), "a share of 6 would be room for new pods of others");
    view.set_node(NodeFacts { gpus: 8, ..view.nodes().values().next().unwrap().clone() }, NOW);
    assert_eq!(in_all(&view, Stage::Fresh), 8, "the offer counts with a node that is smaller now");
}

#[test]
fn spot_at_will_that_is_counted_apart_takes_nothing_from_promised_spot() {
    let config = crate::config::Config { at_will_priority_classes: "free".parse().unwrap(), ..config("a") };
    let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS);
    let node = NodeId::parse("a100").unwrap();
    let facts = NodeFacts {
        node,
        gpu_model: Some(model("A100")),
        gpus: 40,
        is_open: true,
        is_ready: true,
        is_emptied: false,
        topology: None,
    };
    view.set_node(facts, NOW);
    for (number, class, gpus) in [(1, "spot", 4_u32), (2, "free", 20)] {
        let mut made = pod(number, "a100");
        made["metadata"]["uid"] = number.to_string().into();
        made["metadata"]["annotations"] = json!({ "headroom.dev/guarantee-hours": "1" });
        made["spec"]["priorityClassName"] = class.into();
        made["spec"]["containers"][0]["resources"] = json!({ "limits": { "nvidia.com/gpu": gpus.to_string() } });
        let (facts, faults) = PodFacts::read(&serde_json::from_value(made).unwrap(), view.reading()).unwrap().unwrap();
        assert!(faults.is_empty() && facts.guarantee.is_some() == (class == "spot"), "{class}");
        view.set_pod(PodFacts { bound: Some(NOW), ..facts }, NOW);
    }
    // HP may take 10 of 40: 30 are left. 16 are idle.
    let mut offers = offers(&[("A100", 40)], Stage::Fresh);
    offers.pools.values_mut().for_each(|offer| offer.bounds[0].bound = gpus(10));
    let of = |offers: &Offers| {
        let amounts = wanted(offers, &view, HorizonHours::ONE).by_model[&model("A100")];
        [(amounts.quota_gpus, amounts.held_gpus), (amounts.at_will.quota_gpus, amounts.at_will.held_gpus)]
    };
    assert_eq!(of(&offers), [(20, 4), (26, 20)], "16 more with a promise, as many as are idle; 6 more at will");
    offers.pools.values_mut().for_each(|offer| offer.stage = Stage::Conservative);
    assert_eq!(of(&offers), [(4, 4), (20, 20)]);
}

#[test]
fn a_pool_without_an_offer_is_distinguished_from_one_whose_offer_is_none_and_an_old_one_raises_nothing() {
    let view = view(&[("A100", 16), ("H800", 8)]);
    let flavors = "a=A100,h=H800,l=L40".parse::<crate::config::Flavors>().unwrap().0;
    let basis = |offers: &Offers| {
        let wanted = wanted(offers, &view, HorizonHours::ONE);
        (["a", "h", "l"].map(|flavor| wanted.basis(&flavors)[flavor]), wanted.basis_in_all())
    };
    let (missing, old, known) = (Basis::Missing, Basis::Old, Basis::Known);
    assert_eq!(basis(&offers(&[], Stage::Fresh)), ([missing; 3], missing));
    let one = offers(&[("A100", 0), ("L40", 4)], Stage::Fresh);
    assert_eq!(basis(&one), ([known, missing, missing], known), "L40 is on no node");
    let mut both = offers(&[("A100", 16), ("H800", 8)], Stage::Fresh);
    assert_eq!(basis(&both), ([known, known, missing], known));
    both.pools.get_mut(&model("A100")).unwrap().stage = Stage::Stale;
    assert_eq!(basis(&both), ([old, known, missing], old));
    // It holds spot to what it has.
    both.pools.get_mut(&model("A100")).unwrap().stage = Stage::Conservative;
    assert_eq!(basis(&both), ([known, known, missing], known));
}
