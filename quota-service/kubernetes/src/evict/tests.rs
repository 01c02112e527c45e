//! Against an API server: looks follow each other without waiting, since time is passed in.

use super::*;
use crate::cluster::watch as watches;
use crate::tests::{client, eventually};
use crate::workloads::tests::{at, cluster, config, lead, see, shared, written};
use fake_kubernetes::{FakeKubernetes, Fault, What};
use serde_json::{Value, json};

struct Bench {
    fake: FakeKubernetes,
    evictor: Evictor,
    lead: watch::Sender<Option<Epoch>>,
}

/// A pod with 8 GPUs, all of a node; without a node it waits.
fn pod(name: &str, class: &str, node: Option<&str>) -> Value {
    let scheduled = match node {
        Some(_) => json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": at(-7_200).to_string() }),
        None => json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }),
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "team-a", "creationTimestamp": at(-7_200).to_string(), "labels": { "app": class },
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": class, "uid": "job", "controller": true }],
        },
        "spec": {
            "priorityClassName": class, "priority": if class == "spot" { -10 } else { 0 },
            "containers": [{ "name": "main", "resources": { "requests": { "nvidia.com/gpu": "8" } } }],
        },
        "status": { "phase": if node.is_some() { "Running" } else { "Pending" }, "conditions": [scheduled] },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

async fn evictor(fake: &FakeKubernetes, lead: watch::Receiver<Option<Epoch>>) -> Evictor {
    let client = client(fake).await;
    let notices = Notices::new(&client, &config()).unwrap();
    Evictor::new(client, &config(), shared(fake), Fence::new(lead), notices)
}

/// Two nodes, full of spot; the second one has more to lose.
async fn bench(leads: bool) -> Bench {
    let fake = cluster().await;
    let saved = |name: &str, node: &str, at_s: i64| {
        let mut pod = pod(name, "spot", Some(node));
        pod["metadata"]["annotations"] = json!({ "headroom.dev/checkpointed-at": at(at_s).to_string() });
        fake.put(pod)
    };
    saved("cheap", "n1", -60);
    saved("dear", "n2", -6_000);
    fake.grace(None);
    let (sender, receiver) = lead(leads);
    let evictor = evictor(&fake, receiver).await;
    Bench { fake, evictor, lead: sender }
}

impl Bench {
    async fn look(&mut self, seconds: i64) {
        see(&self.fake, &self.evictor.shared, at(seconds));
        self.evictor.look(at(seconds)).await;
    }

    async fn looks(&mut self, seconds: impl IntoIterator<Item = i64>) {
        for second in seconds {
            self.look(second).await;
        }
    }

    fn of(&self, name: &str) -> Option<Value> {
        self.fake.get("pods", "team-a", name)
    }

    fn announced(&self, name: &str) -> Value {
        self.of(name).unwrap()["metadata"]["annotations"]["headroom.dev/evict-at"].clone()
    }

    fn is_going(&self, name: &str) -> bool {
        self.of(name).unwrap()["metadata"]["deletionTimestamp"].is_string()
    }
}

#[tokio::test]
async fn the_cheapest_victim_gets_a_notice_then_is_evicted_and_no_other_pod_meanwhile() {
    let mut bench = bench(true).await;
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5]).await;
    assert_eq!(bench.fake.writes(), [], "the scheduler has the first word");
    bench.look(10).await;
    assert_eq!((bench.announced("cheap"), bench.announced("dear")), (json!(at(40).to_string()), Value::Null));
    bench.looks([15, 39]).await;
    assert!(!bench.is_going("cheap"), "it may save its work until then");
    bench.looks([40, 45, 50]).await;
    assert!(bench.is_going("cheap") && !bench.is_going("dear"));
    bench.fake.finish_deletions();
    bench.looks([55, 60, 65, 70]).await;
    assert_eq!((bench.announced("dear"), bench.of("cheap")), (Value::Null, None), "what was freed is held");
    let expected = ["create pods/eviction", "patch pods", "patch pods/status"];
    let expected = expected.map(|what| format!("{what} headroom-evict"));
    let writes: Vec<_> = bench.fake.writes().into_iter().filter(|one| !one.dry_run).collect();
    assert_eq!((written(&bench.fake), writes.len()), (BTreeSet::from(expected), 3));
    assert!(writes[2].body.contains("deleteOptions"), "with the UID as a precondition");
}

#[tokio::test]
async fn an_announcement_is_taken_back_once_nobody_waits() {
    let mut bench = bench(true).await;
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10]).await;
    assert!(bench.announced("cheap").is_string());
    bench.fake.delete("pods", "team-a", "hp");
    bench.looks([15, 60]).await;
    assert_eq!((bench.announced("cheap"), bench.is_going("cheap")), (Value::Null, false));
    // So is that of a leader before, which nobody remembers.
    let noted = json!({ "metadata": { "annotations": { "headroom.dev/evict-at": at(0).to_string() } } });
    bench.fake.patch("pods", "team-a", "dear", &noted);
    bench.look(65).await;
    assert_eq!(bench.announced("dear"), Value::Null);
}

#[tokio::test]
async fn a_budget_that_says_no_spares_the_pod_and_another_is_chosen() {
    let mut bench = bench(true).await;
    let labels = json!({ "metadata": { "labels": { "app": "kept" } } });
    bench.fake.patch("pods", "team-a", "cheap", &labels);
    bench.fake.put(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": "team-a" },
        "spec": { "selector": { "matchLabels": { "app": "kept" } } }, "status": { "disruptionsAllowed": 0 },
    }));
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10]).await;
    assert!(bench.fake.writes().iter().all(|write| write.dry_run), "nobody gets a notice for nothing");
    bench.look(15).await;
    assert_eq!((bench.announced("cheap").is_string(), bench.announced("dear").is_string()), (false, true));
    bench.looks([45, 50]).await;
    assert_eq!((bench.is_going("cheap"), bench.is_going("dear")), (false, true));
}

#[tokio::test]
async fn nobody_goes_for_a_pod_that_is_gated_or_fits_or_would_not_preempt_or_is_not_above() {
    let mut bench = bench(true).await;
    let mut gated = pod("gated", "high", None);
    gated["status"]["conditions"][0]["reason"] = "SchedulingGated".into();
    let mut meek = pod("meek", "high", None);
    meek["spec"]["preemptionPolicy"] = "Never".into();
    let mut low = pod("low", "low", None);
    low["spec"]["priority"] = (-10).into();
    for one in [gated, meek, low] {
        let name = one["metadata"]["name"].as_str().unwrap().to_owned();
        bench.fake.put(one);
        bench.looks([0, 5, 10, 15, 20]).await;
        assert_eq!(bench.fake.writes(), [], "{name}");
        bench.fake.delete("pods", "team-a", &name);
    }
    bench.fake.delete("pods", "team-a", "dear");
    bench.fake.put(pod("hp", "high", None));
    bench.looks([25, 30, 35, 40]).await;
    assert_eq!(bench.fake.writes(), [], "it fits where the dear one was");
}

#[tokio::test]
async fn a_pod_inside_its_guarantee_goes_last() {
    let mut bench = bench(true).await;
    let promised = json!({ "metadata": { "annotations": { "headroom.dev/guarantee-hours": "4" } } });
    bench.fake.patch("pods", "team-a", "cheap", &promised);
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10]).await;
    assert_eq!((bench.announced("cheap").is_string(), bench.announced("dear").is_string()), (false, true));
}

#[tokio::test]
async fn another_pod_of_the_same_name_is_not_evicted() {
    let mut bench = bench(true).await;
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10]).await;
    // The view has not heard of it yet.
    bench.fake.delete("pods", "team-a", "cheap");
    bench.fake.put(pod("cheap", "spot", Some("n1")));
    bench.evictor.look(at(40)).await;
    assert!(!bench.is_going("cheap"));
}

/// As the evictor leaves them: one victim gone, its node idle.
async fn freed() -> Bench {
    let mut bench = bench(true).await;
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10, 40]).await;
    bench.fake.finish_deletions();
    bench
}

#[tokio::test]
async fn a_pod_that_cannot_use_the_freed_gpus_gets_no_more_for_an_hour() {
    let mut bench = freed().await;
    bench.looks([45, 345]).await;
    // The room is there all along; then a pod that was there before is seen.
    bench.fake.put(pod("other", "high", Some("n1")));
    bench.looks([350, 355, 3_600]).await;
    assert_eq!(bench.announced("dear"), Value::Null);
    bench.looks([4_000, 4_005]).await;
    assert!(bench.announced("dear").is_string(), "the hour is over");
}

#[tokio::test]
async fn a_pod_is_not_punished_where_another_hp_pod_takes_what_was_freed_for_it() {
    let mut bench = freed().await;
    let mut lucky = pod("lucky", "high", Some("n1"));
    lucky["status"]["conditions"][0]["lastTransitionTime"] = at(42).to_string().into();
    bench.fake.put(lucky);
    bench.looks([45, 345, 350]).await;
    assert!(bench.announced("dear").is_string(), "it is its turn again");
}

/// A real kube-scheduler chose so: the pod that had waited as long took what was freed first, and the other waited in vain.
#[tokio::test]
async fn where_two_wait_the_second_eviction_is_for_the_one_whose_gpus_the_other_took() {
    let mut bench = bench(true).await;
    bench.fake.put(pod("one", "high", None));
    bench.fake.put(pod("two", "high", None));
    bench.looks([0, 5, 10]).await;
    let until = at(40).to_string();
    assert_eq!((bench.announced("cheap"), bench.announced("dear")), (json!(until), json!(until)));
    let saved = json!({ "metadata": { "annotations": { "headroom.dev/evict-ready": until } } });
    bench.fake.patch("pods", "team-a", "cheap", &saved);
    bench.look(15).await;
    assert!(bench.is_going("cheap") && !bench.is_going("dear"));
    bench.fake.finish_deletions();
    let freed_for = bench.evictor.claims.iter().find(|(_, claim)| !claim.evicted.is_empty()).map(|(uid, _)| *uid);
    let one = Uid::of(bench.of("one").unwrap()["metadata"]["uid"].as_str().unwrap());
    let (lucky, robbed) = if freed_for == Some(one) { ("two", "one") } else { ("one", "two") };
    let mut placed = pod(lucky, "high", Some("n1"));
    placed["metadata"]["uid"] = bench.of(lucky).unwrap()["metadata"]["uid"].clone();
    placed["status"]["conditions"][0]["lastTransitionTime"] = at(18).to_string().into();
    bench.fake.put(placed);
    bench.looks([20, 25]).await;
    assert_eq!((bench.announced("dear"), bench.is_going("dear")), (json!(until), false), "{robbed} still waits");
    bench.looks([40]).await;
    assert!(bench.is_going("dear"));
}

#[tokio::test]
async fn all_victims_of_a_pod_go_or_none() {
    let fake = cluster().await;
    // Both go for one HP pod of 8 GPUs on a node of its own.
    for (name, app) in [("one", "free"), ("two", "kept")] {
        let mut half = pod(name, "spot", Some("n1"));
        half["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "4".into();
        half["metadata"]["labels"]["app"] = app.into();
        fake.put(half);
    }
    fake.put(pod("busy", "high", Some("n2")));
    fake.grace(None);
    let (sender, receiver) = lead(true);
    let evictor = evictor(&fake, receiver).await;
    let mut bench = Bench { fake, evictor, lead: sender };
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10]).await;
    assert!(bench.announced("one").is_string() && bench.announced("two").is_string());
    // A budget that came after the notices.
    bench.fake.put(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": "team-a" },
        "spec": { "selector": { "matchLabels": { "app": "kept" } } }, "status": { "disruptionsAllowed": 0 },
    }));
    bench.looks([40, 45]).await;
    assert!(!bench.is_going("one") && !bench.is_going("two"), "a trial found the budget");
    assert_eq!((bench.announced("one"), bench.announced("two")), (Value::Null, Value::Null));
    // A busy server is no budget: no victim is spared for it.
    bench.fake.delete("poddisruptionbudgets", "team-a", "b");
    bench.looks([400, 405]).await;
    assert!(bench.announced("two").is_string());
    bench.fake.fault(Fault::new(What::Throttle(1), 1).resource("pods/eviction"));
    bench.looks([440]).await;
    assert!(!bench.is_going("one") && !bench.is_going("two"));
    bench.looks([445]).await;
    assert!(bench.is_going("one") && bench.is_going("two"));
}

#[tokio::test]
async fn a_replica_that_does_not_lead_writes_nothing() {
    let mut bench = bench(false).await;
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10, 15, 60]).await;
    assert_eq!(bench.fake.writes(), []);
    bench.lead.send_replace(lead(true).1.borrow().clone());
    bench.look(65).await;
    assert!(bench.announced("cheap").is_string());
    bench.lead.send_replace(None);
    bench.look(120).await;
    assert!(!bench.is_going("cheap"), "it leads no more");
}

#[test]
fn the_fourth_eviction_within_an_hour_is_a_cycle() {
    let mut cycles = Cycles::default();
    let noted = [0, 10, 20, 30].map(|seconds| cycles.evicted("Job a/b", at(seconds)));
    assert_eq!(noted, [false, false, false, true]);
    cycles.forget(at(3_615));
    assert!(!cycles.evicted("Job a/b", at(3_615)), "two are of the last hour, and this one");
    assert!(!cycles.evicted("Job a/c", at(3_615)));
}

#[tokio::test]
async fn it_evicts_by_what_the_watches_tell_until_it_is_stopped() {
    let Bench { fake, .. } = bench(true).await;
    fake.put(pod("hp", "high", None));
    let client = client(&fake).await;
    let shared = shared(&fake);
    let watching = tokio::spawn(watches::run(client.clone(), Arc::clone(&shared)));
    let (stopper, stop) = watch::channel(false);
    let (_offers, taken) = watch::channel(Arc::new(Offers::default()));
    let (_lead, leading) = lead(true);
    let config = Config { evict_grace_s: 0, ..config() };
    let running = tokio::spawn(run(client, Arc::new(config), shared, taken, leading, stop));
    let is_going = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    eventually("one is evicted", || fake.list("pods").iter().any(is_going)).await;
    stopper.send_replace(true);
    running.await.unwrap();
    watching.abort();
}

#[tokio::test]
async fn a_victim_that_says_that_its_work_is_saved_is_evicted_at_once() {
    let mut bench = bench(true).await;
    bench.fake.put(pod("hp", "high", None));
    bench.looks([0, 5, 10, 15]).await;
    assert_eq!(bench.announced("cheap"), at(40).to_string());
    let say =
        |time: i64| json!({ "metadata": { "annotations": { "headroom.dev/evict-ready": at(time).to_string() } } });
    bench.fake.patch("pods", "team-a", "cheap", &say(20));
    bench.look(20).await;
    assert!(!bench.is_going("cheap"), "that was for another eviction");
    bench.fake.patch("pods", "team-a", "cheap", &say(40));
    bench.look(25).await;
    assert!(bench.is_going("cheap"), "15 s before its time");
}
