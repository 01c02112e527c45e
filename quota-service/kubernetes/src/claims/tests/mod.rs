//! Claims and devices, counted by the view and by a reference that shares no code with it.

mod objects;
mod reference;
mod serving;
mod world;

use crate::config::Config;
use crate::view::facts::Reading;
use crate::view::{ClaimChange, PoolView, View};
use placement::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vocab::{ClusterName, GpuModel, TaskClass, UnixSeconds};
use world::{Dice, START, World};

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(START + seconds)
}

fn view() -> View {
    let classes = "gpu.example.com,mig.example.com,h100.example.com=H100".parse().unwrap();
    let config = Config { device_classes: classes, ..Config::default() };
    View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS)
}

fn read<T: serde::de::DeserializeOwned + Default>(part: &Value) -> T {
    if part.is_null() { T::default() } else { serde_json::from_value(part.clone()).unwrap() }
}

/// An object reaches the view as a watch reports it.
fn tell(view: &mut View, plural: &str, object: &Value, now: UnixSeconds) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let key = (text("namespace"), text("name"));
    let (spec, status) = (&object["spec"], &object["status"]);
    let change = match plural {
        "nodes" => {
            view.see_node(&serde_json::from_value(object.clone()).unwrap(), now).unwrap();
            return;
        }
        "pods" => {
            view.see_pod(&serde_json::from_value(object.clone()).unwrap(), now).unwrap();
            return;
        }
        "deviceclasses" => ClaimChange::Class(key.1, Some(read(spec))),
        "devicetaintrules" => ClaimChange::Rule(key.1, Some(read(spec))),
        "resourceslices" => ClaimChange::Slice(key.1, Some(Box::new(read(spec)))),
        "resourceclaims" => ClaimChange::Claim(key, Some((read(spec), read(status)))),
        "resourceclaimtemplates" => ClaimChange::Template(key, Some(read(&spec["spec"]))),
        other => panic!("{other}"),
    };
    view.see_claims(change).unwrap();
    view.settle_claims(false, now);
}

/// Thousandths of a GPU by model and whether they are of HP.
fn demand(view: &View) -> BTreeMap<(String, bool), u64> {
    let mut found = BTreeMap::new();
    for pod in view.pods().values() {
        let model = view.model_of(pod).filter(|model| view.pools().contains_key(model));
        if let Some(model) = model {
            *found.entry((model.to_string(), pod.class == TaskClass::Hp)).or_insert(0) += pod.amount().milli();
        }
    }
    found
}

/// The world reaches the view in any order, and objects that are there come again.
fn reported(world: &World, dice: &mut Dice) -> View {
    let mut view = view();
    let mut all = world::objects(world, dice);
    for at in (1..all.len()).rev() {
        all.swap(at, dice.below(at as u64 + 1) as usize);
    }
    for (plural, object) in all.iter().chain(all.iter().take(5)) {
        tell(&mut view, plural, object, at(100));
    }
    view.settle_claims(true, at(200));
    view
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// For every mix of claims and slices, in every order of reports: capacity and demand are those of the
    /// reference.
    #[test]
    fn claims_and_devices_count_as_an_independent_computation_says(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let world = World::drawn(&mut dice);
        let view = reported(&world, &mut dice);
        let mut capacity = BTreeMap::new();
        for (gpus, model) in reference::nodes(&world).into_values() {
            if let Some(model) = model {
                *capacity.entry(model.to_owned()).or_insert(0) += gpus;
            }
        }
        let counted = view.pools().iter().map(|(model, pool)| (model.to_string(), pool.allocatable_gpus()));
        // A pool that has lost its GPUs, as to a rule that was seen after its devices, stays known.
        let counted: BTreeMap<String, u64> = counted.filter(|(_, gpus)| *gpus > 0).collect();
        prop_assert_eq!(counted, capacity, "{:?}", world);
        let pools = view.pools().keys().map(GpuModel::as_str).collect();
        let expected = reference::demand(&world, &pools);
        prop_assert_eq!(demand(&view), expected.clone(), "{:?}", world);
        for model in view.pools().keys() {
            let hp: u64 = view.demand(model).values().map(|gpus| gpus.milli()).sum();
            prop_assert_eq!(hp, expected.get(&(model.to_string(), true)).copied().unwrap_or(0));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Objects that go take with them what they were counted for.
    #[test]
    fn without_pods_there_is_no_demand_and_without_slices_no_devices(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let world = World::drawn(&mut dice);
        let mut view = reported(&world, &mut dice);
        view.see_all_pods(&std::collections::BTreeSet::new(), at(300));
        prop_assert_eq!(demand(&view), BTreeMap::new());
        for (plural, object) in world::objects(&world, &mut dice) {
            let key = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            match plural {
                "resourceslices" => view.see_claims(ClaimChange::Slice(key("name"), None)).unwrap(),
                "resourceclaims" => view.see_claims(ClaimChange::Claim((key("namespace"), key("name")), None)).unwrap(),
                _ => {}
            }
        }
        // Which of a node's slices were split was drawn again: all names go.
        for node in 0..world.nodes.len() {
            for part in ["gpu-0", "gpu-1", "gpu-2", "gpu-old", "nic"] {
                view.see_claims(ClaimChange::Slice(format!("n{node}-{part}"), None)).unwrap();
            }
        }
        view.settle_claims(true, at(400));
        let plugins: u64 = world.nodes.iter().filter(|node| node.has_label).map(|node| node.plugin_gpus).sum();
        prop_assert_eq!(view.pools().values().map(PoolView::allocatable_gpus).sum::<u64>(), plugins);
    }
}

fn slice(generation: i64, of: i64, devices: &[&str]) -> Value {
    let devices: Vec<Value> =
        devices.iter().map(|name| json!({ "name": name, "attributes": { "type": { "string": "gpu" } } })).collect();
    let pool = json!({ "name": "n0", "generation": generation, "resourceSliceCount": of });
    json!({ "metadata": { "name": format!("s{generation}-{}", devices.len()) },
        "spec": { "driver": "gpu.example.com", "nodeName": "n0", "pool": pool, "devices": devices } })
}

fn one_node(view: &mut View) {
    let class = json!({ "metadata": { "name": "gpu.example.com" },
        "spec": { "selectors": [{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }] } });
    tell(view, "deviceclasses", &class, at(0));
    let node = world::Node { product: "A100", has_label: true, plugin_gpus: 0 };
    tell(view, "nodes", &objects::node(0, &node), at(0));
}

fn capacity(view: &View) -> u64 {
    view.pools().values().map(PoolView::allocatable_gpus).sum()
}

#[test]
fn a_pool_whose_slices_are_not_all_there_yet_keeps_its_devices() {
    let mut view = view();
    one_node(&mut view);
    tell(&mut view, "resourceslices", &slice(1, 1, &["a", "b"]), at(1));
    assert_eq!(capacity(&view), 2);
    tell(&mut view, "resourceslices", &slice(2, 2, &["a", "b", "c"]), at(2));
    assert_eq!(capacity(&view), 2, "the second slice of generation 2 is missing");
    tell(&mut view, "resourceslices", &slice(2, 2, &["d"]), at(3));
    assert_eq!(capacity(&view), 4);
}

#[test]
fn a_spot_pod_whose_claim_goes_before_it_keeps_its_gpus_and_its_promise() {
    let mut view = view();
    one_node(&mut view);
    tell(&mut view, "resourceslices", &slice(1, 1, &["a", "b"]), at(0));
    let exact = json!({ "deviceClassName": "gpu.example.com", "count": 2 });
    let claim = json!({ "metadata": { "name": "c", "namespace": "team-a" },
        "spec": { "devices": { "requests": [{ "name": "r", "exactly": exact }] } } });
    tell(&mut view, "resourceclaims", &claim, at(0));
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "team-a", "uid": "p", "creationTimestamp": at(0).to_string(),
            "annotations": { "headroom.dev/guarantee-hours": "1" } },
        "spec": { "nodeName": "n0", "priorityClassName": "spot", "containers": [{ "name": "main" }],
            "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] },
        "status": { "phase": "Running" },
    });
    tell(&mut view, "pods", &pod, at(10));
    assert_eq!(view.pools().values().map(PoolView::spot_gpus).sum::<u64>(), 2);
    view.see_claims(ClaimChange::Claim(("team-a".into(), "c".into()), None)).unwrap();
    view.settle_claims(true, at(20));
    assert_eq!((view.take_outcomes().len(), view.pods().len()), (0, 1), "it still runs");
    pod["status"]["phase"] = "Succeeded".into();
    tell(&mut view, "pods", &pod, at(30));
    let outcomes = view.take_outcomes();
    assert_eq!(outcomes.len(), 1);
    assert_eq!((outcomes[0].kind, outcomes[0].gpus.unwrap().milli()), (vocab::OutcomeKind::Kept, 2_000));
}

#[test]
fn a_class_that_is_not_understood_is_refused_with_its_expression() {
    let spec =
        serde_json::from_value(json!({ "selectors": [{ "cel": { "expression": "device.driver ==" } }] })).unwrap();
    let refused = view().see_claims(ClaimChange::Class("gpu.example.com".into(), Some(spec))).unwrap_err();
    assert!(refused.contains("device.driver =="), "{refused}");
}
