//! Jobs that grow while they run: Kueue makes a slice, a Workload that takes the place of the one before.

use super::*;

/// The slice of so many GPUs of the job `grows`, and the one whose place it takes.
fn slice(name: &str, gpus: u32, before: Option<&str>) -> Value {
    let mut one = workload(name, gpus, "1", "Pending");
    one["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "grows", "uid": "grows", "controller": true }]);
    if let Some(before) = before {
        one["metadata"]["annotations"]["kueue.x-k8s.io/workload-slice-replacement-for"] =
            format!("team-a/{before}").into();
    }
    one
}

/// As Kueue leaves the slice before: admitted, and finished.
fn replaced(name: &str, gpus: u32) -> Value {
    let mut one = with(with(slice(name, gpus, None), "Admitted", -120), "Finished", -1);
    one["status"]["admissionChecks"][0]["state"] = "Ready".into();
    one
}

/// A bench with so many running pods of the job, of 2 GPUs each.
async fn running(pods: u32) -> Bench {
    let bench = bench(true).await;
    for number in 0..pods {
        let mut pod = queued::queued_pod(&format!("grows-{number}"), "1");
        pod["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "grows", "uid": "grows", "controller": true }]);
        pod["spec"]["nodeName"] = "n1".into();
        pod["status"] = json!({ "phase": "Running", "startTime": at(-120).to_string() });
        bench.fake.put(pod);
    }
    see(&bench.fake, &bench.guarantees.shared, at(0));
    bench
}

#[tokio::test]
async fn gpus_of_the_slice_before_are_not_counted_beside_those_of_a_slice() {
    let mut bench = running(2).await;
    bench.fake.put(replaced("first", 4));
    bench.fake.put(slice("second", 8, Some("first")));
    bench.look(0).await;
    assert_eq!(bench.state("second"), "Ready", "4 of 8 are promised to this job, and it asks for 4 more");
    // All 8 are promised from now on: 4 to pods that run, 4 to pods that are not there yet.
    bench.fake.put(workload("next", 2, "1", "Pending"));
    bench.look(1).await;
    assert_eq!(bench.state("next"), "Retry");
}

#[tokio::test]
async fn a_slice_without_room_is_not_answered_since_kueue_would_stop_the_pods_that_run() {
    let mut bench = running(2).await;
    bench.fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }));
    bench.fake.put(replaced("first", 4));
    bench.fake.put(slice("second", 10, Some("first")));
    bench.fake.put(slice("third", 12, Some("second")));
    let mut senseless = slice("senseless", 10, Some("first"));
    senseless["metadata"]["annotations"]["headroom.dev/guarantee-hours"] = "3".into();
    bench.fake.put(senseless);
    bench.fake.put(slice("gone", 10, Some("deleted")));
    bench.look(0).await;
    let states = ["second", "third", "senseless", "gone"].map(|name| bench.state(name));
    assert_eq!(states, ["Pending", "Pending", "Pending", "Pending"]);
    // As soon as there is room it goes on.
    bench.offers.send_replace(offers([16, 4], Stage::Fresh));
    bench.look(60).await;
    assert_eq!([bench.state("second"), bench.state("senseless")], ["Ready", "Pending"]);
}

#[tokio::test]
async fn a_slice_of_a_job_that_never_ran_waits_as_any_other() {
    let mut bench = bench(true).await;
    bench.fake.put(with(slice("first", 10, None), "Finished", -1));
    bench.fake.put(slice("second", 12, Some("first")));
    bench.look(0).await;
    assert_eq!(bench.state("second"), "Retry");
}

#[tokio::test]
async fn running_pods_of_a_job_are_not_counted_twice() {
    let mut bench = running(2).await;
    let mut first = slice("first", 4, None);
    first["status"]["admissionChecks"][0]["state"] = "Ready".into();
    first["status"]["admissionChecks"][0]["lastTransitionTime"] = at(-120).to_string().into();
    bench.fake.put(with(first, "Admitted", -120));
    bench.fake.put(workload("next", 4, "1", "Pending"));
    bench.look(0).await;
    assert_eq!(bench.state("next"), "Ready", "4 of 8 are promised");
}
