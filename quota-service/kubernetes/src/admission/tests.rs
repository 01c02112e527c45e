//! Against an API server with Kueue's kinds.

mod claimed;
mod classes;
mod queued;
mod slices;

use super::decide::{Answer, MESSAGE_MOST, Planned, World, plan, retry_after_s};
use super::*;
use crate::config::Flavors;
use crate::tests::{client, eventually};
use crate::workloads::tests::{at, cluster, config, lead, model, offers, see, shared, tell, with, workload, written};
use fake_kubernetes::{FakeKubernetes, Fault as Met, Rule, What};
use placement::Stage;

struct Bench {
    fake: FakeKubernetes,
    guarantees: Guarantees,
    offers: watch::Sender<Arc<Offers>>,
    lead: watch::Sender<Option<Epoch>>,
}

async fn bench(leads: bool) -> Bench {
    let fake = cluster().await;
    let (offers_sent, taken) = watch::channel(offers([8, 4], Stage::Fresh));
    let (sender, receiver) = lead(leads);
    let store = Store::new(shared(&fake).read().reading().clone(), "headroom-guarantee");
    let guarantees = Guarantees::new(
        client(&fake).await,
        &config(),
        shared(&fake),
        (taken, Fence::new(receiver)),
        Arc::clone(&store),
    );
    Bench { fake, guarantees, offers: offers_sent, lead: sender }
}

impl Bench {
    async fn look(&mut self, seconds: i64) {
        tell(&self.fake, &self.guarantees.store);
        self.guarantees.look(at(seconds)).await;
    }

    fn check(&self, name: &str, of: usize) -> Value {
        self.fake.get("workloads", "team-a", name).unwrap()["status"]["admissionChecks"][of].clone()
    }

    fn state(&self, name: &str) -> String {
        self.check(name, 0)["state"].as_str().unwrap().to_owned()
    }
}

/// The plan for these Workloads, without a server.
fn planned(workloads: &[Value], offers: &Offers, seconds: i64, view: &crate::view::View) -> Planned {
    let read = |value: &Value| {
        WorkloadFacts::read(&serde_json::from_value(value.clone()).unwrap(), view.reading(), "headroom-guarantee")
    };
    let facts: Vec<WorkloadFacts> = workloads.iter().map(read).collect();
    let (flavors, tries) = ("a100-spot=A100".parse::<Flavors>().unwrap().0, BTreeMap::new());
    plan(&facts, &World { view, offers, flavors: &flavors, tries: &tries, now: at(seconds) })
}

fn states(planned: &Planned) -> Vec<(&str, &str)> {
    planned.answers.iter().map(|(one, answer)| (one.name.as_str(), answer.state().as_str())).collect()
}

#[test]
fn waits_double_and_are_never_nothing() {
    let waits: Vec<u64> = [0, 1, 2, 3, 4, 64, u32::MAX].into_iter().map(retry_after_s).collect();
    assert_eq!(waits, [30, 60, 120, 240, 300, 300, 300]);
}

#[test]
fn a_message_is_cut_between_characters() {
    let answer = Answer::Ready { message: "é".repeat(MESSAGE_MOST) };
    assert_eq!(answer.message().len(), MESSAGE_MOST);
    let answer = Answer::Ready { message: format!("a{}", "é".repeat(MESSAGE_MOST)) };
    assert_eq!(answer.message().len(), MESSAGE_MOST - 1);
}

#[tokio::test]
async fn the_oldest_comes_first_and_what_it_is_given_counts_for_the_next() {
    let fake = cluster().await;
    let shared = shared(&fake);
    let view = shared.read();
    let mut older = workload("older", 6, "1", "Pending");
    older["metadata"]["creationTimestamp"] = "2026-11-22T09:00:00Z".into();
    let all = [workload("a", 4, "1", "Pending"), older.clone(), workload("b", 2, "1", "Pending")];
    let fresh = offers([8, 4], Stage::Fresh);
    let result = planned(&all, &fresh, 0, &view);
    assert_eq!(states(&result), [("older", "Ready"), ("a", "Retry"), ("b", "Ready")]);
    assert_eq!(result.waits_s, BTreeMap::from([(model(), 1_800)]));
    // Ready and without pods it counts for ten minutes more.
    older["status"]["admissionChecks"][0]["state"] = "Ready".into();
    let next = [older, workload("a", 4, "1", "Pending")];
    assert_eq!(states(&planned(&next, &fresh, -10, &view)), [("a", "Retry")]);
    assert_eq!(states(&planned(&next, &fresh, 0, &view)), [("a", "Ready")]);
}

#[tokio::test]
async fn a_high_priority_workload_that_states_hours_is_let_through_and_guaranteed_nothing() {
    let mut bench = bench(true).await;
    let of_class = |name: &str, hours: &str, class: &str| {
        let mut made = workload(name, 64, hours, "Pending");
        made["spec"]["podSets"][0]["template"]["spec"]["priorityClassName"] = class.into();
        made
    };
    bench.fake.put(of_class("high", "4", "high"));
    bench.fake.put(of_class("senseless", "many", "high"));
    bench.look(0).await;
    for name in ["high", "senseless"] {
        let ours = bench.check(name, 0);
        assert_eq!(ours["state"], "Ready", "more than any quota, and hours that make no sense: {ours}");
        assert!(ours["message"].as_str().unwrap().starts_with("it is high-priority: guaranteed hours are for spot"));
        assert!(ours["podSetUpdates"].is_null(), "no hours are written on its pods: {ours}");
    }
    // A Workload with spot pods beside them is promised what these state.
    let mut mixed = of_class("mixed", "3", "high");
    let mut spot = mixed["spec"]["podSets"][0].clone();
    spot["name"] = "workers".into();
    spot["template"]["spec"]["priorityClassName"] = "spot".into();
    mixed["spec"]["podSets"].as_array_mut().unwrap().push(spot);
    bench.fake.put(mixed);
    bench.look(0).await;
    assert_eq!(bench.state("mixed"), "Rejected", "3 hours are not offered");
}

#[tokio::test]
async fn only_what_can_never_be_is_rejected() {
    let fake = cluster().await;
    let shared = shared(&fake);
    let view = shared.read();
    let one = |hours: &str, offers: &Offers| {
        let result = planned(&[workload("w", 4, hours, "Pending")], offers, 0, &view);
        let (_, answer) = result.answers.into_iter().next().unwrap();
        (answer.state().as_str(), answer.message().to_owned())
    };
    let fresh = offers([8, 4], Stage::Fresh);
    assert_eq!(one("0", &fresh).0, "Ready");
    let (state, why) = one("many", &fresh);
    assert!(state == "Rejected" && why.contains("headroom.dev/guarantee-hours: \"many\""), "{why}");
    let (state, why) = one("3", &fresh);
    assert!(state == "Rejected" && why.contains("a guarantee of 3h is not offered: choose "), "{why}");
    let (state, why) = one("4", &offers([8, 2], Stage::Fresh));
    assert!(state == "Retry" && why.contains("would exceed the quota of 2.000"), "{why}");
    assert_eq!(one("3", &offers([8, 4], Stage::Conservative)).0, "Retry", "who knows what is offered later");
    assert_eq!(one("1", &Offers::default()).0, "Retry");
    assert_eq!(one("1", &offers([8, 4], Stage::Stale)).0, "Ready", "the last value stands");
}

#[tokio::test]
async fn who_is_admitted_evicted_finished_or_answered_is_left_alone() {
    let fake = cluster().await;
    let shared = shared(&fake);
    let view = shared.read();
    let none = offers([0, 0], Stage::Fresh);
    let one = |name: &str, state: &str| workload(name, 4, "1", state);
    let mut due_later = one("retry", "Retry");
    due_later["status"]["admissionChecks"][0]["requeueAfterSeconds"] = 700.into();
    let mut idle = one("idle", "Pending");
    idle["spec"]["active"] = false.into();
    let mut unreserved = one("unreserved", "Pending");
    unreserved["status"]["conditions"] = json!([]);
    let all = [
        one("ready", "Ready"),
        one("rejected", "Rejected"),
        one("unknown", "Else"),
        with(one("admitted", "Retry"), "Admitted", -60),
        with(one("evicted", "Pending"), "Evicted", -60),
        with(one("finished", "Pending"), "Finished", -60),
        due_later,
        idle,
        unreserved,
    ];
    assert_eq!(states(&planned(&all, &none, 0, &view)), []);
    assert_eq!(states(&planned(&all, &none, 200, &view)), [("retry", "Retry")], "its time has come");
}

#[tokio::test]
async fn a_reservation_that_stands_after_an_eviction_is_reported_and_nothing_is_answered() {
    let mut bench = bench(true).await;
    bench.fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }));
    // As Kueue leaves it: the check is reset to Pending, the Workload is evicted, its reservation stands.
    bench.fake.put(with(workload("stuck", 4, "1", "Pending"), "Evicted", -60));
    bench.fake.put(with(workload("retries", 4, "1", "Retry"), "Evicted", -60));
    let facts = |bench: &Bench| bench.guarantees.store.all().unwrap();
    bench.look(0).await;
    assert!(decide::held(&facts(&bench), at(59)).is_empty(), "it may take Kueue a moment");
    let held =
        |seconds| decide::held(&facts(&bench), at(seconds)).iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    assert_eq!(held(60), ["retries", "stuck"]);
    bench.look(60).await;
    assert_eq!(
        [bench.state("stuck"), bench.state("retries")],
        ["Pending", "Retry"],
        "an answer while it is evicted would stick"
    );
}

#[tokio::test]
async fn a_reservation_that_stands_in_retry_is_reported_from_two_minutes_after_the_first() {
    let mut bench = bench(true).await;
    // As Kueue of August 2026 leaves it: it evicts at the end of the wait, reserves again within a second, and counts.
    let retry = |since: i64, retries: u32| {
        let mut one = workload("waits", 16, "1", "Retry");
        let check = &mut one["status"]["admissionChecks"][0];
        check["lastTransitionTime"] = at(since).to_string().into();
        check["requeueAfterSeconds"] = retry_after_s(retries).into();
        check["retryCount"] = retries.into();
        one
    };
    let mut held = async |workload: Value, seconds: i64| {
        bench.fake.put(workload);
        bench.look(seconds).await;
        decide::held(&bench.guarantees.store.all().unwrap(), at(seconds)).len()
    };
    assert_eq!(held(retry(0, 0), 29).await, 0);
    assert_eq!(held(retry(31, 1), 90).await, 0);
    assert_eq!([held(retry(92, 2), 121).await, held(retry(92, 2), 122).await], [0, 1]);
    assert_eq!([held(retry(213, 3), 222).await, held(retry(213, 3), 223).await], [0, 1], "it may take Kueue a moment");
    let mut given_back = retry(213, 3);
    given_back["status"]["conditions"] = json!([]);
    assert_eq!(held(given_back, 300).await, 0);
}

#[tokio::test]
async fn a_check_is_made_active_and_answered_beside_that_of_another_controller() {
    let mut bench = bench(true).await;
    bench.fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }));
    // As Kueue writes it: it owns the entries, and an apply that takes nothing is refused.
    bench.fake.apply_as("kueue-admission", &workload("w", 4, "4", "Pending"));
    let path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads/w/status";
    let mut ready = workload("w", 4, "4", "Ready");
    ready["metadata"].as_object_mut().unwrap().remove("uid");
    let unforced = bench.guarantees.calls.apply(path, GUARANTEE_MANAGER, &ready).await;
    assert!(matches!(unforced, Err(Fault::Owned { .. })), "{unforced:?}");
    bench.look(0).await;
    let check = bench.fake.get("admissionchecks", "", "headroom-guarantee").unwrap();
    assert_eq!(check["spec"]["controllerName"], "headroom.dev/guarantee");
    let active = &check["status"]["conditions"][0];
    assert_eq!(
        (&active["type"], &active["status"], &active["observedGeneration"]),
        (&json!("Active"), &json!("True"), &json!(1))
    );
    let ours = bench.check("w", 0);
    assert_eq!((&ours["state"], &ours["message"]), (&json!("Ready"), &json!("4 GPUs are guaranteed for 4h")));
    assert_eq!(ours["podSetUpdates"][0]["annotations"]["headroom.dev/guarantee-hours"], "4");
    assert_eq!(bench.check("w", 1), workload("w", 4, "4", "Pending")["status"]["admissionChecks"][1]);
    // It is Ready, and stays so with any quota.
    bench.offers.send_replace(offers([0, 0], Stage::Conservative));
    bench.fake.forget_requests();
    bench.look(60).await;
    assert_eq!((bench.state("w"), written(&bench.fake).len()), ("Ready".to_owned(), 0));
}

#[tokio::test]
async fn who_is_refused_comes_again_later_and_later() {
    let mut bench = bench(true).await;
    bench.fake.put(workload("w", 16, "1", "Pending"));
    for (seconds, after_s) in [(0, 30), (40, 60), (110, 120)] {
        bench.look(seconds).await;
        let check = bench.check("w", 0);
        assert_eq!((&check["state"], &check["requeueAfterSeconds"]), (&json!("Retry"), &json!(after_s)));
        assert!(check["message"].as_str().unwrap().contains("would exceed the quota of 8.000"));
        // Kueue has let it in again.
        let pending = json!([{ "name": "headroom-guarantee", "state": "Pending", "message": "", "lastTransitionTime": at(seconds).to_string() }]);
        bench.fake.patch("workloads", "team-a", "w", &json!({ "status": { "admissionChecks": pending } }));
    }
    assert_eq!(bench.guarantees.shared.workload_wait_s(&model()), 1_910, "since it was made");
    let expected = ["create admissionchecks", "patch admissionchecks/status", "patch workloads/status"];
    let expected = expected.map(|one| format!("{one} headroom-guarantee"));
    assert_eq!(written(&bench.fake), BTreeSet::from(expected));
}

#[tokio::test]
async fn who_does_not_lead_writes_nothing_and_knows_how_long_workloads_wait() {
    let mut bench = bench(false).await;
    bench.fake.put(workload("w", 16, "1", "Pending"));
    bench.look(0).await;
    assert_eq!(bench.fake.writes(), []);
    assert_eq!(bench.guarantees.shared.workload_wait_s(&model()), 1_800);
    bench.lead.send_replace(lead(true).1.borrow().clone());
    bench.look(1).await;
    assert_eq!(bench.state("w"), "Retry");
}

#[tokio::test]
async fn an_admitted_workload_whose_check_is_new_goes_on_and_is_answered_without_quota() {
    let mut bench = bench(true).await;
    // As Kueue leaves it where the AdmissionCheck was deleted and made again.
    bench.fake.put(with(workload("runs", 16, "1", "Pending"), "Admitted", -900));
    bench.fake.put(with(workload("began", 6, "1", "Pending"), "Admitted", -60));
    bench.fake.put(with(with(workload("evicted", 2, "1", "Pending"), "Admitted", -60), "Evicted", -1));
    bench.fake.put(workload("next", 4, "1", "Pending"));
    bench.look(0).await;
    let states = ["runs", "began", "evicted", "next"].map(|name| bench.state(name));
    assert_eq!(states, ["Ready", "Ready", "Pending", "Retry"], "its 6 GPUs count, whose pods are not there yet");
    assert!(bench.check("runs", 0)["message"].as_str().unwrap().contains("admitted before this check was there"));
}

#[tokio::test]
async fn a_check_of_another_controller_is_left_alone() {
    let mut bench = bench(true).await;
    let spec = json!({ "controllerName": "example.com/check" });
    let meta = json!({ "name": "headroom-guarantee" });
    bench.fake.put(
        json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": meta, "spec": spec }),
    );
    bench.fake.put(workload("w", 4, "1", "Pending"));
    bench.look(0).await;
    assert_eq!(bench.fake.writes(), []);
    bench.fake.delete("admissionchecks", "", "headroom-guarantee");
    // Nor may it be made by who is not granted it.
    bench.fake.deny(Rule::new("create", "kueue.x-k8s.io", "admissionchecks"));
    bench.look(1).await;
    assert_eq!(bench.state("w"), "Pending");
    bench.fake.deny_nothing();
    bench.look(2).await;
    assert_eq!(bench.state("w"), "Ready");
}

#[tokio::test]
async fn what_changed_meanwhile_is_decided_again_and_a_busy_server_is_left_alone() {
    let mut bench = bench(true).await;
    bench.fake.put(workload("w", 4, "1", "Pending"));
    tell(&bench.fake, &bench.guarantees.store);
    // Kueue evicts it after we have read it.
    bench.fake.put(with(workload("w", 4, "1", "Pending"), "Evicted", 0));
    bench.guarantees.look(at(0)).await;
    assert_eq!(bench.fake.writes().last().unwrap().status, 409);
    bench.look(1).await;
    assert_eq!(bench.state("w"), "Pending");
    bench.fake.put(workload("w", 4, "1", "Pending"));
    bench.fake.fault(Met::new(What::Throttle(1), 1).resource("workloads/status"));
    bench.look(2).await;
    bench.fake.forget_requests();
    bench.look(3).await;
    assert_eq!(bench.fake.writes(), [], "the server asked for a wait of a second");
    bench.guarantees.throttled = None;
    bench.look(4).await;
    assert_eq!(bench.state("w"), "Ready");
}

#[tokio::test]
async fn it_follows_workloads_though_history_is_forgotten_until_it_is_stopped() {
    let fake = cluster().await;
    fake.put(workload("a", 4, "1", "Pending"));
    let (stopper, stop) = watch::channel(false);
    let (_offers, taken) = watch::channel(offers([8, 8], Stage::Fresh));
    let (_lead, leading) = lead(true);
    let config = Arc::new(config());
    let running = tokio::spawn(run(client(&fake).await, config, shared(&fake), taken, leading, stop));
    let state =
        |name: &str| fake.get("workloads", "team-a", name).unwrap()["status"]["admissionChecks"][0]["state"].clone();
    eventually("a is answered", || state("a") == "Ready").await;
    // The next watch begins where history is no more: 410.
    fake.put(workload("b", 4, "1", "Pending"));
    fake.compact();
    fake.close_watches();
    eventually("b is answered", || state("b") == "Ready").await;
    stopper.send_replace(true);
    running.await.unwrap();
}
