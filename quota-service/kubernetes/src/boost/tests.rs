//! Against an API server with Kueue's kinds.

use super::level::{DWELL_S, level};
use super::*;
use crate::tests::{client, eventually};
use crate::workloads::tests::{at, cluster, config, lead, see, shared, tell, with, workload, written};
use fake_kubernetes::{FakeKubernetes, Fault as Met, What};
use serde_json::Value;
use std::collections::BTreeSet;

struct Bench {
    fake: FakeKubernetes,
    boosts: Boosts,
}

async fn bench(leads: bool) -> Bench {
    let fake = cluster().await;
    let (sender, receiver) = lead(leads);
    // It leads for as long as it says.
    std::mem::forget(sender);
    let shared = shared(&fake);
    let store = Store::new(shared.read().reading().clone(), "headroom-guarantee");
    let boosts = Boosts::new(client(&fake).await, &config(), shared, Fence::new(receiver), store);
    Bench { fake, boosts }
}

impl Bench {
    async fn look(&mut self, seconds: i64) {
        tell(&self.fake, &self.boosts.store);
        self.boosts.look(at(seconds)).await;
    }

    fn boost(&self, name: &str) -> Value {
        self.fake.get("workloads", "team-a", name).unwrap()["metadata"]["annotations"][PRIORITY_BOOST].clone()
    }
}

fn admitted(name: &str, gpus: u32, since: i64) -> Value {
    with(workload(name, gpus, "1", "Ready"), "Admitted", since)
}

#[test]
fn levels_rise_by_what_would_be_lost_and_are_five() {
    let of = |gpu_hours: u64| level(8, gpu_hours * 3_600 / 8);
    assert_eq!([0, 1, 3, 4, 15, 16, 63, 64, 1_000_000].map(of), [0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(level(u64::MAX, u64::MAX), 4);
}

#[tokio::test]
async fn who_would_lose_more_is_boosted_more_but_not_every_minute() {
    let mut bench = bench(true).await;
    bench.fake.put(admitted("large", 16, -7_200));
    bench.fake.put(admitted("small", 2, -600));
    bench.look(0).await;
    assert_eq!((bench.boost("large"), bench.boost("small")), ("3".into(), Value::Null));
    let saved = json!({ "metadata": { "annotations": { "headroom.dev/checkpointed-at": at(30).to_string() } } });
    bench.fake.patch("workloads", "team-a", "large", &saved);
    bench.look(DWELL_S - 1).await;
    assert_eq!(bench.boost("large"), "3", "it has changed a moment ago");
    bench.look(DWELL_S).await;
    assert_eq!(bench.boost("large"), "1", "some nine minutes of 16 GPUs");
    let expected = BTreeSet::from(["patch workloads headroom-boost".to_owned()]);
    assert_eq!((written(&bench.fake), bench.fake.writes().iter().any(|one| one.force)), (expected, false));
}

#[tokio::test]
async fn a_checkpoint_in_the_future_counts_as_now_and_one_before_it_ran_as_none() {
    let mut bench = bench(true).await;
    for (name, saved) in [("future", 90_000), ("past", -900_000)] {
        let mut one = admitted(name, 16, -7_200);
        one["metadata"]["annotations"]["headroom.dev/checkpointed-at"] = at(saved).to_string().into();
        bench.fake.put(one);
    }
    bench.look(0).await;
    assert_eq!((bench.boost("future"), bench.boost("past")), (Value::Null, "3".into()));
}

#[tokio::test]
async fn checkpoints_of_queued_pods_count_for_their_workload() {
    let mut bench = bench(true).await;
    let amount = json!({ "nvidia.com/gpu": "8" });
    bench.fake.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "namespace": "team-a", "uid": "p", "annotations": { "headroom.dev/checkpointed-at": at(-900).to_string() } },
        "spec": { "priorityClassName": "spot", "containers": [{ "name": "main", "resources": { "requests": amount, "limits": amount } }] },
    }));
    see(&bench.fake, &bench.boosts.shared, at(0));
    let mut one = admitted("w", 8, -7_200);
    one["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p" }]);
    bench.fake.put(one);
    bench.look(0).await;
    assert_eq!(bench.boost("w"), "1", "a quarter of an hour of 8 GPUs, not two hours");
}

#[tokio::test]
async fn who_is_evicted_loses_the_boost_and_who_is_not_ours_gets_none() {
    let mut bench = bench(true).await;
    bench.fake.put(admitted("ours", 16, -7_200));
    let mut elsewhere = admitted("elsewhere", 16, -7_200);
    elsewhere["status"]["admission"]["clusterQueue"] = "another".into();
    bench.fake.put(elsewhere);
    let mut hp = admitted("hp", 16, -7_200);
    hp["spec"]["podSets"][0]["template"]["spec"]["priorityClassName"] = "high".into();
    bench.fake.put(hp);
    bench.fake.put(with(admitted("finished", 16, -7_200), "Finished", -60));
    bench.look(0).await;
    let boosts = ["ours", "elsewhere", "hp", "finished"].map(|name| bench.boost(name));
    assert_eq!(boosts, ["3".into(), Value::Null, Value::Null, Value::Null]);
    let conditions = json!([{ "type": "Evicted", "status": "True", "reason": "Preempted", "message": "", "lastTransitionTime": at(60).to_string() }]);
    bench.fake.patch("workloads", "team-a", "ours", &json!({ "status": { "conditions": conditions } }));
    bench.look(61).await;
    assert_eq!(bench.boost("ours"), Value::Null, "at once: it must not come back with it");
}

#[tokio::test]
async fn who_waits_for_quota_has_no_boost_and_gets_one_again_only_after_a_while() {
    let mut bench = bench(true).await;
    bench.fake.put(admitted("w", 16, -7_200));
    bench.look(0).await;
    assert_eq!(bench.boost("w"), "3");
    // Kueue has evicted it and it waits in its queue.
    bench.fake.patch("workloads", "team-a", "w", &json!({ "status": { "conditions": [] } }));
    bench.look(30).await;
    assert_eq!(bench.boost("w"), Value::Null);
    let conditions = admitted("w", 16, -7_200)["status"]["conditions"].clone();
    bench.fake.patch("workloads", "team-a", "w", &json!({ "status": { "conditions": conditions } }));
    bench.look(29 + DWELL_S).await;
    assert_eq!(bench.boost("w"), Value::Null, "it has changed a moment ago");
    bench.look(30 + DWELL_S).await;
    assert_eq!(bench.boost("w"), "3");
}

#[tokio::test]
async fn what_another_controller_writes_is_left_to_it() {
    let mut bench = bench(true).await;
    bench.fake.put(admitted("w", 16, -7_200));
    let theirs = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": { "name": "w", "namespace": "team-a", "annotations": { PRIORITY_BOOST: "100" } },
    });
    bench.fake.apply_as("another", &theirs);
    // The owner is known only after an attempt; a foreign boost is left alone for as long as one of ours.
    bench.look(0).await;
    assert_eq!(bench.fake.writes(), []);
    bench.look(DWELL_S).await;
    assert_eq!((bench.boost("w"), bench.fake.writes().len()), ("100".into(), 1));
    bench.look(3 * DWELL_S).await;
    assert_eq!(bench.fake.writes().len(), 1, "once is enough");
}

#[tokio::test]
async fn who_does_not_lead_writes_nothing_and_a_busy_server_is_left_alone() {
    let mut idle = bench(false).await;
    idle.fake.put(admitted("w", 16, -7_200));
    idle.look(0).await;
    assert_eq!(idle.fake.writes(), []);
    let mut bench = bench(true).await;
    bench.fake.put(admitted("a", 16, -7_200));
    bench.fake.put(admitted("b", 16, -7_200));
    bench.fake.fault(Met::new(What::Throttle(60), 1).resource("workloads"));
    bench.look(0).await;
    bench.look(1).await;
    assert_eq!(bench.fake.writes().len(), 1, "the second was not tried");
}

#[tokio::test]
async fn it_boosts_by_what_the_watch_tells_until_it_is_stopped() {
    let fake = cluster().await;
    // Years ago by any clock.
    fake.put(admitted("w", 16, -900_000_000));
    let (stopper, stop) = watch::channel(false);
    let (_offers, taken) = watch::channel(Arc::new(Offers::default()));
    let (_lead, leading) = lead(true);
    let shared = shared(&fake);
    let running = tokio::spawn(run(client(&fake).await, Arc::new(config()), shared, taken, leading, stop));
    let boost = || fake.get("workloads", "team-a", "w").unwrap()["metadata"]["annotations"][PRIORITY_BOOST].is_string();
    eventually("it is boosted", boost).await;
    let evicted = with(admitted("w", 16, -900_000_000), "Evicted", 0)["status"]["conditions"].clone();
    fake.patch("workloads", "team-a", "w", &json!({ "status": { "conditions": evicted } }));
    eventually("it is evicted, and boosted no more", || !boost()).await;
    stopper.send_replace(true);
    running.await.unwrap();
}

#[tokio::test]
async fn a_change_of_a_workload_wakes_the_next_round_and_the_boost_goes_with_it() {
    let fake = cluster().await;
    fake.put(admitted("w", 16, -900_000_000));
    let (_lead, leading) = lead(true);
    let shared = shared(&fake);
    let store = Store::new(shared.read().reading().clone(), "headroom-guarantee");
    let boosts = Boosts::new(client(&fake).await, &config(), shared, Fence::new(leading), Arc::clone(&store));
    let boost = || fake.get("workloads", "team-a", "w").unwrap()["metadata"]["annotations"][PRIORITY_BOOST].is_string();
    let looking = async {
        eventually("the first list wakes it", boost).await;
        let evicted = with(admitted("w", 16, -900_000_000), "Evicted", 0)["status"]["conditions"].clone();
        fake.patch("workloads", "team-a", "w", &json!({ "status": { "conditions": evicted } }));
        eventually("the eviction wakes it", || !boost()).await;
    };
    // No round comes by the clock while the test waits.
    tokio::select! {
        () = watch_into(client(&fake).await, store) => {}
        () = rounds(boosts, Duration::from_hours(1)) => {}
        () = looking => {}
    }
}
