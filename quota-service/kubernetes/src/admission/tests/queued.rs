//! Pods that Kueue queues, and pod groups: their hours are on the pods.

use super::*;

/// A pod as Kueue holds it back, and what Kueue makes of it: no annotation is copied.
fn queued(name: &str, pods: &[&str]) -> Value {
    let mut one = workload(name, 4, "", "Pending");
    one["metadata"].as_object_mut().unwrap().remove("annotations");
    let owner = |pod: &&str| json!({ "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod });
    one["metadata"]["ownerReferences"] = pods.iter().map(owner).collect();
    one
}

pub fn queued_pod(name: &str, hours: &str) -> Value {
    let amount = json!({ "nvidia.com/gpu": "2" });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "team-a", "uid": name, "annotations": { "headroom.dev/guarantee-hours": hours } },
        "spec": { "priorityClassName": "spot", "containers": [{ "name": "main", "resources": { "requests": amount, "limits": amount } }] },
        "status": { "phase": "Pending" },
    })
}

#[tokio::test]
async fn hours_of_queued_pods_and_of_pod_groups_are_read_from_the_pods() {
    let mut bench = bench(true).await;
    bench.offers.send_replace(offers([8, 2], Stage::Fresh));
    let pods = [("short", "1"), ("long", "4"), ("group-0", "1"), ("group-1", "4"), ("at-will", "0")];
    for (name, hours) in pods {
        bench.fake.put(queued_pod(name, hours));
    }
    see(&bench.fake, &bench.guarantees.shared, at(0));
    for (name, pods) in [("w-short", ["short"].as_slice()), ("w-long", &["long"]), ("w-group", &["group-0", "group-1"])]
    {
        bench.fake.put(queued(name, pods));
    }
    bench.fake.put(queued("w-at-will", &["at-will"]));
    bench.fake.put(queued("w-unseen", &["unseen"]));
    bench.look(0).await;
    let states = ["w-short", "w-long", "w-group", "w-at-will", "w-unseen"].map(|name| bench.state(name));
    assert_eq!(states, ["Ready", "Retry", "Retry", "Ready", "Retry"]);
    let ours = bench.check("w-short", 0);
    assert_eq!(ours["message"], "4 GPUs are guaranteed for 1h");
    assert!(ours["podSetUpdates"].is_null(), "pods keep their own hours, and Kueue refuses others");
    assert!(bench.check("w-long", 0)["message"].as_str().unwrap().contains("would exceed the quota of 2.000"));
    assert_eq!(bench.check("w-at-will", 0)["message"], "it asks for no hours, and runs at will");
    assert!(bench.check("w-unseen", 0)["message"].as_str().unwrap().contains("none of its pods is seen yet"));
}

#[tokio::test]
async fn running_pods_of_a_queued_group_are_not_counted_twice() {
    let mut bench = bench(true).await;
    let mut group = queued("group", &["group-0", "group-1"]);
    group["status"]["admissionChecks"][0]["state"] = "Ready".into();
    for name in ["group-0", "group-1"] {
        let mut pod = queued_pod(name, "1");
        pod["spec"]["nodeName"] = "n1".into();
        pod["status"] = json!({ "phase": "Running", "startTime": at(-120).to_string() });
        bench.fake.put(pod);
    }
    see(&bench.fake, &bench.guarantees.shared, at(-60));
    bench.fake.put(group);
    bench.fake.put(workload("next", 4, "1", "Pending"));
    bench.look(-60).await;
    assert_eq!(bench.state("next"), "Ready", "4 of 8 are promised");
}

#[tokio::test]
async fn a_pod_whose_hours_make_no_sense_is_rejected_and_so_is_its_group() {
    let mut bench = bench(true).await;
    let senseless = ["1000", "300", "169", "00", "abc", "-1", ""];
    let mut names = Vec::new();
    for (number, hours) in senseless.iter().enumerate() {
        names.push((format!("pod-{number}"), *hours));
        bench.fake.put(queued_pod(&names[number].0, hours));
        bench.fake.put(queued(&format!("w-pod-{number}"), &[&names[number].0]));
    }
    let mut labelled = queued_pod("labelled", "");
    labelled["metadata"].as_object_mut().unwrap().remove("annotations");
    labelled["metadata"]["labels"] = json!({ "headroom.dev/guarantee-hours": "1000" });
    bench.fake.put(labelled);
    bench.fake.put(queued("w-labelled", &["labelled"]));
    names.push(("labelled".to_owned(), "1000"));
    bench.fake.put(queued_pod("fine", "1"));
    bench.fake.put(queued("w-group", &["fine", "pod-0"]));
    see_with_faults(&bench);
    bench.look(0).await;
    for (name, hours) in &names {
        let check = bench.check(&format!("w-{name}"), 0);
        let message = check["message"].as_str().unwrap();
        let expected = format!("pod team-a/{name}: headroom.dev/guarantee-hours: {hours:?}: ");
        assert!(check["state"] == "Rejected" && message.starts_with(&expected), "{name}: {check}");
    }
    let group = bench.check("w-group", 0);
    let message = group["message"].as_str().unwrap();
    assert!(group["state"] == "Rejected" && message.starts_with("pod team-a/pod-0: "), "{group}");
}

/// Lets the view see the pods, whose annotations it finds fault with.
fn see_with_faults(bench: &Bench) {
    let mut view = bench.guarantees.shared.write();
    for pod in bench.fake.list("pods") {
        let pod = serde_json::from_value(pod).unwrap();
        view.see_pod(&pod, at(0)).unwrap().expect("it asks for GPUs");
    }
}

#[tokio::test]
async fn of_several_kinds_of_pods_the_most_hours_count_and_senseless_ones_of_any_are_rejected() {
    let mut bench = bench(true).await;
    bench.offers.send_replace(offers([8, 2], Stage::Fresh));
    let job_set = |name: &str, hours: [&str; 2]| {
        let mut one = workload(name, 4, "", "Pending");
        one["metadata"].as_object_mut().unwrap().remove("annotations");
        let mut sets = ["driver", "workers"].map(|name| {
            let mut set = one["spec"]["podSets"][0].clone();
            (set["name"], set["count"]) = (name.into(), 1.into());
            set
        });
        for (set, hours) in sets.iter_mut().zip(hours) {
            set["template"]["metadata"] = json!({ "annotations": { "headroom.dev/guarantee-hours": hours } });
        }
        let flavors = json!({ "nvidia.com/gpu": "a100-spot" });
        let assigned = ["driver", "workers"].map(|name| json!({ "name": name, "flavors": flavors, "count": 1 }));
        one["spec"]["podSets"] = sets.into_iter().collect();
        one["status"]["admission"]["podSetAssignments"] = assigned.into_iter().collect();
        one
    };
    let all = [("short", ["1", "1"]), ("mixed", ["1", "4"]), ("senseless", ["1", "abc"]), ("not-offered", ["1", "3"])];
    for (name, hours) in all {
        bench.fake.put(job_set(name, hours));
    }
    bench.look(0).await;
    let states = all.map(|(name, _)| bench.state(name));
    assert_eq!(states, ["Ready", "Retry", "Rejected", "Rejected"], "4 GPUs, and quotas of 8 for 1 h and of 2 for 4 h");
    assert!(bench.check("senseless", 0)["message"].as_str().unwrap().contains("\"abc\""));
}

/// The updates of the pods of a group of 2 GPUs each, which state these hours; none where they state nothing.
async fn written_on(hours: &[Option<&str>], count: usize) -> Value {
    let mut bench = bench(true).await;
    bench.offers.send_replace(offers([8, 8], Stage::Fresh));
    let names: Vec<String> = (0..hours.len()).map(|number| format!("group-{number}")).collect();
    for (name, hours) in names.iter().zip(hours) {
        let mut pod = queued_pod(name, hours.unwrap_or_default());
        if hours.is_none() {
            pod["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        bench.fake.put(pod);
    }
    see(&bench.fake, &bench.guarantees.shared, at(0));
    let mut group = queued("w-group", &names.iter().map(String::as_str).collect::<Vec<_>>());
    group["spec"]["podSets"][0]["count"] = count.into();
    group["status"]["admission"]["podSetAssignments"][0]["count"] = count.into();
    bench.fake.put(group);
    bench.look(0).await;
    assert_eq!(bench.state("w-group"), "Ready", "{hours:?}");
    bench.check("w-group", 0)["podSetUpdates"].clone()
}

#[tokio::test]
async fn pods_of_a_group_that_state_no_hours_get_those_of_the_others_where_kueue_takes_them() {
    let updates = written_on(&[Some("1"), None], 2).await;
    assert_eq!(updates[0]["annotations"]["headroom.dev/guarantee-hours"], "1", "{updates}");
    // Kueue ends a Workload for good where an update differs from what one of its pods states.
    let others: [(&[Option<&str>], usize); 5] = [
        (&[Some("1"), Some("4"), None], 3),
        (&[Some("1"), Some("0"), None], 3),
        (&[Some("1h"), None], 2),
        (&[Some("1"), Some("1")], 2),
        (&[Some("1"), None], 3),
    ];
    for (hours, count) in others {
        assert!(written_on(hours, count).await.is_null(), "{hours:?} of {count}");
    }
    assert!(written_on(&[None, None], 2).await.is_null(), "at will");
}

#[tokio::test]
async fn a_spot_pod_of_a_group_that_states_no_hours_gets_those_of_a_high_priority_one() {
    let mut bench = bench(true).await;
    let mut leader = queued_pod("leader", "1");
    leader["spec"]["priorityClassName"] = "high".into();
    let mut worker = queued_pod("worker", "");
    worker["metadata"].as_object_mut().unwrap().remove("annotations");
    bench.fake.put(leader);
    bench.fake.put(worker);
    see(&bench.fake, &bench.guarantees.shared, at(0));
    let mut group = queued("w-group", &["leader", "worker"]);
    let mut sets = ["high", "spot"].map(|class| {
        let mut set = group["spec"]["podSets"][0].clone();
        (set["name"], set["count"]) = (class.into(), 1.into());
        set["template"]["spec"]["priorityClassName"] = class.into();
        set
    });
    let assigned = sets
        .each_mut()
        .map(|set| json!({ "name": set["name"], "flavors": { "nvidia.com/gpu": "a100-spot" }, "count": 1 }));
    group["spec"]["podSets"] = sets.into_iter().collect();
    group["status"]["admission"]["podSetAssignments"] = assigned.into_iter().collect();
    bench.fake.put(group);
    bench.look(0).await;
    let check = bench.check("w-group", 0);
    assert_eq!(check["message"], "4 GPUs are guaranteed for 1h", "{check}");
    assert_eq!(check["podSetUpdates"][1]["annotations"]["headroom.dev/guarantee-hours"], "1", "{check}");
}
