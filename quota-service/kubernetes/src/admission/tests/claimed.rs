//! Workloads whose pods ask for GPUs by claims.

use super::*;
use crate::cluster::dra::ClaimStatus;
use crate::config::Config;
use crate::view::facts::Reading;
use crate::view::{ClaimChange, View};
use placement::Policy;
use vocab::ClusterName;

/// A node of 8 GPUs, a template and a claim of 2 GPUs each, and a template of a network card.
pub fn view() -> View {
    let config = Config { device_classes: "gpu.example.com".parse().unwrap(), ..config() };
    let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS);
    let node = json!({
        "metadata": { "name": "n1", "labels": { "nvidia.com/gpu.product": "A100" } },
        "status": { "allocatable": { "nvidia.com/gpu": "8" }, "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    view.see_node(&serde_json::from_value(node).unwrap(), at(0)).unwrap().unwrap();
    let key = |name: &str| ("team-a".to_owned(), name.to_owned());
    let spec = |class: &str| {
        let request = json!({ "name": "r", "exactly": { "deviceClassName": class, "count": 2 } });
        serde_json::from_value(json!({ "devices": { "requests": [request] } })).unwrap()
    };
    view.see_claims(ClaimChange::Template(key("two"), Some(spec("gpu.example.com")))).unwrap();
    view.see_claims(ClaimChange::Template(key("nic"), Some(spec("nic.example.com")))).unwrap();
    view.see_claims(ClaimChange::Claim(key("common"), Some((spec("gpu.example.com"), ClaimStatus::default()))))
        .unwrap();
    view.settle_claims(true, at(0));
    view
}

/// A Workload of so many pods that ask for GPUs by these claims alone.
fn claiming(pods: u32, hours: &str, claims: &Value) -> Value {
    let mut one = workload("w", 2 * pods, hours, "Pending");
    let spec = &mut one["spec"]["podSets"][0]["template"]["spec"];
    spec["containers"] = json!([{ "name": "main" }]);
    spec["resourceClaims"] = claims.clone();
    // As Kueue names the class by its deviceClassMappings.
    one["status"]["admission"]["podSetAssignments"][0]["flavors"] = json!({ "gpus-by-claims": "a100-spot" });
    one
}

fn by_template(name: &str) -> Value {
    json!([{ "name": "gpu", "resourceClaimTemplateName": name }])
}

pub fn answer(workload: &Value, view: &View) -> (&'static str, String) {
    let flavors = "a100-spot=A100".parse::<Flavors>().unwrap().0;
    let read = serde_json::from_value(workload.clone()).unwrap();
    let mut facts = WorkloadFacts::read(&read, view.reading(), "headroom-guarantee");
    facts.read_claims(view, &mut view.planner(), &flavors);
    facts.read_pods(view);
    let (fresh, tries) = (offers([8, 4], Stage::Fresh), BTreeMap::new());
    let world = World { view, offers: &fresh, flavors: &flavors, tries: &tries, now: at(0) };
    let (_, answer) = plan(&[facts], &world).answers.into_iter().next().unwrap();
    (answer.state().as_str(), answer.message().to_owned())
}

#[test]
fn gpus_by_templates_of_claims_are_held_to_the_quota_of_their_hours() {
    let view = view();
    let of = |pods, hours| answer(&claiming(pods, hours, &by_template("two")), &view);
    assert_eq!(of(2, "4"), ("Ready", "4 GPUs are guaranteed for 4h".to_owned()));
    let (state, why) = of(48, "4");
    assert!(state == "Retry" && why.contains("A100: ") && why.contains("would exceed the quota of "), "{why}");
    let (state, why) = of(1, "3");
    assert!(state == "Rejected" && why.contains("a guarantee of 3h is not offered"), "{why}");
    // Beside GPUs by the counted resource.
    let mut both = claiming(1, "4", &by_template("two"));
    both["spec"]["podSets"][0]["template"]["spec"]["containers"] =
        json!([{ "name": "main", "resources": { "requests": { "nvidia.com/gpu": "2" } } }]);
    assert_eq!(answer(&both, &view).1, "4 GPUs are guaranteed for 4h");
}

#[test]
fn a_claim_that_pods_share_counts_once_and_one_of_other_devices_does_not_count() {
    let view = view();
    let common = json!([{ "name": "gpu", "resourceClaimName": "common" }]);
    assert_eq!(answer(&claiming(48, "4", &common), &view).1, "2 GPUs are guaranteed for 4h");
    let (state, why) = answer(&claiming(48, "4", &by_template("nic")), &view);
    assert!(state == "Ready" && why.starts_with("it asks for no GPUs that are counted"), "{why}");
}

#[test]
fn high_priority_pods_that_ask_by_claims_alone_are_guaranteed_nothing() {
    let mut high = claiming(48, "3", &by_template("two"));
    high["spec"]["podSets"][0]["template"]["spec"]["priorityClassName"] = "high".into();
    let (state, why) = answer(&high, &view());
    assert!(state == "Ready" && why.starts_with("it is high-priority"), "{why}");
}

#[test]
fn a_workload_whose_template_or_claim_does_not_exist_waits_and_the_answer_names_it() {
    let view = view();
    let (state, why) = answer(&claiming(2, "1", &by_template("late")), &view);
    assert!(state == "Retry" && why.contains("namespace team-a has no ResourceClaimTemplate late: make it"), "{why}");
    let gone = json!([{ "name": "gpu", "resourceClaimName": "gone" }]);
    let (state, why) = answer(&claiming(2, "1", &gone), &view);
    assert!(state == "Retry" && why.contains("has no ResourceClaim gone"), "{why}");
    assert_eq!(answer(&claiming(2, "0", &by_template("late")), &view).0, "Ready", "at will");
    // A pod that Kueue queues is not counted then, and its hours are not seen.
    let mut queued = claiming(1, "", &by_template("late"));
    queued["metadata"]["annotations"] = json!({});
    queued["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p" }]);
    let (state, why) = answer(&queued, &view);
    assert!(state == "Retry" && why.contains("has no ResourceClaimTemplate late"), "{why}");
}
