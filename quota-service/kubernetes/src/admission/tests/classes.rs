//! Workloads whose pods name no priority class: they get the default of the cluster.

use super::claimed::{answer, view};
use super::*;

/// A Workload that asks for hours that are not offered: spot is rejected, and HP is let through. Its pods name no class.
fn silent() -> Value {
    let mut one = workload("w", 4, "3", "Pending");
    one["spec"]["podSets"][0]["template"]["spec"].as_object_mut().unwrap().remove("priorityClassName");
    one
}

/// A field of the spec with what it is set to.
fn with_spec(fields: &[(&str, Value)]) -> Value {
    let mut one = silent();
    for (field, value) in fields {
        one["spec"][*field] = value.clone();
    }
    one
}

#[test]
fn pods_that_name_no_class_have_the_one_that_kueue_read() {
    let view = view();
    let class = |group: &str, kind: &str, name: &str| json!({ "group": group, "kind": kind, "name": name });
    let of_pods = |name: &str| class("scheduling.k8s.io", "PriorityClass", name);
    let older = |source: &str| [("priorityClassName", json!("spot")), ("priorityClassSource", json!(source))];
    let state = |one: &Value| answer(one, &view).0;
    assert_eq!(state(&with_spec(&[("priorityClassRef", of_pods("spot"))])), "Rejected");
    assert_eq!(state(&with_spec(&older("scheduling.k8s.io/priorityclass"))), "Rejected");
    let (state, why) = answer(&with_spec(&[("priorityClassRef", of_pods("high"))]), &view);
    assert!(state == "Ready" && why.starts_with("it is high-priority"), "{why}");
    // A class of Workloads says nothing of pods, also where it has the name of one of theirs.
    let of_workloads = with_spec(&[("priorityClassRef", class("kueue.x-k8s.io", "WorkloadPriorityClass", "spot"))]);
    assert_eq!(answer(&of_workloads, &view).0, "Ready");
    assert_eq!(answer(&with_spec(&older("kueue.x-k8s.io/workloadpriorityclass")), &view).0, "Ready");
}

#[test]
fn pods_that_name_no_class_have_the_default_of_the_cluster_where_kueue_read_none_or_that_of_other_pods() {
    let mut view = view();
    view.set_default_class(Some("spot".to_owned()));
    let class = json!({ "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high" });
    assert_eq!(answer(&silent(), &view).0, "Rejected");
    assert_eq!(answer(&with_spec(&[("priorityClassRef", class)]), &view).0, "Rejected");
    // Kueue takes the class of the first pods that name one.
    let mut mixed = with_spec(&[(
        "priorityClassRef",
        json!({ "group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high" }),
    )]);
    let mut high = mixed["spec"]["podSets"][0].clone();
    high["name"] = "driver".into();
    high["template"]["spec"]["priorityClassName"] = "high".into();
    mixed["spec"]["podSets"].as_array_mut().unwrap().push(high);
    assert_eq!(answer(&mixed, &view).0, "Rejected");
    view.set_default_class(None);
    assert_eq!(answer(&mixed, &view).0, "Ready");
}
